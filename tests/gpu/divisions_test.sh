#!/bin/bash
# Tests that no kernel of the CUDA module divides 64 bits, which is a call of some 70 instructions each time.
# The compiler links a function for it, whose name says what it does.
#
#   tests/gpu/divisions_test.sh MODULE
set -uo pipefail
[ -e "$1" ] || { echo "skipped: $1 is not built"; exit 77; }
# A compiler that does not optimise divides 64 bits where the numbers are known to be small.
case "${NVCC_APPEND_FLAGS:-}" in *-O0*) echo "skipped: NVCC_APPEND_FLAGS turns optimisation off"; exit 77 ;; esac
found="$(grep -aoE '__cuda_sm20_(div|rem)_[us]64' "$1" | sort | uniq -c)"
[ -z "$found" ] || { echo "FAILED: kernels of $1 divide 64 bits:"; echo "$found"; exit 1; }
grep -qa '__cuda_sm20_dsqrt' "$1" || { echo "FAILED: $1 does not name what its kernels call"; exit 1; }
echo "ok      no kernel of $1 divides 64 bits"

#!/bin/bash
# Tests that tests/gpu/diagnose.py names the part that is at fault. The programs have a known part that is
# broken, and no device is needed.
#
#   tests/gpu/diagnose_test.sh
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
folder="$(mktemp -d)" bad=0
trap 'rm -rf "$folder"' EXIT

expect() {  # expect NAME TEXT FILE
  grep -qF -- "$2" "$3" && return
  echo "FAILED: $1: no '$2' in:"; cat "$3"; bad=1
}
# diagnosis FAULT CODE TEXT…
diagnosis() {
  local fault="$1" right="$2" code=0; shift 2
  STUB_FAULT="$fault" "$here/diagnose.py" "$here/stub_program.py" --mpirun "$here/stub_mpirun.sh" --sanitizer "$here/stub_sanitizer.sh" --networks resnet20:float32 \
    >"$folder/said" 2>&1 || code=$?
  [ $code = "$right" ] || { echo "FAILED: $fault: exit code $code"; cat "$folder/said"; bad=1; }
  for text in "$@"; do expect "$fault" "$text" "$folder/said"; done
}
diagnosis "" 0 "resnet20 float32: right"
diagnosis graphs 1 "resnet20 float32: right without graphs: look at recorded steps"
diagnosis crash 1 "right without graphs" "illegal memory access"
diagnosis images 1 "right images by the host: look at images made on the device"
diagnosis cudnn 1 "right without cuDNN: look at cuDNN" "as it is, backward is right down to the node behind layer1.weight"
diagnosis engine 1 "right without cuDNN: look at cuDNN" "right without cuDNN's engine 62: ANTICHAIN_CUDA_SKIP=62 leaves it out"
diagnosis cublas 1 "right without cuBLASLt: look at cuBLASLt"
diagnosis streams 1 "right one kernel at a time: look at something that does not wait"
diagnosis kernels 1 "wrong with every part left out: our own kernels or memory" \
  "compute-sanitizer memcheck finds: Invalid __global__ read" "compute-sanitizer racecheck: exit code 0"
diagnosis twice 1 "not the same again: something differs from run to run"
diagnosis nccl 1 "wrong as 2 processes, right through host memory: look at messages by NCCL"
diagnosis staged 1 "wrong as 2 threads: look at copies through host memory" \
  "wrong as 2 processes, host memory: look at copies through host memory"

exit $bad

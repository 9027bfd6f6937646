#!/bin/bash
# Runs many short cases in one process: the process is a GoogleTest program, and the script ends with 77 (for
# ctest: skipped) when every case was skipped.
#
#   tests/scripts/gathered.sh PROGRAM [OPTION …]
said="$("$@" 2>&1)"; code=$?
printf '%s\n' "$said"
[ "$code" -eq 0 ] || exit "$code"
grep -q '^\[  SKIPPED \]' <<<"$said" && ! grep -q '^\[       OK \]' <<<"$said" && exit 77
grep -q '^\[==========\] Running [1-9]' <<<"$said" || { echo "there is no such case"; exit 1; }

#!/bin/bash
# Installs what is missing, builds, and runs the tests.
#
#   ./test.sh                                    the tests that every change must pass
#   ./test.sh --all                              those and all others: large networks, an emulated device,
#                                                packages, second builds
#   ./test.sh --sanitize address,undefined       those for sanitizers, in a build of its own with them
#   ./test.sh -R Loader                          other options go to ctest
set -euo pipefail
cd "$(dirname "$0")"
. scripts/packages.sh
folder=build; sanitizers=""; select=(-L core)
if [ "${1:-}" = --all ]; then
  select=()
  shift
elif [ "${1:-}" = --sanitize ]; then
  sanitizers="$2"
  folder="build-${sanitizers//,/-}"
  select=(-L core -L sanitized)
  export ASAN_OPTIONS=detect_leaks=0  # MPI keeps memory to its end
  export TSAN_OPTIONS=ignore_noninstrumented_modules=1  # Open MPI, OpenMP and oneDNN
  shift 2
fi
install_missing $build_packages
if [ -n "$sanitizers" ]; then build_sanitized "$sanitizers" sanitized_tests; else build build all; fi
log="$folder/Testing/Temporary/LastTest.log"
rm -f "$log"
# Three tests run on two cores, because many of them mostly wait for timers, signals and other processes.
# -R .: or with -E ctest numbers the tests that are left anew, and by these numbers --rerun-failed would run
# others.
ctest --test-dir "$folder" --output-on-failure -j "$((($(nproc) * 3 + 1) / 2))" -R . "${select[@]}" "$@" || code=$?
if [ -f "$log" ]; then tests/scripts/skipped.sh "$log"; fi
[ "${code:-0}" -eq 8 ] || exit "${code:-0}"  # 8: tests failed
tests/scripts/once_more.sh "$folder"

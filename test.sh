#!/bin/bash
# Installs what is missing, builds, and runs the tests.
#
#   ./test.sh                                    all tests
#   ./test.sh --sanitize address,undefined       the unit tests in a build of its own with sanitizers
#   ./test.sh -R Loader                          other options go to ctest
set -euo pipefail
cd "$(dirname "$0")"
. scripts/packages.sh
folder=build; target=all; options=(); select=()
if [ "${1:-}" = --sanitize ]; then
  folder="build-${2//,/-}"
  target=unit_tests
  # Only line numbers, and no optimisation but of what computes (antichain_optimise): compiling takes longer
  # than testing.
  options=(-DANTICHAIN_SANITIZE="$2" -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 -g1 -DNDEBUG"
    -DANTICHAIN_CUDA=OFF)
  select=(-L unit)
  export ASAN_OPTIONS=detect_leaks=0  # MPI keeps memory to its end
  export TSAN_OPTIONS=ignore_noninstrumented_modules=1  # Open MPI, OpenMP and oneDNN
  shift 2
fi
install_missing $build_packages
build "$folder" "$target" "${options[@]}"
log="$folder/Testing/Temporary/LastTest.log"
rm -f "$log"
# Three tests run on two cores, because many of them mostly wait for timers, signals and other processes.
# -R .: or with -E ctest numbers the tests that are left anew, and by these numbers --rerun-failed would run
# others.
ctest --test-dir "$folder" --output-on-failure -j "$((($(nproc) * 3 + 1) / 2))" -R . "${select[@]}" "$@" || code=$?
if [ -f "$log" ]; then tests/scripts/skipped.sh "$log"; fi
[ "${code:-0}" -eq 8 ] || exit "${code:-0}"  # 8: tests failed
tests/scripts/once_more.sh "$folder"

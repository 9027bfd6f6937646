#!/bin/bash
# Installs what is missing, builds, and runs the tests.
#
#   ./test.sh                                    all tests
#   ./test.sh --sanitize address,undefined       a second build with sanitizers, unit tests only
#   ./test.sh -R Loader                          other options go to ctest
set -euo pipefail
cd "$(dirname "$0")"
. scripts/packages.sh
folder=build-tests; options=(-DANTICHAIN_BENCHMARKS=OFF); select=()
if [ "${1:-}" = --sanitize ]; then
  folder="build-${2//,/-}"
  options+=(-DANTICHAIN_SANITIZE="$2" -DCMAKE_BUILD_TYPE=RelWithDebInfo)
  select=(-L unit)
  export ASAN_OPTIONS=detect_leaks=0  # MPI keeps memory to its end
  shift 2
fi
install_missing $build_packages
build "$folder" "${options[@]}"
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ctest --test-dir "$folder" --output-on-failure -j "$(nproc)" "${select[@]}" "$@"

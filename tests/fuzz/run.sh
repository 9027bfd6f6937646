#!/bin/bash
# Builds the fuzz targets, in the folder of the unit tests with sanitizers, and runs each for SECONDS (60),
# one per core. It fails when a reader crashes, breaks its promise, or takes a second or 256 MiB for one input
# (HDF5: 4 GiB in all). The input is then in build-address-undefined/fuzz/<target>/.
#
#   tests/fuzz/run.sh [SECONDS [target …]]
set -euo pipefail
seconds="${1:-60}"; shift || true
here="$(cd "$(dirname "$0")" && pwd)"
cd "$here/../.."
. scripts/packages.sh
build_sanitized address,undefined fuzzers
programs="$PWD/build-address-undefined/tests/fuzz"
targets=("$@")
[ $# -gt 0 ] || targets=(graph_txt graph_file profile plan cluster schedule schedule_csv cuts safetensors cifar10 hdf5_set
  image manifest settings token_set)

fuzz() {  # TARGET: new inputs go to a folder of their own, the seeds stay as they are
  local target="$1" folder="$PWD/build-address-undefined/fuzz/$1"
  mkdir -p "$folder/found"
  # A small quarantine: freed memory that AddressSanitizer holds back counts towards the limit.
  local asan=quarantine_size_mb=16 limits=(-rss_limit_mb=256 -timeout=1)
  # HDF5 asks for as many bytes as a damaged file says, and takes no for an answer: what it gets counts, not
  # what it asks for. And it loses some hundred bytes of its own with each such file, which adds up over
  # 100,000 of them.
  [[ "$target" = hdf5_set || "$target" = token_set ]] && asan+=:allocator_may_return_null=1 limits=(-rss_limit_mb=4096 -malloc_limit_mb=1000000 -timeout=1)
  if ASAN_OPTIONS=$asan "$programs/${target}_fuzzer" -max_total_time="$seconds" "${limits[@]}" \
    -max_len=65536 -artifact_prefix="$folder/" "$folder/found" "$here/corpus/$target" >"$folder/log" 2>&1; then
    echo "$target: $(grep "^Done" "$folder/log")"
  else
    echo "$target FAILED:"; tail -40 "$folder/log"
    return 1
  fi
}
export -f fuzz; export programs seconds here
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz {}'

#!/bin/bash
# Builds the fuzz targets with clang and runs each for SECONDS (60), one per core. Fails when any reader crashes, breaks
# its promise, takes a second or 256 MiB for one input; the input is then in build-fuzz/<target>/.
#
#   tests/fuzz/run.sh [SECONDS [target …]]
set -euo pipefail
seconds="${1:-60}"; shift || true
here="$(cd "$(dirname "$0")" && pwd)"
build="$here/../../build-fuzz"
targets=("$@")
[ $# -gt 0 ] || targets=(graph_txt profile plan cluster schedule cuts safetensors cifar10 hdf5_set image manifest)

launcher=""
command -v ccache >/dev/null && launcher="-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
cmake -S "$here" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=clang++ $launcher >/dev/null
ninja -C "$build" --quiet

fuzz() {  # TARGET: new inputs go to a folder of their own, the seeds stay as they are
  local target="$1" folder="$build/$1"
  mkdir -p "$folder/found"
  # A small quarantine: freed memory that AddressSanitizer holds back counts towards the limit.
  if ASAN_OPTIONS=quarantine_size_mb=16 "$build/${target}_fuzzer" -max_total_time="$seconds" -rss_limit_mb=256 -timeout=1 \
    -max_len=65536 -artifact_prefix="$folder/" "$folder/found" "$here/corpus/$target" >"$folder/log" 2>&1; then
    echo "$target: $(tail -1 "$folder/log")"
  else
    echo "$target FAILED:"; tail -40 "$folder/log"
    return 1
  fi
}
export -f fuzz; export build seconds here
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz {}'

#!/bin/bash
# Tests that the list of sources which a bundle takes along for a GPU node (scripts/gpu_bundle.sh) names files
# of the repository, and each of the module's kernels.
#
#   tests/gpu/module_sources_test.sh REPOSITORY BUILD
set -euo pipefail
root="$1" build="$2" bad=0
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
sources="$("$root/scripts/cuda_module_sources.py" "$build")"
cd "$root"
while read -r source; do
  [ -f "$source" ] || { echo "FAILED: there is no $source"; bad=1; }
done <<<"$sources"
for source in {data,framework,layers}/cuda/*.cu {framework,layers,pipeline}/cuda/module.cpp; do
  [ ! -e "$source" ] || grep -qxF "$source" <<<"$sources" || { echo "FAILED: $source is missing"; bad=1; }
done
exit $bad

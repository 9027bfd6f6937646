#!/bin/bash
# Builds the CUDA module of a folder that scripts/gpu_bundle.sh made from the sources in it, on the node: by
# nvcc and g++, without CMake or packages. The earlier module is kept as libantichain_cuda.so.before.
# Compilers' options are those of framework/cuda/CMakeLists.txt and CMakeLists.txt.
#
#   FOLDER/rebuild.sh                    ARCHITECTURE=90 (compute capability 9.0) and JOBS (all cores), unless
#                                        said otherwise
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
src="$here/src"
# shellcheck source=/dev/null
. "$src/tests/gpu/find_libraries.sh"
find_libraries
nvcc="$(find_tool nvcc)"
[ -n "$nvcc" ] || { echo "there is no nvcc: set CUDA_HOME to the folder of a CUDA 13 toolkit"; exit 1; }
arch="${ARCHITECTURE:-90}" objects="$here/objects"
mkdir -p "$objects"

common="-O3 -DNDEBUG -std=c++20 -DFMT_SHARED -DANTICHAIN_VERSION=\"$(cat "$src/version.txt")\" -I$src/cmake/once -I$src -I$src/include"
export nvcc src objects arch common
export include="$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include"
compile() {
  local object="$objects/${1//\//_}.o"
  [ "$object" -nt "$src/$1" ] && [ -z "$(find "$src" -name '*.h' -newer "$object" -print -quit)" ] && return 0
  # shellcheck disable=SC2086
  case "$1" in
    *.cu)
      "$nvcc" $common "--generate-code=arch=compute_$arch,code=[sm_$arch]" -Xcompiler=-fPIC --fmad=false --extended-lambda \
        --expt-relaxed-constexpr -x cu -c "$src/$1" -o "$object" ;;
    *)
      "${CXX:-g++}" $common -isystem "$include" -fPIC -ffp-contract=off -fno-trapping-math -fno-math-errno -c "$src/$1" -o "$object" ;;
  esac || { echo "FAILED: $1"; exit 255; }
}
export -f compile
xargs -P "${JOBS:-$(nproc)}" -I '{}' bash -c 'compile "$1"' - '{}' <"$src/module.txt"

folders="$here/lib"
libraries=(libantichain.so.0 libcublasLt.so.13 libcudnn.so.9 libfmt.so.9)
IFS=: read -ra found <<<"${LD_LIBRARY_PATH:-}:$toolkit/lib64:$toolkit/lib"
link=(-L"$folders")
for folder in "${found[@]}"; do [ -d "$folder" ] && link+=(-L"$folder"); done
for library in "${libraries[@]}"; do link+=("-l:$library"); done
new="$here/lib/libantichain_cuda.so.new"
"$nvcc" -shared -cudart shared "$objects"/*.o "${link[@]}" -Xlinker -rpath -Xlinker '$ORIGIN' -o "$new"
mv "$here/lib/libantichain_cuda.so" "$here/lib/libantichain_cuda.so.before"
mv "$new" "$here/lib/libantichain_cuda.so"
# What a newer compiler builds needs its libstdc++, which serves what an older one has built, too.
newest() { grep -aoE 'GLIBCXX_3\.4\.[0-9]+' "$1" | sort -V | tail -n 1; }
own="$(readlink -f "$("${CXX:-g++}" -print-file-name=libstdc++.so.6)")" kept="$here/lib/libstdc++.so.6"
if [ -e "$kept" ] && [ "$(printf '%s\n' "$(newest "$own")" "$(newest "$kept")" | sort -V | tail -n 1)" != "$(newest "$kept")" ]; then
  cp -L "$own" "$kept"
  echo "took the libstdc++ of this machine's compiler"
fi
echo "ok      built $here/lib/libantichain_cuda.so of $(wc -l <"$src/module.txt") sources"

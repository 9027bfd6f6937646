#!/bin/bash
# Tests that CMake finds cuDNN and NCCL as Python's packages ship them: libcudnn.so.9 and libnccl.so.2,
# without the links that compilers look for.
#
#   tests/gpu/wheels_test.sh SOURCE CUDNN_INCLUDE_DIR NCCL_INCLUDE_DIR
set -euo pipefail
source="$1"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/{bin,packages/nvidia/{cudnn,nccl}/{include,lib},build}
cp "$2"/cudnn*.h "$folder/packages/nvidia/cudnn/include/"
cp "$3/nccl.h" "$folder/packages/nvidia/nccl/include/"
: >"$folder/packages/nvidia/cudnn/lib/libcudnn.so.9"
: >"$folder/packages/nvidia/nccl/lib/libnccl.so.2"
# This python3 has these packages alone, and there is nothing in the toolkit's folders or the system's.
printf '#!/bin/bash\nprintf %%s "%s;%s"\n' "$folder/packages/nvidia/cudnn" "$folder/packages/nvidia/nccl" >"$folder/bin/python3"
chmod +x "$folder/bin/python3"
cat >"$folder/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(found LANGUAGES NONE)
set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH OFF)
set(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH OFF)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
include($source/cmake/wheels.cmake)
message(STATUS "found: \${CUDNN_INCLUDE_DIR} \${CUDNN_LIBRARY} \${NCCL_INCLUDE_DIR} \${NCCL_LIBRARY}")
END
PATH="$folder/bin:$PATH" cmake -S "$folder" -B "$folder/build" >"$folder/said"
packages="$folder/packages/nvidia"
wanted="found: $packages/cudnn/include $packages/cudnn/lib/libcudnn.so.9 $packages/nccl/include $packages/nccl/lib/libnccl.so.2"
grep -qF -- "$wanted" "$folder/said" || { echo "FAILED: there is no '$wanted' in:"; cat "$folder/said"; exit 1; }
echo "ok      cuDNN and NCCL of Python's packages are found"

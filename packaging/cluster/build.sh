#!/bin/bash
# Builds what Antichain needs from the archive that packaging/cluster/gather.sh made, by the compilers of $CC
# and $CXX (cc and c++), into a prefix. Neither root nor a network is needed. What is there already is not
# built again.
#
#   ./build.sh PREFIX
#   export PATH=PREFIX/bin:$PATH       # its CMake
#   cd antichain && cmake --preset cluster -DCMAKE_PREFIX_PATH=PREFIX -DCMAKE_INSTALL_PREFIX=PREFIX
#   cmake --build --preset cluster --parallel 8 && cmake --install build-cluster
set -euo pipefail
[ $# = 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
here="$(realpath "$(dirname "$0")")"
mkdir -p "$1" "$here/work"
prefix="$(realpath "$1")"
cp -a --remove-destination "$here"/{headers,onednn,cmake}/. "$prefix/"
export PATH="$prefix/bin:$PATH"

# build ARCHIVE [CMake option …]: libraries look for each other beside themselves.
build() {
  local folder="$here/work/$1"
  [ ! -e "$folder/installed" ] || [ "$(cat "$folder/installed")" != "$prefix" ] || return 0
  rm -rf "$folder"
  mkdir -p "$folder"/{build,source}
  tar xf "$here"/archives/"$1"_*.orig.tar.* -C "$folder/source" --strip-components=1
  echo "$1"
  # Debian's archive of zlib lacks what only Windows compiles, and zlib's CMake asks for it.
  if [ "$1" = zlib ]; then mkdir -p "$folder/source/win32" && touch "$folder/source/win32/zlib1.rc"; fi
  # HDF5 tries a program that writes where CMake was started.
  if ! {
    (cd "$folder/build" && cmake ../source -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON \
      -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_INSTALL_LIBDIR:STRING=lib \
      -DCMAKE_INSTALL_RPATH="\$ORIGIN" "${@:2}") &&
      cmake --build "$folder/build" --target install --parallel "$(nproc)"
  } >"$folder/log" 2>&1; then
    tail -n 20 "$folder/log"
    echo "$1 could not be built: see $folder/log" >&2
    exit 1
  fi
  echo "$prefix" >"$folder/installed"
}
build zlib
build libpng1.6 -DPNG_TESTS=OFF -DPNG_STATIC=OFF
build libjpeg-turbo -DENABLE_STATIC=OFF -DWITH_TURBOJPEG=OFF
build fmtlib -DFMT_TEST=OFF -DFMT_DOC=OFF
build hdf5 -DBUILD_TESTING=OFF -DBUILD_STATIC_LIBS=OFF -DHDF5_BUILD_TOOLS=OFF -DHDF5_BUILD_UTILS=OFF \
  -DHDF5_BUILD_EXAMPLES=OFF -DHDF5_BUILD_CPP_LIB=OFF -DHDF5_BUILD_HL_LIB=OFF -DHDF5_ENABLE_Z_LIB_SUPPORT=ON
echo "built into $prefix"

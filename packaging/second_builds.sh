#!/bin/bash
# Builds Antichain in the ways that docs/install.md lists beside the usual one, and tries each: with oneDNN 3,
# with MPICH, with other compilers, and without root from the archive of packaging/cluster/gather.sh. Only
# ./test.sh --all runs it, as it compiles everything several times and needs a network.
#
#   packaging/second_builds.sh FOLDER [onednn3 mpich clang-16 clang-19 cluster …]
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 2; }
# shellcheck source=tests/scripts/steps_in_a_folder.sh
. "$(dirname "$0")/../tests/scripts/steps_in_a_folder.sh"
# shellcheck source=scripts/packages.sh
. "$(dirname "$0")/../scripts/packages.sh"
source=$(realpath "$(dirname "$0")/..")
mkdir -p "$1"
all=$(realpath "$1")
shift
if [ $# = 0 ]; then set -- onednn3 mpich clang-16 clang-19 cluster; fi

launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
configured() {  # configured NAME [option …]
  run "$1: configure" cmake -S "$source" -B "$all/$1" -G Ninja "${launcher[@]}" -DANTICHAIN_CUDA=OFF "${@:2}"
}
built() { run "$1: build ${*:2}" ninja -C "$all/$1" "${@:2}"; }
# GCC 12's own headers use what C++20 deprecates, which clang 19 says of each std::stable_sort.
no_warnings() { if grep -F "warning:" "$folder/out" | grep -v "^/usr/lib/gcc/"; then failed "$1: warnings"; fi; }

# trains NAME PROGRAM LAUNCHER…: two processes have the bits of one.
trains() {
  local name=$1 program=$2 options="--model resnet20 --dataset synthetic --batch 8 --microbatches 2 --steps 3"
  rm -rf "$folder"/{one,two}
  # shellcheck disable=SC2086
  run "$name: one rank" "$program" train $options --local 1 --results "$folder/one"
  # shellcheck disable=SC2086
  run "$name: two processes" "${@:3}" "$program" train $options --results "$folder/two"
  run "$name: the same bits" "$program" compare "$folder/one" "$folder/two"
}
openmpi=(mpirun.openmpi -n 2 --oversubscribe)

# Every operator's outputs and gradients are compared with the reference's in double precision.
onednn3() {
  run "onednn3: the wheels" pip download --quiet --no-deps --dest "$folder/wheels" \
    onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0
  for wheel in "$folder"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$folder/wheels"; done
  mkdir -p "$all/onednn"
  cp -r "$folder"/wheels/onednn_*.data/data/{include,lib} "$all/onednn/"
  configured onednn3 -DCMAKE_PREFIX_PATH="$all/onednn"
  grep "^-- oneDNN: 3" "$folder/out" || failed "onednn3: found another oneDNN"
  # Headers of one version and the library of another are refused.
  if (configured onednn-mixed -DDNNL_INCLUDE_DIR="$all/onednn/include") >"$folder/mixed"; then
    failed "onednn3: took the system's library for 3.2's headers"
  fi
  tr -s '\n ' ' ' <"$folder/mixed" | grep -q "are of 3.2.0, but its library is" || failed "onednn3: $(cat "$folder/mixed")"
  built onednn3 antichain_program test_layers
  no_warnings onednn3
  run "onednn3: test_layers" "$all/onednn3/tests/layers/test_layers" --gtest_brief=1
  run "onednn3: no reference code" "$source/tests/scripts/no_reference_code.sh" "$all/onednn3/antichain"
  trains onednn3 "$all/onednn3/antichain" "${openmpi[@]}"
}

# It stands beside Open MPI, which remains the system's choice.
mpich() {
  install_missing libmpich-dev mpich
  configured mpich -DMPI_C_COMPILER=mpicc.mpich -DMPIEXEC_EXECUTABLE="$(command -v mpiexec.mpich)"
  built mpich antichain_program
  if ldd "$all/mpich/libantichain.so" | grep libmpi.so; then failed "mpich: it links Open MPI"; fi
  trains mpich "$all/mpich/antichain" mpiexec.mpich -n 2
}

# Debian's OpenMP of one clang excludes another's, so this one lies in a folder of its own.
clang() {  # clang 19
  mkdir -p "$folder/$1" "$all/clang"
  (cd "$folder/$1" && run "clang-$1: its packages" apt-get download -qq "clang-$1" "libclang-cpp$1" "libllvm$1" \
    "libclang-common-$1-dev" "libomp-$1-dev" "libomp5-$1" "llvm-$1-linker-tools")
  for deb in "$folder/$1"/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar x -C "$all/clang"; done
  local llvm=$all/clang/usr/lib/llvm-$1
  export LD_LIBRARY_PATH=$llvm/lib:$all/clang/usr/lib/x86_64-linux-gnu
  configured "clang-$1" -DCMAKE_C_COMPILER="$llvm/bin/clang" -DCMAKE_CXX_COMPILER="$llvm/bin/clang++"
  built "clang-$1" antichain_program
  no_warnings "clang-$1"
  trains "clang-$1" "$all/clang-$1/antichain" "${openmpi[@]}"
  unset LD_LIBRARY_PATH
}

# As a user without a home in the usual place, who can write nowhere else.
cluster() {
  local user=() home=$all/cluster
  mkdir -p "$home"
  run "cluster: gather" "$source/packaging/cluster/gather.sh" "$all/antichain-sources.tar.gz"
  if [ "$(id -u)" = 0 ]; then
    chown nobody "$home"
    chmod 1777 "$folder"
    user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
  fi
  local prefix=$home/antichain
  user+=(env -C "$home" HOME="$home" PATH="$prefix/bin:$PATH")
  run "cluster: unpack" "${user[@]}" tar xf "$all/antichain-sources.tar.gz"
  run "cluster: dependencies" "${user[@]}" antichain-sources/build.sh "$prefix"
  user+=(env -C "$home/antichain-sources/antichain")
  run "cluster: configure" "${user[@]}" cmake --preset cluster -DANTICHAIN_CUDA=OFF \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_INSTALL_PREFIX="$prefix"
  run "cluster: build" "${user[@]}" cmake --build --preset cluster --parallel "$(nproc)"
  run "cluster: install" "${user[@]}" cmake --install build-cluster
  trains cluster "$prefix/bin/antichain" "${user[@]}" "${openmpi[@]}"
  # A network of one's own is built against what was installed.
  run "cluster: configure own_model" "${user[@]}" cmake -S "$prefix/share/antichain/examples/own_model" -B "$home/own" \
    -DCMAKE_PREFIX_PATH="$prefix"
  run "cluster: build own_model" "${user[@]}" cmake --build "$home/own"
  run "cluster: own_model" "${user[@]}" "$home/own/own_model" train --local 2 --model skipnet --dataset synthetic \
    --batch 8 --microbatches 2 --steps 1
  # The archive has all but the C library and MPI, wherever it lies.
  run "cluster: cpack" "${user[@]}" cpack -G TGZ --config build-cluster/CPackConfig.cmake -B "$home/packed"
  mkdir -p "$folder/moved"
  tar xf "$home"/packed/antichain-*.tar.gz -C "$folder/moved" --strip-components=1
  mv "$prefix" "$prefix.hidden"
  ldd "$folder/moved/bin/antichain" >"$folder/libraries"
  if grep -E "not found|libdnnl|libhdf5|libpng|libjpeg|libfmt" "$folder/libraries" | grep -v "$folder/moved"; then
    failed "cluster: the archive lacks a library"
  fi
  trains "cluster: archive" "$folder/moved/bin/antichain" "${openmpi[@]}"
  mv "$prefix.hidden" "$prefix"
}

for build in "$@"; do
  case $build in
    onednn3 | mpich | cluster) "$build" ;;
    clang-*) clang "${build#clang-}" ;;
    *) failed "there is no second build '$build'" ;;
  esac
done
echo "every build passed: $*"

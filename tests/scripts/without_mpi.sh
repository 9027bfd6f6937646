#!/bin/bash
# Makes the program without MPI (-DANTICHAIN_MPI=OFF) where CMake finds no MPI: its commands work on ranks
# that are threads, and a start of several processes is refused in one sentence. What is compiled by the same
# command in the build given is taken from there, so that little is left to compile. A second folder keeps the
# build, from which tests/scripts/wheel.sh makes a wheel.
#
#   tests/scripts/without_mpi.sh build [kept]
set -euo pipefail
# shellcheck source=tests/scripts/steps_in_a_folder.sh
. "$(dirname "$0")/steps_in_a_folder.sh"
full=$(realpath "$1")
scripts=$(realpath "$(dirname "$0")")
source=$(realpath "$scripts/../..")

# 1. The build is like the other but for the option.
build=${2:-$folder/build}
rm -rf "$build"  # what was taken from the other build has no list of its headers
mkdir -p "$build"
build=$(realpath "$build")
of_full() { sed -n "s/^$1:[A-Z]*=//p" "$full/CMakeCache.txt"; }
run "configure" cmake -S "$source" -B "$build" -G "$(of_full CMAKE_GENERATOR)" -DANTICHAIN_MPI=OFF -U 'SKBUILD*' \
  -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DANTICHAIN_TESTS=OFF -DANTICHAIN_CUDA=OFF \
  -DCMAKE_BUILD_TYPE="$(of_full CMAKE_BUILD_TYPE)" -DCMAKE_CXX_FLAGS="$(of_full CMAKE_CXX_FLAGS)" \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$scripts/take_object.sh"
commands() {
  sed -n 's/^ *"command": "\(.*\)",$/\1/p' "$1/compile_commands.json" | sed "s|$1|BUILD|g" | sort
}
# A file that CMake wrote to compile several together lists the same ones in both builds, and those that CMake
# wrote as well have the same text.
same_list() { cmp -s <(sed "s|$full|BUILD|" "$full/$1") <(sed "s|$build|BUILD|" "$build/$1"); }
same_texts() {
  while read -r text; do
    cmp -s "$full/$text" "$build/$text" || return 1
  done < <(sed -n "s|^#include \"$build/\(.*\)\"$|\1|p" "$build/$1")
}
same_sources() {
  while read -r object; do
    list=${object%.o}
    if [ ! -f "$build/$list" ] || { same_list "$list" && same_texts "$list"; }; then echo "$object"; fi
  done
}
comm -12 <(commands "$full") <(commands "$build") | sed -n 's/.* -o \([^ ]*\) -c .*/\1/p' | same_sources >"$build/alike"
[ -s "$build/alike" ] || failed "no file is compiled alike with MPI and without"
export ANTICHAIN_ALIKE=$build/alike ANTICHAIN_OBJECTS=$full
run "build" cmake --build "$build" --target antichain_program --parallel "$(nproc)"
if ldd "$build/antichain" "$build/libantichain.so" | grep libmpi; then failed "it links MPI"; fi

# 2. Its commands run on ranks that are threads.
cd "$folder"
antichain=$build/antichain
run "doctor" "$antichain" doctor
grep -q "no MPI" out || failed "doctor does not say that there is no MPI"
run "profile" "$antichain" profile --local 2 --model resnet20 --batch 8 --microbatches 2 --json profile.json
run "plan" "$antichain" plan --profile profile.json --stages 2 --json plan.json
run "simulate" "$antichain" simulate --profile profile.json --plan plan.json --microbatches 2
train="train --model resnet20 --dataset synthetic --batch 8 --microbatches 2 --steps 2 --profile profile.json"
# shellcheck disable=SC2086
run "train" "$antichain" $train --local 2 --plan plan.json --results two
# shellcheck disable=SC2086
run "train with MPI" "$full/antichain" $train --local 1 --results one
run "the same bits" "$antichain" compare one two
run "evaluate" "$antichain" evaluate --local 2 --model resnet20 --dataset synthetic --weights two/weights.h5

# 3. It refuses to be one of several processes.
code=0
OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$antichain" profile --model resnet20 >said 2>&1 || code=$?
[ "$code" = 2 ] || { cat said; failed "one of several processes ended with code $code, not 2"; }
[ "$(wc -l <said)" = 1 ] || { cat said; failed "one of several processes says more than one sentence"; }
grep -q "has no MPI.*--local N.*ANTICHAIN_MPI=ON" said || { cat said; failed "the sentence"; }
echo "one of several processes: refused"

#!/bin/bash
# Installs a build, moves the installation, builds examples/own_model and examples/own_operator against it,
# and trains their networks on 2 ranks, as threads and as processes, with the bits of 1 rank. Then it tries
# every other command and every installed header.
#
#   tests/scripts/own_model.sh build
set -euo pipefail
# shellcheck source=tests/scripts/steps_in_a_folder.sh
. "$(dirname "$0")/steps_in_a_folder.sh"
build=$(realpath "$1")
source=$(realpath "$(dirname "$0")/../..")
export OMPI_MCA_rmaps_base_oversubscribe=1

# 1. Installed to one place, used in another.
run "install" cmake --install "$build" --prefix "$folder/first"
prefix=$folder/moved
mv "$folder/first" "$prefix"
run "the installed program" "$prefix/bin/antichain" --version
if grep -rlE "[\"; ]($source|$build|$folder)" "$prefix" --include=*.cmake; then
  failed "names a folder of the build"
fi
if ldd "$prefix/bin/antichain" | grep libantichain | grep -v "$prefix/"; then
  failed "finds another libantichain"
fi

# 2. Projects of their own, and one that includes every installed header.
for example in own_model own_operator; do
  run "configure $example" cmake -S "$source/examples/$example" -B "$folder/$example" \
    -DCMAKE_PREFIX_PATH="$prefix"
  run "build $example" cmake --build "$folder/$example"
done
own=$folder/own_model/own_model
mkdir "$folder/headers"
cat >"$folder/headers/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(headers LANGUAGES CXX)
find_package(antichain REQUIRED)
add_library(headers OBJECT headers.cpp)
target_link_libraries(headers PRIVATE antichain::antichain)
END
(cd "$prefix/include/antichain" && find . -name '*.h' | sort | sed 's|./\(.*\)|#include "\1"|') \
  >"$folder/headers/headers.cpp"
[ "$(wc -l <"$folder/headers/headers.cpp")" -gt 60 ] || failed "headers are missing"
run "configure headers" cmake -S "$folder/headers" -B "$folder/headers/build" -DCMAKE_PREFIX_PATH="$prefix"
run "every installed header" cmake --build "$folder/headers/build"
# What models and operators of one's own have always included is still there, and each header stands alone.
headers=$prefix/include/antichain
while read -r header; do
  [ -f "$headers/$header" ] || failed "$header is not installed any more"
done <"$source/tests/install/kept_headers.txt"
run "kept headers alone" xargs -a "$source/tests/install/kept_headers.txt" -P "$(nproc)" -I HEADER \
  "${CXX:-c++}" -std=c++20 -fsyntax-only -I "$headers" -include "$headers/HEADER" -x c++ /dev/null

# 3. The same numbers on 1 and 2 ranks.
numbers() { sed -nE 's/.*"step":([0-9]+).*"loss":([^,]+),"accuracy":([^,]+).*/\1 \2 \3/p; s/.*"state":"([0-9a-f]+)".*/\1/p' "$1"; }
train() {  # train MODEL NAME RANKS LAUNCH…: its losses and state are those of one rank
  local model=$1 name=$1-$2 ranks=$3
  shift 3
  run "train, $name" "$@" --model "$model" --dataset synthetic --batch 16 --microbatches 4 --steps 5 \
    --metrics "$folder/$name.json"
  numbers "$folder/$name.json" >"$folder/$name.numbers"
  [ "$(wc -l <"$folder/$name.numbers")" = 6 ] || failed "$name has not 5 losses and a state"
  grep -q "\"ranks\":$ranks[,}]" "$folder/$name.json" || failed "$name did not run on $ranks ranks"
  diff "$folder/$model-alone.numbers" "$folder/$name.numbers" || failed "$name differs from one rank"
}
train skipnet alone 1 "$own" train --local 1
train skipnet threads 2 "$own" train --local 2
train skipnet processes 2 "${MPIRUN:-mpirun}" -n 2 "$own" train
train slopenet alone 1 "$folder/own_operator/own_operator" train --local 1
train slopenet threads 2 "$folder/own_operator/own_operator" train --local 2
for model in skipnet slopenet; do
  echo "$model has the same numbers on 1 and 2 ranks, state $(tail -n 1 "$folder/$model-alone.numbers")"
done

# 4. The other commands know it beside the shipped models.
cd "$folder"
run "info" "$own" info
grep -q resnet18 out && grep -q skipnet out || failed "info does not list it beside the shipped models"
run "profile" "$own" profile --model skipnet --batch 16 --microbatches 4 --json profile.json
run "plan" "$own" plan --profile profile.json --stages 2 --json plan.json
run "simulate" "$own" simulate --profile profile.json --plan plan.json --microbatches 4
run "train by files" "$own" train --local 2 --model skipnet --dataset synthetic --batch 16 --microbatches 4 --steps 1 \
  --profile profile.json --plan plan.json

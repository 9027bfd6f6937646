#!/bin/bash
# The program on a GPU: the same bits on 1, 2 and 4 ranks that share it, as threads and as processes, in float32 and bf16; those of
# two replicas whatever the cut; and that it learns in float32, TF32 and bf16. Exit code 77 where there is no device.
#
#   tests/gpu/program.sh PROGRAM [MPIRUN]
#   CIFAR10_DIR=D tests/gpu/program.sh build/antichain        learns real images; else generated ones
#
# A run that takes longer than EACH seconds (90) is stopped, and the others go on.
set -euo pipefail
program="$1" mpirun="${2:-$(command -v mpirun || true)}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

if ! "$program" info --model resnet20 --device cuda >"$folder/log" 2>&1; then
  echo "skipped, needs a CUDA device: $(tail -n 1 "$folder/log")"
  exit 77
fi
data=(--dataset synthetic)
[ -n "${CIFAR10_DIR:-}" ] && data=(--data-dir "$CIFAR10_DIR")
bad=0

# state NAME LAUNCHER… -- OPTION…: the hash of all weights after some steps.
state() {
  local name="$1"; shift
  local launcher=()
  while [ "$1" != -- ]; do launcher+=("$1"); shift; done
  shift
  if ! timeout -k 5 "${EACH:-90}" "${launcher[@]}" "$program" train --device cuda --dataset synthetic --lr-schedule constant --lr 0.01 \
    --json "$folder/$name.json" "$@" >"$folder/$name.log" 2>&1; then
    echo "FAILED $name:"; tail -n 5 "$folder/$name.log"; bad=1
    return 0
  fi
  sed -n 's/.*"state": *"\([0-9a-f]*\)".*/\1/p' "$folder/$name.json"
}

for kind in "resnet20 float32" "vgg16 float32" "densenet121 float32" "resnet20 bf16" "vgg16 bf16" "densenet121 bf16"; do
  model="${kind/ /-}"  # batch norm with add; dropout and linear layers; concatenation
  network=(--model "${kind% *}" --precision "${kind#* }" --batch 64 --microbatches 8 --steps 4)
  one="$(state "$model-1" -- "${network[@]}" --local 1)"
  for ranks in 2 4; do
    some="$(state "$model-$ranks" -- "${network[@]}" --local "$ranks" --method uniform)"
    [ -n "$one" ] && [ "$one" = "$some" ] && echo "ok      $model: $ranks threads as one, $one" ||
      { echo "FAILED  $model: state $one on 1 rank, $some on $ranks threads"; bad=1; }
  done
  plain="$(ANTICHAIN_CUDA_GRAPHS=0 state "$model-plain" -- "${network[@]}" --local 1)"
  [ "$one" = "$plain" ] && echo "ok      $model: recorded as launched one by one" ||
    { echo "FAILED  $model: state $one recorded, $plain with kernels launched one by one"; bad=1; }
  grep -h "can't be recorded" "$folder/$model-1.log" && { echo "FAILED  $model: a step can't be recorded"; bad=1; }
  pair="$(state "$model-replicas" -- "${network[@]}" --local 2 --method data-parallel)"
  four="$(state "$model-2x2" -- "${network[@]}" --local 4 --replicas 2,2)"
  [ -n "$pair" ] && [ "$pair" = "$four" ] && echo "ok      $model: two stages of two replicas as one stage of two, $pair" ||
    { echo "FAILED  $model: state $pair of two replicas, $four of two stages of two"; bad=1; }
  again="$(state "$model-again" -- "${network[@]}" --local 1)"
  [ "$one" = "$again" ] && echo "ok      $model: the same bits again" || { echo "FAILED  $model: $one, then $again"; bad=1; }
  if [ -n "$mpirun" ]; then
    for way in auto mpi; do  # auto: within the GPU where the system lets processes do that
      pair="$(state "$model-$way" "$mpirun" -n 2 --oversubscribe --bind-to none -- "${network[@]}" --method uniform --transport $way)"
      [ "$one" = "$pair" ] && echo "ok      $model: 2 processes as one; $(grep -m 1 '^tensors ' "$folder/$model-$way.log")" ||
        { echo "FAILED  $model: state $one on 1 rank, $pair on 2 processes, --transport $way"; bad=1; }
    done
  fi
done

# Of ten classes 10 % are right by chance.
steps="${STEPS:-400}"
for device in cuda cuda:tf32 "cuda --precision bf16"; do
  # shellcheck disable=SC2086
  timeout -k 5 "${EACH:-90}" "$program" train --device $device --model resnet20 --batch 128 --microbatches 1 --steps "$steps" "${data[@]}" \
    --metrics "$folder/learning" >"$folder/log" 2>&1 || { echo "FAILED  learning on $device:"; tail -n 5 "$folder/log"; bad=1; continue; }
  accuracy="$(sed -n 's/.*"accuracy":\([0-9.]*\).*/\1/p' "$folder/learning" | tail -n 20 | awk '{s += $1} END {print s / NR}')"
  echo "$device: training accuracy $accuracy over the last 20 of $steps steps; $(grep -h "Step time" "$folder/log" || true)"
  awk -v a="$accuracy" 'BEGIN { exit !(a > 0.3) }' || { echo "FAILED  $device learns nothing"; bad=1; }
done
exit $bad

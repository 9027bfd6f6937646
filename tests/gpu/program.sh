#!/bin/bash
# The program on a GPU: the same bits on 1, 2 and 4 ranks that share it, as threads and as processes, in
# float32 and bf16; those of two replicas whatever the cut; and that it learns in float32, TF32 and bf16. Exit
# code 77 where there is no device.
#
#   tests/gpu/program.sh PROGRAM [MPIRUN]
#   CIFAR10_DIR=D tests/gpu/program.sh build/antichain        learns real images; else generated ones
#
# The runs of one network go at the same time, as none is timed. One that takes longer than EACH seconds (90)
# is stopped, and the others go on.
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

# run NAME [LAUNCHER… --] OPTION…: some steps; state NAME: the hash of all weights after them
run() {
  local name="$1" launcher=(); shift
  if [[ " $* " == *" -- "* ]]; then
    while [ "$1" != -- ]; do launcher+=("$1"); shift; done
    shift
  fi
  timeout -k 5 "${EACH:-90}" "${launcher[@]}" "$program" train --device cuda --dataset synthetic --lr-schedule constant --lr 0.01 \
    --json "$folder/$name.json" "$@" >"$folder/$name.log" 2>&1 || touch "$folder/$name.failed"
}
state() {
  if [ -e "$folder/$1.failed" ]; then
    echo "FAILED $1:" >&2
    tail -n 5 "$folder/$1.log" >&2
  else
    sed -n 's/.*"state": *"\([0-9a-f]*\)".*/\1/p' "$folder/$1.json"
  fi
}
same() {  # same WORDS NAME NAME: both runs have the same bits
  local a b
  a="$(state "$2")" b="$(state "$3")"
  [ -n "$a" ] && [ "$a" = "$b" ] && echo "ok      $1, $a" || { echo "FAILED  $1: state '$a' of $2, '$b' of $3"; bad=1; }
}

# Batch norm with add; dropout and linear layers; concatenation. In the order in which they tell something
# new.
kinds=("resnet20 bf16" "densenet121 float32" "vgg16 bf16" "resnet20 float32" "vgg16 float32" "densenet121 bf16")
network_of() { network=(--model "${1% *}" --precision "${1#* }" --batch 64 --microbatches 8 --steps 4); }
for kind in "${kinds[@]}"; do
  model="${kind/ /-}"
  network_of "$kind"
  run "$model-1" "${network[@]}" --local 1 --method uniform &
  run "$model-again" "${network[@]}" --local 1 --method uniform &
  ANTICHAIN_CUDA_GRAPHS=0 run "$model-plain" "${network[@]}" --local 1 --method uniform &
  for ranks in 2 4; do run "$model-$ranks" "${network[@]}" --local "$ranks" --method uniform & done
  run "$model-replicas" "${network[@]}" --local 2 --method data-parallel &
  run "$model-2x2" "${network[@]}" --local 4 --replicas 2,2 &
  wait
  for ranks in 2 4; do same "$model: $ranks threads as one" "$model-1" "$model-$ranks"; done
  same "$model: the same bits again" "$model-1" "$model-again"
  same "$model: recorded as launched one by one" "$model-1" "$model-plain"
  grep -h "can't be recorded" "$folder/$model-1.log" && { echo "FAILED  $model: a step can't be recorded"; bad=1; }
  same "$model: two stages of two replicas as one stage of two" "$model-replicas" "$model-2x2"
done

# Of ten classes 10 % are right by chance.
steps="${STEPS:-400}"
for device in cuda cuda:tf32 "cuda --precision bf16"; do
  # shellcheck disable=SC2086
  timeout -k 5 "${EACH:-90}" "$program" train --device $device --model resnet20 --batch 128 --microbatches 1 --steps "$steps" "${data[@]}" \
    --metrics "$folder/learning" >"$folder/log" 2>&1 || { echo "FAILED  learning on $device:"; tail -n 5 "$folder/log"; bad=1; continue; }
  accuracy="$(sed -n 's/.*"accuracy": *\([0-9.]*\).*/\1/p' "$folder/learning" | tail -n 20 | awk '{s += $1} END {print s / NR}')"
  echo "$device: training accuracy $accuracy over the last 20 of $steps steps; $(grep -h "Step time" "$folder/log" || true)"
  awk -v a="$accuracy" 'BEGIN { exit !(a > 0.3) }' || { echo "FAILED  $device learns nothing"; bad=1; }
done

[ -n "$mpirun" ] || exit $bad
for kind in "${kinds[@]}"; do
  model="${kind/ /-}"
  network_of "$kind"
  for way in auto mpi; do  # auto: within the GPU where the system lets processes do that
    run "$model-$way" "$mpirun" -n 2 --oversubscribe --bind-to none -- "${network[@]}" --method uniform --transport $way &
  done
  wait
  for way in auto mpi; do
    same "$model: 2 processes as one; $(grep -m 1 '^tensors ' "$folder/$model-$way.log" || true)" "$model-1" "$model-$way"
  done
done
exit $bad

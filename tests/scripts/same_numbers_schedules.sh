#!/bin/bash
# Makes the table of promise 1 for schedules: every model, in both precisions, under every schedule, on 1 to 4
# ranks, processes (mpi) and threads (local). Each row has the hash of weights and statistics after 3 steps of
# 24 images in 12 micro-batches; it must be that of one rank.
#
#   tests/scripts/same_numbers_schedules.sh build/antichain table.csv              all models: some hours
#   tests/scripts/same_numbers_schedules.sh build/antichain table.csv resnet20     some of them
#   OPTIONS='--optimiser adamw --clip-norm 1 --ema 0.9' tests/scripts/…       with other options of train
#
# Rows that the table has already are not run again, so that it can be made in several goes. One profile per
# model and precision serves all its plans.
set -uo pipefail
program=$1 table=$2
shift 2
models=("$@")
read -ra options <<<"${OPTIONS:-}"
[ $# -gt 0 ] || models=(resnet20 squeezenet1_0 mobilenet_v2 mobilenet_v3_large efficientnet_b0 alexnet resnet18
                        vgg16 densenet121 resnet50 inception_v3 resnext50 convnext_tiny resnet101 resnext101)
mapfile -t schedules < <("$(dirname "$0")/schedules.py" "$program")
[ ${#schedules[@]} -gt 0 ] || { echo "FAILED: $program info names no schedules" >&2; exit 1; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ -s "$table" ] || echo "model,precision,launch,ranks,schedule,state" >"$table"
bad=0

# state OPTION… : of a run of the model
state() {
  timeout 900 "$@" --model "$model" --precision "$precision" --batch 24 --microbatches 12 --dataset synthetic \
    --steps 3 --lr 0.01 --lr-schedule constant --warmup-steps 0 --profile "$folder/profile.json" \
    --metrics "$folder/metrics.json" "${options[@]}" >"$folder/out" 2>&1 || return
  sed -nE 's/.*"state":"([0-9a-f]+)".*/\1/p' "$folder/metrics.json"
}

# row LAUNCH RANKS SCHEDULE COMMAND… : adds one, unless it is there
row() {
  local key="$model,$precision,$1,$2,$3" found
  shift 3
  grep -q "^$key," "$table" && return
  found=$(state "$@")
  if [ -z "$found" ]; then
    bad=1
    echo "FAILED: $key: $(tail -n 3 "$folder/out")"
  else
    echo "$key,$found" >>"$table"
  fi
}

for model in "${models[@]}"; do
  for precision in float32 bf16; do
    "$program" profile --local 1 --model "$model" --precision "$precision" --batch 24 --microbatches 12 \
      --json "$folder/profile.json" >"$folder/out" 2>&1 ||
      { echo "FAILED: $model, profile: $(tail -n 3 "$folder/out")"; bad=1; continue; }
    row local 1 - "$program" train --local 1
    for ranks in 1 2 3 4; do
      for schedule in "${schedules[@]}"; do
        row local $ranks $schedule "$program" train --local $ranks --schedule $schedule
        row mpi $ranks $schedule "${MPIRUN:-mpirun}" -n $ranks "$program" train --schedule $schedule
      done
    done
    rows=$(grep -c "^$model,$precision," "$table")
    states=$(grep "^$model,$precision," "$table" | cut -d, -f6 | sort -u)
    if [ "$(wc -l <<<"$states")" = 1 ]; then
      echo "$model, $precision: $rows runs equal, state $states"
    else
      bad=1
      echo "FAILED: $model, $precision: several states: ${states//$'\n'/ }"
    fi
  done
done
exit $bad

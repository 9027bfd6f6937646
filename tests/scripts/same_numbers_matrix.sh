#!/bin/bash
# Tests promise 1 as a matrix: every model, on 1, 2 and 4 stages, cut by every method, trains to the same
# bits. Ranks are threads of one process; ResNet-20 runs as processes as well.
#
#   tests/scripts/same_numbers_matrix.sh build/antichain                all models
#   tests/scripts/same_numbers_matrix.sh build/antichain resnet50       some of them
#
# One profile per model serves all its plans. A run makes two steps of 8 images in 4 micro-batches. Every loss
# and the final weights and statistics depend on everything that a step does. The script prints a line per
# model: how many runs were equal, and which methods have no plan (PipeDream's may refuse a network, hand-made
# cuts may not exist for so many stages).
set -uo pipefail
program=$1
shift
models=("$@")
[ $# -gt 0 ] || models=(alexnet convnext_tiny densenet121 efficientnet_b0 inception_v3 mobilenet_v2
                        mobilenet_v3_large resnet18 resnet20 resnet50 resnet101 resnext50 resnext101 squeezenet1_0
                        vgg16)
methods=(antichain pipedream block handsplit hashrate cudasize uniform)
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
form=(--batch 8 --microbatches 4)
bad=0

# What must agree: loss and accuracy of each step with all their digits, and the hash of weights and
# statistics.
numbers() { sed -nE 's/.*"step":([0-9]+).*"loss":([^,]+),"accuracy":([^,]+).*/\1 \2 \3/p; s/.*"state":"([0-9a-f]+)".*/\1/p' "$1"; }

# train NAME LAUNCH… : $folder/NAME.json
train() {
  local name=$1
  shift
  "$@" --model "$model" "${form[@]}" --dataset synthetic --steps 2 --profile "$folder/profile.json" \
    --metrics "$folder/$name.json" >"$folder/out" 2>&1 && return
  echo "FAILED: $model, $name: $(tail -n 3 "$folder/out")"
  bad=1
  return 1
}

# compare NAME LAUNCH… : against $folder/alone.json
compare() {
  train "$@" || return
  if ! diff <(numbers "$folder/alone.json") <(numbers "$folder/$1.json") >"$folder/diff"; then
    echo "FAILED: $model, $1 differs from one stage:"
    cat "$folder/diff"
    bad=1
    return
  fi
  equal=$((equal + 1))
}

# A method that has no plan says so with code 2 or 3; anything else is a failure.
plan() {
  "$program" plan --profile "$folder/profile.json" --microbatches 4 --stages "$2" --method "$1" \
    --json "$folder/plan.json" >"$folder/out" 2>&1
  case $? in
    0) return 0 ;;
    2 | 3) refused+=("$1 on $2") ;;
    *) echo "FAILED: $model, plan by $1 on $2: $(tail -n 3 "$folder/out")"; bad=1 ;;
  esac
  return 1
}

for model in "${models[@]}"; do
  equal=0 refused=()
  "$program" profile --local 1 --model "$model" "${form[@]}" --json "$folder/profile.json" >"$folder/out" 2>&1 ||
    { echo "FAILED: $model, profile: $(tail -n 3 "$folder/out")"; bad=1; continue; }
  train alone "$program" train --local 1 || continue
  [ "$(numbers "$folder/alone.json" | wc -l)" = 3 ] || { echo "FAILED: $model: not 2 losses and a state"; bad=1; continue; }
  for stages in 1 2 4; do
    for method in "${methods[@]}"; do
      plan "$method" "$stages" || continue
      compare "$method-$stages" "$program" train --local "$stages" --plan "$folder/plan.json"
      [ "$model" = resnet20 ] && [ "$stages" != 1 ] &&
        compare "mpi-$method-$stages" "${MPIRUN:-mpirun}" -n "$stages" "$program" train --plan "$folder/plan.json"
    done
  done
  without=""
  [ ${#refused[@]} -gt 0 ] && without=", no plan: $(printf '%s; ' "${refused[@]}")"
  echo "$model: $equal runs equal, state $(numbers "$folder/alone.json" | tail -n 1)${without%; }"
done
exit $bad

#!/bin/bash
# Trains each model for a few steps as 1, 2, 3 and 4 ranks, and compares every loss and the final weights bit
# by bit. Processes run both schedules, and threads run 1f1b. Each run profiles and plans for itself. It does
# the same with two replicas of every stage: there the bits differ from one rank's, but they are the same
# whatever the cut, the schedule and the transport.
#
#   tests/scripts/same_numbers.sh build/antichain                 all four models
#   tests/scripts/same_numbers.sh build/antichain resnet20        some of them
#
# SCHEDULES are those of processes (1f1b gpipe), and OPTIONS are further ones of all runs. Networks of tokens
# read generated text.
set -uo pipefail
program=$1
shift
models=("$@")
[ $# -gt 0 ] || models=(resnet20 resnet18 squeezenet vgg16)
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export OMPI_MCA_rmaps_base_oversubscribe=1
bad=0

# What must agree: loss and accuracy of each step with all their digits, and the hash of weights and
# statistics.
numbers() { sed -nE 's/.*"step":([0-9]+).*"loss":([^,]+),"accuracy":([^,]+).*/\1 \2 \3/p; s/.*"state":"([0-9a-f]+)".*/\1/p' "$1"; }

seq 9000 >"$folder/text"
"$program" data tokens --text "$folder/text" --out "$folder/text.h5" >/dev/null || exit 1
data_of() {
  case $1 in
    gpt*|llama) echo --dataset "hdf5:$folder/text.h5" --sequence 16 --dropout 0.1 ;;
    *) echo --dataset synthetic ;;
  esac
}

# train MODEL NAME LAUNCH… : $folder/NAME.json
train() {
  local model=$1 name=$2
  shift 2
  # shellcheck disable=SC2046,SC2086  # lists of words
  "$@" --model "$model" $(data_of "$model") --batch 16 --microbatches 4 --steps 5 ${OPTIONS:-} \
    --metrics "$folder/$name.json" >"$folder/out" 2>&1 && return
  echo "FAILED: $model, $name: $(tail -n 5 "$folder/out")"
  return 1
}

# compare MODEL NAME LAUNCH… : against $folder/$reference.json
compare() {
  train "$@" || { bad=1; return; }
  if diff <(numbers "$folder/$reference.json") <(numbers "$folder/$2.json") >"$folder/diff"; then
    echo "$1, $2: same"
  else
    bad=1
    echo "FAILED: $1, $2 differs from $reference:"; cat "$folder/diff"
  fi
}

for model in "${models[@]}"; do
  reference=alone
  train "$model" alone "$program" train --local 1 || exit 1
  [ "$(numbers "$folder/alone.json" | wc -l)" = 6 ] || { echo "FAILED: not 5 losses and a state"; exit 1; }
  echo "$model, one rank: state $(numbers "$folder/alone.json" | tail -n 1)"
  for ranks in 2 3 4; do
    for schedule in ${SCHEDULES:-1f1b gpipe}; do
      compare "$model" "mpi-$ranks-$schedule" "${MPIRUN:-mpirun}" -n $ranks "$program" train --schedule $schedule
    done
    compare "$model" "local-$ranks" "$program" train --local $ranks
  done
  ANTICHAIN_SYNCHRONOUS_SENDS=1 compare "$model" mpi-3-synchronous "${MPIRUN:-mpirun}" -n 3 "$program" train
  reference=two-replicas
  train "$model" $reference "$program" train --local 2 --method data-parallel || exit 1
  compare "$model" mpi-2-replicas "${MPIRUN:-mpirun}" -n 2 "$program" train --replicas 2
  compare "$model" mpi-2x2-replicas "${MPIRUN:-mpirun}" -n 4 "$program" train --replicas 2,2 --schedule gpipe
  compare "$model" mpi-2x2-sharded "${MPIRUN:-mpirun}" -n 4 "$program" train --replicas 2,2 --shard-optimiser on
  ANTICHAIN_SYNCHRONOUS_SENDS=1 compare "$model" mpi-2x2-synchronous "${MPIRUN:-mpirun}" -n 4 "$program" train --replicas 2,2
done
exit $bad

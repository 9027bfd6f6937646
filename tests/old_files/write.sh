#!/bin/bash
# Writes the files that are kept: profile, plan, schedule, weights, metrics and a checkpoint after 2 of 4
# steps.
#
#   tests/old_files/write.sh TINY FOLDER
set -euo pipefail
tiny=$(realpath "$1")
mkdir -p "$2"
cd "$2"
network="--model tiny --batch 16 --microbatches 4"
# shellcheck disable=SC2086
{
  "$tiny" profile $network --local 2 --json profile.json
  "$tiny" plan --profile profile.json --stages 2 --microbatches 4 --json plan.json
  "$tiny" simulate --profile profile.json --plan plan.json --microbatches 4 --write-schedule schedule
  run="train $network --dataset synthetic --local 2 --profile profile.json --plan plan.json"
  "$tiny" $run --steps 4 --metrics metrics.jsonl --results results --checkpoint checkpoint --checkpoint-every 2
}
mv results/weights.h5 .
rm -r results

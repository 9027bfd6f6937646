#!/bin/bash
# Tells what the rule for engines costs: it times every engine of each convolution beside the rule's, in bf16
# and once in float32.
#
#   tests/gpu/tune.sh PROGRAM
set -uo pipefail
program="$1" code=0
for run in "resnet18 bf16 128" "resnet50 bf16 128" "resnet18 float32 32"; do
  read -r model precision samples <<<"$run"
  echo "== $run"
  "$program" profile --tune --device cuda --local 1 --model "$model" --precision "$precision" --batch "$samples" --microbatches 1 \
    --seconds 0.5 --profile-cache none || { echo "FAILED  --tune of $run"; code=1; }
done
exit $code

#!/bin/bash
# Runs 1, 2, 3 and 4 ranks that share this machine's GPU, as processes and as threads. Tensors are copied
# within it, then through host memory, and every loss and the final weights are those of one rank, bit by bit.
# Those of two replicas a stage are the same whatever the cut. Processes that the system keeps from each
# other's device memory say so, and go through host memory both times.
#
#   tests/scripts/same_numbers_on_gpu.sh build/antichain [MODEL…]
#
# Without a device it says so and exits with 77, which CTest counts as skipped.
set -uo pipefail
program=$1
if ! said=$("$program" train --device cuda --dataset synthetic --batch 2 --microbatches 1 --steps 1 2>&1); then
  case $said in
    *"there is no device 'cuda'"*) echo "skipped: needs a CUDA device"; exit 77 ;;
  esac
  echo "FAILED: one step on the GPU: $said"
  exit 1
fi
code=0
for way in auto mpi; do
  echo "== --transport $way"
  TRAIN_OPTIONS="--device cuda --transport $way" "$(dirname "$0")/same_numbers.sh" "$@" || code=$?
done
exit $code

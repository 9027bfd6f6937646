#!/bin/bash
# Runs 1, 2, 3 and 4 ranks on this machine's GPUs, as processes and as threads. Tensors go through host
# memory, or by NCCL where each process has a GPU. Every loss and the final weights are those of one rank, bit
# by bit, and those of two replicas a stage are the same whatever the cut.
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
TRAIN_OPTIONS="--device cuda" exec "$(dirname "$0")/same_numbers.sh" "$@"

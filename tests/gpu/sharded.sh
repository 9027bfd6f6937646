#!/bin/bash
# Runs tests in several processes at a time, each with a log of its own beside LOGS. The first error that
# breaks the device takes only one process with it, and the test that began and did not end is the one that
# crashed. The cores are shared out among the processes' references.
#
#   LOGS=results/operators SHARDS=8 tests/gpu/sharded.sh TEST_PROGRAM FILTER
set -uo pipefail
tests="$1" filter="$2" shards="${SHARDS:-8}" code=0 jobs=() cores="$(nproc)"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$((cores > shards ? cores / shards : 1))}"
for shard in $(seq 0 $((shards - 1))); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard "$tests" --gtest_filter="$filter" >"$LOGS.$shard.log" 2>&1 &
  jobs+=($!)
done
for job in "${jobs[@]}"; do wait "$job" || code=$?; done
tail -n 2 "$LOGS".*.log
exit $code

#!/bin/bash
# compute-sanitizer over some operators: all accesses of all kernels; then the shared memory and the barriers of our own kernels,
# which loops of the host know nothing of. Exit code 77 without it.
#
#   tests/gpu/sanitizer.sh TEST_GPU [COMPUTE_SANITIZER]
set -uo pipefail
tests="$1" sanitizer="${2:-$(command -v compute-sanitizer)}" code=0
[ -n "$sanitizer" ] || { echo "skipped: there is no compute-sanitizer"; exit 77; }
run() {  # run TOOL FILTER OPTION…
  local tool="$1" filter="$2"; shift 2
  if "$sanitizer" --tool "$tool" --error-exitcode 9 --target-processes all "$@" "$tests" --gtest_brief=1 --gtest_filter="$filter"; then
    echo "ok      $tool"
  else
    echo "FAILED  $tool"; code=1
  fi
}
run memcheck '*cuda_*conv_3x3_wide:*cuda_*batch_norm_*odd:*cuda_*max_pool_3*:*cuda_*linear*:*cuda_*loss*:*cuda_*dropout*' --leak-check no
ours='*Operator*cuda_*batch_norm*:*Operator*cuda_*relu*:*Operator*cuda_*bias*:*Operator*cuda_*loss*'
for tool in racecheck synccheck; do
  ANTICHAIN_CUDA_LOOPS=all run $tool "$ours"
done
exit $code

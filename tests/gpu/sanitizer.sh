#!/bin/bash
# Runs compute-sanitizer over some operators. It checks all accesses of all kernels; then the shared memory
# and the barriers of our own kernels, which loops of the host know nothing of. The exit code is 77 without
# it, and 124 where one of its tools was stopped before its end and none found anything.
#
#   tests/gpu/sanitizer.sh TEST_GPU [COMPUTE_SANITIZER]         MOST: seconds for all of it
set -uo pipefail
tests="$1" sanitizer="${2:-$(command -v compute-sanitizer)}" code=0
[ -n "$sanitizer" ] || { echo "skipped: there is no compute-sanitizer"; exit 77; }
share=$((${MOST:-300} / 3 - 2))
run() {  # run TOOL OPERATOR… (patterns of gtest)
  local tool="$1" filter="" took=0; shift
  for operator in "$@"; do filter="$filter:*EngineMatchesReference/$operator"; done
  timeout -k 3 $share "$sanitizer" --tool "$tool" --error-exitcode 9 --target-processes all "$tests" \
    --gtest_brief=1 --gtest_filter="${filter#:}" || took=$?
  case $took in
    0) echo "ok      $tool" ;;
    124 | 137)
      echo "stopped $tool after $share s, which had found nothing until then"
      [ $code != 0 ] || code=124 ;;
    *) echo "FAILED  $tool: exit code $took"; code=1 ;;
  esac
}
batch_norm=('cuda_batch_norm*' 'cuda_bf16_batch_norm*')
run memcheck 'cuda_*batch_norm_*odd' 'cuda_*conv_relu*' 'cuda_*loss*' 'cuda_*max_pool_3*' 'cuda_*linear*' \
  'cuda_*dropout*' 'cuda_*conv_3x3_wide' 'cuda_*concat*'
for tool in racecheck synccheck; do
  ANTICHAIN_CUDA_LOOPS=all run $tool "${batch_norm[@]}" 'cuda_conv_relu*' 'cuda_bf16_conv_relu*' 'cuda_*loss*'
done
exit $code

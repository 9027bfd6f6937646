#!/bin/bash
# The whole GPU suite in one command, on a machine with a device: operators and models against double precision, the same
# bits on several ranks, learning, compute-sanitizer on a part, and speed beside PyTorch. Everything is tried, whatever fails.
#
#   tests/gpu.sh build                     a build folder with -DANTICHAIN_CUDA=ON
#   tests/gpu.sh bundle [results]          a folder made by scripts/bundle.sh build bundle build/tests/gpu/test_gpu \
#                                            build/tests/pipeline/test_gpu_transport
#   PARTS="operators models transport program profiles speed sanitizer" tests/gpu.sh …      only some
#
# CIFAR10_DIR names CIFAR-10's binary files, if they are there. Logs go to the folder `results`.
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
home="$(cd "${1:?a build folder or a bundle}" && pwd)" results="${2:-$PWD/gpu-results}"
parts=" ${PARTS:-operators models transport program profiles speed sanitizer} "
mkdir -p "$results"
export ANTICHAIN_GOLDEN="$here/golden"
if [ -x "$home/bin/antichain" ]; then
  program="$home/bin/antichain" tests="$home/bin/test_gpu" transport="$home/bin/test_gpu_transport" mpirun="$home/bin/mpirun"
else
  program="$home/antichain" tests="$home/tests/gpu/test_gpu" transport="$home/tests/pipeline/test_gpu_transport" mpirun="$(command -v mpirun || true)"
fi

# A node's CUDA and cuDNN may lie in the toolkit's folder or in Python packages, where the loader does not look.
for library in libcudart.so.13 libcublasLt.so.13 libcudnn.so.9 libnvrtc.so.13 libnccl.so.2; do
  ldconfig -p 2>/dev/null | grep -q "$library" && continue
  found="$({ ls -d "${CUDA_HOME:-/usr/local/cuda}"/lib64/$library "${CUDA_HOME:-/usr/local/cuda}"/lib/$library
    python3 -c "import glob, site; [print(f) for p in site.getsitepackages() for f in glob.glob(p + '/nvidia/*/lib/$library')]"
    find / -xdev -name "$library" -not -path '/proc/*'; } 2>/dev/null | head -n 1)"
  [ -n "$found" ] && export LD_LIBRARY_PATH="$(dirname "$found"):${LD_LIBRARY_PATH:-}" || echo "warning: there is no $library"
done

summary=()
part() {  # part NAME COMMAND…
  local name="$1"; shift
  [[ "$parts" == *" $name "* ]] || return 0
  echo "== $name"
  local start=$SECONDS code=0
  "$@" >"$results/$name.log" 2>&1 || code=$?
  grep -E "FAILED|Failure|^ok|learn|images/s|geometric|PASSED|SKIPPED|ERROR" "$results/$name.log" | tail -n 40
  summary+=("$(printf '%-10s exit code %3d, %4d s' "$name" $code $((SECONDS - start)))")
}

# The tests, in several processes at a time.
sharded() {
  local filter="$1" shards="${SHARDS:-4}" code=0 jobs=()
  for shard in $(seq 0 $((shards - 1))); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard "$tests" --gtest_brief=1 --gtest_filter="$filter" &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job" || code=$?; done
  return $code
}

nvidia-smi -L || true
"$program" info 2>&1 | tee "$results/info.log" | tail -n 5
part operators sharded '*Operator*:*SameBits*:*UpdateAtOnce*:Device.*'
part models sharded '*Agreement*:*Exactness*:*FiveSteps*'
[ -x "$transport" ] && part transport "$transport" --gtest_brief=1
part program "$here/gpu/program.sh" "$program" "$mpirun"
part profiles "$here/../scripts/gpu_profiles.sh" "$program" "$results/profiles"
part speed python3 "$here/benchmarks/gpu_models.py" "$program" --json "$results/speed.json" ${SPEED:-}
if command -v compute-sanitizer >/dev/null; then
  part sanitizer compute-sanitizer --error-exitcode 9 --leak-check no "$tests" --gtest_brief=1 \
    --gtest_filter='*cuda_*conv_3x3_wide:*cuda_*batch_norm_*odd:*cuda_*max_pool_3*:*cuda_*linear*:*cuda_*loss*:*cuda_*dropout*'
fi
echo "== summary"
printf '%s\n' "${summary[@]}" | tee "$results/summary.log"
! grep -vq "exit code   0" "$results/summary.log"

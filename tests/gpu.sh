#!/bin/bash
# Runs the GPU suite, in parts, on a machine with a device. Every part ends by itself within ten minutes. A
# part that fails does not keep the others from running, except `smoke`: where it fails, only `diagnose`
# follows.
#
#   tests/gpu.sh build                     a build folder with -DANTICHAIN_CUDA=ON
#   tests/gpu.sh bundle [results]          a folder made by scripts/bundle.sh build bundle
#                                          build/tests/gpu/test_gpu \
#                                            build/tests/pipeline/test_gpu_transport
#   PARTS="smoke operators" tests/gpu.sh …      only some
#
#   smoke      two minutes: versions, engines beside those expected, an operator of each type, 40 steps with
#              graphs and without
#   operators  all operators in float32, TF32 and bf16 against double precision
#   models     the ten models against the CPU and float64
#   transport  messages; steps: captures, looks, images; timing: what measures time, and may fail on a machine
#              that is shared
#   program    the same bits on 1, 2 and 4 ranks and under every schedule, and learning
#   speed      beside PyTorch; kernels: times beside the estimates; tune: all engines of each convolution
#   profiles   of the ten models; sanitizer: compute-sanitizer over some operators
#   diagnose   says which part is at fault (tests/gpu/diagnose.py); unless asked for, it runs where smoke,
#              operators, models, transport, steps or program fail. A part that is stopped or not begun has
#              not failed.
#
# CIFAR10_DIR names CIFAR-10's binary files, and CIFAR10_PART a part of them that scripts/gpu_bundle.sh has
# packed (a bundle's own unless said otherwise); without either learning is not checked. BEFORE names a
# figures.json of an earlier command, where the node has kept nothing of it: its figures count. Logs go to the
# folder `results` as they are written. LIMIT is the number of seconds for all, 570 unless said otherwise.
# A part that does not end in its share is stopped, and a part that has no share left is not begun. OUT=FOLDER
# has three files, which are renewed after each part: summary.log, figures.json (what was measured) and
# logs.tar.gz (all else).
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
home="$(cd "${1:?a build folder or a bundle}" && pwd)" results="${2:-$PWD/gpu-results}"
parts=" ${PARTS:-smoke operators models transport steps timing program speed kernels tune profiles sanitizer} "
mkdir -p "$results"
results="$(cd "$results" && pwd)"
[ -z "${BEFORE:-}" ] || python3 "$here/gpu/figures.py" "$results" "$BEFORE" || exit 2
[ ! -e "$home/cifar10-part.h5" ] || export CIFAR10_PART="${CIFAR10_PART:-$home/cifar10-part.h5}"
export ANTICHAIN_GOLDEN="$here/golden"
if [ -x "$home/bin/antichain" ]; then
  program="$home/bin/antichain" tests="$home/bin/test_gpu" transport="$home/bin/test_gpu_transport" mpirun="$home/bin/mpirun"
else
  program="$home/antichain" tests="$home/tests/gpu/test_gpu" transport="$home/tests/pipeline/test_gpu_transport" mpirun="$(command -v mpirun || true)"
fi
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# PyTorch comes with libraries of its own, and must not find the toolkit's before them.
export PYTORCH_LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"
. "$here/gpu/find_libraries.sh"
find_libraries
sanitizer="$(find_tool compute-sanitizer)" ncu="$(find_tool ncu)"

limit="${LIMIT:-570}" summary=() incomplete='' broken=''
reserve=0  # seconds for diagnose, once something has failed
keep() {
  printf '%s\n' "${summary[@]}" >"$results/summary.log"
  [ -n "${OUT:-}" ] || return 0
  mkdir -p "$OUT"
  cp "$results/summary.log" "$OUT/"
  python3 "$here/gpu/figures.py" "$results" >"$OUT/figures.json" || true
  tar -C "$results" -czf "$OUT/logs.tar.gz.new" . && mv "$OUT/logs.tar.gz.new" "$OUT/logs.tar.gz"
}
not_begun() {  # not_begun NAME WHY
  summary+=("$(printf '%-10s not begun: %s' "$1" "$2")") incomplete="$incomplete $1"
}
telling='^ok|^stopped|learn|not checked|images/s|geometric|PASSED|finds|WRONG|expected|versions|^  .*: '
# part SECONDS NAME COMMAND…: for so many seconds at most
part() {
  local most="$1" name="$2"; shift 2
  [[ "$parts" == *" $name "* ]] || return 0
  local start=$SECONDS left=$((limit - SECONDS - 5)) code=0 note=
  if [ "$name" != diagnose ]; then
    [[ "$broken " == *" smoke "* ]] && { not_begun "$name" "smoke failed"; return 0; }
    left=$((left - reserve))
  fi
  [ $left -ge 10 ] || { not_begun "$name" "no time left"; return 0; }
  [ $left -ge "$most" ] || most=$left
  echo "== $name, $most s at most"
  rm -f "$results/$name".*log
  LOGS="$results/$name" MOST="$most" timeout -k 5 "$most" "$@" >"$results/$name.log" 2>&1 || code=$?
  case $code in
    0) ;;
    124 | 137) note=", stopped" ;;
    77) note=", skipped: $(tail -n 1 "$results/$name.log")" ;;
    *) broken="$broken $name" reserve=$((limit / 4)) ;;
  esac
  cat "$results/$name".*log | grep -a "FAILED" | head -n 20
  cat "$results/$name".*log | grep -aE "$telling" | tail -n 60
  [ $code = 0 ] || incomplete="$incomplete $name"
  summary+=("$(printf '%-10s exit code %3d, %4d s%s' "$name" $code $((SECONDS - start)) "$note")")
  keep
}

gpus="$(nvidia-smi -L 2>&1)" && echo "$gpus" || gpus=
"$program" info >"$results/info.log" 2>&1
tail -n 5 "$results/info.log"
# Where there is a GPU that the program does not find, every test would be skipped, and nothing wrong with
# that.
if ! "$program" info --model resnet20 --device cuda >"$results/device.log" 2>&1; then
  cat "$results/device.log"
  if [ -n "$gpus" ]; then
    for library in "$home"/lib*/libantichain_*.so "$home"/libantichain_*.so; do
      [ -e "$library" ] && ldd "$library" | grep "not found" | sed "s|^|$(basename "$library") lacks|"
    done
    echo "FAILED: there is a GPU, but the program does not find it"
    exit 1
  fi
  echo "every part is skipped: it needs a CUDA device"
fi
timed='GpuStep.Stamps*:GpuStep.ATraceHas*:GpuStep.NodesHave*:GpuStep.TheProfilePredicts*'
part 150 smoke "$here/gpu/smoke.py" "$program" --tests "$tests" --plans "$here/golden/cudnn_plans/nvidia-h200-bf16.txt" \
  --json "$results/smoke.json"
part 300 operators "$here/gpu/sharded.sh" "$tests" '*BatchNormBits*:*Operator*:*SameBits*:*UpdateAtOnce*:Device.*'
part 400 models "$here/gpu/sharded.sh" "$tests" '*Agreement*:All/Exactness*:Cifar/FiveSteps*'
part 200 transport "$transport" --gtest_filter='GpuTransport.*'
part 200 steps "$transport" --gtest_filter="GpuStep.*:-$timed"
part 540 program "$here/gpu/program.sh" "$program" "$mpirun"
for one in smoke operators models transport steps program; do
  case "$broken " in *" $one "*) parts="$parts diagnose " ;; esac
done
part 300 diagnose "$here/gpu/diagnose.py" "$program" --mpirun "$mpirun" --sanitizer "$sanitizer" --tests "$tests" "$transport" \
  --logs "$results"
reserve=0
part 60 timing "$transport" --gtest_filter="$timed"
# shellcheck disable=SC2086
part 540 speed python3 "$here/benchmarks/gpu_models.py" "$program" --json "$results/speed.json" ${SPEED:-}
part 180 kernels "$here/gpu/kernels.py" "$program" --ncu "$ncu" --json "$results/kernels.json"
part 240 tune "$here/gpu/tune.sh" "$program"
part 540 profiles "$here/../scripts/gpu_profiles.sh" "$program" "$results/profiles"
part 480 sanitizer "$here/gpu/sanitizer.sh" "$tests" "$sanitizer"
echo "== summary"
keep
cat "$results/summary.log"
[ -z "$incomplete" ]

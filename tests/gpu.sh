#!/bin/bash
# The whole GPU suite in one command, on a machine with a device: operators and models against double precision, the same
# bits on several ranks, learning, compute-sanitizer on a part, and speed beside PyTorch. Everything is tried, whatever fails.
#
#   tests/gpu.sh build                     a build folder with -DANTICHAIN_CUDA=ON
#   tests/gpu.sh bundle [results]          a folder made by scripts/bundle.sh build bundle build/tests/gpu/test_gpu \
#                                            build/tests/pipeline/test_gpu_transport
#   PARTS="operators models transport steps program profiles speed sanitizer diagnose" tests/gpu.sh …      only some
#
# diagnose says which part is at fault (tests/gpu/diagnose.py); unless asked for, it runs where one of the first five failed.
# CIFAR10_DIR names CIFAR-10's binary files, if they are there. Logs go to the folder `results`, while they are written.
# LIMIT: seconds for all of it, 570 unless said otherwise; what does not end in its share is stopped, what has none left not begun.
# PACK=FILE keeps all results in one .tar.gz, renewed after each part.
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
home="$(cd "${1:?a build folder or a bundle}" && pwd)" results="${2:-$PWD/gpu-results}"
parts=" ${PARTS:-operators models transport steps program profiles speed sanitizer} "
mkdir -p "$results"
results="$(cd "$results" && pwd)"
export ANTICHAIN_GOLDEN="$here/golden"
if [ -x "$home/bin/antichain" ]; then
  program="$home/bin/antichain" tests="$home/bin/test_gpu" transport="$home/bin/test_gpu_transport" mpirun="$home/bin/mpirun"
else
  program="$home/antichain" tests="$home/tests/gpu/test_gpu" transport="$home/tests/pipeline/test_gpu_transport" mpirun="$(command -v mpirun || true)"
fi
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# A node's CUDA and cuDNN may lie in the toolkit's folder or in Python packages, where the loader does not look.
toolkit="${CUDA_HOME:-/usr/local/cuda}"
packages="$(python3 -c 'import glob, site; print("\n".join(f for p in site.getsitepackages() for f in glob.glob(p + "/nvidia/*/lib")))' 2>/dev/null)"
loader="$(ldconfig -p 2>/dev/null)"
for library in libcudart.so.13 libcublasLt.so.13 libcudnn.so.9 libnvrtc.so.13 libnccl.so.2; do
  [[ "$loader" == *"$library "* ]] && continue
  found=
  for folder in "$toolkit/lib64" "$toolkit/lib" $packages; do
    [ -e "$folder/$library" ] && { found="$folder"; break; }
  done
  [ -n "$found" ] || found="$(find / -xdev -name "$library" -not -path '/proc/*' -printf '%h\n' 2>/dev/null | head -n 1)"
  [ -n "$found" ] || { echo "warning: there is no $library"; continue; }
  [[ ":${LD_LIBRARY_PATH:-}:" == *":$found:"* ]] || export LD_LIBRARY_PATH="$found:${LD_LIBRARY_PATH:-}"
  echo "$library is in $found"
done
sanitizer="$(command -v compute-sanitizer || find "$toolkit/" -name compute-sanitizer -type f 2>/dev/null | head -n 1)"

limit="${LIMIT:-570}" summary=() failed=
reserve=$((limit / 4))  # seconds for diagnose
keep() {
  printf '%s\n' "${summary[@]}" >"$results/summary.log"
  [ -z "${PACK:-}" ] || { tar -C "$results" -czf "$PACK.new" . && mv "$PACK.new" "$PACK"; }
}
# part SECONDS NAME COMMAND…: for so many seconds at most
part() {
  local most="$1" name="$2"; shift 2
  [[ "$parts" == *" $name "* ]] || return 0
  local start=$SECONDS left=$((limit - reserve - SECONDS - 5)) code=0 note=
  if [ $left -lt 10 ]; then
    summary+=("$(printf '%-10s not begun: no time left' "$name")") failed="$failed $name"
    return 0
  fi
  [ $left -ge "$most" ] || most=$left
  echo "== $name, $most s at most"
  rm -f "$results/$name".*log
  LOGS="$results/$name" MOST="$most" timeout -k 5 "$most" "$@" >"$results/$name.log" 2>&1 || code=$?
  case $code in
    124 | 137) note=", stopped" ;;
    77) note=", skipped: $(tail -n 1 "$results/$name.log")" ;;
  esac
  cat "$results/$name".*log | grep -a "FAILED" | head -n 20
  cat "$results/$name".*log | grep -aE "^ok|learn|images/s|geometric|PASSED|finds|WRONG|^  .*: " | tail -n 40
  [ $code = 0 ] || failed="$failed $name"
  summary+=("$(printf '%-10s exit code %3d, %4d s%s' "$name" $code $((SECONDS - start)) "$note")")
  keep
}

gpus="$(nvidia-smi -L 2>&1)" && echo "$gpus" || gpus=
"$program" info >"$results/info.log" 2>&1
tail -n 5 "$results/info.log"
# Where there is a GPU that the program does not find, every test would be skipped, and nothing wrong with that.
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
part 300 operators "$here/gpu/sharded.sh" "$tests" '*Operator*:*SameBits*:*UpdateAtOnce*:Device.*'
part 400 models "$here/gpu/sharded.sh" "$tests" '*Agreement*:*Exactness*:*FiveSteps*'
part 200 transport "$transport" --gtest_filter='GpuTransport.*'
part 200 steps "$transport" --gtest_filter='GpuStep.*'
part 420 program "$here/gpu/program.sh" "$program" "$mpirun"
case "$failed " in
  *" operators "* | *" models "* | *" transport "* | *" steps "* | *" program "*) parts="$parts diagnose " ;;
esac
reserve=0
part 300 diagnose "$here/gpu/diagnose.py" "$program" --mpirun "$mpirun" --sanitizer "$sanitizer" --tests "$tests" "$transport" \
  --logs "$results"
part 500 profiles "$here/../scripts/gpu_profiles.sh" "$program" "$results/profiles"
part 500 speed python3 "$here/benchmarks/gpu_models.py" "$program" --json "$results/speed.json" ${SPEED:-}
part 300 sanitizer "$here/gpu/sanitizer.sh" "$tests" "$sanitizer"
echo "== summary"
keep
cat "$results/summary.log"
[ -z "$failed" ]

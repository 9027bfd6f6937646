#!/bin/bash
# Tests tests/gpu.sh on a bundle of stubs, with no device: it goes on where a part fails, stops behind a smoke
# that fails, keeps to its time, starts the diagnosis where it should and nowhere else, and packs what there
# is.
#
#   tests/gpu/suite_test.sh
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
folder="$(mktemp -d)" bad=0
trap 'rm -rf "$folder"' EXIT

fail() { echo "FAILED: $1"; cat "$folder/said"; bad=1; }
expect() { grep -qF -- "$1" "${2:-$folder/said}" || fail "no '$1'"; }
refuse() { ! grep -qF -- "$1" "$folder/said" || fail "there is '$1'"; }
# suite CODE [NAME=VALUE…]
suite() {
  local right="$1" code=0; shift
  rm -rf "$folder/results" "$folder/out"
  env OUT="$folder/out" SHARDS=2 "$@" "$here/../gpu.sh" "$folder/bundle" "$folder/results" >"$folder/said" 2>&1 || code=$?
  [ $code = "$right" ] || fail "exit code $code of $*"
}

mkdir -p "$folder/bundle/bin"
cp "$here/stub_program.py" "$folder/bundle/bin/antichain"
cp "$here/stub_mpirun.sh" "$folder/bundle/bin/mpirun"
cat >"$folder/bundle/bin/test_gpu" <<'STUB'
#!/bin/bash
echo "is asked for: $*"
case "$*" in
  *EngineMatchesReference*) [ -z "${STUB_SMOKE:-}" ] && exit 0; echo "[  FAILED  ] All/Operator.Of/one (1 ms)"; exit 1 ;;
  *Of/one*) [ "${ANTICHAIN_CUDA_LOOPS:-}" = all ] && exit 0; printf 'x.cpp:7: Failure\nExpected equality\n[  FAILED  ] All/Operator.Of/one (1 ms)\n'; exit 1 ;;
  *Agreement*) sleep 60 ;;
  *) echo "[ RUN      ] All/Operator.Of/one"; echo "[  FAILED  ] All/Operator.Of/one, where GetParam() = one (1 ms)"; exit 1 ;;
esac
STUB
cat >"$folder/bundle/bin/test_gpu_transport" <<'STUB'
#!/bin/bash
case "$*" in
  *=GpuStep.Stamps*) echo "[  FAILED  ] GpuStep.StampsAreTheDevicesTimes (1 ms)"; exit 1 ;;
  *GpuTransport*) exit 0 ;;
  *) echo "[ RUN      ] GpuStep.Crashes"; kill -SEGV $$ ;;
esac
STUB
chmod +x "$folder/bundle/bin/"*

# What fails is diagnosed, and everything is in three files.
suite 1 STUB_FAULT=cudnn PARTS="operators steps"
for text in "operators  exit code   1" "steps      exit code 139" "diagnose   exit code   1" "right without cuDNN" \
  "All/Operator.Of/one: right with own loops"; do
  expect "$text"
done
expect "GpuStep.Crashes" "$folder/results/diagnose.log"
expect "*BatchNormBits*" "$folder/results/operators.0.log"
tar -tzf "$folder/out/logs.tar.gz" >"$folder/packed" || bad=1
for file in ./summary.log ./operators.0.log ./operators.1.log ./diagnose.log; do expect "$file" "$folder/packed"; done
[ "$(ls "$folder/out" | tr '\n' ' ')" = "figures.json logs.tar.gz summary.log " ] || fail "other files: $(ls "$folder/out")"

# What is stopped, not begun, or wrong in its times alone is not.
suite 1 LIMIT=20 PARTS="models steps"
expect "models     exit code 124"
expect "steps      not begun: no time left"
refuse "diagnose"
suite 1 PARTS="transport timing"
expect "transport  exit code   0"
expect "timing     exit code   1"
refuse "diagnose"

# Smoke tells the engines and the figures; where it fails, nothing but the diagnosis follows.
suite 0 PARTS="smoke transport"
expect "0 of 0 engines as expected for an H200"
expect "transport  exit code   0"
expect '"kernel by kernel": 100' "$folder/out/figures.json"
suite 1 STUB_SMOKE=fails PARTS="smoke transport speed"
expect "smoke      exit code   1"
expect "transport  not begun: smoke failed"
expect "speed      not begun: smoke failed"
expect "diagnose   exit code"
: >"$folder/no_plans"
alone() {  # alone CODE [NAME=VALUE…] SCRIPT ARGUMENT…: one script of the suite
  local right="$1" code=0; shift
  env "$@" >"$folder/said" 2>&1 || code=$?
  [ $code = "$right" ] || fail "exit code $code of $*"
}
smoke=("$here/smoke.py" "$folder/bundle/bin/antichain" --tests "$folder/bundle/bin/test_gpu"
  --plans "$folder/no_plans")
alone 1 STUB_FAULT=unrecorded "${smoke[@]}"
expect "FAILED  resnet18: antichain: work on the device can't be recorded"

# The program part compares runs that go at the same time: threads, every schedule, and processes. It says
# what was not checked.
suite 0 PARTS=program STEPS=3 NETWORKS=densenet121-float32
expect "ok      densenet121-float32: 4 threads as one"
expect "ok      densenet121-float32: 4 threads by zb-v as one"
refuse "by forward-only"
for ranks in 2 4; do expect "ok      densenet121-float32: $ranks processes as one"; done
expect "learning was not checked"
alone 1 STUB_FAULT=parts CIFAR10_DIR=here NETWORKS=resnet20-bf16 "$here/program.sh" \
  "$folder/bundle/bin/antichain" "$folder/bundle/bin/mpirun"
expect "FAILED  resnet20-bf16: 4 threads by zb-v as one"
expect "ok      resnet20-bf16: 4 processes as one"
expect "FAILED  learning on cuda: test accuracy is '0.7', less than 0.75"
expect "ok      learning on cuda:tf32: test accuracy 0.76, at least 0.75"

alone 0 CIFAR10_PART=here NETWORKS=resnet20-bf16 "$here/program.sh" "$folder/bundle/bin/antichain"
expect "ok      learning on cuda: test accuracy 0.76, at least 0.70"

# TF32 is a precision of its own among the profiles, in a folder of its own.
alone 0 MODELS=resnet18 MICROBATCHES=32 DEVICE=cuda:tf32 "$here/../../scripts/gpu_profiles.sh" \
  "$folder/bundle/bin/antichain" "$folder/profiles"
for precision in float32 tf32 bf16; do
  device=cuda
  [ $precision != tf32 ] || device=cuda:tf32
  expect "\"$device\"" "$folder/profiles/nvidia-h200/$precision-32/resnet18.json"
done

# The means of the speeds: over PyTorch eager, and over the faster of its compiled forms.
cat >"$folder/means.py" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from gpu_models import SIDES, means, rows_of
print("\n".join(means([{"bf16": 300, "pytorch-bf16": 100, "pytorch-graphs": 150, "pytorch-autotuned": 50},
                       {"bf16": 300, "pytorch-bf16": 25, "pytorch-autotuned": 600}, {"pytorch-bf16": 1}])))
assert not any(" " in side for side in SIDES)
rows = rows_of({("a", 1): {"bf16": 1, "tf32": 2}, ("b", 1): {"bf16": 3}}, {("a", 1): {"bf16": [4, 5, 9]}})
assert [row["images_per_s"] for row in rows] == [{"bf16": 5, "tf32": 2}, {"bf16": 3}]
PYTHON
alone 0 python3 "$folder/means.py" "$here/../benchmarks"
expect "ours in bf16 over PyTorch eager: geometric mean 6.00 of 2, lowest 3.00"
expect "ours in bf16 over PyTorch compiled: geometric mean 1.00 of 2, lowest 0.50"

# A node may keep nothing between two commands: what the first has measured is given back to the second.
echo '[{"model": "vgg16", "batch": 128, "images_per_s": {"bf16": 300, "pytorch-bf16": 100}}]' >"$folder/measured"
mkdir -p "$folder/results"
mv "$folder/measured" "$folder/results/speed.json"
alone 0 python3 "$here/figures.py" "$folder/results"
mv "$folder/said" "$folder/before.json"
suite 0 BEFORE="$folder/before.json" PARTS=speed SPEED="--models resnet18 --batches 128 --sides bf16"
expect "ours in bf16 over PyTorch eager: geometric mean 3.00 of 1"
expect '"vgg16"' "$folder/out/figures.json"

# Without a device's tools, only what they say.
cat >"$folder/sanitizer" <<'STUB'
#!/bin/bash
[ "$2" = racecheck ] && exec sleep 30
[ "$2" != "${STUB_FINDS:-}" ] || exit 9
STUB
chmod +x "$folder/sanitizer"
alone 124 MOST=15 "$here/sanitizer.sh" "$folder/bundle/bin/test_gpu" "$folder/sanitizer"
expect "ok      memcheck"
expect "stopped racecheck after 3 s"
refuse "ok      racecheck"
alone 1 MOST=15 STUB_FINDS=synccheck "$here/sanitizer.sh" "$folder/bundle/bin/test_gpu" "$folder/sanitizer"
expect "FAILED  synccheck: exit code 9"

# A machine with a GPU that the program does not find is no machine without one.
printf '#!/bin/bash\necho "GPU 0: NVIDIA H200"\n' >"$folder/nvidia-smi"
chmod +x "$folder/nvidia-smi"
suite 1 PATH="$folder:$PATH" STUB_NO_DEVICE=1
expect "there is a GPU, but the program does not find it"
exit $bad

#!/bin/bash
# tests/gpu/diagnose.py names the part that is at fault, and tests/gpu.sh goes on, keeps to its time and packs what there is: with
# programs in which a known part is broken, and no device.
#
#   tests/gpu/diagnose_test.sh
set -uo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
folder="$(mktemp -d)" bad=0
trap 'rm -rf "$folder"' EXIT

expect() {  # expect NAME TEXT FILE
  grep -qF -- "$2" "$3" && return
  echo "FAILED: $1: no '$2' in:"; cat "$3"; bad=1
}
# diagnosis FAULT CODE TEXT…
diagnosis() {
  local fault="$1" right="$2" code=0; shift 2
  STUB_FAULT="$fault" "$here/diagnose.py" "$here/stub_program.py" --mpirun "$here/stub_mpirun.sh" --sanitizer "$here/stub_sanitizer.sh" --networks resnet20:float32 \
    >"$folder/said" 2>&1 || code=$?
  [ $code = "$right" ] || { echo "FAILED: $fault: exit code $code"; cat "$folder/said"; bad=1; }
  for text in "$@"; do expect "$fault" "$text" "$folder/said"; done
}
diagnosis "" 0 "resnet20 float32: right"
diagnosis graphs 1 "resnet20 float32: right without graphs: look at recorded steps"
diagnosis crash 1 "right without graphs" "illegal memory access"
diagnosis images 1 "right images by the host: look at images made on the device"
diagnosis cudnn 1 "right without cuDNN: look at cuDNN" "as it is, backward is right down to the node behind layer1.weight"
diagnosis cublas 1 "right without cuBLASLt: look at cuBLASLt"
diagnosis streams 1 "right one kernel at a time: look at something that does not wait"
diagnosis kernels 1 "wrong with every part left out: our own kernels or memory" \
  "compute-sanitizer memcheck finds: Invalid __global__ read" "compute-sanitizer racecheck: exit code 0"
diagnosis twice 1 "not the same again: something differs from run to run"
diagnosis ipc 1 "wrong as 2 processes, right through host memory: look at copies from GPU to GPU by CUDA IPC"
diagnosis peers 1 "wrong as 2 threads, right through host memory: look at copies from GPU to GPU"
diagnosis staged 1 "wrong as 2 threads, host memory: look at copies to and from host memory"
diagnosis pipeline 1 "wrong as 2 threads, through host memory as well: look at the pipeline's device side"

# A bundle whose tests fail, hang, or crash.
mkdir -p "$folder/bundle/bin"
cp "$here/stub_program.py" "$folder/bundle/bin/antichain"
cp "$here/stub_mpirun.sh" "$folder/bundle/bin/mpirun"
cat >"$folder/bundle/bin/test_gpu" <<'STUB'
#!/bin/bash
case "$*" in
  *Of/one*) [ "${ANTICHAIN_CUDA_LOOPS:-}" = all ] && exit 0; printf 'x.cpp:7: Failure\nExpected equality\n[  FAILED  ] All/Operator.Of/one (1 ms)\n'; exit 1 ;;
  *Agreement*) sleep 60 ;;
  *) echo "[ RUN      ] All/Operator.Of/one"; echo "[  FAILED  ] All/Operator.Of/one, where GetParam() = one (1 ms)"; exit 1 ;;
esac
STUB
printf '#!/bin/bash\necho "[ RUN      ] GpuStep.Crashes"\nkill -SEGV $$\n' >"$folder/bundle/bin/test_gpu_transport"
chmod +x "$folder/bundle/bin/"*
suite() { PACK="$folder/all.tar.gz" SHARDS=2 "$here/../gpu.sh" "$folder/bundle" "$folder/results" >"$folder/said" 2>&1; }
STUB_FAULT=cudnn PARTS="operators steps" suite && { echo "FAILED: the suite did not fail"; bad=1; }
for text in "operators  exit code   1" "steps      exit code 139" "diagnose   exit code   1" "right without cuDNN" \
  "All/Operator.Of/one: right with own loops"; do
  expect "the suite" "$text" "$folder/said"
done
expect "the suite" "GpuStep.Crashes" "$folder/results/diagnose.log"
tar -tzf "$folder/all.tar.gz" >"$folder/packed" || bad=1
for file in ./summary.log ./operators.0.log ./operators.1.log ./diagnose.log; do expect "the pack" "$file" "$folder/packed"; done
LIMIT=30 PARTS="models speed" suite && { echo "FAILED: the suite did not fail"; bad=1; }
expect "the suite" "models     exit code 124" "$folder/said"
expect "the suite" "speed      not begun: no time left" "$folder/said"

# A machine with a GPU that the program does not find is no machine without one.
printf '#!/bin/bash\necho "GPU 0: NVIDIA H200"\n' >"$folder/nvidia-smi"
chmod +x "$folder/nvidia-smi"
PATH="$folder:$PATH" STUB_NO_DEVICE=1 suite && { echo "FAILED: nothing is wrong with a GPU that is not found"; bad=1; }
expect "the suite" "there is a GPU, but the program does not find it" "$folder/said"
exit $bad

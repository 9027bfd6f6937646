#!/bin/bash
# Makes a folder for a GPU node that has nothing but a driver, a toolkit and PyTorch: program and tests as
# scripts/bundle.sh gathers them, the GPU suite, and the sources of the CUDA module, which can be changed and
# built there without CMake.
#
#   scripts/gpu_bundle.sh BUILD FOLDER [CIFAR10]   the folder of CIFAR-10's binary files, of which a part is
#                                        taken along: 8,000 images to learn from and 2,000 for tests, so that
#                                        all of it has less than 64 MiB when packed
#   FOLDER/gpu.sh                        the suite (tests/gpu.sh), with PARTS, OUT and so on as there
#   FOLDER/rebuild.sh                    builds FOLDER/src anew into lib/libantichain_cuda.so, by nvcc and
#                                        g++, in about a minute
#
# BUILD has -DANTICHAIN_CUDA=ON, and the targets antichain_program, antichain_modules, test_gpu and
# test_gpu_transport are built.
set -euo pipefail
[ $# = 2 ] || [ $# = 3 ] || { sed -n '/^set/q; 2,$s/^# \{0,1\}//p' "$0"; exit 2; }
root="$(cd "$(dirname "$0")/.." && pwd)" build="$1" out="$2"
"$root/scripts/bundle.sh" "$build" "$out" "$build/tests/gpu/test_gpu" "$build/tests/pipeline/test_gpu_transport"

mkdir -p "$out/src/include"
tar -C "$root" --exclude='__pycache__' -cf - framework layers data pipeline partition models cmake/once tests/gpu tests/gpu.sh tests/golden \
  tests/benchmarks/gpu_models.py scripts/gpu_profiles.sh | tar -C "$out/src" -xf -
cp -rL /usr/include/fmt "$out/src/include/"
"$root/scripts/cuda_module_sources.py" "$build" >"$out/src/module.txt"
# A node may lack the headers of cuDNN, cuBLASLt and NVTX, so those that the build found are taken along.
python3 - "$build" "$out" "$root/scripts" <<'PYTHON'
import os, re, shutil, sys

build, out, scripts = sys.argv[1:]
sys.path.insert(0, scripts)
sys.dont_write_bytecode = True
from cuda_module_sources import commands_of

commands = commands_of(build)
version = re.search(r'ANTICHAIN_VERSION=\\"([^\\"]*)', commands[0]["command"]).group(1)
with open(f"{out}/src/version.txt", "w") as file:
    file.write(version + "\n")
for folder in {word for c in commands for word in re.findall(r"-isystem[ =](\S+)", c["command"])}:
    for name in os.listdir(folder):
        if re.match(r"(cudnn|cublas).*\.h$", name):
            shutil.copy(os.path.join(folder, name), f"{out}/src/include/")
    if os.path.isdir(f"{folder}/nvtx3"):
        shutil.copytree(f"{folder}/nvtx3", f"{out}/src/include/nvtx3", dirs_exist_ok=True)
PYTHON
if [ $# = 3 ]; then
  images="$3" part="$(mktemp -d)"
  trap 'rm -rf "$part"' EXIT
  [ ! -d "$images/cifar-10-batches-bin" ] || images="$images/cifar-10-batches-bin"
  cp "$images/batches.meta.txt" "$part/"
  for file in "$images"/data_batch_[1-5].bin; do head -c $((1600 * 3073)) "$file" >"$part/$(basename "$file")"; done
  head -c $((2000 * 3073)) "$images/test_batch.bin" >"$part/test_batch.bin"
  "$build/antichain" data pack --quiet --cifar "$part" --compress --out "$out/cifar10-part.h5"
fi
cp "$root/scripts/rebuild_cuda_module.sh" "$out/rebuild.sh"
printf '#!/bin/bash\nhere="$(cd "$(dirname "$0")" && pwd)"\nexec "$here/src/tests/gpu.sh" "$here" "$@"\n' >"$out/gpu.sh"
chmod +x "$out/gpu.sh"
echo "$out with its sources: $(du -sm "$out" | cut -f1) MiB, $(wc -l <"$out/src/module.txt") sources of the CUDA module"

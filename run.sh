#!/bin/bash
# Installs what is missing, builds, and trains ResNet-20 on CIFAR-10 on 2 ranks, on the GPU where there is
# one. Options go to `antichain train` and override the defaults of scripts/run.toml: ./run.sh --epochs 1
# --data-dir D
set -euo pipefail
cd "$(dirname "$0")"
. scripts/packages.sh
install_missing $build_packages
device=()
# The CUDA module is built for this machine's GPU.
if gpu_seen; then export CUDAARCHS="${CUDAARCHS:-$(gpu_architectures)}"; fi
build build antichain_program
if gpu_seen && grep -q "CUDA module: toolkit" build/configure.log; then
  ninja -C build antichain_modules
  device=(--device auto)
fi
exec mpirun -n 2 --oversubscribe build/antichain train --config scripts/run.toml "${device[@]}" "$@"

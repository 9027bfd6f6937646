#!/bin/bash
# Installs what is missing, builds, and trains ResNet-20 on 2 ranks, on the GPU where there is one: within two
# minutes on two cores. The images are CIFAR-10's, or where they can't be had, scikit-learn's digits. The
# results are kept in a folder of runs/. Options go to `antichain train` and override the defaults of
# scripts/run.toml: ./run.sh --epochs 10 --data-dir D
set -euo pipefail
cd "$(dirname "$0")"
. scripts/packages.sh
. scripts/first_run.sh
install_missing $build_packages
device=() ranks=(-n 2 --oversubscribe)
# The CUDA module is built for this machine's GPU.
if gpu_seen; then export CUDAARCHS="${CUDAARCHS:-$(gpu_architectures)}"; fi
build build antichain_program
if gpu_seen && grep -q "CUDA module: toolkit" build/configure.log; then
  ninja -C build antichain_modules
  device=(--device auto) ranks+=(--bind-to none)  # a GPU's rank has five threads
elif gpu_seen; then
  echo "there is a GPU, but the CUDA module can't be built here ($(grep -m 1 "CUDA module" build/configure.log || echo "see build/configure.log")), so this trains on the CPU; $bundles"
fi
if names "--help|-h" "$@"; then exec build/antichain train "$@"; fi
config=scripts/run.toml
names "$network_or_data" "$@" || choose_images
keep_results "$@"
# A signal to this script is one to the training, whose own answer to it is waited for. Ctrl-C reaches both.
mpirun "${ranks[@]}" build/antichain train --config "$config" "${device[@]}" "${results[@]}" "$@" &
trap 'kill -s TERM %1' TERM
trap 'kill -s USR1 %1' USR1
trap : INT
code=0
while wait %1 || code=$?; [ -n "$(jobs -pr)" ]; do :; done
tell_what_is_kept "$code"
exit "$code"

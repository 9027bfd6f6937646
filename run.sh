#!/bin/bash
# Installs what is missing, builds, and trains ResNet-20 on CIFAR-10 on 2 ranks. Options go to `antichain train` and
# override the defaults: ./run.sh --epochs 3 --data-dir D
set -euo pipefail
cd "$(dirname "$0")"
. scripts/packages.sh
install_missing $build_packages
build build -DANTICHAIN_TESTS=OFF -DANTICHAIN_BENCHMARKS=OFF
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpirun -n 2 --oversubscribe build/antichain train --config scripts/run.toml "$@"

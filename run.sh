#!/bin/bash
# Installs what is missing, builds, and trains ResNet-20 on CIFAR-10 on 2 ranks. Options go to `antichain train` and
# override the defaults of scripts/run.toml: ./run.sh --epochs 1 --data-dir D
set -euo pipefail
cd "$(dirname "$0")"
. scripts/packages.sh
install_missing $build_packages
build build antichain_program
exec mpirun -n 2 --oversubscribe build/antichain train --config scripts/run.toml "$@"

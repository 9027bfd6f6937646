#!/bin/bash
# The scripts for clusters, which nobody here runs before a user does, have nothing that shellcheck warns of.
cd "$(dirname "$0")/../.." || exit 1
command -v shellcheck >/dev/null || { echo "shellcheck is not installed"; exit 77; }
exec shellcheck -x -P SCRIPTDIR -s bash slurm/submit.sh slurm/job.sh slurm/*.env slurm/*.sbatch tests/slurm/*.sh tests/slurm/*.env

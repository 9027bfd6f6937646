#!/bin/bash
# How much of two cores does a pipeline of two ranks use? It is compared with two independent one-rank runs at
# the same time, which have no bubble, no messages and no imbalance, but share the machine in the same way.
# The predicted step time stands beside it.
#
#   tests/benchmarks/two_ranks.sh PROGRAM [train option …]
#   tests/benchmarks/two_ranks.sh build/antichain --data-dir D
set -euo pipefail
program="$1"; shift
options=(--model resnet18 --batch 512 --microbatches 32 --steps 8 "$@")
rounds="${ROUNDS:-3}"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# The median images/s of a run's steps, the first two left out.
median_rate() {
  sed -n 's/.*"images_per_s":\([0-9.e+]*\).*/\1/p' "$1" | tail -n +3 | sort -g | awk '{x[NR]=$1} END {print x[int((NR+1)/2)]}'
}

field() { sed -n "s/.*\"$2\":\([0-9.e+-]*\).*/\1/p" "$1" | tail -n 1; }

printf '%8s %22s %12s %8s %14s %13s %8s\n' round 'two runs, images/s' 'pipeline' ratio 'predicted ms' 'measured ms' error
for round in $(seq "$rounds"); do
  for core in 0 1; do
    taskset -c "$core" "$program" train "${options[@]}" --local 1 --metrics "$folder/alone$core" >"$folder/log$core" 2>&1 &
  done
  wait
  mpirun -n 2 --bind-to core "$program" train "${options[@]}" --metrics "$folder/pair" >"$folder/log" 2>&1
  awk -v round="$round" -v a="$(median_rate "$folder/alone0")" -v b="$(median_rate "$folder/alone1")" \
    -v both="$(median_rate "$folder/pair")" -v p="$(field "$folder/pair" predicted_step_s)" \
    -v m="$(field "$folder/pair" measured_step_s)" 'BEGIN {
      printf "%8d %10.1f + %9.1f %12.1f %8.3f %14.1f %13.1f %7.1f%%\n", round, a, b, both, both / (a + b), p * 1e3, m * 1e3, (m / p - 1) * 100
    }'
done

#!/bin/bash
# Compares rehearsed with predicted steps under every schedule, on 4 and 8 real ranks, which wait for profiled
# times. Messages have their true sizes. A step's figure is its period, because steps overlap where that
# helps. The script fails where any step is more than 3 % off.
#
#   tests/benchmarks/schedule_rehearsals.sh PROGRAM docs/profiles/cpu/resnet101.json [rehearse option …]
#
# SCHEDULES="zb-v auto" in the environment leaves the others out.
set -uo pipefail
program=$1 profile=$2
shift 2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
[ "$(id -u)" = 0 ] && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
bad=0
all=$("$(dirname "$0")/../scripts/schedules.py" "$program") || exit 1
printf '%5s %-12s %14s %14s %6s\n' ranks schedule 'predicted, ms' 'rehearsed, ms' 'off, %'
for ranks in 4 8; do
  for schedule in ${SCHEDULES:-$all auto}; do
    if ! mpirun -n $ranks "$program" rehearse --profile "$profile" --schedule $schedule --microbatches 16 \
      --payload true "$@" >"$folder/out" 2>&1; then
      echo "FAILED: $ranks ranks, $schedule: $(tail -n 3 "$folder/out")"
      bad=1
      continue
    fi
    awk -v ranks=$ranks -v schedule=$schedule '
      /(step|period), ms/ { predicted = $3; rehearsed = $4; off = $5; found = 1 }  # the period comes last
      END {
        printf "%5d %-12s %14.2f %14.2f %+6.1f\n", ranks, schedule, predicted, rehearsed, off
        exit !found || off > 3 || off < -3
      }' "$folder/out" || bad=1
  done
done
exit $bad

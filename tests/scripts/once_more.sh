#!/bin/bash
# Runs the tests again that failed in the last run of ctest, one at a time. A test that measures time (its
# label has -timed) may pass now, because a core that others work on can make it late. Every other test
# must pass however busy the machine is: if it passes only now, it is named, and this script fails as well.
#
#   tests/scripts/once_more.sh BUILD
set -uo pipefail
build=$1
log=$build/Testing/Temporary/LastTestsFailed.log
failed=$(cut -d : -f 2- "$log" | sort)  # its lines are NUMBER:NAME

printf '\n== once more, one at a time: what failed above\n'
ctest --test-dir "$build" --output-on-failure --rerun-failed || exit

timed=$(ctest --test-dir "$build" -N -L 'timed' | sed -n 's/^ *Test *#[0-9]*: //p' | sort)
unexcused=$(comm -23 <(echo "$failed") <(echo "$timed"))
if [ -n "$unexcused" ]; then
  printf '\n== passed only when repeated, though they measure no time: mend them\n%s\n' "$unexcused"
  exit 1
fi

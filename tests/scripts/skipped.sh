#!/bin/bash
# Names every case that GoogleTest skipped, under the reason it gave, from the log that ctest leaves.
#
#   tests/scripts/skipped.sh BUILD/Testing/Temporary/LastTest.log
awk '
  /: Skipped$/ { getline reason }
  /^\[  SKIPPED \] .* \([0-9]+ ms\)$/ { print reason "\t" $4; reason = "no reason given" }' "$1" |
  LC_ALL=C sort -s -t $'\t' -k 1,1 |
  awk -F '\t' '
    $1 != reason { reason = $1; printf "\n== skipped: %s\n", reason }
    { print "  " $2 }'

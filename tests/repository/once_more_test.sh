#!/bin/bash
# Tests what tests/scripts/once_more.sh makes of tests that fail once, and of one that always fails.
set -uo pipefail
once_more=$(cd "$(dirname "$0")/../scripts" && pwd)/once_more.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed() { echo "FAILED: $*"; cat "$folder/said"; exit 1; }

# suite LABEL COMMAND: a steady test, and one that carries the label and runs the command.
suite() {
  rm -rf "$folder"/*
  cat >"$folder/CTestTestfile.cmake" <<END
add_test(steady true)
add_test(moody sh -c "$2")
set_tests_properties(moody PROPERTIES LABELS $1)
END
  ctest --test-dir "$folder" -R . >/dev/null && failed "nothing failed at first"
  "$once_more" "$folder" >"$folder/said"
}
once="test -e $folder/seen || { touch $folder/seen; false; }"

suite core-timed "$once" || failed "a test of times may pass at the second try"
suite core "$once" && failed "a test that measures no time may not"
grep -q "^moody$" "$folder/said" || failed "the test is not named"
suite core-timed false && failed "a test that fails twice has failed"
exit 0

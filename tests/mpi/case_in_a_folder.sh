# shellcheck shell=bash disable=SC2034
# The scripts of this folder that play cases in a folder of their own share this. They are started as SCRIPT
# PROGRAM CASE and source this file; it sets program, case, folder and mpirun, and enters the folder, which is
# gone when the script ends.
set -uo pipefail
program=$1 case=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
mpirun=("${MPIRUN:-mpirun}")

# The program's standard error is in the file err, and its exit code in `code`.
fail() {
  echo "FAILED ($case): $*"
  echo "--- standard error:"; cat err
  exit 1
}
expect_code() { [ "$code" = "$1" ] || fail "exit code $code instead of $1"; }

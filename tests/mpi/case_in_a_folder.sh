# shellcheck shell=bash disable=SC2034
# The scripts of this folder that play cases in a folder of their own share this. They are started as SCRIPT
# PROGRAM CASE and source this file; it sets program, case, folder and mpirun, and enters the folder, which is
# gone when the script ends.
set -uo pipefail
program=$(realpath "$1") case=$2
folder=$(mktemp -d) || exit 1
# Open MPI's shared memory has a folder of its own, because other jobs of this host come and go in /dev/shm.
# The two names are those of Open MPI 4 and 5.
shared_memory=$(mktemp -d /dev/shm/antichain-test-XXXXXX) || exit 1
export OMPI_MCA_btl_vader_backing_directory=$shared_memory OMPI_MCA_btl_sm_backing_directory=$shared_memory
trap 'rm -rf "$folder" "$shared_memory"' EXIT
cd "$folder" || exit 1
mpirun=("${MPIRUN:-mpirun}")
# The watchdog's limits, and the pauses beside them, are multiples of so many seconds. A machine that is too
# slow for 1 takes more.
unit_s=${ANTICHAIN_TEST_UNIT_S:-1}

# The program's standard error is in the file err, and its exit code in `code`.
fail() {
  echo "FAILED ($case): $*"
  echo "--- standard error:"; cat err
  exit 1
}
expect_code() { [ "$code" = "$1" ] || fail "exit code $code instead of $1"; }
# Called when a job is gone.
expect_no_shared_memory_left() {
  [ -z "$(ls "$shared_memory")" ] || fail "left in shared memory: $(ls "$shared_memory")"
}

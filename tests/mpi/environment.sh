#!/bin/bash
# What surrounds the program may be in a bad state: the same results, bit for bit, or one sentence.
#
#   environment.sh build/antichain stdin|stdout|stderr|full|gone|paused|locale|settings|slurm|nan|doctor
set -uo pipefail
program=$1 case=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
mpirun=("${MPIRUN:-mpirun}")
network=(--model resnet20 --batch 16 --microbatches 4)
train=("$program" train "${network[@]}" --dataset synthetic --steps 3 --profile p.json)

fail() {
  echo "FAILED ($case): $*"
  echo "--- standard error:"; cat err
  exit 1
}
expect_code() { [ "$code" = "$1" ] || fail "exit code $code instead of $1"; }
expect_once() { [ "$(grep -c "$1" err)" = 1 ] || fail "not once in standard error: $1"; }
expect_quiet() { grep -v 'share .* core' err | grep -q . && fail "something was said"; return 0; }
state_of() { sed -n 's/.*"state": "\([0-9a-f]*\)".*/\1/p' "$1"; }
expect_same_results() { [ -n "$(state_of a.json)" ] && [ "$(state_of a.json)" = "$(state_of b.json)" ] || fail "other results"; }
shared_memory() { ls /dev/shm | sort; }

"$program" profile "${network[@]}" --json p.json >out 2>err || fail "no profile"
case $case in
  stdin | stdout | stderr | full | gone | paused | locale)
    "${train[@]}" --local 2 --json a.json >out 2>err || fail "the undisturbed run failed" ;;&
  stdin) "${train[@]}" --local 2 --json b.json <&- >out 2>err; code=$?; expect_code 0; expect_quiet ;;
  stdout) "${train[@]}" --local 2 --json b.json >&- 2>err; code=$?; expect_code 0; expect_quiet ;;
  stderr) "${train[@]}" --local 2 --json b.json >out 2>&-; code=$?; expect_code 0 ;;
  full)
    "${train[@]}" --local 2 --json b.json >/dev/full 2>err; code=$?
    expect_code 3; expect_once "standard output is lost (No space left on device)" ;;
  gone)
    { "${train[@]}" --local 2 --json b.json 2>err; echo $? >code; } | true
    code=$(cat code); expect_code 3; expect_once "standard output is lost (Broken pipe)" ;;
  paused)  # the pipe is full and nobody reads for longer than the watchdog's limit: that is nobody's fault
    { head -c 65536 /dev/zero; "${train[@]}" --local 2 --watchdog 1 --json b.json 2>err; echo $? >code; } |
      { sleep 4; cat >out; }
    code=$(cat code); expect_code 0; expect_quiet
    grep -aq "Final state" out || fail "what was printed is lost" ;;
  locale)
    mkdir locales
    localedef -i de_DE -f UTF-8 locales/de_DE.UTF-8 >/dev/null 2>&1 || { echo "no locale to test with"; exit 0; }
    LOCPATH=$folder/locales LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 "${train[@]}" --local 2 --lr 0.3 --json b.json >out 2>err
    code=$?; expect_code 0; expect_quiet ;;
  settings)
    "${mpirun[@]}" -n 2 "${train[@]}" --lr 0.3 : -n 1 "${train[@]}" --lr 0.2 >out 2>err; code=$?
    expect_code 2; expect_once "rank 2 was started with --lr 0.2, the others with --lr 0.3" ;;
  slurm)
    SLURM_JOB_ID=1 SLURM_NTASKS=4 "${train[@]}" >out 2>err; code=$?
    expect_code 2; expect_once "srun --mpi=pmix -n 4"
    SLURM_JOB_ID=1 SLURM_NTASKS=4 "${train[@]}" --local 2 >out 2>err; code=$?; expect_code 0 ;;
  nan)  # the sentence once, the code through mpirun, nothing left behind
    before=$(shared_memory)
    ANTICHAIN_FAULT=nan:rank=1:step=1:microbatch=2:activation:layer3.2.conv2 \
      "${mpirun[@]}" -n 2 "${train[@]}" >out 2>err; code=$?
    expect_code 6; expect_once "step 2, micro-batch 2: the output of node layer3.2.conv2 (rank 1) is not finite"
    [ "$(shared_memory)" = "$before" ] || fail "files are left in /dev/shm: $(shared_memory)" ;;
  doctor)
    "$program" doctor --checkpoint . --json d.json >out 2>err; code=$?; expect_code 0
    "${mpirun[@]}" -n 3 "$program" doctor --checkpoint nowhere --json d.json >out 2>err; code=$?
    expect_code 3; grep -q "can't write to nowhere" out || fail "not found: $(cat out)"
    grep -q '"health": "problem"' d.json || fail "not written" ;;
  *) fail "there is no case $case" ;;
esac
case $case in stdin | stdout | stderr | full | gone | paused | locale) expect_same_results ;; esac
exit 0

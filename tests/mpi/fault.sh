#!/bin/bash
# Makes one fault in a training run of the real program, and checks how the job ends and what it says. No time
# that the machine's load changes is part of a verdict: how soon a job ended is printed, and ctest's limit
# ends what hangs.
#
#   fault.sh build/antichain
#   hang|hang_local|hang_crowded|hang_replica|starved|stop|continue|suspend|exit|throw|
#            throw_local|loader|rewind|alike
. "$(dirname "$0")/case_in_a_folder.sh"
limit_s=$((3 * unit_s)) ranks=2 rank=1 step=3 options=() network=(--dataset synthetic --steps 6)
case $case in *_crowded) ranks=4 rank=2 ;; *_local) ranks=3 ;; esac

now_ms() { date +%s%3N; }

# train NAME FAULT: $folder/NAME.json grows a line per step; sets code and end_ms.
train() {
  local launch=("${mpirun[@]}" -n "$ranks" "$program" train)
  [[ $case == *_local ]] && launch=("$program" train --local "$ranks")
  ANTICHAIN_FAULT=$2 "${launch[@]}" --model resnet20 "${network[@]}" --batch 16 --microbatches 4 \
    --watchdog $limit_s --metrics "$folder/$1.json" \
    "${options[@]}" >"$folder/out" 2>"$folder/err"
  code=$?
  end_ms=$(now_ms)
  return $code
}

# Time from the last step's line in the metrics to the end of the job: start-up does not count.
after_last_step_ms() { echo $((end_ms - $(date -r "$folder/faulty.json" +%s%3N))); }

# Rank 0 hears of a step while the next one runs, and may lose its last line when another rank ends the job.
expect_steps() {
  local steps; steps=$(wc -l <"$folder/faulty.json")
  [ "$steps" -le "$1" ] && [ "$steps" -ge $(($1 - 2)) ] || fail "not $1 steps: $(cat "$folder/faulty.json")"
}
expect_once() { [ "$(grep -cE "$1" "$folder/err")" = 1 ] || fail "not once in standard error: $1"; }
say_end() { echo "$case: ended $(after_last_step_ms) ms after the last step"; }
# The watchdog's own count begins after the limit, and a look that comes late counts as two at most: a tenth
# of the limit.
just_over_limit="$limit_s\.[0-$((unit_s > 3 ? 9 : 3 * unit_s))] s \(limit $limit_s s\)"
# The ids of this run's processes: the metrics file is in their command lines.
processes() { grep -lF -f <(echo "$folder") /proc/[0-9]*/cmdline 2>/dev/null | cut -d / -f 3; }
stopped() {
  local p
  for p in $(processes); do grep -q '^State:.*T (stopped)' "/proc/$p/status" 2>/dev/null && echo "$p"; done
}
ranks_of_job() {
  local p
  for p in $(processes); do [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$(basename "$program")" ] && echo "$p"; done
}
expect_nobody_left() {
  local i
  for i in $(seq 300); do [ -z "$(processes)" ] && return 0; sleep 0.1; done
  fail "processes are left: $(processes)"
}
wait_until_stopped() {
  until [ -n "$(stopped)" ]; do
    kill -0 $job 2>/dev/null || fail "rank $rank never stopped"
    sleep 0.1
  done
}
# Who waits is told below the verdict: a rank, or what of it once that took 20 ms. Whoever had no core may not
# have come to wait.
expect_others_wait() {
  local waits="waits for (rank [0-9]|the other ranks|the .*(activation|gradient|loss|results|barrier))"
  grep -E "^  rank [0-9]+( on [^ ]+)? " "$folder/err" | grep -vE "$waits" && fail "waits for what?"
  grep -E "^  rank $rank( on [^ ]+)? waits" "$folder/err" && fail "who hangs does not wait"
  return 0
}
expect_silence_and_same_state() {
  grep -q "no progress\|not been heard" "$folder/err" && fail "the watchdog spoke"
  [ "$(state_of faulty)" = "$(state_of undisturbed)" ] && [ -n "$(state_of faulty)" ] ||
    fail "final states '$(state_of undisturbed)' and '$(state_of faulty)' differ"
}
state_of() { sed -n 's/.*"state":"\([0-9a-f]*\)".*/\1/p' "$folder/$1.json"; }

case $case in
  hang | hang_local | hang_crowded | hang_replica)
    [ $case = hang_replica ] && options=(--replicas 2)
    train faulty "hang:rank=$rank:step=$step"
    expect_code 75
    expect_steps $step
    besides="(, besides .* without a core)?: its last action was \".+\""
    expect_once "rank $rank( on [^ ]+)? has made no progress for $just_over_limit$besides"
    expect_others_wait
    say_end ;;
  starved)  # ready to run for longer than the limit, while others have its core
    limit_s=$((4 * unit_s))  # longer than it takes to bring that about, once the rank has stopped
    core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
    chrt -i 0 true 2>/dev/null || { echo "this system lets nobody come last (chrt -i)"; exit 77; }
    [ -r /proc/self/schedstat ] || { echo "this system does not count for how long one has no core"; exit 77; }
    train undisturbed ""
    expect_code 0
    train faulty "stop:rank=$rank:step=$step" &
    job=$!
    wait_until_stopped
    starving=$(stopped)
    taskset -acp "$core" "$starving" >"$folder/out" && chrt -aip 0 "$starving" ||
      fail "can't starve rank $rank"
    kill -CONT "$starving"
    timeout $((limit_s + 3 * unit_s)) taskset -c "$core" bash -c 'while :; do :; done'
    chrt -aop 0 "$starving"
    wait $job; code=$?
    expect_code 0
    expect_silence_and_same_state ;;
  stop)
    train faulty "stop:rank=$rank:step=$step"
    expect_code 75
    expect_steps $step
    expect_once "rank $rank( on [^ ]+)? has not been heard from .* for [0-9.]+ s \(limit $limit_s s\)"
    expect_others_wait
    say_end ;;
  continue | suspend)
    limit_s=$((6 * unit_s))  # longer than it takes to stop the others once one has stopped
    train undisturbed ""
    expect_code 0
    train faulty "stop:rank=$rank:step=$step" &
    job=$!
    wait_until_stopped
    if [ $case = suspend ]; then
      # All ranks for longer than the limit, as a batch system does: nobody is to blame.
      kill -STOP $(ranks_of_job)
      sleep $((limit_s + unit_s))
    else
      sleep $unit_s  # a sixth of the limit
    fi
    kill -CONT $(ranks_of_job)
    wait $job; code=$?
    expect_code 0
    expect_silence_and_same_state ;;
  exit)
    train faulty "exit:rank=$rank:step=$step"
    [ "$code" != 0 ] || fail "exit code 0"
    expect_steps $step
    say_end ;;
  throw | throw_local)
    train faulty "throw:rank=$rank:step=$step"
    expect_code 3
    expect_steps $step
    expect_once "rank $rank was told to fail at step $step"
    say_end ;;
  loader)  # not the rank's own thread fails, but the one that reads ahead
    mkdir "$folder/data"
    for i in $(seq 64); do printf '\1'; head -c 3072 /dev/zero; done >"$folder/data/data_batch_1.bin"
    cp "$folder/data/data_batch_1.bin" "$folder/data/test_batch.bin"
    network=(--data-dir "$folder/data" --steps 100000)
    train faulty "" &
    job=$!
    until [ -s "$folder/faulty.json" ] || ! kill -0 $job 2>/dev/null; do sleep 0.1; done
    truncate -s 1000 "$folder/data/data_batch_1.bin"
    wait $job; code=$?
    expect_code 3
    expect_once "data_batch_1.bin has been changed while it was trained on" ;;
  rewind)  # back to the checkpoint of step 2 from a NaN in step 4, under MPI as on threads
    limit_s=60  # a busy machine is no hang
    for place in mpi_local mpi; do
      options=(--on-nan rewind --checkpoint "$folder/ck-$place" --checkpoint-every 2)
      case=$place train $place "nan:rank=-1:step=3:microbatch=1:activation:layer3.2.conv2"
      expect_code 0
      grep -q "step 4, micro-batch 1: the output of node layer3.2.conv2" "$folder/$place.json" || fail "not in the metrics"
    done
    options=()
    train undisturbed ""
    [ -n "$(state_of mpi)" ] && [ "$(state_of mpi)" = "$(state_of mpi_local)" ] || fail "other states under MPI and on threads"
    [ "$(state_of mpi)" != "$(state_of undisturbed)" ] || fail "nothing was left out" ;;
  alike)  # every rank throws the same error at the same time
    "$program" plan --model resnet20 --batch 16 --microbatches 4 --stages 3 --json "$folder/plan.json" \
      >"$folder/out" 2>"$folder/err" || fail "no plan"
    options=(--plan "$folder/plan.json")
    train faulty ""
    expect_code 2
    expect_once "the plan is for 3 ranks, but the job has 2" ;;
  *) fail "there is no case $case" ;;
esac
expect_nobody_left
expect_no_shared_memory_left

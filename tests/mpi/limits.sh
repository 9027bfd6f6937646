#!/bin/bash
# Sets limits, as the system, a batch system or the user does, and changes what surrounds a job as it begins
# and ends. The job must end with one sentence and a documented exit code, or go on as promised.
#
#   limits.sh build/antichain addresses|file_size|cpu_time|openmp|memory|schedule|begin|hangup|launcher|
#            late_signal|orphan
. "$(dirname "$0")/case_in_a_folder.sh"
network=(--model resnet20 --batch 16 --microbatches 4)
train=("$program" train "${network[@]}" --dataset synthetic --profile p.json --lr-schedule constant)

expect_once() { [ "$(grep -cE "$1" err)" = 1 ] || fail "not once in standard error: $1"; }
# These are the steps of a run that lasts until it is told to end.
wait_for_steps() {
  until [ "$(cat m 2>/dev/null | wc -l)" -ge 3 ] || ! kill -0 "$1" 2>/dev/null; do sleep 0.05; done
}

"$program" profile "${network[@]}" --json p.json >out 2>err || fail "no profile"
case $case in
  addresses)  # KiB: too few to begin, to measure, to train, and for eight threads; then enough
    for limit in 100000 150000 200000 250000 300000 400000; do
      (ulimit -v $limit; exec "${train[@]}" --local 2 --steps 2 --checkpoint $limit --checkpoint-every 1) \
        >out 2>err
      code=$?
      echo "ulimit -v $limit: $code"
      [ $code = 0 ] && continue
      expect_code 5; expect_once "^antichain: .*ulimit -v"
    done
    "$program" export --model resnet20 --out w.h5 >out 2>err || fail "no weights"
    for limit in 160000 170000 180000; do
      (ulimit -v $limit; exec "$program" evaluate --model resnet20 --dataset synthetic --weights w.h5) \
        >out 2>err
      code=$?
      echo "evaluate, ulimit -v $limit: $code"
      [ $code = 0 ] && continue
      expect_code 5; expect_once "^antichain: .*ulimit -v"
    done
    (ulimit -v 300000; exec "${train[@]}" --local 8 --steps 2) >out 2>err; code=$?
    expect_code 5; expect_once "^antichain: .*ulimit -v"
    (ulimit -v 1000000; exec "${train[@]}" --local 8 --steps 2) >out 2>err; code=$?; expect_code 0 ;;
  file_size)  # the file of the checkpoint is larger
    (ulimit -f 100; exec "${train[@]}" --steps 2 --checkpoint run --checkpoint-every 1 --metrics m) >out 2>err
    code=$?
    [ "$(grep -c '"step"' m)" = 2 ] || fail "training did not go on"
    grep -q "the checkpoint of step 1 could not be written, training goes on: .*File too large" err ||
      fail "no warning"
    [ $code -lt 128 ] || fail "killed: $code" ;;
  cpu_time)  # SIGXCPU comes every second from then on
    (ulimit -S -t 2; exec "${train[@]}" --steps 1000000 --checkpoint run) >out 2>err; code=$?
    expect_code 85; expect_once "stopped by SIGXCPU after step [0-9]+, with everything saved" ;;
  openmp)
    "${train[@]}" --threads 2 --steps 1 --json a.json >out 2>err; code=$?; expect_code 0
    OMP_DYNAMIC=true taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" \
      "${train[@]}" --threads 2 --steps 1 --json b.json >out 2>err; code=$?; expect_code 0
    [ "$(grep '"state"' a.json)" = "$(grep '"state"' b.json)" ] || fail "other results"
    OMP_THREAD_LIMIT=1 "${train[@]}" --threads 2 --steps 1 >out 2>err; code=$?
    expect_code 2; expect_once "OpenMP gives .* 1.*, but --threads asks for 2 \(OMP_THREAD_LIMIT is 1"
    # Fewer threads than a run needs, of which OpenMP starts some.
    chmod a+rx . && other=(setpriv --reuid 65533 --clear-groups)
    "${other[@]}" "$program" plan --profile p.json --stages 2 >out 2>err || exit 0
    for limit in 1 2 3 4 5 6; do
      "${other[@]}" bash -c 'ulimit -u "$0" && exec "$@"' $limit "${train[@]}" --threads 2 --steps 1 >out 2>err
      code=$?
      echo "ulimit -u $limit: $code"
      [ $code = 0 ] || { expect_code 5; expect_once "^antichain: .*ulimit -u"; }
    done ;;
  memory)  # refused before anything is measured
    group=/sys/fs/cgroup/memory/antichain-test-$$
    mkdir "$group" 2>/dev/null && echo $((150 << 20)) >"$group/memory.limit_in_bytes" 2>/dev/null ||
      { echo "no control group of version 1 can be made here"; exit 77; }
    (echo $BASHPID >"$group/tasks" && exec "$program" train --model densenet121 --dataset synthetic \
      --batch 32 --microbatches 4 --steps 1 --profile-cache none) >out 2>err
    code=$?
    until rmdir "$group" 2>/dev/null; do sleep 0.1; done
    expect_code 5; expect_once "measuring this network needs [0-9.]+ MiB on .*, which has [0-9.]+ MiB left"
    expect_once "^ +rank +host .* working set"; expect_once "^ +rank +scratch +engine +all" ;;
  schedule)  # of an evaluation
    given=(--profile p.json --plan plan.json --microbatches 4)
    "$program" plan --profile p.json --stages 2 --json plan.json >out 2>err || fail "no plan"
    "$program" simulate "${given[@]}" --write-schedule all.txt >out 2>err ||
      fail "no schedule"
    sed -E '/^rank/ s/ [0-9]+(B[0-9]+|U|[SR][0-9]+:g[^ ]*)//g' all.txt >forward.txt
    "$program" simulate "${given[@]}" --schedule forward.txt >out 2>err; code=$?
    expect_code 0
    "${train[@]}" --local 2 --plan plan.json --schedule forward.txt --steps 1 >out 2>err; code=$?
    expect_code 3; expect_once "forward.txt has no backward: it evaluates, and trains nothing"
    "$program" rehearse "${given[@]}" --schedule forward.txt >out 2>err; code=$?
    expect_code 3; expect_once "forward.txt has no backward" ;;
  begin)  # another command on one rank: without MPI, and with it
    # The launcher ends a job itself, with code 1, as soon as one process ends without MPI and another one has
    # begun it. So the command without MPI stays until the launcher, told by our own watchdog's code, ends it.
    "${mpirun[@]}" -n 1 "${train[@]}" --steps 1 --watchdog $((3 * unit_s)) : \
      -n 1 bash -c '"$1" info; exec sleep 300' - "$program" >out 2>err
    code=$?
    expect_code 75; expect_once "MPI has not begun for 3 s: another process .* runs another command"
    "${mpirun[@]}" -n 1 "${train[@]}" --steps 1 : -n 1 "$program" profile "${network[@]}" >out 2>err; code=$?
    expect_code 2; expect_once "rank 1 runs antichain profile, the others antichain train" ;;
  hangup)  # the terminal goes away; under nohup that is no signal
    for under in "" nohup; do
      rm -f m
      $under "${train[@]}" --steps 1000000 --checkpoint "run$under" --metrics m >out 2>err &
      job=$!
      wait_for_steps $job
      kill -HUP $job
      [ -z "$under" ] || kill -USR1 $job
      wait $job; code=$?
      expect_code 85; expect_once "stopped by SIG$([ -z "$under" ] && echo HUP || echo USR1) after step [0-9]+, with everything saved"
    done
    "${mpirun[@]}" -n 2 "${train[@]}" --steps 1000000 --checkpoint run2 --metrics m2 >out 2>err &
    job=$!
    until [ "$(cat m2 2>/dev/null | wc -l)" -ge 3 ] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
    kill -USR1 $job
    wait $job; code=$?
    expect_code 85; expect_once "stopped by SIGUSR1 after step [0-9]+, with everything saved"
    ! grep MPI_ABORT err || fail "the ranks took each other down" ;;
  launcher)  # of another MPI: each process would be a run of its own
    PMI_RANK=0 PMI_SIZE=3 PMI_FD=9 "${train[@]}" --steps 1 >out 2>err; code=$?
    expect_code 2; expect_once "the mpiexec of MPICH, .* started 3 processes, .* built with Open MPI"
    WORLD_SIZE=2 TORCHELASTIC_RUN_ID=1 "${train[@]}" --steps 1 >out 2>err; code=$?
    expect_code 2; expect_once "torchrun started 2 processes"
    PMI_RANK=0 PMI_SIZE=1 "${train[@]}" --steps 1 >out 2>err; code=$?; expect_code 0 ;;
  late_signal)  # to the very end of the process
    "${train[@]}" --steps 1000000 --checkpoint run --metrics m >out 2>err &
    job=$!
    wait_for_steps $job
    while kill -USR1 $job 2>/dev/null; do sleep 0.002; done
    wait $job; code=$?
    expect_code 85; expect_once "stopped by SIGUSR1" ;;
  orphan)  # a single rank whose mpirun was killed
    "${mpirun[@]}" -n 1 "${train[@]}" --steps 1000000 --checkpoint run --metrics m >out 2>err &
    launcher=$!
    wait_for_steps $launcher
    rank=$(pgrep -P $launcher) || fail "no rank"
    kill -KILL $launcher
    for i in $(seq 600); do kill -0 "$rank" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "$rank" 2>/dev/null && fail "it runs on"
    ls -d run/step-* >out 2>err || fail "nothing was saved" ;;
  *) fail "there is no case $case" ;;
esac
exit 0

#!/bin/bash
# Kills (SIGKILL) a random rank at a random moment of a training run of two or three ranks, resumes it with
# --resume auto on as many as chance says, kills again … Each time a complete checkpoint must be found; a run
# that gets to its end, however often it was killed on the way, must have the state and the metrics of one
# that nobody touched. Then the next run begins.
#
#   kill_and_resume.sh build/antichain [KILLS (10) [SEED (1) [MODEL (resnet20)]]]
#
# gpt_nano reads generated text, and is trained by Muon with dropout, clipping and averaged weights.
set -uo pipefail
program=$1 kills=${2:-10} RANDOM=${3:-1} model=${4:-resnet20}
folder=$(mktemp -d "${KILL_AND_RESUME_DIR:-${TMPDIR:-/tmp}}/kill.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
steps=40
network=(--model "$model" --batch 8 --microbatches 2)
learning=(--dataset synthetic)
if [ "$model" = gpt_nano ]; then
  seq 9000 >text
  "$program" data tokens --text text --out text.h5 >out || exit 1
  network+=(--sequence 16 --vocabulary 256 --dropout 0.1 --optimiser muon --ema 0.9)
  learning=(--dataset hdf5:text.h5 --clip-norm 1)
fi
on_ranks() {  # N: sets ranks and train
  ranks=$1
  train=("${MPIRUN:-mpirun}" -n "$ranks" "$program" train "${network[@]}" "${learning[@]}" --steps "$steps"
    --profile p.json --lr 0.01 --checkpoint-every 1 --keep 2)
}

fail() {
  echo "FAILED after $killed kills: $*"
  echo "--- standard error:"; cat err; echo "--- folder:"; ls -la ck ck/*
  exit 1
}
now_ms() { date +%s%3N; }
state_of() { sed -n 's/.*"state":"\([0-9a-f]*\)".*/\1/p' "$1"; }
losses_of() { sed -n 's/^.*"step":\([0-9]*\),.*"loss":\([^,]*\),.*$/\1 \2/p' "$1"; }
newest() { ls ck 2>/dev/null | grep '^step-' | sort | tail -1; }

# The ranks of the job that mpirun with this id started; waits for them, unless it has ended.
ranks_of() {
  local found
  while kill -0 "$1" 2>/dev/null; do
    found=$(pgrep -P "$1" -x "$(basename "$program" | cut -c 1-15)")
    [ "$(wc -w <<<"$found")" = $ranks ] && echo $found && return
    sleep 0.02
  done
}

# Open MPI 4.1's mpirun may wait forever for a lock of its own (in PMIx_server_finalize) after its ranks have
# ended. Where the last rank has been gone for a while, it is killed; ranks that do not end fail the test.
end_launcher() {
  local gone=0
  while kill -0 "$1" 2>/dev/null && [ $gone -lt 30 ]; do
    if pgrep -r R,S,D,T -P "$1" >/dev/null; then gone=0; else gone=$((gone + 1)); fi
    sleep 1
  done
  [ $gone -lt 30 ] || kill -KILL "$1" 2>/dev/null
}

killed=0 finished=0 begun_anew=0 found=0 worst_ms=0
"$program" profile "${network[@]}" --json p.json >out 2>err || fail "no profile"
start=$(now_ms)
on_ranks 2
"${train[@]}" --checkpoint whole --metrics whole.json >out 2>err || fail "the undisturbed run failed"
whole_ms=$(($(now_ms) - start))
[ "$(losses_of whole.json | wc -l)" = $steps ] || fail "not $steps steps in the metrics"

# One leg, cut short after $1 ms (0: not at all). Sets code.
leg() {
  local before after begin; before=$(newest)
  on_ranks $((2 + RANDOM % 2))
  if [ -n "$before" ]; then found=$((found + 1)); else begun_anew=$((begun_anew + 1)); fi
  "${train[@]}" --checkpoint ck --resume auto --metrics run.json >out 2>err &
  local job=$! pids victim
  if [ "$1" -gt 0 ]; then
    # until then, or the end of the job
    timeout "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))" tail --pid=$job -s 0.05 -f /dev/null
    pids=($(ranks_of $job))
    victim=${pids[$((RANDOM % ranks))]:-}
    begin=$(now_ms)
    if [ -n "$victim" ] && kill -KILL "$victim" 2>/dev/null; then killed=$((killed + 1)); fi
    end_launcher $job
  fi
  wait $job; code=$?
  [ "$1" -gt 0 ] && [ "$code" != 0 ] && [ $(($(now_ms) - begin)) -gt $worst_ms ] && worst_ms=$(($(now_ms) - begin))
  after=$(newest)
  echo "a leg of $1 ms on $ranks ranks: exit code $code, newest checkpoint ${after:-none}"
  grep -q "damaged\|can't be used" err && fail "a checkpoint was found damaged"
  [[ ! "$after" < "$before" ]] || fail "the newest checkpoint was $before and is $after"
  [ "$code" != 0 ] || [ -z "$before" ] || grep -q "Going on from ck/$before" out || fail "$before was not gone on from"
}

check_end() {
  finished=$((finished + 1))
  [ -n "$(state_of whole.json)" ] && [ "$(state_of run.json)" = "$(state_of whole.json)" ] ||
    fail "the state is '$(state_of run.json)', not '$(state_of whole.json)'"
  cmp <(losses_of run.json) <(losses_of whole.json) || fail "other losses"
  rm -rf ck run.json
}

while [ $killed -lt "$kills" ]; do
  leg $((1 + (RANDOM * 32768 + RANDOM) % whole_ms))
  [ "$code" = 0 ] && check_end
done
leg 0
[ "$code" = 0 ] || fail "exit code $code though nobody was killed"
check_end
echo "$killed kills; legs that went on from a checkpoint: $found, that found none yet: $begun_anew;" \
  "runs that came to their end: $finished, all with state $(state_of whole.json);" \
  "the job had ended at most $worst_ms ms after the kill; an undisturbed run takes $whole_ms ms"

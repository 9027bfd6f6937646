#!/bin/bash
# Two, three and four processes that are stopped for moments at random train with older weights what one rank
# trains that emulates their delays, under every asynchronous schedule and with every prediction.
#
#   asynchronous.sh build/antichain plain|predicted
. "$(dirname "$0")/case_in_a_folder.sh"
train=("$program" train --model resnet20 --dataset synthetic --steps 8 --lr 0.05 --profile p.json)
exec {silent}<> <(:)  # nothing comes from there

state_of() { sed -n 's/.*"state": "\([0-9a-f]*\)".*/\1/p' "$1"; }

# Sleeps for less than so many hundredths of a second, without a process that takes a core from the ranks.
pause() { read -rt "0.0$((RANDOM % $1))" -u "$silent"; }

# disturbed COMMAND…: stops one of the processes that mpirun has started, again and again.
disturbed() {
  "$@" >out 2>err &
  local job=$! ranks=()
  while kill -0 $job 2>/dev/null; do
    local rank=${ranks[RANDOM % (${#ranks[@]} + 1)]:-}
    if [ -n "$rank" ] && kill -STOP "$rank" 2>/dev/null; then
      pause 5
      kill -CONT "$rank"
    else
      mapfile -t ranks < <(pgrep -P $job)
    fi
    pause 9
  done
  wait $job
}

# compare NAME OPTION…: so many ranks as the variable `ranks` says, and one rank that emulates them
compare() {
  local name="$1 on $ranks"
  shift
  disturbed "${mpirun[@]}" -n "$ranks" "${train[@]}" "$@" --json a.json || fail "$name: $ranks ranks"
  "${train[@]}" "$@" --emulate-delays "$ranks" --json b.json >out 2>err || fail "$name: one rank"
  [ -n "$(state_of a.json)" ] && [ "$(state_of a.json)" = "$(state_of b.json)" ] || fail "$name: other weights"
}

"$program" profile --model resnet20 --batch 4 --microbatches 1 --seconds 0.05 --json p.json >out 2>err ||
  fail "no profile"
for ranks in 2 3 4; do
  plan=("$program" plan --profile p.json --stages $ranks --schedule pipedream --microbatches 1 --json plan.json)
  "${plan[@]}" >out 2>err || fail "no plan"
  one=(--batch 4 --microbatches 1 --plan plan.json)
  case $case in
    plain)
      for schedule in pipedream stale; do compare $schedule "${one[@]}" --schedule $schedule; done
      compare 2bw --batch 16 --microbatches 4 --schedule 2bw
      compare pipemare "${one[@]}" --schedule stale --delay-correction pipemare --synchronous-steps 2 ;;
    predicted)
      for method in spectrain pipeoptim xpipe momentum; do
        compare $method "${one[@]}" --schedule pipedream --predict $method
      done
      compare "momentum under 2bw" --batch 16 --microbatches 4 --schedule 2bw --predict momentum ;;
  esac
done

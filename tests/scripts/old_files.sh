#!/bin/bash
# Files that an earlier revision wrote (tests/old_files/write.sh) are read: profile, plan, schedule, weights,
# and a checkpoint after 2 of 4 steps, with which training goes on to the losses that were kept.
#
#   tests/scripts/old_files.sh TINY FOLDER
set -euo pipefail
# shellcheck source=tests/scripts/steps_in_a_folder.sh
. "$(dirname "$0")/steps_in_a_folder.sh"
tiny=$1
old=$(realpath "$2")
cd "$folder"

run "plan from the profile" "$tiny" plan --profile "$old/profile.json" --stages 2 --microbatches 4
run "the plan read" "$tiny" compare "$old/plan.json" "$old/plan.json"
for schedule in 1f1b "$old/schedule"; do
  run "simulate $(basename "$schedule")" "$tiny" simulate --profile "$old/profile.json" --plan "$old/plan.json" \
    --microbatches 4 --schedule "$schedule" --json predicted.json --write-schedule written.txt
done
diff "$old/schedule" written.txt || failed "the schedule is written in other words"
data=(--model tiny --dataset synthetic)
train=(train "${data[@]}" --batch 16 --microbatches 4 --local 2)
run "train by profile, plan and schedule" "$tiny" "${train[@]}" --steps 1 --profile "$old/profile.json" \
  --plan "$old/plan.json" --schedule "$old/schedule" --init "$old/weights.h5"
run "evaluate the weights" "$tiny" evaluate "${data[@]}" --weights "$old/weights.h5"
run "evaluate the checkpoint" "$tiny" evaluate "${data[@]}" --weights "$old/checkpoint"

# It goes on with its own options, and the losses are those of then, but for other processors' rounding.
cp -r "$old/checkpoint" .
run "resume" "$tiny" "${train[@]}" --steps 4 --profile "$old/profile.json" --plan "$old/plan.json" \
  --checkpoint checkpoint --resume auto --metrics metrics.jsonl
losses() { sed -nE 's/.*"step":([0-9]+).*"loss":([^,]+),.*/\1 \2/p' "$1"; }
join <(losses "$old/metrics.jsonl") <(losses metrics.jsonl) >both
[ "$(wc -l <both)" = 2 ] || { cat both; failed "it did not go on from step 2"; }
awk '{ apart = ($2 - $3) / $2; if (apart * apart > 1e-8) exit 1 }' both || failed "other losses: $(cat both)"
echo "the losses of then: ok"

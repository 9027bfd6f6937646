#!/bin/bash
# completion.sh FILE: bash completes the program's command lines by the file that a build has made: commands,
# options, names of values, and files. A | stands for the cursor at the end of a line.
set -uo pipefail
# shellcheck source=/dev/null
. "$1"
bad=0 folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
touch "$folder/profile.json" && mkdir "$folder/data" && cd "$folder" || exit 1

# completes LINE WORD…: these words alone may end the line.
completes() {
  COMP_LINE=${1%|} COMP_POINT=$((${#1} - 1)) COMPREPLY=()
  _antichain antichain
  local got="${COMPREPLY[*]:-}" wanted="${*:2}"
  [ "$got" = "$wanted" ] || { echo "'$1' completes to '$got', not to '$wanted'" && bad=1; }
}
# offers LINE WORD…: these words are among those that may.
offers() {
  COMP_LINE=${1%|} COMP_POINT=$((${#1} - 1)) COMPREPLY=()
  _antichain antichain
  local word
  for word in "${@:2}"; do
    [[ " ${COMPREPLY[*]:-} " == *" $word "* ]] || { echo "'$1' does not offer $word: ${COMPREPLY[*]:-}" && bad=1; }
  done
}

offers "antichain |" train data help version
completes "antichain tr|" train
completes "antichain help sim|" simulate
completes "antichain --ver|" --version
completes "antichain data |" pack tokens show batches
completes "antichain data pa|" pack
completes "antichain train --sched|" --schedule
completes "antichain train --schedule zb|" zb-h1 zb-h2 zb-v
completes "antichain train --schedule=zb-h|" zb-h1 zb-h2
offers "antichain train --schedule |" 1f1b auto profile.json
completes "antichain train --device cuda:t|" tf32
completes "antichain train --no-f|" --no-flip
completes "antichain train --batch |"
offers "antichain train --batch 8 |" --model --help-all
completes "antichain train --data-dir |" data
completes "antichain plan --profile pro|" profile.json
completes "antichain plan --at-most --obj|" --objective
completes "antichain compare pro|" profile.json
completes "antichain compare --js|" --json
completes "antichain train --results data --resu|" --resume --results
completes "antichain reference |" man markdown bash
complete -p antichain | grep -q _antichain || { echo "nothing completes antichain" && bad=1; }
exit $bad

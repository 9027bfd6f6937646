#!/bin/bash
# Runs README's own commands, as they are typed, in a folder that has what a fresh clone has after ./run.sh:
# build/antichain and docs/. Those that need the reader's data, mpirun or a cluster are left out; training
# takes 2 steps. A simulation must print what README shows, and … stands where README leaves lines out.
#
#   tests/scripts/readme.sh PROGRAM SOURCE
set -euo pipefail
program="$(readlink -f "$1")" source="$(readlink -f "$2")"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/build"
ln -s "$program" "$folder/build/antichain"
ln -s "$source/docs" "$folder/docs"
cd "$folder"
export XDG_CACHE_HOME="$folder/cache"

# Commands of the fenced blocks, a line each, continued lines joined; a shown output stands in a file beside
# its number.
awk '
  /^```/ { inside = !inside; showing = 0; next }
  !inside { next }
  /^\$ build\/antichain / { sub(/^\$ /, ""); ++count; print > "commands"; showing = count; next }
  /^build\/antichain / { ++count; line = $0; while (line ~ /\\$/) { getline rest; sub(/\\$/, "", line); line = line rest }
                         print line > "commands"; showing = 0; next }
  showing && NF && !/^…$/ { print > ("shown." showing) }
' "$source/README.md"

ran=0 number=0
while read -r command; do
  number=$((number + 1))
  command="${command%%#*}"
  case "$command" in *FOLDER* | *"-dir D"* | *doctor* | *rehearse*) continue ;; esac
  command="${command/--steps 20/--steps 2}"
  if ! bash -c "$command" >output 2>errors; then
    echo "README's command fails: $command"
    cat errors
    exit 1
  fi
  ran=$((ran + 1))
  case "$command" in *" simulate "*) ;; *) continue ;; esac
  [ -f "shown.$number" ] || continue
  while IFS= read -r line; do
    grep -qxF -- "$line" output || { echo "README shows what '$command' does not print: $line"; cat output; exit 1; }
  done <"shown.$number"
done <commands
[ "$ran" -ge 6 ] || { echo "only $ran of README's commands were run"; exit 1; }
echo "ok      $ran of README's commands"

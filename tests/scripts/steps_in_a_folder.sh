# shellcheck shell=bash disable=SC2034
# Scripts that try something step by step source this file. It sets `folder`, an empty one that is gone when
# the script ends.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed() { echo "FAILED: $*"; exit 1; }
skipped() { echo "skipped: $*"; exit 77; }

# run NAME COMMAND…: what it says goes into a file, and is shown when it fails.
run() {
  local name=$1
  shift
  "$@" >"$folder/out" 2>&1 || { tail -n 20 "$folder/out"; failed "$name"; }
  echo "$name: ok"
}

#!/bin/bash
# However the emulated cluster ends, nothing of it stays: no process, and no file where it had them.
#
#   killed.sh TERM|KILL
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
coproc cluster { exec "$here/cluster.sh" bash -c 'echo ready && sleep 1000'; }
# shellcheck disable=SC2154 # coproc assigns it
top=$cluster_PID
if ! read -r line <&"${cluster[0]}" || [ "$line" != ready ]; then
  wait "$top"
  code=$?
  echo "${line:-no word from the cluster}"
  exit $code
fi

descendants() {
  local child
  for child in $(pgrep -P "$1"); do
    echo "$child"
    descendants "$child"
  done
}
mapfile -t all < <(descendants "$top")
[ "${#all[@]}" -ge 8 ] || { echo "FAILED: only ${#all[@]} processes make the cluster"; exit 1; }
kill "-$1" "$top"
for ((i = 0; i < 50; i++)); do
  left=()
  for pid in "${all[@]}"; do [ -d "/proc/$pid" ] && left+=("$pid"); done
  [ ${#left[@]} = 0 ] && { [ ! -e /mnt/slurm.conf ] || { echo "FAILED: files are left in /mnt"; exit 1; }; exit 0; }
  sleep 0.1
done
echo "FAILED: ${#left[@]} of ${#all[@]} processes are left:"
ps -o pid,args -p "$(IFS=, && echo "${left[*]}")"
exit 1

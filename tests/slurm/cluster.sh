#!/bin/bash
# Runs a command on a Slurm cluster of two emulated nodes, which is there as long as the command: n1 and n2
# with two cores and two GPUs each, none of them real.
#
#   cluster.sh sbatch --wait -n 2 job.sh
#
# Or it begins a cluster that stays until it is ended, or whoever began it is gone, for one command after
# another:
#
#   cluster.sh --begin FILE; cluster.sh --in FILE sbatch --wait -n 2 job.sh; cluster.sh --end FILE
#
# It needs only root and Debian's slurm-wlm, munge and iproute2. The cluster lives in namespaces of its own
# (processes, files, host names, network), so it meets nothing of this machine's, several may run at once, and
# however its first process ends, SIGKILL included, the kernel ends all others and drops the files, which are
# in memory. A node is one more namespace: its own host name and its own /dev/shm, where Open MPI keeps what
# the ranks of one node share.
#
# The command's environment has SLURM_CONF, and CLUSTER, a folder that all nodes see. Where this machine can't
# do it, the script ends with exit code 77 and a sentence.
set -uo pipefail
nodes=2 cores=2 gpus=2 network=10.77.0

cannot() { echo "no Slurm cluster here: $*"; exit 77; }

outside() {
  [ "$(id -u)" = 0 ] || cannot "that takes root"
  for program in slurmctld slurmd sbatch munged ip; do
    command -v "$program" >/dev/null || cannot "$program is missing (Debian: slurm-wlm munge iproute2)"
  done
  local own=(unshare --mount --uts --ipc --net --pid --fork --kill-child --mount-proc)
  "${own[@]}" true 2>/dev/null || cannot "the system lets nobody make namespaces (in a container: CAP_SYS_ADMIN)"
  setpriv --pdeathsig KILL "${own[@]}" "$0" --inside "$@" &
  cluster=$!
  trap 'kill -KILL $cluster 2>/dev/null' EXIT
  trap 'exit 143' TERM INT HUP
  wait "$cluster"
}

# FILE has the ids of the script that stays and of the first process within; beside it is what was said.
begin() {
  rm -f "$1" "$1.said"
  setsid "$0" bash -c 'echo ready && exec sleep infinity' >"$1.said" 2>&1 </dev/null &
  local cluster=$!
  until grep -qsx ready "$1.said"; do
    kill -0 $cluster 2>/dev/null || { wait $cluster; code=$?; cat "$1.said"; exit $code; }
    sleep 0.1
  done
  echo "$cluster $(pgrep -P "$(pgrep -P $cluster)")" >"$1"
  setsid bash -c "while kill -0 $cluster; do kill -0 $PPID || kill $cluster; sleep 1; done" >/dev/null 2>&1 </dev/null &
}

within() {
  local first
  [ -r "$1" ] || { cat "$1.said"; exit 77; }
  read -r _ first <"$1"
  exec nsenter --target "$first" --mount --uts --ipc --net --pid env CLUSTER=/mnt SLURM_CONF=/mnt/slurm.conf "${@:2}"
}

end() {
  [ ! -r "$1" ] || kill "$(cut -d ' ' -f 1 "$1")"
  rm -f "$1" "$1.said"
}

write_configuration() {
  mkdir -p "$CLUSTER"/{state,log,pid,gpu}
  for ((i = 1; i <= nodes; i++)); do mkdir -p "$CLUSTER"/{spool,tmp}/n$i; done
  for ((i = 0; i < gpus; i++)); do mknod "$CLUSTER/gpu/nvidia$i" c 1 3; done
  { echo "127.0.0.1 localhost"; echo "$network.1 head"; for ((i = 1; i <= nodes; i++)); do echo "$network.1$i n$i"; done; } >"$CLUSTER/hosts"
  echo "NodeName=n[1-$nodes] Name=gpu File=$CLUSTER/gpu/nvidia[0-$((gpus - 1))]" >"$CLUSTER/gres.conf"
  # cred_expire: a job that is requeued begins again after so many seconds, 120 if nothing is said. linuxproc,
  # task/none: no control groups. TmpFS: PMIx keeps its files there, a folder for each node.
  cat >"$CLUSTER/slurm.conf" <<CONF
ClusterName=testbed
SlurmctldHost=head($network.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$CLUSTER/munge.socket,cred_expire=5
StateSaveLocation=$CLUSTER/state
SlurmdSpoolDir=$CLUSTER/spool/%n
TmpFS=$CLUSTER/tmp/%n
SlurmctldPidFile=$CLUSTER/pid/slurmctld
SlurmdPidFile=$CLUSTER/pid/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$CLUSTER/log/jobs
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
KillWait=5
JobRequeue=1
GresTypes=gpu
NodeName=n[1-$nodes] NodeHostname=head NodeAddr=n[1-$nodes] Port=[6901-$((6900 + nodes))] CPUs=$cores Sockets=1 CoresPerSocket=$cores ThreadsPerCore=1 RealMemory=4000 Gres=gpu:$gpus State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=01:00:00 State=UP
CONF
}

# Interfaces that lead nowhere but to each other, because neither Slurm nor Open MPI takes the loopback's
# addresses.
start_network() {
  ip link set lo up && ip link add name net0 type veth peer name net1 &&
    ip link set net0 up && ip link set net1 up && ip address add $network.1/24 dev net0 || return
  for ((i = 1; i <= nodes; i++)); do ip address add "$network.1$i/24" dev net0 || return; done
}

start_munge() {
  head -c 1024 /dev/urandom >"$CLUSTER/munge.key"
  chmod 400 "$CLUSTER/munge.key"
  munged --force --socket="$CLUSTER/munge.socket" --key-file="$CLUSTER/munge.key" --pid-file="$CLUSTER/pid/munged" \
    --log-file="$CLUSTER/log/munged" --seed-file="$CLUSTER/munge.seed" >"$CLUSTER/log/munged.out" 2>&1
}

start_node() {
  unshare --mount --uts --propagation private bash -c "
    hostname $1 && mount -t tmpfs shm /dev/shm && mount --bind $CLUSTER/hosts /etc/hosts && exec slurmd -D -N $1" \
    >"$CLUSTER/log/$1" 2>&1 </dev/null &
}

inside() {
  export CLUSTER=/mnt SLURM_CONF=/mnt/slurm.conf
  { mount -t tmpfs -o size=2g,mode=755 cluster "$CLUSTER" && hostname head && start_network; } ||
    cannot "the system refuses what the namespaces need"
  write_configuration
  mount --bind "$CLUSTER/hosts" /etc/hosts
  start_munge || { cat "$CLUSTER"/log/munged*; exit 1; }
  slurmctld -D -c >"$CLUSTER/log/slurmctld" 2>&1 </dev/null &
  for ((i = 1; i <= nodes; i++)); do start_node "n$i"; done
  for ((i = 0; i < 200; i++)); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = "$nodes" ] && { "$@"; exit; }
    sleep 0.1
  done
  echo "the cluster did not come up:"
  tail -n 5 "$CLUSTER"/log/*
  exit 1
}

case ${1:-} in
  --inside) inside "${@:2}" ;;
  --begin) begin "$2" ;;
  --in) within "${@:2}" ;;
  --end) end "$2" ;;
  *) outside "$@" ;;
esac

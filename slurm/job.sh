# shellcheck shell=bash
# The batch scripts share this file: it has the cluster's settings, starts ranks, and says what happens when
# the time is over.
#
# Some time before the limit Slurm sends SIGUSR1 to the batch script, which passes it on: the ranks save, all
# at the same step, and end with code 85. Then the job puts itself into the queue again, and the next start
# goes on there.
set -uo pipefail
ANTICHAIN=antichain LAUNCHER=srun SRUN_MPI=pmix LAUNCH_OPTIONS=() CPUS_PER_TASK=1 GPUS_PER_TASK=0 GPU_BIND=none
# shellcheck source=example.env
. "$ANTICHAIN_CLUSTER"
export OMP_NUM_THREADS="$CPUS_PER_TASK"
stopped=85

# The folder of an array is that of all its tasks.
results=${RESULTS:-$SLURM_SUBMIT_DIR/$SLURM_JOB_NAME-${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}}
mkdir -p "$results" || exit 3

# Each rank has cores of its own. A GPU's rank has threads beside the one that computes, so it is bound to
# cores only if it has enough of them.
gpus=$([ "$GPUS_PER_TASK" = 0 ] || echo yes) bound=yes
if [ -n "$gpus" ] && [ "$CPUS_PER_TASK" -lt 4 ]; then bound=""; fi

# A rank takes the GPU of its number on the node, and reaches its neighbours' by NVLink only where it sees
# them. So every srun is given the node's GPUs, and none is told of a task's, which would bind each task to
# its own (--gpu-bind=none would undo that, but Slurm then no longer names the job's GPUs to the tasks, and
# they see those of other jobs where control groups don't hide them). GPU_BIND binds them all the same. mpirun
# starts a process on each node by an srun of its own; Open MPI 5 reads the second name.
if [ -n "$gpus" ]; then
  unset SLURM_GPUS_PER_TASK SLURM_TRES_PER_TASK
  export OMPI_MCA_plm_slurm_args="--gres=gpu:$SLURM_GPUS_ON_NODE"
  export PRTE_MCA_plm_slurm_args=$OMPI_MCA_plm_slurm_args
fi
case $LAUNCHER in
  srun)
    launcher=(srun "--mpi=$SRUN_MPI" "--cpus-per-task=$CPUS_PER_TASK" --kill-on-bad-exit=1)
    if [ -n "$bound" ]; then launcher+=(--cpu-bind=cores); else launcher+=(--cpu-bind=none); fi
    [ -z "$gpus" ] || launcher+=("--gres=gpu:$SLURM_GPUS_ON_NODE")
    [ -z "$gpus" ] || [ "$GPU_BIND" = none ] || launcher+=("--gpu-bind=$GPU_BIND")
    ;;
  mpirun)
    launcher=(mpirun --map-by "slot:PE=$CPUS_PER_TASK" --bind-to core)
    [ -n "$bound" ] || launcher=(mpirun --map-by slot --bind-to none)
    unset SLURM_CPUS_PER_TASK
    ;;
  *) echo "LAUNCHER is $LAUNCHER in $ANTICHAIN_CLUSTER, but must be srun or mpirun" && exit 2 ;;
esac
launcher+=("${LAUNCH_OPTIONS[@]}")

# run WORDS…: passes SIGUSR1 on; SIGTERM, with which a job is cancelled or pushed out, goes to the ranks by
# itself.
run() {
  local told="" cancelled="" code
  echo "== start $((${SLURM_RESTART_COUNT:-0} + 1)) of job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, $(date '+%F %T'): $*"
  "$@" &
  local child=$!
  trap 'told=1 && kill -USR1 "$child"' USR1
  trap 'told=1 cancelled=1' TERM
  wait "$child"
  code=$?
  while [ -n "$told" ]; do # it was the signal that ended the wait
    told=""
    wait "$child"
    code=$?
  done
  trap - USR1 TERM
  if [ "$code" = "$stopped" ] && [ -z "$cancelled" ]; then
    echo "== everything is saved: the job queues up again"
    scontrol requeue "$SLURM_JOB_ID" || echo "== that was refused: submit it again with RESULTS=$results"
  fi
  return "$code"
}

# run_ranks WORDS…: one rank for each of the job's tasks.
run_ranks() { run "${launcher[@]}" -n "$SLURM_NTASKS" "$ANTICHAIN" "$@"; }

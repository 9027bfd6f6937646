# shellcheck shell=bash
# What the batch scripts share: the cluster's settings, how ranks are started, and what happens when the time is over.
#
# Some time before the limit Slurm sends SIGUSR1 to the batch script, which passes it on: the ranks save, all at the same step, and
# end with code 85. Then the job puts itself into the queue again, and the next start goes on there.
set -uo pipefail
ANTICHAIN=antichain LAUNCHER=srun SRUN_MPI=pmix LAUNCH_OPTIONS=() CPUS_PER_TASK=1 GPUS_PER_TASK=0
# shellcheck source=example.env
. "$ANTICHAIN_CLUSTER"
export OMP_NUM_THREADS="$CPUS_PER_TASK"
stopped=85

# The folder of an array is that of all its tasks.
results=${RESULTS:-$SLURM_SUBMIT_DIR/$SLURM_JOB_NAME-${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}}
mkdir -p "$results" || exit 3

# Each rank on cores of its own, and with GPUs on one: with srun it sees no other. mpirun starts a process on each node by srun,
# which would get the GPUs of one task only; given the node's, its ranks see all of them and take one each.
case $LAUNCHER in
  srun)
    launcher=(srun "--mpi=$SRUN_MPI" "--cpus-per-task=$CPUS_PER_TASK" --cpu-bind=cores --kill-on-bad-exit=1)
    [ "$GPUS_PER_TASK" = 0 ] || launcher+=("--gpus-per-task=$GPUS_PER_TASK")
    ;;
  mpirun)
    launcher=(mpirun --map-by "slot:PE=$CPUS_PER_TASK" --bind-to core)
    unset SLURM_CPUS_PER_TASK
    [ "$GPUS_PER_TASK" = 0 ] || export OMPI_MCA_plm_slurm_args="--gres=gpu:$SLURM_GPUS_ON_NODE"
    ;;
  *) echo "LAUNCHER is $LAUNCHER in $ANTICHAIN_CLUSTER, but must be srun or mpirun" && exit 2 ;;
esac
launcher+=("${LAUNCH_OPTIONS[@]}")

# run WORDS…: passes SIGUSR1 on; SIGTERM, with which a job is cancelled or pushed out, goes to the ranks by itself.
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

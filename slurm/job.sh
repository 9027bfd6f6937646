# shellcheck shell=bash
# The batch scripts share this file: it has the cluster's settings, starts ranks, and says what happens when
# the time is over.
#
# Some time before the limit Slurm sends SIGUSR1 to the batch script, which passes it on: the ranks save, all
# at the same step, and end with code 85. Then the job puts itself into the queue again, and the next start
# goes on there. The signal may come at any time, the first moment included.
#
# submit.sh runs the scripts, too, with ANTICHAIN_DRY_RUN set: then the program checks its options, and
# nothing else happens.
told=""
trap 'told=1' USR1
set -uo pipefail
ANTICHAIN=antichain PYTHON=python3 LAUNCHER=srun SRUN_MPI=pmix LAUNCH_OPTIONS=()
CPUS_PER_TASK=1 GPUS_PER_TASK=0 GPU_BIND=none
# shellcheck source=example.env
. "$ANTICHAIN_CLUSTER"
export OMP_NUM_THREADS="$CPUS_PER_TASK"
stopped=85
# A site or an option may have sbatch hand nothing on; what is set here is for the ranks.
export SLURM_EXPORT_ENV=ALL

# The folder of an array is that of all its tasks.
results=${RESULTS:-$SLURM_SUBMIT_DIR/$SLURM_JOB_NAME-${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}}
[ -n "${ANTICHAIN_DRY_RUN:-}" ] || mkdir -p -- "$results" || exit 3

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
  export OMPI_MCA_plm_slurm_args="--gres=gpu:${SLURM_GPUS_ON_NODE:-}"
  export PRTE_MCA_plm_slurm_args=$OMPI_MCA_plm_slurm_args
fi
case $LAUNCHER in
  srun)
    launcher=(srun "--mpi=$SRUN_MPI" "--cpus-per-task=$CPUS_PER_TASK" --kill-on-bad-exit=1)
    if [ -n "$bound" ]; then launcher+=(--cpu-bind=cores); else launcher+=(--cpu-bind=none); fi
    [ -z "$gpus" ] || launcher+=("--gres=gpu:${SLURM_GPUS_ON_NODE:-}")
    [ -z "$gpus" ] || [ "$GPU_BIND" = none ] || launcher+=("--gpu-bind=$GPU_BIND")
    ;;
  mpirun)
    launcher=(mpirun --map-by "slot:PE=$CPUS_PER_TASK" --bind-to core)
    [ -n "$bound" ] || launcher=(mpirun --map-by slot --bind-to none)
    unset SLURM_CPUS_PER_TASK
    ;;
  *) echo "LAUNCHER is $LAUNCHER in $ANTICHAIN_CLUSTER, but must be srun or mpirun" >&2 && exit 2 ;;
esac
launcher+=("${LAUNCH_OPTIONS[@]}")

# Whoever can't catch the signal yet must not be ended by it: the launcher and the ranks begin by ignoring it.
# shellcheck disable=SC2016 # meant for the rank
deaf=(bash -c 'trap "" USR1; exec "$@"' deaf)

# Tells the child every second, because it may have begun to listen only now.
tell() {
  [ -z "$teller" ] || return
  while sleep 1 && kill -USR1 "$child" 2>/dev/null; do :; done &
  teller=$!
}

# run WORDS…: passes SIGUSR1 on; SIGTERM, with which a job is cancelled or pushed out, goes to the ranks by
# itself.
run() {
  local woken="" cancelled="" teller="" child code
  if [ -n "${ANTICHAIN_DRY_RUN:-}" ]; then
    "$@" --dry-run
    return
  fi
  echo "== start $((${SLURM_RESTART_COUNT:-0} + 1)) of job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, $(date '+%F %T'): $*"
  (trap "" USR1 && exec "$@") &
  child=$!
  trap 'woken=1 && tell' USR1
  trap 'woken=1 cancelled=1' TERM
  [ -z "$told" ] || tell
  wait "$child"
  code=$?
  while [ -n "$woken" ]; do # it was the signal that ended the wait
    woken=""
    wait "$child"
    code=$?
  done
  [ -z "$teller" ] || kill "$teller" 2>/dev/null
  trap "" USR1 && trap - TERM
  if [ "$code" = "$stopped" ] && [ -z "$cancelled" ]; then
    echo "== everything is saved: the job queues up again"
    scontrol requeue "$SLURM_JOB_ID" || echo "== that was refused: submit it again with RESULTS=$results"
  fi
  return "$code"
}

# run_ranks WORDS…: one rank for each of the job's tasks. Slurm counts them only where it was told how many;
# else each node has one.
run_ranks() {
  local ranks=("${launcher[@]}" -n "${SLURM_NTASKS:-${SLURM_JOB_NUM_NODES:-1}}" "${deaf[@]}")
  [ -z "${ANTICHAIN_DRY_RUN:-}" ] || ranks=()
  run "${ranks[@]}" "$ANTICHAIN" "$@"
}

# run_experiments WORDS…: by the Python package of this repository, or of the installation that has this file.
run_experiments() {
  local packages=$ANTICHAIN_SLURM/../app/python:$ANTICHAIN_SLURM/../../../lib/python3/dist-packages
  run env PYTHONPATH="$packages${PYTHONPATH:+:$PYTHONPATH}" "$PYTHON" -m antichain.experiments "$@"
}

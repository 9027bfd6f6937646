#!/bin/bash
# Submits a job.
#
#   slurm/submit.sh CLUSTER.env JOB [options of sbatch] -- [options of antichain]
#
#   slurm/submit.sh my.env profile  -n 2 -- --model resnet18 --batch 128 --microbatches 8
#   slurm/submit.sh my.env train    -n 4 -- --model resnet18 --data-dir D --batch 128 --microbatches 8
#                                   --epochs 30
#   slurm/submit.sh my.env evaluate -n 4 -- --model resnet18 --data-dir D --weights
#   antichain-train-4711/checkpoint
#   slurm/submit.sh my.env sweep    -n 4 -- --models resnet18,vgg16 --ranks 1,2,4 --mode measure --data-dir D
#
# The results lie in the folder JOBNAME-JOBID, or in RESULTS=FOLDER, and the log lies beside it. A sweep is an
# array with a task for each model, and a job that writes one report when all have ended.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

usage() {
  sed -n '2,/^set/{/^#/!d;s/^# \{0,1\}//;p}' "$0"
  [ $# = 0 ] || echo "submit.sh: $*" >&2
  exit 2
}
[ $# -ge 2 ] || usage
[ -r "$1" ] || usage "there is no file $1"
[[ $2 != */* && -r "$here/$2.sbatch" ]] || usage "there is no job $2"
ANTICHAIN_CLUSTER=$(realpath "$1") job=$2 ANTICHAIN_SLURM=$here
[ -z "${RESULTS:-}" ] || RESULTS=$(realpath -m -- "$RESULTS")
export ANTICHAIN_CLUSTER ANTICHAIN_SLURM RESULTS
shift 2
options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1") && shift; done
[ $# = 0 ] || shift
ANTICHAIN=antichain SBATCH_OPTIONS=() SIGNAL_BEFORE_END=120 GPUS_PER_TASK=0
# shellcheck source=example.env
. "$ANTICHAIN_CLUSTER"

# never_starts REASON: Slurm holds a job with such a reason until somebody changes the job or the cluster.
never_starts() {
  case $1 in
    PartitionDown | PartitionInactive) false ;;
    Partition* | BadConstraints | Invalid* | *NotAllowed | *PerJob*) true ;;
    *) false ;;
  esac
}

# refuse_if_never JOB: waits until Slurm has looked at the job, three seconds at most, and ends with a
# sentence if the job can never start.
refuse_if_never() {
  local reason="" tries asked partition
  for tries in {1..10}; do
    reason=$(squeue -h -j "$1" -t PENDING -o %r 2>/dev/null | head -n 1)
    if [ "$reason" != None ] && [ "$reason" != Priority ]; then break; fi
    [ "$tries" = 10 ] || sleep 0.3
  done
  never_starts "$reason" || return 0
  read -r partition asked <<<"$(squeue -h -j "$1" -o "%P %D nodes, %C cores, a time limit of %l" | head -n 1)"
  scancel "$1"
  echo "submit.sh: job $1 was cancelled because it can never start ($reason): it asks for $asked;" \
    "partition $partition has $(sinfo -h -p "$partition" -o "%D nodes of %c cores, a time limit of %l" | head -n 1)." \
    "Change CPUS_PER_TASK or SBATCH_OPTIONS in $ANTICHAIN_CLUSTER, or the options before --." >&2
  exit 1
}

# check JOB WORDS…: the program checks its options now, not after the wait in the queue. Where it can't run
# here, nothing can be said.
check() {
  local code=0
  ANTICHAIN_DRY_RUN=yes RESULTS=${RESULTS:-$PWD/antichain-$1} bash "$here/$1.sbatch" "${@:2}" >/dev/null || code=$?
  case $code in
    0) ;;
    12[67] | 1[3-9]? | 2??) echo "submit.sh: the options are not checked: $ANTICHAIN does not run here" >&2 ;;
    *) echo "submit.sh: nothing was submitted" >&2 && exit "$code" ;;
  esac
}

# script JOB WORDS…: prints the job's script. What it has to know is written into it, because a site or an
# option may have sbatch hand no environment on.
script() {
  local line name
  while IFS= read -r line; do
    if [[ $line == ". "* ]]; then
      for name in ANTICHAIN_CLUSTER ANTICHAIN_SLURM ANTICHAIN_MODELS RESULTS; do
        [ -z "${!name:-}" ] || printf 'export %s=%q\n' "$name" "${!name}"
      done
      printf 'set --%s\n' "$([ $# = 1 ] || printf ' %q' "${@:2}")"
    fi
    printf '%s\n' "$line"
  done <"$here/$1.sbatch"
}

# submit JOB WORDS…: prints the job's number.
submit() {
  local resources=(--cpus-per-task="${CPUS_PER_TASK:-1}") id
  [ "${GPUS_PER_TASK:-0}" = 0 ] || resources+=(--gpus-per-task="$GPUS_PER_TASK")
  id=$(sbatch --parsable --signal="B:USR1@$SIGNAL_BEFORE_END" "${resources[@]}" "${SBATCH_OPTIONS[@]}" "${options[@]}" \
    "${more[@]}" <<<"$(script "$@")" | cut -d ';' -f 1)
  refuse_if_never "$id"
  echo "$id"
}

more=()
if [ "$job" != sweep ]; then
  check "$job" "$@"
  submit "$job" "$@"
  exit
fi

# The array's tasks are the models: what the sweep is told, but for one of them each.
models="alexnet,densenet121,inception_v3,resnet18,resnet50,resnet101,resnext50,resnext101,squeezenet1_0,vgg16"
words=()
while [ $# -gt 0 ]; do
  case $1 in
    --models) [ $# -gt 1 ] || usage "--models has no value"; shift && models=$1 ;;
    --models=*) models=${1#*=} ;;
    --out | --out=* | --launcher | --launcher=*) usage "${1%%=*} is the job's affair: RESULTS=FOLDER names the folder" ;;
    *) words+=("$1") ;;
  esac
  shift
done
[ "$models" != all ] || usage "--models all is what you get without --models"
[[ $models =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]*(,[A-Za-z0-9_][A-Za-z0-9_.-]*)*$ ]] || usage "--models takes names with a comma between them, not '$models'"
export ANTICHAIN_MODELS=$models
IFS=, read -ra list <<<"$models"
check sweep "${words[@]}"
more=(--array="0-$((${#list[@]} - 1))")
array=$(submit sweep "${words[@]}")
more=(--dependency="afterany:$array" --ntasks=1)
export RESULTS=${RESULTS:-$PWD/antichain-sweep-$array}
report=$(submit report)
echo "$array $report"

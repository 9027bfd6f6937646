#!/bin/bash
# What surrounds the program may be in a bad state. The results are then the same, bit for bit, or one
# sentence says what is wrong.
#
#   environment.sh build/antichain
#   stdin|stdout|stderr|warnings|full|gone|paused|locale|readonly|memory|settings|version|slurm|nan|doctor
. "$(dirname "$0")/case_in_a_folder.sh"
network=(--model resnet20 --batch 16 --microbatches 4)
train=("$program" train "${network[@]}" --dataset synthetic --steps 3 --profile p.json)

expect_once() { [ "$(grep -c "$1" err)" = 1 ] || fail "not once in standard error: $1"; }
expect_quiet() { grep -vE 'share .* core|had no core' err | grep -q . && fail "something was said"; return 0; }
state_of() { sed -n 's/.*"state": "\([0-9a-f]*\)".*/\1/p' "$1"; }
expect_same_results() { [ -n "$(state_of a.json)" ] && [ "$(state_of a.json)" = "$(state_of b.json)" ] || fail "other results"; }

"$program" profile "${network[@]}" --json p.json >out 2>err || fail "no profile"
case $case in
  stdin | stdout | stderr | full | gone | paused | locale | readonly)
    "${train[@]}" --local 2 --json a.json >out 2>err || fail "the undisturbed run failed" ;;&
  stdin) "${train[@]}" --local 2 --json b.json <&- >out 2>err; code=$?; expect_code 0; expect_quiet ;;
  stdout) "${train[@]}" --local 2 --json b.json >&- 2>err; code=$?; expect_code 0; expect_quiet ;;
  stderr) "${train[@]}" --local 2 --json b.json >out 2>&-; code=$?; expect_code 0 ;;
  warnings)  # that can't be written: the disk is full, the reader has gone, or there is no standard error
    longer=("$program" train "${network[@]}" --dataset synthetic --profile p.json --local 2 --lr-schedule cosine --steps)
    "${longer[@]}" 3 --checkpoint ck >out 2>err || fail "no checkpoint"
    "${longer[@]}" 5 --resume ck --json a.json >out 2>err || fail "the undisturbed run failed"
    expect_once "warning: the learning rate's course was to have 3 steps"
    "${longer[@]}" 5 --resume ck --json b.json >out 2>/dev/full; code=$?; expect_code 0; expect_same_results; rm b.json
    "${longer[@]}" 5 --resume ck --json b.json >out 2>&-; code=$?; expect_code 0; expect_same_results; rm b.json
    { "${longer[@]}" 5 --resume ck --json b.json 2>&1 >out; echo $? >code; } | true
    code=$(cat code); expect_code 0; expect_same_results
    { "${longer[@]}" 5 --resume nowhere 2>&1 >out; echo $? >code; } | true; code=$(cat code); expect_code 3 ;;
  full)
    "${train[@]}" --local 2 --json b.json >/dev/full 2>err; code=$?
    expect_code 3; expect_once "standard output is lost (No space left on device)" ;;
  gone)
    { "${train[@]}" --local 2 --json b.json 2>err; echo $? >code; } | true
    code=$(cat code); expect_code 0; expect_quiet
    "$program" info --model resnet20 | head -1 >out 2>err; code=${PIPESTATUS[0]}; expect_code 0; expect_quiet ;;
  paused)  # the pipe is full and nobody reads for longer than the watchdog's limit: that is nobody's fault
    { head -c 65536 /dev/zero; "${train[@]}" --local 2 --watchdog $unit_s --json b.json 2>err; echo $? >code; } |
      { sleep $((4 * unit_s)); cat >out; }
    code=$(cat code); expect_code 0; expect_quiet
    grep -aq "Final state" out || fail "what was printed is lost" ;;
  locale)
    mkdir locales
    localedef -i de_DE -f UTF-8 locales/de_DE.UTF-8 >/dev/null 2>&1 || { echo "no locale to test with"; exit 0; }
    LOCPATH=$folder/locales LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 "${train[@]}" --local 2 --lr 0.0375 --json b.json >out 2>err
    code=$?; expect_code 0; expect_quiet ;;
  readonly)  # /proc takes no files, whoever asks: as the folder it runs in, and as the place for each thing it writes
    train=("$program" train "${network[@]}" --dataset synthetic --steps 3 --profile "$folder/p.json" --local 2)
    (cd /proc && exec "${train[@]}" --json "$folder/b.json") >out 2>err; code=$?; expect_code 0; expect_quiet
    for option in --checkpoint --metrics --trace --json; do
      "${train[@]}" $option /proc/nowhere >out 2>err; code=$?
      expect_code 3; expect_once "^antichain: .*/proc"; grep -q "step 1/" out && fail "it began all the same"
    done
    XDG_CACHE_HOME=/proc/nowhere HOME=/proc/nowhere "${train[@]}" >out 2>err; code=$?
    expect_code 3; expect_once "^antichain: .*/proc" ;;
  memory)  # what was estimated for each process, over the memory it took at most
    mkdir data
    for i in $(seq 64); do printf '\3'; head -c 3072 /dev/urandom; done | tee data/data_batch_1.bin >data/test_batch.bin
    large=(--model resnet18 --batch 32 --microbatches 4)
    "$program" profile "${large[@]}" --json p.json >out 2>err || fail "no profile"
    large+=(--data-dir data --profile p.json --method handsplit --cuts layer3.0.conv2)  # whatever times are
    compare() {  # PROCESSES OPTION … of train
      local processes=$1; shift
      "${mpirun[@]}" -n "$processes" "$program" train --steps 2 --epochs 1 --lr 0.001 --json m.json "$@" \
        >out 2>err; code=$?
      expect_code 0
      pairs=$(tr -d ' \n' <m.json | grep -o '"estimated_bytes":[0-9]*,"measured_bytes":[0-9]*' | tr -c '0-9\n' ' ')
      [ "$(wc -l <<<"$pairs")" = "$processes" ] || fail "not $processes processes: $pairs"
      while read -r estimated measured; do
        echo "estimated $estimated bytes, measured $measured with $*"
        [ $((10 * estimated)) -ge $((9 * measured)) ] && [ $((10 * estimated)) -le $((11 * measured)) ] ||
          fail "the estimate is off by more than a tenth with $*: $estimated, $measured"
      done <<<"$pairs"
    }
    compare 2 "${large[@]}" --optimiser sgd --results sgd
    compare 2 "${large[@]}" --optimiser adamw --ema 0.9
    "$program" data tokens --text "$0" --out tokens.h5 >out 2>err || fail "no tokens"
    compare 1 --model gpt_nano --dataset hdf5:tokens.h5 --batch 64 --microbatches 4 --recompute all ;;
  settings)
    "${mpirun[@]}" -n 2 "${train[@]}" --lr 0.3 : -n 1 "${train[@]}" --lr 0.2 >out 2>err; code=$?
    expect_code 2; expect_once "rank 2 was started with --lr 0.2, the others with --lr 0.3" ;;
  version)  # the same program, but for the number in its library
    library=$(ldd "$program" | sed -n 's/.*\(libantichain[^ ]*\) => \([^ ]*\).*/\1 \2/p')
    number=$("$program" --version | grep -o '[0-9.]*$')
    mkdir other
    sed "s/$number\x00/${number%?}X\x00/g" <"${library#* }" >"other/${library% *}"
    [ "$(LD_PRELOAD="$folder/other/${library% *}" "$program" --version)" != "$("$program" --version)" ] || fail "the version is the same"
    "${mpirun[@]}" -n 2 "${train[@]}" : -n 1 env LD_PRELOAD="$folder/other/${library% *}" "${train[@]}" >out 2>err; code=$?
    expect_code 3; expect_once "the program is antichain ${number%?}X .*on rank 2 (.*), but antichain $number .*on the others" ;;
  slurm)
    SLURM_JOB_ID=1 SLURM_NTASKS=4 "${train[@]}" >out 2>err; code=$?
    expect_code 2; expect_once "srun --mpi=pmix -n 4"
    SLURM_JOB_ID=1 SLURM_NTASKS=4 "${train[@]}" --local 2 >out 2>err; code=$?; expect_code 0 ;;
  nan)  # the sentence once, the code through mpirun, nothing left behind
    ANTICHAIN_FAULT=nan:rank=1:step=1:microbatch=2:activation:layer3.2.conv2 \
      "${mpirun[@]}" -n 2 "${train[@]}" >out 2>err; code=$?
    expect_code 6; expect_once "step 2, micro-batch 2: the output of node layer3.2.conv2 (rank 1) is not finite"
    expect_no_shared_memory_left ;;
  doctor)
    "$program" doctor --checkpoint . --json d.json >out 2>err; code=$?; expect_code 0
    "${mpirun[@]}" -n 3 "$program" doctor --checkpoint /proc/nowhere --json d.json >out 2>err; code=$?
    expect_code 3; grep -q "can't write to /proc:" out || fail "not found: $(cat out)"
    grep -q '"health": "problem"' d.json || fail "not written" ;;
  *) fail "there is no case $case" ;;
esac
case $case in stdin | stdout | stderr | full | gone | paused | locale | readonly) expect_same_results ;; esac
exit 0

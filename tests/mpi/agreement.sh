#!/bin/bash
# Ranks that would not compute the same together are refused before the first step, in one sentence that names
# the odd one.
#
#   agreement.sh build/antichain instructions|revision|data
. "$(dirname "$0")/case_in_a_folder.sh"
network=(--model resnet20 --batch 16 --microbatches 4 --steps 2 --lr 0.1)

expect_refused() {  # what the sentence says
  [ "$code" = 3 ] || fail "exit code $code instead of 3 where this was to be said: $1"
  [ "$(grep -c "$1" err)" = 1 ] || fail "not once in standard error: $1"
  grep -q "step 1/" out && fail "it began all the same"
  return 0
}
state_of() { sed -n 's/.*"state": "\([0-9a-f]*\)".*/\1/p' "$1"; }

# images FOLDER COUNT: a folder of CIFAR-10's layout, the same bytes for the same count.
images() {
  mkdir -p "$1"
  { for i in $(seq "$2"); do printf "\\$(printf %03o $((i % 10)))"; yes "image $i" | head -c 3072; done; } >"$1/data_batch_1.bin"
  head -c $((3073 * 16)) "$1/data_batch_1.bin" >"$1/test_batch.bin"
}

# profile OPTIONS…: p.json, sooner measured than by train itself.
profile() { "$program" profile --model resnet20 --batch 16 --microbatches 4 --seconds 0.05 --json p.json "$@" >out 2>err || fail "no profile"; }

case $case in
  instructions)
    [ "$(uname -m)" = x86_64 ] || { echo "SKIPPED: this is about instruction sets of x86-64"; exit 77; }
    images data 64
    train=("$program" train "${network[@]}" --data-dir data)
    "${mpirun[@]}" -n 1 "${train[@]}" : -n 1 env ONEDNN_MAX_CPU_ISA=SSE41 DNNL_MAX_CPU_ISA=SSE41 "${train[@]}" >out 2>err
    code=$?
    expect_refused "the instruction set is sse41 on rank 1 (.*), but a.* on the others: start every rank with --cpu-isa sse41"
    for command in profile evaluate; do  # they compute together as well
      all=("$program" $command --model resnet20 --batch 16)
      [ $command = evaluate ] && { "$program" export --model resnet20 --out w.h5 >out 2>err; all+=(--weights w.h5 --data-dir data); }
      "${mpirun[@]}" -n 1 "${all[@]}" : -n 1 env ONEDNN_MAX_CPU_ISA=SSE41 DNNL_MAX_CPU_ISA=SSE41 "${all[@]}" >out 2>err
      code=$?; expect_refused "the instruction set is sse41 on rank 1"
    done
    # With the option all take the lesser one, and compute what one rank with it does.
    profile --cpu-isa sse41
    train+=(--cpu-isa sse41 --profile p.json)
    "${train[@]}" --json alone.json >out 2>err || fail "alone: $?"
    grep -q "Every rank uses the instructions sse41" out || fail "not said: $(cat out)"
    "${mpirun[@]}" -n 1 "${train[@]}" --json together.json : \
      -n 1 env ONEDNN_MAX_CPU_ISA=AVX DNNL_MAX_CPU_ISA=AVX "${train[@]}" --json together.json >out 2>err || fail "together: $?"
    [ -n "$(state_of alone.json)" ] && [ "$(state_of alone.json)" = "$(state_of together.json)" ] || fail "other numbers" ;;
  revision)  # the same program and version, but for the revision in its library
    images data 32
    profile
    train=("$program" train "${network[@]}" --data-dir data --profile p.json)
    "${train[@]}" >out 2>err || fail "alone: $?"
    revision=$(sed -n 's/.*(revision \([^)]*\)).*/\1/p' out | head -1)
    [ -n "$revision" ] || fail "no revision in: $(cat out)"
    library=$(ldd "$program" | sed -n 's/.*\(libantichain[^ ]*\) => \([^ ]*\).*/\1 \2/p')
    mkdir other
    sed "s/$revision\x00/${revision%?}X\x00/g" <"${library#* }" >"other/${library% *}"
    "${mpirun[@]}" -n 2 "${train[@]}" : -n 1 env LD_PRELOAD="$folder/other/${library% *}" "${train[@]}" >out 2>err; code=$?
    expect_refused "the program is antichain .* (revision ${revision%?}X) on rank 2 (.*), but antichain .* (revision $revision) on the others" ;;
  data)  # the same name leads to other files on the second host, as another working folder does here
    for place in here there; do images $place/data 64; done
    profile
    train=("$program" train "${network[@]}" --data-dir data --profile "$folder/p.json")
    together() { "${mpirun[@]}" -n 1 -wdir "$folder/here" "${train[@]}" : -n 1 -wdir "$folder/there" "${train[@]}" >out 2>err; code=$?; }
    together
    [ "$code" = 0 ] || fail "equal data are refused: $code"
    images there/data 65
    together; expect_refused "the number of training images is 65 on rank 1 (.*), but 64 on the others: put the same data at data on every host"
    images there/data 64
    printf '\7' | dd of=there/data/data_batch_1.bin bs=1 seek=$((3073 * 40 + 99)) conv=notrunc status=none
    together; expect_refused "the hash of the training images and labels is .* on rank 1"
    cp here/data/data_batch_1.bin there/data
    printf '\7' | dd of=there/data/test_batch.bin bs=1 seek=$((3073 * 3)) conv=notrunc status=none
    together; expect_refused "the hash of the test images and labels is .* on rank 1"
    "$program" export --model resnet20 --out w.h5 >out 2>err
    train=("$program" evaluate --model resnet20 --data-dir data --weights "$folder/w.h5")
    together; expect_refused "the hash of the test images and labels is .* on rank 1" ;;
  *) fail "there is no case $case" ;;
esac
exit 0

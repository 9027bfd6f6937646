#!/bin/bash
# Runs run.sh on stand-ins of the program, of mpirun and of Debian's tools: which images it trains on and says
# so first, where the results are kept, what it says at its end, and that its exit code and signals are the
# training's.
#
#   tests/scripts/first_run.sh SOURCE
set -euo pipefail
source="$(readlink -f "$1")"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir bin build
cp -r "$source/run.sh" "$source/scripts" .
stand_in() { { echo '#!/bin/bash'; cat; } >"$1"; chmod +x "$1"; }
stand_in bin/cmake <<<'cat configured 2>/dev/null || true'
stand_in bin/ninja </dev/null
stand_in bin/timeout <<<'shift; exec "$@"'
stand_in bin/mpirun <<'END'
echo "mpirun: $*"
while [ "$1" != build/antichain ]; do shift; done
exec "$@"
END
stand_in bin/dpkg-query <<<'[ -e packages_lack ] || echo install ok installed'
stand_in bin/sudo <<<'exec "$@"'
stand_in bin/nvidia-smi <<<'[ -e gpu ] && echo "GPU 0: NVIDIA H100"'
stand_in bin/apt-get <<'END'
[ -e apt ] || [ -e ../../apt ] || exit 100
touch python3-sklearn_1.deb
END
stand_in bin/dpkg <<<'mkdir -p "$3/data" && touch "$3/data/digits.csv.gz"'
stand_in build/antichain <<'END'
case "$1 ${2:-}" in
  "data batches")
    [ -e cifar10 ] || echo "antichain: warning: CIFAR-10 is not here: training on generated images" >&2 ;;
  "data pack") touch "${@: -1}" ;;
  "train --help") echo help ;;
  train*)
    echo "trained: $*"
    [ ! -e refuse ] || exit 2
    if [ -e wait ]; then trap 'exit 85' TERM; touch waits; for _ in {1..300}; do sleep 0.1; done; fi
    while [ "$1" != --results ]; do shift; done
    mkdir -p "$2" && touch "$2/weights.h5" ;;
esac
END

fail() { echo "failed  $case: $1"; cat out; exit 1; }
expect() { grep -qF -- "$1" out || fail "not said: $1"; }
expect_none() { ! grep -qF -- "$1" out || fail "said: $1"; }
run() {
  local code=0
  PATH="$folder/bin:$PATH" ./run.sh "$@" >out 2>&1 || code=$?
  [ "$code" = "$expected" ] || fail "exit code $code"
}

expected=0
case="CIFAR-10 is at hand"
touch cifar10
run --epochs 2
expect "trained: train --config scripts/run.toml --results runs/1 --epochs 2"
expect "weights are in runs/1/weights.h5"
expect_none "CIFAR-10 is not"

case="the digits"
rm cifar10
touch apt
run
[ "$(sed -n '/./{p;q}' out)" = "CIFAR-10 is not here." ] || fail "not said first"
expect "trains on scikit-learn's digits"
expect "trained: train --config scripts/digits.toml --results runs/2"

case="the digits again, without apt"
rm apt
run
expect "trained: train --config scripts/digits.toml --results runs/3"

case="neither"
rm -r build/images
run
expect "So this trains on generated images"
expect "trained: train --config scripts/run.toml --results runs/4"

case="the user's images, network or folder"
for option in "--data-dir=D" "--dataset synthetic" "--model vgg16"; do
  run $option --results mine
  expect "trained: train --config scripts/run.toml $option --results mine"
  expect_none "CIFAR-10 is not here"
done
[ ! -e runs/5 ] || fail "there is a folder of no run"
run --help
[ "$(tail -n 1 out)" = help ] || fail "no help"

case="the environment's folder"
CIFAR10_DIR=D run
expect "trained: train --config scripts/run.toml --results runs/5"
expect_none "CIFAR-10 is not here"

case="a GPU and its module"
touch gpu cifar10
echo "-- CUDA module: toolkit 13.0, cuDNN 9.19.0" >configured
run --results mine
expect "mpirun: -n 2 --oversubscribe --bind-to none build/antichain train --config scripts/run.toml --device auto"
expect_none "can't be built"

case="a GPU without a module"
echo "-- CUDA module: no nvcc was found" >configured
run --results mine
expect "there is a GPU, but the CUDA module can't be built here (-- CUDA module: no nvcc was found), so this trains on the CPU"
expect "scripts/gpu_bundle.sh"
expect "mpirun: -n 2 --oversubscribe build/antichain train --config scripts/run.toml --results mine"

case="packages that apt can't reach"
touch packages_lack
expected=1 run
expect "these packages can't be installed here: build-essential"
expect "scripts/gpu_bundle.sh"
rm packages_lack gpu configured

case="a refused training"
touch cifar10 refuse
expected=2 run
expect_none "weights are in"
[ ! -e runs/6 ] || fail "there is a folder of no run"
rm refuse

case="a signal"
touch wait
PATH="$folder/bin:$PATH" ./run.sh >out 2>&1 & script=$!
for _ in {1..300}; do [ ! -e waits ] || break; sleep 0.1; done
kill -s TERM "$script"
code=0
wait "$script" || code=$?
[ "$code" = 85 ] || fail "exit code $code"
echo "ok      run.sh on stand-ins"

#!/bin/bash
# Makes the wheel (pyproject.toml) of the build without MPI that tests/scripts/without_mpi.sh kept, installs
# it into a fresh virtual environment, and tries the program and the Python package there. Nothing needs root.
# It ends with 77 where scikit-build-core or numpy can't be had from PyPI.
#
#   tests/scripts/wheel.sh build kept
set -euo pipefail
# shellcheck source=tests/scripts/steps_in_a_folder.sh
. "$(dirname "$0")/steps_in_a_folder.sh"
full=$(realpath "$1")
build=$(realpath "$2")
scripts=$(realpath "$(dirname "$0")")
source=$(realpath "$scripts/../..")
python=${PYTHON:-python3}

# 1. The wheel is made. Its build is like the other but for how the program is linked.
"$python" -c 'import ensurepip, venv' 2>/dev/null || skipped "needs Python's venv"
"$python" -m venv "$folder/tools"
pip() { timeout 300 "$folder/$1/bin/pip" --quiet --disable-pip-version-check --retries 1 --timeout 10 "${@:2}"; }
pip tools install scikit-build-core >"$folder/out" 2>&1 || skipped "needs scikit-build-core, of PyPI"
of_full() { sed -n "s/^$1:[A-Z]*=//p" "$full/CMakeCache.txt"; }
export ANTICHAIN_ALIKE=$build/alike ANTICHAIN_OBJECTS=$full CMAKE_GENERATOR
CMAKE_GENERATOR=$(of_full CMAKE_GENERATOR)
rm -f "$build/.skbuild-info.json"  # of another scikit-build-core, which would begin anew
run "the wheel" pip tools wheel "$source" --no-build-isolation --no-deps --wheel-dir "$folder" \
  --config-settings=build-dir="$build" --config-settings=cmake.build-type="$(of_full CMAKE_BUILD_TYPE)" \
  --config-settings=cmake.define.CMAKE_CXX_COMPILER_LAUNCHER="$scripts/take_object.sh"
wheel=$(echo "$folder"/antichain-*.whl)
case $wheel in *-py3-none-linux_*.whl) ;; *) failed "its name is $wheel" ;; esac

# 2. It is installed where there is nothing of this source, and no library's folder is named.
"$python" -m venv "$folder/user"
pip user install "$wheel" >"$folder/out" 2>&1 || {
  grep -qi "numpy" "$folder/out" && skipped "needs numpy, of PyPI"
  cat "$folder/out"
  failed "pip install"
}
cd "$folder"
user() { env -i HOME="$folder" PATH="$folder/user/bin:/usr/bin:/bin" "$@"; }
run "the program" user antichain --version
run "the package" user python -c 'import antichain; print(antichain.__file__)'
package=$(dirname "$(cat out)")
case $package in "$(realpath "$folder")"/user/*) ;; *) failed "the package is $package" ;; esac
# Each library that is not the C library's comes from the wheel.
ldd "$package/bin/antichain" >libraries
if grep -E "not found|libmpi" libraries; then failed "a library is absent, or MPI's"; fi
if grep "=> /" libraries | grep -vE "$package/|/lib(c|m|dl|rt|pthread|resolv)[.]so|/ld-linux"; then
  failed "libraries of the system"
fi

# 3. The program and the package work.
run "doctor" user antichain doctor
grep -q "no MPI" out || failed "doctor does not say that there is no MPI"
run "train" user antichain train --local 2 --model resnet20 --dataset synthetic --batch 8 --microbatches 2 \
  --steps 1 --metrics -
cat >try.py <<END
import antichain
profile = antichain.Profile.read("$source/docs/profiles/cpu/resnet18.json")
plan = antichain.plan(profile, stages=4)
print(antichain.simulate(profile, plan, microbatches=8))
END
run "plan and simulate in Python" user python try.py
code=0
user python3 -m antichain.experiments speedup --models resnet18 --ranks 2 --mode rehearse >out 2>&1 || code=$?
[ "$code" = 2 ] && grep -q "is built without MPI, so mpirun can't start its ranks" out || { cat out; failed "experiments"; }
study=(python3 -m antichain.experiments speedup --models resnet18 --ranks 2 --methods antichain
  --profiles "$source/docs/profiles/cpu")
run "experiments that start no rank" user "${study[@]}"
run "experiments on threads" user "${study[@]}" --mode rehearse --launcher threads
code=0
user env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 antichain profile --model resnet20 >out 2>&1 || code=$?
[ "$code $(wc -l <out)" = "2 1" ] || { cat out; failed "one of several processes is not refused in one sentence"; }
grep -q "has no MPI.*mpirun needs the native build" out || { cat out; failed "the sentence"; }
echo "one of several processes: refused"
echo "$(basename "$wheel"): $(($(stat -c %s "$wheel") >> 20)) MiB"

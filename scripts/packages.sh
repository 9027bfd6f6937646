# run.sh, test.sh and .ci/run share this file. It has the only list of the Debian packages that the project
# needs, and says how to build.
build_packages="build-essential cmake ninja-build pkg-config libopenmpi-dev openmpi-bin libdnnl-dev libhdf5-dev libeigen3-dev
  nlohmann-json3-dev libcli11-dev libfmt-dev libtomlplusplus-dev libgtest-dev libgmock-dev libxxhash-dev libjpeg-dev libpng-dev zlib1g-dev curl ca-certificates"
# Builds by clang need these as well.
clang_packages="clang libclang-rt-dev libomp-dev"
# packaging/cluster/gather.sh takes these, which consist of headers, and the sources of those, for clusters.
header_packages="libeigen3-dev nlohmann-json3-dev libcli11-dev libtomlplusplus-dev libxxhash-dev"
packages_from_source="zlib libpng1.6 libjpeg-turbo fmtlib hdf5"
# .ci/run needs these as well: for the format, Graphviz and matplotlib for pictures, groff for the page of
# man, PyTorch and ONNX to import models, h5py to write data for them, a Slurm of two emulated nodes, and a
# debugger for what crashes there.
check_packages="$clang_packages clang-format git graphviz groff-base gdb
  python3 python3-h5py python3-matplotlib python3-onnx python3-torch python3-torchvision slurm-wlm munge
  iproute2 procps shellcheck"

# Open MPI refuses root unless told otherwise; in a container there is nobody else.
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi

# Installs those of the given packages that are missing.
install_missing() {
  local missing=""
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "install ok installed" || missing="$missing $package"
  done
  [ -z "$missing" ] && return
  local as_root=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "please install as root:$missing" >&2; exit 1; }
    as_root=sudo
  fi
  echo "installing$missing"
  $as_root apt-get update -qq &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
    { echo "these packages can't be installed here:$missing; $bundles" >&2; exit 1; }
}
# What a machine takes that lacks packages or a toolkit.
bundles="on a machine that can build, scripts/gpu_bundle.sh makes a folder that runs on a GPU node without them, and scripts/bundle.sh one for other nodes"

# True on a machine that has an NVIDIA GPU and its driver.
gpu_seen() {
  compgen -G "/proc/driver/nvidia/gpus/*" >/dev/null || nvidia-smi -L 2>/dev/null | grep -q "^GPU"
}

# Prints the architectures of this machine's GPUs for CUDAARCHS, such as 80-real;90-real, or native where
# nvidia-smi does not say. CMake knows native only in a folder that it configured first on a machine with a
# GPU.
gpu_architectures() {
  local found
  found="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep -E '^[0-9]+\.[0-9]+$' | sort -u |
    sed 's/\.//; s/$/-real/' | paste -sd ';')" || true
  echo "${found:-native}"
}

# build FOLDER TARGET [cmake option …] configures, and builds what is out of date. Compilers whose memory
# comes in huge pages take a tenth less time.
build() {
  local folder="$1" target="$2"; shift 2
  local launcher=""
  command -v ccache >/dev/null && launcher="-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
  mkdir -p "$folder"
  cmake -S . -B "$folder" -G Ninja $launcher "$@" >"$folder/configure.log" 2>&1 || { cat "$folder/configure.log"; exit 1; }
  grep "CUDA module" "$folder/configure.log" || true
  GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ninja -C "$folder" "$target"
}

# build_sanitized SANITIZERS TARGET builds in build-SANITIZERS. With address,undefined it builds by clang,
# which the fuzzers need. Only line numbers are kept, and only what computes is optimised
# (antichain_optimise), because compiling takes longer than testing.
build_sanitized() {
  local sanitizers="$1" target="$2" by_clang=()
  if [ "$sanitizers" = address,undefined ]; then
    install_missing $clang_packages
    by_clang=(-DCMAKE_CXX_COMPILER=clang++ -DANTICHAIN_FUZZERS=ON)
  fi
  build "build-${sanitizers//,/-}" "$target" "${by_clang[@]}" -DANTICHAIN_SANITIZE="$sanitizers" \
    -DANTICHAIN_CUDA=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 -g1 -DNDEBUG"
}

# A node has CUDA's and cuDNN's libraries and tools in the toolkit's folder, or in Python packages, where the
# loader does not look. tests/gpu.sh and scripts/rebuild_cuda_module.sh source this file to find them.
toolkit="${CUDA_HOME:-/usr/local/cuda}"
gpu_packages() {
  python3 -c 'import glob, site; print("\n".join(f for p in site.getsitepackages() for f in glob.glob(p + "/nvidia/*/lib")))' 2>/dev/null
}

# Puts the folders of libraries that the loader does not find at the front of LD_LIBRARY_PATH, and says so.
find_libraries() {
  local loader packages library found folder
  loader="$(ldconfig -p 2>/dev/null)" packages="$(gpu_packages)"
  for library in libcudart.so.13 libcublasLt.so.13 libcudnn.so.9 libnvrtc.so.13 libnccl.so.2; do
    [[ "$loader" == *"$library "* ]] && continue
    found=
    for folder in "$toolkit/lib64" "$toolkit/lib" $packages; do
      [ -e "$folder/$library" ] && { found="$folder"; break; }
    done
    [ -n "$found" ] || found="$(find / -xdev -name "$library" -not -path '/proc/*' -printf '%h\n' 2>/dev/null | head -n 1)"
    [ -n "$found" ] || { echo "warning: there is no $library"; continue; }
    [[ ":${LD_LIBRARY_PATH:-}:" == *":$found:"* ]] || export LD_LIBRARY_PATH="$found:${LD_LIBRARY_PATH:-}"
    echo "$library is in $found"
  done
}

find_tool() {  # find_tool NAME: its path, or nothing
  command -v "$1" || find "$toolkit/" /opt/nvidia -name "$1" -type f -perm -u+x 2>/dev/null | head -n 1
}

#!/bin/bash
# Gathers what a node without packages lacks into one folder that can be copied anywhere: the program,
# libantichain and its modules, Open MPI with mpirun and its plugins, oneDNN, HDF5 and all they need, down to
# libstdc++.
#
#   scripts/bundle.sh BUILD FOLDER [more programs of the build, such as BUILD/tests/gpu/test_gpu]
#   FOLDER/bin/antichain info
#   FOLDER/bin/mpirun -n 2 FOLDER/bin/antichain train --dataset synthetic
#
# The C library is left out, so the node's must be as new as this machine's. The GPU's libraries are left out,
# too: libcuda comes with the driver, and CUDA's and cuDNN's are found where the node has them
# (LD_LIBRARY_PATH is kept, behind the bundle's own). Fabrics that would bring half a distribution along (UCX,
# libfabric, PSM, verbs) are left out as well: Open MPI then uses shared memory within a node and TCP between
# nodes.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
build="$1" out="$2"; shift 2
mkdir -p "$out"/{bin,lib/plugins,libexec,share}
stage="$(mktemp -d)"
trap 'rm -rf "$stage"' EXIT

cmake --install "$build" --prefix "$stage" --strip >/dev/null
cp "$stage"/bin/antichain "$out/libexec/"
find "$stage" -name 'libantichain*.so*' -exec cp -P {} "$out/lib/" \;
for program in "$@"; do install -s "$program" "$out/libexec/"; done

# Open MPI says itself where its parts lie.
ompi() { ompi_info --parsable --path "$1" | sed -n "s/^path:$1://p" | head -n 1; }
launcher="$(readlink -f "$(command -v mpirun)")"
for tool in orterun orted; do cp "$(dirname "$launcher")/$tool" "$out/libexec/"; done
cp -r "$(ompi pkgdatadir)" "$out/share/openmpi"
fabrics='libucp|libfabric|libpsm|libibverbs|librdmacm|libpmi\.|libpmi2|libcuda'
for plugin in "$(ompi pkglibdir)"/mca_*.so; do
  ldd "$plugin" | grep -Eq "$fabrics" || cp "$plugin" "$out/lib/plugins/"
done
# PMIx, by which mpirun and its ranks find each other, has plugins of its own.
pmix="$({ ldd "$out"/lib/plugins/mca_pmix_*.so || true; } 2>/dev/null | sed -n 's/.*=> \(.*libpmix.so[^ ]*\).*/\1/p')"
pmix="${pmix%%$'\n'*}"
if [ -n "$pmix" ]; then
  mkdir -p "$out/lib/pmix" "$out/share/pmix"
  real="$(readlink -f "$pmix")"
  for plugin in $(find "$(dirname "$real")" -name 'pmix_mca_*.so'); do
    ldd "$plugin" | grep -Eq "$fabrics" || cp "$plugin" "$out/lib/pmix/"
  done
  find "$(dirname "$real")/../share" -name 'help-*.txt' -exec cp {} "$out/share/pmix/" \;
fi

# Every library that something here links, but the C library's and the GPU's.
left_out='/(ld-linux[^/]*|libc|libm|libpthread|libdl|librt|libresolv|libutil|libnsl|libanl|libBrokenLocale)\.so|/lib(cuda|cudart|cublas|cublasLt|cudnn|nccl|nvrtc|nvJitLink)[._]'
find "$out" -type f \( -path '*/libexec/*' -o -name '*.so*' \) -exec env LD_LIBRARY_PATH="$out/lib" ldd {} \; 2>/dev/null |
  sed -n 's/.*=> \(\/[^ ]*\).*/\1/p' | sort -u | grep -Ev "$left_out" | while read -r library; do
    [ -e "$out/lib/$(basename "$library")" ] || cp -L "$library" "$out/lib/"
  done
strip --strip-unneeded "$out"/lib/*.so* "$out"/lib/*/*.so 2>/dev/null || true

# Programs find the bundle from where they lie; nothing but a shell is asked of the node.
wrap() {  # wrap NAME PROGRAM
  cat >"$out/bin/$1" <<'EOF'
#!/bin/sh
here="$(cd "${0%/*}/.." && pwd -P)"
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export OPAL_PREFIX="$here" OPAL_BINDIR="$here/bin" OPAL_LIBDIR="$here/lib" OPAL_PKGLIBDIR="$here/lib/plugins"
export OPAL_PKGDATADIR="$here/share/openmpi" OPAL_SYSCONFDIR="$here/share/openmpi"
export PMIX_INSTALL_PREFIX="$here" PMIX_PKGLIBDIR="$here/lib/pmix" PMIX_LIBDIR="$here/lib" PMIX_PKGDATADIR="$here/share/pmix"
# Without ssh there are no other nodes to start ranks on, which is no reason not to start them here.
command -v ssh >/dev/null 2>&1 || export OMPI_MCA_plm_rsh_agent="${OMPI_MCA_plm_rsh_agent:-sh}"
EOF
  echo "exec \"\$here/libexec/$2\" \"\$@\"" >>"$out/bin/$1"
  chmod +x "$out/bin/$1"
}
wrap antichain antichain
wrap mpirun orterun
wrap orted orted
for program in "$@"; do wrap "$(basename "$program")" "$(basename "$program")"; done
echo "$out: $(du -sm "$out" | cut -f1) MiB, $(ls "$out/lib" | wc -l) libraries; needs glibc $(ldd --version | sed -n '1s/.* //p') or newer"

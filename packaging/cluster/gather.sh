#!/bin/bash
# Gathers what Antichain is built from into one archive, for machines without a network and without root. It
# runs on any machine with a network that has apt and Debian's keyring, and pip; root is not needed. The
# archive has this checkout, the sources of HDF5, fmt, libpng, libjpeg-turbo and zlib, the headers of what
# consists of headers, and of PyPI's wheels oneDNN 3.2 and CMake, which run on glibc 2.17 and later (x86-64).
#
#   packaging/cluster/gather.sh antichain-sources.tar.gz     # here
#   tar xf antichain-sources.tar.gz                          # on the cluster: docs/install.md
set -euo pipefail
[ $# = 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
out="$(realpath "$1")"
source="$(realpath "$(dirname "$0")/../..")"
# shellcheck source=scripts/packages.sh
. "$source/scripts/packages.sh"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
all="$work/antichain-sources"
mkdir -p "$all"/{archives,headers,onednn,cmake} "$work"/{lists/partial,cache/archives/partial,debs,wheels}

# apt reads this list alone, so that the machine's own lists stay as they are.
cat >"$work/debian.sources" <<END
Types: deb deb-src
URIs: ${DEBIAN_MIRROR:-http://deb.debian.org/debian}
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
apt() {
  apt-get -qq -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::sourcelist="$work/debian.sources" -o APT::Sandbox::User= "$@"
}
apt update
# shellcheck disable=SC2086
(cd "$all/archives" && apt source --download-only --tar-only $packages_from_source)
# shellcheck disable=SC2086
(cd "$work/debs" && apt download $header_packages)
for deb in "$work"/debs/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar x -C "$work/debs"; done
cp -r "$work"/debs/usr/include "$all/headers/"
mkdir "$all/headers/share"
cp -r "$work"/debs/usr/share/{cmake,eigen3} "$all/headers/share/"

pip download --quiet --no-deps --only-binary=:all: --platform manylinux2014_x86_64 --dest "$work/wheels" \
  onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0 'cmake>=3.25,<4'
for wheel in "$work"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$work/wheels"; done
cp -r "$work"/wheels/onednn_*.data/data/{include,lib} "$all/onednn/"
cp -r "$work"/wheels/cmake/data/{bin,share} "$all/cmake/"
chmod +x "$all"/cmake/bin/*

if git -C "$source" rev-parse --git-dir >/dev/null 2>&1; then
  git -C "$source" archive --prefix=antichain/ HEAD | tar x -C "$all"
else
  mkdir "$all/antichain"
  tar c -C "$source" --exclude='./build*' . | tar x -C "$all/antichain"
fi
cp "$source/packaging/cluster/build.sh" "$all/"
tar czf "$out" -C "$work" antichain-sources
echo "$out: $(du -m "$out" | cut -f1) MiB"

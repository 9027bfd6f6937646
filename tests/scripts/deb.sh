#!/bin/bash
# Makes the Debian package (cmake/package.cmake) of a build, installs it by dpkg below a folder, so that
# nothing needs root and the system stays as it is, and tries the program there. It ends with 77 where dpkg is
# absent.
#
#   tests/scripts/deb.sh build
set -euo pipefail
# shellcheck source=tests/scripts/steps_in_a_folder.sh
. "$(dirname "$0")/steps_in_a_folder.sh"
build=$(realpath "$1")
for tool in dpkg dpkg-deb dpkg-shlibdeps; do
  command -v "$tool" >/dev/null || skipped "needs $tool"
done

run "cpack" cpack --config "$build/CPackConfig.cmake" -B "$folder/made"
package=$(echo "$folder"/made/antichain_*.deb)
field() { dpkg-deb --field "$package" "$1"; }
[ "$(field Package)" = antichain ] || failed "its name is $(field Package)"

# 1. It depends on what the program is linked with, and all of that is installed here.
for library in libdnnl libhdf5 libfmt libjpeg libpng libopenmpi; do
  field Depends | grep -q "$library" || failed "it does not depend on $library: $(field Depends)"
done
field Depends | tr ',' '\n' | sed 's/[(|].*//; s/ //g' >"$folder/depends"
while read -r name; do
  dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q "ok installed" || failed "$name is not installed"
done <"$folder/depends"

# 2. It is installed below a folder; what it depends on is the system's.
root=$folder/root
mkdir -p "$root/var/lib/dpkg/"{info,updates,triggers}
touch "$root/var/lib/dpkg/status"
# Its script calls ldconfig, which is for the whole system. Here none is needed.
mkdir "$folder/none"
ln -s /bin/true "$folder/none/ldconfig"
dpkg_below() {
  env PATH="$folder/none:$PATH" dpkg --root="$root" --force-not-root --force-depends --force-script-chrootless \
    --log=/dev/null "$@"
}
run "install" dpkg_below --install "$package"
run "is installed" dpkg-query --admindir="$root/var/lib/dpkg" -W antichain
program=$root/usr/bin/antichain
run "the program" "$program" --version
if ldd "$program" | grep -E "not found|libantichain" | grep -v "$root/"; then failed "another library"; fi
cd "$folder"
run "train" "$program" train --local 2 --model resnet20 --dataset synthetic --batch 8 --microbatches 2 --steps 1 \
  --metrics -
for file in include/antichain/app/run.h share/antichain/examples share/doc/antichain/README.md \
  share/doc/antichain/docs/cli.md share/man/man1/antichain.1 share/bash-completion/completions/antichain; do
  [ -e "$root/usr/$file" ] || failed "$file is absent"
done
if command -v python3 >/dev/null; then
  run "experiments" env PYTHONPATH="$root/usr/lib/python3/dist-packages" python3 -m antichain.experiments table1 \
    --program "$program" --models resnet18 --devices 2 --profiles "$root/usr/share/doc/antichain/docs/profiles/cpu"
fi
if find "$root" -name 'libantichain_cuda*' -o -name 'libantichain_nccl*' | grep .; then failed "it has a module for GPUs"; fi

# 3. It is removed.
run "remove" dpkg_below --remove antichain
[ ! -e "$program" ] || failed "the program is still there"
echo "$(basename "$package"): $(($(stat -c %s "$package") >> 10)) KiB"

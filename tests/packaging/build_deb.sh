#!/bin/sh
# build_deb: builds the Debian package from a copy of this tree, whatever state the tree is in.
#
#   tests/packaging/build_deb.sh DIR      DIR/sbxd_VERSION_ARCH.deb; prints its name last
set -eu

here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
src=$out/source

command -v dpkg-buildpackage >/dev/null || {
	echo "build_deb: install dpkg-dev and debhelper" >&2
	exit 1
}
rm -rf "$src" "$out"/sbxd*.deb "$out"/sbxd*.changes "$out"/sbxd*.buildinfo
mkdir "$src"
tar -C "$here" --exclude=./build --exclude=./.git --exclude=__pycache__ -cf - . | tar -C "$src" -xf -
log=$out/build.log
(cd "$src" && dpkg-buildpackage -us -uc -b -j"$(nproc)") >"$log" 2>&1 || {
	tail -n 40 "$log" >&2
	echo "build_deb: failed; $log has all of it" >&2
	exit 1
}
rm -rf "$src"
ls "$out"/sbxd_*.deb

#!/bin/sh
# deb: the Debian package in fresh roots of one release: built with no more than it says that it needs, checked by lintian,
# then installed, used and purged where nothing else is. As root; some minutes, most of them to build.
#
#   tests/packaging/deb.sh SUITE      bookworm (Debian 12) or trixie (13); leaves the package in build/packaging/SUITE/
set -eu
. "$(dirname "$0")/root.sh"

suite=$1
out=$work/$suite
[ "$(id -u)" -eq 0 ] || fail "run as root"
mkdir -p "$out"
builder= fresh=
trap 'rm -rf --one-file-system $builder $fresh' EXIT

say "$suite: building"
builder=$(root_make "build-$suite" "$suite" build-essential,debhelper,lintian)
mkdir "$builder/src"
tar -C "$here" --exclude=./build --exclude=./.git --exclude=__pycache__ -cf - . | tar -C "$builder/src" -xf -
# A package list that the root was made with names files that are gone one day.
root_in "$builder" sh -ec 'apt-get -qq update && apt-get -qq -y --no-install-recommends build-dep /src' >"$out/build-dep.log" 2>&1 ||
	fail "what it needs to be built cannot be installed: $(tail -n 5 "$out/build-dep.log")"
root_in "$builder" sh -ec 'cd /src && tests/packaging/build_deb.sh /out' >"$out/build.log" 2>&1 ||
	fail "$(tail -n 40 "$out/build.log")"
rm -f "$out"/*.deb
cp "$builder"/out/*.deb "$out"

say "$suite: lintian"
root_in "$builder" sh -c 'lintian --allow-root --fail-on error,warning --tag-display-limit 0 /out/*.changes' || fail "lintian has found something"

say "$suite: installing, using and purging"
fresh=$(root_make "base-$suite" "$suite" apt)
cp "$out"/sbxd_*.deb "$here/tests/packaging/in_root.sh" "$fresh/tmp"
root_in "$fresh" sh -c 'sh /tmp/in_root.sh /tmp/sbxd_*.deb'
say "$suite: the package is $(ls "$out"/sbxd_*.deb)"

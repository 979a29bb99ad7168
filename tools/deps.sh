#!/bin/sh
# deps: installs the Debian packages that are missing to build, test or show sbxd (Debian 12 and 13).
#
#   tools/deps.sh [build] [test] [demo] [fuzz] [bench]     what for; without any: build, test and demo.
#                                                          bench: what sbxd is compared with, and plots
#   tools/deps.sh --list ...                       print the packages, install nothing
#
# Says exactly what it installs. Does nothing, and needs no root, when nothing is missing.
set -eu

fail() {
	echo "deps: $*" >&2
	exit 1
}

# The parser that the release has: llhttp from Debian 13 on, http_parser before.
http_package() {
	release=$(sed -n 's/^VERSION_ID="\{0,1\}\([0-9]*\).*/\1/p' /etc/os-release 2>/dev/null || true)
	if [ -n "$release" ] && [ "$release" -lt 13 ]; then
		echo libhttp-parser-dev
	else
		echo libllhttp-dev
	fi
}

# Node.js and npm run BoxLite's SDK. Nothing where both are there: a nodejs that brings its own npm conflicts with Debian's npm.
node_packages() {
	command -v node >/dev/null && command -v npm >/dev/null || echo nodejs npm
}

packages_for() {
	case $1 in
	build)
		echo build-essential pkg-config musl-tools linux-libc-dev libyaml-dev libbsd-dev \
			libarchive-dev libjansson-dev libpcre2-dev libseccomp-dev libssl-dev libncurses-dev "$(http_package)"
		;;
	test)
		echo libcmocka-dev libwslay-dev python3 python3-yaml python3-setuptools python3-wheel python3-venv curl mandoc \
			busybox-static bubblewrap valgrind procps spin tmux zsh fish skopeo umoci docker-registry \
			qemu-system-x86 erofs-utils $(node_packages)
		;;
	demo) echo python3 ;;
	fuzz) echo clang ;;
	bench) echo bubblewrap crun runc podman gnuplot-nox ;;
	*) fail "unknown group '$1': build, test, demo, fuzz or bench" ;;
	esac
}

list=no
if [ "${1:-}" = --list ]; then
	list=yes
	shift
fi
[ $# -gt 0 ] || set -- build test demo

wanted=
for group in "$@"; do
	wanted="$wanted $(packages_for "$group")"
done
wanted=$(printf '%s\n' $wanted | sort -u)
if [ $list = yes ]; then
	printf '%s\n' $wanted
	exit 0
fi

command -v dpkg-query >/dev/null || fail "this is no Debian; install by hand:" $wanted

missing=
for package in $wanted; do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$status" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
	echo "deps: all packages are there"
	exit 0
fi

echo "deps: missing:$missing"
[ "$(id -u)" -eq 0 ] || fail "run as root: sudo apt-get install --no-install-recommends$missing"

export DEBIAN_FRONTEND=noninteractive
apt_get() {
	echo "deps: apt-get $*"
	apt-get -qq -o DPkg::Lock::Timeout=120 "$@" </dev/null
}
# An old package list names files that are gone: it is renewed when the first try fails.
if ! apt_get install -y --no-install-recommends $missing; then
	apt_get update
	apt_get install -y --no-install-recommends $missing || fail "could not install:$missing"
fi
echo "deps: installed:$missing"

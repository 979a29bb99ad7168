# root: fresh roots of Debian releases, and processes in them. Read by the scripts here; wants root, mmdebstrap, the network.
#
# A root is made once and kept packed in build/packaging; a test works on an unpacked copy of its own, which goes with it.

here=$(cd "$(dirname "$0")/../.." && pwd)
work=$here/build/packaging
mkdir -p "$work"

fail() {
	echo "$(basename "$0" .sh): $*" >&2
	exit 1
}

# say WHAT: what is done next
say() {
	echo "== $*"
}

# root_make NAME SUITE PACKAGES: unpacks the root of that name, making it first if it is not there, and prints its directory.
root_make() {
	tar=$work/$1.tar
	if [ ! -e "$tar" ]; then
		mmdebstrap --quiet --variant=minbase --include="$3" "$2" "$work/new-$1.tar" >&2
		mv "$work/new-$1.tar" "$tar"
	fi
	dir=$(mktemp -d "$work/$1.XXXXXX")
	chmod 755 "$dir"
	tar -C "$dir" --exclude='./dev/*' -xf "$tar"
	cp /etc/resolv.conf "$dir/etc/resolv.conf"
	# Nothing is to be started by packages: there is no init.
	printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
	chmod 755 "$dir/usr/sbin/policy-rc.d"
	echo "$dir"
}

# root_in DIR COMMAND...: runs it in that root, in mount and pid namespaces of its own, which end with it. The root is a true
# one, since in a chroot nobody may make user namespaces. /run and /dev/shm are empty each time.
root_in() {
	root_dir=$1
	shift
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		unshare --mount --pid --ipc --fork --kill-child --propagation private sh -ec '
		cd "$1"; shift
		mount --bind . "$PWD"; cd "$PWD"
		mount -t proc proc proc
		mount --rbind /sys sys
		mount --rbind /dev dev
		mount -t tmpfs -o mode=755 tmpfs run
		mount -t tmpfs -o mode=1777 tmpfs dev/shm
		pivot_root . mnt
		umount -l /mnt
		exec "$@"' sh "$root_dir" "$@" </dev/null
}

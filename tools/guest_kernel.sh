#!/bin/sh
# guest_kernel: Debian's cloud kernel for micro-VMs, unpacked and not installed: no boot loader hears of it.
#
#   tools/guest_kernel.sh DIR      DIR/boot/vmlinuz-VERSION and DIR/lib/modules/VERSION; prints the first
#
# Does nothing when it is there.
set -eu

dir=$1
package=linux-image-cloud-amd64

kernel() {
	for k in "$dir"/boot/vmlinuz-*; do
		[ ! -e "$k" ] || echo "$k"
	done | sort -V | tail -n 1
}

fail() {
	echo "guest_kernel: $*" >&2
	exit 1
}

if [ -z "$(kernel)" ]; then
	command -v apt-get >/dev/null || fail "this is no Debian: give a kernel as SBX_KERNEL"
	new=$(mktemp -d "$dir.XXXXXX" 2>/dev/null || { mkdir -p "$(dirname "$dir")" && mktemp -d "$dir.XXXXXX"; })
	trap 'rm -rf "$new"' EXIT
	chmod 755 "$new"
	fetch() {
		name=$(apt-cache depends "$package" | sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
		[ -n "$name" ] && (cd "$new" && apt-get -qq download "$name" 2>/dev/null)
	}
	# An old package list names files that are gone: it is renewed when the first try fails.
	fetch || { apt-get -qq update && fetch; } || fail "could not download the kernel that $package depends on"
	dpkg -x "$new"/*.deb "$new"
	rm -f "$new"/*.deb
	[ ! -d "$new/usr/lib/modules" ] || [ -e "$new/lib" ] || ln -s usr/lib "$new/lib"
	rm -rf "$dir"
	mv "$new" "$dir"
fi
kernel

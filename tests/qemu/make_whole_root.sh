#!/bin/sh
# make_whole_root: a root directory for micro-VMs in which the integration tests find what they find on the host: the
# programs of these Debian packages, with their libraries, and Python.
#
#   tests/qemu/make_whole_root.sh DIR        DIR must not exist
set -eu

root=$1
. "$(dirname "$0")/programs.sh"
packages="base-files base-passwd bash bsdutils coreutils dash diffutils findutils gawk mawk grep gzip hostname login ncurses-base
	ncurses-bin passwd perl-base procps psmisc sed tar util-linux xxd"
python=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
packages="$packages $python-minimal lib$python-minimal lib$python-stdlib python3-minimal"

mkdir -p "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/lib64" "$root/etc" "$root/root" "$root/tmp" "$root/srv" \
	"$root/home/user" "$root/var/tmp"
for place in bin sbin lib lib64; do
	ln -s "usr/$place" "$root/$place"
done
chmod 0700 "$root/root"
chmod 1777 "$root/tmp" "$root/var/tmp"
chown 1000:1000 "$root/home/user" 2>/dev/null || true

# Paths on stdin are copied as they are; what they are links to on the host's own ground is copied, too.
copy() {
	tar -c -C / --no-recursion -T - | tar -x -C "$root"
}

# What of a package a program needs at run time.
for package in $packages; do
	dpkg -L "$package" 2>/dev/null | grep -Ev '^/(usr/)?share/(doc|man|info|locale|lintian|bash-completion|menu|applications|pixmaps)' |
		while read -r path; do
			if [ ! -e "$path" ] || { [ -d "$path" ] && [ ! -h "$path" ]; }; then
				continue
			fi
			echo ".$path"
		done
done | sort -u | copy

# What alternatives name: awk, and the like.
find "$root/usr/bin" -type l -lname '/etc/alternatives/*' | while read -r link; do
	ln -sf "$(readlink -f "/${link#"$root"/}")" "$link"
done
[ -e "$root/usr/bin/awk" ] || ln -sf mawk "$root/usr/bin/awk"

# The libraries that all of them load.
find "$root/usr" -type f \( -perm -0100 -o -name '*.so*' \) -exec ldd {} + 2>/dev/null |
	sed -n 's/^[[:space:]]*\([^ ]* => \)\{0,1\}\(\/[^ ]*\) (0x.*/\2/p' | sort -u | while read -r library; do
		[ -e "$root$library" ] || cp -L "$library" "$root$library"
	done

add_accounts

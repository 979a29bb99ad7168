#!/bin/sh
# make_root: a small root directory for micro-VMs, of programs that this host has: busybox, bash and perl with their
# libraries. For tests and benchmarks.
#
#   tests/qemu/make_root.sh DIR        DIR must not exist
set -eu

root=$1
. "$(dirname "$0")/programs.sh"
mkdir -p "$root"/bin "$root"/etc "$root"/usr/bin "$root"/usr/lib "$root"/usr/local/bin "$root"/srv "$root"/root "$root"/tmp "$root"/home/user
chmod 0700 "$root"/root
chmod 1777 "$root"/tmp
chown 1000:1000 "$root"/home/user 2>/dev/null || true

busybox=$(command -v busybox)
cp -L "$busybox" "$root/bin/busybox"
for applet in $("$busybox" --list); do
	[ -e "$root/bin/$applet" ] || ln -s busybox "$root/bin/$applet"
done
rm -f "$root/bin/bash"
add_program "$(command -v bash)"
[ -e "$root/bin/bash" ] || ln -s "$(command -v bash)" "$root/bin/bash"
# Busybox's own shell would run busybox's own programs whatever lies in PATH.
add_program "$(command -v dash)"
ln -sf "$(command -v dash)" "$root/bin/sh"
add_program /usr/bin/perl
ln -s /usr/bin/perl "$root/bin/perl"
for place in $(perl -e 'print join "\n", grep m{/perl-base$}, @INC'); do
	mkdir -p "$root$(dirname "$place")"
	cp -a "$place" "$root$place"
done
for program in cat dd env head id yes; do
	rm -f "$root/bin/$program"
	add_program "/usr/bin/$program"
	[ -e "$root/bin/$program" ] || ln -s "/usr/bin/$program" "$root/bin/$program"
done

add_accounts

#!/bin/sh
# in_root: run in a fresh root as `in_root.sh PACKAGE.deb`: installs it, uses it, purges it. Each step says why it fails.
set -eu

instance=package-$$

fail() {
	echo "in_root: $*" >&2
	exit 1
}

# Every path that is not the package manager's own book-keeping.
files() {
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /var/lib/dpkg -o -path /var/lib/apt \
		-o -path /var/cache -o -path /var/log \) -prune -o -print | sort
}

# wait_until SECONDS COMMAND...: until it succeeds
wait_until() {
	left=$(($1 * 10))
	shift
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ $left -gt 0 ] || return 1
		sleep 0.1
	done
}

apt-get -qq update
# What it needs comes first, and stays: what is left at the end must be of the package alone.
dpkg -i "$1" >/tmp/dpkg.log 2>&1 || apt-get -qq -y --no-install-recommends -f install >/tmp/apt.log 2>&1 || {
	cat /tmp/dpkg.log /tmp/apt.log >&2
	fail "it does not install"
}
dpkg -s sbxd | grep -qx 'Status: install ok installed' || fail "it is not installed"
[ -z "$(dpkg -V sbxd)" ] || fail "its files are not as they were packed: $(dpkg -V sbxd)"
getent group sbxd >/dev/null || fail "there is no group sbxd"
[ "$(sbxd --version)" = "sbxd $(dpkg-query -W -f '${Version}' sbxd)" ] || fail "sbxd --version says another version"
sbxd --check-config >/dev/null || fail "the configuration that is installed is not valid"
ldd /usr/bin/sbxd /usr/bin/sbxctl /usr/bin/sbxtop /usr/bin/sbxbench /usr/bin/sbx-mcp | grep 'not found' && fail "a library is missing"
systemd-analyze --version >/dev/null 2>&1 || apt-get -qq -y --no-install-recommends install systemd >/tmp/apt.log 2>&1
# Only what it says of ours: manual pages are not to be had here.
complaints=$(systemd-analyze verify --man=no sbxd.service sbxd.socket 2>&1 | grep -F sbxd || true)
[ -z "$complaints" ] || fail "units: $complaints"

status=0
sbxctl doctor --json >/tmp/doctor.json || status=$?
[ $status -eq 1 ] || fail "doctor without a service ends with $status: $(cat /tmp/doctor.json)"
sbxd --instance $instance >/tmp/sbxd.log 2>&1 &
pid=$!
wait_until 60 sbxctl --instance $instance pool || fail "sbxd does not serve: $(cat /tmp/sbxd.log)"
status=0
sbxctl doctor --instance $instance >/tmp/doctor || status=$?
cat /tmp/doctor
[ $status -le 1 ] || fail "doctor ends with $status"
for check in service configuration drivers; do
	grep -E "^ *(ok|note|wrong)? *$check " /tmp/doctor >/dev/null || fail "doctor does not tell of $check"
done
said=$(sbxctl --instance $instance run -u someone -t package -- sh -c 'echo $((6 * 7))') || fail "run: $(cat /tmp/sbxd.log)"
[ "$said" = 42 ] || fail "a command in a box says '$said'"
kill -KILL $pid
wait $pid || true
sbxd --instance $instance >>/tmp/sbxd.log 2>&1 &
pid=$!
wait_until 60 sbxctl --instance $instance pool || fail "the next sbxd does not serve: $(cat /tmp/sbxd.log)"
sbxctl --instance $instance ps | grep -q someone || fail "the next sbxd does not have the box: $(cat /tmp/sbxd.log)"
sbxctl --instance $instance shutdown >/dev/null || fail "shutdown"
wait $pid || fail "sbxd ends with $?: $(cat /tmp/sbxd.log)"

dpkg --remove sbxd >/tmp/dpkg.log 2>&1 || fail "it cannot be removed: $(cat /tmp/dpkg.log)"
[ -e /etc/sbxd.yaml ] || fail "a removal takes the configuration along"
dpkg --purge sbxd >/tmp/dpkg.log 2>&1 || fail "it cannot be purged: $(cat /tmp/dpkg.log)"
! getent group sbxd >/dev/null || fail "the group is left"
left=$(files | grep -i sbx || true)
# Of another instance than the package's own only its empty directories are left; they are that instance's.
left=$(printf '%s\n' "$left" | grep -v "sbxd-$instance" || true)
[ -z "$left" ] || fail "left behind: $left"
echo "in_root: installed, used and purged"

#!/bin/sh
# in_machine: run by systemd in a virtual machine that has the package: the service, its socket, and what they must not lose.
set -eu
export SYSTEMD_COLORS=0 SYSTEMD_URLIFY=0

say() {
	echo "machine: $*"
}

fail() {
	say "FAILED: $*"
	journalctl --no-pager -q -u sbxd.service -o cat | grep -v "^Consumed" | tail -n 60 || true
	systemctl status --no-pager -n 0 sbxd.service sbxd.socket || true
	systemd-cgls --no-pager || true
	exit 1
}

# wait_until SECONDS COMMAND...: until it succeeds
wait_until() {
	tries=$(($1 * 5))
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.2
	done
}

main_pid() {
	systemctl show -P MainPID sbxd.service
}

new_main() {
	[ "$(main_pid)" != "$old" ] && [ "$(main_pid)" != 0 ] && systemctl is-active -q sbxd.service
}

# The process of the command that was left in the box: neither it nor its file may be another one later.
the_box() {
	sbxctl --json inspect "$box" | sed -n 's/.*"box_pid": *\([0-9]*\).*/\1/p'
}

# 512 MiB of memory, as many of scratch in memory, 512 processes: the defaults
is_limited() {
	[ "$(cat "/sys/fs/cgroup$cgroup/memory.max" "/sys/fs/cgroup$cgroup/pids.max" | tr '\n' ' ')" = '1073741824 512 ' ]
}

# clients_begin: a client that asks all the time, one connection for each question, and notes what failed.
clients_begin() {
	rm -f /tmp/stop /tmp/refused /tmp/asked
	(while [ ! -e /tmp/stop ]; do
		sbxctl pool >/dev/null 2>>/tmp/refused && echo >>/tmp/asked
	done) &
	asking=$!
}

clients_end() {
	touch /tmp/stop
	wait $asking
	[ -s /tmp/asked ] || fail "nobody asked"
	# One request may have been read by a service that ends before it has answered; nobody may be turned away.
	grep -q 'cannot connect' /tmp/refused && fail "clients were turned away: $(sort /tmp/refused | uniq -c)"
	[ "$(wc -l </tmp/refused)" -le 1 ] || fail "questions were lost: $(sort /tmp/refused | uniq -c)"
}

# box_is_kept WHEN: the same processes, with the same files
box_is_kept() {
	[ "$(the_box)" = "$box_pid" ] || fail "$1: the box is another one: $(the_box), not $box_pid"
	[ "$(sbxctl cat "$box:/tmp/mine")" = mine ] || fail "$1: its file is not there"
	[ "$(sbxctl --json ps | grep -c "\"$box\"")" = 1 ] || fail "$1: it is not listed once: $(sbxctl ps)"
	say "$1: box and clients lost nothing"
}

wait_until 240 systemctl is-active -q sbxd.service || fail "the service is not started with the machine"
say "$(systemctl --version | head -n 1); $(systemctl show -P StatusText sbxd.service)"
[ "$(stat -c '%a %U %G' /run/sbxd/sbxd.sock)" = "660 root sbxd" ] || fail "socket: $(stat -c '%a %U %G' /run/sbxd/sbxd.sock)"
ls -l "/proc/$(main_pid)/fd/3" | grep -q socket: || fail "it has not taken the socket"

box=$(sbxctl acquire -u someone -t machine)
printf mine >/tmp/mine && sbxctl cp /tmp/mine "$box:/tmp/mine" || fail "a file cannot be put into the box"
box_pid=$(the_box)
[ -n "$box_pid" ] || fail "inspect: $(sbxctl --json inspect "$box")"
cgroup=$(sed -n 's/^0:://p' "/proc/$box_pid/cgroup")
is_limited || fail "$cgroup is not limited: $(grep . "/sys/fs/cgroup$cgroup"/*.max)"
say "a box in $cgroup"

old=$(main_pid)
clients_begin
systemctl restart sbxd.service || fail "restart"
new_main || fail "restarted: it is the same process"
clients_end
box_is_kept restarted
is_limited || fail "memory in $cgroup is not limited any more"
[ "$(sbxctl run -u other -t machine -- echo new)" = new ] || fail "restarted: no new box"

old=$(main_pid)
clients_begin
kill -KILL "$old"
wait_until 60 new_main || fail "killed: it is not started anew"
clients_end
box_is_kept killed

old=$(main_pid)
clients_begin
systemctl daemon-reload
systemctl reload sbxd.service || fail "reload"
clients_end
[ "$(main_pid)" = "$old" ] || fail "reloaded: it is another process"
box_is_kept reloaded

old=$(main_pid)
clients_begin
dpkg -i /root/sbxd.deb >/tmp/upgrade.log 2>&1 || fail "upgrade: $(cat /tmp/upgrade.log)"
new_main || fail "upgraded: it is the same process"
clients_end
box_is_kept upgraded

old=$(main_pid)
kill -STOP "$old"
wait_until 120 new_main || fail "stands still: the watchdog has not started it anew"
box_is_kept 'watched over'

sbxctl shutdown >/dev/null || fail "shutdown"
wait_until 30 sh -c '! systemctl is-active -q sbxd.service' || fail "shutdown: it is started again"
[ ! -e "/proc/$box_pid" ] || fail "shutdown: the box lives"
[ "$(sbxctl run -u someone -t machine -- echo activated)" = activated ] || fail "no client starts it"
say "started by a client"

systemctl stop sbxd.service || fail "stop"
[ "$(systemctl show -P Result sbxd.service)" = success ] || fail "stop: $(systemctl show -P Result sbxd.service)"
left=$(pgrep -f sbx- || true)
[ -z "$left" ] || fail "stopped: processes are left: $(ps $left)"
[ -z "$(ls /run/sbxd/workers 2>/dev/null)" ] || fail "stopped: workers are left"
say "stopped: nothing is left"

sbxctl acquire -u someone -t machine >/dev/null || fail "no client starts it again"
dpkg --purge sbxd >/tmp/purge.log 2>&1 || fail "purge: $(cat /tmp/purge.log)"
left=$(ls -d /run/sbxd /var/lib/sbxd /etc/sbxd.yaml /dev/shm/sbxd-* /sys/fs/cgroup/sbxd-* 2>/dev/null || true)
[ -z "$left" ] || fail "purged: left behind: $left"
[ -z "$(systemctl list-units --all --no-legend 'sbxd*')" ] || fail "purged: units: $(systemctl list-units --all 'sbxd*')"
say "purged: nothing is left"

# The machine goes down with a box alive: it must not wait for it.
dpkg -i /root/sbxd.deb >/tmp/install.log 2>&1 || fail "install: $(cat /tmp/install.log)"
sbxctl acquire -u someone -t machine >/dev/null || fail "installed again: no box"
say "all passed"

#!/bin/bash
# demo: one box from its first acquire to the end of the service, with the time of each step.
#
#   tools/demo.sh [BUILD_DIR]
#
# Starts a private sbxd of its own instance and directories, so that it disturbs no other. Ends
# with 0 only when every step did what it should and nothing was left behind.
set -euo pipefail

build=$(cd "${1:-build}" && pwd)
instance=demo-$$
work=$(mktemp -d /tmp/sbxd-demo-XXXXXX)
run=$work/run
log=$work/sbxd.log
export SBXD_SOCKET=$run/sbxd.sock
unset SBXD_CONFIG
sbxd_pid=

ctl() {
	"$build/sbxctl" "$@"
}

fail() {
	printf '\ndemo: FAILED: %s\n' "$*" >&2
	[ ! -s "$log" ] || sed 's/^/    sbxd: /' "$log" | tail -n 20 >&2
	exit 1
}

cleanup() {
	if [ -n "$sbxd_pid" ] && kill -TERM "$sbxd_pid" 2>/dev/null; then
		wait "$sbxd_pid" || true
	fi
	rm -rf "$work"
}
trap cleanup EXIT

# ---- steps and their times ----

started=0
step() {
	printf '%-58s' "$*"
	started=${EPOCHREALTIME/[.,]/}
}
done_step() {
	local us=$((${EPOCHREALTIME/[.,]/} - started))
	printf '%6d.%03d ms%s\n' $((us / 1000)) $((us % 1000)) "${1:+   $1}"
}

# member JSON NAME: a string or number of a flat JSON object on stdin
member() {
	sed -n 's/^ *"'"$1"'": *"\{0,1\}\([^",]*\)"\{0,1\},\{0,1\}$/\1/p' | head -n 1
}

# put_file BOX PATH FILE: through the service's file interface where a client is at hand
put_file() {
	if command -v curl >/dev/null; then
		curl -fsS --max-time 20 --unix-socket "$SBXD_SOCKET" -X PUT --data-binary "@$3" \
			-H 'Content-Type: application/octet-stream' -o /dev/null \
			"http://localhost/v1/boxes/$1/fs/write?path=$2"
	elif command -v python3 >/dev/null; then
		python3 - "$SBXD_SOCKET" "$1" "$2" "$3" <<'PYTHON'
import http.client, socket, sys

path, box, target, source = sys.argv[1:]
conn = http.client.HTTPConnection("localhost", timeout=20)
conn.sock = socket.socket(socket.AF_UNIX)
conn.sock.settimeout(20)
conn.sock.connect(path)
with open(source, "rb") as f:
    conn.request("PUT", f"/v1/boxes/{box}/fs/write?path={target}", f.read())
answer = conn.getresponse()
body = answer.read()
sys.exit(0 if answer.status < 300 else f"{answer.status}: {body.decode()}")
PYTHON
	else
		ctl exec -i "$1" -- sh -c 'cat >"$1"' sh "$2" <"$3"
	fi
}

# The processes below $1, itself included.
tree_of() {
	local all=" $1 " found=1 stat rest pid
	while [ $found = 1 ]; do
		found=0
		for stat in /proc/[0-9]*/stat; do
			{ read -r rest <"$stat"; } 2>/dev/null || continue
			pid=${stat#/proc/}
			pid=${pid%/stat}
			rest=${rest##*) }
			rest=${rest#* }
			if [[ $all == *" ${rest%% *} "* && $all != *" $pid "* ]]; then
				all+="$pid "
				found=1
			fi
		done
	done
	echo $all
}

# ---- the input: a month of requests per service ----

cat >"$work/requests.csv" <<'CSV'
day,service,requests,errors
1,search,1204,3
1,fetch,877,12
2,search,1311,0
2,fetch,902,9
3,search,1190,41
3,fetch,951,7
CSV
cat >"$work/report.py" <<'PYTHON'
import collections, csv, json

totals = collections.defaultdict(lambda: [0, 0])
with open("/mnt/user-data/uploads/requests.csv") as f:
    for row in csv.DictReader(f):
        totals[row["service"]][0] += int(row["requests"])
        totals[row["service"]][1] += int(row["errors"])
report = {name: {"requests": n, "error_rate": round(e / n, 5)} for name, (n, e) in sorted(totals.items())}
with open("/mnt/user-data/outputs/report.json", "w") as f:
    json.dump(report, f)
print(json.dumps(report))
PYTHON
expected='{"fetch": {"requests": 2730, "error_rate": 0.01026}, "search": {"requests": 3705, "error_rate": 0.01188}}'

# ---- the service ----

printf 'sbxd demo: user alice, thread report-1\n\n'
step "start sbxd"
"$build/sbxd" --instance "$instance" --runtime-dir "$run" --state-dir "$work/state" 2>"$log" &
sbxd_pid=$!
for _ in $(seq 300); do
	[ ! -S "$SBXD_SOCKET" ] || break
	kill -0 "$sbxd_pid" 2>/dev/null || fail "sbxd ended at once"
	sleep 0.02
done
ctl pool >/dev/null || fail "sbxd does not answer"
done_step

step "acquire a box (nothing is running yet)"
answer=$(ctl acquire -u alice -t report-1 --json) || fail "acquire"
source=$(member source <<<"$answer")
done_step "$source, $(member isolation <<<"$answer")"
[ "$source" = cold ] || fail "the first acquire was '$source', not cold"
box=$(member box_id <<<"$answer")
[ "$box" = "$(ctl token alice report-1)" ] || fail "the box is '$box', not the scope token"

step "write a data file and a program into it"
put_file "$box" /mnt/user-data/uploads/requests.csv "$work/requests.csv" || fail "write the data"
put_file "$box" /mnt/user-data/workspace/report.py "$work/report.py" || fail "write the program"
done_step

step "run the Python program in the box"
printed=$(ctl exec "$box" -- python3 /mnt/user-data/workspace/report.py) || fail "the program"
done_step
[ "$printed" = "$expected" ] || fail "it printed '$printed'"

step "read its result back"
result=$(ctl exec "$box" -- cat /mnt/user-data/outputs/report.json) || fail "read the result"
done_step
[ "$result" = "$expected" ] || fail "the result is '$result'"
printf '    %s\n' "$result"

step "release the box"
status=$(ctl release "$box") || fail "release"
done_step "$status"
[ "$status" = warm ] || fail "the released box is '$status', not warm"

step "acquire it again"
answer=$(ctl acquire -u alice -t report-1 --json) || fail "acquire again"
source=$(member source <<<"$answer")
done_step "$source"
[ "$source" = warm ] || fail "the second acquire was '$source', not warm"

step "look whether the result is still there"
result=$(ctl exec "$box" -- cat /mnt/user-data/outputs/report.json) || fail "read it again"
done_step
[ "$result" = "$expected" ] || fail "the result is now '$result'"

step "run a command for another user, in a box of its own"
other=$(ctl run -u bob -t report-1 -- sh -c 'ls -A /mnt/user-data/outputs; echo "exit $?"') ||
	fail "run for another user"
done_step
[ "$other" = "exit 0" ] || fail "the other user's box shows '$other'"

printf '\nsbxctl ps:\n'
ctl ps --instance "$instance"
printf '\n'

# ---- the end ----

before=$(tree_of "$sbxd_pid")
step "shut down"
ctl shutdown || fail "shutdown"
wait "$sbxd_pid" || fail "sbxd ended with status $?"
sbxd_pid=
done_step

left=
for pid in $before; do
	[ ! -e "/proc/$pid" ] || left+=" process $pid;"
done
while read -r cgroup; do
	left+=" cgroup $cgroup;"
done < <(find /sys/fs/cgroup -type d -name "sbxd-$instance*" 2>/dev/null || true)
! grep -F -e "$work" -e "sbxd-$instance" /proc/self/mountinfo || left+=" mounts;"
[ ! -e "/dev/shm/sbxd-$(id -u)-$instance" ] || left+=" shared memory;"
[ ! -e "$SBXD_SOCKET" ] || left+=" the socket;"
files=$(find "$run" -mindepth 1 2>/dev/null || true)
[ -z "$files" ] || left+=" files: $files;"
[ -z "$left" ] || fail "left behind:$left"
printf '\nNothing is left: no process (of %d), cgroup, mount, shared memory, socket or file.\n' \
	"$(wc -w <<<"$before")"

#!/bin/bash
# benchmarks: measures a fixed selection with sbxbench, and writes what came out as a page.
#
#   tools/benchmarks.sh [--scopes N,...] [BUILD_DIR [OUT_DIR]]      (build, docs)
#
# --scopes: so many scopes instead of 10 to 10,000, where there is not the time or the memory.
# Writes OUT_DIR/benchmarks.md, and OUT_DIR/benchmarks-*.svg where gnuplot is installed; in README.md
# beside OUT_DIR what it quotes of the page is renewed. Nothing is written unless all was measured.
set -euo pipefail

scale=(scale)
if [ "${1:-}" = --scopes ]; then
	scale+=(--scopes "$2")
	shift 2
fi
build=$(cd "${1:-build}" && pwd)
out=$(cd "${2:-docs}" && pwd)
work=$(mktemp -d /tmp/sbxd-benchmarks-XXXXXX)
page=$work/benchmarks.md
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() {
	printf '%s\n' "$@" >>"$page"
}

# Runs sbxbench; that an aim is missed, or that a turn failed, is a result.
bench() {
	local status=0
	printf 'sbxbench %s\n' "$*" >&2
	"$build/sbxbench" "$@" || status=$?
	[ $status -le 1 ] || exit $status
}

# section TITLE COMMAND...: a heading, how it is measured, and what it prints
section() {
	local title=$1
	shift
	say '' "## $title" '' "\`sbxbench $*\`" ''
	bench "$@" >>"$page"
}

# turns OPTION...: rows of one more scenario
turns() {
	bench run "$@" --output "$work/turns.jsonl"
}

version() {
	"$@" 2>/dev/null | head -n 1 || true
}

# ---- the machine ----

machine() {
	local cpu memory system cgroups
	cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
	memory=$(awk '/^MemTotal:/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo)
	system=$(. /etc/os-release && echo "$PRETTY_NAME")
	cgroups=$(stat -fc %T /sys/fs/cgroup)
	say '| what | |' '|---|---|' \
		"| date | $(date -u +%F) |" \
		"| cpu | ${cpu:-unknown}, $(nproc) of them |" \
		"| memory | $memory |" \
		"| kernel | $(uname -sr) |" \
		"| system | $system, cgroups: $([ "$cgroups" = cgroup2fs ] && echo v2 || echo v1 or both) |" \
		"| load before | $(cut -d' ' -f1-3 /proc/loadavg) |" \
		"| sbxd | $("$build/sbxd" --version) |" \
		"| compiler | $(version gcc --version) |"
}

say '# Benchmarks' '' \
	'`make bench` wrote this page from what it measured here. Times depend on the machine and on what else it does;' \
	'ratios less so, because both sides of each are measured in turn. Every table can be had alone, by the command' \
	'above it.' ''
machine

# ---- the selection ----

section 'Against the kernel and others, in turn' ratios

turns --scenario warm_same_thread --iterations 2000
turns --scenario warm_same_thread --iterations 2000 --health-check-skip-seconds 3600
turns --scenario warm_same_thread --iterations 2000 --concurrency 8
turns --scenario warm_same_thread --iterations 100 --no-warmpool
turns --scenario cold_unique_thread --iterations 300
turns --scenario cold_unique_thread --iterations 300 --concurrency 8
turns --scenario warm_miss_many_threads --iterations 200
turns --scenario warm_miss_many_threads --iterations 400 --replicas 20 --concurrency 8
turns --scenario idle_timeout --iterations 5
turns --scenario replica_pressure --iterations 200
turns --workload python_small --iterations 100
turns --workload fs_1mb --iterations 100
turns --workload sleep_2s --iterations 4 --concurrency 4
turns --workload state_reuse --iterations 200

group=scenario,workload,concurrency,replicas,no_warmpool,health_check_skip_seconds
say '' '## Turns' '' \
	'A turn is what an agent does: acquire, run, release. Times are in ms. `sbxbench run` with the options that the' \
	"first columns name, then \`sbxbench summarize --markdown --group $group\`" ''
bench summarize --markdown --group "$group" "$work/turns.jsonl" >>"$page"

if command -v gnuplot >/dev/null; then
	# Those that differ in nothing but being warm or cold.
	grep -e '"workload":"noop","iteration":[0-9]*,"concurrency":1,.*"health_check_skip_seconds":0.000,' \
		"$work/turns.jsonl" >"$work/noop.jsonl"
	for time in acquire total; do
		bench plot --time $time --output "$work/benchmarks-$time.svg" "$work/noop.jsonl"
		say '' "![how long ${time} takes, warm and cold](benchmarks-$time.svg)"
	done
else
	say '' 'gnuplot is not installed here: there are no pictures.'
fi

section 'What the kernel alone costs' limits
section 'What a user would pick instead' compare
section 'Many scopes, many clients' "${scale[@]}"

# Rows and points are found again by their first cell, or what stands before the colon.
renew_quotes() {
	awk -v page="$page" '
		function key(line,    k) {
			if (line ~ /^\| /)
				k = substr(line, 3, index(substr(line, 3), "|") - 1)
			else if (line ~ /^- /)
				k = substr(line, 1, index(line, ":"))
			sub(/ +$/, "", k)
			return k == "what" ? "" : k
		}
		BEGIN { while ((getline line < page) > 0) if (!(key(line) in found)) found[key(line)] = line }
		/^<!-- quoted/ { quoted = 1 }
		/^<!-- end/ { quoted = 0 }
		{ print quoted && key($0) != "" && key($0) in found ? found[key($0)] : $0 }' "$1"
}

readme=$(dirname "$out")/README.md
if [ -f "$readme" ]; then
	renew_quotes "$readme" >"$work/README.md"
	cat "$work/README.md" >"$readme"
fi
mv "$work"/benchmarks*.svg "$out" 2>/dev/null || true
mv "$page" "$out/benchmarks.md"

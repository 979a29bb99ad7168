#!/bin/sh
# run_unit: runs each test program given; prints what failed, and says so at the end. A program that
# takes ten minutes hangs: it is ended, and has failed.
set -u
failed=
count=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for t in "$@"; do
	count=$((count + 1))
	# Descriptors of make's job server are not for the processes under test.
	if ! timeout -k 5 600 "$t" >"$log" 2>&1 3>&- 4>&- 5>&- 6>&-; then
		echo "== $t"
		cat "$log"
		failed="$failed $t"
	fi
done
if [ -n "$failed" ]; then
	echo "failed:$failed"
	exit 1
fi
echo "$count unit test programs passed"

#!/bin/sh
# summary DIR: what valgrind has to say in its logs there. A process that was killed says nothing.
set -eu
said=0
bad=0
for log in "$1"/*.log; do
	grep -q 'ERROR SUMMARY: ' "$log" || continue
	said=$((said + 1))
	if grep -q 'ERROR SUMMARY: [^0]' "$log"; then
		cat "$log"
		bad=$((bad + 1))
	fi
done
echo "valgrind: $said processes, $bad with errors"
[ "$said" -gt 0 ] && [ "$bad" = 0 ]

#!/bin/sh
# deps_check: dependencies between directories point one way. See STYLE in CONTRIBUTING.md.
set -eu
cd "$(dirname "$0")/.."
bad=0

# forbid DIR REGEX REASON: no file of DIR may include what matches.
forbid() {
	found=$(grep -nE "^#include \"($2)" -r --include='*.[ch]' "$1" || true)
	if [ -n "$found" ]; then
		printf '%s: %s\n%s\n' "$1" "$3" "$found"
		bad=1
	fi
}

forbid lib '(shm|wire|drivers|guest|worker|supervisor|tools)/' 'lib knows nothing of the rest'
forbid shm '(wire|drivers|guest|worker|supervisor|tools)/' 'shm uses lib only'
forbid wire '(shm|drivers|guest|worker|supervisor|tools)/' 'wire uses lib only'
forbid drivers '(shm|guest|worker|supervisor|tools)/' 'drivers use lib and wire'
forbid guest '(shm|drivers|worker|supervisor|tools)/' 'the guest uses lib, wire/agent, wire/entry and wire/piece only'
forbid guest 'wire/(control|http|json|api_error)' 'the guest uses lib, wire/agent, wire/entry and wire/piece only'
forbid worker '(guest|supervisor|tools)/' 'the worker stands below the supervisor'
# Any folder but image/, which is no driver.
forbid worker 'drivers/([^i/]|i[^m/]|im[^a/])[a-z]*/' 'the worker knows drivers by drivers/driver.h'
forbid supervisor '(guest|worker|tools)/' 'the supervisor includes nothing of the worker'
forbid supervisor 'drivers/[^d]' 'the supervisor knows no driver'
forbid tools '(drivers|guest|worker|supervisor)/' 'tools use lib, wire and shm'
[ "$bad" = 0 ] && echo "dependencies point one way"
exit "$bad"

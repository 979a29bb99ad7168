#!/bin/sh
# kvm_host_init: the first program of the virtual host of tests/qemu/check_kvm.sh: a whole service, and the driver's
# conformance suite, with boxes that run on this host's /dev/kvm. Its last line is the verdict; then the machine ends.
export PATH=/usr/sbin:/usr/bin HOME=/root
export SBX_ROOT=/srv/image SBX_QEMU_ACCEL=kvm SBX_GUEST=/sbx/sbx-guest SBX_FILES=/sbx/sbx-files SBX_WORKER=/sbx/sbx-worker
SBX_KERNEL=$(echo /srv/kernel/boot/vmlinuz-*)
export SBX_KERNEL

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup /sys/fs/cgroup
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o size=60% tmp /tmp
mount -t tmpfs run /run
mount -t tmpfs shm /dev/shm
ln -s /proc/self/fd /dev/fd
ip link set lo up
exec </dev/null >/dev/ttyS0 2>&1
for word in $(cat /proc/cmdline); do
	case $word in
	sbx.*=*)
		name=${word%%=*}
		export "SBX_$(echo "${name#sbx.}" | tr a-z A-Z)=${word#*=}" # sbx.test_slow=10 is SBX_TEST_SLOW=10
		;;
	esac
done

finish() {
	echo "check-kvm: $*"
	poweroff -f
	sleep 60
}

for module in irqbypass kvm kvm-amd; do
	parameters=
	[ "$module" != kvm ] || parameters=halt_poll_ns=0 # an emulated processor has better things to do
	[ ! -e "/sbx/$module.ko" ] || insmod "/sbx/$module.ko" $parameters || finish "failed: the virtual host's kernel does not load $module"
done
[ -c /dev/kvm ] || finish "failed: the virtual host has no /dev/kvm"

check_service() {
	echo "== a service"
	cat >/run/sbxd.yaml <<END
driver: auto
image: $SBX_ROOT
memory_mib: 96
disk_mib: 32
acquire_timeout: 600
boot_timeout: 600
health_check_timeout: 60
qemu:
  kernel: $SBX_KERNEL
END
	/sbx/sbxd --config /run/sbxd.yaml --runtime-dir /run/sbxd --state-dir /tmp/state 2>/run/sbxd.log &
	service=$!
	export SBXD_SOCKET=/run/sbxd/sbxd.sock
	until [ -S "$SBXD_SOCKET" ] || ! kill -0 "$service" 2>/dev/null; do
		sleep 1
	done
	# The first is copied from a template that is made for it, the second is the same box, parked and woken.
	for source in cold warm; do
		said=$(/sbx/sbxctl --json acquire -u kvm -t 1)
		echo "$said"
		for word in '"isolation": *"microvm-kvm"' "\"source\": *\"$source\""; do
			echo "$said" | grep -q "$word" || finish "failed: a reply to acquire has no $word: $(tail -n 5 /run/sbxd.log)"
		done
		box=$(echo "$said" | sed -n 's/.*"box_id": *"\([^"]*\)".*/\1/p')
		[ "$(/sbx/sbxctl exec "$box" -- sh -c 'echo $((6 * 7))')" = 42 ] || finish "failed: a command: $(tail -n 5 /run/sbxd.log)"
		/sbx/sbxctl release "$box"
	done
	/sbx/sbxctl shutdown
	wait "$service" || finish "failed: sbxd ended with $?: $(tail -n 5 /run/sbxd.log)"
}

[ -n "${SBX_GROUP:-}" ] || check_service
echo "== the conformance suite"
/sbx/conformance qemu ${SBX_GROUP:-} || finish "failed: the conformance suite"
finish passed

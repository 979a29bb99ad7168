#!/bin/sh
# machine: the package under a real systemd. A virtual machine, emulated, boots a fresh root of the release, in which
# in_machine.sh restarts, upgrades, kills and stops the service with boxes alive. As root; a quarter of an hour.
#
#   tests/packaging/machine.sh SUITE [PACKAGE.deb]     bookworm or trixie; the package else from build/packaging/SUITE
set -eu
. "$(dirname "$0")/root.sh"

suite=$1
bound=1500 # seconds for all that the machine does
[ "$(id -u)" -eq 0 ] || fail "run as root"
deb=${2:-$(ls "$work/$suite"/sbxd_*.deb 2>/dev/null)} || fail "there is no package yet: tests/packaging/deb.sh $suite"
root= log=$work/$suite.console
trap 'rm -rf --one-file-system $root; rm -f "$root.disk"' EXIT

say "$suite: a machine with the package in it"
root=$(root_make "machine-$suite" "$suite" systemd-sysv,dbus,linux-image-cloud-amd64,initramfs-tools,zstd,procps)
cp "$deb" "$root/tmp/sbxd.deb"
root_in "$root" sh -ec 'apt-get -qq update && apt-get -qq -y --no-install-recommends install /tmp/sbxd.deb' >"$work/$suite.install.log" 2>&1 ||
	fail "the package cannot be installed: $(tail -n 5 "$work/$suite.install.log")"
cp "$deb" "$root/root/sbxd.deb"
install -m 755 "$here/tests/packaging/in_machine.sh" "$root/root/in_machine.sh"
rm -f "$root/usr/sbin/policy-rc.d"
cat >"$root/etc/systemd/system/test.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c '/root/in_machine.sh 2>&1 | cat'
ExecStopPost=+/bin/systemctl --no-block poweroff
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
TimeoutStartSec=infinity
[Install]
WantedBy=graphical.target
UNIT
# A login on that line would hang up on the test.
ln -sf /dev/null "$root/etc/systemd/system/serial-getty@ttyS0.service"
ln -sf /usr/lib/systemd/system/graphical.target "$root/etc/systemd/system/default.target"
mkdir -p "$root/etc/systemd/system/graphical.target.wants"
ln -sf ../test.service "$root/etc/systemd/system/graphical.target.wants/test.service"
mke2fs -q -t ext4 -d "$root" "$root.disk" 3G

say "$suite: booting"
rm -f "$log"
timeout "$bound" qemu-system-x86_64 -M q35 -accel tcg,thread=multi -cpu max -smp 2 -m 1536 -display none -monitor none \
	-serial "file:$log" -no-reboot -nic none -drive "file=$root.disk,if=virtio,format=raw,cache=unsafe" \
	-kernel "$(ls "$root"/boot/vmlinuz-*)" -initrd "$(ls "$root"/boot/initrd.img-*)" \
	-append 'root=/dev/vda rw console=ttyS0 no_timer_check panic=-1 systemd.show_status=0 loglevel=3 quiet' </dev/null &
machine=$!
# With a box alive the host must go down as fast as without. (no_timer_check: on a busy host the emulated timer is not steady.)
said=no left=150
while kill -0 $machine 2>/dev/null && [ $left -gt 0 ]; do
	grep -qsE '^machine: (all passed|FAILED)' "$log" && said=yes
	[ $said = no ] || left=$((left - 1))
	sleep 1
done
kill $machine 2>/dev/null && fail "it does not go down: $(tail -n 20 "$log")"
wait $machine || fail "the machine did not end by itself: $(tail -n 20 "$log")"
tr -d '\r' <"$log" | grep '^machine: ' || true
tr -d '\r' <"$log" | grep -qx 'machine: all passed' || fail "$(tail -n 40 "$log")"

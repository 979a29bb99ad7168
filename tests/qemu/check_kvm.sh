#!/bin/sh
# check_kvm: boxes on KVM, where this host need have none: a virtual host, emulated with AMD's virtualization (SVM), boots
# and runs the qemu driver's conformance suite and a whole service on its own /dev/kvm.
#
#   tests/qemu/check_kvm.sh PROGRAMS DIR      PROGRAMS: those built for tests; DIR: for what is made, and console.log. While
#                                             it runs QEMU's monitor is DIR/monitor: a Unix socket
#
# SBX_ROOT, SBX_KERNEL: as for the suite. SBX_KVM_SECONDS: for all of it. SBX_TEST_SLOW: how much longer the suite waits, and what is
# built for tests. SBX_GROUP: that group of its tests only.
# Takes 3 GiB of memory and 500 MiB of disk. Exit status: 0 passed, 1 failed, 2 it could not run.
set -eu

programs=$1
dir=$2
here=$(dirname "$0")
seconds=${SBX_KVM_SECONDS:-3600}
slow=${SBX_TEST_SLOW:-10}
memory_mib=3072

fail() {
	echo "check-kvm: $*" >&2
	exit 2
}

for program in qemu-system-x86_64 mke2fs busybox; do
	command -v "$program" >/dev/null || PATH=$PATH:/usr/sbin:/sbin
	command -v "$program" >/dev/null || fail "there is no $program"
done
[ -f "${SBX_KERNEL:-}" ] || fail "SBX_KERNEL names no kernel"
[ -d "${SBX_ROOT:-}" ] || fail "SBX_ROOT names no root directory"
[ "$(id -u)" = 0 ] || fail "run it as root: the virtual host's files are to be root's"
. "$here/programs.sh"

rm -rf "$dir"
trap 'rm -rf "$dir/root" "$dir/disk" "$dir/initrd" "$dir/initrd.cpio" "$dir/monitor"' EXIT
trap 'exit 2' INT TERM
mkdir -p "$dir/initrd/bin" "$dir/initrd/dev" "$dir/initrd/proc" "$dir/initrd/root"

# Its disk: a quarter more than there is in it is room enough for what a file system needs.
"$here/kvm_host_root.sh" "$dir/root" "$programs"
mib=$(du -sm "$dir/root" | cut -f 1)
mke2fs -q -F -t ext4 -O ^has_journal -m 0 -d "$dir/root" "$dir/disk" "$((mib * 5 / 4 + 64))M"
rm -rf "$dir/root"

# What comes before it: the modules by which the kernel finds the disk.
cp "$(command -v busybox)" "$dir/initrd/bin/busybox"
order="virtio_ring virtio virtio_mmio virtio_blk"
for module in $order; do
	take_module "$SBX_KERNEL" "$module" "$dir/initrd"
done
cat >"$dir/initrd/init" <<-END
	#!/bin/busybox sh
	b=/bin/busybox
	\$b mount -t devtmpfs dev /dev
	for module in $order; do
		[ ! -e /\$module.ko ] || \$b insmod /\$module.ko
	done
	until [ -b /dev/vda ]; do \$b sleep 0.1; done
	\$b mount -t ext4 /dev/vda /root
	\$b mount -t devtmpfs dev /root/dev
	exec \$b switch_root /root /sbx/init
END
chmod 755 "$dir/initrd/init"
(cd "$dir/initrd" && find . | busybox cpio -o -H newc 2>/dev/null) >"$dir/initrd.cpio"

# An emulated machine cannot find out how fast its clock is, and hangs now and then while it tries.
log=$dir/console.log
timeout --foreground "$seconds" qemu-system-x86_64 -M microvm,x-option-roms=off,pit=off,pic=off,rtc=on,isa-serial=on,acpi=on \
	-accel tcg -cpu EPYC,+svm,+npt -smp 1 -m "${memory_mib}M" -bios qboot.rom -nodefaults -no-user-config -no-reboot \
	-display none -monitor "unix:$dir/monitor,server=on,wait=off" -serial stdio -global virtio-mmio.force-legacy=false \
	-drive "file=$dir/disk,format=raw,if=none,id=disk,snapshot=on" -device virtio-blk-device,drive=disk \
	-kernel "$SBX_KERNEL" -initrd "$dir/initrd.cpio" \
	-append "console=ttyS0 panic=-1 reboot=t nokaslr mitigations=off cryptomgr.notests audit=0 apparmor=0 \
random.trust_cpu=on quiet tsc_early_khz=$("$programs/tsc_khz") tsc=reliable no_timer_check sbx.test_slow=$slow sbx.group=${SBX_GROUP:-}" \
	</dev/null | sed -u 's/\r$//' | tee "$log"

# The verdict is the last word of the virtual host's init. Without one it hangs, or was too slow.
verdict=$(sed -n 's/^check-kvm: //p' "$log" | tail -n 1)
passed=$(grep -c '^\[       OK \]' "$log" || true)
case $verdict in
passed)
	grep -q '^-- qemu, isolation microvm-kvm' "$log" || verdict="failed: the suite did not run on KVM"
	;;
'') verdict="failed: the virtual host did not come to an end in $seconds s; it came to $(grep '^\[ RUN' "$log" | tail -n 1 | cut -c 13-)" ;;
esac
echo "check-kvm: $verdict; $passed tests passed; $log"
[ "$verdict" = passed ]

#!/bin/sh
# kvm_host_root: the root directory of a virtual host, of programs that this host has: QEMU, what the driver runs, the
# programs under test, and a kernel and an image for its boxes. For tests/qemu/check_kvm.sh.
#
#   tests/qemu/kvm_host_root.sh DIR PROGRAMS      DIR must not exist; PROGRAMS: the directory of the programs under test
#
# SBX_ROOT: the boxes' image. SBX_KERNEL: their kernel, which lies as tools/guest_kernel.sh puts it.
set -eu

root=$1
programs=$2
here=$(dirname "$0")
. "$here/programs.sh"

mkdir -p "$root"/usr/bin "$root"/usr/sbin "$root"/usr/lib "$root"/usr/lib64 "$root"/etc "$root"/root "$root"/proc "$root"/sys \
	"$root"/dev "$root"/tmp "$root"/run "$root"/sbx "$root"/srv/kernel/boot "$root"/srv/kernel/lib/modules
for dir in bin sbin lib lib64; do
	ln -s "usr/$dir" "$root/$dir"
done

cp -L "$(command -v busybox)" "$root/usr/bin/busybox"
for applet in $(busybox --list); do
	[ -e "$root/usr/bin/$applet" ] || ln -s busybox "$root/usr/bin/$applet"
done

# A kernel or its modules may be packed; mke2fs is taken where there is no mkfs.erofs.
for program in qemu-system-x86_64 mkfs.erofs mke2fs xz zstd; do
	path=$(command -v "$program") || continue
	rm -f "$root/usr/bin/$program"
	add_program "$path"
done
for firmware in /usr/share/qemu/qboot.rom /usr/share/seabios/qboot.rom; do
	[ ! -e "$firmware" ] || add "$firmware"
done

for program in conformance sbxd sbx-worker sbx-boxlite sbx-guest sbx-files sbxctl; do
	cp "$programs/$program" "$root/sbx/"
	add_libraries "$programs/$program"
done
cp "$here/kvm_host_init.sh" "$root/sbx/init"
for module in irqbypass kvm kvm-amd; do
	take_module "$SBX_KERNEL" "$module" "$root/sbx"
done

cp -a "$SBX_ROOT" "$root/srv/image"
cp "$SBX_KERNEL" "$root/srv/kernel/boot/"
version=${SBX_KERNEL##*/vmlinuz-}
cp -a "$(dirname "$(dirname "$SBX_KERNEL")")/lib/modules/$version" "$root/srv/kernel/lib/modules/"

echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"

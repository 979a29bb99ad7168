# programs: copies programs of this host, with the libraries that they load, into the directory $root; and modules of a
# kernel; and says who there is. Read by others.

# The file that a path leads to, at that path.
add() {
	mkdir -p "$root$(dirname "$1")"
	cp -L "$1" "$root$1"
}

# What a program loads; nothing where it is static.
add_libraries() {
	{ ldd "$1" 2>/dev/null || true; } | sed -n 's/.*[[:space:]]\(\/[^ ]*\) (0x.*/\1/p' | while read -r library; do
		[ -e "$root$library" ] || add "$library"
	done
}

add_program() {
	add "$1"
	add_libraries "$1"
}

# Who there is: root, and a user with the number that tests expect.
add_accounts() {
	cat >"$root/etc/passwd" <<-END
		root:x:0:0:root:/root:/bin/bash
		user:x:1000:1000:user:/home/user:/bin/bash
		nobody:x:65534:65534:nobody:/nonexistent:/bin/false
	END
	cat >"$root/etc/group" <<-END
		root:x:0:
		tty:x:5:
		user:x:1000:
		nogroup:x:65534:
	END
}

# A kernel's module, unpacked: take_module KERNEL NAME DIR. Nothing where it is built in.
take_module() {
	file=$(find "$(dirname "$(dirname "$1")")/lib/modules/${1##*/vmlinuz-}/" -name "$2.ko" -o -name "$2.ko.*" | head -n 1)
	case $file in
	'') ;;
	*.xz) xz -dc "$file" >"$3/$2.ko" ;;
	*.zst) zstd -qdc "$file" >"$3/$2.ko" ;;
	*) cp "$file" "$3/$2.ko" ;;
	esac
}

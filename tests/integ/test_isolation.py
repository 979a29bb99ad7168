"""From inside a box: what must not be reachable, each thing tried. And hungry boxes that hurt only themselves."""

import os
import shutil
import tempfile
import unittest

from harness import IS_ROOT, DaemonTest, slurp, wait_for

PROBE = r"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(nr, *args):
    ctypes.set_errno(0)
    r = libc.syscall(nr, *args)
    return r, ctypes.get_errno()
"""


class Isolation(DaemonTest):
    config = "replicas: 50\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.secret_dir = tempfile.mkdtemp(prefix="sbx-secret-", dir="/opt" if IS_ROOT else None)
        os.chmod(cls.secret_dir, 0o755)
        with open(f"{cls.secret_dir}/secret", "w") as f:
            f.write("host secret")
        cls.box = cls.d.acquire("iso", "t")["box_id"]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.secret_dir)
        super().tearDownClass()

    def sh(self, command, **kw):
        return self.d.run(self.box, command, **kw)

    def python(self, program, **kw):
        return self.d.run(self.box, ["python3", "-c", PROBE + program], **kw)

    def test_no_host_file_outside_the_image(self):
        self.assertNotEqual(self.sh(f"cat {self.secret_dir}/secret")["exit_code"], 0)
        for path in ("/root", "/home", "/run", "/var/log", "/var/lib", "/boot", "/srv", "/opt"):
            host = set(os.listdir(path)) if os.access(path, os.R_OK) else set()
            inside = set(self.sh(f"ls -A {path} 2>/dev/null")["stdout"].split())
            self.assertFalse(inside & host - {"lock"}, f"{path}: {inside & host}")
        top = set(self.d.sh(self.box, "ls -A /").split())
        allowed = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "dev", "proc", "sys", "tmp", "run", "var", "root",
                   "home", "mnt", "opt", "srv"}
        self.assertLessEqual(top, allowed)
        self.assertNotIn("root:$", self.sh("cat /etc/shadow 2>/dev/null")["stdout"])
        for escape in ("/proc/1/root", "/proc/self/root/../..", "/../../../.."):
            inside = set(self.sh(f"ls -A {escape}")["stdout"].split())
            self.assertLessEqual(inside, allowed, escape)

    def test_mount_table_tells_nothing_of_the_host(self):
        text = self.d.sh(self.box, "cat /proc/self/mountinfo")
        self.assertNotIn(self.d.dir, text)
        self.assertNotIn("/dev/vda", text.replace("/dev/null", ""))

    def test_no_host_process(self):
        pids = self.d.sh(self.box, "ls -d /proc/[0-9]* | wc -l")
        self.assertLess(int(pids), 12)
        self.assertNotIn("sbxd", self.d.sh(self.box, "cat /proc/[0-9]*/comm").split())
        r = self.python(f"print(call(62, {os.getpid()}, 0)[1])")  # kill(host pid)
        self.assertEqual(r["stdout"], "3\n")

    def test_only_loopback_and_it_is_up(self):
        self.assertEqual(self.d.sh(self.box, "sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '"), "lo\n")
        program = ("import socket\ns=socket.create_server(('127.0.0.1',0))\nc=socket.create_connection(s.getsockname())\nprint('up')\n"
                   "try: socket.create_connection(('1.1.1.1',80),2)\nexcept OSError as e: print(e.errno)")
        self.assertEqual(self.python(program)["stdout"], "up\n101\n")

    def test_no_other_box(self):
        other = self.d.acquire("iso", "other")["box_id"]
        self.d.sh(other, "echo s > /tmp/s; (sleep 4000 >/dev/null 2>&1 &)")
        listen = "import socket,time\ns=socket.socket(socket.AF_UNIX)\ns.bind('\\0sbx-test')\ns.listen()\nopen('/tmp/up','w')\ntime.sleep(1000)"
        self.d.sh(other, f'(python3 -c "{listen}" >/dev/null 2>&1 &)')
        wait_for("the listener", lambda: self.d.read(other, "/tmp/up").status == 200)
        r = self.python("import socket\ns=socket.socket(socket.AF_UNIX)\ntry: s.connect('\\0sbx-test'); print('reached')\nexcept OSError as e: print(e.errno)")
        self.assertEqual(r["stdout"], "111\n")
        self.assertEqual(self.sh("cat /tmp/s")["exit_code"], 1)
        self.assertNotIn("sleep", self.d.sh(self.box, "cat /proc/[0-9]*/comm").split())
        r = self.python("print(call(64, 0x5b5, 1, 0o1666)[0])")  # semget: an own ipc namespace each
        sem = int(r["stdout"])
        r2 = self.d.run(other, ["python3", "-c", PROBE + "print(call(64, 0x5b5, 1, 0)[1])"])
        self.assertGreaterEqual(sem, 0)
        self.assertEqual(r2["stdout"], "2\n")
        self.d.release(other)

    def test_a_set_uid_program_gains_nothing(self):
        self.assertIn("NoNewPrivs:\t1", self.d.sh(self.box, "cat /proc/self/status"))
        if not IS_ROOT:
            return  # the box has one uid only
        self.d.sh(self.box, "cp /usr/bin/id /tmp/suid; chown 0:0 /tmp/suid; chmod 6755 /tmp/suid")
        self.assertEqual(self.d.sh(self.box, "/tmp/suid -u; /tmp/suid -ru", user="1000:1000"), "1000\n1000\n")

    def test_capabilities_are_dropped(self):
        status = self.d.sh(self.box, "cat /proc/self/status")
        caps = {l.split(":")[0]: int(l.split()[1], 16) for l in status.splitlines() if l.startswith("Cap")}
        for bit, name in ((21, "SYS_ADMIN"), (19, "SYS_PTRACE"), (12, "NET_ADMIN"), (16, "SYS_MODULE"), (17, "SYS_RAWIO"), (27, "MKNOD"),
                          (22, "SYS_BOOT"), (25, "SYS_TIME"), (39, "BPF"), (2, "DAC_READ_SEARCH")):
            for kind in ("CapPrm", "CapEff", "CapBnd", "CapAmb", "CapInh"):
                self.assertFalse(caps[kind] & (1 << bit), f"{name} in {kind}")

    def test_dangerous_calls_are_refused(self):
        calls = {  # x86_64 numbers
            "mount": "165, b'none', b'/tmp', b'tmpfs', 0, 0", "umount2": "166, b'/proc', 2", "unshare(NEWUSER)": "272, 0x10000000",
            "unshare(NEWNS)": "272, 0x20000", "setns": "308, 0, 0", "pivot_root": "155, b'/tmp', b'/tmp'", "bpf": "321, 0, 0, 0",
            "perf_event_open": "298, 0, 0, -1, -1, 0", "kexec_load": "246, 0, 0, 0, 0", "init_module": "175, 0, 0, 0",
            "add_key": "248, b'user', b'a', b'b', 1, -3", "keyctl": "250, 0, 0, 0", "io_uring_setup": "425, 1, 0", "userfaultfd": "323, 0",
            "open_by_handle_at": "304, -1, 0, 0", "fsopen": "430, b'tmpfs', 0", "move_mount": "429, -1, 0, -1, 0, 0", "reboot": "169, 0, 0, 0, 0",
            "swapon": "167, b'/x', 0", "settimeofday": "164, 0, 0", "acct": "163, 0", "syslog": "103, 3, 0, 0", "process_vm_readv": "310, 1, 0, 0, 0, 0, 0",
            "clone(NEWUSER)": "56, 0x10000011, 0, 0, 0, 0", "TIOCSTI": "16, 0, 0x5412, b'x'",
        }
        program = "".join(f"r=call({args}); print({name!r}, r[0], r[1])\n" for name, args in calls.items())
        out = self.python(program)
        self.assertEqual(out["exit_code"], 0, out)
        for line in out["stdout"].splitlines():
            name, result, errno = line.rsplit(" ", 2)
            self.assertEqual(result, "-1", line)
            self.assertIn(errno, ("1", "38"), f"{line}: EPERM or ENOSYS is expected")

    def test_ptrace_of_the_agent_is_refused(self):
        self.assertEqual(self.python("print(call(101, 16, 1, 0, 0)[1])")["stdout"], "1\n")  # PTRACE_ATTACH to pid 1
        self.assertNotEqual(self.sh("ls -l /proc/1/fd/ 2>/dev/null | grep -q socket")["exit_code"], 0)

    def test_proc_is_masked(self):
        for path in ("/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/irq/0/smp_affinity"):
            self.assertNotEqual(self.sh(f"test -e {path} || exit 1; echo x > {path}")["exit_code"], 0, path)
        for path in ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug"):
            self.assertEqual(self.sh(f"head -c 100 {path} 2>/dev/null")["stdout"], "", path)

    def test_devices_are_few(self):
        names = set(self.d.sh(self.box, "ls /dev").split())
        self.assertLessEqual(names, {"null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm", "fd", "stdin", "stdout",
                                     "stderr", "mqueue", "console"})
        self.assertNotEqual(self.sh("mknod /tmp/d b 254 0")["exit_code"], 0)
        self.assertEqual(self.d.sh(self.box, "head -c 5 /dev/zero | wc -c; echo x > /dev/null; head -c 8 /dev/urandom | wc -c"), "5\n8\n")

    def test_virtual_directories(self):
        self.d.sh(self.box, "for d in /mnt/user-data/workspace /mnt/user-data/uploads /mnt/user-data/outputs /mnt/skills /tmp; do "
                            "test -d $d && touch $d/x || exit 1; done")

    @unittest.skipUnless(os.path.exists("/sys/kernel/mm/transparent_hugepage/shmem_enabled"), "a kernel without huge pages")
    def test_scratch_takes_large_pages(self):
        """In small ones a large file costs several times as much to write."""
        mounts = [line.split() for line in self.d.sh(self.box, "cat /proc/self/mounts").splitlines()]
        self.assertEqual(["huge=within_size" in options.split(",") for _, at, _, options, *_ in mounts if at == "/dev/shm"], [True])

    def test_what_a_box_writes_stays_in_it(self):
        self.d.sh(self.box, "touch /usr/bin/sbx-was-here /etc/sbx-was-here 2>/dev/null; true")
        self.assertFalse(os.path.exists("/usr/bin/sbx-was-here"))
        self.assertFalse(os.path.exists("/etc/sbx-was-here"))
        if IS_ROOT:
            self.assertEqual(self.d.sh(self.box, "ls /usr/bin/sbx-was-here"), "/usr/bin/sbx-was-here\n")

    def test_worker_has_no_privilege(self):
        if not IS_ROOT:
            self.skipTest("root only")
        pid = self.d.inspect(self.box)["pid"]
        status = dict(l.split(":\t", 1) for l in slurp(f"/proc/{pid}/status").splitlines() if ":\t" in l)
        self.assertNotIn("0", status["Uid"].split())
        self.assertEqual(int(status["CapPrm"], 16), 0)
        self.assertEqual(int(status["CapEff"], 16), 0)
        self.assertEqual(status["NoNewPrivs"].strip(), "1")
        if not os.environ.get("SBX_SAN"):  # a sanitizer has needs of its own
            self.assertEqual(status["Seccomp"].strip(), "2")
        maps = slurp(f"/proc/{pid}/maps")
        shm = [l for l in maps.splitlines() if "/dev/shm/" in l]
        self.assertEqual(len(shm), 1, "its own slot page and nothing else")
        lo, hi = (int(x, 16) for x in shm[0].split()[0].split("-"))
        self.assertEqual(hi - lo, 4096)
        targets = [os.readlink(f"/proc/{pid}/fd/{f}") for f in os.listdir(f"/proc/{pid}/fd")]
        self.assertFalse([t for t in targets if "/dev/shm" in t], "the segment's descriptor is closed")

    def test_two_boxes_have_different_host_uids(self):
        if not IS_ROOT:
            self.skipTest("root only")
        other = self.d.acquire("iso", "uid")["box_id"]
        uids = [slurp(f"/proc/{self.d.inspect(b)['box_pid']}/status").split("Uid:")[1].split()[0] for b in (self.box, other)]
        self.assertNotEqual(uids[0], uids[1])
        self.assertNotIn("0", uids)
        self.d.release(other)


@unittest.skipUnless(IS_ROOT and os.path.isdir("/sys/fs/cgroup"), "limits need cgroups")
class Hungry(DaemonTest):
    """Fork bomb, memory hog and disk filler hurt only their own box."""

    config = "replicas: 50\npids_max: 64\nmemory_mib: 128\ndisk_mib: 64\n"

    def setUp(self):
        self.good = self.d.acquire("good", "t")["box_id"]
        self.bad = self.d.acquire("bad", self.id())["box_id"]

    def tearDown(self):
        self.assertEqual(self.d.sh(self.good, "echo fine"), "fine\n")
        self.d.request("DELETE", f"/v1/boxes/{self.bad}?force=true")

    def test_fork_bomb(self):
        r = self.d.run(self.bad, ":(){ :|:& };: ; sleep 1000", timeout_seconds=1)
        self.assertTrue(r["timed_out"] or r["exit_code"] != 0, r)
        wait_for("the box to be usable again", lambda: self.d.post(f"/v1/boxes/{self.bad}/run", {"argv": ["/bin/true"]}).status == 200)

    def test_memory_hog(self):
        r = self.d.run(self.bad, ["python3", "-c", "x=[]\nwhile True: x.append(bytearray(b'x'*(1<<20)))"], timeout_seconds=60)
        self.assertTrue(r["signal"] == 9 or r["exit_code"] not in (0, None), r)
        self.assertFalse(r["timed_out"])
        # The kernel may have chosen the agent itself: then the box is gone, and the next acquire brings a new one.
        again = self.d.acquire("bad", self.id())
        self.assertEqual(self.d.sh(again["box_id"], "echo usable"), "usable\n")

    def test_disk_filler(self):
        r = self.d.run(self.bad, "cat /dev/zero > /tmp/full; echo $?; df -m /tmp | tail -1; rm /tmp/full; echo ok > /tmp/ok && cat /tmp/ok")
        self.assertIn("No space left", r["stderr"])
        self.assertTrue(r["stdout"].endswith("ok\n"), r)


class DirectoryImage(DaemonTest):
    config = "replicas: 50\n"

    def test_a_root_directory_as_image(self):
        root = tempfile.mkdtemp(prefix="sbx-image-")
        os.chmod(root, 0o755)
        try:
            os.makedirs(f"{root}/bin")
            os.makedirs(f"{root}/etc")
            busy = shutil.which("busybox")
            if not busy:
                self.skipTest("busybox is not installed")
            shutil.copy(busy, f"{root}/bin/busybox")
            for name in ("sh", "cat", "ls", "id", "true", "touch"):
                os.symlink("busybox", f"{root}/bin/{name}")
            with open(f"{root}/etc/marker", "w") as f:
                f.write("from the image\n")
            box = self.d.acquire("img", "t", image=root)
            self.assertEqual(box["image"], root)
            self.assertEqual(self.d.sh(box["box_id"], "cat /etc/marker; touch /etc/new; ls -d /usr/bin 2>/dev/null; true"), "from the image\n")
            self.assertFalse(os.path.exists(f"{root}/etc/new"))
            self.assertEqual(sorted(os.listdir(root)), ["bin", "etc"])
            self.d.sh(box["box_id"], "touch /mnt/user-data/workspace/x")
            self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true").status, 204)
        finally:
            shutil.rmtree(root)

    def test_an_image_that_is_not_there(self):
        for image in ("/no/such/dir", "no-such-image:latest", "/etc/hostname"):
            r = self.d.post("/v1/acquire", {"user_id": "img", "thread_id": "none", "image": image})
            self.assertEqual((r.status, r.reason), (422, "image_pull_failed"), r)
            self.assertIn(image, r.json["error"]["message"])


if __name__ == "__main__":
    unittest.main()

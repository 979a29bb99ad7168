"""fs/read and fs/write: bytes in, the same bytes out, and each failure under its own name."""

import os
import unittest
from urllib.parse import quote

from harness import DaemonTest, in_threads


class Files(DaemonTest):
    config = "replicas: 50\ndisk_mib: 160\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = cls.d.acquire("files", "t")["box_id"]

    def expect(self, reply, status, reason):
        self.assertEqual((reply.status, reply.reason), (status, reason), reply)

    def test_every_byte_value_survives(self):
        data = bytes(range(256)) * 3
        self.assertEqual(self.d.write(self.box, "/tmp/bytes", data).status, 200)
        self.assertEqual(self.d.read(self.box, "/tmp/bytes").body, data)

    def test_row_14_a_large_upload_is_all_there(self):
        for size in (0, 1, 4095, 18 * 1024, 96 * 1024, 1 << 20, 16 << 20):
            data = os.urandom(size)
            r = self.d.write(self.box, "/tmp/large", data)
            self.assertEqual(r.status, 200, r)
            self.assertEqual(r.json["bytes"], size)
            self.assertEqual(self.d.sh(self.box, "stat -c %s /tmp/large"), f"{size}\n")
            self.assertEqual(self.d.read(self.box, "/tmp/large").body, data)

    def test_chunked_upload(self):
        c = self.d.connect()
        c.request("PUT", f"/v1/boxes/{self.box}/fs/write?path=/tmp/chunked", iter([b"one ", b"two ", b"three"]), encode_chunked=True,
                  headers={"Transfer-Encoding": "chunked"})
        self.assertEqual(c.getresponse().status, 200)
        c.close()
        self.assertEqual(self.d.read(self.box, "/tmp/chunked").body, b"one two three")

    def test_append_and_mode(self):
        self.d.write(self.box, "/tmp/app", b"one\n")
        self.d.write(self.box, "/tmp/app", b"two\n", "&append=1")
        self.assertEqual(self.d.read(self.box, "/tmp/app").body, b"one\ntwo\n")
        self.d.write(self.box, "/tmp/exe", b"#!/bin/sh\necho ran\n", "&mode=0755")
        self.assertEqual(self.d.run(self.box, ["/tmp/exe"])["stdout"], "ran\n")
        self.d.write(self.box, "/tmp/exe", b"#!/bin/sh\necho again\n")
        self.assertEqual(self.d.run(self.box, ["/tmp/exe"])["stdout"], "again\n", "the mode is kept")

    def test_a_running_program_can_be_replaced(self):
        self.d.sh(self.box, "cp /bin/sleep /tmp/prog; (/tmp/prog 60 >/dev/null 2>&1 &)")
        self.assertEqual(self.d.write(self.box, "/tmp/prog", b"new").status, 200)
        self.d.run(self.box, "pkill prog")

    def test_byte_ranges(self):
        self.d.write(self.box, "/tmp/range", b"0123456789")
        get = lambda q: self.d.get(f"/v1/boxes/{self.box}/fs/read?path=/tmp/range{q}")
        self.assertEqual(get("&offset=3&limit=4").body, b"3456")
        self.assertEqual(get("&offset=8").body, b"89")
        self.assertEqual(get("&offset=99").body, b"")
        self.assertEqual(get("&limit=0").body, b"")
        for q in ("&offset=-1", "&offset=x", "&limit=1.5", "&offset=", "&start_line=0", "&start_line=2&offset=1", "&end_line=x"):
            self.assertEqual(get(q).status, 400, q)

    def test_line_ranges_split_at_newline_only(self):
        self.d.write(self.box, "/tmp/lines", b"one\r\ntwo\x0b\x0cstill two\nthree\xe2\x80\xa8same\nlast")
        get = lambda q: self.d.get(f"/v1/boxes/{self.box}/fs/read?path=/tmp/lines{q}").body
        self.assertEqual(get("&start_line=2&end_line=2"), b"two\x0b\x0cstill two\n")
        self.assertEqual(get("&start_line=3"), b"three\xe2\x80\xa8same\nlast")
        self.assertEqual(get("&end_line=1"), b"one\r\n")
        self.assertEqual(get("&start_line=9"), b"")

    def test_names_with_any_byte(self):
        for name in (b"with space", b"quote'\"", b"new\nline", b"co:lon", b"\xff\xfe", "naïve ✓".encode(), b"back\\slash", b"a%41", b"+"):
            path = "/tmp/" + quote(name, safe="")
            self.assertEqual(self.d.write(self.box, path, name).status, 200, name)
            self.assertEqual(self.d.read(self.box, path).body, name)

    def test_each_failure_has_its_name(self):
        d, box = self.d, self.box
        d.sh(box, "mkdir -p /tmp/dir; touch /tmp/file; ln -sfn loop /tmp/loop; mkfifo /tmp/fifo2 || true")
        self.expect(d.read(box, "/tmp/none"), 404, "not_found")
        self.expect(d.read(box, "/tmp/dir"), 400, "is_directory")
        self.expect(d.read(box, "/tmp/file/x"), 400, "not_a_directory")
        self.expect(d.write(box, "/tmp/dir", b"x"), 400, "is_directory")
        self.expect(d.write(box, "/tmp/none/x", b"x"), 404, "not_found")
        self.assertEqual(d.read(box, "/tmp/loop").status, 400)
        for bad in ("relative", "/tmp/../etc/passwd", "/..", "", "/tmp/a%00b", "//"):
            r = d.get(f"/v1/boxes/{box}/fs/read?path={bad}")
            self.assertEqual(r.status, 400, bad)
        self.assertEqual(d.get(f"/v1/boxes/{box}/fs/read").status, 400)
        for bad in ("/dev/zero", "/tmp/fifo2", "/dev/tty"):
            self.assertIn(d.read(box, bad).status, (400, 403), bad)
        self.assertIn(b"processor", d.read(box, "/proc/cpuinfo").body)
        for path in ("/proc/self/mem", "/proc/1/mem"):  # they look like files of size 0
            self.expect(d.read(box, path), 400, "invalid_argument")
        r = d.get(f"/v1/boxes/{box}/fs/read?path=/proc/self/mem&start_line=1&end_line=2")
        self.expect(r, 400, "invalid_argument")
        for query in ("", "&append=1"):
            for path in ("/proc/new", "/proc/self/comm", "/proc/self/new", "/proc/sys/kernel/hostname"):
                r = d.write(box, path, b"x", query)
                self.assertIn((r.status, r.reason), ((400, "invalid_argument"), (403, "permission_denied")), f"{path} {query}: {r}")
                self.assertIn(path, r.json["error"]["message"])
            self.expect(d.write(box, "/proc/none/new", b"x", query), 404, "not_found")
        self.assertEqual(d.get(f"/v1/boxes/{box}/fs/nothing?path=/").status, 404)
        self.assertEqual(d.post(f"/v1/boxes/{box}/fs/read?path=/tmp/file").status, 405)

    def test_symlinks_resolve_inside_the_box(self):
        self.d.sh(self.box, "ln -sfn /etc/hostname /tmp/l1; ln -sfn ../../../../../../etc/hostname /tmp/l2; ln -sfn /proc/1/root/etc/hostname /tmp/l3")
        inside = self.d.sh(self.box, "cat /etc/hostname").encode()
        self.assertEqual(self.d.read(self.box, "/tmp/l1").body, inside)
        self.assertEqual(self.d.read(self.box, "/tmp/l2").body, inside)
        self.assertNotEqual(self.d.read(self.box, "/tmp/l3").status, 200, "magic links are not followed")

    def test_no_space_leaves_the_old_content(self):
        self.d.write(self.box, "/tmp/keep", b"old")
        r = self.d.write(self.box, "/tmp/keep", bytes(200 << 20))
        self.expect(r, 507, "no_space")
        self.assertEqual(self.d.read(self.box, "/tmp/keep").body, b"old")
        self.assertEqual(self.d.sh(self.box, "ls -a /tmp | grep -c '\\.sbx-' || true"), "0\n")
        self.assertEqual(self.d.write(self.box, "/tmp/keep", b"new").status, 200)

    def test_a_cut_upload_changes_nothing(self):
        import socket
        self.d.write(self.box, "/tmp/cut", b"old")
        s = socket.socket(socket.AF_UNIX)
        s.connect(self.d.socket)
        s.sendall(f"PUT /v1/boxes/{self.box}/fs/write?path=/tmp/cut HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n".encode() + b"x" * 5000)
        s.close()
        from harness import wait_for
        wait_for("the temporary file to be gone", lambda: self.d.sh(self.box, "ls -a /tmp | grep -c '\\.sbx-' || true") == "0\n")
        self.assertEqual(self.d.read(self.box, "/tmp/cut").body, b"old")

    def test_sixty_four_mib_both_ways(self):
        data = os.urandom(1 << 20) * 64
        self.assertEqual(self.d.write(self.box, "/tmp/64m", data).status, 200)
        self.assertTrue(self.d.read(self.box, "/tmp/64m").body == data)
        self.d.sh(self.box, "rm /tmp/64m")

    def begin_read(self, path):
        """A GET whose answer is read by hand: the socket, the announced length, what came with the head."""
        import socket
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(self.d.socket)
        s.sendall(f"GET /v1/boxes/{self.box}/fs/read?path={path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        got = b""
        while b"\r\n\r\n" not in got:
            got += s.recv(1000)
        head, _, body = got.partition(b"\r\n\r\n")
        length = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        return s, int(length[0]), body

    def test_a_file_cut_while_it_is_read_has_no_end(self):
        self.d.sh(self.box, "head -c 20000000 /dev/urandom > /tmp/shrinks")
        s, length, body = self.begin_read("/tmp/shrinks")
        self.assertEqual(length, 20000000)
        self.d.sh(self.box, "truncate -s 1000 /tmp/shrinks")
        got = len(body)
        while chunk := s.recv(1 << 20):
            got += len(chunk)
        s.close()
        self.assertLess(got, length)
        self.assertEqual(len(self.d.read(self.box, "/tmp/shrinks").body), 1000)

    def test_a_growing_file_is_read_as_it_was(self):
        self.d.sh(self.box, "head -c 20000000 /dev/urandom > /tmp/grows; sha256sum < /tmp/grows > /tmp/sum")
        s, length, body = self.begin_read("/tmp/grows")
        self.d.sh(self.box, "head -c 5000000 /dev/zero >> /tmp/grows")
        while len(body) < length:
            body += s.recv(1 << 20)
        import hashlib
        self.assertEqual(hashlib.sha256(body).hexdigest(), self.d.sh(self.box, "cut -c1-64 /tmp/sum").strip())
        s.sendall(f"GET /v1/boxes/{self.box}/fs/read?path=/tmp/sum HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertTrue(s.recv(17).startswith(b"HTTP/1.1 200"), "the connection serves on")
        s.close()
        self.d.sh(self.box, "rm /tmp/grows /tmp/sum")

    def test_large_reads_at_once_while_others_stall(self):
        self.d.sh(self.box, "for i in 1 2 3 4; do head -c 8000001 /dev/urandom > /tmp/large$i; done")
        stalled = [self.begin_read(f"/tmp/large{i}") for i in (1, 2)]
        sums = self.d.sh(self.box, "sha256sum /tmp/large*").split()[::2]
        import hashlib
        digest = lambda i: hashlib.sha256(self.d.read(self.box, f"/tmp/large{i % 4 + 1}").body).hexdigest()
        self.assertEqual(in_threads(8, digest), sums * 2)
        for i, (s, length, body) in enumerate(stalled):
            while len(body) < length:
                body += s.recv(1 << 20)
            s.close()
            self.assertEqual(hashlib.sha256(body).hexdigest(), sums[i])
        self.d.sh(self.box, "rm /tmp/large*")

    def test_many_at_once(self):
        def one(i):
            data = os.urandom(100000 + i)
            self.d.write(self.box, f"/tmp/many{i}", data)
            return self.d.read(self.box, f"/tmp/many{i}").body == data
        self.assertTrue(all(in_threads(24, one)))
        self.d.sh(self.box, "rm /tmp/many*")


if __name__ == "__main__":
    unittest.main()

"""Clients that speak badly, slowly or too much: a clear 4xx or a closed connection, and the service unharmed."""

import json
import os
import random
import socket
import unittest

from harness import IS_ROOT, Daemon, DaemonTest, in_threads, wait_for


class BadInput(DaemonTest):
    config = "replicas: 50\n"

    def tearDown(self):
        self.assertEqual(self.d.get("/v1/pool").status, 200)

    def raw(self, data, end=True):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(30)
        s.connect(self.d.socket)
        try:
            s.sendall(data)
            if end:
                s.shutdown(socket.SHUT_WR)
            got = b""
            while chunk := s.recv(65536):
                got += chunk
            return got
        except ConnectionError:
            return b""
        finally:
            s.close()

    def test_what_is_no_http(self):
        for data in (b"\0\0\0\0\r\n\r\n", b"hello\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET relative HTTP/1.1\r\nHost: x\r\n\r\n",
                     b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
                     b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
                     b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                     b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                     b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", bytes(range(256))):
            got = self.raw(data)
            self.assertTrue(got == b"" or got.startswith(b"HTTP/1.1 4"), (data, got[:200]))

    def test_random_bytes(self):
        rng = random.Random(7)
        for _ in range(200):
            data = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 300)))
            self.raw(data + b"\r\n\r\n")
            self.raw(b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(data) + data)

    def test_a_head_that_is_too_long(self):
        got = self.raw(b"GET /v1/pool HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20000 + b"\r\n\r\n", end=False)
        self.assertTrue(got.startswith(b"HTTP/1.1 431"), got[:100])
        got = self.raw(b"GET /" + b"a" * 100000, end=False)
        self.assertTrue(got == b"" or got.startswith(b"HTTP/1.1 431"), got[:100])

    def test_a_body_that_is_too_long(self):
        r = self.d.post("/v1/acquire", {"user_id": "x" * 100000, "thread_id": "t"})
        self.assertEqual((r.status, r.reason), (413, "too_large"))

    def test_slow_clients_are_served_and_do_not_stop_others(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(30)
        s.connect(self.d.socket)
        for byte in b"GET /v1/pool HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":
            s.send(bytes([byte]))
            if byte == ord("\n"):
                self.assertEqual(self.d.get("/v1/pool").status, 200)
        self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 200"))
        s.close()

    def test_many_idle_connections(self):
        held = []
        for i in range(500):
            s = socket.socket(socket.AF_UNIX)
            s.connect(self.d.socket)
            if i % 2:
                s.send(b"GET /v1/p")
            held.append(s)
        self.assertEqual(self.d.get("/v1/pool").status, 200)
        for s in held:
            s.close()

    def test_paths_that_are_not_there(self):
        for path in ("/", "/v1", "/v2/pool", "/v1/nothing", "/v1/boxes/x/y/z", "/v1/boxes/none/nothing", "/v1/pool/x"):
            self.assertEqual(self.d.get(path).status, 404, path)
        for path in ("/v1/%zz", "/v1/pool/%00", "/v1//pool", "/v1/../v1/pool"):
            self.assertEqual(self.d.get(path).status, 400, path)

    def test_methods_that_are_not_there(self):
        for method, path in (("GET", "/v1/acquire"), ("PUT", "/v1/boxes"), ("POST", "/v1/pool"), ("PATCH", "/v1/boxes/x"), ("GET", "/v1/shutdown"),
                             ("GET", "/v1/boxes/x/release"), ("GET", "/v1/pool/reset"), ("OPTIONS", "/v1/acquire")):
            r = self.d.request(method, path)
            self.assertEqual(r.status, 405, f"{method} {path}: {r}")
            self.assertTrue(r.headers["Allow"], path)

    def test_acquire_with_wrong_values(self):
        cases = [{"user_id": 1}, {"thread_id": []}, {"image": 5}, {"image": ""}, {"image": "x" * 500}, {"lease_seconds": "1"}, {"lease_seconds": -1},
                 {"lease_seconds": 0}, {"wait_seconds": "x"}, {"wait_seconds": -5}, {"wait_seconds": 1e300}, {"release_on_disconnect": 1},
                 {"user_id": "a\0b"}, {"thread_id": "a\0"}]
        for extra in cases:
            r = self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "t", **extra})
            self.assertEqual((r.status, r.json["error"]["code"]), (400, "invalid_argument"), extra)
            if "\\x00" not in repr(extra):  # that is an error of the JSON text, by line and column
                self.assertIn(next(iter(extra)), r.json["error"]["message"], "the field is named")
        for raw in (b"", b"[]", b"null", b"{", b'{"a":1}{', b"\xff\xfe", b'{"user_id":"\xff"}', b"{" * 50000, b'{"user_id":"a","user_id":"b"}'):
            r = self.d.post("/v1/acquire", raw)
            self.assertIn(r.status, (400, 200) if raw == b"" else (400,), raw[:50])
            if r.status == 200:
                self.d.request("DELETE", f"/v1/boxes/{r.json['box_id']}?force=true")

    def test_release_and_delete_with_wrong_values(self):
        box = self.d.acquire("bad", "t")["box_id"]
        for body in ({"lease_id": 1}, {"lease_id": "x"}, {"lease_id": "G" * 16}, {"lease_id": {}}):
            r = self.d.post(f"/v1/boxes/{box}/release", body)
            self.assertEqual((r.status, r.json["error"]["code"]), (400, "invalid_argument"), body)
        self.assertEqual(self.d.post(f"/v1/boxes/{box}/release", b"{").status, 400)
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box}?force=maybe").status, 400)
        self.assertEqual(self.d.inspect(box)["leases"], 1)
        for bad in ("x" * 300, "0:" + box, "99999999999999:" + box, ":", "%2e", "a%2Fb", "-1:x"):
            status = self.d.post(f"/v1/boxes/{bad}/release").status
            self.assertIn(status, (200, 400, 404), bad)
        self.d.release(box)

    def test_long_and_strange_names(self):
        for user, thread in (("x" * 10000, "t"), ("", ""), ("\n\r\t", "\x7f"), ("u" * 320, "t" * 320), ("😀" * 200, "é" * 200)):
            box = self.d.acquire(user, thread)
            self.assertEqual(self.d.sh(box["box_id"], "echo ok"), "ok\n")
            self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true").status, 204)
        self.assertEqual(self.d.get("/v1/boxes").status, 200)

    def test_bad_requests_inside_a_handed_over_connection(self):
        box = self.d.acquire("bad", "handed")["box_id"]
        for tail in (b"nonsense\r\n\r\n", b"GET /v1/pool HTTP/1.1\r\n\r\n", b"POST /v1/boxes/%s/run HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n" % box.encode(),
                     b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 30000 + b"\r\n\r\n", b"\0" * 100):
            body = b'{"command":"echo one"}'
            first = b"POST /v1/boxes/%s/run HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (box.encode(), len(body)) + body
            got = self.raw(first + tail)
            self.assertTrue(got.startswith(b"HTTP/1.1 200"), got[:200])
            self.assertEqual(self.d.sh(box, "echo fine"), "fine\n")
        self.d.release(box)

    def test_clients_that_leave_while_they_wait(self):
        def leave(i):
            c = self.d.connect()
            c.request("POST", "/v1/acquire", json.dumps({"user_id": "leaver", "thread_id": str(i % 4)}))
            c.close()
        in_threads(40, leave)
        wait_for("nobody to wait", lambda: self.d.pool()["waiters"] == 0)
        wait_for("no boot", lambda: self.d.pool()["booting"] == 0)


class SlowHead(unittest.TestCase):
    def test_too_many_connections_are_told_so(self):
        wrapper = ("prlimit", "--nofile=420:420")
        d = Daemon("max_boxes: 16\n", wrapper=wrapper)
        held = []
        try:
            refused = None
            for _ in range(400):
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(10)
                s.connect(d.socket)
                held.append(s)
            s = held[-1]
            refused = s.recv(200)
            self.assertTrue(refused.startswith(b"HTTP/1.1 429"), refused)
            for s in held:
                s.close()
            wait_for("service", lambda: d.get("/v1/pool").status == 200)
            self.assertEqual(d.stop(), 0)
        finally:
            d.kill()
            d.remove()


@unittest.skipUnless(IS_ROOT, "changes its uid")
class TwoUsers(DaemonTest):
    """Two uids on one host never meet, even with equal user and thread names."""

    config = "replicas: 50\n"

    def as_uid(self, uid, method, path, body=None):
        """One request from a process of another uid: (status, parsed body)."""
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                reply = self.d.request(method, path, body)
                os.write(w, json.dumps([reply.status, reply.body.decode()]).encode())
            finally:
                os._exit(0)
        os.close(w)
        with os.fdopen(r, "rb") as f:
            data = f.read()
        os.waitpid(pid, 0)
        status, text = json.loads(data)
        return status, json.loads(text) if text else None

    def test_boxes_belong_to_the_uid_that_acquired_them(self):
        os.chmod(self.d.socket, 0o666)
        scope = {"user_id": "same", "thread_id": "same"}
        status, a = self.as_uid(2001, "POST", "/v1/acquire", scope)
        self.assertEqual(status, 200)
        status, b = self.as_uid(2002, "POST", "/v1/acquire", scope)
        self.assertEqual(status, 200)
        self.assertEqual(a["box_id"], b["box_id"], "the token is the same")
        self.assertNotEqual(a["pid"], b["pid"], "the box is not")
        self.assertEqual(b["source"], "cold")
        run = f"/v1/boxes/{a['box_id']}/run"
        self.assertEqual(self.as_uid(2001, "POST", run, {"command": "echo a > /tmp/who"})[0], 200)
        self.assertEqual(self.as_uid(2002, "POST", run, {"command": "cat /tmp/who"})[1]["exit_code"], 1)
        for method, path in (("GET", ""), ("DELETE", "?force=true"), ("POST", "/release"), ("POST", "/run")):
            body = {"command": "true"} if path == "/run" else {}
            self.assertEqual(self.as_uid(2003, method, f"/v1/boxes/{a['box_id']}{path}", body)[0], 404, path)
            self.assertEqual(self.as_uid(2003, method, f"/v1/boxes/2001:{a['box_id']}{path}", body)[0], 404, path)
        for path in ("/v1/boxes", "/v1/boxes?all=true"):
            self.assertEqual(self.as_uid(2003, "GET", path)[1], {"boxes": []})
        self.assertEqual(self.as_uid(2003, "POST", "/v1/shutdown")[0], 403)
        self.assertEqual(self.as_uid(2003, "POST", "/v1/pool/reset")[0], 403)
        # root sees all, by UID:TOKEN
        mine = {x["box_id"] for x in self.d.get("/v1/boxes").json["boxes"]}
        self.assertFalse({x for x in mine if ":" in x}, "unless it asks for all, only its own")
        ids = {x["box_id"] for x in self.d.get("/v1/boxes?all=true").json["boxes"]}
        self.assertLessEqual({f"2001:{a['box_id']}", f"2002:{a['box_id']}"}, ids)
        self.assertEqual(self.d.sh(f"2001:{a['box_id']}", "cat /tmp/who"), "a\n")
        for uid in (2001, 2002):
            self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{uid}:{a['box_id']}?force=true").status, 204)
        release = f"/v1/boxes/{a['box_id']}/release"
        self.assertEqual(self.as_uid(2001, "POST", release, {})[1], {"status": "closed"})
        self.assertEqual(self.as_uid(2003, "POST", release, {})[0], 404, "what is gone was never this uid's")


if __name__ == "__main__":
    unittest.main()

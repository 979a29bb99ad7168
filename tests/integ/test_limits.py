"""Every limit that the configuration sets: what is just within it is served, what is past it is told so."""

import http.client
import json
import os
import signal
import socket
import unittest

from harness import BOUND, Daemon, DaemonTest, Reply, wait_for

KERNEL_ARG = 131071  # MAX_ARG_STRLEN without its NUL


class LimitsTest(DaemonTest):
    def tearDown(self):
        for b in self.d.get("/v1/boxes").json["boxes"]:
            self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")

    def raw(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(BOUND)
        s.connect(self.d.socket)
        self.addCleanup(s.close)
        return s

    def reply(self, s):
        f = s.makefile("rb")
        status = int(f.readline().split()[1])
        headers = dict(line.decode().rstrip().split(": ", 1) for line in iter(f.readline, b"\r\n"))
        return Reply(status, headers, f.read(int(headers["Content-Length"])))

    def refused(self, r, status, reason, says):
        self.assertEqual((r.status, r.reason), (status, reason), r)
        self.assertIn(says, r.json["error"]["message"])

    def box(self, thread):
        return self.d.acquire("limits", thread)["box_id"]


def filled(fields, size):
    """JSON of that many bytes: the field that is empty is as long as it takes."""
    text = json.dumps(fields)
    return text.replace('""', '"' + "x" * (size - len(text)) + '"').encode()


def chunked(body):
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[i:i + 1000] for i in range(0, len(body), 1000))) + b"0\r\n\r\n"


class Requests(LimitsTest):
    config = "limits: {head_bytes: 2048, body_bytes: 3000, json_depth: 8, event_streams: 2}\n"

    def head(self, path, size):
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nX: \r\n\r\n"
        return head.replace("X: ", "X: " + "x" * (size - len(head))).encode()

    def test_depth_of_what_boxes_are_asked(self):
        box = self.d.acquire("u", "deep")["box_id"]
        e = self.d.post(f"/v1/boxes/{box}/exec", {"command": "cat"}).json["execution_id"]
        deep = '{"x":' + "[" * 8 + "]" * 8 + "}"
        for path in ("run", "exec", "fs/mkdir", "fs/rename", f"executions/{e}/signal", f"executions/{e}/resize"):
            r = self.d.post(f"/v1/boxes/{box}/{path}", deep)
            self.refused(r, 400, "malformed_request", "nested deeper than 8 levels")

    def test_a_head(self):
        s = self.raw()
        s.sendall(self.head("/v1/pool", 2048))
        self.assertEqual(self.reply(s).status, 200)
        s.sendall(self.head("/v1/pool", 2049))
        self.refused(self.reply(s), 431, "head_too_large", "longer than 2048 bytes")

    def test_a_head_that_a_worker_reads(self):
        path = f"/v1/boxes/{self.box('head')}/fs/read?path=/etc/hostname"
        s = self.raw()
        for _ in range(2):
            s.sendall(self.head(path, 2048))
            self.assertEqual(self.reply(s).status, 200)
        s.sendall(self.head(path, 2049))
        self.refused(self.reply(s), 431, "head_too_large", "longer than 2048 bytes")

    def test_header_lines(self):
        s = self.raw()
        s.sendall(b"GET /v1/pool HTTP/1.1\r\nHost: x\r\n" + b"A:b\r\n" * 200 + b"\r\n")
        self.refused(self.reply(s), 431, "head_too_large", "too many header lines")

    def test_a_body(self):
        def body(size):
            return b'{"user_id":"limits","thread_id":"x"}'.ljust(size)
        self.assertEqual(self.d.post("/v1/acquire", body(3000)).status, 200)
        self.refused(self.d.post("/v1/acquire", body(3001)), 413, "too_large", "longer than 3000 bytes")
        for size, status in ((3000, 200), (3001, 413), (30000, 413)):
            s = self.raw()
            s.sendall(b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(body(size)))
            self.assertEqual(self.reply(s).status, status, size)

    def test_nesting(self):
        def deep(levels, **more):
            return json.dumps({**more, "deep": None}).replace("null", "[" * (levels - 1) + "]" * (levels - 1))
        scope = {"user_id": "limits", "thread_id": "deep"}
        known = '"deep" is not known'  # it was read, and looked at
        self.refused(self.d.post("/v1/acquire", deep(8, **scope)), 400, "invalid_argument", known)
        self.refused(self.d.post("/v1/acquire", deep(9, **scope)), 400, "malformed_request", "nested deeper than 8 levels")
        box = self.box("deep")
        self.refused(self.d.post(f"/v1/boxes/{box}/run", deep(8, command="true")), 400, "invalid_argument", known)
        self.refused(self.d.post(f"/v1/boxes/{box}/run", deep(9, command="true")), 400, "malformed_request", "nested deeper than 8 levels")

    def test_event_streams(self):
        held = []
        for status in (200, 200, 429):
            c = self.d.connect()
            c.request("GET", "/v1/events")
            r = c.getresponse()
            held.append((c, r))
            self.assertEqual(r.status, status)
        self.refused(Reply(429, r.headers, r.read()), 429, "too_many_connections", f"uid {os.geteuid()} has 2 event streams")
        self.assertEqual(r.headers["Retry-After"], "5")
        for c, r in held:
            r.close()
            c.close()
        wait_for("room", lambda: self.d.pool()["clients"] == 1)


class Boxes(LimitsTest):
    config = ("replicas: 10\nlimits: {box_connections: 3, run_body_bytes: 5000, exec_body_bytes: 3000, run_output_bytes: 2000, file_bytes: 10000}\n")

    def test_connections_to_a_box(self):
        box, other = self.box("conns"), self.box("other")
        held = []
        for i in range(3):
            s = self.raw()
            body = json.dumps({"command": "while [ ! -e /tmp/go ]; do sleep 0.05; done"})
            s.sendall(f"POST /v1/boxes/{box}/run HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            held.append(s)
            wait_for("it to run", lambda i=i: self.d.inspect(box)["in_flight"] == i + 1)
        self.refused(self.d.post(f"/v1/boxes/{box}/run", {"command": "true"}), 429, "too_many_connections", "the box has 3 connections")
        self.assertEqual(self.d.sh(other, "echo fine"), "fine\n")
        held[0].close()
        wait_for("room", lambda: self.d.write(box, "/tmp/go", b"").status == 200)
        for s in held[1:]:
            self.assertEqual(self.reply(s).status, 200)

    def test_the_body_of_a_command(self):
        box = self.box("body")

        def body(size):
            return filled({"command": "wc -c", "stdin": ""}, size)
        self.assertEqual(self.d.post(f"/v1/boxes/{box}/run", body(5000)).status, 200)
        self.refused(self.d.post(f"/v1/boxes/{box}/run", body(5001)), 413, "too_large", "the request body is longer than 5000 bytes")
        for size, status in ((5000, 200), (5001, 413)):
            s = self.raw()
            s.sendall(f"POST /v1/boxes/{box}/run HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + chunked(body(size)))
            self.assertEqual(self.reply(s).status, status, size)

    def test_the_body_of_an_execution(self):
        box = self.box("exec body")
        for size, status in ((3000, 201), (3001, 413)):
            r = self.d.post(f"/v1/boxes/{box}/exec", filled({"command": "true", "args": [""]}, size))
            self.assertEqual(r.status, status, r)
        self.assertIn("longer than 3000 bytes", r.json["error"]["message"])
        self.assertEqual(self.d.get("/v1/config").json["limits"]["exec_body_bytes"], 3000)

    def test_the_output_of_a_command(self):
        box = self.box("output")
        r = self.d.run(box, "head -c 2500 /dev/zero | tr '\\0' x")
        self.assertEqual((len(r["stdout"]), r["truncated"]), (2000, True))
        r = self.d.run(box, "head -c 2500 /dev/zero | tr '\\0' x", max_output_bytes=2000)
        self.assertEqual((len(r["stdout"]), r["truncated"]), (2000, True))
        self.refused(self.d.post(f"/v1/boxes/{box}/run", {"command": "true", "max_output_bytes": 2001}), 400, "invalid_argument", "from 0 to 2000")
        c = self.d.connect()  # a stream is not kept
        c.request("POST", f"/v1/boxes/{box}/run", json.dumps({"command": "head -c 25000 /dev/zero | tr '\\0' x"}), {"Accept": "application/x-ndjson"})
        self.assertEqual(sum(len(json.loads(x).get("data", "")) for x in c.getresponse().read().splitlines()), 25000)
        c.close()

    def test_files(self):
        box = self.box("files")
        self.assertEqual(self.d.write(box, "/tmp/f", b"x" * 10000).status, 200)
        self.refused(self.d.write(box, "/tmp/g", b"x" * 10001), 413, "too_large", "longer than 10000 bytes")
        self.assertEqual(self.d.read(box, "/tmp/g").status, 404)
        for size, status in ((10000, 200), (10001, 413)):
            s = self.raw()
            s.sendall(f"PUT /v1/boxes/{box}/fs/write?path=/tmp/h{size} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + chunked(b"x" * size))
            self.assertEqual(self.reply(s).status, status, size)
        self.assertEqual(self.d.read(box, "/tmp/h10001").status, 404)
        self.assertEqual(len(self.d.read(box, "/tmp/f").body), 10000)
        self.d.sh(box, "seq 1 5000 > /tmp/long")
        self.refused(self.d.read(box, "/tmp/long"), 413, "too_large", "more than 10000 bytes: read them in ranges")
        whole = b"".join(self.d.get(f"/v1/boxes/{box}/fs/read?path=/tmp/long&offset={i}&limit=10000").body for i in range(0, 30000, 10000))
        self.assertEqual(whole, b"".join(b"%d\n" % i for i in range(1, 5001)))
        # How long lines are, nobody knows beforehand.
        self.assertEqual(len(self.d.get(f"/v1/boxes/{box}/fs/read?path=/tmp/long&end_line=1000").body), 3893)
        with self.assertRaises(http.client.HTTPException):
            self.d.get(f"/v1/boxes/{box}/fs/read?path=/tmp/long&start_line=1")
        self.assertEqual(self.d.sh(box, "echo fine"), "fine\n")


class Arguments(LimitsTest):
    """What the kernel takes is no setting: it is said, and by whom."""

    def run_it(self, **body):
        return self.d.post(f"/v1/boxes/{self.box('args')}/run", body)

    def test_one_argument(self):
        r = self.run_it(argv=["sh", "-c", "printf %s \"$1\" | wc -c", "sh", "x" * KERNEL_ARG])
        self.assertEqual((r.status, r.json["stdout"].strip()), (200, str(KERNEL_ARG)))
        self.refused(self.run_it(argv=["true", "x", "x" * (KERNEL_ARG + 1)]), 413, "too_large", f"argument 2 (the program is 0) is longer than the kernel takes: {KERNEL_ARG} bytes")

    def test_a_command_line(self):
        self.assertEqual(self.run_it(command="true " + "x" * (KERNEL_ARG - 5)).json["exit_code"], 0)
        self.refused(self.run_it(command="true " + "x" * (KERNEL_ARG - 4)), 413, "too_large", f"the command line is longer than the kernel takes: {KERNEL_ARG} bytes")

    def test_one_variable(self):
        self.assertEqual(self.run_it(command="printf %s \"$LONG\" | wc -c", env={"LONG": "x" * (KERNEL_ARG - 5)}).json["stdout"].strip(), str(KERNEL_ARG - 5))
        self.refused(self.run_it(command="true", env={"LONG": "x" * (KERNEL_ARG - 4)}), 413, "too_large", "the variable LONG, with its name, is longer than the kernel takes")

    def test_all_together(self):
        self.refused(self.run_it(argv=["true"] + ["x" * 100_000] * 30), 413, "too_large", "the kernel takes no arguments and variables that are so long")
        self.refused(self.run_it(argv=["true"] + ["x" * 100_000] * 60), 413, "too_large", "too long")


class Connections(LimitsTest):
    config = "limits: {connections: 20, connection_idle_timeout: 1}\n"

    def test_as_many_as_there_may_be(self):
        held = [self.raw() for _ in range(20)]
        s = self.raw()
        self.refused(self.reply(s), 429, "too_many_connections", "too many connections")
        for h in held:
            h.close()
        wait_for("room", lambda: self.d.get("/v1/pool").status == 200)

    def test_idle_ones_end_but_those_of_a_lease(self):
        tied = self.d.connect()
        r = self.d.post("/v1/acquire", {"user_id": "limits", "thread_id": "tied", "release_on_disconnect": True}, connection=tied)
        box = r.json["box_id"]
        fresh, used, handed, begun = self.raw(), self.raw(), self.raw(), self.raw()
        used.sendall(b"GET /v1/pool HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(self.reply(used).status, 200)
        begun.sendall(b"GET /v1/po")
        handed.sendall(f"GET /v1/boxes/{box}/fs/read?path=/etc/hostname HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertEqual(self.reply(handed).status, 200)
        before = self.d.pool()["counters"]["handbacks"]
        for s in (fresh, used, handed):
            self.assertEqual(s.recv(100), b"", "ended without a word")
        self.assertEqual(self.d.pool()["counters"]["handbacks"], before + 1)
        self.assertEqual(self.d.inspect(box)["state"], "active")
        self.assertEqual(self.d.request("GET", "/v1/pool", connection=tied).status, 200)
        begun.sendall(b"ol HTTP/1.1\r\nHost: x\r\n\r\n")  # who has begun has more time
        self.assertEqual(self.reply(begun).status, 200)
        tied.close()
        wait_for("the lease to end", lambda: self.d.inspect(box)["state"] == "warm")

    def test_a_tied_one_that_a_worker_holds(self):
        tied = self.d.connect()
        box = self.d.post("/v1/acquire", {"user_id": "limits", "thread_id": "held", "release_on_disconnect": True}, connection=tied).json["box_id"]
        self.d.request("GET", f"/v1/boxes/{box}/fs/read?path=/etc/hostname", connection=tied)
        before = self.d.pool()["counters"]["handbacks"]
        wait_for("it to come back", lambda: self.d.pool()["counters"]["handbacks"] > before)
        self.assertEqual(self.d.request("GET", f"/v1/boxes/{box}/fs/read?path=/etc/hostname", connection=tied).status, 200)
        self.assertEqual(self.d.inspect(box)["state"], "active")
        tied.close()

    def test_a_command_is_not_idle(self):
        box = self.box("busy")
        c = self.d.connect()
        c.request("POST", f"/v1/boxes/{box}/run", json.dumps({"command": "while [ ! -e /tmp/go ]; do sleep 0.05; done; echo done"}))
        for _ in range(2):
            self.assertEqual(self.raw().recv(100), b"", "another one came after it, and was idle for too long")
        self.d.write(box, "/tmp/go", b"")
        self.assertEqual(json.loads(c.getresponse().read())["stdout"], "done\n")
        c.close()


class Reload(unittest.TestCase):
    def test_they_are_read_again(self):
        d = Daemon("replicas: 5\n")
        try:
            old = d.acquire("u", "old")["box_id"]
            d.write_config("replicas: 5\nlimits: {body_bytes: 1024, head_bytes: 1024, file_bytes: 10, connections: 30}\n")
            d.process.send_signal(signal.SIGHUP)
            wait_for("it to be read", lambda: "limits.file_bytes changed" in d.log())
            self.assertIn("limits.connections differs, but needs a restart", d.log())
            self.assertEqual(d.post("/v1/acquire", {"user_id": "x" * 1024}).status, 413)
            self.assertEqual(d.get("/v1/pool", headers={"X": "x" * 1024}).status, 431)
            self.assertEqual(d.get("/v1/config").json["capabilities"]["file_transfer_max_bytes"], 10)
            new = d.acquire("u", "new")["box_id"]
            self.assertEqual((d.write(old, "/tmp/f", b"x" * 11).status, d.write(new, "/tmp/f", b"x" * 11).status), (200, 413))
            self.assertEqual((d.stop(), d.remains()), (0, []))
        finally:
            d.kill()
            d.remove()

    def test_more_connections_than_descriptors(self):
        d = Daemon("max_boxes: 16\nlimits: {connections: 5000}\n", wrapper=("prlimit", "--nofile=1000:1000"), wait=False)
        try:
            self.assertEqual(d.process.wait(BOUND), 1)
            self.assertIn("limits.connections: 5000, but RLIMIT_NOFILE 1000", d.log())
        finally:
            d.kill()
            d.remove()


if __name__ == "__main__":
    unittest.main()

"""Clients over TCP: who they are is what they bring, in each request; and they cost nobody else anything."""

import json
import os
import random
import re
import signal
import socket
import unittest

from harness import BOUND, IS_ROOT, open_fds, slurp, wait_for
from tcp import GO, OTHER_UID, TOKEN, TcpTest, replies, request, run_request


class Tokens(TcpTest):
    def refused(self, r, says):
        self.assertEqual((r.status, r.reason, r.json["error"]["code"], r.json["error"]["type"]),
                         (401, "unauthenticated", "unauthenticated", "AuthError"), r)
        self.assertIn(says, r.json["error"]["message"])
        self.assertEqual(r.json["error"]["request_id"], r.headers["X-Request-Id"])

    def test_without_a_token_there_is_the_configuration_only(self):
        self.assertEqual(self.ask("GET", "/v1/config", token=None).status, 200)
        self.assertEqual(self.ask("GET", "/v1/config", token="wrong-wrong-wrong-wrong").status, 200)
        for method, path in (("GET", "/v1/me"), ("GET", "/v1/boxes"), ("POST", "/v1/acquire"), ("GET", "/v1/pool"), ("GET", "/metrics"), ("GET", "/v1/events"),
                             ("POST", "/v1/config"), ("GET", "/v1/nothing"), ("PUT", "/v1/boxes"), ("GET", "/v1/boxes/none"), ("POST", "/v1/boxes/none/run"),
                             ("POST", "/v1/shutdown"), ("GET", "/v1/config/x"), ("GET", "/v1/../v1/config")):
            r = self.ask(method, path, token=None)
            self.refused(r, "Authorization: Bearer")
            self.assertEqual(r.headers["WWW-Authenticate"], "Bearer", path)

    def test_wrong_tokens(self):
        for token in ("x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "x" * 8000, "=" * 25, TOKEN + " " + TOKEN):
            r = self.ask("GET", "/v1/me", token=token)
            self.refused(r, "not valid")
            self.assertEqual(r.headers["WWW-Authenticate"], 'Bearer error="invalid_token"')
        for value in ("", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer:{TOKEN}", f"xBearer {TOKEN}"):
            r = self.ask("GET", "/v1/me", token=None, headers={"Authorization": value})
            self.refused(r, "a token is needed")

    def test_a_token_that_is_too_long_for_a_head(self):
        r = self.ask("GET", "/v1/me", token="x" * 20000)
        self.assertEqual((r.status, r.reason), (431, "head_too_large"))

    def test_the_scheme_is_one_in_any_letters(self):
        for value in (f"bearer {TOKEN}", f"BEARER   {TOKEN}  "):
            self.assertEqual(self.ask("GET", "/v1/me", token=None, headers={"Authorization": value}).status, 200)

    def test_a_token_given_twice_is_no_request(self):
        s = self.raw()
        s.sendall(request("GET", "/v1/me").replace(b"\r\n\r\n", f"\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()))
        self.assertEqual(replies(s, 1)[0].status, 400)

    def test_a_refused_head_has_no_body(self):
        c = self.connect()
        r = self.ask("HEAD", "/v1/boxes/x", token=None, connection=c)
        self.assertEqual((r.status, r.body), (401, b""))
        self.assertEqual(self.ask("GET", "/v1/me", connection=c).status, 200)
        c.close()

    def test_a_refusal_is_read_also_by_who_sends_much(self):
        r = self.ask("POST", "/v1/boxes/x/run", "x" * 3_000_000, token=None)
        self.refused(r, "Bearer")

    def test_a_refused_client_is_not_told_to_go_on(self):
        s = self.raw()
        s.sendall(b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        self.assertEqual(replies(s, 1)[0].status, 401)

    def test_on_the_socket_none_is_looked_at(self):
        r = self.d.get("/v1/me", headers={"Authorization": "Bearer nonsense-nonsense"})
        self.assertEqual((r.status, r.json["principal_type"]), (200, "user"))

    def test_each_request_of_a_connection_must_bring_it(self):
        c = self.connect()
        box = self.box("each", c)
        self.assertEqual(self.run_over(box, "echo 1", c), "1\n")
        self.refused(self.ask("POST", f"/v1/boxes/{box}/run", {"command": "echo 2"}, token=None, connection=c), "needed")
        c.close()

    def test_pipelined_requests_of_which_only_the_first_has_it(self):
        box = self.box("pipe")
        for chunked in (False, True):
            s = self.raw()
            s.sendall(run_request(box, "echo one", chunked=chunked) + request("GET", f"/v1/boxes/{box}/fs/read?path=/etc/passwd", token=None) +
                      request("GET", "/v1/pool", token=None) + request("GET", "/v1/me"))
            got = replies(s, 4)
            self.assertEqual([r.status for r in got], [200, 401, 401, 200])
            self.assertEqual(got[0].json["stdout"], "one\n")
            self.assertNotIn(b"root:", got[1].body)

    def test_pipelined_requests_to_several_boxes(self):
        boxes = [self.box(f"pipe{i}") for i in range(3)]
        s = self.raw()
        s.sendall(b"".join(run_request(boxes[i % 3], f"echo {i}", chunked=i % 2 == 1) for i in range(9)) + request("GET", "/v1/me"))
        got = replies(s, 10)
        self.assertEqual([r.status for r in got], [200] * 10)
        self.assertEqual([r.json["stdout"] for r in got[:9]], [f"{i}\n" for i in range(9)])

    def test_a_body_that_comes_later_than_its_head(self):
        box = self.box("later")
        whole = run_request(box, "cat", chunked=False).replace(b'{"command": "cat"}', b"")
        body = json.dumps({"command": "cat", "stdin": "x" * 300_000}).encode()
        s = self.raw()
        s.sendall(re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(body), whole))
        wait_for("the worker to have it", lambda: self.d.inspect(box)["in_flight"] == 1)
        s.sendall(body + request("GET", "/v1/me"))
        got = replies(s, 2)
        self.assertEqual([len(got[0].json["stdout"]), got[1].status], [300_000, 200])

    @unittest.skipUnless(IS_ROOT and not os.environ.get("SBX_SAN"), "looks into all the memory of another process")
    def test_the_token_does_not_reach_the_worker(self):
        box = self.box("secret")
        mark = "marker-of-this-request"
        s = self.raw()
        s.sendall(run_request(box, f"echo {mark}") + request("GET", "/v1/me"))
        self.assertEqual(replies(s, 2)[0].json["stdout"], mark + "\n")
        memory = memory_of(self.d.inspect(box)["pid"])
        self.assertIn(mark.encode(), memory, "the request itself is there to be found")
        self.assertNotIn(TOKEN.encode(), memory)


def memory_of(pid):
    """What a process can write to, as bytes."""
    found = []
    with open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in slurp(f"/proc/{pid}/maps").splitlines():
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if m and "[v" not in line:
                begin, end = (int(x, 16) for x in m.groups())
                mem.seek(begin)
                try:
                    found.append(mem.read(end - begin))
                except OSError:
                    pass
    return b"".join(found)


class Service(TcpTest):
    def test_the_main_job(self):
        c = self.connect()
        box = self.box("job", c)
        self.assertEqual(self.run_over(box, "echo hi > /tmp/f; cat /tmp/f", c), "hi\n")
        self.assertEqual(self.ask("PUT", f"/v1/boxes/{box}/fs/write?path=/tmp/w", b"abc" * 100_000, connection=c).json["bytes"], 300_000)
        self.assertEqual(self.ask("GET", f"/v1/boxes/{box}/fs/read?path=/tmp/w", connection=c).body, b"abc" * 100_000)
        self.assertEqual(self.ask("POST", f"/v1/boxes/{box}/release", {}, connection=c).json["status"], "warm")
        self.assertEqual(self.ask("DELETE", f"/v1/boxes/{box}", connection=c).status, 204)
        c.close()

    def test_one_connection_serves_several_boxes(self):
        c = self.connect()
        boxes = [self.box(f"many{i}", c) for i in range(4)]
        before = self.counters()
        for i in range(5):
            for b in boxes:
                self.assertEqual(self.run_over(b, f"echo {b} {i}", c), f"{b} {i}\n")
            self.assertEqual(self.ask("GET", "/v1/me", connection=c).status, 200)
        after = self.counters()
        self.assertEqual(after["handovers"] - before["handovers"], 20)
        self.assertEqual(after["handbacks"] - before["handbacks"], 20)
        c.close()

    def test_a_stream_over_several_reads(self):
        box = self.box("stream")
        c = self.connect()
        c.request("POST", f"/v1/boxes/{box}/run", json.dumps({"command": "seq 1 20000"}),
                  {"Accept": "application/x-ndjson", "Authorization": f"Bearer {TOKEN}"})
        lines = [json.loads(x) for x in c.getresponse().read().splitlines()]
        self.assertEqual("".join(x.get("data", "") for x in lines), "".join(f"{i}\n" for i in range(1, 20001)))
        self.assertEqual(self.ask("GET", "/v1/me", connection=c).status, 200)
        c.close()

    def test_a_lease_that_is_tied_to_the_connection(self):
        c = self.connect()
        r = self.ask("POST", "/v1/acquire", {"user_id": "tcp", "thread_id": "tied", "release_on_disconnect": True}, connection=c)
        box = r.json["box_id"]
        self.assertEqual(self.run_over(box, "echo x", c), "x\n")
        self.assertEqual(self.d.inspect(box)["state"], "active")
        c.close()
        wait_for("the lease to end", lambda: self.d.inspect(box)["state"] == "warm")

    def test_a_client_that_leaves_ends_its_command(self):
        box = self.box("leaves")
        s = self.raw()
        s.sendall(run_request(box, "sleep 1000"))
        wait_for("it to run", lambda: self.d.inspect(box)["in_flight"] == 1)
        s.close()
        wait_for("it to end", lambda: self.d.inspect(box)["in_flight"] == 0)

    def test_a_client_that_leaves_while_it_waits(self):
        box = self.box("waits")
        self.ask("POST", f"/v1/boxes/{box}/release", {})
        worker = self.d.inspect(box)["pid"]
        os.kill(worker, signal.SIGSTOP)  # its health check waits
        s = self.raw()
        s.sendall(request("POST", "/v1/acquire", json.dumps({"user_id": "tcp", "thread_id": "waits"}).encode()))
        wait_for("it to wait", lambda: self.d.pool()["waiters"] == 1)
        s.close()
        wait_for("it to be forgotten", lambda: self.d.pool()["waiters"] == 0)
        os.kill(worker, signal.SIGCONT)

    def test_events_are_followed(self):
        s = self.raw()
        s.sendall(request("GET", "/v1/events"))
        f = s.makefile("rb")
        self.assertIn(b"200", f.readline())
        box = self.box("followed")
        self.assertTrue(any(box.encode() in line for line in f))
        f.close()
        s.close()
        wait_for("the stream to end", lambda: self.d.pool()["clients"] == 1)

    def test_the_answer_of_a_dead_worker(self):
        box = self.box("dies")
        s = self.raw()
        s.sendall(run_request(box, "sleep 1000"))
        wait_for("it to run", lambda: self.d.inspect(box)["in_flight"] == 1)
        os.kill(self.d.inspect(box)["pid"], signal.SIGKILL)
        r = replies(s, 1)[0]
        self.assertEqual((r.status, r.reason), (410, "worker_crashed"))

    def test_it_is_no_admin(self):
        """A token opens the boxes of one user, also when that is root."""
        self.assertEqual(self.ask("POST", "/v1/shutdown").status, 403)
        self.assertEqual(self.ask("POST", "/v1/pool/reset").status, 403)
        me = self.ask("GET", "/v1/me").json
        self.assertEqual((me["sub"], me["principal_type"], me["path_prefix"]), (str(os.geteuid()), "service_account", None))
        self.assertNotIn("admin", me["scopes"])

    @unittest.skipUnless(IS_ROOT, "gives a file away")
    def test_it_is_who_owns_the_file(self):
        mine = self.d.acquire("tcp", "same")["box_id"]
        os.chown(self.token.path, OTHER_UID, OTHER_UID)
        try:
            self.reload()
            self.assertEqual(self.ask("GET", "/v1/me").json["sub"], str(OTHER_UID))
            self.assertEqual(self.ask("GET", f"/v1/boxes/{mine}").status, 404)
            box = self.box("same")
            self.assertEqual(box, mine, "the token of a scope is the same, the box is another")
            self.assertEqual(self.run_over(box, "echo other > /tmp/who; cat /tmp/who"), "other\n")
            self.assertEqual(self.d.inspect(f"{OTHER_UID}:{box}")["owner_uid"], OTHER_UID)
            self.assertEqual([b["box_id"] for b in self.ask("GET", "/v1/boxes").json["boxes"]], [box])
            self.assertEqual(self.ask("GET", f"/v1/boxes/0:{mine}").status, 404)
            self.assertEqual(self.d.run(mine, "cat /tmp/who")["exit_code"], 1)
        finally:
            os.chown(self.token.path, os.geteuid(), os.getegid())
            self.reload()

    def reload(self):
        before = self.d.log().count("token")
        self.d.process.send_signal(signal.SIGHUP)
        wait_for("the token to be read", lambda: self.d.log().count("token") > before)

    def test_the_token_is_read_again(self):
        c = self.connect()
        self.assertEqual(self.ask("GET", "/v1/me", connection=c).status, 200)
        self.token.write("another-token-0123456789")
        try:
            self.reload()
            self.assertEqual(self.ask("GET", "/v1/me", connection=c).status, 401)
            self.assertEqual(self.ask("GET", "/v1/me", token="another-token-0123456789", connection=c).status, 200)
            self.token.write("short")
            self.reload()
            self.assertIn("the token stays as it was", self.d.log())
            self.assertEqual(self.ask("GET", "/v1/me", token="another-token-0123456789", connection=c).status, 200)
        finally:
            self.token.write(TOKEN)
            self.reload()
        self.assertEqual(self.ask("GET", "/v1/me", connection=c).status, 200)
        c.close()

    @unittest.skipUnless(IS_ROOT, "counts those of a worker")
    def test_descriptors_are_counted(self):
        box = self.box("count")
        worker = self.d.inspect(box)["pid"]
        self.run_over(box, "true")
        idle = wait_for("rest", lambda: self.d.pool()["clients"] == 1 and (len(open_fds(self.d.process.pid)), len(open_fds(worker))))
        for _ in range(20):
            c = self.connect()
            self.assertEqual(self.run_over(box, "echo x", c), "x\n")
            self.assertEqual(self.ask("GET", "/v1/me", token=None, connection=c).status, 401)
            c.close()
        s = self.raw()
        s.sendall(b"\0garbage\r\n\r\n")
        s.close()
        wait_for("all to be closed", lambda: (len(open_fds(self.d.process.pid)), len(open_fds(worker))) == idle)


class Bad(TcpTest):
    """Whoever connects can be anybody: others do not notice."""

    more = "limits: {tcp_connections: 8}\n"

    def test_who_proves_nothing_makes_room(self):
        before = len(open_fds(self.d.process.pid))
        held = [self.raw() for _ in range(60)]
        for i, s in enumerate(held[::2]):
            try:
                s.send(b"GET /v1/config HTTP/1.1\r\nHost: x" if i % 2 else b"\x16\x03\x01")
            except ConnectionError:
                pass  # it was among the oldest
        for _ in range(5):
            self.assertEqual(self.ask("GET", "/v1/me").status, 200)
        self.assertLess(len(open_fds(self.d.process.pid)), before + 12)
        self.assertEqual(held[1].recv(10), b"", "one of the oldest, which had sent nothing, was closed")
        self.assertEqual(self.d.get("/v1/pool").status, 200)
        for s in held:
            s.close()
        wait_for("all to be closed", lambda: len(open_fds(self.d.process.pid)) <= before)

    def test_who_has_proven_stays(self):
        known = [self.connect() for _ in range(8)]
        for c in known:
            self.assertEqual(self.ask("GET", "/v1/me", connection=c).status, 200)
        r = self.ask("GET", "/v1/me")
        self.assertEqual((r.status, r.reason), (429, "too_many_connections"))
        self.assertEqual(self.d.get("/v1/pool").status, 200, "the socket has places of its own")
        for c in known:
            self.assertEqual(self.ask("GET", "/v1/me", connection=c).status, 200)
            c.close()
        wait_for("room", lambda: self.ask("GET", "/v1/me").status == 200)

    def test_one_that_runs_is_not_a_stranger(self):
        box = self.box("long")
        s = self.raw()
        s.sendall(run_request(box, GO))
        wait_for("it to run", lambda: self.d.inspect(box)["in_flight"] == 1)
        held = [self.raw() for _ in range(30)]
        self.assertEqual(self.ask("GET", "/v1/me").status, 200)
        self.d.write(box, "/tmp/go", b"")
        self.assertEqual(replies(s, 1)[0].json["stdout"], "done\n")
        for h in held:
            h.close()

    def test_what_is_no_http(self):
        rng = random.Random(11)
        for i in range(60):
            s = self.raw()
            try:
                s.sendall(bytes(rng.randrange(256) for _ in range(rng.randrange(1, 400))) + b"\r\n\r\n")
                s.shutdown(socket.SHUT_WR)
                got = s.recv(65536)
                self.assertTrue(got == b"" or got.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")), got[:80])
            except ConnectionError:
                pass
            s.close()
        self.assertEqual(self.ask("GET", "/v1/me").status, 200)

    def test_a_slow_one_is_served_and_stops_nobody(self):
        s = self.raw()
        for byte in request("GET", "/v1/me"):
            s.send(bytes([byte]))
            if byte == ord("\n"):
                self.assertEqual(self.ask("GET", "/v1/me").status, 200)
        self.assertEqual(replies(s, 1)[0].status, 200)


class SixthVersion(TcpTest):
    host = "::1"

    @classmethod
    def setUpClass(cls):
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError as e:
            raise unittest.SkipTest(f"no IPv6 here: {e}") from e
        super().setUpClass()

    def test_the_main_job(self):
        self.assertEqual(self.run_over(self.box("six"), "echo six"), "six\n")
        self.assertEqual(self.ask("GET", "/v1/me", token=None).status, 401)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port), BOUND)


if __name__ == "__main__":
    unittest.main()

"""The main job: a box for a user and a thread, a command in it, released, taken again warm."""

import unittest

import backends
from harness import DaemonTest, wait_for


class MainJob(DaemonTest):
    config = "replicas: 50\n"

    def test_cold_run_release_warm(self):
        d = self.d
        box = d.acquire("alice", "thread-1")
        self.assertEqual(box["source"], "cold")
        self.assertEqual(box["isolation"], backends.current.isolation)
        self.assertEqual(box["status"], "running")
        self.assertEqual(box["user_id"], "alice")
        program = b"import sys\nrows=[l.split(',') for l in open('/mnt/user-data/uploads/in.csv')]\n" \
                  b"print(sum(int(r[1]) for r in rows))\nopen('/mnt/user-data/outputs/out','w').write('done')\n"
        self.assertEqual(d.write(box["box_id"], "/mnt/user-data/uploads/in.csv", b"a,1\nb,41\n").status, 200)
        self.assertEqual(d.write(box["box_id"], "/tmp/p.py", program).status, 200)
        self.assertEqual(d.sh(box["box_id"], "python3 /tmp/p.py"), "42\n")
        self.assertEqual(d.read(box["box_id"], "/mnt/user-data/outputs/out").body, b"done")
        self.assertEqual(d.release(box["box_id"], box["lease_id"]).json, {"status": "warm"})
        again = d.acquire("alice", "thread-1")
        self.assertEqual(again["source"], "warm")
        self.assertEqual(again["box_id"], box["box_id"])
        self.assertNotEqual(again["lease_id"], box["lease_id"])
        self.assertEqual(d.sh(again["box_id"], "cat /mnt/user-data/outputs/out"), "done")
        d.release(again["box_id"])

    def test_second_acquire_of_an_active_scope_is_the_same_box(self):
        a = self.d.acquire("bob", "t")
        b = self.d.acquire("bob", "t")
        self.assertEqual(b["source"], "active")
        self.assertEqual(a["box_id"], b["box_id"])
        self.assertEqual(self.d.release(a["box_id"], a["lease_id"]).json, {"status": "running"})
        self.assertEqual(self.d.release(a["box_id"], a["lease_id"]).json, {"status": "running"})
        self.assertEqual(self.d.release(a["box_id"], b["lease_id"]).json, {"status": "warm"})
        self.assertEqual(self.d.release(a["box_id"], b["lease_id"]).json, {"status": "warm"})

    def test_anonymous_boxes_are_never_shared(self):
        a = self.d.post("/v1/acquire", {"user_id": "u"}).json
        b = self.d.post("/v1/acquire", {"user_id": "u", "thread_id": None}).json
        self.assertNotEqual(a["box_id"], b["box_id"])
        for x in (a, b):
            self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{x['box_id']}?force=true").status, 204)

    def test_list_inspect_delete(self):
        box = self.d.acquire("del", "t")
        ids = [b["box_id"] for b in self.d.get("/v1/boxes").json["boxes"]]
        self.assertIn(box["box_id"], ids)
        self.assertEqual(self.d.inspect(box["box_id"])["state"], "active")
        self.assertEqual(self.d.request("HEAD", f"/v1/boxes/{box['box_id']}").status, 204)
        busy = self.d.request("DELETE", f"/v1/boxes/{box['box_id']}")
        self.assertEqual((busy.status, busy.json["error"]["code"]), (409, "invalid_state"))
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true").status, 204)
        self.assertEqual(self.d.get(f"/v1/boxes/{box['box_id']}").status, 404)
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box['box_id']}").status, 404)
        self.assertEqual(self.d.release(box["box_id"]).json, {"status": "closed"})

    def test_lease_tied_to_a_connection_ends_with_it(self):
        c = self.d.connect()
        body = {"user_id": "tied", "thread_id": "t", "release_on_disconnect": True}
        box = self.d.post("/v1/acquire", body, connection=c).json
        # The same connection goes to the worker and back; the lease follows it.
        self.assertEqual(self.d.post(f"/v1/boxes/{box['box_id']}/run", {"command": "true"}, connection=c).status, 200)
        self.assertEqual(self.d.inspect(box["box_id"])["leases"], 1)
        c.close()
        wait_for("the box to be parked", lambda: self.d.inspect(box["box_id"])["state"] == "warm")

    def test_lease_with_ttl_expires(self):
        box = self.d.acquire("ttl", "t", lease_seconds=0.05)
        wait_for("the box to be parked", lambda: self.d.inspect(box["box_id"])["state"] == "warm")

    def test_request_id_and_traceparent_come_back(self):
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        headers = {"X-Request-Id": "my-id.1", "traceparent": trace}
        box = self.d.acquire("trace", "t")
        for r in (self.d.get("/v1/pool", headers=headers), self.d.get("/v1/boxes/none", headers=headers),
                  self.d.post(f"/v1/boxes/{box['box_id']}/run", {"command": "true"}, headers=headers),
                  self.d.post(f"/v1/boxes/{box['box_id']}/run", {"command": 1}, headers=headers)):
            self.assertEqual(r.headers["X-Request-Id"], "my-id.1", r)
            self.assertEqual(r.headers["traceparent"], trace)
        self.assertTrue(self.d.get("/v1/pool").headers["X-Request-Id"].startswith("req_"))
        self.d.release(box["box_id"])

    def test_one_connection_serves_sbxd_and_several_boxes(self):
        a, b = self.d.acquire("conn", "a"), self.d.acquire("conn", "b")
        c = self.d.connect()
        for _ in range(3):
            for box in (a, b):
                r = self.d.post(f"/v1/boxes/{box['box_id']}/run", {"command": "echo $0"}, connection=c)
                self.assertEqual(r.status, 200)
                self.assertEqual(self.d.get("/v1/pool", connection=c).status, 200)
        c.close()
        for box in (a, b):
            self.d.release(box["box_id"])

    def test_pipelined_requests_are_answered_in_order(self):
        import socket
        box = self.d.acquire("pipe", "t")["box_id"]
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(30)
        s.connect(self.d.socket)

        def post(path, body):
            return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"

        text = "GET /v1/pool HTTP/1.1\r\nHost: x\r\n\r\n"
        text += post(f"/v1/boxes/{box}/run", '{"command":"echo one"}')
        text += post(f"/v1/boxes/{box}/run", '{"command":"echo two"}')
        text += "GET /v1/boxes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        s.sendall(text.encode())
        got = b""
        while chunk := s.recv(65536):
            got += chunk
        s.close()
        order = [got.index(w) for w in (b'"replicas"', b'"one\\n"', b'"two\\n"', b'"boxes":[')]
        self.assertEqual(order, sorted(order))
        self.assertEqual(got.count(b"HTTP/1.1 200"), 4)
        self.d.release(box)


if __name__ == "__main__":
    unittest.main()

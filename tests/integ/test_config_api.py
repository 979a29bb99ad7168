"""What clients ask about the service itself: its configuration, who they are, its images, and what it cannot do."""

import json
import os
import pwd
import socket
import unittest

from harness import BOUND, IS_ROOT, DaemonTest


def as_uid(d, uid, method, path):
    """One request from a process of another uid: (status, parsed body)."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            reply = d.request(method, path)
            os.write(w, json.dumps([reply.status, reply.json]).encode())
        finally:
            os._exit(0)
    os.close(w)
    with os.fdopen(r, "rb") as f:
        data = f.read()
    os.waitpid(pid, 0)
    return json.loads(data)


class Config(DaemonTest):
    config = ("replicas: 5\nmax_boxes: 77\nmemory_mib: 300\ncpus: 1.5\ndisk_mib: 1500\n"
              "limits: {head_bytes: 20000, file_bytes: 5000000, connection_idle_timeout: 12.5, box_executions: 7, execution_keep_seconds: 2.5}\n")

    def test_it_is_what_runs(self):
        r = self.d.get("/v1/config")
        self.assertEqual((r.status, r.headers["Content-Type"]), (200, "application/json"))
        self.assertEqual(r.json["defaults"], {"cpus": 2, "memory_mib": 300, "disk_size_gb": 2, "security_preset": "standard", "auto_delete": 0})
        can = r.json["capabilities"]
        for name in ("snapshots", "clone", "export", "import", "linux_capabilities"):
            self.assertIs(can[f"{name}_enabled"], False, name)
        for name in ("tty", "streaming"):
            self.assertIs(can[f"{name}_enabled"], True, name)
        self.assertEqual(can["file_transfer_max_bytes"], 5000000)
        self.assertEqual(can["max_boxes_per_path_prefix"], 77)
        self.assertEqual(can["idempotency_key_lifetime"], "PT24H")
        self.assertEqual(can["max_concurrent_executions"], 7)
        self.assertGreater(can["exec_timeout_max_seconds"], 0)
        for name in ("cpus", "memory_mib", "disk_size_gb"):
            refused = self.d.post("/v1/boxes", {name: can[f"max_{name}"] + 1})
            self.assertEqual((refused.status, refused.reason), (400, "invalid_argument"), name)
            self.assertIn(f"to {can[f'max_{name}']}", refused.json["error"]["message"], "the most is what it says")
        self.assertTrue(all(isinstance(v, str) for v in r.json["overrides"].values()))
        self.assertEqual(r.json["limits"]["head_bytes"], 20000)
        self.assertEqual(r.json["limits"]["connection_idle_timeout"], 12.5)
        self.assertEqual((r.json["limits"]["box_executions"], r.json["limits"]["execution_keep_seconds"]), (7, 2.5))

    def test_what_it_says_is_taken(self):
        can = self.d.get("/v1/config").json["capabilities"]
        for name, most in (("cpus", can["max_cpus"]), ("memory_mib", can["max_memory_mib"]), ("disk_size_gb", can["max_disk_size_gb"])):
            r = self.d.post("/v1/boxes", {name: most})
            self.assertEqual(r.status, 201, (name, r))
            self.d.request("DELETE", f"/v1/boxes/{r.json['box_id']}?force=true")
            self.assertEqual(self.d.post("/v1/boxes", {name: most + 1}).status, 400, name)

    def test_other_methods(self):
        for path in ("/v1/config", "/v1/me", "/v1/metrics", "/metrics", "/v1/images"):
            r = self.d.request("DELETE", path)
            self.assertEqual((r.status, r.headers["Allow"]), (405, "GET"), path)
        r = self.d.request("PUT", "/v1/images/pull")
        self.assertEqual((r.status, r.headers["Allow"]), (405, "GET, HEAD, POST, DELETE"))


class Me(DaemonTest):
    def test_a_client_of_the_socket(self):
        me = self.d.get("/v1/me").json
        self.assertEqual((me["sub"], me["principal_type"]), (str(os.geteuid()), "user"))
        names = {p.pw_uid: p.pw_name for p in pwd.getpwall()}
        self.assertEqual(me["display_name"], names.get(os.geteuid(), str(os.geteuid())))
        self.assertIn("path_prefix", me)
        self.assertIsNone(me["path_prefix"])
        self.assertLessEqual({"boxes:read", "boxes:write", "admin"}, set(me["scopes"]))

    @unittest.skipUnless(IS_ROOT, "changes its uid")
    def test_another_uid(self):
        os.chmod(self.d.socket, 0o666)
        status, me = as_uid(self.d, 64999, "GET", "/v1/me")  # of no name
        self.assertEqual((status, me["sub"], me["display_name"]), (200, "64999", "64999"))
        self.assertNotIn("admin", me["scopes"])


class Images(DaemonTest):
    """Of the configuration; those of the store are in test_images."""

    def image(self):
        return self.d.get("/v1/images").json["images"][0]

    def test_there_is_one(self):
        r = self.d.get("/v1/images").json
        self.assertEqual((len(r["images"]), r["next_page_token"]), (1, None))
        i = r["images"][0]
        self.assertEqual((i["reference"], i["repository"], i["tag"], i["size_bytes"]), ("host", "host", "latest", None))
        self.assertRegex(i["id"], r"^sha256:[0-9a-f]{64}$")
        self.assertRegex(i["cached_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_its_id_is_stable(self):
        before = self.image()
        self.d.kill()
        self.d.start()
        self.assertEqual(self.image(), before)

    def test_it_is_found_by_id_and_by_name(self):
        i = self.image()
        for name in (i["id"], i["id"].replace(":", "%3A"), "host", "host:latest"):
            self.assertEqual(self.d.get(f"/v1/images/{name}").json, i)
            r = self.d.request("HEAD", f"/v1/images/{name}")
            self.assertEqual((r.status, r.body), (204, b""))
        for name in ("hos", "host:3", "sha256:" + "0" * 64, "alpine", "x" * 150):
            r = self.d.get(f"/v1/images/{name}")
            self.assertEqual((r.status, r.reason), (404, "not_found"), name)
            self.assertEqual(self.d.request("HEAD", f"/v1/images/{name}").status, 404)

    def test_pages(self):
        for query in ("?pageSize=1", "?pageSize=1000", "?pageToken="):
            self.assertEqual(self.d.get("/v1/images" + query).status, 200, query)
        for query in ("?pageSize=0", "?pageSize=1001", "?pageSize=x", "?pageSize=", "?pageSize=1x", "?pageSize=-1", "?pageSize=1&pageSize=2",
                      "?pageSize=" + "9" * 30, "?pageToken=abc"):
            r = self.d.get("/v1/images" + query)
            self.assertEqual((r.status, r.reason), (400, "invalid_argument"), query)

    def test_pulling(self):
        for reference in ("host", "host:latest"):
            r = self.d.post("/v1/images/pull", {"reference": reference})
            self.assertEqual((r.status, r.json), (200, self.image()))
        for reference in ("127.0.0.1:1/alpine:latest", "/usr", "sha256:" + "0" * 64):
            r = self.d.post("/v1/images/pull", {"reference": reference})
            self.assertEqual((r.status, r.reason, r.json["error"]["type"]), (422, "image_pull_failed", "ImageError"), reference)
            self.assertIn(f"{reference} cannot be pulled: ", r.json["error"]["message"])
        for body in ({}, {"reference": ""}, {"reference": "x" * 2000}, {"reference": "UPPER"}, {"reference": 3}, {"reference": None}, {"reference": []}):
            r = self.d.post("/v1/images/pull", body)
            self.assertEqual((r.status, r.reason), (400, "invalid_argument"), body)
        self.assertEqual(self.d.post("/v1/images/pull", b"{").status, 400)


class Unsupported(DaemonTest):
    """What the BoxLite Box API has, and no driver of this service can do."""

    calls = [("POST", "snapshots"), ("GET", "snapshots"), ("GET", "snapshots/one"), ("DELETE", "snapshots/one"), ("POST", "snapshots/one/restore"),
             ("POST", "clone"), ("POST", "export"), ("POST", "network/tunnel?port=80")]

    def test_it_is_said(self):
        box = self.d.acquire("u", "unsupported")["box_id"]
        for method, path in self.calls:
            for body in ("", "{}", '{"name":"x"}', "no json"):
                r = self.d.request(method, f"/v1/boxes/{box}/{path}", body)
                self.assertEqual((r.status, r.reason, r.json["error"]["type"], r.json["error"]["code"]),
                                 (501, "unsupported", "UnsupportedError", "unsupported"), (method, path, body))
                self.assertIn("the driver namespace", r.json["error"]["message"])

    def test_an_unknown_box_first(self):
        for method, path in self.calls:
            r = self.d.request(method, f"/v1/boxes/nobodys/{path}", "{}")
            self.assertEqual((r.status, r.reason), (404, "not_found"), path)

    def test_other_methods(self):
        for path, allow in (("snapshots", "GET, POST"), ("snapshots/one", "GET, DELETE"), ("clone", "POST"), ("network/tunnel", "POST")):
            r = self.d.request("PUT", f"/v1/boxes/nobodys/{path}")
            self.assertEqual((r.status, r.headers["Allow"]), (405, allow), path)

    def test_an_archive_is_not_read_for_nothing(self):
        r = self.d.request("POST", "/v1/boxes/import?name=x", b"\0" * 5_000_000)
        self.assertEqual((r.status, r.reason), (501, "unsupported"))
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(BOUND)
        s.connect(self.d.socket)
        s.sendall(b"POST /v1/boxes/import HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n")
        self.assertTrue(s.recv(1000).startswith(b"HTTP/1.1 501 "), "and the client is not told to send it")
        s.close()

    def test_a_connection_lives_on(self):
        c = self.d.connect()
        box = self.d.acquire("u", "lives")["box_id"]
        for _ in range(3):
            self.assertEqual(self.d.request("GET", f"/v1/boxes/{box}/snapshots", connection=c).status, 501)
        c.close()


class Slashes(DaemonTest):
    """A client that was given an empty name asks for what ends in a slash."""

    def test_an_empty_name_is_nobodys(self):
        for path in ("/v1/boxes/", "/v1/", "/v1/images/", "/v1/boxes/x/snapshots/"):
            r = self.d.get(path)
            self.assertEqual((r.status, r.reason), (404, "not_found"), path)


if __name__ == "__main__":
    unittest.main()

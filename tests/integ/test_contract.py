"""docs/openapi.yaml itself: it is sound, it has every route and every error of the server, and all of it is answered."""

import glob
import io
import os
import re
import socket
import tarfile
import tempfile
import threading
import unittest

import contract
import micro_vm
import openmetrics
import wiretap
from contract_schema import KEYWORDS, Invalid, Validator
from harness import BOUND, ROOT, Daemon, DaemonTest, Fault, slurp
from images import Image, base
from ws import Attached

HTTP_METHODS = {"get", "head", "put", "post", "delete", "patch", "options", "trace"}
SCHEMA_MAPS = ("properties", "$defs")
SCHEMA_LISTS = ("allOf", "oneOf", "anyOf")
SCHEMAS = ("items", "additionalProperties", "propertyNames")


def walk(node, path="#"):
    """Every mapping of a document, with where it stands."""
    if isinstance(node, dict):
        yield path, node
        for k, v in node.items():
            yield from walk(v, f"{path}/{k}")
    elif isinstance(node, list):
        for i, v in enumerate(node):
            yield from walk(v, f"{path}/{i}")


def schemas_below(schema):
    yield schema
    for k in SCHEMA_MAPS:
        for s in schema.get(k, {}).values():
            yield from schemas_below(s)
    for k in SCHEMA_LISTS:
        for s in schema.get(k, ()):
            yield from schemas_below(s)
    for k in SCHEMAS:
        if isinstance(schema.get(k), dict):
            yield from schemas_below(schema[k])


class Document(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = contract.Contract()
        cls.doc = cls.c.document

    def test_structure(self):
        self.assertRegex(self.doc["openapi"], r"^3\.1\.\d+$")
        self.assertLessEqual(set(self.doc), {"openapi", "info", "servers", "security", "tags", "paths", "components"})
        self.assertTrue({"title", "version", "license"} <= set(self.doc["info"]))
        tags = {t["name"] for t in self.doc["tags"]}
        for tag in self.doc["tags"]:
            self.assertEqual(set(tag), {"name", "description"})
        ids = [op.id for op in self.c.operations]
        self.assertEqual(len(ids), len(set(ids)), "an operationId stands twice")
        for path, item in self.doc["paths"].items():
            self.assertRegex(path, r"^(/([a-z0-9-]+|\{[a-z_]+\}))+$")
            self.assertLessEqual(set(item) - HTTP_METHODS, {"parameters"}, path)
        for op in self.c.operations:
            with self.subTest(op.id):
                self.assertLessEqual(set(op.node), {"operationId", "tags", "summary", "description", "parameters", "requestBody",
                                                    "responses", "security"})
                self.assertLessEqual(set(op.node["tags"]), tags)
                self.assertEqual(op.node["responses"]["default"], {"$ref": "#/components/responses/Any"})
                self.assertEqual(set(op.names("path")), set(re.findall(r"\{(\w+)\}", op.path)))
                keys = [(p["in"], p["name"]) for p in op.parameters]
                self.assertEqual(len(keys), len(set(keys)), "a parameter stands twice")
                for p in op.parameters:
                    self.assertIn(p["in"], ("path", "query", "header"))
                    self.assertTrue(p.get("required") or p["in"] != "path")
                    self.assertLessEqual({"name", "in", "schema"}, set(p))
                    self.assertLessEqual(set(p), {"name", "in", "schema", "required", "description"})

    def test_references_lead_somewhere_and_nothing_is_left_over(self):
        used = set()
        for where, node in walk(self.doc):
            if "$ref" in node:
                self.assertTrue(node["$ref"].startswith("#/components/"), where)
                self.assertIsInstance(self.c.resolve(node), dict, where)
                used.add(node["$ref"])
        for kind, members in self.doc["components"].items():
            for name in members if kind != "securitySchemes" else ():
                if name != "Undocumented":  # which OpenAPI has no place for
                    self.assertIn(f"#/components/{kind}/{name}", used, "nobody refers to it")
        schemes = set(self.doc["components"]["securitySchemes"])
        for node in [self.doc] + [op.node for op in self.c.operations]:
            for need in node.get("security", ()):
                self.assertLessEqual(set(need), schemes)

    def test_schemas_use_what_the_validator_knows(self):
        tops = list(self.doc["components"]["schemas"].values())
        tops += [p["schema"] for op in self.c.operations for p in op.parameters]
        for _, node in walk([self.doc["paths"], self.doc["components"]["responses"]]):
            tops += [m[k] for m in node.get("content", {}).values() if isinstance(m, dict) for k in ("schema", "x-item-schema") if k in m]
        self.assertGreater(len(tops), 100)
        for schema in (s for top in tops for s in schemas_below(top)):
            unknown = {k for k in schema if not k.startswith("x-")} - KEYWORDS
            self.assertEqual(unknown, set(), schema)
            if "required" in schema and schema.get("type") == "object":
                self.assertLessEqual(set(schema["required"]), set(schema["properties"]), "required, and not described")

    def test_every_response_is_described(self):
        responses = [(f"{op.id} {s}", s, r) for op in self.c.operations for s, r in op.responses.items() if s != "default"]
        for what, status, r in responses:
            with self.subTest(what):
                self.assertTrue(r["description"])
                self.assertLessEqual(set(r), {"description", "headers", "content", "x-reasons", "x-text-messages", "x-text-orders"})
                self.assertTrue(all(isinstance(why, str) for why in r.get("x-reasons", {}).values()))
                if status[0] in "45":
                    self.assertEqual(r["content"], {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}})
                    self.assertTrue(r["x-reasons"])
                    for reason in r["x-reasons"]:
                        self.assertEqual(self.c.errors[reason][0], int(status))
        for name in ("any", "undocumented"):
            for status, reasons in getattr(self.c, name).items():
                for reason in reasons:
                    self.assertEqual(self.c.errors[reason][0], int(status), name)

    def test_errors_are_those_of_the_server(self):
        source = slurp(f"{ROOT}/wire/api_error.c")
        rows = re.findall(r'\[API_\w+\]\s*=\s*\{(\d+),\s*"(\w+)",\s*"(\w+)",\s*"(\w+)"\}', source)
        self.assertGreater(len(rows), 30)
        self.assertEqual(self.c.errors, {reason: [int(status), kind, code] for status, kind, code, reason in rows})
        listed = {r for op in self.c.operations for s in op.responses.values() for r in s.get("x-reasons", ())}
        listed |= {r for part in (self.c.any, self.c.undocumented) for rs in part.values() for r in rs}
        self.assertEqual(set(self.c.errors) - listed, set(), "errors that no operation has")

    def test_every_name_that_the_server_reads_is_documented(self):
        read = set()
        for path in glob.glob(f"{ROOT}/supervisor/*.c") + glob.glob(f"{ROOT}/worker/*.c"):
            source = slurp(path)
            read |= set(re.findall(r'http_query_(?:get|flag)\(\s*[\w>.-]+,\s*"(\w+)"', source))
            read |= set(re.findall(r'(?:files_take_\w+|attach_take_switch)\(\s*c, h, "(\w+)"', source))
            read |= set(re.findall(r'\.(?:from|to|flag_name) = "(\w+)"', source))
            read |= set(re.findall(r'\{(?:\.name = )?"(\w+)",\s*(?:\.type = )?JSON_FIELD_', source))
            judged = re.search(r"\} judged\[\] = \{(.*?)\n\};", source, re.S)
            read |= set(re.findall(r'\{"(\w+)"', judged.group(1))) if judged else set()
        self.assertGreater(len(read), 50)
        documented = {p["name"] for op in self.c.operations for p in op.parameters}
        tops = [op.node["requestBody"]["content"].get("application/json", {}).get("schema") for op in self.c.operations if "requestBody" in op.node]
        for top in [*filter(None, tops), self.doc["components"]["schemas"]["AttachOrder"]]:
            for schema in schemas_below(self.c.resolve(top)):
                documented |= set(schema.get("properties", ()))
        self.assertEqual(read - documented, set())

    def test_names_are_those_of_the_server(self):
        """What is an enumeration here and a table there."""
        def names(path, table):
            body = re.search(rf"{table}\[[^\]]*\] = \{{(.*?)\n\}};", slurp(f"{ROOT}/{path}"), re.S).group(1)
            return set(re.findall(r'"([^"]+)"', body))
        schemas = self.doc["components"]["schemas"]
        self.assertEqual(set(schemas["Counters"]["required"]), names("shm/names.c", "counter_names"))
        self.assertEqual(set(schemas["Pool"]["properties"]["latency"]["required"]), names("shm/names.c", "hist_names"))
        self.assertEqual(set(schemas["BoxStatus"]["enum"]), names("shm/names.c", "status_names"))
        self.assertEqual(set(schemas["SlotState"]["enum"]) | {"free"}, names("shm/slot.c", "state_names"))
        self.assertEqual(set(schemas["AcquiredBox"]["properties"]["source"]["enum"]), names("shm/slot.c", "source_names"))
        self.assertEqual(set(schemas["Event"]["oneOf"][0]["properties"]["kind"]["enum"]) | {"none"}, names("shm/ring.c", "kind_names"))
        for name in ("Counters", "Pool", "BoxMetrics", "ServerConfig", "RuntimeMetrics"):
            self.assertEqual(set(schemas[name]["required"]), set(schemas[name]["properties"]), name)


class Routes(unittest.TestCase):
    """The server's two tables and the document have the same endpoints."""

    @staticmethod
    def documented():
        return {(op.method.upper(), re.sub(r"\{\w+\}", ":", op.path)) for op in contract.Contract().operations}

    @staticmethod
    def of_sbxd():
        source = slurp(f"{ROOT}/supervisor/routes.c")
        table = re.search(r"struct route routes\[\] = \{(.*?)\n\};", source, re.S).group(1)
        rows = re.findall(r"\{([^}]*)\}", table)
        own, handed = set(), set()
        for row in rows:
            path = re.search(r'\.segments = "([^"]+)"', row).group(1)
            if ".handed_over = true" in row:
                handed.add(path)
                continue
            base = "/" if ".at_root = true" in row else "/v1/"
            own |= {(m.strip(), base + path) for m in re.search(r"\.methods = ([A-Z |]+)", row).group(1).split("|")}
        return own, handed, len(rows)

    @staticmethod
    def of_workers():
        table = re.search(r"struct route routes\[\] = \{(.*?)\n\};", slurp(f"{ROOT}/worker/route.c"), re.S).group(1)
        rows = re.findall(r"\{HTTP_(\w+), \{([^}]*)\},", table)
        return {(m, "/v1/boxes/:/" + "/".join(re.findall(r'"([^"]+)"', path))) for m, path in rows}

    def test_every_route_is_documented_and_no_other(self):
        own, _, rows = self.of_sbxd()
        workers = self.of_workers()
        self.assertGreater(rows, 30)
        self.assertGreater(len(workers), 15)
        served = own | workers
        self.assertEqual(served - self.documented(), set(), "served, and not documented")
        self.assertEqual(self.documented() - served, set(), "documented, and not served")

    def test_what_workers_serve_is_handed_to_them(self):
        handed = [re.compile(p.replace("*", ".+").replace(":", "[^/]+")) for p in self.of_sbxd()[1]]
        for _, path in self.of_workers():
            self.assertTrue(any(p.fullmatch(path.removeprefix("/v1/")) for p in handed), path)


def tar_of(name, data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        t.addfile(info, io.BytesIO(data))
    return out.getvalue()


CLOSES = Fault("contract-close")


class Answers(DaemonTest):
    """Each operation is asked for what it has."""

    config = "replicas: 50\n"
    env = {"SBX_FAULT": f"worker/worker.close.locked=hang@{CLOSES.path}"}

    def ask(self, method, path, *args, want=200, **kw):
        r = self.d.request(method, path, *args, **kw)
        self.assertEqual(r.status, want, (method, path, r))
        return r

    def service(self):
        for path in ("/v1/pool", "/v1/config", "/v1/me", "/v1/metrics", "/metrics", "/v1/boxes", "/v1/events?since=0&follow=0"):
            self.ask("GET", path)
        self.ask("HEAD", "/v1/events?follow=0")
        said = next(op.node["description"] for op in contract.Contract().operations if op.id == "getOpenMetrics")
        families = openmetrics.parse(self.ask("GET", "/metrics").body.decode())
        self.assertEqual(set(families), set(re.findall(r"sbxd_\w+", said)))
        image = self.ask("GET", "/v1/images").json["images"][0]
        self.ask("GET", f"/v1/images/{image['id']}")
        self.ask("HEAD", f"/v1/images/{image['tag']}", want=404)
        self.ask("HEAD", f"/v1/images/{image['reference']}", want=204)
        self.ask("POST", "/v1/images/pull", {"reference": image["reference"]})
        self.images()

    def images(self):
        with tempfile.TemporaryDirectory(prefix="sbxd-contract-") as path:
            ref = "oci:" + Image(base()).write_layout(f"{path}/layout")
            for accept in ("application/json", "application/x-ndjson"):
                self.ask("POST", "/v1/images/pull", {"reference": ref}, {"Accept": accept})
                image = next(i for i in self.ask("GET", "/v1/images").json["images"] if i["reference"] == ref)
                if accept == "application/json":
                    self.ask("DELETE", f"/v1/images/{image['id']}")
            self.ask("POST", "/v1/images/prune")

    def commands(self, box):
        self.ask("POST", f"{box}/run", {"command": "echo 1; echo 2 >&2"})
        self.ask("POST", f"{box}/run", {"argv": ["echo", "1"]}, {"Accept": "application/x-ndjson"})
        executions = f"{box}/executions"
        e = self.ask("POST", f"{box}/exec", {"command": "cat", "tty": True}, want=201).json["execution_id"]
        a = Attached(self.d, box.split("/")[-1], e, "?stdin=1&replay=0")
        self.ask("POST", f"{executions}/{e}/resize", {"cols": 100, "rows": 30}, want=204)
        self.ask("POST", f"{executions}/{e}/signal", {"signal": 28}, want=204)
        self.ask("GET", executions)
        self.ask("GET", f"{executions}/{e}")
        self.ask("DELETE", f"{executions}/{e}", want=204)
        a.finish()

    def files(self, box):
        fs = f"{box}/fs"
        self.ask("POST", f"{fs}/mkdir?path=/tmp/d")
        self.ask("PUT", f"{fs}/write?path=/tmp/d/a.txt&mode=0600", b"one\ntwo\n")
        for what in ("read?path=/tmp/d/a.txt&start_line=2", "stat?path=/tmp/d&follow=1", "list?path=/tmp&depth=2&max_results=10",
                     "glob?path=/tmp&pattern=*.txt&include_dirs=0", "grep?path=/tmp&pattern=t.o&glob=*.txt&case_sensitive=true"):
            self.ask("GET", f"{fs}/{what}")
        self.ask("POST", f"{fs}/mkdir", {"path": "/tmp/e", "mode": "0700", "parents": False})
        self.ask("POST", f"{fs}/rename", {"from": "/tmp/d/a.txt", "to": "/tmp/e/b.txt"})
        self.ask("DELETE", f"{fs}?path=/tmp/d&recursive=1")
        self.ask("PUT", f"{box}/files?path=/tmp/up/&overwrite=true", tar_of("f", b"x"), want=204)
        self.ask("GET", f"{box}/files?path=/tmp/up&follow_symlinks=false")

    def flags(self, box):
        """They are spelled in one way, everywhere."""
        for method, path in (("PUT", f"{box}/fs/write?path=/tmp/g&append="), ("GET", f"{box}/fs/stat?path=/tmp&follow="),
                             ("GET", f"{box}/files?path=/tmp/up&follow_symlinks="), ("GET", "/v1/boxes?all="), ("HEAD", "/v1/events?follow=")):
            for value in ("0", "1", "true", "false"):
                self.ask(method, path + value)
            self.ask(method, path + "yes", want=400)
        self.ask("DELETE", f"{box}?force=maybe", want=400)
        self.ask("DELETE", f"{box}?force=0", want=409)

    def made_boxes(self):
        r = self.ask("POST", "/v1/boxes", {"name": "contract", "cpus": 1, "env": {"A": "b"}}, {"Idempotency-Key": "k"}, want=201)
        box = f"/v1/boxes/{r.json['box_id']}"
        self.ask("GET", "/v1/boxes/contract")
        self.ask("HEAD", box, want=204)
        self.ask("POST", f"{box}/start")
        self.ask("POST", f"{box}/stop", {"timeout_seconds": 5})
        self.ask("GET", f"{box}/metrics")
        for method, what in (("GET", "snapshots"), ("POST", "snapshots"), ("GET", "snapshots/s"), ("DELETE", "snapshots/s"),
                             ("POST", "snapshots/s/restore"), ("POST", "clone"), ("POST", "export"), ("POST", "network/tunnel")):
            self.ask(method, f"{box}/{what}", want=501)
        self.ask("POST", "/v1/boxes/import", want=501)
        self.ask("DELETE", f"{box}?force=true", want=204)

    def templates(self):
        """Of a service that makes them."""
        self.ask("GET", "/v1/templates")
        self.ask("POST", "/v1/templates", want=501)
        if micro_vm.missing():
            return
        d = Daemon(micro_vm.config())
        try:
            for accept in ("application/json", "application/x-ndjson"):
                r = d.post("/v1/templates", {}, headers={"Accept": accept}, timeout=BOUND * 8)
                self.assertEqual(r.status, 200, r)
            key = d.get("/v1/templates").json["templates"][0]["key"]
            self.assertEqual(d.request("DELETE", f"/v1/templates/{key}").status, 200)
        finally:
            self.assertEqual(d.stop(), 0)
            left = d.remains()
            d.remove()
        self.assertEqual(left, [])

    def shut_down(self):
        """Its end is held up, so that another client can ask for it, too."""
        second = self.d.connect()
        self.ask("GET", "/v1/pool", connection=second)
        CLOSES.arm()
        first = threading.Thread(target=lambda: setattr(self, "ended", self.d.post("/v1/shutdown")))
        first.start()
        while self.ask("GET", "/v1/boxes", connection=second).json["boxes"][0]["status"] != "stopping":
            pass
        self.ask("POST", "/v1/shutdown", want=202, connection=second)
        second.close()
        first.join()
        self.assertEqual((self.ended.status, self.ended.json), (200, {"status": "closed"}))

    def test_every_operation_is_answered(self):
        contract.answered.clear()
        self.service()
        got = self.d.acquire("contract", "t", lease_seconds=1000, wait_seconds=30, release_on_disconnect=False)
        box = f"/v1/boxes/{got['box_id']}"
        self.commands(box)
        self.files(box)
        self.flags(box)
        self.made_boxes()
        self.templates()
        self.ask("POST", f"{box}/release", {"lease_id": got["lease_id"]})
        self.ask("POST", "/v1/pool/reset")
        self.shut_down()
        for op in contract.Contract().operations:
            wanted = op.success() or {("501", "application/json")}
            if micro_vm.missing() and op.id in ("buildTemplate", "removeTemplate"):
                continue
            self.assertEqual(wanted - {(s, t) for i, s, t in contract.answered if i == op.id}, set(), f"{op.id}: never answered so")


class Refusals(DaemonTest):
    """Questions that make no sense where they are asked; each answer is held to the contract, too."""

    PREPARE = "mkdir -m 700 /tmp/private; mkfifo /tmp/fifo; ln -s loop /tmp/loop; mkdir -p /tmp/full/x; touch /tmp/file"
    NOBODY = {"command": "true", "user": "nobody"}
    CASES = (
        ("POST", "run", {**NOBODY, "cwd": "/tmp/private"}, 422, "execution_failed"),
        ("POST", "exec", {**NOBODY, "working_dir": "/tmp/private"}, 422, "execution_failed"),
        ("POST", "run", {**NOBODY, "cwd": "/tmp/file"}, 422, "execution_failed"),
        ("POST", "run", {**NOBODY, "cwd": "/tmp/nothing"}, 422, "execution_failed"),
        ("POST", "exec", {**NOBODY, "working_dir": "/tmp/nothing"}, 422, "execution_failed"),
        ("POST", "run", {**NOBODY, "cwd": "/tmp/../tmp"}, 400, "invalid_path"),
        ("POST", "run", {"argv": ["true", "x" * 200000]}, 413, "too_large"),
        ("POST", "exec", {"command": "true", "no_such_member": 1}, 400, "invalid_argument"),
        ("GET", "executions/exec-0000000000000000/attach", None, 404, "not_found"),
        ("POST", "executions/exec-0000000000000000/signal", {"signal": 9}, 404, "not_found"),
        ("GET", "fs/read?path=/tmp/fifo", None, 400, "invalid_argument"),
        ("GET", "fs/read?path=/tmp//file", None, 400, "invalid_path"),
        ("GET", "fs/read?path=/tmp/loop", None, 400, "invalid_path"),
        ("GET", "fs/read?path=/tmp", None, 400, "is_directory"),
        ("GET", "fs/read?path=/tmp/file&offset=1&start_line=1", None, 400, "invalid_argument"),
        ("PUT", "fs/write?path=/tmp/none/file", b"", 404, "not_found"),
        ("PUT", "fs/write?path=/tmp/file/x", b"", 400, "not_a_directory"),
        ("PUT", "fs/write?path=/proc/sys/kernel/hostname&append=1", b"x", 403, "permission_denied"),
        ("GET", "fs/stat?path=/" + "n" * 300, None, 400, "invalid_path"),
        ("GET", "fs/list?path=/tmp/file", None, 400, "not_a_directory"),
        ("GET", "fs/glob?path=/tmp&pattern=/x", None, 400, "invalid_pattern"),
        ("GET", "fs/grep?path=/tmp&pattern=(", None, 400, "invalid_pattern"),
        ("POST", "fs/mkdir", {"path": "/tmp/file"}, 409, "already_exists"),
        ("DELETE", "fs?path=/tmp/full", None, 409, "not_empty"),
        ("DELETE", "fs?path=/", None, 409, "busy"),
        ("POST", "fs/rename", {"from": "/tmp", "to": "/tmp/x"}, 400, "invalid_argument"),
        ("POST", "fs/rename", {"from": "/usr/bin/true", "to": "/tmp/x"}, 400, "cross_device"),
        ("POST", "fs/rename", {"from": "/tmp/file", "to": "/tmp/full", "overwrite": True}, 400, "is_directory"),
        ("GET", "files?path=/tmp/fifo", None, 400, "invalid_argument"),
        ("PUT", "files?path=/tmp/new", b"no archive", 400, "invalid_argument"),
        ("PUT", "files?path=/tmp/file/", tar_of("x", b""), 400, "not_a_directory"),
        ("HEAD", "fs/read?path=/tmp/file", None, 405, None),
        ("POST", "stop", {"timeout_seconds": -1}, 400, "invalid_argument"),
        ("POST", "stop", None, 409, "invalid_state"),
        ("GET", "fs/nothing", None, 404, "not_found"),
        ("DELETE", "", None, 404, "not_found"),
    )

    def test_each_is_answered_as_documented(self):
        box = self.d.acquire("contract", "refused")["box_id"]
        self.d.sh(box, self.PREPARE)
        for method, what, body, status, reason in self.CASES:
            with self.subTest(f"{method} {what:.60} {str(body):.60}"):
                r = self.d.request(method, f"/v1/boxes/{box}/{what}", body)
                self.assertEqual((r.status, r.reason if reason else None), (status, reason), r)


class FakeServer:
    """Answers one connection to a socket that is called as a daemon's."""

    def __init__(self, reply):
        self.dir = tempfile.TemporaryDirectory(prefix="sbxd-test-")
        self.path = os.path.join(self.dir.name, "sbxd.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.reply = reply

    def ask(self, request):
        """All bytes of the answer."""
        with self.dir, self.listener, socket.socket(socket.AF_UNIX) as s:
            s.connect(self.path)
            server, _ = self.listener.accept()
            with server:
                s.sendall(request)
                server.recv(1 << 16)  # else its end would be a reset
                server.sendall(self.reply)
            return b"".join(iter(lambda: s.recv(7), b""))


def reply(status, body=b"", *headers, kind="application/json"):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "X-Request-Id: r"]
    lines += [f"Content-Type: {kind}"] if body else []
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


def stream(body, kind):
    return (f"HTTP/1.1 200 OK\r\nX-Request-Id: r\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\nContent-Type: {kind}\r\n\r\n"
            f"{len(body):x}\r\n").encode() + body + b"\r\n"


class TheTestItself(unittest.TestCase):
    """What it is there to find, it finds."""

    ME = (b'{"sub":"0","principal_type":"user","display_name":"root","path_prefix":null,"scopes":["admin"],"expires_at":null}')

    def violation(self, request, answer):
        try:
            FakeServer(answer).ask(request)
        except contract.Violation as e:
            self.assertEqual(contract.take_violations(), [str(e)])
            return str(e)
        return None

    def error(self, status, reason, kind="NotFoundError", code="not_found"):
        return reply(status, b'{"error":{"message":"m","type":"%s","code":"%s","reason":"%s","request_id":"r"}}'
                     % (kind.encode(), code.encode(), reason.encode()))

    def test_what_is_as_documented_passes(self):
        get = b"GET /v1/me HTTP/1.1\r\nHost: x\r\n\r\n"
        self.assertIsNone(self.violation(get, reply(200, self.ME)))
        self.assertIsNone(self.violation(b"HEAD /v1/boxes/0123456789abcdef HTTP/1.1\r\n\r\n", reply(204)))
        self.assertIsNone(self.violation(b"GET /v1/nothing HTTP/1.1\r\n\r\n", self.error(404, "not_found")))
        self.assertIsNone(self.violation(b"GET /v1/boxes/x HTTP/1.1\r\n\r\n", self.error(404, "not_found")))
        self.assertIsNone(self.violation(get + get, reply(200, self.ME) + reply(200, self.ME)), "pipelined")

    def test_what_is_not_is_found(self):
        get = b"GET /v1/me HTTP/1.1\r\nHost: x\r\n\r\n"
        cut = self.ME[:-1]
        for answer, why in (
                (reply(200, cut + b',"more":1}'), "not documented: ['more']"),
                (reply(200, self.ME.replace(b'"sub":"0",', b"")), "without ['sub']"),
                (reply(200, self.ME.replace(b'"0"', b"0")), "is no string"),
                (reply(200, cut), "no JSON"),
                (reply(200, cut + b',"sub":"0"}'), "stands twice"),
                (reply(200, self.ME, kind="text/plain"), "content type"),
                (reply(200), "content type"),
                (reply(201, self.ME), "not documented"),
                (reply(404, b"{}"), "not documented"),
                (reply(200, self.ME).replace(b"X-Request-Id: r\r\n", b""), "X-Request-Id"),
                (self.error(404, "not_found"), "not documented"),
                (self.error(403, "permission_denied", "AuthError", "permission_denied"), "not documented")):
            self.assertIn(why, self.violation(get, answer) or "nothing", answer)
        box = b"GET /v1/boxes/x HTTP/1.1\r\n\r\n"
        for answer, why in ((self.error(404, "no_such_reason"), "documented as None"),
                            (self.error(404, "not_found", "AuthError"), "documented as"),
                            (self.error(404, "not_found").replace(b'"request_id":"r"', b'"request_id":"q"'), "request_id is not"),
                            (self.error(409, "not_a_tty", "InvalidStateError", "invalid_state"), "is not documented for 409")):
            self.assertIn(why, self.violation(box, answer) or "nothing", answer)
        for request, answer, why in (
                (b"GET /v1/boxes?no=1 HTTP/1.1\r\n\r\n", reply(200, b'{"boxes":[]}'), "taken, and not documented"),
                (b"GET /v1/boxes?pageSize=0 HTTP/1.1\r\n\r\n", reply(200, b'{"boxes":[]}'), "parameter pageSize"),
                (b"GET /v1/boxes/0123456789abcdef/fs/read HTTP/1.1\r\n\r\n", reply(200, b"x", kind="application/octet-stream"), "taken without"),
                (b"POST /v1/boxes/x/release HTTP/1.1\r\nContent-Length: 14\r\n\r\n" + b'{"lease_id":1}', reply(200, b'{"status":"warm"}'), "request.lease_id"),
                (b"DELETE /v1/boxes HTTP/1.1\r\n\r\n", self.error(405, "method_not_allowed", "UnsupportedError", "unsupported"), "header allow"),
                (b"nonsense\r\n\r\n", reply(200, self.ME), "not documented"),
                (b"GET /v1/events HTTP/1.1\r\n\r\n", stream(b'id: 1\nevent: state\ndata: {"kind":"what"}\n\n', "text/event-stream"),
                 "is 0 of 2 things")):
            self.assertIn(why, self.violation(request, answer) or "nothing", request)

    def test_schemas(self):
        v = Validator({})
        for schema, good, bad in (
                ({"type": "integer"}, [0, -5], [1.5, "1", None, True]), ({"type": ["number", "null"]}, [1, 1.5, None], ["", False, []]),
                ({"enum": ["a", 1]}, ["a", 1], ["b", True]), ({"const": True}, [True], [1, "true"]), ({"minimum": 1, "maximum": 3}, [1, 3, "x"], [0, 4]),
                ({"exclusiveMinimum": 0}, [0.1], [0]), ({"minLength": 1, "maxLength": 2}, ["é", 5], ["", "abc"]), ({"pattern": "^a"}, ["ab"], ["ba"]),
                ({"format": "date-time"}, ["2024-01-01T00:00:00.000Z"], ["2024-01-01", "2024-01-01T00:00:00"]),
                ({"contentEncoding": "base64"}, ["", "AA=="], ["A", "*"]), ({"items": {"type": "null"}, "maxItems": 1}, [[], [None]], [[1], [None, None]]),
                ({"minItems": 1}, [[1]], [[]]), ({"maxProperties": 0}, [{}], [{"a": 1}]), ({"propertyNames": {"pattern": "^a"}}, [{"a": 1}], [{"b": 1}]),
                ({"required": ["a"], "properties": {"a": {"type": "null"}}, "additionalProperties": False}, [{"a": None}], [{}, {"a": 1}, {"a": None, "b": 1}]),
                ({"additionalProperties": {"type": "string"}}, [{"a": ""}], [{"a": 1}]),
                ({"allOf": [{"properties": {"a": {}}}], "properties": {"b": {}}, "unevaluatedProperties": False}, [{"a": 1, "b": 1}], [{"c": 1}]),
                ({"oneOf": [{"type": "integer"}, {"type": "number", "maximum": 1}]}, [5, 0.5], [1, 1.5])):
            for value in good:
                v.check(schema, value)
            for value in bad:
                with self.assertRaises(Invalid, msg=(schema, value)):
                    v.check(schema, value)

    def test_messages_are_cut_wherever_the_bytes_are(self):
        exchanges = []

        class Judge:
            def begin(self, request, response):
                exchanges.append([request and request.words, response.status])

            def body(self, response, data):
                response.keep(data)

            def end(self, request, response):
                exchanges[-1] += [bytes(request.body) if request else None, bytes(response.body)]

            def frame(self, response, opcode, payload):
                exchanges[-1].append((opcode, len(payload), payload[:3]))

        asked = (b"PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nT: 1\r\n\r\n\r\nHEAD /b HTTP/1.1\r\n\r\n"
                 b"POST /c HTTP/1.1\r\nContent-Length: 2\r\n\r\nzz" b"GET /d HTTP/1.1\r\n\r\n")
        said = (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxyzHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n1\r\n2\r\n0\r\n\r\nHTTP/1.1 204 OK\r\n\r\nHTTP/1.1 400 X\r\n\r\nrest")
        for n in (1, 2, 3, 7, 1000):
            exchanges.clear()
            tap = wiretap.Tap(Judge())
            for i in range(0, len(asked), n):
                tap.sent(asked[i:i + n])
            for i in range(0, len(said), n):
                tap.received(said[i:i + n])
            tap.received(b"")
            self.assertEqual(exchanges, [[["PUT", "/a", "HTTP/1.1"], 200, b"abc", b"xyz"], [["HEAD", "/b", "HTTP/1.1"], 200, b"", b""],
                                         [["POST", "/c", "HTTP/1.1"], 200, b"zz", b"1\r\n2"], [["GET", "/d", "HTTP/1.1"], 204, b"", b""],
                                         [None, 400, None, b"rest"]], n)
        exchanges.clear()
        tap = wiretap.Tap(Judge())
        tap.sent(b"GET /w HTTP/1.1\r\n\r\n")
        said = b"HTTP/1.1 101 X\r\n\r\n\x89\0\x82\x03\1ab\x81\x7e\1\0" + b"t" * 256 + b"\x82\x7f\0\0\0\0\0\1\0\0" + b"b" * 65536 + b"\x88\2\3\xe8"
        for i in range(0, len(said), 7):
            tap.received(said[i:i + 7])
        self.assertEqual(exchanges, [[["GET", "/w", "HTTP/1.1"], 101, (9, 0, b""), (2, 3, b"\1ab"), (1, 256, b"ttt"), (2, 65536, b"bbb"), (8, 2, b"\3\xe8")]])

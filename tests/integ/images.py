"""Images made here, of busybox, and registries on loopback: Debian's docker-registry, and one that does things wrong."""

import gzip
import hashlib
import http.server
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading

from harness import BOUND, DaemonTest, wait_for

BUSYBOX = "/bin/busybox"
PULL = BOUND * 4  # seconds for a pull: it writes to the disk, and others do too
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DIR, FILE, LINK, HARD, CHAR, BLOCK, FIFO = (tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE,
                                            tarfile.BLKTYPE, tarfile.FIFOTYPE)


def sha(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(*entries):
    """A tar of (name, type, {field: value}); `data` is a file's content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, fields in entries:
            fields = dict(fields)
            data = fields.pop("data", b"")
            info = tarfile.TarInfo(name)
            info.type = kind
            info.mode = 0o755 if kind == DIR else 0o644
            for k, v in fields.items():
                setattr(info, k, v)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def base():
    """A root that commands can run in: busybox, two accounts."""
    with open(BUSYBOX, "rb") as f:
        busybox = f.read()
    tools = [(f"bin/{name}", LINK, {"linkname": "busybox"})
             for name in ("sh", "cat", "ls", "id", "pwd", "env", "stat", "test", "echo", "find", "sleep", "touch", "printenv")]
    return layer(("bin", DIR, {}), ("bin/busybox", FILE, {"mode": 0o755, "data": busybox}), *tools, ("etc", DIR, {}),
                 ("etc/passwd", FILE, {"data": b"root:x:0:0::/root:/bin/sh\napp:x:1234:1234::/home/app:/bin/sh\n"}),
                 ("etc/group", FILE, {"data": b"root:x:0:\napp:x:1234:\n"}), ("home", DIR, {}),
                 ("home/app", DIR, {"uid": 1234, "gid": 1234}),
                 ("home/app/own", FILE, {"mode": 0o600, "uid": 1234, "gid": 1234, "data": b"app's\n"}))


class Image:
    """The blobs of one image."""

    def __init__(self, *layers, arch="amd64", **config):
        self.blobs = {}
        packed = [gzip.compress(t, 1, mtime=0) for t in layers]
        about = {"architecture": arch, "os": "linux", "config": config,
                 "rootfs": {"type": "layers", "diff_ids": [sha(t) for t in layers]}}
        self.layers = [self.put(z) for z in packed]
        self.config = self.put(json.dumps(about).encode())
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": self.about("application/vnd.oci.image.config.v1+json", self.config),
            "layers": [self.about("application/vnd.oci.image.layer.v1.tar+gzip", d) for d in self.layers]}).encode()
        self.digest = self.put(self.manifest)

    def put(self, data):
        self.blobs[sha(data)] = data
        return sha(data)

    def about(self, kind, digest):
        return {"mediaType": kind, "digest": digest, "size": len(self.blobs[digest])}

    def write_layout(self, path, tag="latest"):
        """An OCI image layout; what makes it an image of the store: its path."""
        os.makedirs(f"{path}/blobs/sha256")
        for digest, data in self.blobs.items():
            with open(f"{path}/blobs/sha256/{digest[7:]}", "wb") as f:
                f.write(data)
        with open(f"{path}/oci-layout", "w", encoding="ascii") as f:
            f.write('{"imageLayoutVersion":"1.0.0"}')
        with open(f"{path}/index.json", "w", encoding="ascii") as f:
            json.dump({"schemaVersion": 2, "manifests": [{
                **self.about(MANIFEST, self.digest), "annotations": {"org.opencontainers.image.ref.name": tag}}]}, f)
        return path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Registry:
    """Debian's docker-registry, with its files in a directory of its own. accounts: {user: (password, its bcrypt hash)}: nobody
    else is served."""

    def __init__(self, path, accounts=None):
        self.port = free_port()
        self.name = f"127.0.0.1:{self.port}"
        self.path = path
        self.login = next((f"{user}:{password}" for user, (password, _) in (accounts or {}).items()), None)
        os.makedirs(path)
        config = f"{path}/config.yml"
        with open(config, "w", encoding="ascii") as f:
            f.write(f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {path}/data}}}}\n"
                    f"http: {{addr: '{self.name}'}}\n")
            if accounts:
                f.write(f"auth: {{htpasswd: {{realm: test, path: {path}/htpasswd}}}}\n")
        with open(f"{path}/auth.json", "w", encoding="ascii") as f:
            f.write("{}")
        with open(f"{path}/htpasswd", "w", encoding="ascii") as f:
            f.writelines(f"{user}:{digest}\n" for user, (_, digest) in (accounts or {}).items())
        self.log = open(f"{path}/log", "wb")
        self.process = subprocess.Popen(["docker-registry", "serve", config], stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        wait_for("the registry", self.serving)

    def serving(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def push(self, image, name, tag="latest"):
        """Puts it there with skopeo; its reference."""
        layout = f"{self.path}/layout"
        shutil.rmtree(layout, ignore_errors=True)
        image.write_layout(layout)
        ref = f"{self.name}/{name}:{tag}"
        login = ["--dest-creds", self.login] if self.login else []
        env = {**os.environ, "REGISTRY_AUTH_FILE": f"{self.path}/auth.json"}  # whatever somebody has logged in to on this host
        subprocess.run(["skopeo", "copy", "--quiet", "--dest-tls-verify=false", *login, f"oci:{layout}:latest", f"docker://{ref}"],
                       check=True, timeout=BOUND * 4, capture_output=True, env=env)
        return ref

    def stop(self):
        self.process.kill()
        self.process.wait(BOUND)
        self.log.close()


class BadRegistry:
    """A registry of one image that can be told to go wrong, and counts what it is asked."""

    def __init__(self, image):
        self.image = image
        self.wrong = {}  # digest -> a function of the handler and the data, in place of the answer
        self.manifest_as = image.manifest
        self.manifest_kind = MANIFEST
        self.asked = []
        self.gate = threading.Event()
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def give(self, data, kind="application/octet-stream"):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def do_GET(self):
                registry.asked.append(self.path)
                name = self.path.rstrip("/").rsplit("/", 1)[-1]
                if self.path == "/v2/":
                    self.give(b"{}", "application/json")
                elif "/manifests/" in self.path:
                    self.give(registry.manifest_as, registry.manifest_kind)
                elif name in registry.wrong:
                    registry.wrong[name](self, registry.image.blobs[name])
                elif name in registry.image.blobs:
                    self.give(registry.image.blobs[name])
                else:
                    self.send_error(404)

            do_HEAD = do_GET

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # a client that was killed in the middle is what tests are about

        self.server = Server(("127.0.0.1", 0), Handler)
        self.ref = f"127.0.0.1:{self.server.server_address[1]}/bad"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def hang(self, handler, data):
        """Half of it, then nothing until the gate opens."""
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:len(data) // 2])
        handler.wfile.flush()
        self.gate.wait(BOUND * 4)
        handler.close_connection = True

    def truncate(self, handler, data):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:len(data) // 2])
        handler.close_connection = True

    def change(self, handler, data):
        handler.give(data[:-1] + bytes([data[-1] ^ 1]))

    def stop(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


class ImagesTest(DaemonTest):
    """One daemon, a directory for layouts; after each test no box is left, and nothing half-made."""

    count = 0  # of layouts

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dir = tempfile.mkdtemp(prefix="sbxd-images-")
        os.chmod(cls.dir, 0o755)

    @classmethod
    def tearDownClass(cls):
        try:
            super().tearDownClass()
        finally:
            shutil.rmtree(cls.dir)

    def tearDown(self):
        self.remove_boxes()
        self.assertEqual(self.leftovers(), [])

    def remove_boxes(self):
        for b in self.d.get("/v1/boxes").json["boxes"]:
            self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")
        wait_for("the boxes to be gone", lambda: self.d.get("/v1/boxes").json["boxes"] == [])

    def store(self):
        path = f"{self.d.dir}/state/images"
        return sorted(os.listdir(path)) if os.path.isdir(path) else []

    def leftovers(self):
        """What is in the store and is neither an image nor a name of one."""
        return [n for n in self.store() if not n.startswith(("sha256-", "ref-")) and n != "lock"]

    def layout(self, image):
        ImagesTest.count += 1
        return "oci:" + image.write_layout(f"{self.dir}/layout{ImagesTest.count}")

    def pull(self, reference, **kw):
        return self.d.post("/v1/images/pull", {"reference": reference}, timeout=PULL, **kw)

    def pulled(self, reference):
        r = self.pull(reference)
        self.assertEqual(r.status, 200, f"{r}\n{self.d.log()[-2000:]}")
        return r.json

    def box(self, image, thread="t", **more):
        return self.d.acquire("u", thread, image=image, wait_seconds=PULL, **more)["box_id"]

    def listed(self):
        return {i["reference"]: i for i in self.d.get("/v1/images").json["images"] if i["reference"] != "host"}

    def ids(self):
        return {i["id"] for i in self.listed().values()}

    def fails(self, reference, *words, status=422):
        """A pull, then an acquire of it fail alike, and leave nothing."""
        for r in (self.pull(reference),
                  self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "bad", "image": reference, "wait_seconds": PULL}, timeout=PULL)):
            self.assertEqual(r.status, status, r)
            for word in words:
                self.assertIn(word, r.json["error"]["message"])
            self.assertEqual(self.leftovers(), [])
        return r

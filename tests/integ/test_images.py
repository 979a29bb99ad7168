"""Images of registries and layouts: pulled, unpacked, kept by digest, removed; and all that can go wrong on the way."""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import images
from harness import BOUND, IS_ROOT, Daemon, Fault, in_threads, slurp, wait_for
from images import BLOCK, CHAR, DIR, FIFO, FILE, LINK, PULL, BadRegistry, Image, ImagesTest, Registry, base, layer

FAULT = Fault("images")
POINTS = ("begun", "jailed", "fetched", "unpacked", "synced", "commit", "committed", "named", "done")


class Store(ImagesTest):
    config = "replicas: 20\nenvironment: {B: config, C: config, D: config}\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.registry = Registry(f"{cls.dir}/registry")

    @classmethod
    def tearDownClass(cls):
        cls.registry.stop()
        super().tearDownClass()

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.d.post("/v1/images/prune").status, 200)
        self.assertEqual(self.store(), ["lock"])

    def test_a_registry_s_image_is_pulled_and_listed(self):
        image = Image(base())
        ref = self.registry.push(image, "space/name", "1.0")
        got = self.pulled(ref)
        self.assertEqual((got["reference"], got["repository"], got["tag"], got["id"], got["in_use"]),
                         (ref, f"{self.registry.name}/space/name", "1.0", image.digest, False))
        self.assertGreater(got["size_bytes"], os.path.getsize(images.BUSYBOX))
        self.assertEqual(self.listed(), {ref: got})
        for name in (image.digest, ref.replace("/", "%2F"), f"{self.registry.name}%2fspace%2fname:1.0"):
            self.assertEqual(self.d.get(f"/v1/images/{name}").json, got, name)
            self.assertEqual(self.d.request("HEAD", f"/v1/images/{name}").status, 204)
        for name in ("sha256:" + "0" * 64, ref.replace("/", "%2F") + "x", "nothing"):
            self.assertEqual(self.d.get(f"/v1/images/{name}").status, 404)
            self.assertEqual(self.d.request("HEAD", f"/v1/images/{name}").status, 404)
        by_digest = f"{self.registry.name}/space/name@{image.digest}"
        self.assertEqual(self.pulled(by_digest)["id"], image.digest)
        self.assertEqual(len(self.store()), 4)  # lock, two names, one image

    def test_pages(self):
        image = Image(base())
        for i in range(3):
            self.pulled(self.registry.push(image, f"page{i}"))
        seen, token = [], ""
        while token is not None:
            r = self.d.get(f"/v1/images?pageSize=2{token and '&pageToken=' + token}").json
            self.assertLessEqual(len(r["images"]), 2)
            seen += [i["reference"] for i in r["images"]]
            token = r["next_page_token"]
        self.assertEqual(seen, sorted(set(seen)))
        self.assertEqual(len(seen), 4)  # and host
        self.assertEqual(self.d.get("/v1/images?pageToken=nonsense").status, 400)

    def test_environment_user_and_directory_of_the_image(self):
        image = Image(base(), Env=["PATH=/bin", "A=image", "B=image", "C=image", "D=image", "not a name=x"], User="app", WorkingDir="/srv/a/b",
                      Entrypoint=["/no/such"], Cmd=["/no/such"])
        ref = self.registry.push(image, "config")
        show = "id -un; pwd; echo $A $B $C $D $PATH"
        b = self.box(ref)
        app = "app" if IS_ROOT else "root"  # an ordinary user's box has one uid
        self.assertEqual(self.d.sh(b, show), f"{app}\n/srv/a/b\nimage config config config /bin\n")
        self.assertEqual(self.d.sh(b, show, env={"C": "call", "A": "own"}, user="root", cwd="/"), "root\n/\nown config call config /bin\n")
        self.assertEqual(self.d.sh(b, "cat /home/app/own; stat -c '%U:%G %a' /home/app/own"), f"app's\n{app}:{app} 600\n")
        r = self.d.post("/v1/boxes", {"image": ref, "env": {"D": "box"}, "user": "root", "working_dir": "/tmp"}, timeout=PULL)
        self.assertEqual(r.status, 201, r)
        self.assertEqual(self.d.sh(r.json["box_id"], show), "root\n/tmp\nimage config config box /bin\n")
        # The variables of a box of another image are not touched.
        self.assertEqual(self.d.sh(self.d.acquire("u", "plain")["box_id"], "echo $A $B"), "config\n")

    def test_layers_lie_over_each_other(self):
        image = Image(base(), layer(("a", DIR, {}), ("a/x", FILE, {"data": b"1"}), ("a/y", FILE, {"data": b"1"}), ("b", FILE, {})),
                      layer(("a/.wh.x", FILE, {}), ("a/y", FILE, {"data": b"2"}), ("b", LINK, {"linkname": "a/y"})), Env=["PATH=/bin"])
        b = self.box(self.layout(image))
        self.assertEqual(self.d.sh(b, "ls /a; cat /b; ls -d /mnt/user-data/workspace; touch /a/z && ls /a"), "y\n2/mnt/user-data/workspace\ny\nz\n")

    def test_a_layout_with_its_tag_and_without(self):
        image = Image(base(), Env=["PATH=/bin"])
        path = image.write_layout(f"{self.dir}/tagged", "v1")
        for ref in (f"oci:{path}", f"oci:{path}:v1"):
            self.assertEqual(self.pulled(ref)["id"], image.digest)
            self.assertEqual(self.d.sh(self.box(ref, ref), "echo hi"), "hi\n")
        self.fails(f"oci:{path}:v2")
        self.fails(f"oci:{path}-not", "No such file")
        self.assertEqual(self.pull("oci:relative/path").status, 400)

    @unittest.skipUnless(IS_ROOT, "takes other uids")
    def test_what_is_for_admins(self):
        path = Image(base()).write_layout(f"{self.dir}/admins")
        ref = self.registry.push(Image(base(), Env=["PATH=/bin"]), "everybody")
        os.chmod(self.d.socket, 0o666)
        for method, where, body, status in (
                ("POST", "/v1/images/pull", {"reference": f"oci:{path}"}, 403), ("POST", "/v1/boxes", {"image": f"oci:{path}"}, 403),
                ("POST", "/v1/images/prune", {}, 403), ("DELETE", "/v1/images/" + "sha256:" + "0" * 64, None, 403),
                ("POST", "/v1/images/pull", {"reference": ref}, 200), ("GET", "/v1/images", None, 200)):
            out = subprocess.run(
                ["setpriv", "--reuid", "2001", "--regid", "2001", "--clear-groups", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                 "--unix-socket", self.d.socket, "-X", method, *(["-d", json.dumps(body)] if body is not None else []),
                 f"http://localhost{where}"], capture_output=True, text=True, timeout=PULL, check=True)
            self.assertEqual(out.stdout, str(status), (method, where))

    def test_an_image_stays_as_long_as_a_box_of_it(self):
        ref = self.registry.push(Image(base(), Env=["PATH=/bin"]), "kept")
        b = self.box(ref)
        got = self.listed()[ref]
        self.assertTrue(got["in_use"])
        r = self.d.request("DELETE", f"/v1/images/{got['id']}")
        self.assertEqual((r.status, r.reason), (409, "invalid_state"))
        self.assertEqual(self.d.post("/v1/images/prune").json, {"removed": [], "freed_bytes": 0})
        # A successor, which never prepared the image, knows it from the box's worker.
        self.d.process.send_signal(signal.SIGUSR2)
        self.assertEqual(self.d.process.wait(BOUND), 0)
        self.d.start()
        self.assertEqual(self.d.post("/v1/images/prune").json, {"removed": [], "freed_bytes": 0})
        self.assertEqual(self.d.sh(b, "echo alive"), "alive\n")
        self.remove_boxes()
        r = self.d.request("DELETE", f"/v1/images/{ref.replace('/', '%2F')}")
        self.assertEqual((r.status, r.json), (200, {"removed": [got["id"]], "freed_bytes": got["size_bytes"]}))
        self.assertEqual(self.d.request("DELETE", f"/v1/images/{got['id']}").status, 404)
        self.assertEqual(self.d.sh(self.box(ref), "echo again"), "again\n")

    def test_a_tag_that_goes_on(self):
        one, two = (Image(base(), layer(("which", FILE, {"data": n})), Env=["PATH=/bin"]) for n in (b"one", b"two"))
        ref = self.registry.push(one, "moves")
        old = self.box(ref, "old")
        self.registry.push(two, "moves")
        self.assertEqual(self.d.sh(self.box(ref, "same"), "cat /which"), "one")  # what is here is taken
        self.assertEqual(self.pulled(ref)["id"], two.digest)
        self.assertEqual(self.d.sh(self.box(ref, "new"), "cat /which"), "two")
        self.assertEqual(self.d.sh(old, "cat /which"), "one")
        self.assertEqual({r: i["id"] for r, i in self.listed().items()}, {ref: two.digest, one.digest: one.digest})
        self.assertEqual(self.d.sh(self.box(one.digest, "digest"), "cat /which"), "one")

    def test_sbxctl(self):
        image = Image(base(), Env=["PATH=/bin"])
        ref = self.registry.push(image, "ctl")
        r = self.d.ctl("image", "pull", ref)
        self.assertEqual((r.returncode, r.stderr), (0, b""), r)
        self.assertEqual(r.stdout.decode().split()[:2], [ref, image.digest])
        r = self.d.ctl("image", "ls")
        self.assertIn(ref, r.stdout.decode())
        self.assertIn(image.digest[:19], r.stdout.decode())
        rows = json.loads(self.d.ctl("--json", "image", "ls").stdout)
        self.assertEqual([i["id"] for i in rows if i["reference"] == ref], [image.digest])
        r = self.d.ctl("run", "-u", "u", "-t", "ctl", "--", "true")
        self.assertEqual(r.returncode, 0, r)
        r = self.d.ctl("image", "rm", ref, "nothing/here")
        self.assertEqual((r.returncode, r.stdout.decode().splitlines()[0]), (125, image.digest))
        self.assertIn(b"image not found: nothing/here", r.stderr)
        r = self.d.ctl("image", "pull", f"{self.registry.name}/none")
        self.assertEqual(r.returncode, 125)
        self.assertIn(b"manifest unknown", r.stderr)
        for usage in (["pull"], ["pull", "a", "b"], ["rm"], ["prune", "x"]):
            self.assertEqual(self.d.ctl("image", *usage).returncode, 2, usage)
        self.pulled(ref)
        r = self.d.ctl("image", "prune")
        self.assertEqual((r.returncode, r.stdout.decode().splitlines()[0]), (0, image.digest))

    def test_a_pull_tells_how_far_it_is(self):
        ref = self.registry.push(Image(base()), "progress")
        r = self.pull(ref, headers={"Accept": "application/x-ndjson"})
        lines = [json.loads(line) for line in r.body.splitlines()]
        stages = [s for n, s in enumerate(x["status"] for x in lines[:-1]) if n == 0 or s != lines[n - 1]["status"]]
        self.assertEqual([s for s in stages if s != "waiting"], ["resolving", "fetching", "unpacking", "keeping"])
        self.assertEqual(lines[-1]["reference"], ref)
        r = self.pull(f"{self.registry.name}/none", headers={"Accept": "application/x-ndjson"})
        self.assertEqual(json.loads(r.body.splitlines()[-1])["error"]["reason"], "image_pull_failed")


class Hostile(ImagesTest):
    """What an image may contain. Row 13 of what users reported is in test_reports."""

    config = "replicas: 20\n"

    def test_device_nodes_are_left_out(self):
        image = Image(base(), layer(("dev", DIR, {}), ("dev/sda", BLOCK, {"devmajor": 8}), ("dev/mem", CHAR, {"devmajor": 1, "devminor": 1}),
                                    ("etc/hidden", CHAR, {"mode": 0}), ("pipe", FIFO, {})), Env=["PATH=/bin"])
        b = self.box(self.layout(image))
        nodes = "for f in /dev/sda /dev/mem /etc/hidden; do test -b $f -o -c $f && echo $f; done"
        self.assertEqual(self.d.sh(b, f"{nodes}; test -p /pipe && echo pipe; echo x > /dev/null"), "pipe\n")
        root = f"{self.d.dir}/state/images/{image.digest.replace(':', '-')}/rootfs"
        found = subprocess.run(["find", root, "(", "-type", "b", "-o", "-type", "c", ")"], capture_output=True, check=True).stdout
        self.assertEqual(found, b"")

    @unittest.skipUnless(IS_ROOT, "an ordinary user's box has one uid")
    def test_set_uid_files_give_nothing(self):
        busybox = slurp(images.BUSYBOX, "rb")
        image = Image(base(), layer(("bin/id", FILE, {"mode": 0o6755, "data": busybox})), User="app", Env=["PATH=/bin"])
        ref = self.layout(image)
        self.assertEqual(self.d.sh(self.box(ref), "id -u; id -g"), "1234\n1234\n")
        # On the host nobody gets at it.
        path = f"{self.d.dir}/state/images"
        for p in (path, f"{path}/{image.digest.replace(':', '-')}"):
            self.assertEqual(os.stat(p).st_mode & 0o777, 0o700)

    def test_a_hundred_thousand_files(self):
        files = [(f"many/{n // 1000}/{n}", FILE, {}) for n in range(100000)]
        dirs = [(f"many/{n}", DIR, {}) for n in range(100)]
        image = Image(base(), layer(("many", DIR, {}), *dirs, *files), Env=["PATH=/bin"])
        ref = self.layout(image)
        r = self.d.post("/v1/images/pull", {"reference": ref}, timeout=PULL * 4)
        self.assertEqual(r.status, 200, r)
        self.assertEqual(self.d.sh(self.box(ref), "find /many -type f | busybox wc -l").strip(), "100000")
        self.remove_boxes()
        self.assertEqual(self.d.request("DELETE", f"/v1/images/{image.digest}", timeout=PULL * 4).status, 200)
        self.assertEqual(self.leftovers(), [])

    def test_what_is_no_image(self):
        good = Image(base())
        for name, spoil in (
                ("index", lambda p: open(f"{p}/index.json", "w").write("{")),
                ("no layer", lambda p: os.unlink(f"{p}/blobs/sha256/{good.layers[0][7:]}")),
                ("layer", lambda p: open(f"{p}/blobs/sha256/{good.layers[0][7:]}", "r+b").write(b"nonsense")),
                ("config", lambda p: open(f"{p}/blobs/sha256/{good.config[7:]}", "w").write('{"config": 5}')),
                ("manifest", lambda p: open(f"{p}/blobs/sha256/{good.digest[7:]}", "w").write("[]"))):
            ref = self.layout(good)
            spoil(ref[4:])
            with self.subTest(name):
                self.fails(ref)
        deep = json.loads(good.manifest)
        deep["annotations"] = {"x": "y" * (5 << 20)}
        ref = self.layout(good)
        with open(f"{ref[4:]}/blobs/sha256/{good.digest[7:]}", "w", encoding="ascii") as f:
            json.dump(deep, f)
        self.fails(ref)
        other = Image(base(), arch="s390x")
        index = json.dumps({"schemaVersion": 2, "manifests": [{**other.about(images.MANIFEST, other.digest),
                                                               "platform": {"os": "linux", "architecture": "s390x"}}]}).encode()
        bad = BadRegistry(other)
        self.addCleanup(bad.stop)
        bad.manifest_as = index
        bad.manifest_kind = "application/vnd.oci.image.index.v1+json"
        self.fails(bad.ref, "not there for linux/")

    def test_too_much_environment(self):
        self.fails(self.layout(Image(base(), Env=[f"V{n}=" + "x" * 1000 for n in range(20)])), "Env has more than")
        self.fails(self.layout(Image(base(), User="x" * 200)), "User has more than")

    def test_names_that_are_none(self):
        for name in ("UPPER", "a//b", "a:b:c", "reg.io/", "x@sha256:12", "-a", "a" * 128, "a b", "oci:", "reg.io:/x", "a/../b"):
            r = self.pull(name)
            self.assertEqual((r.status, r.reason), (400, "invalid_argument"), name)
            r = self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "n", "image": name})
            self.assertEqual((r.status, r.reason), (400, "invalid_argument"), name)


class Faults(ImagesTest):
    """Each leaves a clear error and nothing else, and the next one works."""

    config = "replicas: 20\nhealth_check_timeout: 600\n"
    fault = FAULT
    env = {"SBX_FAULT": ",".join(f"image/image.{p}=kill@{FAULT.path}+{n}" for n, p in enumerate(POINTS))}

    def setUp(self):
        self.image = Image(base(), layer((f"f{os.urandom(4).hex()}", FILE, {"data": os.urandom(300000)})), Env=["PATH=/bin"])
        self.bad = BadRegistry(self.image)
        self.addCleanup(self.bad.stop)

    def works(self):
        self.bad.wrong.clear()
        self.assertEqual(self.d.sh(self.box(self.bad.ref, os.urandom(4).hex()), "echo fine"), "fine\n")

    def test_registry_down(self):
        self.fails("127.0.0.1:1/none", "connection refused")
        port = images.free_port()
        self.fails(f"127.0.0.1:{port}/none", "connection refused")

    def test_no_such_image(self):
        self.bad.manifest_as = b""
        self.fails(self.bad.ref)
        self.bad.manifest_as = self.image.manifest
        self.works()

    def test_a_layer_that_is_another(self):
        self.bad.wrong[self.image.layers[1]] = self.bad.change
        self.fails(self.bad.ref, "igest")
        self.works()

    def test_a_configuration_that_is_another(self):
        self.bad.wrong[self.image.config] = self.bad.change
        self.fails(self.bad.ref, "igest")
        self.works()

    def test_a_manifest_that_is_another(self):
        ref = f"{self.bad.ref}@sha256:{'1' * 64}"
        self.fails(ref, "another manifest")
        self.works()

    def test_a_layer_that_is_cut_off(self):
        self.bad.wrong[self.image.layers[1]] = self.bad.truncate
        self.fails(self.bad.ref)
        self.works()

    def test_a_slow_registry_delays_nobody_else(self):
        self.bad.wrong[self.image.layers[1]] = self.bad.hang
        first = self.d.acquire("u", "other")["box_id"]
        ask = {"user_id": "u", "thread_id": "slow", "image": self.bad.ref, "wait_seconds": 1}
        r = self.d.post("/v1/acquire", ask)
        self.assertEqual((r.status, r.reason), (408, "timeout"), r)
        self.assertIn("still being pulled", r.json["error"]["message"])
        # Boxes come and go meanwhile, more than may boot at once.
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{first}?force=true").status, 204)
        for n in range(6):
            self.assertEqual(self.d.sh(self.d.acquire("u", f"meanwhile{n}")["box_id"], "echo hi"), "hi\n")
        # Whoever asks meanwhile joins; a client that leaves ends nothing.
        c = self.d.connect()
        c.request("POST", "/v1/acquire", json.dumps({**ask, "wait_seconds": PULL}))
        c.close()
        waiting = []
        t = threading.Thread(target=lambda: waiting.append(self.d.post("/v1/acquire", {**ask, "wait_seconds": PULL}, timeout=PULL)))
        t.start()
        self.bad.wrong.clear()
        self.bad.gate.set()
        t.join(PULL)
        r = waiting[0]
        if r.status != 200:  # what hung was cut off: that is what the next one is for
            self.assertEqual(r.reason, "image_pull_failed")
            r = self.d.post("/v1/acquire", {**ask, "wait_seconds": PULL}, timeout=PULL)
        self.assertEqual(r.status, 200, r)

    def test_many_at_once_are_one_pull(self):
        def acquire(n):
            return self.d.post("/v1/acquire", {"user_id": "u", "thread_id": f"join{n}", "image": self.bad.ref, "wait_seconds": PULL},
                               timeout=PULL).status
        self.assertEqual(in_threads(8, acquire), [200] * 8)
        for digest in self.image.layers:
            self.assertEqual(len([p for p in self.bad.asked if p.endswith(digest)]), 1)
        # What is here is not fetched again.
        self.pulled(self.bad.ref)
        for digest in self.image.layers:
            self.assertEqual(len([p for p in self.bad.asked if p.endswith(digest)]), 1)

    def test_killed_anywhere(self):
        """The image process dies at each of its points: an error, then nothing left, then it works."""
        points = len(POINTS)
        with open(self.fault.path, "r+b") as f:
            f.write(b"0" * points)
        for n in range(points):
            with self.subTest(POINTS[n]):
                image = Image(base(), layer(("n", FILE, {"data": bytes([65 + n])})), Env=["PATH=/bin"])
                ref = self.layout(image)
                with open(self.fault.path, "r+b") as f:
                    f.seek(n)
                    f.write(b"1")
                r = self.pull(ref)
                self.assertEqual((r.status, r.reason), (422, "image_pull_failed"), r)
                self.assertIn("killed by signal 9", r.json["error"]["message"])
                self.assertEqual(self.d.sh(self.box(ref, f"k{n}"), "cat /n"), chr(65 + n))
                self.assertEqual(self.leftovers(), [])

    def pullers(self):
        """Processes that have our registry on their command line."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                line = slurp(f"/proc/{pid}/cmdline")
            except OSError:
                continue
            if line.startswith("/usr/bin/skopeo") and self.bad.ref in line:
                found.append(pid)
        return found

    def test_sbxd_dies_in_the_middle(self):
        self.bad.wrong[self.image.layers[1]] = self.bad.hang
        t = threading.Thread(target=lambda: self.d.ctl("image", "pull", self.bad.ref))
        t.start()
        wait_for("the layer to be asked for", lambda: any(p.endswith(self.image.layers[1]) for p in self.bad.asked))
        self.assertNotEqual(self.leftovers(), [])
        self.assertNotEqual(self.pullers(), [])
        self.d.kill()
        t.join(BOUND)
        wait_for("the pull to end with it", lambda: not self.pullers())
        self.d.start()
        wait_for("what it left to go", lambda: self.leftovers() == [])
        self.works()

    def test_the_end_of_sbxd_does_not_wait_for_a_pull(self):
        self.bad.wrong[self.image.layers[1]] = self.bad.hang
        answers = []
        t = threading.Thread(target=lambda: answers.append(self.d.post(
            "/v1/acquire", {"user_id": "u", "thread_id": "end", "image": self.bad.ref, "wait_seconds": PULL}, timeout=PULL)))
        t.start()
        wait_for("the layer to be asked for", lambda: any(p.endswith(self.image.layers[1]) for p in self.bad.asked))
        self.assertEqual(self.d.stop(), 0)
        t.join(BOUND)
        self.assertEqual((answers[0].status, answers[0].reason), (503, "shutting_down"))
        self.d.start()
        wait_for("what it left to go", lambda: self.leftovers() == [])
        self.works()


class Credentials(ImagesTest):
    """A registry that serves one account, and the file that the configuration names: it is read anew for each pull."""

    config = "replicas: 5\n"
    password = "open-sesame-7391"
    accounts = {"reader": (password, "$2b$05$DwktWzy0wHMK7u9h37DEdOiD9k5.5MYfOrTW1Z9G/jY48.b01V1Mu")}

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="sbxd-credentials-")
        cls.file = f"{cls.home}/auth.json"
        cls.config += f"images: {{auth_file: {cls.file}}}\n"
        super().setUpClass()
        cls.registry = Registry(f"{cls.dir}/registry", cls.accounts)
        cls.ref = cls.registry.push(Image(base()), "closed")

    @classmethod
    def tearDownClass(cls):
        try:
            cls.registry.stop()
            super().tearDownClass()
        finally:
            shutil.rmtree(cls.home)

    def setUp(self):
        self.write(self.login(self.password))

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.d.post("/v1/images/prune").status, 200)

    def login(self, password, registry=None):
        return base64.b64encode(f"reader:{password}".encode()).decode(), registry or self.registry.name

    def write(self, login, mode=0o600, owner=-1):
        if os.path.lexists(self.file):
            os.remove(self.file)
        text = login if isinstance(login, str) else json.dumps({"auths": {login[1]: {"auth": login[0]}}})
        with open(self.file, "w", encoding="ascii") as f:
            os.fchmod(f.fileno(), mode)
            os.fchown(f.fileno(), owner, owner)
            f.write(text)

    def secrets(self):
        return [p.encode() for p in (self.password, self.login(self.password)[0])]

    def test_right_ones(self):
        """They come nowhere: not to a log, not into the store, not into a box, nor to who asks for the configuration."""
        self.pulled(self.ref)
        box = self.box(self.ref)
        told = [self.d.sh(box, "env; cat /auth.json 2>&1 || true"), self.d.log(), self.d.get("/v1/config").body.decode(),
                self.d.get("/v1/images").body.decode(), self.d.get("/metrics").body.decode()]
        for secret in self.secrets():
            self.assertEqual([t for t in told if secret.decode() in t], [])
            for path, _, names in os.walk(self.d.dir):
                for name in names:
                    if os.path.isfile(f"{path}/{name}") and not os.path.islink(f"{path}/{name}"):
                        self.assertNotIn(secret, slurp(f"{path}/{name}", "rb"), f"{path}/{name}")

    def test_wrong_ones(self):
        for login in (self.login("wrong-password-1"), self.login(self.password, "127.0.0.1:1"), "{}"):
            with self.subTest(login=login):
                self.write(login)
                r = self.fails(self.ref, "unauthorized")
                self.assertEqual(r.json["error"]["code"], "image_pull_failed")
                self.assertNotIn("wrong-password-1", self.d.log() + str(r.json))

    @unittest.skipUnless(IS_ROOT, "needs another owner")
    def test_a_file_that_is_not_to_be_taken(self):
        """What is wrong with it is said, with its name and nothing that is in it."""
        right = self.login(self.password)
        for say, words in ((lambda: self.write(right, 0o640), ("mode 0640", "chmod 600")),
                           (lambda: self.write(right, 0o604), ("mode 0604", "chmod 600")),
                           (lambda: self.write(right, owner=1234), ("belongs to uid 1234",)),
                           (lambda: self.write(self.password), ("no JSON object",)),
                           (lambda: self.write(""), ("no JSON object",)),
                           (lambda: self.write("{" + " " * 65536 + "}"), ("cannot be read",)),
                           (lambda: os.remove(self.file), ("cannot be opened",)),
                           (lambda: (os.remove(self.file), os.mkfifo(self.file, 0o600)), ("must be a regular file",))):
            with self.subTest(words=words):
                if not os.path.lexists(self.file):
                    self.write(right)
                say()
                self.fails(self.ref, f"images.auth_file {self.file}: ", *words)
        self.assertNotIn(self.password, self.d.log())

    def test_a_layout_needs_none(self):
        os.remove(self.file)
        self.pulled(self.layout(Image(base())))


class Timeout(ImagesTest):
    config = "replicas: 20\nimages: {pull_timeout: 2}\n"

    def test_a_pull_has_a_bound(self):
        image = Image(base(), Env=["PATH=/bin"])
        bad = BadRegistry(image)
        self.addCleanup(bad.stop)
        bad.wrong[image.layers[0]] = bad.hang
        self.fails(bad.ref, "did not end in time")


class Room(ImagesTest):
    config = "replicas: 20\nimages: {cache_mib: 10}\n"

    def image(self, n, mib=2):
        return Image(base(), layer(("fill", FILE, {"data": os.urandom(mib << 20)}), ("n", FILE, {"data": str(n).encode()})), Env=["PATH=/bin"])

    def test_larger_than_the_cache(self):
        self.fails(self.layout(self.image(0, 12)), "cache_mib")
        zeros = Image(base(), layer(("zeros", FILE, {"data": bytes(64 << 20)})))  # 64 KiB packed
        self.fails(self.layout(zeros), "cache_mib")
        sparse = Image(base(), *(layer((f"z{n}", FILE, {"data": bytes(8 << 20)})) for n in range(4)))
        self.fails(self.layout(sparse), "cache_mib")

    def test_boxes_keep_theirs_and_a_full_cache_says_so(self):
        kept = [self.layout(self.image(n)) for n in range(3)]
        boxes = [self.box(ref, f"kept{n}") for n, ref in enumerate(kept[:2])]
        self.fails(self.layout(self.image(9, 5)), "no room", status=507)
        self.assertEqual([self.d.sh(b, "cat /n") for b in boxes], ["0", "1"])
        self.remove_boxes()
        self.assertEqual(self.d.sh(self.box(self.layout(self.image(9, 5))), "cat /n"), "9")


@unittest.skipUnless(IS_ROOT, "mounts a small disk")
class NoSpace(ImagesTest):
    config = "replicas: 20\n"

    def test_a_full_disk(self):
        state = f"{self.d.dir}/state"
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=0700", "small", state], check=True)
        try:
            ref = self.layout(Image(base(), layer(("fill", FILE, {"data": os.urandom(8 << 20)}))))
            self.fails(ref, "no space", status=507)
            self.pulled(self.layout(Image(base())))
            self.assertEqual(self.d.post("/v1/images/prune").status, 200)
        finally:
            subprocess.run(["umount", state], check=True)


class Configured(unittest.TestCase):
    """The image of the configuration is pulled before anybody is served."""

    def test_of_a_layout_and_of_nowhere(self):
        work = tempfile.mkdtemp(prefix="sbxd-images-")
        self.addCleanup(shutil.rmtree, work)
        path = Image(base(), Env=["PATH=/bin"], WorkingDir="/etc").write_layout(f"{work}/layout")
        d = Daemon(f"image: 'oci:{path}'\nprewarm: 1\nreplicas: 3\n")
        try:
            self.assertEqual(d.sh(d.acquire()["box_id"], "pwd"), "/etc\n")
            self.assertEqual(d.post("/v1/images/prune").json["removed"], [])
            self.assertEqual(d.stop(), 0, d.log())
            shutil.rmtree(path)  # it is in the store
            d.start()
            self.assertEqual(d.sh(d.acquire()["box_id"], "pwd"), "/etc\n")
        finally:
            self.assertEqual(d.stop(), 0)
            self.assertEqual(d.remains(), [])
            d.remove()
        d = Daemon("image: 127.0.0.1:1/none\n", wait=False)
        try:
            self.assertEqual(d.process.wait(BOUND), 1)
            self.assertIn("connection refused", d.log())
            self.assertEqual(d.remains(), [])
        finally:
            d.remove()


if __name__ == "__main__":
    unittest.main()

"""Templates seen from outside: listed, made ahead of time, removed; stale and damaged ones; and who dies while making one."""

import json
import os
import signal
import shutil
import subprocess
import tempfile
import threading
import unittest

import micro_vm
from harness import IS_ROOT, DaemonTest, Fault, children_map, in_threads, proc_says, wait_for
from templates import BUILD, TemplatesTest, busybox_root, machines


@micro_vm.needs_vm
class Templates(TemplatesTest):
    def test_made_ahead_of_time_used_and_removed(self):
        self.assertEqual(self.listed(), [])
        t = self.build()
        self.assertEqual((t["built"], t["image"], t["state"], t["why"], t["boxes"]), (True, micro_vm.ROOT_DIR, "current", None, 0))
        self.assertEqual((t["memory_mib"], t["cpus"], t["accelerator"]), (96 + 32 + 64, 1, "tcg"))
        self.assertIn("cloud-amd64", t["kernel_release"])
        self.assertGreater(t["size_bytes"], 1 << 20)
        self.assertLess(t["size_bytes"], t["memory_mib"] << 20, "pages of zeros take no disk")
        again = self.build()
        self.assertEqual((again["built"], again["key"], again["made_at"]), (False, t["key"], t["made_at"]))
        made = os.stat(self.path(f"template-{t['key']}/memory")).st_mtime_ns
        box = self.d.acquire("u", "ahead")["box_id"]
        self.assertEqual(os.stat(self.path(f"template-{t['key']}/memory")).st_mtime_ns, made, "the box has begun with it")
        other = self.d.acquire("u", "other")["box_id"]
        self.assertEqual([(r["key"], r["boxes"]) for r in self.listed()], [(t["key"], 2)])
        r = self.remove(t["key"])
        self.assertEqual((r.status, r.reason), (409, "invalid_state"))
        self.assertIn("in use", r.json["error"]["message"])
        for b in (box, other):
            self.assertEqual(self.d.sh(b, "echo up"), "up\n")
        self.end_boxes()
        self.assertEqual(self.row(t["key"])["boxes"], 0)
        r = self.remove(t["key"])
        self.assertEqual((r.status, r.json["removed"]), (200, [t["key"]]))
        self.assertGreater(r.json["freed_bytes"], 1 << 20)
        for key in (t["key"], "0" * 32, "nonsense", "..%2f..%2fimages"):
            self.assertEqual(self.remove(key).status, 404, key)

    def test_how_far_it_is(self):
        r = self.d.post("/v1/templates", {}, headers={"Accept": "application/x-ndjson"}, timeout=BUILD)
        stages, last = self.stages(r)
        self.assertEqual((last["state"], last["built"]), ("current", True), r)
        self.assertEqual([s for n, s in enumerate(stages) if stages.index(s) == n],
                         [s for s in ("preparing", "waiting", "booting", "warming", "writing") if s in stages], stages)
        self.assertLessEqual({"booting", "writing"}, set(stages))

    def test_wanted_by_many_at_once_it_is_made_once(self):
        got = in_threads(3, lambda i: self.build())
        self.assertEqual([t["key"] for t in got], [got[0]["key"]] * 3)
        self.assertEqual(sorted(t["built"] for t in got), [False, False, True])
        self.assertEqual(len(self.store()), 1)

    def test_an_acquire_meanwhile_begins_with_the_same(self):
        def one(i):
            return self.build()["key"] if i else self.d.acquire("u", "meanwhile", wait_seconds=BUILD)["box_id"]

        box, key = in_threads(2, one)
        self.assertEqual(self.d.sh(box, "echo up"), "up\n")
        self.assertEqual([(t["key"], t["boxes"]) for t in self.listed()], [(key, 1)])

    def test_what_cannot_be_asked_for(self):
        for body, status in (({"memory_mib": 1}, 400), ({"cpus": 0}, 400), ({"image": ""}, 400), ({"size": 3}, 400),
                             ({"image": "/nowhere"}, 422), ({"image": "host"}, 422)):
            self.build(status, **body)

    @unittest.skipUnless(IS_ROOT, "takes other uids")
    def test_what_is_for_admins(self):
        os.chmod(self.d.socket, 0o666)
        for method, where, body, status in (("GET", "/v1/templates", None, 200), ("DELETE", "/v1/templates/" + "0" * 32, None, 403),
                                            ("POST", "/v1/templates", {"image": "/usr"}, 403)):
            out = subprocess.run(
                ["setpriv", "--reuid", "2001", "--regid", "2001", "--clear-groups", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
                 "--unix-socket", self.d.socket, "-X", method, *(["-d", json.dumps(body)] if body else []), f"http://localhost{where}"],
                capture_output=True, text=True, timeout=BUILD, check=True)
            self.assertEqual(out.stdout, str(status), (method, where))

    def test_damaged_it_is_told_and_made_anew(self):
        key = self.build()["key"]
        with open(self.path(f"template-{key}/state"), "r+b") as f:
            f.seek(1000)
            f.write(b"\xff" * 64)
        t = self.row(key)
        self.assertEqual((t["state"], t["image"]), ("damaged", micro_vm.ROOT_DIR))
        self.assertIn("damaged", t["why"])
        self.d.acquire("u", "damaged")
        self.assertEqual((self.row(key)["state"], self.row(key)["boxes"]), ("current", 1))
        self.end_boxes()
        os.truncate(self.path(f"template-{key}/about"), 10)
        self.assertEqual((self.row(key)["state"], self.row(key)["image"]), ("damaged", None))
        self.assertTrue(self.remove(key).status == 200)

    def test_a_disk_that_is_gone_is_made_anew(self):
        self.build()
        for key in self.store("image"):
            os.unlink(self.path(f"image-{key}"))
        box = self.d.acquire("u", "disk")["box_id"]
        self.assertEqual(self.d.sh(box, "echo up"), "up\n")
        self.assertEqual(len(self.store()), 1, "it is the same disk, so the template fits")

    def test_sbxctl(self):
        r = self.d.ctl("template", "build")
        self.assertEqual(r.returncode, 0, r)
        key = r.stdout.decode().split()[0]
        self.assertIn(b"built", r.stdout)
        self.assertIn(b"was there already", self.d.ctl("template", "build", micro_vm.ROOT_DIR).stdout)
        self.assertEqual(json.loads(self.d.ctl("--json", "template", "build", "-m", "96", "--cpus", "1", "--disk", "32").stdout)["key"], key)
        rows = json.loads(self.d.ctl("--json", "template", "ls").stdout)
        self.assertEqual([(t["key"], t["state"], t["boxes"]) for t in rows], [(key, "current", 0)])
        shown = self.d.ctl("template", "ls").stdout.decode().splitlines()
        self.assertEqual(shown[0].split(), ["KEY", "IMAGE", "MEMORY", "CPUS", "ACCEL", "SIZE", "BOXES", "MADE", "USED", "STATE"])
        self.assertEqual((shown[1].split()[0], shown[1].split()[2:5], shown[1].split()[-1]), (key, ["192M", "1", "tcg"], "current"))
        offered = self.d.ctl("__complete", "template", "rm", key[:4]).stdout.decode()
        self.assertEqual(offered.split("\t")[0], key)
        self.assertIn(micro_vm.ROOT_DIR, self.d.ctl("__complete", "template", "build", "").stdout.decode())
        self.d.acquire("u", "ctl")
        r = self.d.ctl("template", "rm", key)
        self.assertEqual(r.returncode, 125)
        self.assertIn(b"in use", r.stderr)
        self.end_boxes()
        r = self.d.ctl("template", "rm", key, "0" * 32)
        self.assertEqual((r.returncode, r.stdout.decode().splitlines()[0]), (125, key))
        self.assertIn(b"template not found", r.stderr)
        for usage in (("rm",), ("ls", "x"), ("build", "a", "b"), ("build", "-m", "x"), ("frob",)):
            self.assertEqual(self.d.ctl("template", *usage).returncode, 2, usage)
        r = self.d.ctl("template", "build", "/nowhere")
        self.assertEqual(r.returncode, 125)
        self.assertIn(b"image /nowhere: No such file", r.stderr)


@micro_vm.needs_vm
class Stale(TemplatesTest):
    """What a template was made of is another thing today."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="sbxd-templates-")
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)

    def test_the_image_changes(self):
        root = busybox_root(f"{self.dir}/root")
        key = self.build(image=root)["key"]
        with open(f"{root}/etc/new", "w", encoding="ascii") as f:
            f.write("new")
        t = self.row(key)
        self.assertEqual((t["state"], t["why"]), ("stale", "the image changed"))
        shutil.rmtree(root)
        self.assertEqual(self.row(key)["state"], "stale")
        self.assertIn("No such file", self.row(key)["why"])

    def test_the_processor_changes(self):
        key = self.build()["key"]
        self.assertEqual(self.d.stop(), 0)
        self.d.write_config(self.config + "  cpu: max,la57=off,avx=off\n")
        try:
            self.d.start()
            t = self.row(key)
            self.assertEqual((t["state"], t["why"]), ("stale", "the processor model or the accelerator changed"))
            new = self.build()
            self.assertTrue(new["built"])
            self.assertEqual({t["key"]: t["state"] for t in self.listed()}, {key: "stale", new["key"]: "current"})
            self.assertEqual(new["cpu_model"], "max,la57=off,avx=off")
        finally:
            self.assertEqual(self.d.stop(), 0)
            self.d.write_config(self.config)
            self.d.start()
        self.assertEqual(self.row(key)["state"], "current")


@micro_vm.needs_vm
class Looked(TemplatesTest):
    """Who only asks for the list has no program of the host run for it."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="sbxd-templates-")
        os.chmod(cls.dir, 0o755)
        os.mkdir(f"{cls.dir}/bin")
        cls.qemu()
        cls.config = micro_vm.config(qemu=f"  binary: {cls.dir}/bin/qemu\n")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.dir)

    @classmethod
    def qemu(cls, more=""):
        with open(f"{cls.dir}/bin/new", "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\n{more}[ $1 != --version ] || echo >>{cls.dir}/asked\nexec {shutil.which('qemu-system-x86_64')} \"$@\"\n")
        os.chmod(f.name, 0o755)
        os.rename(f.name, f"{cls.dir}/bin/qemu")

    def test_qemu_is_not_asked_for_its_version(self):
        key = self.build()["key"]
        asked = os.stat(f"{self.dir}/asked").st_size
        self.assertGreater(asked, 0)
        for _ in range(3):
            self.assertEqual(self.row(key)["state"], "current")
        self.qemu("# another one\n")
        self.assertEqual((self.row(key)["state"], self.row(key)["why"]), ("stale", "QEMU changed"))
        self.assertEqual(os.stat(f"{self.dir}/asked").st_size, asked)


MAKING = ("driver.qemu.template.booted", "driver.qemu.template.memory", "driver.qemu.template.noted", "image.template.built")
REMOVING = "driver.qemu.store.out"
FAULTS = {point: Fault("templates-" + point) for point in (*MAKING, REMOVING)}


@micro_vm.needs_vm
class Killed(TemplatesTest):
    """Whoever makes a template dies: who asked is told, nothing is left, and the next one is made."""

    env = {"SBX_FAULT": ",".join(f"image/{point}=kill@{fault.path}" for point, fault in FAULTS.items())}

    def clean(self):
        wait_for("what it started to be gone", lambda: not machines(self.d) and self.half_made() == [])

    def test_at_every_point(self):
        for point in MAKING:
            FAULTS[point].arm()
            error = self.build(502)["error"]
            self.assertTrue(FAULTS[point].hit(), point)
            self.assertIn("no template of", error["message"])
            self.assertIn("killed by signal 9", error["message"])
            self.clean()
        self.assertEqual(self.build()["state"], "current")

    def test_while_it_removes_one(self):
        key = self.build()["key"]
        FAULTS[REMOVING].arm()
        self.assertEqual(self.remove(key).status, 500)
        self.assertTrue(FAULTS[REMOVING].hit())
        self.assertEqual(self.listed(), [])
        self.clean()

    def builder(self):
        """The process that makes a template, once its machine is there."""
        return machines(self.d) and next(
            (pid for pid in children_map().get(self.d.process.pid, []) if proc_says(pid, "cmdline", "^sbx-worker\0image\0")), None)

    def test_at_any_time(self):
        got = []
        t = threading.Thread(target=lambda: got.append(self.d.post("/v1/templates", {}, timeout=BUILD)))
        t.start()
        os.kill(wait_for("its QEMU", self.builder, BUILD), signal.SIGKILL)
        t.join(BUILD)
        self.assertEqual((got[0].status, got[0].reason), (502, "boot_failed"))
        self.clean()
        self.assertTrue(self.build()["built"])

    def test_who_watches_over_the_builder_has_nothing_of_its_own(self):
        t = threading.Thread(target=lambda: self.d.post("/v1/templates", {}, timeout=BUILD))
        t.start()
        builder = wait_for("its QEMU", self.builder, BUILD)
        guard = next(pid for pid in children_map()[builder] if proc_says(pid, "cmdline", "^sbx-worker\0image\0"))
        wait_for("no descriptor but its standard ones and sbxd's", lambda: {3} <= {int(fd) for fd in os.listdir(f"/proc/{guard}/fd")} <= {0, 1, 2, 3})
        os.kill(builder, signal.SIGKILL)
        t.join(BUILD)
        self.clean()

    def test_with_sbxd(self):
        t = threading.Thread(target=lambda: self.assertRaises(OSError, self.d.post, "/v1/templates", {}, timeout=BUILD))
        t.start()
        wait_for("its QEMU", self.builder, BUILD)
        self.d.kill()
        t.join(BUILD)
        wait_for("what it started to be gone", lambda: not machines(self.d))
        self.d.start()
        self.clean()
        self.assertEqual(self.listed(), [])

    def test_sbxd_is_asked_to_end_meanwhile(self):
        t = threading.Thread(target=lambda: self.d.request("POST", "/v1/templates", {}, timeout=BUILD))
        t.start()
        wait_for("its QEMU", self.builder, BUILD)
        self.assertEqual(self.d.stop(), 0)
        t.join(BUILD)
        self.assertEqual((machines(self.d), self.half_made()), ([], []))
        self.d.start()


class OfNamespaces(DaemonTest):
    """A driver that makes none."""

    def test_it_says_so(self):
        self.assertEqual(self.d.get("/v1/templates").json, {"templates": []})
        r = self.d.post("/v1/templates", {})
        self.assertEqual((r.status, r.reason), (501, "unsupported"))
        self.assertIn("driver namespace makes no templates", r.json["error"]["message"])
        self.assertEqual(self.d.ctl("template", "ls").returncode, 0)


@micro_vm.needs_vm
class Off(DaemonTest):
    config = micro_vm.config("replicas: 2\n", "  templates: false\n")

    def test_it_says_so(self):
        r = self.d.post("/v1/templates", {}, timeout=BUILD)
        self.assertEqual((r.status, r.reason), (501, "unsupported"))
        self.assertIn("qemu.templates is false", r.json["error"]["message"])


if __name__ == "__main__":
    unittest.main()

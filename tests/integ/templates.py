"""What tests of templates share: asking for them, and looking at what lies in the store."""

import glob
import json
import os
import tarfile

import images
import micro_vm
from harness import BOUND, DaemonTest, slurp, wait_for

BUILD = BOUND * 8  # seconds for a template: an emulated machine boots on a busy host


def busybox_root(path):
    """A directory that holds a root: busybox, two accounts."""
    os.makedirs(path)
    with open(path + ".tar", "wb") as f:
        f.write(images.base())
    with tarfile.open(path + ".tar") as t:
        t.extractall(path)
    os.unlink(path + ".tar")
    return path


def machines(d):
    """QEMU processes that have something of the daemon's store open: those of boxes, and one that becomes a template."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if slurp(f"/proc/{pid}/comm").startswith("qemu-system") and any(
                    os.readlink(f"/proc/{pid}/fd/{fd}").startswith(d.dir) for fd in os.listdir(f"/proc/{pid}/fd")):
                found.append(int(pid))
        except OSError:
            pass
    return found


class TemplatesTest(DaemonTest):
    """One daemon with micro-VMs; after each test there is no box, no template and nothing half-made."""

    config = micro_vm.config("replicas: 4\n")

    def tearDown(self):
        self.end_boxes()
        for t in self.listed():
            self.assertEqual(self.remove(t["key"]).status, 200)
        self.assertEqual(self.store(), [])
        self.assertEqual(self.half_made(), [])

    def end_boxes(self):
        for b in self.d.get("/v1/boxes").json["boxes"]:
            self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")
        wait_for("the boxes to be gone", lambda: self.d.get("/v1/boxes").json["boxes"] == [] and not machines(self.d))

    def build(self, status=200, **size):
        r = self.d.post("/v1/templates", size, timeout=BUILD)
        self.assertEqual(r.status, status, f"{r}\n{self.d.log()[-2000:]}")
        return r.json

    def listed(self):
        return self.d.get("/v1/templates").json["templates"]

    def row(self, key):
        return next(t for t in self.listed() if t["key"] == key)

    def remove(self, key):
        return self.d.request("DELETE", f"/v1/templates/{key}")

    def path(self, name=""):
        return f"{self.d.dir}/state/qemu/{name}"

    def store(self, kind="template"):
        """Keys of whole entries."""
        return sorted(n.split("-")[1] for n in os.listdir(self.path()) if n.startswith(kind + "-") and "." not in n)

    def half_made(self):
        return glob.glob(self.path("*.new")) + glob.glob(self.path("*.lock"))

    def stages(self, reply):
        lines = [json.loads(line) for line in reply.body.splitlines()]
        return [line["status"] for line in lines[:-1]], lines[-1]

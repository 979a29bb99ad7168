"""images.cache_mib holds for disks and templates, too: what no machine has goes, and what one has stays."""

import os
import shutil
import tempfile
import unittest

import images
import micro_vm
from harness import Fault, wait_for
from templates import BUILD, TemplatesTest, busybox_root

MIB = 1 << 20
BOOTED = Fault("room-booted")


def acquire(d, thread):
    r = d.post("/v1/acquire", {"user_id": "u", "thread_id": thread, "wait_seconds": BUILD}, timeout=BUILD)
    assert r.status == 200, r
    return r.json["box_id"]


@micro_vm.needs_vm
class Room(TemplatesTest):
    env = {"SBX_FAULT": f"worker/driver.qemu.template.booted=pass@{BOOTED.path}"}

    def limit(self, mib):
        """The same store under another bound."""
        self.assertEqual(self.d.stop(), 0)
        self.d.write_config(self.config + (f"images:\n  cache_mib: {mib}\n" if mib else ""))
        self.d.start()

    def used(self):
        """MiB of all disks and templates."""
        total = 0
        for base, _, files in os.walk(self.path()):
            total += sum(os.stat(f"{base}/{f}").st_blocks * 512 for f in files
                         if os.path.basename(base).startswith("template-") or f.startswith("image-"))
        return total / MIB

    def test_templates(self):
        first = self.build()
        size = self.used()
        disk = size - first["size_bytes"] / MIB
        more = first["size_bytes"] / MIB
        self.limit(int(size + more / 2))  # one template, and not two
        second = self.build(memory_mib=128)
        self.assertEqual(self.store(), [second["key"]], "the first made room")
        self.assertLessEqual(self.used(), size + more / 2)

        box = self.d.post("/v1/boxes", {"memory_mib": 128, "disk_size_gb": 1}, timeout=BUILD)
        self.assertEqual(box.status, 201, box)
        held = [t["key"] for t in self.listed() if t["boxes"]]
        self.assertEqual(len(held), 1)
        error = self.build(507, memory_mib=160)["error"]
        self.assertIn("no room in images.cache_mib", error["message"])
        self.assertEqual(self.store(), held, "it has a machine, and stays")
        self.assertEqual(self.half_made(), [])

        # A box does not depend on it; only the first one finds out that there is no room.
        for thread, made in (("first", True), ("second", False)):
            BOOTED.arm()
            b = acquire(self.d, thread)
            self.assertEqual(BOOTED.hit(), made, thread)
            self.assertEqual(self.d.sh(b, "echo up"), "up\n")
        self.assertEqual(self.d.sh(box.json["box_id"], "echo up"), "up\n")
        self.assertEqual(self.d.log().count("for want of room for its template"), 2)
        self.assertEqual(self.store(), held)

        # Whose machine is gone makes room, also when the bound is another one at a start.
        self.end_boxes()
        self.limit(int(disk + 1))
        wait_for("what is past the bound to go", lambda: self.store() == [])
        self.limit(0)

    def test_a_pull_has_them_go_first(self):
        root = busybox_root(tempfile.mkdtemp(prefix="sbxd-room-") + "/root")
        self.addCleanup(shutil.rmtree, os.path.dirname(root))
        layout = os.path.dirname(root) + "/layout"
        images.Image(images.base()).write_layout(layout)
        key = self.build(image=root)["key"]
        disks = self.store("image")
        self.limit(int(self.used() + 1))
        self.assertEqual(self.store(), [key])
        r = self.d.post("/v1/images/pull", {"reference": f"oci:{layout}"}, timeout=BUILD)
        self.assertEqual(r.status, 200, r)
        self.assertLess(len(self.store() + self.store("image")), len([key] + disks))
        self.assertIn(f"oci:{layout}", {i["reference"].removesuffix(":latest") for i in self.d.get("/v1/images").json["images"]})
        self.assertEqual(self.d.request("POST", "/v1/images/prune", {}).status, 200)
        self.limit(0)


@micro_vm.needs_vm
class Went(TemplatesTest):
    """A disk that nobody had, and that made room, is made anew before the next box of its image, and not while that boots."""

    env = {"SBX_FAULT": "worker/driver.qemu.prepare.image=hang"}

    def went(self):
        """As when another service with this store needs the room."""
        disks = self.store("image")
        self.assertNotEqual(disks, [])
        for key in disks:
            os.unlink(self.path("image-" + key))
        return disks

    def test_a_box(self):
        acquire(self.d, "first")
        self.end_boxes()
        disks = self.went()
        self.assertEqual(self.d.sh(acquire(self.d, "next"), "echo up"), "up\n")
        self.assertEqual(self.store("image"), disks)
        self.assertIn("is gone", self.d.log())
        self.assertEqual(self.d.pool()["counters"]["boot_failures"], 0)

    def test_a_template(self):
        key = self.build()["key"]
        self.assertEqual(self.remove(key).status, 200)
        disks = self.went()
        self.assertEqual(self.build()["key"], key)
        self.assertEqual(self.store("image"), disks)


if __name__ == "__main__":
    unittest.main()

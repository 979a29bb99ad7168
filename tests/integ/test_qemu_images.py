"""Images of the store as machines: what an image may contain, and registries that fail the first machine of theirs."""

import os
import unittest

import images
import micro_vm
from harness import BOUND, slurp
from images import BLOCK, CHAR, DIR, FIFO, FILE, LINK, BadRegistry, Image, ImagesTest, base, layer

MANY = 100000


@micro_vm.needs_vm
class Hostile(ImagesTest):
    config = micro_vm.config("replicas: 2\n").replace("memory_mib: 96", "memory_mib: 192")

    def test_row_13_a_machine_of_a_hostile_image_has_nothing_of_the_host(self):
        """Links that lead out, device nodes, set-uid programs, and a hundred thousand files: a machine as any other."""
        victim = f"{self.dir}/victim"
        os.makedirs(victim)
        with open(f"{victim}/kept", "w", encoding="ascii") as f:
            f.write("the host's")
        busybox = slurp(images.BUSYBOX, "rb")
        up = "../" * 40
        image = Image(
            base(),
            layer(("abs", LINK, {"linkname": victim}), ("rel", LINK, {"linkname": up + victim[1:]}), ("root", LINK, {"linkname": "/"}),
                  ("loop", LINK, {"linkname": "loop"}), ("read", LINK, {"linkname": f"{victim}/kept"})),
            layer(("abs/new", FILE, {"data": b"in"}), ("rel/kept", FILE, {"data": b"in"}), ("root/etc/rooted", FILE, {"data": b"in"})),
            layer(("dev", DIR, {}), ("dev/sda", BLOCK, {"devmajor": 8}), ("etc/mem", CHAR, {"devmajor": 1, "devminor": 1}),
                  ("etc/disk", BLOCK, {"devmajor": 254}), ("pipe", FIFO, {})),
            layer(("bin/busybox-setuid", FILE, {"mode": 0o6755, "data": busybox})),
            layer(("many", DIR, {}), *((f"many/{n}", DIR, {}) for n in range(100)),
                  *((f"many/{n // 1000}/{n}", FILE, {}) for n in range(MANY))),
            User="app", Env=["PATH=/bin"])
        ref = self.layout(image)
        r = self.d.post("/v1/images/pull", {"reference": ref}, timeout=images.PULL * 4)
        self.assertEqual(r.status, 200, r)
        self.assertEqual((os.listdir(victim), slurp(f"{victim}/kept")), (["kept"], "the host's"))
        r = self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "t", "image": ref}, timeout=images.PULL * 2)  # its disk is made
        self.assertEqual((r.status, r.json.get("isolation")), (200, "microvm-tcg"), r)
        box = r.json["box_id"]

        def says(command, **more):
            return self.d.run(box, command, timeout=BOUND * 4, **more)["stdout"].split()

        self.assertEqual(says("cat /read /rel/kept /etc/rooted"), ["ininin"])  # what the layers have put at the links' ends
        self.assertEqual(says("for f in /dev/sda /etc/mem /etc/disk; do test -b $f -o -c $f && echo $f; done; test -p /pipe && echo pipe"), ["pipe"])
        self.assertEqual(says("busybox-setuid id -u; busybox-setuid id -g"), ["1234"] * 2)
        self.assertEqual(says("find /many -type f | busybox wc -l"), [str(MANY)])
        self.assertEqual(says("cat loop; echo $?"), ["1"])


@micro_vm.needs_vm
class Registry(ImagesTest):
    """Whoever waits for a machine is told within a bound what is wrong, nothing is left, and the next one gets it."""

    config = micro_vm.config("replicas: 2\nimages: {pull_timeout: 20}\n")

    def setUp(self):
        self.image = Image(base(), layer((f"f{os.urandom(4).hex()}", FILE, {"data": os.urandom(300000)})), Env=["PATH=/bin"])
        self.registry = BadRegistry(self.image)
        self.addCleanup(self.registry.stop)

    def refused(self, status, reason, *words, reference=None, **ask):
        r = self.d.post("/v1/acquire", {"user_id": "u", "thread_id": "t", "image": reference or self.registry.ref,
                                        "wait_seconds": images.PULL, **ask}, timeout=images.PULL)
        self.assertEqual((r.status, r.reason), (status, reason), r)
        for word in words:
            self.assertIn(word, r.json["error"]["message"])

    def nothing_is_left_and_the_next_one_works(self):
        self.assertEqual(self.leftovers(), [])
        self.assertEqual(self.d.pool()["boxes"], 0)
        self.registry.wrong.clear()
        box = self.box(self.registry.ref)
        self.assertEqual((self.d.inspect(box)["isolation"], self.d.sh(box, "echo up")), ("microvm-tcg", "up\n"))

    def test_the_registry_is_down(self):
        self.refused(422, "image_pull_failed", "connection refused", reference=f"127.0.0.1:{images.free_port()}/none")
        self.nothing_is_left_and_the_next_one_works()

    def test_a_layer_has_another_digest(self):
        self.registry.wrong[self.image.layers[1]] = self.registry.change
        self.refused(422, "image_pull_failed", "igest")
        self.nothing_is_left_and_the_next_one_works()

    def test_a_layer_is_cut_off(self):
        self.registry.wrong[self.image.layers[1]] = self.registry.truncate
        self.refused(422, "image_pull_failed")
        self.nothing_is_left_and_the_next_one_works()

    def test_the_registry_is_slow(self):
        """Who waits shortly is told that it goes on; who waits, that it did not end."""
        self.registry.wrong[self.image.layers[1]] = self.registry.hang
        self.refused(408, "timeout", "still being pulled", wait_seconds=1)
        self.refused(422, "image_pull_failed", "did not end in time")
        self.nothing_is_left_and_the_next_one_works()


if __name__ == "__main__":
    unittest.main()

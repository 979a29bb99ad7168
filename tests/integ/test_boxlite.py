"""Boxes of BoxLite: the whole service over the double of its library, on this host and with a server."""

import base64
import io
import os
import signal
import tarfile
import unittest

from boxlite import BoxliteTest
from harness import open_fds, output_bytes, slurp, start_time, wait_for


def ticks(pid):
    """Processor time that it has used, in clock ticks."""
    text = slurp(f"/proc/{pid}/stat")
    rest = text[text.rindex(")") + 2:].split()
    return int(rest[11]) + int(rest[12])


class Serves:
    """What every box does, wherever it is."""

    isolation = "microvm-kvm"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = cls.d.acquire("serves", "t")["box_id"]

    def test_it_says_what_it_is(self):
        box = self.d.inspect(self.box)
        self.assertEqual((box["driver"], box["isolation"], box["image"]), ("boxlite", self.isolation, "debian:12"))

    def test_commands(self):
        r = self.d.run(self.box, "cat; echo err >&2; exit 7", stdin="in\n", env={"A": "b"})
        self.assertEqual((r["exit_code"], r["stdout"], r["stderr"]), (7, "in\n", "err\n"))
        r = self.d.run(self.box, "kill -TERM $$")
        self.assertEqual((r["exit_code"], r["signal"]), (None, 15))
        r = self.d.post(f"/v1/boxes/{self.box}/run", {"argv": ["no-such-program"]})
        self.assertEqual((r.status, r.json["error"]["code"]), (422, "execution_failed"))
        r = self.d.run(self.box, "sleep 1000", timeout_seconds=0.2)
        self.assertTrue(r["timed_out"])
        self.assertEqual(self.d.sh(self.box, "pgrep -x sleep || echo none"), "none\n")

    def test_output_is_bytes(self):
        """The library carries text only."""
        data = os.urandom(1 << 20)
        r = self.d.run(self.box, "cat", stdin_base64=base64.b64encode(data).decode())
        self.assertEqual(output_bytes(r), data)
        r = self.d.run(self.box, "head -c 8388608 /dev/zero | tr '\\0' a")
        self.assertEqual((len(r["stdout"]), set(r["stdout"])), (8388608, {"a"}))

    def test_executions(self):
        path = f"/v1/boxes/{self.box}/exec"
        e = self.d.post(path, {"command": "sh", "args": ["-c", "read x; echo $x; exit 3"]})
        self.assertEqual(e.status, 201, e)
        one = f"/v1/boxes/{self.box}/executions/{e.json['execution_id']}"
        self.assertEqual(self.d.request("DELETE", one).status, 204)
        self.assertEqual(self.d.get(one).status, 404)

    def test_files(self):
        data = os.urandom(3 << 20)
        self.assertEqual(self.d.write(self.box, "/root/f", data).status, 200)
        self.assertEqual(self.d.read(self.box, "/root/f").body, data)
        self.assertEqual(self.d.write(self.box, "/mnt/user-data/workspace/a.txt", b"one\ntwo words\n").status, 200)
        r = self.d.get(f"/v1/boxes/{self.box}/fs/list?path=/mnt/user-data")
        self.assertEqual([e["path"] for e in r.json.get("entries", [r])], ["outputs", "uploads", "workspace"])
        r = self.d.get(f"/v1/boxes/{self.box}/fs/grep?path=/mnt/user-data&pattern=t.o")
        self.assertEqual([(m["path"], m["line"]) for m in r.json["matches"]], [("workspace/a.txt", "two words")])
        r = self.d.get(f"/v1/boxes/{self.box}/fs/glob?path=/mnt/user-data&pattern=**/*.txt")
        self.assertEqual(r.status, 200, r)

    def test_archives(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as t:
            info = tarfile.TarInfo("d/f")
            info.size = 5
            t.addfile(info, io.BytesIO(b"hello"))
        self.assertEqual(self.d.request("PUT", f"/v1/boxes/{self.box}/files?path=/opt/up/", out.getvalue()).status, 204)
        back = self.d.get(f"/v1/boxes/{self.box}/files?path=/opt/up")
        with tarfile.open(fileobj=io.BytesIO(back.body)) as t:
            name = next(n for n in t.getnames() if n.endswith("d/f"))
            self.assertEqual(t.extractfile(name).read(), b"hello")

    def test_parked_and_taken_again(self):
        made = self.d.acquire("parked", "t")
        self.d.write(made["box_id"], "/root/mine", b"x")
        self.assertEqual(self.d.release(made["box_id"]).json["status"], "warm")
        again = self.d.acquire("parked", "t")
        self.assertEqual((again["source"], again["box_id"]), ("warm", made["box_id"]))
        self.assertEqual(self.d.read(made["box_id"], "/root/mine").body, b"x")
        self.close(made["box_id"])

    def close(self, box):
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box}?force=true").status, 204)

    def test_a_removed_box_is_gone(self):
        before = set(self.library.processes())
        traces = set(self.d.traces())
        made = self.d.acquire("removed", "t")["box_id"]
        self.assertGreater(len(set(self.library.processes()) - before), 2)
        self.close(made)
        wait_for("its processes to be gone", lambda: set(self.library.processes()) <= before)
        wait_for("its traces to be gone", lambda: set(self.d.traces()) <= traces)

    def test_nothing_runs_where_nothing_happens(self):
        """While another box is busy, the programs of one that is not use no time and open nothing; once its last figures are there."""
        idle = self.d.acquire("idle", "t")["box_id"]
        self.d.sh(idle, "true")
        program = self.d.program(idle)

        def rests():
            before = (ticks(program), open_fds(program))
            for _ in range(60):
                self.d.sh(self.box, "true")
            return (ticks(program), open_fds(program)) == before
        wait_for("its program to rest", rests)
        self.close(idle)

    def test_nothing_is_kept_of_what_was_done(self):
        program = self.d.program(self.box)
        self.d.sh(self.box, "true")
        before = len(open_fds(program))
        for i in range(40):
            self.d.sh(self.box, f"echo {i}")
            self.d.write(self.box, "/root/again", b"x" * 1000)
            self.d.read(self.box, "/root/again")
        wait_for("all of it to be closed", lambda: len(open_fds(program)) <= before)


class Local(Serves, BoxliteTest):
    pass


class Remote(Serves, BoxliteTest):
    server = True
    isolation = "remote"


class PlainServer(BoxliteTest):
    """A server whose boxes have no command of their own, as sbxd is: it refuses one."""

    server = True
    knobs = "commands=no"

    def test_it_serves(self):
        box = self.d.acquire("plain", "t")["box_id"]
        self.assertEqual(self.d.sh(box, "echo here"), "here\n")


class OlderLibrary(Serves, BoxliteTest):
    variant = "old"
    knobs = "version=0.9.0,text=hold,drain=first"


class NewerLibrary(Serves, BoxliteTest):
    variant = "new"
    knobs = "version=0.11.3,chunk=1,order=awkward"

    @unittest.skip("a byte at a time takes too long")
    def test_output_is_bytes(self):
        pass

    @unittest.skip("a byte at a time takes too long")
    def test_files(self):
        pass


class Dies:
    """What dies is noticed, said to who waits, and leaves nothing; the next box is a new one."""

    more = "replicas: 20\n"

    def box(self):
        return self.d.acquire("dies", self.id())["box_id"]

    def await_nothing(self):
        wait_for("all traces to be gone", lambda: not self.d.traces())
        wait_for("all processes to be gone", lambda: not self.library.processes())

    def next_is_new(self, old):
        new = self.d.acquire("dies", self.id())
        self.assertEqual(new["source"], "cold")
        self.assertEqual(self.d.sh(new["box_id"], "test -e /root/mine || echo new"), "new\n")
        self.d.request("DELETE", f"/v1/boxes/{new['box_id']}?force=true")
        self.await_nothing()

    def kill(self, pid, what):
        os.kill(pid, signal.SIGKILL)
        wait_for(f"{what} to be gone", lambda: not start_time(pid))

    def test_box(self):
        box = self.box()
        self.d.write(box, "/root/mine", b"x")
        for pid in self.library.processes("shim"):
            os.kill(pid, signal.SIGKILL)
        self.await_nothing()
        self.next_is_new(box)

    def test_agent(self):
        box = self.box()
        self.d.write(box, "/root/mine", b"x")
        r = self.d.post(f"/v1/boxes/{box}/run", {"command": "pkill -9 sbx-guest; sleep 1000"})
        self.assertEqual(r.status, 410, r)
        self.await_nothing()
        self.next_is_new(box)

    def test_supervisor(self):
        box = self.box()
        self.d.write(box, "/root/mine", b"x")
        self.d.kill()
        self.d.start()
        self.assertEqual(self.d.read(box, "/root/mine").body, b"x")
        self.assertEqual(self.d.acquire("dies", self.id())["source"], "active")
        self.d.request("DELETE", f"/v1/boxes/{box}?force=true")
        self.await_nothing()


class WithWorker(Dies):
    """Boxes that die with what drives them; for the others see test_boxlite_saved.py."""

    def test_worker(self):
        box = self.box()
        self.d.write(box, "/root/mine", b"x")
        self.kill(self.d.inspect(box)["pid"], "the worker")
        self.await_nothing()
        self.next_is_new(box)

    def test_program(self):
        box = self.box()
        self.d.write(box, "/root/mine", b"x")
        self.kill(self.d.program(box), "sbx-boxlite")
        self.await_nothing()
        self.next_is_new(box)

    def test_all_at_once(self):
        box = self.box()
        worker, program = self.d.inspect(box)["pid"], self.d.program(box)
        self.d.kill()
        self.kill(worker, "the worker")
        wait_for("sbx-boxlite to be gone", lambda: not start_time(program))
        self.d.start()
        self.await_nothing()
        self.next_is_new(box)


class LocalDies(WithWorker, BoxliteTest):
    pass


class DetachedDies(Dies, BoxliteTest):
    options = {"detach": "true"}


class RemoteDies(WithWorker, BoxliteTest):
    server = True


if __name__ == "__main__":
    unittest.main()

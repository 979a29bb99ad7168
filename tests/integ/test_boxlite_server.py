"""Boxes of a BoxLite server over BoxLite's own library: where the environment names both (CONTRIBUTING.md)."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import test_boxlite
import test_boxlite_saved
from boxlite import BoxliteDaemon, BoxliteTest, Library
from harness import BOUND, other_mounts, start_time, wait_for

OPTIONS = {"url": "SBX_BOXLITE_URL", "api_key": "SBX_BOXLITE_API_KEY", "path_prefix": "SBX_BOXLITE_PATH_PREFIX"}


class OwnLibrary(Library):
    """BoxLite's. A copy, so that the processes that have it are known; the server is somebody else's."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="sbxd-test-library-")
        os.chmod(self.dir, 0o755)
        self.path = shutil.copy(os.environ["SBX_BOXLITE_LIBRARY"], self.dir)
        self.options = {key: os.environ[name] for key, name in OPTIONS.items() if os.environ.get(name)}

    def tell(self, knobs=""):
        if knobs:
            raise unittest.SkipTest("only the double can be told something")

    def config(self, server=True, more="", **options):
        return super().config(False, more, **self.options, **options)

    def ask(self, method, path):
        """Not through this process' sockets: the server need not be sbxd, and keeps to a contract of its own."""
        url = "/".join(filter(None, [self.options["url"], "v1", self.options.get("path_prefix"), path]))
        head = f"Authorization: Bearer {self.options.get('api_key', '')}"
        return subprocess.run(["curl", "-sSf", "--noproxy", "*", "-m", str(BOUND), "-H", "@-", "-X", method, url], input=head,
                              stdout=subprocess.PIPE, text=True, check=True).stdout

    def boxes(self):
        names = [b["name"] or "" for b in json.loads(self.ask("GET", "boxes"))["boxes"]]
        return [name for name in names if name.startswith(f"sbxd-t{os.getpid()}-")]


@unittest.skipUnless("SBX_BOXLITE_URL" in os.environ and "SBX_BOXLITE_LIBRARY" in os.environ,
                     "SBX_BOXLITE_URL and SBX_BOXLITE_LIBRARY name no server and no library")
class ServerTest(BoxliteTest):
    @classmethod
    def setUpClass(cls):
        cls.mounts_before = other_mounts()
        cls.library = OwnLibrary()
        cls.d = BoxliteDaemon(cls.library, cls.library.config(more=cls.more, **cls.options), cls.env)


class Server(test_boxlite.Serves, ServerTest):
    isolation = "remote"

    def test_a_removed_box_is_gone(self):
        before, there = set(self.library.processes()), set(self.library.boxes())
        made = self.d.acquire("removed", "t")["box_id"]
        self.assertEqual(len(set(self.library.processes()) - before), 1)
        self.assertEqual(len(set(self.library.boxes()) - there), 1)
        self.close(made)
        wait_for("its sbx-boxlite to be gone", lambda: set(self.library.processes()) <= before)
        wait_for("the server to have it no more", lambda: set(self.library.boxes()) <= there)


class ServerDies(test_boxlite.Dies, ServerTest):
    def test_box(self):
        box = self.box()
        self.d.write(box, "/root/mine", b"x")
        for name in self.library.boxes():
            self.library.ask("DELETE", f"boxes/{name}?force=true")
        self.await_nothing()
        self.next_is_new(box)


class ServerLeft(ServerTest):
    options = {"detach": "true"}

    def test_who_comes_next_gets_it_or_another(self):
        """Whether the server's commands are such that a box can be taken over or not: nothing of what cannot be stays."""
        for _ in range(3):
            box = self.d.acquire("left", "t")["box_id"]
            self.d.write(box, "/root/mine", b"kept")
            worker, program = self.d.inspect(box)["pid"], self.d.program(box)
            self.d.kill()
            os.kill(worker, signal.SIGKILL)
            wait_for("worker and sbx-boxlite to be gone", lambda pids=(worker, program): not any(map(start_time, pids)))
            self.d.start()
            got = self.d.acquire("left", "t")
            self.assertEqual(got["box_id"], box)
            self.assertEqual(self.d.sh(box, "cat /root/mine 2>/dev/null || echo new"), {"warm": "kept", "cold": "new\n"}[got["source"]])
            wait_for("the server to have no other", lambda: len(self.library.boxes()) == 1)


@unittest.skipUnless("SBX_BOXLITE_DETACH" in os.environ, "SBX_BOXLITE_DETACH does not say that the server's boxes can be taken over")
class ServerSaved(test_boxlite_saved.Saved, ServerTest):
    def test_it_is_not_there_any_more(self):
        worker, program = self.d.inspect(self.box)["pid"], self.d.program(self.box)
        os.kill(worker, signal.SIGSTOP)
        os.kill(program, signal.SIGSTOP)
        for name in self.library.boxes():
            self.library.ask("DELETE", f"boxes/{name}?force=true")
        os.kill(worker, signal.SIGKILL)
        self.await_end(worker)
        self.is_another()


if __name__ == "__main__":
    unittest.main()

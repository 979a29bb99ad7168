"""DeerFlow's sandbox provider on sbxd: what the harness relies on, from one process and from two at once.

DeerFlow's own package is used where it is installed, else the declaration of its interface in tests/data/deerflow.
"""

import asyncio
import contextvars
import errno
import inspect
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import unittest
from types import SimpleNamespace
from unittest import mock

from harness import BOUND, Daemon, DaemonTest, in_threads, wait_for
from pyclient import DEERFLOW, environment, sbxd

try:
    import deerflow.sandbox.sandbox_provider  # noqa: F401
except ImportError:
    sys.path.insert(0, DEERFLOW)

from deerflow.sandbox import exceptions, sandbox, sandbox_provider, search  # noqa: E402
from sbxd.deerflow import SbxdProvider, SbxdSandbox  # noqa: E402

logging.getLogger("sbxd").addHandler(logging.NullHandler())
SHARED = os.environ.get("TEST_DEERFLOW_SOCKET")  # of a service that another process of this test uses, too
WORKSPACE = "/mnt/user-data/workspace"


class Providers:
    """What tests of providers need; mixed into those that have a daemon `d`."""

    def provider(self, client=None, **config):
        app = SimpleNamespace(sandbox=SimpleNamespace(**config))
        client = client or sbxd.Client(self.d.socket, timeout=BOUND)
        self.addCleanup(client.close)
        with mock.patch("sbxd.deerflow.get_app_config", lambda: app):
            p = SbxdProvider(client)
        self.addCleanup(p.shutdown)
        return p

    def thread(self, name="t"):
        return f"{self.id()}-{os.getpid()}-{name}"

    def acquired(self, provider=None, name="t", user="u"):
        provider = provider or self.provider()
        box = provider.get(provider.acquire(self.thread(name), user_id=user))
        self.assertIsInstance(box, SbxdSandbox)
        return provider, box

    def remove(self, box):
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box.id}?force=1").status, 204)


class Behaviour(Providers, unittest.TestCase):
    """Runs on a daemon of its own, or on one that is shared with another process that does the same."""

    @classmethod
    def setUpClass(cls):
        if SHARED:
            cls.d = Daemon.__new__(Daemon)
            cls.d.socket = SHARED
        else:
            cls.d = Daemon("replicas: 100\n")
            cls.addClassCleanup(cls.d.remove)
            cls.addClassCleanup(cls.d.stop)

    # ---- the contract ----

    def test_it_is_what_deerflow_asks_for(self):
        for mine, theirs in ((SbxdProvider, sandbox_provider.SandboxProvider), (SbxdSandbox, sandbox.Sandbox)):
            self.assertTrue(issubclass(mine, theirs))
            self.assertFalse(inspect.isabstract(mine))
            for name in (
                "acquire",
                "acquire_async",
                "get",
                "release",
                "reset",
                "execute_command",
                "read_file",
                "write_file",
                "update_file",
                "download_file",
                "list_dir",
                "glob",
                "grep",
            ):
                if hasattr(theirs, name):
                    shape = [
                        [(p.name, p.kind) for p in inspect.signature(getattr(c, name)).parameters.values()]
                        for c in (mine, theirs)
                    ]
                    self.assertEqual(shape[0], shape[1], name)
        self.assertEqual(
            (SbxdProvider.uses_thread_data_mounts, SbxdProvider.needs_upload_permission_adjustment), (False, True)
        )
        self.assertIs(SbxdSandbox.persistent_shell_sessions, False)

    def test_no_service(self):
        p = self.provider(sbxd.Client("/no/such/socket"))
        with self.assertRaisesRegex(exceptions.SandboxRuntimeError, "/no/such/socket"):
            p.acquire("t", user_id="u")
        p.shutdown()
        p.shutdown()

    # ---- commands ----

    def test_output(self):
        _, box = self.acquired()
        for command, text in (
            ("echo out", "out\n"),
            ("echo err >&2", "err\n"),
            ("echo out; echo err >&2", "out\n\nerr\n"),
            ("true", "(no output)"),
            ("exit 3", "Command exited with code 3"),
            ("echo out; exit 3", "out\n"),
            ("kill -9 $$", "Command exited with code 137"),
            ("printf '\\377'", "\ufffd"),
            ("pwd", f"{WORKSPACE}\n"),
        ):
            with self.subTest(command):
                self.assertEqual(box.execute_command(command), text)

    def test_environment(self):
        _, box = self.acquired(self.provider(environment={"A": "config", "B": "config"}))
        self.assertEqual(box.execute_command("echo $A $B $C", env={"B": "call", "C": "x y"}), "config call x y\n")
        untouched = SbxdSandbox(SimpleNamespace(id="i"))
        for name in ("BAD KEY", "", "1A", "A=B", "A\n", 7):
            with self.assertRaisesRegex(ValueError, "POSIX"):
                untouched.execute_command("echo", env={name: "x"})

    def test_a_timeout_kills_all(self):
        p, box = self.acquired()
        said = box.execute_command("echo begin; sleep 777 & sleep 777", timeout=0.3)
        self.assertEqual(said, "begin\n\nError: Command timed out after 0.3 seconds and was killed")
        self.assertEqual(box.execute_command("grep -l sleep /proc/[0-9]*/comm | wc -l"), "0\n")
        self.assertIs(p.get(box.id), box)
        _, box = self.acquired(self.provider(bash_command_timeout=0.2), "config")
        self.assertEqual(box.execute_command("sleep 777"), "Error: Command timed out after 0.2 seconds and was killed")

    def test_a_command_that_fails_costs_no_box(self):
        p, box = self.acquired()
        self.assertIn("not found", box.execute_command("no-such-program"))
        self.assertTrue(box.execute_command("x" * 200000).startswith("Error: "))
        self.assertIs(p.get(box.id), box)

    def test_only_a_box_that_is_gone_is_given_up(self):
        gone = []
        for error in [k(410, {"message": "m", "reason": "r"}) for k in sbxd._errors.BY_REASON.values()] + [
            sbxd.BoxNotFound(404, {"message": "m"}),
            sbxd.ConnectionFailed("m"),
            sbxd.DeadlineExceeded("m"),
            sbxd.BadAnswer("m"),
        ]:
            fake = SimpleNamespace(id="i", closed=False, run=mock.Mock(side_effect=error))
            gone.clear()
            with self.assertLogs("sbxd", logging.ERROR):
                said = SbxdSandbox(fake, on_gone=gone.append).execute_command("echo")
            self.assertEqual((said, len(gone)), (f"Error: {error}", isinstance(error, sbxd.BoxGone)), error)

    def test_a_closed_sandbox_says_so_quietly(self):
        p, box = self.acquired()
        p.release(box.id)
        with self.assertNoLogs("sbxd", logging.ERROR):
            self.assertEqual(box.execute_command("echo hi"), "Error: sandbox has been closed")
        self.assertTrue(box.is_closed)

    # ---- files ----

    def test_paths(self):
        _, box = self.acquired()
        for call in (
            lambda p: box.read_file(p),
            lambda p: box.write_file(p, "x"),
            lambda p: box.update_file(p, b"x"),
            lambda p: box.list_dir(p),
            lambda p: box.glob(p, "*"),
            lambda p: box.grep(p, "x"),
            lambda p: box.download_file(p),
        ):
            self.assertRaises(PermissionError, call, "/mnt/user-data/../etc/passwd")
            self.assertRaises(PermissionError, call, "/mnt/user-data\\..\\etc")
            self.assertRaises(ValueError, call, "")
        box.write_file("relative/ok.txt", "1")
        self.assertEqual(box.read_file(f"{WORKSPACE}//./relative/ok.txt"), "1")

    def test_read_and_write(self):
        _, box = self.acquired()
        path = f"{WORKSPACE}/new/dir/range.txt"
        box.write_file(path, "line 1\nline 2\nline 3\nline 4\n")
        box.write_file(path, "line 5", append=True)
        self.assertEqual(box.read_file(path), "line 1\nline 2\nline 3\nline 4\nline 5")
        for first, last, text in (
            (2, 4, "line 2\nline 3\nline 4"),
            (4, None, "line 4\nline 5"),
            (None, 2, "line 1\nline 2"),
            (3, 2, ""),
            (9, None, ""),
        ):
            self.assertEqual(box.read_file(path, start_line=first, end_line=last), text)
        self.assertEqual(box.read_file(f"{WORKSPACE}/none")[:7], "Error: ")
        self.assertEqual(box.read_file(WORKSPACE)[:7], "Error: ")
        box.update_file(path, bytes(range(256)))
        self.assertEqual(box.download_file(path), bytes(range(256)))
        self.assertRaises(UnicodeDecodeError, box.read_file, path)
        self.assertRaises(IsADirectoryError, box.write_file, WORKSPACE, "x")
        self.assertRaises(OSError, box.write_file, f"{path}/below", "x")
        for text in ("", "x" * 300000, "quote ' \" $ \\ \n"):
            box.write_file(path, text)
            self.assertEqual(box.read_file(path), text)

    def test_download(self):
        untouched = SbxdSandbox(SimpleNamespace(id="i"))
        for path in ("/etc/passwd", "/mnt/user-data/../etc/passwd", "/mnt/user-data-2/f", "/mnt"):
            self.assertRaises(PermissionError, untouched.download_file, path)
        _, box = self.acquired()
        self.assertRaises(FileNotFoundError, box.download_file, f"{WORKSPACE}/none")
        self.assertRaises(OSError, box.download_file, WORKSPACE)
        box.execute_command("truncate -s 104857601 big; truncate -s 104857600 fits")
        with self.assertRaises(OSError) as caught:
            box.download_file(f"{WORKSPACE}/big")
        self.assertEqual(caught.exception.errno, errno.EFBIG)
        self.assertEqual(len(box.download_file(f"{WORKSPACE}/fits")), 104857600)

    def test_list_dir(self):
        _, box = self.acquired()
        box.execute_command("mkdir -p l/a/b/c; touch l/f l/a/g l/a/b/c/h; mkdir many; cd many; seq 600 | xargs touch")
        root = f"{WORKSPACE}/l"
        self.assertEqual(box.list_dir(root), [root, f"{root}/a", f"{root}/a/b", f"{root}/a/g", f"{root}/f"])
        self.assertEqual(box.list_dir(f"{root}/", max_depth=1), [root, f"{root}/a", f"{root}/f"])
        self.assertEqual((box.list_dir(f"{root}/f"), len(box.list_dir(f"{WORKSPACE}/many"))), ([f"{root}/f"], 500))
        self.assertRaises(FileNotFoundError, box.list_dir, f"{WORKSPACE}/none")
        self.assertLessEqual(
            {"/mnt/user-data/workspace", "/mnt/user-data/uploads", "/mnt/user-data/outputs"},
            set(box.list_dir("/mnt/user-data")),
        )
        self.assertIn("/mnt/skills", box.list_dir("/mnt", max_depth=1))

    def test_glob(self):
        _, box = self.acquired()
        box.execute_command("mkdir -p s/d .git; touch a.py s/b.py s/d/c.py s/x.txt .git/d.py")
        self.assertEqual(
            box.glob(WORKSPACE, "**/*.py"), ([f"{WORKSPACE}/{n}" for n in ("a.py", "s/b.py", "s/d/c.py")], False)
        )
        self.assertEqual(
            box.glob(WORKSPACE, "*.py", max_results=2), ([f"{WORKSPACE}/{n}" for n in ("a.py", "s/b.py")], True)
        )
        self.assertEqual(box.glob(f"{WORKSPACE}/", "d", include_dirs=True), ([f"{WORKSPACE}/s/d"], False))
        self.assertRaises(FileNotFoundError, box.glob, f"{WORKSPACE}/none", "*")
        self.assertRaises(NotADirectoryError, box.glob, f"{WORKSPACE}/a.py", "*")

    def test_grep(self):
        _, box = self.acquired()
        box.write_file(f"{WORKSPACE}/a:1.py", "alpha\nBeta (x)\n")
        box.write_file(f"{WORKSPACE}/b.log", "beta\r\n" + "x" * 300 + "beta\n" + "y" * 3000 + "beta\n")
        match = search.GrepMatch
        self.assertEqual(
            box.grep(WORKSPACE, "^beta"), ([match(path=f"{WORKSPACE}/a:1.py", line_number=2, line="Beta (x)")], False)
        )
        self.assertEqual(box.grep(WORKSPACE, "beta", case_sensitive=True), ([], False))
        self.assertEqual(box.grep(WORKSPACE, "(x", literal=True, glob="*.py")[0][0].line_number, 2)
        self.assertEqual(
            box.grep(WORKSPACE, "a", max_results=1),
            ([match(path=f"{WORKSPACE}/a:1.py", line_number=1, line="alpha")], True),
        )
        log = f"{WORKSPACE}/b.log"  # a name that is passed over, but for when it is asked for
        self.assertEqual(box.grep(log, "BETA"), ([match(log, 1, "beta"), match(log, 2, "x" * 197 + "...")], False))
        self.assertEqual(box.grep(log, "beta", max_results=1), ([match(log, 1, "beta")], True))
        self.assertEqual(
            (box.grep(log, "BETA", case_sensitive=True), box.grep(log, ".*", literal=True)), (([], False), ([], False))
        )
        for path in (WORKSPACE, log):
            self.assertRaises(re.error, box.grep, path, "((")
        self.assertRaises(FileNotFoundError, box.grep, f"{WORKSPACE}/none", "x")

    # ---- the pool ----

    def test_ids(self):
        p, q = self.provider(), self.provider()
        first = p.acquire(self.thread(), user_id="u")
        self.assertRegex(first, "^[0-9a-f]{16}$")
        self.assertEqual((p.acquire(self.thread(), user_id="u"), q.acquire(self.thread(), user_id="u")), (first, first))
        self.assertEqual(
            len(
                {
                    first,
                    p.acquire(self.thread(), user_id="v"),
                    p.acquire(self.thread("2"), user_id="u"),
                    p.acquire(self.thread()),
                }
            ),
            4,
        )
        self.assertNotEqual(p.acquire(), p.acquire())

    def test_release_parks_and_acquire_reclaims(self):
        p, box = self.acquired()
        box.write_file(f"{WORKSPACE}/f", "kept")
        p.release(box.id)
        self.assertIsNone(p.get(box.id))
        self.assertEqual(self.d.inspect(box.id)["state"], "warm")
        p.release(box.id)
        p.release("no-such-id")
        checks = self.d.pool()["counters"]["checks"]
        self.assertEqual(p.acquire(self.thread(), user_id="u"), box.id)
        self.assertGreater(self.d.pool()["counters"]["checks"], checks)
        self.assertEqual(
            (self.d.inspect(box.id)["state"], p.get(box.id).read_file(f"{WORKSPACE}/f")), ("active", "kept")
        )
        self.assertIsNot(p.get(box.id), box)

    def test_a_turn_of_another_provider_finds_the_box(self):
        p, box = self.acquired()
        box.write_file(f"{WORKSPACE}/f", "kept")
        q = self.provider()
        self.assertIsNone(q.get(box.id))
        _, other = self.acquired(q)
        self.assertEqual(
            (other.id, other.read_file(f"{WORKSPACE}/f"), self.d.inspect(box.id)["leases"]), (box.id, "kept", 2)
        )
        p.release(box.id)
        self.assertEqual((self.d.inspect(box.id)["state"], other.execute_command("echo on")), ("active", "on\n"))
        q.shutdown()
        self.assertEqual(self.d.inspect(box.id)["state"], "warm")

    def test_the_same_turn_again_has_one_lease(self):
        p, box = self.acquired()
        for _ in range(3):
            self.assertEqual(p.acquire(self.thread(), user_id="u"), box.id)
        self.assertIs(p.get(box.id), box)
        self.assertEqual(self.d.inspect(box.id)["leases"], 1)
        self.d.release(box.id)  # an admin takes all leases
        p.acquire(self.thread(), user_id="u")
        self.assertEqual(self.d.inspect(box.id)["leases"], 1)

    def test_threads_that_acquire_at_once(self):
        p = self.provider()
        ids = in_threads(8, lambda i: p.acquire(self.thread(), user_id="u"))
        self.assertEqual((len(set(ids)), self.d.inspect(ids[0])["leases"]), (1, 1))
        self.assertEqual(p.get(ids[0]).execute_command("echo on"), "on\n")

    def test_a_box_that_died_is_given_up(self):
        p, box = self.acquired()
        self.remove(box)
        self.assertTrue(box.execute_command("echo hi").startswith("Error: "))
        self.assertEqual((p.get(box.id), box.is_closed), (None, True))
        again = p.acquire(self.thread(), user_id="u")
        self.assertEqual((again, p.get(again).execute_command("echo on")), (box.id, "on\n"))

    def test_files_of_a_box_that_died(self):
        for call in (
            lambda b: b.write_file(f"{WORKSPACE}/f", "x"),
            lambda b: b.download_file(f"{WORKSPACE}/f"),
            lambda b: b.list_dir(WORKSPACE),
        ):
            p, box = self.acquired()
            self.remove(box)
            with self.assertRaises(OSError) as caught:
                call(box)
            self.assertNotIsInstance(caught.exception, FileNotFoundError)
            self.assertIsNone(p.get(box.id))

    def test_a_stale_sandbox_does_nothing_to_its_successor(self):
        p, box = self.acquired()
        self.remove(box)
        box.execute_command("echo hi")
        _, replacement = self.acquired(p)
        self.assertEqual((replacement.id, replacement is box), (box.id, False))
        self.assertTrue(box.execute_command("echo again").startswith("Error: "))
        box.close()
        p._lost(box)
        self.assertIs(p.get(box.id), replacement)
        self.assertEqual((replacement.execute_command("echo on"), self.d.inspect(box.id)["leases"]), ("on\n", 1))

    def test_the_next_turn_notices_a_box_that_died_by_itself(self):
        p, box = self.acquired()
        before = self.d.inspect(box.id)["generation"]
        self.remove(box)
        self.assertEqual(p.acquire(self.thread(), user_id="u"), box.id)
        self.assertGreater(self.d.inspect(box.id)["generation"], before)
        self.assertIsNot(p.get(box.id), box)
        self.assertEqual(p.get(box.id).execute_command("echo on"), "on\n")

    def test_a_parked_box_that_died_is_not_given_out(self):
        p, box = self.acquired()
        about = self.d.inspect(box.id)
        p.release(box.id)
        os.kill(about["box_pid"] if about.get("box_pid") else about["pid"], signal.SIGKILL)
        _, new = self.acquired(p)
        self.assertEqual(new.execute_command("echo on"), "on\n")
        self.assertGreater(self.d.inspect(box.id)["generation"], about["generation"])

    def test_seeds_that_are_alike(self):
        user, thread = f"a{os.getpid()}:b", "c"
        p = self.provider()
        box = p.get(p.acquire(thread, user_id=user))
        other_user, _, rest = user.partition(":")
        for parked in (False, True):
            with self.assertRaisesRegex(RuntimeError, "Sandbox ID collision"):
                p.acquire(f"{rest}:{thread}", user_id=other_user)
            if not parked:
                self.assertIs(p.get(box.id), box)
                self.assertEqual(box.execute_command("echo on"), "on\n")
                p.release(box.id)
        self.assertEqual(p.acquire(thread, user_id=user), box.id)

    def test_reset_gives_leases_back_and_goes_on(self):
        p, box = self.acquired()
        _, parked = self.acquired(p, "parked")
        p.release(parked.id)
        p.reset()
        self.assertEqual((p.get(box.id), box.is_closed), (None, True))
        self.assertEqual([self.d.inspect(b.id)["state"] for b in (box, parked)], ["warm", "warm"])
        self.assertEqual(p.acquire(self.thread(), user_id="u"), box.id)

    def test_shutdown_gives_leases_back_for_good(self):
        p, box = self.acquired()
        p.shutdown()
        p.shutdown()
        p.release(box.id)
        self.assertEqual((p.get(box.id), self.d.inspect(box.id)["state"]), (None, "warm"))
        with self.assertRaisesRegex(exceptions.SandboxRuntimeError, "shut down"):
            p.acquire(self.thread(), user_id="u")

    def test_a_gateway_that_forks(self):
        p, box = self.acquired()
        thread = self.thread()  # which has the pid in it
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                said = [p.get(box.id).execute_command("echo child"), p.acquire(thread, user_id="u") == box.id]
                os.write(write, repr(said + [self.d.inspect(box.id)["leases"]]).encode())
                p.shutdown()
            finally:
                os._exit(0)
        os.close(write)
        with open(read, encoding="utf-8") as f:
            self.assertEqual(f.read(), "['child\\n', True, 2]")
        os.waitpid(child, 0)
        self.assertEqual((self.d.inspect(box.id)["leases"], box.execute_command("echo parent")), (1, "parent\n"))

    # ---- configuration ----

    def test_the_keys_of_deerflow(self):
        with self.assertLogs("sbxd", logging.WARNING) as logs:
            p = self.provider(
                image="python:3.12-slim",
                memory_mib=1,
                cpus=7,
                replicas=7,
                idle_timeout=0,
                health_check_skip_seconds=5,
                environment={"PYTHONUNBUFFERED": "1"},
                acquire_timeout=30,
                bash_command_timeout=600,
            )
            _, box = self.acquired(p)
        said = "\n".join(logs.output)
        for word in ("python:3.12-slim", "memory_mib is 1 here", "cpus is 7 here", "replicas is 7 here"):
            self.assertIn(word, said)
        self.assertEqual(box.execute_command("echo $PYTHONUNBUFFERED"), "1\n")
        _, other = self.acquired(self.provider(image="python:3.12-slim"))  # also when it is in use with sbxd's own
        self.assertEqual(other.id, box.id)
        with self.assertNoLogs("sbxd", logging.WARNING):
            self.acquired(self.provider(image="host", replicas=self.d.pool()["replicas"]), "2")

    # ---- asyncio ----

    def test_acquire_async(self):
        p = self.provider()
        variable = contextvars.ContextVar("variable")
        seen = []
        acquire = p.acquire

        def watched(*args, **kw):
            seen.append((variable.get(), threading.get_ident()))
            return acquire(*args, **kw)

        p.acquire = watched

        async def main():
            variable.set("kept")
            return await asyncio.gather(*(p.acquire_async(self.thread(), user_id="u") for _ in range(5)))

        ids = asyncio.run(main())
        self.assertEqual(len(set(ids)), 1)
        self.assertEqual({v for v, _ in seen}, {"kept"})
        self.assertNotIn(threading.get_ident(), {i for _, i in seen})


class TwoProcesses(DaemonTest):
    """The same from two processes at once, which share one service."""

    config = "replicas: 200\n"

    @unittest.skipIf(SHARED, "is one of the two")
    def test_all_behaviour(self):
        env = environment(TEST_DEERFLOW_SOCKET=self.d.socket)
        both = [
            subprocess.Popen(
                [sys.executable, "-m", "unittest", "test_deerflow.Behaviour"],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for _ in range(2)
        ]
        both = [(p.communicate(timeout=BOUND * 10)[0], p.returncode) for p in both]
        for said, status in both:
            self.assertEqual(status, 0, said)
            self.assertIn(
                f"Ran {unittest.defaultTestLoader.loadTestsFromTestCase(Behaviour).countTestCases()} tests", said
            )
        wait_for("all leases to end", lambda: self.d.pool()["active"] == 0)


class Sharing(Providers, DaemonTest):
    """Two processes with the same user and thread."""

    config = "replicas: 5\n"
    WORKER = """
import sys
from types import SimpleNamespace
import sbxd.deerflow
sbxd.deerflow.get_app_config = lambda: SimpleNamespace(sandbox=SimpleNamespace())
p = sbxd.deerflow.SbxdProvider()
for line in sys.stdin:
    print(repr(eval(line)), flush=True)
"""

    def worker(self):
        env = environment(self.d)
        env["PYTHONPATH"] += os.pathsep + DEERFLOW
        w = subprocess.Popen(
            [sys.executable, "-c", self.WORKER], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(w.stdout.close)
        self.addCleanup(w.wait)
        self.addCleanup(w.kill)
        self.addCleanup(w.stdin.close)

        def ask(text):
            w.stdin.write(text + "\n")
            w.stdin.flush()
            return eval(w.stdout.readline())  # noqa: S307 - what it printed by repr

        ask.process = w
        return ask

    def test_they_share_one_box(self):
        a, b = self.worker(), self.worker()
        box = a("p.acquire('chat', user_id='alice')")
        a(f"p.get('{box}').write_file('f', 'from a')")
        self.assertIsNone(b(f"p.get('{box}')"))
        self.assertEqual(b("p.acquire('chat', user_id='alice')"), box)
        self.assertEqual(b(f"p.get('{box}').read_file('f')"), "from a")
        self.assertEqual(self.d.inspect(box)["leases"], 2)
        a(f"p.release('{box}')")
        self.assertEqual(
            (self.d.inspect(box)["state"], b(f"p.get('{box}').execute_command('echo on')")), ("active", "on\n")
        )
        self.assertEqual(a("p.acquire('chat', user_id='alice')"), box)
        b.process.kill()
        wait_for("the lease of the killed one to end", lambda: self.d.inspect(box)["leases"] == 1)
        self.assertEqual(a(f"p.get('{box}').execute_command('echo on')"), "on\n")
        a.process.stdin.close()
        self.assertEqual(a.process.wait(BOUND), 0)  # its end is a shutdown
        self.assertEqual(self.d.inspect(box)["state"], "warm")
        c = self.worker()
        self.assertEqual(c("p.acquire('chat', user_id='alice')"), box)
        self.assertEqual(c(f"p.get('{box}').read_file('f')"), "from a")


class Replicas(Providers, DaemonTest):
    config = "replicas: 2\nreplica_policy: soft\n"

    def test_the_oldest_parked_box_makes_room(self):
        p, q = self.provider(), self.provider()
        boxes = []
        for i, provider in enumerate((p, q)):
            _, box = self.acquired(provider, str(i))
            provider.release(box.id)
            boxes.append(box)
        _, third = self.acquired(p, "3")
        wait_for("the first to go", lambda: self.d.get(f"/v1/boxes/{boxes[0].id}").status == 404)
        self.assertEqual([self.d.inspect(b.id)["state"] for b in (boxes[1], third)], ["warm", "active"])
        _, fourth = self.acquired(q, "4")  # active ones count, and are never taken
        wait_for("the second to go", lambda: self.d.get(f"/v1/boxes/{boxes[1].id}").status == 404)
        self.assertEqual([b.execute_command("echo on") for b in (third, fourth)], ["on\n", "on\n"])


class Idle(Providers, DaemonTest):
    config = "idle_timeout: 0.2\n"

    def test_what_is_parked_is_closed_for_being_idle(self):
        p, box = self.acquired()
        _, parked = self.acquired(p, "parked")
        p.release(parked.id)
        p.reset()
        for b in (box, parked):
            wait_for("it to be closed", lambda b=b: self.d.get(f"/v1/boxes/{b.id}").status == 404)


class Capacity(Providers, DaemonTest):
    config = "replicas: 1\nreplica_policy: reject\n"

    def test_it_says_when_to_try_again(self):
        p, box = self.acquired()
        for provider in (p, self.provider()):
            with self.assertRaises(exceptions.SandboxCapacityExceededError) as caught:
                provider.acquire(self.thread("2"), user_id="u")
            e = caught.exception
            self.assertIsInstance(e, exceptions.SandboxError)
            self.assertGreater(e.retry_after_seconds, 0)
            self.assertEqual((e.retry_after, e.active, e.replicas), (e.retry_after_seconds, 1, 1))
        self.assertEqual(p.acquire(self.thread(), user_id="u"), box.id)


class Waiting(Providers, DaemonTest):
    config = "replicas: 1\nreplica_policy: wait\n"

    def test_nothing_else_waits_for_an_acquire(self):
        p, box = self.acquired()
        ticks = []

        async def main():
            task = asyncio.create_task(p.acquire_async(self.thread("2"), user_id="u"))
            while not await asyncio.to_thread(lambda: self.d.pool()["waiters"]):
                ticks.append(p.get(box.id) is box)
                self.assertFalse(task.done(), "it did not wait")
            ticks.append(p.get(box.id) is box)
            self.assertEqual(box.execute_command("echo on"), "on\n")
            self.assertFalse(task.done())
            p.release(box.id)
            return await asyncio.wait_for(task, BOUND)

        new = asyncio.run(main())
        self.assertEqual((p.get(new).execute_command("echo on"), set(ticks)), ("on\n", {True}))

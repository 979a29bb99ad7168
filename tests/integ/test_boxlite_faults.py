"""BoxLite's library does wrong: it is not there, lacks something, fails, stalls, crashes, lies. Each time it is said what is
wrong and how to mend it, nothing is left, and the next box is as ever."""

import re
import time
import unittest

import contract
from boxlite import BoxliteDaemon, BoxliteTest, Library, refused_start
from harness import slurp, wait_for

CODES = ("Internal", "NotFound", "AlreadyExists", "InvalidState", "InvalidArgument", "Config", "Storage", "Image", "Network",
         "Execution", "Stopped", "Engine", "Unsupported", "Database", "Portal", "Rpc", "RpcTransport", "Metadata",
         "UnsupportedEngine", "ResourceExhausted", "SessionReaped")
# What they mean, stated once more: the box is there no more; the same call may do better a moment later.
GONE = ("NotFound", "Stopped", "Engine", "Portal", "SessionReaped")
AGAIN = ("Network", "Database", "RpcTransport", "ResourceExhausted")


class Start(unittest.TestCase):
    """What cannot be had is said at start, with the way to mend it; other drivers are not affected."""

    def setUp(self):
        self.library = Library()
        self.addCleanup(self.library.remove)

    def refused(self, config, *words, env=None):
        log = refused_start(self.library, config, env)
        for word in words:
            self.assertIn(word, log)

    def test_no_library(self):
        self.refused(self.library.config(library="/no/such/libboxlite.so"), "/no/such/libboxlite.so", "boxlite.library")

    def test_no_shared_object(self):
        with open(self.library.path, "w", encoding="utf-8") as f:
            f.write("not one")
        self.refused(self.library.config(), "BoxLite's library cannot be loaded", self.library.path)

    def test_a_library_that_lacks_what_is_needed(self):
        lacking = Library("lacking")
        self.addCleanup(lacking.remove)
        self.refused(lacking.config(), "lacks boxlite_box_exec", "install")

    def test_other_versions(self):
        for version in ("0.8.9", "0.12.0", "1.0.0", "none", ""):
            with self.subTest(version=version):
                self.library.tell(f"version={version}")
                self.refused(self.library.config(), f"is BoxLite {version}", "0.9.0")

    def test_no_kvm(self):
        self.refused(self.library.config(), "/no/kvm", "modprobe", env={"SBX_TEST_KVM": "/no/kvm"})

    def test_a_server_that_is_not_there(self):
        self.refused(self.library.config(True, url="http://127.0.0.1:9"), "http://127.0.0.1:9", "boxlite.url")

    def test_a_server_that_does_not_know_us(self):
        self.refused(self.library.config(True, api_key="wrong"), "unauthorized", "boxlite.api_key")
        self.refused(self.library.config(True, path_prefix="wrong"), "forbidden", "boxlite.path_prefix")

    def test_the_key_is_told_to_nobody(self):
        log = refused_start(self.library, self.library.config(True, url="http://127.0.0.1:9", api_key="blk-secret"))
        self.assertNotIn("blk-secret", log)

    def test_no_image(self):
        self.refused(self.library.config().replace("debian:12", "missing:1"), "missing:1", "Image")

    def test_a_runtime_that_does_not_open(self):
        for knobs, word in (("runtime:fail=Database", "Database"), ("runtime:mute=Config", "Config"), ("runtime:abort", "sbx-boxlite"),
                            ("kvm=no", "UnsupportedEngine")):
            with self.subTest(knobs=knobs):
                self.library.tell(knobs)
                self.refused(self.library.config(), word)

    def test_a_runtime_that_opens_never(self):
        self.library.tell("runtime:stall")
        self.refused(self.library.config(), "did not do it in time")

    def test_auto_passes_over_it(self):
        """With an image that namespaces have; one of a registry is looked for there, and not as BoxLite would."""
        config = f"driver: auto\nboxlite: {{library: /no/such/libboxlite.so}}\nreplicas: 2\nimage: "
        d = BoxliteDaemon(self.library, config + "host\n")
        try:
            box = d.acquire("a", "b")["box_id"]
            self.assertEqual(d.inspect(box)["driver"], "namespace")
            self.assertEqual(d.sh(box, "echo well"), "well\n")
            self.assertEqual(d.stop(), 0)
            self.assertEqual((d.remains(), contract.take_violations()), ([], []))
        finally:
            d.kill()
            d.remove()
        self.refused(config + "127.0.0.1:1/none:1\n", "127.0.0.1:1/none:1 cannot be pulled", "driver auto passed over boxlite",
                     "for image 127.0.0.1:1/none:1 these were passed over: boxlite: there is no BoxLite library at /no/such/libboxlite.so")

    def test_auto_takes_it(self):
        d = BoxliteDaemon(self.library, self.library.config().replace("driver: boxlite", "driver: auto"))
        try:
            self.assertEqual(d.inspect(d.acquire("a", "b")["box_id"])["driver"], "boxlite")
            self.assertEqual(d.stop(), 0)
            self.assertEqual((d.remains(), contract.take_violations()), ([], []))
        finally:
            d.kill()
            d.remove()


class Wrong:
    """A daemon that serves; what goes wrong is told by the control file."""

    more = "replicas: 20\nboot_timeout: 5\nacquire_timeout: 60\nhealth_check_timeout: 2\n"

    def tearDown(self):
        """What a failed test has left is no other's failure."""
        self.library.tell()
        for b in self.d.get("/v1/boxes").json["boxes"]:
            self.d.request("DELETE", f"/v1/boxes/{b['box_id']}?force=true")

    def await_nothing(self):
        wait_for("all traces to be gone", lambda: not self.d.traces())
        wait_for("all processes to be gone", lambda: not self.library.processes())

    def fails(self, knobs, *words):
        """No box can be had, the log has why, and nothing is left of the trial."""
        before = len(self.d.log())
        self.library.tell(knobs)
        r = self.d.post("/v1/acquire", {"user_id": "w", "thread_id": self.id()}, timeout=120)
        self.assertGreaterEqual(r.status, 500, (knobs, r))
        said = self.d.log()[before:]
        for word in words:
            self.assertIn(word, said, knobs)
        self.library.tell()
        self.await_nothing()
        return r

    def once(self, knobs):
        """Acts in one process only: the janitor's library is not the worker's."""
        path = f"{self.library.dir}/once"
        with open(path, "w", encoding="ascii") as f:
            f.write("1")
        return f"{knobs}@{path}"

    def works(self):
        box = self.d.acquire("w", self.id())["box_id"]
        self.assertEqual(self.d.sh(box, "echo well"), "well\n")
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box}?force=true").status, 204)
        self.await_nothing()

    def test_each_call_fails(self):
        for knobs in ("get_or_create:fail=Engine", "get_or_create:refuse=Storage", "get_or_create:mute=Rpc", "start:refuse=Engine",
                      "start:mute=Portal", "options:fail=Config", f"{'rest' if self.server else 'runtime'}:fail=Database"):
            with self.subTest(knobs=knobs):
                self.fails(self.once(knobs), re.search("=([A-Z][A-Za-z]*)", knobs).group(1))
        self.works()

    def test_each_call_stalls(self):
        for op in ("get_or_create", "start", "copy_into", "exec", "stdout", "drain"):
            with self.subTest(op=op):
                begun = time.monotonic()
                knobs = f"{op}:stall"  # output that is lost once is noticed, and the shell serves
                self.fails(knobs if op == "stdout" else self.once(knobs))
                self.assertLess(time.monotonic() - begun, 60)
        self.works()

    def test_each_call_crashes(self):
        for op in ("get_or_create", "start", "copy_into", "exec", "stdout", "drain"):
            for how in ("abort", "exit"):
                with self.subTest(op=op, how=how):
                    self.fails(self.once(f"{op}:{how}"))
        self.works()

    def test_it_is_killed_in_each_call(self):
        """That is no fault of the library's: whoever waits gets another box."""
        for op in ("get_or_create", "start", "copy_into", "exec", "stdout", "drain"):
            with self.subTest(op=op):
                self.library.tell(self.once(f"{op}:kill"))
                self.works()
                self.assertEqual(slurp(f"{self.library.dir}/once"), "0")
                self.library.tell()

    def test_what_it_said_before_it_stalled_is_told(self):
        self.fails("start:fail=Network@1,start:stall@2", "start the box: BoxLite did not do it in time; before, it said Network: ")

    def test_lies(self):
        for knobs in ("get_or_create:lie", "start:lie,exec:fail=Stopped"):
            with self.subTest(knobs=knobs):
                self.fails(knobs)
        self.works()

    def test_a_copy_that_is_none_is_noticed(self):
        """Nor a stream that is none. Then its own shell serves the box, and it says so."""
        for knobs in ("copy_into:lie", "copy=head", "copy_into:fail=Unsupported", "copy_into:refuse=InvalidArgument", "stdout:lie@1"):
            with self.subTest(knobs=knobs):
                self.library.tell(knobs)
                box = self.d.acquire("w", knobs)["box_id"]
                self.assertTrue(self.d.inspect(box)["isolation"].endswith("/sh"), knobs)
                self.assertEqual(self.d.sh(box, "echo well"), "well\n")
                self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box}?force=true").status, 204)
                self.library.tell()
                self.await_nothing()
        self.works()

    def test_each_code_when_the_agent_is_brought(self):
        """What may pass is tried again; a box that is gone is given up; else the box's own shell serves."""
        for op in ("copy_into", "exec"):
            for code in CODES:
                with self.subTest(op=op, code=code):
                    self.one_code(op, code)
        self.works()

    def one_code(self, op, code):
        knobs = self.once(f"{op}:fail={code}" if op == "copy_into" else f"{op}:refuse={code}")
        if code in GONE:
            self.fails(knobs, code)
            return
        before = len(self.d.log())
        self.library.tell(knobs)
        box = self.d.acquire("w", f"{op}{code}")["box_id"]
        self.assertEqual(slurp(f"{self.library.dir}/once"), "0")
        self.assertEqual(self.d.inspect(box)["isolation"].endswith("/sh"), code not in AGAIN)
        self.assertEqual(f"{code}: " in self.d.log()[before:], code not in AGAIN)
        self.assertEqual(self.d.sh(box, "echo well"), "well\n")
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box}?force=true").status, 204)

    def test_each_code_when_a_box_is_removed(self):
        """Whatever the library says, it is gone in the end: by another try, or by the janitor's."""
        for code in CODES:
            with self.subTest(code=code):
                box = self.d.acquire("w", code)["box_id"]
                self.library.tell(self.once(f"remove:fail={code}"))
                self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box}?force=true", timeout=120).status, 204)
                self.await_nothing()
                self.assertEqual(slurp(f"{self.library.dir}/once"), "0")
        self.works()

    def test_slow_is_not_wrong(self):
        self.library.tell("get_or_create:late=300,start:late=300,copy_into:late=200,exec:late=200,remove:late=300")
        self.works()

    def test_foreign_text_in_the_stream_ends_the_box(self):
        """As when the library has dropped output: nothing is guessed."""
        box = self.d.acquire("w", self.id())["box_id"]
        self.library.tell("stdout:lie")
        r = self.d.post(f"/v1/boxes/{box}/run", {"command": "echo x"})
        self.assertEqual(r.status, 410, r)
        self.library.tell()
        self.await_nothing()
        self.works()

    def test_a_stream_with_holes_is_a_dead_box(self):
        """As when the client connects anew without a word: once something is lost, comes again, or comes as something else, either
        way. Whatever was told until then was right; then the box has died, and of what; the next one is as ever."""
        out = "head -c 2000000 /dev/zero | tr '\\0' x"
        for knobs, what, words in (("stdout:stall", "said", "(lost [0-9]+ bytes of|damaged|holds something other than)"),
                                   ("stdout:twice", "said", "(repeated [0-9]+ bytes of|lost [0-9]+ bytes of|damaged|holds something other than)"),
                                   ("stdout:flip", "said", "(damaged|lost|holds something other than)"),
                                   ("stdin:lie", "was told", "lost [0-9]+ bytes of"),
                                   ("stdin:twice", "was told", "repeated [0-9]+ bytes of"),
                                   ("stdin:flip", "was told", "damaged")):
            with self.subTest(knobs=knobs):
                box = self.d.acquire("w", knobs)["box_id"]
                self.assertEqual(len(self.d.sh(box, out)), 2000000)
                before = len(self.d.log())
                self.library.tell(self.once(knobs))
                begun = time.monotonic()
                if what == "said":
                    r = self.d.post(f"/v1/boxes/{box}/run", {"command": out}, timeout=120)
                else:
                    r = self.d.request("PUT", f"/v1/boxes/{box}/fs/write?path=/tmp/x", bytes(1000000), timeout=120)
                self.assertEqual((r.status, r.json["error"]["reason"]), (410, "box_died"), r)
                self.assertLess(time.monotonic() - begun, 60)
                self.assertEqual(slurp(f"{self.library.dir}/once"), "0")
                self.assertRegex(self.d.log()[before:], f"died: BoxLite's stream {words} what the agent {what}")
                self.library.tell()
                self.await_nothing()
                self.works()

    def test_output_that_is_lost_is_a_dead_box(self):
        box = self.d.acquire("w", self.id())["box_id"]
        self.library.tell("stdout:stall")
        r = self.d.post(f"/v1/boxes/{box}/run", {"command": "echo x"}, timeout=120)
        self.assertEqual(r.status, 410, r)
        self.library.tell()
        self.await_nothing()
        self.works()

    def test_a_crash_in_use(self):
        box = self.d.acquire("w", self.id())["box_id"]
        self.library.tell("stdin:abort")
        r = self.d.post(f"/v1/boxes/{box}/run", {"command": "echo x"})
        self.assertEqual(r.status, 410, r)
        self.library.tell()
        self.await_nothing()
        self.works()

    def test_a_removal_that_fails_is_made_good(self):
        """By the janitor, with a library of its own, when the worker's could not."""
        for knobs in ("remove:fail=Engine", "remove:abort", "remove:lie", "remove:stall"):
            with self.subTest(knobs=knobs):
                box = self.d.acquire("w", knobs)["box_id"]
                self.library.tell(self.once(knobs))
                r = self.d.request("DELETE", f"/v1/boxes/{box}?force=true", timeout=120)
                self.assertEqual(r.status, 204, r)
                self.await_nothing()
                self.assertEqual(slurp(f"{self.library.dir}/once"), "0")
        self.works()

    def test_a_foreign_box_is_nobodys(self):
        """A list of lies: names that are none, and others'. They are left alone, and ours is served."""
        self.library.tell("list:lie")
        self.works()


class LocalWrong(Wrong, BoxliteTest):
    def test_each_code(self):
        for code in CODES:
            with self.subTest(code=code):
                self.fails(f"start:fail={code}", code)
        self.works()


class RemoteWrong(Wrong, BoxliteTest):
    server = True


if __name__ == "__main__":
    unittest.main()

"""What tests of BoxLite's boxes share: a daemon over the double of its library, which a file tells what to do wrong.

Each has a copy of the library of its own, so that its control file is nobody else's and its processes are known by it. The
double's server is this host too: its boxes are in a directory beside the library.
"""

import glob
import os
import shutil
import tempfile

import contract
from harness import BUILD, Daemon, DaemonTest, other_mounts, slurp, start_time

FAKE = f"{BUILD}/fake_boxlite"
URL = "http://127.0.0.1:8100"
SERVER = {"url": URL, "api_key": "secret-key", "path_prefix": "team"}


class Library:
    """A variant of the double in a directory of its own."""

    def __init__(self, variant="standard", knobs=""):
        self.dir = tempfile.mkdtemp(prefix="sbxd-test-library-")
        os.chmod(self.dir, 0o755)
        self.path = shutil.copy(f"{FAKE}/{variant}/libboxlite.so", self.dir)
        shutil.copy(f"{FAKE}/fake-boxlite-shim", self.dir)
        self.server = f"{self.dir}/server"
        self.tell(knobs)

    def tell(self, knobs=""):
        """From now on, at every call (tests/drivers/fake_boxlite/knobs.h)."""
        server = f"url={URL},key={SERVER['api_key']},prefix={SERVER['path_prefix']},remote_home={self.server}"
        with open(f"{self.dir}/control.new", "w", encoding="utf-8") as f:
            f.write(f"{knobs}{',' if knobs else ''}{server}")
        os.replace(f"{self.dir}/control.new", f"{self.dir}/control")

    def config(self, server=False, more="", **options):
        options = {"library": self.path, **(SERVER if server else {}), **options}
        inner = ", ".join(f"{key}: {value}" for key, value in options.items())
        return f"driver: boxlite\nimage: debian:12\nboxlite: {{{inner}}}\n{more}"

    def processes(self, program=""):
        """Live processes that have the library, or are its boxes: {pid: name}."""
        found = {}
        for path in glob.glob("/proc/[0-9]*/maps"):
            pid = int(path.split("/")[2])
            try:
                if self.dir not in slurp(path) or not start_time(pid):
                    continue
                name = slurp(f"/proc/{pid}/cmdline").split("\0")[0].rsplit("/", 1)[-1]
            except OSError:
                continue
            if program in name:
                found[pid] = name
        return found

    def boxes(self):
        """Those that a server has."""
        return [path.split("/")[-2] for path in glob.glob(f"{self.server}/boxes/*/config")]

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)


class BoxliteDaemon(Daemon):
    def __init__(self, library, config, env=None, **more):
        self.library = library
        super().__init__(config, {"SBX_TEST_KVM": "/dev/null", **(env or {})}, **more)

    def traces(self):
        """What boxes have left on this host, or on the server."""
        return (glob.glob(f"{self.dir}/state/boxlite-*/homes/*") + glob.glob(f"{self.runtime}/boxlite-*/boxes/*")
                + [f"server: {b}" for b in self.library.boxes()])

    def remains(self):
        return super().remains() + self.traces() + [f"{n} {p}" for p, n in self.library.processes().items()]

    def program(self, box):
        """The sbx-boxlite of a box: its worker's child."""
        worker = self.inspect(box)["pid"]
        return next(int(p) for p in slurp(f"/proc/{worker}/task/{worker}/children").split())


class BoxliteTest(DaemonTest):
    """One daemon per class, on this host or with a server; after it nothing of its boxes is anywhere."""

    server = False
    options = {}
    more = ""
    knobs = ""
    variant = "standard"

    @classmethod
    def setUpClass(cls):
        cls.mounts_before = other_mounts()
        cls.library = Library(cls.variant, cls.knobs)
        cls.d = BoxliteDaemon(cls.library, cls.library.config(cls.server, cls.more, **cls.options), cls.env)

    @classmethod
    def tearDownClass(cls):
        cls.library.tell(cls.knobs)
        try:
            super().tearDownClass()
        finally:
            cls.library.remove()


def refused_start(library, config, env=None):
    """The log of a daemon that does not start, which leaves nothing."""
    d = BoxliteDaemon(library, config, env, wait=False)
    try:
        status = d.process.wait(120)
        log = d.log()
        assert status not in (0, None), log
        assert d.remains() == [], d.remains()
        contract.take_violations()
        return log
    finally:
        d.kill()
        d.remove()

"""sbxctl as the tests call it."""

import json
import subprocess

from harness import BOUND, BUILD, DaemonTest


class CtlTest(DaemonTest):
    """A daemon, and sbxctl for it."""

    config = "replicas: 50\n"

    def ctl(self, *args, status=0, **kw):
        r = self.d.ctl("--instance", self.d.instance, *args, **kw)
        self.assertEqual(r.returncode, status, f"{args}: {r}")
        return r

    def data(self, *args):
        return json.loads(self.ctl("--json", *args).stdout)

    def box(self, thread):
        return self.d.acquire("ctl", thread)["box_id"]


def table():
    """The commands and their options, as --help tells them: {"run": ["-u", "--user", ...]}."""
    overview = subprocess.run([f"{BUILD}/sbxctl", "--help"], capture_output=True, text=True, timeout=BOUND, check=True).stdout
    found = {}
    for line in overview.splitlines():
        if line.startswith("  ") and not line.startswith("   "):
            words = line.split()
            name = " ".join(words[:2]) if words[0] in ("shm", "image", "template") else words[0]
            text = subprocess.run([f"{BUILD}/sbxctl", *name.split(), "--help"], capture_output=True, text=True, timeout=BOUND, check=True).stdout
            own = text.partition("Options:")[2].partition("Of all commands:")[0]
            found[name] = [w.rstrip(",") for option in own.splitlines() for w in option.split()[:2] if w.startswith("-")]
    return found

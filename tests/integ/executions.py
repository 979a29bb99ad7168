"""What tests of executions share: a box, and how they are started, attached to and asked about."""

import re
import threading

from harness import DaemonTest, slurp, wait_for
from ws import Attached


def memory_kib(pid, what="VmHWM"):
    return int(re.search(rf"^{what}:\s+(\d+) kB", slurp(f"/proc/{pid}/status"), re.M).group(1))


class ExecTest(DaemonTest):
    config = "replicas: 50\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = cls.d.acquire("exec", "t")["box_id"]

    def path(self, execution=None, what="", box=None):
        return f"/v1/boxes/{box or self.box}/executions" + (f"/{execution}{what}" if execution else "")

    def start(self, command, *args, box=None, **more):
        r = self.d.post(f"/v1/boxes/{box or self.box}/exec", {"command": command, "args": list(args), **more})
        self.assertEqual(r.status, 201, r)
        execution = r.json["execution_id"]
        self.assertEqual(r.headers["Location"], self.path(execution, box=box))
        return execution

    def sh(self, script, **more):
        return self.start("/bin/sh", "-c", script, **more)

    def attach(self, execution, query="", box=None, **kw):
        return Attached(self.d, box or self.box, execution, query, **kw)

    def begin(self, command, *args, **more):
        """Starts it and attaches."""
        return self.attach(self.start(command, *args, **more), box=more.get("box"))

    def begin_sh(self, script, **more):
        return self.begin("/bin/sh", "-c", script, **more)

    def status(self, execution):
        r = self.d.get(self.path(execution))
        self.assertEqual(r.status, 200, r)
        return r.json

    def wait_status(self, execution, status):
        return wait_for(f"{execution} to be {status}", lambda: (s := self.status(execution))["status"] == status and s)

    def signal(self, execution, number):
        return self.d.post(self.path(execution, "/signal"), {"signal": number})

    def kill(self, execution):
        return self.d.request("DELETE", self.path(execution))

    def processes(self, pattern):
        """How many processes in the box have a command line like that."""
        script = f"for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f 2>/dev/null; echo; done | grep -c '{pattern}'"
        return int(self.d.run(self.box, ["/bin/sh", "-c", script])["stdout"] or 0)

    def pump_in(self, a, data, piece=1 << 20):
        """Writes stdin from another thread, then its end."""
        def write():
            a.write(data, piece)
            a.eof()
        t = threading.Thread(target=write, daemon=True)
        t.start()
        return t

"""A file operation that stands still in the box ends, and the box lives on."""

import unittest

from harness import DaemonTest, wait_for

# Stops every helper that it sees.
CATCH = """while :; do for p in /proc/[0-9]*; do
    read -r name < $p/comm && [ "$name" = sbx-files ] && kill -STOP ${p#/proc/}; done; done 2> /dev/null"""


class Stall(DaemonTest):
    config = "replicas: 4\nlimits: {operation_stall_timeout: 3}\n"

    def test_a_helper_that_is_stopped(self):
        box = self.d.acquire("u", "stall")["box_id"]
        path = f"/v1/boxes/{box}"
        started = self.d.post(f"{path}/exec", {"command": "sh", "args": ["-c", CATCH], "stdin": False})
        self.assertEqual(started.status, 201, started)

        def caught():
            r = self.d.get(f"{path}/fs/grep?path=/usr&pattern=no-such-text")
            self.assertIn(r.status, (200, 408), r)
            return r if r.status == 408 else None

        r = wait_for("a search to be caught", caught)
        self.assertEqual((r.json["error"]["reason"], r.json["error"]["message"]), ("timeout", "the operation made no progress within 3 s"))
        wait_for("it to be ended", lambda: self.d.inspect(box)["in_flight"] == 1)  # the one that catches
        self.assertEqual(self.d.request("DELETE", f"{path}/executions/{started.json['execution_id']}").status, 204)
        self.assertEqual(self.d.get(f"{path}/fs/list?path=/").status, 200)
        self.assertEqual(self.d.sh(box, "echo alive"), "alive\n")


if __name__ == "__main__":
    unittest.main()

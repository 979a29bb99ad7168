"""sbx-mcp when its sbxd, or its box, is not there any more, or does not answer: the call says so, the next one works."""

import os
import signal

from harness import wait_for
from test_mcp import McpTest


class Trouble(McpTest):
    config = "replicas: 6\nreplica_policy: wait\n"

    def test_a_service_that_was_killed(self):
        m = self.start()
        m.sh("echo kept > f")
        running = m.begin_call("run_command", token=1, command="echo begun; until [ -e go ]; do sleep 0.05; done; echo ended")
        m.await_message("its output", lambda n: n.get("params", {}).get("message") == "begun")
        self.d.kill()
        self.assertRegex(m.failure("run_command", command="true"), r"^run_command: (no sandbox: )?cannot connect to .*")
        self.assertTrue(m.alive())
        self.d.start()
        r = m.call("read_file", path="f")
        self.assertEqual([c["text"] for c in r["content"]], ["kept\n"], "the box lived on, and there is no word of another one")
        m.call("write_file", path="go", content="")
        self.assertEqual(m.answer(running)["result"]["structuredContent"]["stdout"], "begun\nended\n", "the command has not noticed")
        self.assertEqual(self.state(), "active")
        m.close()
        wait_for("the box to be parked", lambda: self.state() == "warm")

    def test_a_service_that_hangs(self):
        m = self.start("--answer-timeout", "0.5", "--wait", "0.5")
        os.kill(self.d.process.pid, signal.SIGSTOP)
        try:
            self.assertEqual(m.failure("run_command", command="true"), "run_command: no sandbox: the service did not answer in time")
            self.assertTrue(m.alive())
        finally:
            os.kill(self.d.process.pid, signal.SIGCONT)
        m.sh("echo kept > f")
        os.kill(self.d.process.pid, signal.SIGSTOP)
        try:
            self.assertEqual(m.failure("glob", pattern="*"), "glob: the service did not answer in time")
            self.assertEqual(m.failure("glob", pattern="*"), "glob: no sandbox: the service did not answer in time")
        finally:
            os.kill(self.d.process.pid, signal.SIGCONT)
        self.assertEqual(m.sh("cat f"), "kept\n")

    def test_ending_while_the_service_hangs(self):
        for thread in (True, False):
            m = self.start(thread=thread)
            m.sh("true")
            os.kill(self.d.process.pid, signal.SIGSTOP)
            try:
                self.assertEqual(m.close(), 0)
            finally:
                os.kill(self.d.process.pid, signal.SIGCONT)

    def test_a_box_that_was_removed(self):
        m = self.start()
        m.sh("echo lost > f")
        running = m.begin_call("run_command", token=1, command="echo begun; sleep 100")
        m.await_message("its output", lambda n: n.get("params", {}).get("message") == "begun")
        box = self.box()["box_id"]
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box}?force=true").status, 204)
        r = m.answer(running)["result"]
        self.assertTrue(r["isError"])
        self.assertRegex(r["content"][0]["text"], r"^run_command: .*\(box_died\)$")
        r = m.call("run_command", command="cat f")
        self.assertFalse(r["isError"], r)
        self.assertEqual(r["structuredContent"]["exit_code"], 1)
        self.assertIn("the sandbox was lost and this is a new one", r["content"][-1]["text"])
        self.assertEqual(len(m.call("run_command", command="echo x")["content"]), 1, "that is told once")

    def test_a_box_that_was_removed_and_that_others_have_again(self):
        """What a call is told is not that of another box, and that there is another one it is told, too."""
        m = self.start()
        m.sh("echo lost > f")
        box = self.box()
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{box['box_id']}?force=true").status, 204)
        successor = self.d.acquire(box["user_id"], box["thread_id"])
        self.assertEqual(successor["box_id"], box["box_id"])
        r = m.call("run_command", command="cat f")
        self.assertFalse(r["isError"], r)
        self.assertEqual(r["structuredContent"]["exit_code"], 1)
        self.assertIn("the sandbox was lost and this is a new one", r["content"][-1]["text"])
        self.assertEqual(len(m.call("run_command", command="echo x")["content"]), 1, "that is told once")

    def test_a_box_whose_guest_dies(self):
        m = self.start()
        m.sh("true")
        box = self.d.inspect(self.box()["box_id"])
        running = m.begin_call("run_command", token=1, command="echo begun; sleep 100")
        m.await_message("its output", lambda n: n.get("params", {}).get("message") == "begun")
        os.kill(box["box_pid"], signal.SIGKILL)
        self.assertRegex(m.answer(running)["result"]["content"][0]["text"], r"\(box_died\)$")
        self.assertEqual(m.sh("echo again"), "again\n")

    def test_no_room(self):
        m = self.start("--wait", "0.3", initialize=False)
        m.initialize()
        held = []

        def another():
            r = self.d.post("/v1/acquire", {"user_id": "h", "thread_id": str(len(held)), "wait_seconds": 0.1})
            if r.status == 200:
                held.append(r.json["box_id"])
            return r.status  # 408: it boots still

        wait_for("no room", lambda: another() == 429)
        self.assertRegex(m.failure("run_command", command="true"), r"^run_command: no sandbox: .*\(capacity_exceeded\)$")
        for box in held:
            self.d.release(box)
        self.assertEqual(m.sh("echo room"), "room\n")

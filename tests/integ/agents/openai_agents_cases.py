"""An agent of the OpenAI Agents SDK works in a box, through the tools of the example."""

import asyncio
import itertools
import json

from agents import Agent, Runner
from agents.testing import ScriptedModel, assistant_message, function_call
from harness import wait_for
from openai_agents_tools import OUTPUT_MAX, TOOLS
from pyclient import BOUND, ClientTest
from sbxd.aio import AsyncClient, AsyncSandbox

WORK = "/mnt/user-data/workspace"


def script(*turns):
    """An agent whose model makes the calls of each turn at once, each (tool, arguments), and then has done."""
    ids = itertools.count()
    steps = [[function_call(name, args, call_id=f"call-{next(ids)}") for name, args in turn] for turn in turns]
    return Agent(name="a", tools=TOOLS, model=ScriptedModel([*steps, [assistant_message("done")]]))


class OpenaiAgents(ClientTest):
    async def answers_in(self, box, *turns):
        result = await Runner.run(script(*turns), "go", context=box)
        self.assertEqual(result.final_output, "done")
        return [item.output for item in result.new_items if item.type == "tool_call_output_item"]

    def answers(self, *turns):
        """What the tools said to an agent that makes those calls, and the box's id."""

        async def main():
            async with AsyncClient(self.d.socket, timeout=BOUND) as client:
                async with AsyncSandbox.acquire("py", self.thread, client=client) as box:
                    return box.id, await self.answers_in(box, *turns)

        return asyncio.run(main())

    def test_an_agent_works_in_the_box(self):
        box, said = self.answers(
            [("write_file", {"path": f"{WORK}/new/squares.py", "content": "for i in range(4):\n    print(i * i)\n"})],
            [("run_command", {"command": "python3 new/squares.py | tee squares.txt; hostname"})],
            [("read_file", {"path": f"{WORK}/squares.txt"}), ("run_command", {"command": "wc -l < squares.txt"})],
        )
        self.assertEqual((self.d.inspect(box)["state"], self.d.inspect(box)["leases"]), ("warm", 0), "the lease was given back")
        here = self.d.sh(self.d.acquire("py", self.thread)["box_id"], "hostname").strip()
        self.assertEqual(said, ["36 bytes written", f"0\n1\n4\n9\n{here}", "0\n1\n4\n9\n", "4"])
        _, said = self.answers([("run_command", {"command": "cat squares.txt"})])
        self.assertEqual(said, ["0\n1\n4\n9"], "in the next turn it is still there")

    def test_what_the_model_is_told_of_the_tools(self):
        schemas = {t.name: t.params_json_schema for t in TOOLS}
        self.assertEqual({n: list(s["properties"]) for n, s in schemas.items()},
                         {"run_command": ["command", "timeout_seconds"], "read_file": ["path"], "write_file": ["path", "content"]})  # fmt: skip
        for tool in TOOLS:
            self.assertTrue(tool.description)
            self.assertTrue(all(p.get("description") for p in tool.params_json_schema["properties"].values()), json.dumps(schemas))

    def test_what_fails_is_told_to_the_model(self):
        box, said = self.answers(
            [("run_command", {"command": "echo out; echo why >&2; exit 3"})],
            [("run_command", {"command": "true"}), ("run_command", {"command": "kill -9 $$"})],
            [("run_command", {"command": "echo begun; sleep 1000 & sleep 1000", "timeout_seconds": 0.3})],
            [("read_file", {"path": f"{WORK}/none"}), ("write_file", {"path": "relative", "content": "x"}), ("read_file", {"path": WORK})],
        )
        self.assertEqual(said[:3], ["out\n[stderr]\nwhy\n[exit code 3]", "(no output)", "[signal 9]"])
        self.assertRegex(said[3], r"\Abegun\n\[killed after \d+\.\d s\]\Z")
        self.assertRegex(said[4], r"^Error: .*/none: No such file or directory \(not_found\)$")
        self.assertRegex(said[5], r"^Error: .*\(invalid_path\)$")
        self.assertRegex(said[6], r"^Error: .*\(is_directory\)$")
        self.assertEqual(self.d.sh(self.d.acquire("py", self.thread)["box_id"], "grep -l sleep /proc/[0-9]*/comm | wc -l"), "0\n")

    def test_a_box_that_is_gone_is_told_and_stays_gone(self):
        async def main():
            async with AsyncClient(self.d.socket, timeout=BOUND) as client:
                async with AsyncSandbox.acquire("py", self.thread, client=client) as box:
                    await asyncio.to_thread(self.d.request, "DELETE", f"/v1/boxes/{box.id}?force=1")
                    await asyncio.to_thread(self.d.acquire, "py", self.thread)  # another process has its successor
                    return await self.answers_in(box, [("run_command", {"command": "touch /tmp/stray"})])

        (said,) = asyncio.run(main())
        self.assertRegex(said, r"^Error: .*\(stale_generation\)$")
        self.assertEqual(self.d.sh(self.d.acquire("py", self.thread)["box_id"], "ls /tmp"), "")

    def test_output_has_a_cap(self):
        box, said = self.answers(
            [("run_command", {"command": "yes | head -c 3000000; yes | head -c 30000 > f"})],
            [("read_file", {"path": f"{WORK}/f"})],
        )
        self.assertEqual(said[0], ("y\n" * (OUTPUT_MAX // 2)) + "[some of the output was left out]")
        self.assertEqual(said[1], "y\n" * (OUTPUT_MAX // 2) + "\n[there is more]")

    def test_a_run_that_is_cancelled_ends_its_command(self):
        async def main():
            async with AsyncClient(self.d.socket, timeout=BOUND) as client:
                async with AsyncSandbox.acquire("py", self.thread, client=client) as box:
                    run = asyncio.create_task(self.answers_in(box, [("run_command", {"command": "exec sleep 4321"})]))
                    await asyncio.to_thread(wait_for, "the command", lambda: self.d.inspect(box.id).get("in_flight"))
                    run.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await run
                    sleeps = "grep -l sleep /proc/[0-9]*/comm | wc -l"
                    await asyncio.to_thread(wait_for, "its end", lambda: self.d.run(box.id, sleeps)["stdout"] == "0\n")
                    return box.id

        self.assertEqual(self.d.inspect(asyncio.run(main()))["leases"], 0)

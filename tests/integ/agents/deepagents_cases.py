"""An agent of deepagents works in a box: through the tools that it makes of the backend, and through the backend alone."""

import asyncio
import itertools
from typing import Any, Sequence

from deepagents import create_deep_agent
from deepagents_backend import SbxdBackend
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from pyclient import ClientTest, sbxd

WORK = "/mnt/user-data/workspace"


class Scripted(FakeMessagesListChatModel):
    """Says what it was given to say, whatever tools there are."""

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> "Scripted":
        return self


def script(*calls):
    """A model that makes those calls, each (tool, arguments), and then has done."""
    numbers = itertools.count()
    steps = [AIMessage("", tool_calls=[{"name": n, "args": a, "id": f"call-{next(numbers)}"}]) for n, a in calls]
    return Scripted(responses=[*steps, AIMessage("done")])


class Deepagents(ClientTest):
    def backend(self, **more):
        return SbxdBackend(self.acquire(), **more)

    def answers(self, backend, *calls):
        """What the tools said to an agent that makes those calls."""
        said = create_deep_agent(script(*calls), backend=backend).invoke({"messages": [("user", "go")]})
        self.assertEqual(said["messages"][-1].content, "done")
        found = [m for m in said["messages"] if isinstance(m, ToolMessage)]
        self.assertEqual(len(found), len(calls))
        return found

    def test_an_agent_works_in_the_box(self):
        backend = self.backend()
        said = self.answers(
            backend,
            ("write_file", {"file_path": f"{WORK}/new/squares.py", "content": "for i in range(4):\n    print(i * i)\n"}),
            ("execute", {"command": "python3 new/squares.py > squares.txt; hostname; pwd"}),
            ("read_file", {"file_path": f"{WORK}/squares.txt"}),
            ("edit_file", {"file_path": f"{WORK}/squares.txt", "old_string": "9", "new_string": "nine"}),
            ("ls", {"path": WORK}),
            ("glob", {"pattern": "*.py", "path": WORK}),
            ("grep", {"pattern": "nine", "path": WORK, "output_mode": "content"}),
        )
        texts = [m.content for m in said]
        self.assertEqual({m.status for m in said}, {"success"}, texts)
        self.assertIn(f"{WORK}\n[Command succeeded with exit code 0]", texts[1])
        self.assertEqual(texts[1].split("\n")[0], self.d.sh(backend.id, "hostname").strip(), "it ran in the box")
        self.assertRegex(texts[2], r"(?s)\b0\n.*\b1\n.*\b4\n.*\b9\b")
        self.assertIn(f"{WORK}/squares.txt", texts[4])
        self.assertIn(f"{WORK}/new/squares.py", texts[5])
        self.assertIn("nine", texts[6])
        self.assertEqual(self.d.sh(backend.id, f"cat {WORK}/squares.txt"), "0\n1\n4\nnine\n")

    def test_files_are_there_for_the_next_turn(self):
        with sbxd.Sandbox.acquire("py", self.thread, client=self.client) as box:
            self.answers(SbxdBackend(box), ("write_file", {"file_path": f"{WORK}/f", "content": "kept"}))
        self.assertEqual((self.d.inspect(box.id)["state"], self.leases(box)), ("warm", 0), "the lease was given back")
        (said,) = self.answers(self.backend(), ("execute", {"command": "cat f"}))
        self.assertIn("kept", said.content)

    def test_a_thread_of_the_agent_goes_on(self):
        """One agent, two turns, and what it remembers is where its files are."""
        backend = self.backend()
        agent = create_deep_agent(
            Scripted(responses=[*script(("execute", {"command": "echo one > f"})).responses,
                                *script(("execute", {"command": "cat f"})).responses]),
            backend=backend, checkpointer=InMemorySaver())  # fmt: skip
        for _ in range(2):
            said = agent.invoke({"messages": [("user", "go")]}, {"configurable": {"thread_id": "t"}})
        self.assertIn("one\n[Command succeeded", [m for m in said["messages"] if isinstance(m, ToolMessage)][-1].content)

    def test_what_fails_is_told_to_the_agent(self):
        backend = self.backend(timeout=0.5)
        failed, late, missing = self.answers(
            backend,
            ("execute", {"command": "echo why >&2; exit 3"}),
            ("execute", {"command": "echo begun; sleep 1000 & sleep 1000"}),
            ("read_file", {"file_path": f"{WORK}/none"}),
        )
        self.assertEqual(failed.content, "why\n[Command failed with exit code 3]")
        self.assertIn("begun\nError: timed out after", late.content)
        self.assertIn("[Command failed with exit code 124]", late.content)
        self.assertIn("file_not_found", missing.content)
        self.assertEqual(self.d.sh(backend.id, "grep -l sleep /proc/[0-9]*/comm | wc -l"), "0\n")
        self.d.request("DELETE", f"/v1/boxes/{backend.id}?force=1")
        (gone,) = self.answers(backend, ("execute", {"command": "true"}))
        self.assertRegex(gone.content, r"\AError: .*\n\[Command failed with exit code 125\]\Z")

    def test_output_has_a_cap(self):
        backend = self.backend(max_output=1000)
        (said,) = self.answers(backend, ("execute", {"command": "yes | head -c 3000000"}))
        self.assertEqual(said.content, "y\n" * 499 + "y\n[Command succeeded with exit code 0]\n[Output was truncated due to size limits]")
        r = backend.execute("yes | head -c 3000000 >&2; kill -9 $$")
        self.assertEqual((len(r.output), r.exit_code, r.truncated), (999, 137, True))

    def test_no_timeout(self):
        backend = self.backend(timeout=0.1)
        self.assertEqual(backend.execute("sleep 0.3; echo slept", timeout=0).output, "slept")
        self.assertEqual(backend.execute("sleep 0.3; echo slept").exit_code, 124)

    def test_uploads_and_downloads(self):
        backend = self.backend()
        data = bytes(range(256)) * 4000
        self.d.sh(backend.id, f"mkdir {WORK}/d; touch {WORK}/file")
        put = [(f"{WORK}/new/dir/f", data), (f"{WORK}/d", b"x"), ("relative", b"x"), (f"{WORK}/file/below", b"x"), (f"{WORK}/e", b"")]
        self.assertEqual([(r.path, r.error) for r in backend.upload_files(put)],
                         [(path, error) for (path, _), error in
                          zip(put, (None, "is_directory", "invalid_path", "invalid_path", None))])  # fmt: skip
        got = backend.download_files([f"{WORK}/new/dir/f", f"{WORK}/none", f"{WORK}/d", "relative", f"{WORK}/e"])
        self.assertEqual([(r.content, r.error) for r in got],
                         [(data, None), (None, "file_not_found"), (None, "is_directory"), (None, "invalid_path"), (b"", None)])  # fmt: skip

    def test_an_agent_on_a_loop(self):
        agent = create_deep_agent(script(("execute", {"command": "echo $((6 * 7))"})), backend=self.backend())
        said = asyncio.run(agent.ainvoke({"messages": [("user", "go")]}))
        self.assertIn("42\n[Command succeeded", said["messages"][-2].content)

"""The guides of the frameworks do what they say, with models that follow a script."""

import os

import guide
from agents.testing import ScriptedModel, assistant_message, function_call
from deepagents_cases import script
from harness import ROOT, DaemonTest
from pyclient import sbxd

WORK = "/mnt/user-data/workspace"
PROGRAM = "print(*(i * i for i in range(5)))"


class Guides(DaemonTest):
    config = "replicas: 10\n"

    def setUp(self):
        os.environ["SBXD_SOCKET"] = self.d.socket
        self.addCleanup(os.environ.pop, "SBXD_SOCKET")
        self.addCleanup(lambda: sbxd.client.default_client().close())

    def run_guide(self, name, model):
        guide.run_python(self, f"{ROOT}/docs/guides/{name}.md", model=model)

    def test_langchain(self):
        model = script(
            ("write_file", {"file_path": f"{WORK}/squares.py", "content": PROGRAM}),
            ("execute", {"command": "python3 squares.py | tee squares.txt"}),
        )
        model.responses[-1].content = "They are 0, 1, 4, 9 and 16."
        self.run_guide("langchain", model)

    def test_openai_agents(self):
        steps = (
            function_call("write_file", {"path": f"{WORK}/squares.py", "content": PROGRAM}, call_id="1"),
            function_call("run_command", {"command": "python3 squares.py | tee squares.txt"}, call_id="2"),
            assistant_message("They are 0, 1, 4, 9 and 16."),
            function_call("run_command", {"command": "ls"}, call_id="3"),
            function_call("read_file", {"path": f"{WORK}/squares.txt"}, call_id="4"),
            assistant_message("It was 16."),
        )
        self.run_guide("openai-agents", ScriptedModel([[step] for step in steps]))

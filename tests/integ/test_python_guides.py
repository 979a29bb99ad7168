"""The guides of the Python client and of DeerFlow do what they say.

As in test_docs.py: blocks of one guide share one interpreter, or one shell, and comments behind a statement are what it
prints.
"""

import contextlib
import io
import json
import os
import re
import sys
import tempfile

import yaml

import test_docs
from harness import ROOT, slurp
from pyclient import DEERFLOW, sbxd

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


class Guides(test_docs.Examples):
    def setUp(self):
        os.environ["SBXD_SOCKET"] = self.d.socket
        self.addCleanup(os.environ.pop, "SBXD_SOCKET")
        self.addCleanup(lambda: sbxd.client.default_client().close())

    def run_python(self, path):
        text = slurp(path)
        names = {"__name__": "guide"}
        blocks = [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in PYTHON.finditer(text)]
        self.assertGreater(len(blocks), 1)
        for line, commands, shown in [s for b in blocks for s in test_docs.steps(*b)]:
            where = f"{os.path.basename(path)}:{line}"
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(
                    compile("\n" * (line - 1) + "\n".join(commands), path, "exec"), names
                )  # noqa: S102 - that is the test
            if shown is not None:
                self.assertRegex(out.getvalue() + "\n", re.compile(rf"\A{test_docs.pattern(shown)}\n+\Z"), where)

    def test_every_example_works(self):
        self.run_python(f"{ROOT}/docs/guides/python.md")

    def test_the_guide_has_every_endpoint(self):
        """Of the client: every method that a box has is named."""
        text = slurp(f"{ROOT}/docs/guides/python.md")
        for name in dir(sbxd.Sandbox):
            if not name.startswith("_") and callable(getattr(sbxd.Sandbox, name)) and name not in ("renew", "inspect"):
                self.assertRegex(text, rf"\b{name}\b")

    def test_deerflow(self):
        path = f"{ROOT}/docs/guides/deerflow.md"
        try:
            import deerflow.sandbox.sandbox_provider  # noqa: F401 - DeerFlow itself, if it is there
        except ImportError:
            sys.path.insert(0, DEERFLOW)
        section = yaml.safe_load(re.search(r"^```yaml\n(.*?)^```$", slurp(path), re.M | re.S).group(1))["sandbox"]
        module, _, name = section["use"].partition(":")
        with tempfile.TemporaryDirectory(prefix="sbxd-test-") as place:
            with open(f"{place}/config.yaml", "w", encoding="utf-8") as f:
                yaml.safe_dump({"models": [], "sandbox": section}, f)
            os.environ.update(TEST_DEERFLOW_SANDBOX=json.dumps(section), DEER_FLOW_CONFIG_PATH=f.name)
            self.addCleanup(os.environ.pop, "TEST_DEERFLOW_SANDBOX")
            self.addCleanup(os.environ.pop, "DEER_FLOW_CONFIG_PATH")
            __import__(module)
            self.assertTrue(callable(getattr(sys.modules[module], name)))
            with self.assertLogs("sbxd", "WARNING"):
                self.run_python(path)
        self.run_guide(path)

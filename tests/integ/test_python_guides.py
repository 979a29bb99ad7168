"""The guides of the Python client and of DeerFlow do what they say.

Those of frameworks that the tests have to install are agents/guides_cases.py's.
"""

import json
import os
import re
import sys
import tempfile
from unittest import mock

import yaml

import guide
import test_docs
from harness import ROOT, slurp
from pyclient import DEERFLOW, sbxd


class Guides(test_docs.Examples):
    def setUp(self):
        os.environ["SBXD_SOCKET"] = self.d.socket
        self.addCleanup(os.environ.pop, "SBXD_SOCKET")
        self.addCleanup(lambda: sbxd.client.default_client().close())

    def test_every_example_works(self):
        address = re.findall(r"serving on http://([^ ]*): ", self.d.log())[-1]
        with mock.patch.dict(os.environ, SBXD_URL=f"http://{address}", SBXD_TOKEN_FILE=self.token.path):
            guide.run_python(self, f"{ROOT}/docs/guides/python.md")

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
                guide.run_python(self, path)
        self.run_guide(path)

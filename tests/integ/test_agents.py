"""The examples for LangChain's deepagents and for the OpenAI Agents SDK work, with those packages and models that follow a script.

The cases are in agents/: tests themselves, for a Python that has the packages.
"""

import os
import subprocess
import sys
import unittest

import pypi
from harness import BOUND, ROOT, slurp
from pyclient import CLIENT

PLACE = os.path.join(ROOT, "tests/integ/agents")
EXAMPLES = os.path.join(CLIENT, "examples")


def python():
    """A Python that has the packages."""
    if sys.version_info < (3, 11):
        raise unittest.SkipTest("deepagents needs Python 3.11")
    return pypi.environment("agents", slurp(f"{PLACE}/requirements.txt"), "--no-deps") + "/bin/python"


def variables(**more):
    """So that nothing is told to anybody, nor asked."""
    path = os.pathsep.join((PLACE, EXAMPLES, os.path.dirname(PLACE), CLIENT))
    return {**os.environ, "PYTHONPATH": path, "LANGSMITH_TRACING": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1", **more}


class Agents(unittest.TestCase):
    def cases(self, module, count):
        r = subprocess.run([python(), "-m", "unittest", "-v", module], env=variables(), stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=BOUND * 10)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn(f"Ran {count} tests", r.stderr)
        self.assertIn("\nOK\n", r.stderr, "and none was skipped")

    def test_deepagents(self):
        self.cases("deepagents_cases", 8)

    def test_openai_agents(self):
        self.cases("openai_agents_cases", 6)

    def test_the_guides(self):
        self.cases("guides_cases", 2)

    def test_the_examples_are_short(self):
        names = sorted(n for n in os.listdir(EXAMPLES) if n.endswith(".py"))
        self.assertEqual(names, ["deepagents_backend.py", "openai_agents_tools.py"])
        for name in names:
            self.assertLess(len(slurp(f"{EXAMPLES}/{name}").splitlines()), 100)

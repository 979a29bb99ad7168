"""The official clients of the Model Context Protocol, as npm has them, use sbx-mcp: the SDK, its successor, and the inspector.

The cases are JavaScript, in mcp_sdk/; each is a subtest here. npm installs the versions of the lock file into build/mcp_sdk/, once.
"""

import json
import os
import re
import subprocess
import tempfile
import unittest

import npm
from harness import BOUND, BUILD, ROOT, wait_for
from test_mcp import HOST_TOOLS, TOOLS, McpTest

SOURCES = os.path.join(ROOT, "tests/integ/mcp_sdk")
INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
CASES = """who_it_is tools a_command files errors_of_tools errors_of_the_protocol calls_overlap progress_and_cancelling
           the_box_is_that_of_the_roots the_end""".split()


class McpSdk(McpTest):
    @classmethod
    def setUpClass(cls):
        cls.sdk = npm.install("mcp_sdk", INSPECTOR)
        home = tempfile.TemporaryDirectory(prefix="sbxd-test-")
        cls.addClassCleanup(home.cleanup)
        cls.home = home.name
        version = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=BOUND, check=True).stdout
        cls.node = int(re.match(r"v(\d+)", version).group(1))
        super().setUpClass()

    def run_node(self, *args):
        env = {**os.environ, "SBX_SDK": self.sdk, "SBX_MCP": f"{BUILD}/sbx-mcp", "SBXD_SOCKET": self.d.socket, "SBX_BOUND": str(BOUND),
               "HOME": self.home}
        return subprocess.run(["node", *args], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BOUND * 6)

    def run_cases(self, which):
        node = self.run_node(f"{SOURCES}/sdk.mjs", which)
        records = {r["case"]: r for r in map(json.loads, filter(lambda line: line.startswith('{"case":'), node.stdout.splitlines()))}
        for name in CASES:
            with self.subTest(which, case=name):
                self.assertIn(name, records, f"did not run: {node}")
                self.assertTrue(records[name]["ok"], records[name].get("error"))
        self.assertEqual((set(records), node.returncode), (set(CASES), 0), node)
        wait_for("the box to be parked", lambda: self.state(f"file:///roots/of/{which}") == "warm")

    def test_the_sdk(self):
        self.run_cases("sdk")

    def test_its_successor(self):
        if self.node < 20:
            raise unittest.SkipTest(f"@modelcontextprotocol/client needs Node.js 20, this is {self.node}")
        for which in ("legacy", "auto", "modern"):
            self.run_cases(which)

    def inspect(self, *args, server=()):
        """What the inspector prints."""
        r = self.run_node(f"{self.sdk}/{INSPECTOR}", "--cli", f"{BUILD}/sbx-mcp", "--socket", self.d.socket, *server, *args)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        return json.loads(r.stdout)

    def test_the_inspector(self):
        if self.node < 20:
            raise unittest.SkipTest(f"@modelcontextprotocol/inspector needs a later Node.js than {self.node}")
        with tempfile.TemporaryDirectory(prefix="sbxd-test-") as host:
            tools = self.inspect("--method", "tools/list", "--strict", server=("--host-dir", host))["tools"]
        self.assertEqual([t["name"] for t in tools], TOOLS + HOST_TOOLS, "and it finds nothing wrong with their schemas")
        for era in ("legacy", "modern"):
            r = self.inspect("--protocol-era", era, "--method", "tools/call", "--tool-name", "run_command", "--tool-arg", "command=echo inspected")
            self.assertEqual((r["isError"], r["structuredContent"]["stdout"]), (False, "inspected\n"), era)

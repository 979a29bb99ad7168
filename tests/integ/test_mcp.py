"""sbx-mcp: the protocol by hand: what each revision says, what is wrong with a message, and what ends a call."""

import json
import os
import re
import signal
import subprocess
import tempfile

from harness import BOUND, BUILD, DaemonTest, slurp, wait_for
from mcp_client import HANDSHAKE, META, MODERN, Mcp

TOOLS = ["run_command", "read_file", "write_file", "edit_file", "list_dir", "glob", "grep"]
HOST_TOOLS = ["upload", "download"]
LINE_MAX = 32 << 20


class McpTest(DaemonTest):
    config = "replicas: 40\n"
    scopes = 0

    def start(self, *args, initialize=True, thread=True, **kw):
        """An sbx-mcp that is gone with the test; each with a box of its own."""
        McpTest.scopes += 1
        self.thread = f"mcp-{self.scopes}"
        m = Mcp(self.d.socket, *(["--user", "u", "--thread", self.thread] if thread else []), *args, **kw)
        self.addCleanup(m.remove)
        if initialize:
            m.initialize()
        return m

    def box(self, thread=None):
        """The box of a thread; None."""
        found = [b for b in self.d.get("/v1/boxes").json["boxes"] if b["thread_id"] == (thread or self.thread)]
        return found[0] if found else None

    def state(self, thread=None):
        box = self.box(thread)
        return box and box["state"]


class Protocol(McpTest):
    def test_handshake(self):
        for asked, given in ((HANDSHAKE, HANDSHAKE), ("2025-06-18", "2025-06-18"), ("2024-11-05", HANDSHAKE), ("1.0", HANDSHAKE),
                             (MODERN, HANDSHAKE)):
            m = self.start(initialize=False)
            r = m.initialize(asked)
            self.assertEqual(r["protocolVersion"], given)
            self.assertEqual(r["capabilities"], {"tools": {}})
            self.assertEqual(r["serverInfo"]["name"], "sbx-mcp")
            self.assertNotIn("resultType", r)
            self.assertEqual(m.request("tools/list")["result"].keys(), {"tools"})
            self.assertTrue(m.alive())
            self.assertEqual(m.close(), 0)

    def test_without_handshake(self):
        m = self.start(initialize=False)
        r = m.request("server/discover", m.modern())["result"]
        self.assertEqual(r["supportedVersions"], [MODERN])
        self.assertEqual(r["resultType"], "complete")
        self.assertEqual(r["_meta"][META + "serverInfo"]["name"], "sbx-mcp")
        self.assertIn(r["cacheScope"], ("public", "private"))
        self.assertGreaterEqual(r["ttlMs"], 0)
        r = m.request("tools/list", m.modern())["result"]
        self.assertEqual(r["resultType"], "complete")
        self.assertEqual([t["name"] for t in r["tools"]], TOOLS)
        r = m.request("tools/call", m.modern(name="run_command", arguments={"command": "echo hi"}))["result"]
        self.assertEqual((r["resultType"], r["isError"], r["structuredContent"]["stdout"]), ("complete", False, "hi\n"))
        for version in ("1900-01-01", HANDSHAKE):
            e = m.request("tools/list", m.modern(version=version))["error"]
            self.assertEqual((e["code"], e["data"]), (-32022, {"supported": [MODERN], "requested": version}))
        params = m.modern()
        del params["_meta"][META + "clientCapabilities"]
        self.assertEqual(m.request("tools/list", params)["error"]["code"], -32602)
        for params in (None, {}, {"_meta": {}}, {"_meta": {META + "protocolVersion": 5}}):
            self.assertEqual(m.request("tools/list", params)["error"]["code"], -32602, params)
        for method in ("ping", "initialize", "logging/setLevel", "resources/list"):
            self.assertEqual(m.request(method, m.modern())["error"]["code"], -32601, method)

    def test_subscription(self):
        m = self.start(initialize=False)
        first = m.begin("subscriptions/listen", m.modern(notifications={"toolsListChanged": True}))
        ack = m.next()
        self.assertEqual(ack["method"], "notifications/subscriptions/acknowledged")
        self.assertEqual(ack["params"], {"_meta": {META + "subscriptionId": first}, "notifications": {}})
        second = m.begin("subscriptions/listen", m.modern(notifications={}), id="second")
        self.assertEqual(m.next()["params"]["_meta"][META + "subscriptionId"], second)
        m.notify("notifications/cancelled", {"requestId": first})
        self.assertEqual(m.request("subscriptions/listen", m.modern())["error"]["code"], -32602)
        self.assertEqual(m.close(), 0)
        self.assertEqual([m.next()["id"], m.next()], [second, None], "who still listens is told of the end, the other is not")

    def test_tools_are_described(self):
        with tempfile.TemporaryDirectory(prefix="sbxd-test-") as host:
            m = self.start("--host-dir", host)
            tools = m.request("tools/list")["result"]["tools"]
            self.assertEqual([t["name"] for t in tools], TOOLS + HOST_TOOLS)
            for t in tools:
                with self.subTest(t["name"]):
                    self.assertLessEqual({"title", "description", "inputSchema", "outputSchema", "annotations"}, t.keys())
                    for schema in (t["inputSchema"], t["outputSchema"]):
                        self.assertEqual((schema["type"], schema["additionalProperties"]), ("object", False))
                        self.assertLessEqual(set(schema["required"]), schema["properties"].keys())
                    hints = t["annotations"]
                    reads = t["name"] in ("read_file", "list_dir", "glob", "grep")
                    self.assertEqual(hints["readOnlyHint"], reads)
                    self.assertEqual("destructiveHint" in hints, not reads)
            self.check_arguments(m, tools)

    def check_arguments(self, m, tools):
        """What a schema says is what is taken: each argument is known, has its type, and is missed where it must be there."""
        samples = {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "object": {}}
        for t in tools:
            properties = t["inputSchema"]["properties"]
            needed = {name: samples[properties[name]["type"]] for name in t["inputSchema"]["required"]}
            for name, property in properties.items():
                with self.subTest(t["name"], argument=name):
                    wrong = 7 if property["type"] == "string" else "seven"
                    self.assertIn(f'"{name}" must be', m.failure(t["name"], **{**needed, name: wrong}))
            for name in t["inputSchema"]["required"]:
                with self.subTest(t["name"], missing=name):
                    args = {k: v for k, v in needed.items() if k != name}
                    self.assertIn(f'"{name}" is missing', m.failure(t["name"], **args))
            with self.subTest(t["name"], argument="unknown"):
                self.assertIn('"unheard_of" is not known', m.failure(t["name"], unheard_of=1))

    def test_messages_that_are_wrong(self):
        m = self.start()
        self.assertTrue(m.alive())
        wrong = [
            (b"{", -32700), (b"nonsense", -32700), (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700),
            (b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}', -32700), (b"\xff\xfe\x00", -32700), (b"\0", -32700),
            (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700), (b"[" * 100000, -32700),
            (b'{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}', -32700),
            (b"[]", -32600), (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b"7", -32600), (b'"ping"', -32600),
            (b"null", -32600), (b"{}", -32600), (b'{"id":1,"method":"ping"}', -32600),
            (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600), (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping\\u0000"}', -32600),
            (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
            (b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', -32601), (b'{"jsonrpc":"2.0","id":1,"method":""}', -32601),
            (b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}', -32601),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":1}}', -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"initialize"}', -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}', -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}', -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}', -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"upload","arguments":{}}}', -32602),
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"glob","arguments":[]}}', -32602),
        ]
        for line, code in wrong:
            with self.subTest(line[:60]):
                m.write(line + b"\n")
                e = m.next()
                self.assertEqual(e["error"]["code"], code, e)
                self.assertGreater(len(e["error"]["message"]), 8)
                self.assertIn(e.get("id", 1), (1,), "an id that could be read comes back, another one does not")
                self.assertTrue(m.alive())
        self.assertEqual(m.close(), 0)

    def test_messages_that_say_nothing(self):
        m = self.start()
        for line in (b"", b" \t ", b"\r", b'{"jsonrpc":"2.0","method":"notifications/unheard/of","params":{"a":[1]}}',
                     b'{"jsonrpc":"2.0","method":"tools/call"}', b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
                     b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}',
                     b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
                     b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}',
                     b'{"jsonrpc":"2.0","id":"sbx-mcp-roots","result":{"roots":[]}}', b'{"jsonrpc":"2.0","id":9,"error":{}}'):
            m.write(line + b"\n")
        m.write(b'{"jsonrpc":"2.0","id":"a","method":"ping"}\r\n{"jsonrpc":"2.0","id":-5,"method":"ping"}\n')
        self.assertEqual([m.next(), m.next()], [{"jsonrpc": "2.0", "id": i, "result": {}} for i in ("a", -5)])

    def test_lines_that_are_too_long(self):
        m = self.start()
        m.write(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"')
        for _ in range(LINE_MAX // 65536 + 2):
            m.write(b"x" * 65536)
        e = m.next()
        self.assertEqual(e["error"]["code"], -32600)
        self.assertIn("more than 33554432 bytes", e["error"]["message"])
        m.write(b'"}}\n')
        self.assertTrue(m.alive(), "what follows its end is taken")
        padding = " " * (LINE_MAX - 100)
        m.write(json.dumps({"jsonrpc": "2.0", "id": "long", "method": "ping"}).encode() + padding.encode() + b"\n")
        self.assertEqual(m.next()["id"], "long", "one that is as long as it may be is taken")

    def test_many_lines_at_once_and_a_client_that_reads_late(self):
        m = self.start()
        m.reading.clear()
        n = 3000
        data = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % i for i in range(1000, 1000 + n))
        os.set_blocking(m.process.stdin.fileno(), False)
        # It stops reading while nobody reads its answers: then nothing moves on either side.
        at = 0
        while at < len(data):
            try:
                at += os.write(m.process.stdin.fileno(), data[at:at + 4096])
            except BlockingIOError:
                before = self.cpu(m)
                if self.settled(m, before):
                    break
        self.assertLess(at, len(data), "it took everything, with nobody reading")
        self.assertLess(self.memory(m), 64 << 20)
        m.reading.set()
        os.set_blocking(m.process.stdin.fileno(), True)
        m.write(data[at:])
        self.assertEqual([m.next()["id"] for _ in range(n)], list(range(1000, 1000 + n)))

    @staticmethod
    def cpu(m):
        return sum(map(int, slurp(f"/proc/{m.process.pid}/stat").rsplit(")", 1)[1].split()[11:13]))

    def settled(self, m, before):
        """It waits, and has done nothing since."""
        wchan = slurp(f"/proc/{m.process.pid}/stat").rsplit(")", 1)[1].split()[0]
        return wchan == "S" and self.cpu(m) == before

    @staticmethod
    def memory(m):
        return int(re.search(r"VmRSS:\s+(\d+)", slurp(f"/proc/{m.process.pid}/status")).group(1)) * 1024

    def test_files_instead_of_pipes(self):
        with tempfile.TemporaryFile() as f, tempfile.TemporaryFile() as out:
            f.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 3 + b"{\n")
            f.seek(0)
            r = subprocess.run([f"{BUILD}/sbx-mcp", "--socket", self.d.socket], stdin=f, stdout=out, timeout=BOUND)
            out.seek(0)
            lines = [json.loads(line) for line in out]
        self.assertEqual((r.returncode, [line.get("id") for line in lines]), (0, [1, 1, 1, None]))

    def test_command_line(self):
        def run(*args, env=None):
            return subprocess.run([f"{BUILD}/sbx-mcp", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BOUND,
                                  env={**os.environ, **(env or {})})
        self.assertEqual(run("--version").stdout, "sbx-mcp 0.1.0\n")
        self.assertIn("--host-dir DIR", run("--help").stdout)
        for args, word in ((["--unheard-of"], "unknown option or argument '--unheard-of'"), (["x"], "unknown"), (["--user"], "needs a value"),
                           (["--thread", ""], "empty"), (["--wait", "soon"], "'soon' is not allowed"), (["--wait=0"], "from 0.1 to 86400"),
                           (["--max-output", "5"], "from 1000 to 1000000"), (["--host-dir", "x"], "no absolute path"),
                           (["--instance", "A"], "not allowed"), (["--user", b"\xff"], "no UTF-8"), (["--host-dir", "/"] * 17, "more than 16")):
            r = run(*args)
            self.assertEqual(r.returncode, 2, args)
            self.assertIn(word, r.stderr)
        r = run("--host-dir", "/nonexistent")
        self.assertEqual((r.returncode, r.stderr), (1, "sbx-mcp: --host-dir /nonexistent: No such file or directory\n"))
        self.assertEqual(run("--socket=/nonexistent", env={"SBX_MCP_USER": "x", "SBX_MCP_THREAD": ""}).returncode, 0)


class Overlap(McpTest):
    def test_calls_overlap(self):
        m = self.start()
        slow = m.begin_call("run_command", command="until [ -e go ]; do sleep 0.05; done; echo slow")
        quick = m.begin_call("run_command", command="echo quick")
        self.assertEqual(m.answer(quick)["result"]["structuredContent"]["stdout"], "quick\n")
        self.assertEqual(m.kept, [], "the other one is not yet answered")
        m.call("write_file", path="go", content="")
        self.assertEqual(m.answer(slow)["result"]["structuredContent"]["stdout"], "slow\n")

    def test_an_id_in_use_is_refused(self):
        m = self.start()
        first = m.begin_call("run_command", command="until [ -e go ]; do sleep 0.05; done; echo first")
        m.begin("ping", id=first)
        self.assertEqual(m.next()["error"]["code"], -32600)
        m.call("write_file", path="go", content="")
        self.assertEqual(m.answer(first)["result"]["structuredContent"]["stdout"], "first\n")
        m.begin("ping", id=first)
        self.assertEqual(m.next()["result"], {})

    def test_cancelling_ends_the_whole_tree(self):
        m = self.start()
        id = m.begin_call("run_command", token="t", command="(setsid sleep 3456 &) ; sleep 3456 & echo begun; wait")
        m.await_message("its output", lambda n: n.get("params", {}).get("message") == "begun")
        self.assertEqual(m.sh("pgrep -c -x -f 'sleep 3456'"), "2\n")
        m.notify("notifications/cancelled", {"requestId": id, "reason": "enough"})
        wait_for("its processes to be gone", lambda: m.data("run_command", command="pgrep -x -f 'sleep 3456'")["exit_code"] == 1)
        self.assertTrue(m.alive())
        self.assertEqual([k for k in m.kept if k.get("id") == id], [], "what was cancelled is not answered")
        m.notify("notifications/cancelled", {"requestId": id})
        self.assertTrue(m.alive())

    def test_what_waits_can_be_cancelled(self):
        m = self.start()
        m.sh("mkfifo pipe")
        first = m.begin_call("edit_file", path="pipe", old_text="a", new_text="b")
        second = m.begin_call("write_file", path="pipe", content="x")
        m.notify("notifications/cancelled", {"requestId": second})
        m.notify("notifications/cancelled", {"requestId": first})
        self.assertTrue(m.alive())
        self.assertEqual(m.sh("test -p pipe && echo still"), "still\n")

    def test_edits_of_one_file_undo_nothing(self):
        m = self.start()
        n = 40
        m.call("write_file", path="f", content="".join(f"<{i}>\n" for i in range(n)))
        ids = [m.begin_call("edit_file", path="./f" if i % 2 else "f", old_text=f"<{i}>", new_text=f"[{i}]") for i in range(n)]
        for id in ids:
            self.assertFalse(m.answer(id)["result"]["isError"])
        self.assertEqual(m.sh("cat f"), "".join(f"[{i}]\n" for i in range(n)))

    def test_too_many_at_once(self):
        m = self.start(initialize=False)
        m.initialize()
        m.sh("true")
        ids = [m.begin_call("run_command", command="until [ -e go ]; do sleep 0.2; done") for _ in range(64)]
        e = m.request("tools/call", {"name": "run_command", "arguments": {"command": "true"}})
        self.assertEqual(e["error"]["code"], -32603)
        self.assertIn("64 requests are under way", e["error"]["message"])
        m.notify("notifications/cancelled", {"requestId": ids.pop()})
        m.call("write_file", path="go", content="")
        for id in ids:
            self.assertIn("result", m.answer(id))

    def test_progress(self):
        m = self.start()
        for token in ("text", 7):
            m.sh("rm -f go")
            id = m.begin_call("run_command", token=token, command="echo one; until [ -e go ]; do sleep 0.05; done; printf 'two\\nthree'")
            told = [m.await_message("progress", lambda n: n.get("method") == "notifications/progress" and n["params"]["message"] == "one")]
            told += [m.await_message("more of it", lambda n: n.get("method") == "notifications/progress")]
            m.call("write_file", path="go", content="")
            self.assertFalse(m.answer(id)["result"]["isError"])
            told += [k for k in m.kept if k.get("method") == "notifications/progress"]
            self.assertEqual({n["params"]["progressToken"] for n in told}, {token})
            m.kept.clear()
            self.assertTrue(m.alive())
            self.assertEqual(m.kept, [], "nothing is told after the end")
        ticks = m.begin_call("run_command", token="silent", command="until [ -e never ]; do sleep 0.05; done", timeout_seconds=3600)
        seen = [m.await_message("a sign of life", lambda n: "method" in n)["params"]["progress"] for _ in range(3)]
        self.assertEqual(sorted(set(seen)), seen, "it grows")
        m.notify("notifications/cancelled", {"requestId": ticks})
        m.begin_call("run_command", token=None, command="echo quiet")
        self.assertNotIn("method", m.next())


class Life(McpTest):
    def test_the_box_comes_back_when_the_client_goes(self):
        for how in (None, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
            with self.subTest(how):
                m = self.start()
                m.begin_call("run_command", token=1, command="echo begun; sleep 4567")
                m.await_message("its output", lambda n: n.get("params", {}).get("message") == "begun")
                self.assertEqual(self.state(), "active")
                self.assertEqual(m.close(how), -signal.SIGKILL if how == signal.SIGKILL else 0)
                wait_for("the box to be parked", lambda: self.state() == "warm")
                box = self.d.acquire("u", self.thread)["box_id"]
                wait_for("its command to be gone", lambda: self.d.run(box, "pgrep -x -f 'sleep 4567'")["exit_code"] == 1)
                self.d.release(box)

    def test_stdout_that_nobody_reads_any_more(self):
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": Mcp.modern(name="run_command", arguments={"command": "true"})}
        with subprocess.Popen([f"{BUILD}/sbx-mcp", "--socket", self.d.socket, "--user", "u", "--thread", "deaf"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as p:
            p.stdin.write(json.dumps(call).encode() + b"\n")
            p.stdin.flush()
            self.assertIn(b'"isError":false', p.stdout.readline())
            self.assertEqual(self.state("deaf"), "active")
            p.stdout.close()
            p.stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
            p.stdin.flush()
            self.assertEqual(p.wait(BOUND), 0)
        wait_for("the box to be parked", lambda: self.state("deaf") == "warm")

    def test_no_box_before_it_is_needed(self):
        m = self.start()
        m.request("tools/list")
        self.assertIsNone(self.box())
        m.failure("run_command")
        self.assertIsNone(self.box())

    def test_a_box_for_this_session_alone(self):
        a, b = self.start(thread=False), self.start(thread=False)
        a.sh("echo a > who")
        b.sh("echo b > who")
        self.assertEqual((a.sh("cat who"), b.sh("cat who")), ("a\n", "b\n"))
        mine = [x for x in self.d.get("/v1/boxes").json["boxes"] if x["thread_id"] is None]
        self.assertEqual(len(mine), 2)
        self.assertEqual((a.close(), b.close(signal.SIGTERM)), (0, 0))
        self.assertEqual([x for x in self.d.get("/v1/boxes").json["boxes"] if x["thread_id"] is None and x["state"] == "active"], [])
        gone = {x["box_id"] for x in mine}
        wait_for("both to be closed", lambda: not gone & {x["box_id"] for x in self.d.get("/v1/boxes").json["boxes"]})

    def test_user_and_thread(self):
        m = self.start(thread=False, env={"SBX_MCP_USER": "alice", "SBX_MCP_THREAD": "of-the-environment"})
        m.sh("echo here > f")
        self.assertEqual(self.box("of-the-environment")["user_id"], "alice")
        m.close()
        m = self.start("--user=alice", "--thread=of-the-environment", thread=False, env={"SBX_MCP_USER": "bob"})
        self.assertEqual(m.sh("cat f"), "here\n", "the box of before; the command line wins")

    def test_roots_with_handshake(self):
        m = self.start(initialize=False, thread=False)
        m.initialize(capabilities={"roots": {"listChanged": True}})
        ask = m.await_message("the question", lambda n: n.get("method") == "roots/list")
        first = m.begin_call("run_command", command="echo waited")
        second = m.begin_call("run_command", command="echo waited")
        self.assertTrue(m.alive())
        self.assertEqual(m.kept, [])
        m.send({"jsonrpc": "2.0", "id": ask["id"], "result": {"roots": [{"uri": "file:///home/u/prö"}, {"uri": "file:///other"}]}})
        for id in (first, second):
            self.assertEqual(m.answer(id)["result"]["structuredContent"]["stdout"], "waited\n")
        self.assertEqual(self.state("file:///home/u/prö"), "active")

    def test_roots_that_are_no_use(self):
        for answer in ({"result": {"roots": []}}, {"result": {"roots": [{"uri": 5}]}}, {"error": {"code": -1, "message": "no"}}, {"result": 3}):
            m = self.start(initialize=False, thread=False)
            m.initialize(capabilities={"roots": {}})
            ask = m.await_message("the question", lambda n: n.get("method") == "roots/list")
            id = m.begin_call("run_command", command="echo mine")
            m.send({"jsonrpc": "2.0", "id": ask["id"], **answer})
            self.assertEqual(m.answer(id)["result"]["structuredContent"]["stdout"], "mine\n")
            m.close()

    def test_roots_without_handshake(self):
        m = self.start(initialize=False, thread=False)
        params = m.modern({"roots": {}}, name="run_command", arguments={"command": "echo hi"})
        r = m.request("tools/call", params)["result"]
        self.assertEqual((r["resultType"], r["inputRequests"]), ("input_required", {"roots": {"method": "roots/list"}}))
        again = {**params, "inputResponses": {"roots": {"roots": [{"uri": "file:///modern"}]}}}
        self.assertEqual(m.request("tools/call", again)["result"]["structuredContent"]["stdout"], "hi\n")
        self.assertEqual(self.state("file:///modern"), "active")
        self.assertEqual(m.request("tools/call", params)["result"]["resultType"], "complete", "it is asked once")
        other = self.start(initialize=False)
        self.assertEqual(other.request("tools/call", params)["result"]["resultType"], "complete", "--thread needs no roots")

"""sbx-mcp as its client sees it: lines of JSON, by hand."""

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time

from harness import BOUND, BUILD

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"


class Mcp:
    """One sbx-mcp. Lines that come are kept until somebody asks for them."""

    def __init__(self, socket, *args, env=None, cwd=None):
        self.stderr = tempfile.TemporaryFile()
        clean = {k: v for k, v in os.environ.items() if not k.startswith("SBX_MCP_") and k != "SBXD_SOCKET"}
        self.process = subprocess.Popen(
            [f"{BUILD}/sbx-mcp", "--socket", socket, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr,
            env={**clean, **(env or {})}, cwd=cwd)
        self.lines = queue.Queue()
        self.reading = threading.Event()
        self.reading.set()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.kept = []
        self.ids = 0

    def read(self):
        for line in self.process.stdout:
            self.reading.wait()
            self.lines.put(line)
        self.lines.put(None)

    def stderr_text(self):
        self.stderr.seek(0)
        return self.stderr.read().decode("utf-8", "replace")

    # ---- lines ----

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.write(json.dumps(message).encode() + b"\n")

    def next(self, bound=BOUND):
        """The next message; None at the end."""
        line = self.lines.get(timeout=bound)
        return None if line is None else json.loads(line)

    def await_message(self, what, wanted, bound=BOUND):
        """The first message that is wanted; others are kept in their order."""
        for i, message in enumerate(self.kept):
            if wanted(message):
                return self.kept.pop(i)
        end = time.monotonic() + bound
        while True:
            try:
                message = self.next(max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"waited in vain for {what}; came: {self.kept}; {self.stderr_text()}") from None
            if message is None:
                raise AssertionError(f"sbx-mcp ended before {what}: {self.stderr_text()}")
            if wanted(message):
                return message
            self.kept.append(message)

    # ---- requests ----

    def begin(self, method, params=None, id=None):
        """Sends a request; its id."""
        if id is None:
            self.ids += 1
            id = self.ids
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return id

    def answer(self, id, bound=BOUND):
        return self.await_message(f"the answer to {id}", lambda m: m.get("id") == id and "method" not in m, bound)

    def request(self, method, params=None, bound=BOUND):
        return self.answer(self.begin(method, params), bound)

    def notify(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})})

    def initialize(self, version=HANDSHAKE, capabilities=None):
        r = self.request("initialize", {"protocolVersion": version, "capabilities": capabilities or {},
                                        "clientInfo": {"name": "test", "version": "1"}})
        self.notify("notifications/initialized")
        return r["result"]

    @staticmethod
    def modern(capabilities=None, version=MODERN, **more):
        """params of a request without handshake."""
        return {"_meta": {META + "protocolVersion": version, META + "clientCapabilities": capabilities or {},
                          META + "clientInfo": {"name": "test", "version": "1"}}, **more}

    def begin_call(self, tool, token=None, meta=None, **args):
        meta = {**(meta or {}), **({"progressToken": token} if token is not None else {})}
        return self.begin("tools/call", {"name": tool, "arguments": args, **({"_meta": meta} if meta else {})})

    def call(self, tool, bound=BOUND, **args):
        """The result of a tool."""
        r = self.answer(self.begin_call(tool, **args), bound)
        if "result" not in r:
            raise AssertionError(f"{tool}: {r}")
        return r["result"]

    def data(self, tool, **args):
        """The structured content of a call that must succeed."""
        r = self.call(tool, **args)
        if r["isError"]:
            raise AssertionError(f"{tool} {args}: {r}")
        return r["structuredContent"]

    def failure(self, tool, **args):
        """The text of a call that must fail."""
        r = self.call(tool, **args)
        if not r["isError"]:
            raise AssertionError(f"{tool} {args} did not fail: {r}")
        return r["content"][0]["text"]

    def sh(self, command, **args):
        """stdout of a command that must succeed."""
        r = self.data("run_command", command=command, **args)
        if r["exit_code"] != 0:
            raise AssertionError(f"{command!r}: {r}")
        return r["stdout"]

    def alive(self):
        return self.request("ping").get("result") == {}

    # ---- the end ----

    def close(self, sig=None):
        """Ends it as a client does; its exit status."""
        if sig:
            self.process.send_signal(sig)
        else:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        status = self.process.wait(BOUND)
        self.reader.join(BOUND)
        return status

    def remove(self):
        self.reading.set()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(BOUND)
        self.reader.join(BOUND)
        for f in (self.process.stdin, self.process.stdout, self.stderr):
            try:
                f.close()
            except BrokenPipeError:
                pass

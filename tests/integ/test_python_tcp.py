"""The Python client over TCP: who it is, its token; which nobody gets to see."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import traceback
import unittest
from types import SimpleNamespace
from unittest import mock

from harness import BOUND, wait_for
from pyclient import DEERFLOW, environment, sbxd
from sbxd.aio import AsyncClient, AsyncSandbox
from tcp import TOKEN, TcpTest, TokenFile, free_port

try:
    import deerflow.sandbox.sandbox_provider  # noqa: F401
except ImportError:
    sys.path.insert(0, DEERFLOW)

from sbxd.deerflow import SbxdProvider  # noqa: E402

WRONG = "wrong-wrong-wrong-wrong"
VARIABLES = ("SBXD_SOCKET", "SBXD_URL", "SBXD_TOKEN", "SBXD_TOKEN_FILE")

# Everything that can be said of a client and of what fails, as much of it as Python ever says.
TALKATIVE = """
import asyncio, logging, sys
logging.basicConfig(level=logging.DEBUG)
from sbxd import Sandbox, SbxdError
from sbxd.aio import AsyncSandbox
with Sandbox.acquire("tcp", "talkative") as box:
    print(box.run("env").stdout, box, box._client, vars(box._client), box._tether.address, file=sys.stderr)
async def main():
    async with AsyncSandbox.acquire("tcp", "talkative") as box:
        print((await box.run("env")).stdout, box, box._client, vars(box._client), file=sys.stderr)
asyncio.run(main(), debug=True)
print("done")
"""


@contextlib.contextmanager
def variables(**values):
    """Of the environment just these say where the service is."""
    others = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    with mock.patch.dict(os.environ, {**others, **values}, clear=True):
        yield


class OverTcp(TcpTest):
    def url(self, host="127.0.0.1"):
        return f"http://{host}:{self.port}"

    def client(self, token=TOKEN, **more):
        client = sbxd.Client(url=self.url(), token=token, timeout=BOUND, **more)
        self.addCleanup(client.close)
        return client

    @property
    def thread(self):
        return self.id().rpartition(".")[2]


class Clients(OverTcp):
    def test_all_that_a_box_can(self):
        with sbxd.Sandbox.acquire("tcp", self.thread, client=self.client()) as box:
            self.assertEqual(box.run("cat", stdin="in").stdout, "in")
            data = os.urandom(3 << 20)
            box.write("/tmp/f", data)
            self.assertEqual(box.read("/tmp/f"), data)
            self.assertEqual([p.text for p in box.stream("echo one")], ["one\n"])
            with box.exec(["cat"]) as process:
                self.assertEqual(process.communicate(data, BOUND), (data, b""))
            self.assertEqual(self.d.inspect(box.id)["leases"], 1)
            box.renew()
            self.assertEqual(self.d.inspect(box.id)["leases"], 1)
        self.assertEqual((self.d.inspect(box.id)["state"], self.d.inspect(box.id)["leases"]), ("warm", 0))

    def test_all_that_a_box_can_on_a_loop(self):
        async def main():
            async with AsyncClient(url=self.url(), token=TOKEN, timeout=BOUND) as client:
                async with AsyncSandbox.acquire("tcp", self.thread, client=client) as box:
                    data = os.urandom(3 << 20)
                    await box.write("/tmp/f", data)
                    self.assertEqual(await box.read("/tmp/f"), data)
                    self.assertEqual([p.text async for p in box.stream("echo one")], ["one\n"])
                    async with await box.exec(["cat"]) as process:
                        self.assertEqual(await process.communicate(data, BOUND), (data, b""))
                    results = await asyncio.gather(*(box.run(f"echo {i}") for i in range(30)))
                    self.assertEqual([r.stdout for r in results], [f"{i}\n" for i in range(30)])
                return box.id

        self.assertEqual(self.d.inspect(asyncio.run(main()))["state"], "warm")

    def test_the_environment_says_where(self):
        for values in ({"SBXD_TOKEN": TOKEN}, {"SBXD_TOKEN_FILE": self.token.path}):
            with variables(SBXD_URL=self.url("localhost"), **values):
                with sbxd.Sandbox.acquire("tcp", self.thread) as box:
                    self.assertEqual((box.run("echo on").stdout, box._client.address), ("on\n", self.url("localhost")))

                async def main():
                    async with AsyncSandbox.acquire("tcp", self.thread) as box:
                        return (await box.run("echo on")).stdout, box._client.address

                self.assertEqual(asyncio.run(main()), ("on\n", self.url("localhost")))
                box._client.close()
        with variables(SBXD_URL=self.url(), SBXD_SOCKET=self.d.socket):
            self.assertEqual(sbxd.Client().address, self.d.socket)
        with variables(SBXD_URL="http://127.0.0.1:1", SBXD_SOCKET=self.d.socket):
            self.assertEqual(sbxd.Client(url=self.url(), token=TOKEN).address, self.url())

    def test_a_wrong_token(self):
        with self.assertRaises(sbxd.Unauthenticated) as caught:
            sbxd.Sandbox.acquire("tcp", self.thread, client=self.client(WRONG))
        self.assertEqual((caught.exception.status, caught.exception.reason), (401, "unauthenticated"))
        self.assertIsInstance(caught.exception, PermissionError)

        async def main():
            async with AsyncClient(url=self.url(), token=WRONG) as client:
                await AsyncSandbox.acquire("tcp", self.thread, client=client)

        with self.assertRaises(sbxd.Unauthenticated):
            asyncio.run(main())
        self.assertEqual(self.d.pool()["active"], 0)

    def test_a_token_file_is_read_anew(self):
        file = TokenFile()
        self.addCleanup(file.remove)
        client = sbxd.Client(url=self.url(), token_file=file.path)
        self.addCleanup(client.close)
        with sbxd.Sandbox.acquire("tcp", self.thread, client=client) as box:
            file.write(WRONG)
            for call in (lambda: box.run("true"), lambda: box.stream("true"), lambda: box.exec("true"), client.pool):
                self.assertRaises(sbxd.Unauthenticated, call)
            file.write(TOKEN + "\r\n")
            self.assertEqual(box.run("echo again").stdout, "again\n")

    def test_the_lease_of_a_process_that_is_killed_ends(self):
        script = "import sys; from sbxd import Sandbox; b = Sandbox.acquire('tcp', 'killed'); print(b.id, flush=True); sys.stdin.read()"
        env = environment(SBXD_URL=self.url(), SBXD_TOKEN=TOKEN)
        env.pop("SBXD_SOCKET", None)
        with subprocess.Popen([sys.executable, "-c", script], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
            box = p.stdout.readline().strip()
            self.assertEqual(self.d.inspect(box)["leases"], 1)
            p.send_signal(signal.SIGKILL)
        wait_for("the lease to end", lambda: self.d.inspect(box)["leases"] == 0)

    def test_a_name_is_looked_up(self):
        def lookup(host, port, *args, **more):
            self.assertEqual(host, "sbxd.test")
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", n)) for n in (1, port)]  # nobody is at 1

        more = {"url": self.url("sbxd.test"), "token": TOKEN, "allow_remote_http": True}

        async def main():
            async with AsyncClient(**more) as client:
                return await client.pool()

        with mock.patch("socket.getaddrinfo", lookup), sbxd.Client(**more) as client:
            self.assertEqual(client.pool()["replicas"], asyncio.run(main())["replicas"])
        with mock.patch("socket.getaddrinfo", side_effect=socket.gaierror(-2, "no such name")):
            with self.assertRaisesRegex(sbxd.ConnectionFailed, r"http://sbxd\.test:\d+: no such name"):
                sbxd.Client(**more).pool()
            with self.assertRaisesRegex(sbxd.ConnectionFailed, r"http://sbxd\.test:\d+: no such name"):
                asyncio.run(main())

    def test_nobody_is_there(self):
        for host in ("127.0.0.1", "localhost"):
            with self.assertRaisesRegex(sbxd.ConnectionFailed, f"http://{host}:1: Connection refused"):
                sbxd.Client(url=f"http://{host}:1", token=TOKEN).pool()

            async def main(host=host):
                await AsyncClient(url=f"http://{host}:1", token=TOKEN).pool()

            with self.assertRaisesRegex(sbxd.ConnectionFailed, f"http://{host}:1"):
                asyncio.run(main())

    def test_deerflow(self):
        app = SimpleNamespace(sandbox=SimpleNamespace(base_url=self.url(), api_key=TOKEN))
        with variables(), mock.patch("sbxd.deerflow.get_app_config", lambda: app):
            provider = SbxdProvider()
            self.addCleanup(provider.shutdown)
            app.sandbox.api_key = None
            self.assertRaisesRegex(sbxd.BadAddress, "needs a token", SbxdProvider)
        box = provider.get(provider.acquire(self.thread, user_id="tcp"))
        self.assertEqual(box.execute_command("echo over tcp"), "over tcp\n")
        provider.release(box.id)
        self.assertEqual(self.d.inspect(box.id)["leases"], 0)


class Restart(OverTcp):
    """Unlike one over the socket a lease does not outlive sbxd; its box does."""

    @classmethod
    def setUpClass(cls):
        cls.port = free_port()
        super().setUpClass()

    def test_a_lease_is_renewed(self):
        with sbxd.Sandbox.acquire("tcp", self.thread, client=self.client()) as box:
            box.write("/tmp/f", "kept")
            self.d.kill()
            self.assertRaises(sbxd.ConnectionFailed, box.run, "true")
            self.d.start()
            wait_for("the lease to end", lambda: self.d.inspect(box.id)["leases"] == 0)
            box.renew()
            self.assertEqual((self.d.inspect(box.id)["leases"], box.read("/tmp/f")), (1, b"kept"))


class Secrets(OverTcp):
    def said(self, call):
        """All that Python says of what fails, with what is behind it."""
        with variables():
            try:
                call()
            except sbxd.SbxdError as e:
                return "".join(traceback.format_exception(e)) + repr(e) + repr(vars(e))
        raise AssertionError("nothing failed")

    def test_the_token_is_not_told(self):
        secret = "a-secret-for-nobody-else"
        with open(self.d.dir + "/spoilt", "w", encoding="utf-8") as f:
            f.write(f"{secret} {secret}")
        new = sbxd.Client
        url = self.url()
        for call in (
            lambda: new(url=url, token=secret).pool(),
            lambda: new(url="http://127.0.0.1:1", token=secret).pool(),
            lambda: new(url=url, token=secret, token_file="/x"),
            lambda: new(url=f"http://10.1.2.3:{self.port}", token=secret),
            lambda: new(url=f"http://{secret}@127.0.0.1:{self.port}"),
            lambda: new(url=f"http://127.0.0.1:{secret}"),
            lambda: new(url=f"{url}/?token={secret}", token=secret),
            lambda: new("/socket", token=secret),
            lambda: new(url=url, token=secret + "\r\nX-Box-Generation: 1"),
            lambda: new(url=url, token=secret + "ä"),
            lambda: new(url=url, token=secret * 100),
            lambda: new(url=url, token_file=self.d.dir + "/spoilt").pool(),
        ):
            self.assertNotIn(secret, self.said(call))
        client = self.client()
        for text in (repr(client), repr(vars(client)), str(client._address), repr(AsyncClient(url=url, token=TOKEN))):
            self.assertNotIn(TOKEN, text)
            self.assertIn(str(self.port), text)

    def test_nor_logged_nor_given_to_a_box(self):
        env = environment(SBXD_URL=self.url(), SBXD_TOKEN=TOKEN)
        env.pop("SBXD_SOCKET", None)
        r = subprocess.run([sys.executable, "-X", "dev", "-c", TALKATIVE], env=env, capture_output=True, text=True, timeout=BOUND * 4)
        self.assertEqual((r.returncode, r.stdout), (0, "done\n"), r.stderr)
        self.assertIn("DEBUG", r.stderr)
        self.assertNotIn(TOKEN, r.stderr)

    def test_what_is_no_address(self):
        logging.getLogger("asyncio").setLevel(logging.WARNING)
        for says, more in (
            ("which one is meant", {"socket_path": "/x", "url": self.url()}),
            ("which one is meant", {"url": self.url(), "token": TOKEN, "token_file": "/x"}),
            ("needs a token", {"url": self.url()}),
            ("no URL", {"token": TOKEN}),
            ("no URL", {"socket_path": "/x", "token_file": "/x"}),
            ("http://HOST:PORT", {"url": "https://127.0.0.1:1", "token": TOKEN}),
            ("http://HOST:PORT", {"url": "127.0.0.1:1", "token": TOKEN}),
            ("http://HOST:PORT", {"url": "http://:1", "token": TOKEN}),
            ("http://HOST:PORT", {"url": "http://127.0.0.1:1/v1", "token": TOKEN}),
            ("http://HOST:PORT", {"url": "http://127.0.0.1:99999", "token": TOKEN}),
            ("printable ASCII", {"url": self.url(), "token": ""}),
            ("another host", {"url": "http://10.1.2.3:1", "token": TOKEN}),
            ("another host", {"url": "http://[2001:db8::1]:1", "token": TOKEN}),
            ("another host", {"url": "http://127.0.0.1.example.org:1", "token": TOKEN}),
            ("another host", {"url": "http://0.0.0.0:1", "token": TOKEN}),
        ):
            with self.subTest(says, **more), variables():
                for kind in (sbxd.Client, AsyncClient):
                    self.assertRaisesRegex(sbxd.BadAddress, says, kind, **more)
        with variables(SBXD_URL="http://10.1.2.3:1", SBXD_TOKEN=TOKEN):
            self.assertRaisesRegex(sbxd.BadAddress, "another host", sbxd.Sandbox.acquire, "tcp", "x")
        with variables():
            allowed = sbxd.Client(url="http://10.1.2.3:1/", token=TOKEN, allow_remote_http=True)
            self.assertEqual(allowed.address, "http://10.1.2.3:1")
            missing = sbxd.Client(url=self.url(), token_file="/no/such/file")
            self.assertRaisesRegex(sbxd.BadAddress, "/no/such/file cannot be read: No such file", missing.pool)


@unittest.skipUnless(os.path.exists("/proc/net/if_inet6"), "there is no IPv6 here")
class Six(OverTcp):
    host = "::1"

    def test_localhost_is_either(self):
        for host in ("localhost", "[::1]"):
            with sbxd.Client(url=self.url(host), token=TOKEN) as client:
                self.assertIn("replicas", client.pool())

            async def main(host=host):
                async with AsyncClient(url=self.url(host), token=TOKEN) as client:
                    return await client.pool()

            self.assertIn("replicas", asyncio.run(main()))

"""Starting with TCP: addresses and token files that are refused, and those that are not."""

import http.client
import os
import re
import socket
import stat
import subprocess
import tempfile
import unittest

from harness import BOUND, BUILD, IS_ROOT, Daemon
from tcp import OTHER_UID, TOKEN, TokenFile


class Refused(unittest.TestCase):
    """What is not as it must be keeps sbxd from starting, and is named."""

    def setUp(self):
        self.token = TokenFile()
        self.addCleanup(self.token.remove)
        self.dir = tempfile.mkdtemp(prefix="sbxd-test-")
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.dir], check=True))

    def start(self, listen="127.0.0.1:0", token=None, config=""):
        path = os.path.join(self.dir, "c.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(config)
        return subprocess.run([f"{BUILD}/sbxd", "--config", path, "--runtime-dir", f"{self.dir}/run", "--state-dir", f"{self.dir}/state", "--instance",
                               f"tcp{os.getpid()}", "--listen-tcp", listen, "--token-file", token or self.token.path],
                              capture_output=True, text=True, timeout=60)

    def refused(self, status, *says, **kw):
        r = self.start(**kw)
        self.assertEqual(r.returncode, status, r)
        for text in says:
            self.assertIn(text, r.stderr)
        self.assertFalse(os.path.exists(f"{self.dir}/run/sbxd.sock"))
        self.assertFalse(os.path.exists(f"/dev/shm/sbxd-{os.geteuid()}-tcp{os.getpid()}"))

    def test_addresses_that_others_reach(self):
        for listen in ("0.0.0.0:8080", "192.0.2.1:80", "[::]:8080"):
            self.refused(2, "--listen-tcp", "no loopback address", "listen_tcp_public", listen=listen)

    def test_one_without_the_other(self):
        for args in (["--listen-tcp", "127.0.0.1:0"], ["--token-file", self.token.path]):
            r = subprocess.run([f"{BUILD}/sbxd", *args], capture_output=True, text=True, timeout=60)
            self.assertEqual(r.returncode, 2)
            self.assertIn("token_file", r.stderr)

    def test_an_address_that_is_taken(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            self.refused(1, "listen_tcp 127.0.0.1:%d" % s.getsockname()[1], "in use", listen="127.0.0.1:%d" % s.getsockname()[1])

    def test_files_that_are_none(self):
        fifo = os.path.join(self.dir, "fifo")
        os.mkfifo(fifo, 0o600)
        for path, says in (("/no/such/file", "No such file"), (self.dir, "must be a regular file"), (fifo, "must be a regular file"),
                           ("/dev/null", "must be a regular file")):
            self.refused(1, "token_file " + path, says, token=path)

    def test_files_that_others_may_use(self):
        for mode in (0o640, 0o620, 0o604, 0o602, 0o644, 0o666):
            os.chmod(self.token.path, mode)
            self.refused(1, "token_file " + self.token.path, "group or others", f"chmod 600 {self.token.path}")

    def test_tokens_that_are_none(self):
        for text, says in (("", "16 to 512"), ("\n", "16 to 512"), ("a" * 15, "has less"), ("a" * 15 + "\r\n", "has less"), ("a" * 513, "has more"),
                           ("a" * 100_000, "has more"), ("a" * 20 + "\n\n", "printable ASCII"), ("a" * 10 + " " + "b" * 10, "without blanks"),
                           ("a" * 20 + "\x7f", "printable"), ("é" * 20, "printable"), ("a" * 20 + "\0", "printable"), ("\ta" * 20, "printable")):
            self.token.write(text)
            self.refused(1, "token_file " + self.token.path, says)

    def test_tokens_that_are_some(self):
        for text in ("a" * 16, "~!#" * 10 + "\r\n", "a" * 512 + "\n"):
            self.token.write(text)
            d = Daemon(f"listen_tcp: 127.0.0.1:0\ntoken_file: {self.token.path}\n")
            try:
                port = int(re.search(r"http://127\.0\.0\.1:(\d+):", d.log()).group(1))
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
                self.assertEqual(d.request("GET", "/v1/me", headers={"Authorization": "Bearer " + text.strip()}, connection=c).status, 200)
                c.close()
                self.assertEqual((d.stop(), d.remains()), (0, []))
            finally:
                d.kill()
                d.remove()

    @unittest.skipUnless(IS_ROOT, "gives a file away")
    def test_a_file_of_somebody_else_when_not_root(self):
        """It can be read through a capability only, and would make its owner the client."""
        os.chown(self.token.path, OTHER_UID, OTHER_UID)
        os.chmod(self.dir, stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
        sbxd = os.path.join(self.dir, "sbxd")
        subprocess.run(["cp", f"{BUILD}/sbxd", sbxd], check=True)
        r = subprocess.run(["setpriv", "--reuid", "4321", "--regid", "4321", "--clear-groups", "--inh-caps", "+dac_read_search", "--ambient-caps",
                            "+dac_read_search", sbxd, "--runtime-dir", f"{self.dir}/run", "--state-dir", f"{self.dir}/state", "--listen-tcp", "127.0.0.1:0",
                            "--token-file", self.token.path], capture_output=True, text=True, timeout=60)
        self.assertEqual(r.returncode, 1, r)
        self.assertIn(f"token_file {self.token.path}: belongs to uid {OTHER_UID}", r.stderr)


@unittest.skipUnless(IS_ROOT, "binds an address of another network")
class Public(unittest.TestCase):
    def test_when_the_configuration_says_so(self):
        token = TokenFile()
        d = Daemon(f"listen_tcp: 0.0.0.0:0\nlisten_tcp_public: true\ntoken_file: {token.path}\n")
        try:
            port = int(re.search(r"http://0\.0\.0\.0:(\d+):", d.log()).group(1))
            for host in ("127.0.0.1", "127.0.0.2"):
                c = http.client.HTTPConnection(host, port, timeout=BOUND)
                self.assertEqual(d.request("GET", "/v1/me", connection=c).status, 401)
                self.assertEqual(d.request("GET", "/v1/me", headers={"Authorization": f"Bearer {TOKEN}"}, connection=c).status, 200)
                c.close()
            self.assertEqual((d.stop(), d.remains()), (0, []))
        finally:
            d.kill()
            d.remove()
            token.remove()


class Flags(unittest.TestCase):
    def test_flags_are_enough(self):
        token = TokenFile()
        d = Daemon("", args=("--listen-tcp", "127.0.0.1:0", "--token-file", token.path))
        try:
            port = int(re.search(r"http://127\.0\.0\.1:(\d+):", d.log()).group(1))
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
            self.assertEqual(d.request("GET", "/v1/me", headers={"Authorization": f"Bearer {TOKEN}"}, connection=c).status, 200)
            c.close()
            self.assertEqual((d.stop(), d.remains()), (0, []))
        finally:
            d.kill()
            d.remove()
            token.remove()


if __name__ == "__main__":
    unittest.main()

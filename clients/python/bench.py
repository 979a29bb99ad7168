"""What a call costs over the bare round trip: the same requests by bytes on a socket, and by the client, in turns.

Asks the service at SBXD_SOCKET, or a private one that it starts. Ends with 1 if a call takes 200 us more than it must.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Awaitable, Callable, Iterator

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from sbxd import Client, Sandbox  # noqa: E402
from sbxd.aio import AsyncClient, AsyncSandbox  # noqa: E402

ALLOWED_US = 200.0


class Bare:
    """A socket, a request that was written before, and an answer that is read to its end and not looked at."""

    def __init__(self, path: str) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)

    def ask(self, request: bytes) -> None:
        self.sock.sendall(request)
        data = self.sock.recv(65536)
        end = data.find(b"\r\n\r\n") + 4
        at = data.find(b"Content-Length: ") + 16
        left = int(data[at : data.find(b"\r", at)]) - (len(data) - end)
        while left > 0:
            left -= len(self.sock.recv(65536))


@contextlib.contextmanager
def service(program: str) -> Iterator[str]:
    """A private sbxd. Yields its socket."""
    with tempfile.TemporaryDirectory(prefix="sbxd-bench-") as place:
        where = ["--runtime-dir", f"{place}/run", "--state-dir", f"{place}/state", "--instance", f"bench-{os.getpid()}"]
        with open(f"{place}/log", "w", encoding="utf-8") as log:
            process = subprocess.Popen([program, *where], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            for _ in range(1000):
                if process.poll() is not None or os.path.exists(f"{place}/run/sbxd.sock"):
                    break
                time.sleep(0.01)
            yield f"{place}/run/sbxd.sock"
        finally:
            process.terminate()
            process.wait(60)


def get(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: sbxd\r\n\r\n".encode()


def post(target: str, body: bytes) -> bytes:
    return f"POST {target} HTTP/1.1\r\nHost: sbxd\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def taken(call: Callable[[], object]) -> float:
    before = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - before) / 1000


async def taken_async(call: Callable[[], Awaitable[object]]) -> float:
    before = time.perf_counter_ns()
    await call()
    return (time.perf_counter_ns() - before) / 1000


async def measure(path: str | None, rounds: int) -> int:
    client = Client(path)
    box = Sandbox.acquire("bench", "python", client=client)
    async_client = AsyncClient(path)
    async_box = await AsyncSandbox.acquire("bench", "python", client=async_client)
    box.write("/tmp/small", b"x" * 1000)
    bare, to_box = Bare(client.address), Bare(client.address)
    b = f"/v1/boxes/{box.id}"
    rows: list[tuple[str, Bare, bytes, Callable[[], object], Callable[[], Awaitable[object]]]] = [
        ("pool", bare, get("/v1/pool"), client.pool, async_client.pool),
        ("stat", to_box, get(f"{b}/fs/stat?path=/tmp"), lambda: box.stat("/tmp"), lambda: async_box.stat("/tmp")),
        (
            "read 1 kB",
            to_box,
            get(f"{b}/fs/read?path=/tmp/small"),
            lambda: box.read("/tmp/small"),
            lambda: async_box.read("/tmp/small"),
        ),
        (
            "run true",
            to_box,
            post(f"{b}/run", b'{"argv":["true"],"timeout_seconds":600}'),
            lambda: box.run(["true"]),
            lambda: async_box.run(["true"]),
        ),
    ]
    worst = 0.0
    print(f"{'p50, us':12}{'bare':>8}{'client':>8}{'more':>8}{'ratio':>7}{'asyncio':>9}{'more':>8}{'ratio':>7}")
    for name, connection, request, call, call_async in rows:
        times: tuple[list[float], list[float], list[float]] = ([], [], [])
        for i in range(rounds + 50):
            found = taken(lambda: connection.ask(request)), taken(call), await taken_async(call_async)
            if i >= 50:
                for kept, t in zip(times, found):
                    kept.append(t)
        raw, own, own_async = (statistics.median(t) for t in times)
        print(
            f"{name:12}{raw:8.0f}{own:8.0f}{own - raw:8.0f}{own / raw:7.2f}"
            f"{own_async:9.0f}{own_async - raw:8.0f}{own_async / raw:7.2f}"
        )
        worst = max(worst, own - raw)
    box.close()
    await async_box.close()
    await async_client.close()
    print(f"a call costs at most {worst:.0f} us over the bare round trip; {ALLOWED_US:.0f} are allowed")
    return 0 if worst <= ALLOWED_US else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sbxd", metavar="PROGRAM", help="starts a private service")
    parser.add_argument("--rounds", metavar="N", type=int, default=2000)
    options = parser.parse_args()
    with service(options.sbxd) if options.sbxd else contextlib.nullcontext() as path:
        return asyncio.run(measure(path, options.rounds))


if __name__ == "__main__":
    sys.exit(main())

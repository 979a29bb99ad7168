"""The Python client for asyncio: the same as the blocking one, and nothing that blocks the loop."""

import asyncio
import inspect
import json
import os
import signal
import subprocess
import sys

from harness import BOUND, wait_for
from pyclient import ClientTest, environment, sbxd, server
from sbxd.aio import AsyncClient, AsyncProcess, AsyncSandbox, AsyncStream

# 500 commands at once on one loop, in a process of its own. Each callback of the loop is measured: the cpu time that it
# took, and whether its thread went to sleep in it, which only a call that blocks does. `plain` is asyncio without the
# client.
FIVE_HUNDRED = """
import asyncio, json, resource, socket, sys, time
from sbxd.aio import AsyncSandbox

BOXES, EACH = 10, 50
worst = {}

def watch(phase):
    worst[phase] = {"callbacks": 0, "cpu": 0.0, "asleep": 0.0, "who": ""}

def measured(run):
    def _run(self):
        switches = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        wall, cpu = time.perf_counter(), time.thread_time()
        run(self)
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        now = worst[phase]
        now["callbacks"] += 1
        now["cpu"] = max(now["cpu"], cpu)
        if resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw != switches and wall > now["asleep"]:
            now["asleep"], now["who"] = wall, repr(self)
    return _run

async def plain():
    async def serve(reader, writer):
        writer.write(await reader.readline())
        writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    async def ask():
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"x\\n")
        await reader.readline()
        writer.close()
    await asyncio.gather(*(ask() for _ in range(BOXES * EACH)))
    server.close()

async def commands():
    boxes = [await AsyncSandbox.acquire("five", f"{i}") for i in range(BOXES)]
    for box in boxes:
        (await box.run("mkfifo /tmp/gate && (sleep 1000 <>/tmp/gate >/dev/null 2>&1 &)")).check()
    async def one(i):
        return (await boxes[i % BOXES].run(f"read x </tmp/gate; echo {i}")).check().stdout
    tasks = [asyncio.create_task(one(i)) for i in range(BOXES * EACH)]
    at_once = 0
    while at_once < BOXES * EACH and not any(t.done() for t in tasks):
        at_once = sum([(await box.inspect()).get("in_flight", 0) for box in boxes])
    for box in boxes:
        (await box.run(f"head -c {EACH} /dev/zero | tr '\\\\0' '\\\\n' >/tmp/gate")).check()
    out = await asyncio.gather(*tasks)
    for box in boxes:
        await box.close()
    return at_once, out == [f"{i}\\n" for i in range(BOXES * EACH)]

asyncio.events.Handle._run = measured(asyncio.events.Handle._run)
phase = "plain"
watch(phase)
asyncio.run(plain())
phase = "client"
watch(phase)
at_once, right = asyncio.run(commands())
print(json.dumps({"worst": worst, "at_once": at_once, "right": right}))
"""


class AsyncTest(ClientTest):
    """`run` is one coroutine with a client of its own."""

    def run_async(self, body):
        async def whole():
            async with AsyncClient(self.d.socket, timeout=BOUND) as client:
                await body(client)

        asyncio.run(asyncio.wait_for(whole(), BOUND * 4))

    def with_box(self, body):
        async def whole(client):
            async with AsyncSandbox.acquire("async", self.thread, client=client) as box:
                await body(box)

        self.run_async(whole)

    async def until(self, condition):
        async def poll():
            while not await asyncio.to_thread(condition):
                await asyncio.sleep(0.002)

        await asyncio.wait_for(poll(), BOUND)


class Sandboxes(AsyncTest):
    def test_leases(self):
        async def body(client):
            box = await AsyncSandbox.acquire("async", self.thread, client=client)
            self.assertEqual((box.source, await asyncio.to_thread(self.leases, box)), ("cold", 1))
            async with AsyncSandbox.acquire("async", self.thread, client=client) as second:
                self.assertEqual((second.source, second.generation), ("active", box.generation))
            self.assertEqual(await asyncio.to_thread(lambda: self.d.release(box.id).json["status"]), "warm")
            await box.renew()
            await box.renew()
            self.assertEqual(await asyncio.to_thread(self.leases, box), 1)
            await box.close()
            await box.close()
            self.assertEqual(await asyncio.to_thread(self.leases, box), 0)
            with self.assertRaises(sbxd.Closed):
                await box.run("true")

        self.run_async(body)

    def test_commands_and_files(self):
        async def body(box):
            r = await box.run("cat; echo err >&2; exit 3", stdin="in")
            self.assertEqual((r.stdout, r.stderr, r.exit_code), ("in", "err\n", 3))
            self.assertTrue((await box.run("sleep 1000", timeout=0.2)).timed_out)
            data = os.urandom(5 << 20)
            await box.write("/tmp/d/f", data) if await box.mkdir("/tmp/d") else self.fail()
            self.assertEqual(await box.read("/tmp/d/f"), data)
            await box.write("/tmp/d/t", "a\nb\n")
            self.assertEqual((await box.read_text("/tmp/d/t", first=2), (await box.stat("/tmp/d/t")).size), ("b\n", 4))
            self.assertEqual([e.path for e in (await box.list_dir("/tmp/d")).entries], ["f", "t"])
            self.assertEqual((await box.glob("/tmp/d", "t")).paths, ["t"])
            self.assertEqual([m.number for m in (await box.grep("/tmp/d", "B")).lines], [2])
            await box.rename("/tmp/d/t", "/tmp/d/u")
            archive = await box.get_tar("/tmp/d")
            self.assertEqual(await box.remove("/tmp/d", recursive=True), 3)
            await box.put_tar("/tmp", archive)
            self.assertEqual(await box.read("/tmp/d/u"), b"a\nb\n")
            with self.assertRaises(FileNotFoundError):
                await box.read("/tmp/none")

        self.with_box(body)

    def test_it_can_what_the_blocking_one_can(self):
        for kind, twin in ((sbxd.Sandbox, AsyncSandbox), (sbxd.Process, AsyncProcess), (sbxd.Stream, AsyncStream)):
            names = {n for n in dir(kind) if not n.startswith("_")}
            self.assertLessEqual(names, set(dir(twin)))
            for name in names:
                a, b = getattr(kind, name), getattr(twin, name)
                if callable(a) and name != "acquire":
                    strip = [
                        [(p.name, p.default, p.kind) for p in inspect.signature(f).parameters.values()] for f in (a, b)
                    ]
                    self.assertEqual(strip[0], strip[1], f"{twin.__name__}.{name}")

    def test_a_stream(self):
        async def body(box):
            stream = box.stream("echo one; sleep 0.05; echo two >&2; exit 4")
            self.assertEqual([(p.stream, p.data) async for p in stream], [("stdout", b"one\n"), ("stderr", b"two\n")])
            self.assertEqual(stream.result.exit_code, 4)
            async with box.stream("echo begin; exec sleep 4321") as stream:
                async for piece in stream:
                    self.assertEqual(piece.text, "begin\n")
                    break
            await self.until(lambda: self.d.run(box.id, "grep -l sleep /proc/[0-9]*/comm | wc -l")["stdout"] == "0\n")
            self.assertEqual(sum([len(p.data) async for p in box.stream("head -c 5000000 /dev/zero")]), 5000000)
            with self.assertRaises(sbxd.ExecutionFailed):
                [p async for p in box.stream(["/no/such"])]

        self.with_box(body)

    def test_a_process(self):
        async def body(box):
            async with await box.exec("read l; echo got $l; exit 5") as p:
                await p.write("foo\n")
                self.assertEqual(
                    ([o.text async for o in p], await p.wait(BOUND), p.status), (["got foo\n"], 5, "completed")
                )
            data = os.urandom(4 << 20)
            async with await box.exec(["cat"]) as p:
                self.assertEqual(await p.communicate(data, BOUND), (data, b""))
            async with await box.exec("stty size; read x", tty=True, size=(90, 20)) as p:
                self.assertEqual((await p.read(BOUND)).text, "20 90\r\n")
                await p.resize(1, 2)
                await p.signal(signal.SIGTERM)
                self.assertEqual(await p.wait(BOUND), -15)
            async with await box.exec("sleep 1000") as p:
                for wait in (p.read(0.05), p.wait(0.05), p.communicate("x", 0.05)):
                    with self.assertRaises(sbxd.DeadlineExceeded):
                        await wait
            self.assertEqual((p.returncode, p.status), (-9, "killed"))
            self.assertEqual((await box.run("grep -l sleep /proc/[0-9]*/comm | wc -l")).stdout, "0\n")

        self.with_box(body)

    def test_cancelling_kills_the_command(self):
        async def body(box):
            task = asyncio.create_task(box.run("exec sleep 4321"))
            await self.until(lambda: self.d.inspect(box.id).get("in_flight"))
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await self.until(lambda: self.d.run(box.id, "grep -l sleep /proc/[0-9]*/comm | wc -l")["stdout"] == "0\n")
            self.assertEqual((await box.run("echo next")).stdout, "next\n")

        self.with_box(body)

    def test_calls_wait_for_their_turn(self):
        async def body(client):
            client._pool._most_of_box = 3
            async with AsyncSandbox.acquire("async", self.thread, client=client) as box:
                tasks = [asyncio.create_task(box.run(f"echo {i}; sleep 0.05")) for i in range(12)]
                await asyncio.sleep(0)
                tasks[5].cancel()
                done = await asyncio.gather(*tasks, return_exceptions=True)
                self.assertEqual(
                    [r.stdout for i, r in enumerate(done) if i != 5], [f"{i}\n" for i in range(12) if i != 5]
                )
                self.assertIsInstance(done[5], asyncio.CancelledError)
                self.assertEqual((client._pool._used, client._pool._queues), ({}, {}))
                self.assertLessEqual(len(client._pool._idle[box.id]), 3)

        self.run_async(body)

    def test_a_call_does_not_reach_a_successor(self):
        async def body(client):
            old = [await AsyncSandbox.acquire("async", self.thread, client=client) for _ in range(2)]
            await asyncio.to_thread(self.d.request, "DELETE", f"/v1/boxes/{old[0].id}?force=1")
            async with AsyncSandbox.acquire("async", self.thread, client=client) as new:
                self.assertEqual(new.id, old[0].id)
                with self.assertRaises(sbxd.StaleGeneration):
                    await old[0].write("/tmp/x", "stray")
                with self.assertRaises(sbxd.StaleGeneration):
                    async for _ in old[1].stream("true"):
                        pass
                with self.assertRaises(sbxd.NotFound):
                    await new.read("/tmp/x")
            for box in old:
                await box.close()

        self.run_async(body)

    def test_a_box_that_is_gone_stays_gone(self):
        async def body(client):
            box = await AsyncSandbox.acquire("async", self.thread, client=client)
            await asyncio.to_thread(self.d.request, "DELETE", f"/v1/boxes/{box.id}?force=1")
            with self.assertRaises(sbxd.BoxGone):
                await box.read("/etc/hostname")
            async with AsyncSandbox.acquire("async", self.thread, client=client):
                with self.assertRaises(sbxd.BoxGone):
                    await box.run("true")
                await box.close()
                self.assertEqual(await asyncio.to_thread(self.leases, box), 1)

        self.run_async(body)

    def test_a_server_that_says_nothing(self):
        async def body(path):
            async with AsyncClient(path, timeout=0.1) as client:
                with self.assertRaises(sbxd.DeadlineExceeded):
                    await client.pool()

        with server() as path:
            asyncio.run(body(path))

        async def nobody():
            with self.assertRaisesRegex(sbxd.ConnectionFailed, "/no/such"):
                await AsyncClient("/no/such/socket").pool()

        asyncio.run(nobody())

    def test_nothing_is_left_on_a_loop_that_ends(self):
        script = (
            "import asyncio\nfrom sbxd.aio import AsyncSandbox\nasync def main():\n"
            "    async with AsyncSandbox.acquire('a', 'left') as box:\n"
            "        await asyncio.gather(*(box.run('true') for _ in range(9)))\nasyncio.run(main())\n"
        )
        r = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", script],
            env=environment(self.d),
            capture_output=True,
            text=True,
            timeout=BOUND * 4,
        )
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        wait_for("the lease to end", lambda: self.client.pool()["active"] == 0)


class FiveHundred(ClientTest):
    def test_commands_at_once(self):
        r = subprocess.run(
            [sys.executable, "-c", FIVE_HUNDRED],
            env=environment(self.d),
            capture_output=True,
            text=True,
            timeout=BOUND * 10,
        )
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        found = json.loads(r.stdout)
        plain, client = found["worst"]["plain"], found["worst"]["client"]
        self.assertEqual((found["at_once"], found["right"]), (500, True))
        self.assertGreater(client["callbacks"], 500)
        self.assertLess(client["asleep"], 0.05, f"a callback blocked the loop: {client}; without the client: {plain}")
        self.assertLess(
            client["cpu"],
            max(0.05, 3 * plain["cpu"]),
            f"a callback held the loop: {client}; without the client: {plain}",
        )
        if os.environ.get("SBX_SHOW"):
            print(r.stdout)

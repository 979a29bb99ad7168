"""The Python client as a package: built without a network, used from where it is installed, its types checked."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

import pypi
from harness import BOUND, IS_ROOT, ROOT, DaemonTest
from pyclient import CLIENT, DEERFLOW, environment

MYPY = "mypy==2.4.1"
OFFLINE = ["unshare", "-n"] if IS_ROOT else []
BUILD_ALL = """
import sys
from setuptools import build_meta
place = sys.argv[1]
build_meta.build_wheel(place)
build_meta.build_sdist(place)
"""
USER = """
import asyncio
from sbxd import CapacityExceeded, Result, Sandbox
from sbxd.aio import AsyncSandbox

def use(thread: str) -> str:
    try:
        with Sandbox.acquire("u", thread) as box:
            result: Result = box.run(["echo", "installed"])
            return result.stdout
    except CapacityExceeded as e:
        return f"later: {e.retry_after}"

async def use_async(thread: str) -> str:
    async with AsyncSandbox.acquire("u", thread) as box:
        pieces = [piece.text async for piece in box.stream("echo streamed")]
        async with await box.exec(["cat"]) as process:
            out, err = await process.communicate("said")
        return "".join(pieces) + out.decode()

if __name__ == "__main__":
    print(use("t"), asyncio.run(use_async("t")))
"""


def run(*args, env=None, **kw):
    r = subprocess.run(
        args,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BOUND * 10,
        env=env or {k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        **kw,
    )
    return r.returncode, r.stdout, r.stderr


def builder():
    """A Python that has what pyproject.toml asks for: Debian's, if another comes first."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and run(python, "-c", "import setuptools, wheel")[0] == 0:
            return python
    raise AssertionError("there are no setuptools and wheel: run tools/deps.sh test")


class Package(DaemonTest):
    def test_it_builds_and_installs_without_a_network(self):
        with tempfile.TemporaryDirectory(prefix="sbxd-test-") as place:
            source = shutil.copytree(CLIENT, f"{place}/source", ignore=shutil.ignore_patterns("__pycache__"))
            r = run(*OFFLINE, builder(), "-c", BUILD_ALL, place, cwd=source)
            self.assertEqual(r[0], 0, r)
            (wheel,), (sdist,) = glob.glob(f"{place}/*.whl"), glob.glob(f"{place}/*.tar.gz")
            modules = {f"sbxd/{n}" for n in os.listdir(f"{CLIENT}/sbxd") if n.endswith((".py", ".typed"))}
            with zipfile.ZipFile(wheel) as z, tarfile.open(sdist) as t:
                self.assertLessEqual(modules, set(z.namelist()))
                examples = {f"examples/{n}" for n in os.listdir(f"{CLIENT}/examples") if n.endswith(".py")}
                self.assertEqual(len(examples), 2)
                self.assertLessEqual(modules | examples, {n.partition("/")[2] for n in t.getnames()})
            r = run(sys.executable, "-m", "venv", f"{place}/venv")
            self.assertEqual(r[0], 0, r)
            r = run(*OFFLINE, f"{place}/venv/bin/pip", "install", "--no-index", "--no-deps", wheel)
            self.assertEqual(r[0], 0, r)
            with open(f"{place}/use.py", "w", encoding="utf-8") as f:
                f.write(USER)
            env = {**environment(self.d), "PYTHONPATH": ""}
            r = run(f"{place}/venv/bin/python", "-W", "error", f"{place}/use.py", env=env)
            self.assertEqual(r, (0, "installed\n streamed\nsaid\n", ""))

    def test_pip_installs_the_folder(self):
        """As a person does it. What it is built by comes from the registry, so without one it is this host's."""
        for online in (True, False):
            with tempfile.TemporaryDirectory(prefix="sbxd-test-") as place:
                source = shutil.copytree(CLIENT, f"{place}/source", ignore=shutil.ignore_patterns("__pycache__"))
                r = run(builder(), "-m", "venv", *([] if online else ["--system-site-packages"]), f"{place}/venv")
                self.assertEqual(r[0], 0, r)
                how = ["--retries", "1", "--timeout", "60"] if online else ["--no-index", "--no-build-isolation"]
                r = run(*([] if online else OFFLINE), f"{place}/venv/bin/pip", "install", *how, source)
                if online and r[0] != 0 and re.search(UNREACHABLE, r[1] + r[2]):
                    continue
                self.assertEqual(r[0], 0, r)
                r = run(f"{place}/venv/bin/python", "-c", "import sbxd; print(sbxd.__file__)", cwd=place)
                self.assertTrue(r[1].startswith(f"{place}/venv/"), r)

    def test_it_has_the_version_of_the_service(self):
        with (
            open(f"{CLIENT}/pyproject.toml", encoding="utf-8") as f,
            open(f"{CLIENT}/sbxd/__init__.py", encoding="utf-8") as g,
            open(f"{ROOT}/Makefile", encoding="utf-8") as m,
        ):
            found = [
                re.search(p, f.read(), re.M).group(1)
                for p, f in ((r'^version = "(.*)"', f), (r'^__version__ = "(.*)"', g), (r"^VERSION := (.*)", m))
            ]
        self.assertEqual(len(set(found)), 1, found)

    def test_it_needs_nothing_but_the_standard_library(self):
        r = run(sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {CLIENT!r}); import sbxd, sbxd.aio")
        self.assertEqual(r, (0, "", ""))


class Types(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.venv = pypi.environment("mypy", MYPY)

    def check(self, *what):
        env = {**environment(), "MYPYPATH": os.pathsep.join((CLIENT, DEERFLOW)), "PYTHONPATH": ""}
        return run(f"{self.venv}/bin/mypy", "--strict", "--cache-dir", f"{self.venv}/cache", *what, env=env, cwd=CLIENT)

    def test_the_package(self):
        for version in ("3.10", "3.13"):
            code, out, _ = self.check("--python-version", version, "sbxd")
            self.assertEqual(code, 0, out)

    def test_who_uses_it(self):
        with tempfile.TemporaryDirectory(prefix="sbxd-test-") as place:
            for text, errors in (
                (USER, 0),
                (USER.replace("result.stdout", "result.exit_code"), 1),
                (USER.replace("piece.text", "piece.txt"), 1),
            ):
                with open(f"{place}/use.py", "w", encoding="utf-8") as f:
                    f.write(text)
                code, out, _ = self.check(f"{place}/use.py")
                self.assertEqual((code, out.count(": error: ")), (1 if errors else 0, errors), out)

"""Packages of PyPI that tests need, each set in an environment of its own in build/, where it is made once."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import ROOT

UNREACHABLE = r"(NewConnectionError|ConnectTimeoutError|ReadTimeoutError|Temporary failure in name resolution|ProxyError)"


def run(*args, timeout=600):
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    r = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, env=env)
    return r.returncode, r.stdout + r.stderr


def environment(name, requirements, *options):
    """The folder of a virtual environment with those packages; PyPI is asked only for what is not there yet."""
    digest = hashlib.sha256("\n".join([sys.version, requirements, *options]).encode()).hexdigest()[:16]
    base = os.path.join(ROOT, "build", name)
    place = os.path.join(base, digest)
    done = os.path.join(place, "complete")  # programs in it know its name: it cannot be made elsewhere and moved here
    if os.path.exists(done):
        return place
    shutil.rmtree(base, ignore_errors=True)
    os.makedirs(base)
    code, said = run(sys.executable, "-m", "venv", place)
    assert code == 0, f"no virtual environment: {said}"
    with tempfile.NamedTemporaryFile("w", prefix="sbxd-test-", suffix=".txt") as f:
        f.write(requirements)
        f.flush()
        code, said = run(f"{place}/bin/pip", "install", "--disable-pip-version-check", "--retries", "1", "--timeout", "60",
                         "--only-binary", ":all:", *options, "-r", f.name)
    if code != 0 and re.search(UNREACHABLE, said):
        raise unittest.SkipTest(f"the package registry cannot be reached: {re.search('.*' + UNREACHABLE + '.*', said).group()}")
    assert code == 0, f"pip install: {said}"
    with open(done, "w", encoding="ascii"):
        return place

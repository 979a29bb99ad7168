"""Packages of npm that tests drive sbxd with, installed once into build/ from a lock file beside the tests."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import ROOT, slurp

UNREACHABLE = r"\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ERR_SOCKET_TIMEOUT)\b"


def install(name, *needed):
    """The folder with what tests/integ/NAME locks; npm is asked only for what is not there yet. `needed` must be in it."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            raise AssertionError(f"there is no {program}: run tools/deps.sh test")
    sources = os.path.join(ROOT, "tests/integ", name)
    digest = hashlib.sha256(slurp(f"{sources}/package-lock.json", "rb")).hexdigest()[:16]
    base = os.path.join(ROOT, "build", name)
    place = os.path.join(base, digest)
    if os.path.exists(place):
        return place
    shutil.rmtree(base, ignore_errors=True)
    os.makedirs(base)
    new = tempfile.mkdtemp(dir=base)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(f"{sources}/{file}", new)
    npm = subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-timeout=60000",
         "--fetch-retries=1"], cwd=new, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
    said = npm.stdout + npm.stderr
    if npm.returncode != 0 and re.search(UNREACHABLE, said):
        raise unittest.SkipTest(f"npm's registry cannot be reached: {re.search('.*' + UNREACHABLE + '.*', said).group()}")
    assert npm.returncode == 0, f"npm ci: {said}"
    for file in needed:
        assert os.path.exists(os.path.join(new, file)), f"npm ci left {file} out: {said}"
    os.rename(new, place)
    return place

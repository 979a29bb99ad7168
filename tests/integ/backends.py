"""What boxes of a run of the integration tests are: SBX_DRIVER, as `make integ DRIVER=qemu` sets it.

A test writes its configuration as if there were one driver; what another one needs besides is added here, unless the test
names a driver itself. Tests that are not for every driver are named here, too, each with its reason, and nowhere else.
"""

import atexit
import os
import shutil
import tempfile
import unittest

import micro_vm
import yaml


class Namespace:
    image = "host"  # of a box that names none
    isolation = "namespace"
    slow = 1  # what takes long is done so many times less often
    patience = 1  # how many times slower boots and commands may be, where a test has its times short
    own_kernel = False  # a box has one: processes in it are none of the host's
    apart = {}  # tests that are not for it, a module, a class or a test each, and why

    def settings(self):
        """What a configuration has that does not say otherwise."""
        return {}

    def args(self):
        """Of sbxd, before a test's own."""
        return []


class Qemu(Namespace):
    """Emulated, so that every host can run it. The templates of a run are made once: its daemons share a state directory."""

    image = micro_vm.ROOT_DIR
    isolation = "microvm-tcg"
    slow = 5
    patience = 10
    own_kernel = True
    apart = micro_vm.APART

    def __init__(self):
        self.state = None

    def settings(self):
        if micro_vm.missing():
            raise unittest.SkipTest(micro_vm.missing())
        return yaml.safe_load(micro_vm.base())

    def args(self):
        if not self.state:
            self.state = tempfile.mkdtemp(prefix="sbxd-test-state-")
            atexit.register(shutil.rmtree, self.state)
        return ["--state-dir", self.state]


BACKENDS = {"namespace": Namespace, "qemu": Qemu}
NAME = os.environ.get("SBX_DRIVER") or "namespace"
current = BACKENDS[NAME]()


def names_driver(text):
    """Whether a configuration is for one driver: of anything that is no configuration sbxd is to say so itself."""
    try:
        given = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        return True
    return not isinstance(given, dict) or "driver" in given or "sandbox" in given


def config(text):
    """A test's configuration with what the driver needs."""
    if names_driver(text):
        return text
    given = yaml.safe_load(text) or {}
    more = {key: value for key, value in current.settings().items() if key not in given}
    return text + (yaml.safe_dump(more) if more else "")


def args(text):
    """Arguments of an sbxd with that configuration."""
    return [] if names_driver(text) else current.args()

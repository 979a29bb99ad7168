"""What the service under load makes its boxes with: settings, environment, and what of it is to be seen on the host."""

import os
import re

import micro_vm
import yaml
from boxlite import Library


MACHINES = r"worker\.(park|roused)$|image\.template\."  # of micro-VMs alone: boxes that can stand still, and templates
SAVED = r"(driver\.boxlite\.alone|boxlite\.taken|sbxd\.left)$"  # of boxes that outlive their workers
STORE = r"(sbxd\.)?image\."  # BoxLite has its images itself


class Namespace:
    name = "namespace"
    target = "namespace"
    roles = ()  # of its own programs
    saves = False  # boxes outlive their workers
    clients = 8  # of a load that its boxes keep up with
    elsewhere = re.compile(f"{MACHINES}|{SAVED}")  # points that are not for this driver

    def __init__(self):
        self.settings = {}
        self.env = {}

    def processes(self):
        """Live ones that the service does not name: {pid: name}."""
        return {}

    def boxes(self):
        """What somebody else has of them."""
        return []

    def keeps(self, path):
        """Whether a file of the service is one that it is to keep when there is no box."""
        return False

    def close(self):
        pass


class Boxlite(Namespace):
    """Over the double of its library (tests/drivers/fake_boxlite)."""

    name = "boxlite"
    target = "boxlite"
    elsewhere = re.compile(f"{MACHINES}|{SAVED}|{STORE}")
    roles = ("boxlite",)
    server = False
    options = {}

    def __init__(self):
        self.library = Library()
        driver, image, options = self.library.config(self.server, **self.options).splitlines()
        self.settings = dict(line.split(": ", 1) for line in (driver, image, options))
        self.env = {"SBX_TEST_KVM": "/dev/null"}

    def processes(self):
        return self.library.processes()

    def boxes(self):
        return self.library.boxes()

    def close(self):
        self.library.remove()


class BoxliteServer(Boxlite):
    """Its boxes are a server's: nothing ends them but who removes them."""

    target = "boxlite-server"
    server = True


class BoxliteDetached(Boxlite):
    """Its boxes outlive their workers, and are saved."""

    target = "boxlite-detached"
    elsewhere = re.compile(f"{MACHINES}|{STORE}")
    options = {"detach": "true"}
    saves = True


class Qemu(Namespace):
    """Small machines, emulated where there is no KVM."""

    name = "qemu"
    target = "qemu"
    clients = 3
    # What sbxd and image processes pass is the same with any driver; making templates has tests of its own.
    elsewhere = re.compile(r"(sbxd|image)\." + ("" if os.path.exists("/dev/kvm") else r"|driver\.qemu\.probe\.tried$"))

    def __init__(self):
        super().__init__()
        if micro_vm.missing():
            raise SystemExit(f"no micro-VMs: {micro_vm.missing()}")
        given = yaml.safe_load(micro_vm.config())
        given["qemu"]["accel"] = "auto"
        self.settings = {key: yaml.safe_dump(value, default_flow_style=True).removesuffix("\n").removesuffix("\n...")
                         for key, value in given.items()}

    def keeps(self, path):
        """The store, of which only what is whole has a name without an ending."""
        return re.search(r"/state/qemu/[a-z]+-[0-9a-f]+(/[a-z]+)?$", path) is not None


DRIVERS = {"namespace": Namespace, "boxlite": Boxlite, "boxlite-server": BoxliteServer, "boxlite-detached": BoxliteDetached,
           "qemu": Qemu}

"""What tests of micro-VMs share: whether this host has what they need, and the configuration."""

import os
import shutil
import unittest

ROOT_DIR = os.environ.get("SBX_ROOT", "")
KERNEL = os.environ.get("SBX_KERNEL", "")

# An emulated machine that boots on a busy host takes its time.
SETTINGS = "acquire_timeout: 120\nboot_timeout: 120\nhealth_check_timeout: 20\n"


def missing():
    """Why there can be no micro-VM here, or None."""
    if not shutil.which("qemu-system-x86_64"):
        return "no qemu-system-x86_64"
    if not os.path.isdir(ROOT_DIR):
        return "SBX_ROOT names no root directory"
    return None if os.path.isfile(KERNEL) else "SBX_KERNEL names no kernel"


def config(more="", qemu=""):
    return (f"driver: qemu\nimage: {ROOT_DIR}\nmemory_mib: 96\ndisk_mib: 32\n" + SETTINGS + more +
            f"qemu:\n  kernel: {KERNEL}\n  accel: tcg\n" + qemu)


needs_vm = unittest.skipIf(missing(), missing() or "")

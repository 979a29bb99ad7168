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


def base():
    """What sbxd needs, to make micro-VMs, emulated: by any host can this be had."""
    return f"driver: qemu\nimage: {ROOT_DIR}\n" + SETTINGS + f"qemu:\n  kernel: {KERNEL}\n  accel: tcg\n"


def config(more="", qemu=""):
    """The same with small machines."""
    return "memory_mib: 96\ndisk_mib: 32\n" + more + base() + qemu


needs_vm = unittest.skipIf(missing(), missing() or "")

CLIENT = "of a client program: to it boxes are the HTTP interface, which is held over micro-VMs by the others"
SERVICE = "of sbxd itself: it is the same whatever boxes are"
OWN = "it names its driver itself"

# Tests that are not for micro-VMs (backends.py): a module, a class or a test each, and why.
APART = {
    **dict.fromkeys(("test_bench", "test_ctl", "test_ctl_completion", "test_ctl_files", "test_ctl_gc", "test_ctl_screen", "test_ctl_tty",
                     "test_deerflow", "test_docs", "test_mcp", "test_mcp_restart", "test_mcp_sdk", "test_mcp_tools", "test_python",
                     "test_python_async", "test_python_exec", "test_python_files", "test_python_guides", "test_python_package",
                     "test_python_restart", "test_python_shared", "test_python_tcp", "test_top", "test_top_life", "test_top_screen"), CLIENT),
    **dict.fromkeys(("test_bad_input", "test_config", "test_config_api", "test_contract", "test_events", "test_hostile", "test_metrics",
                     "test_tcp", "test_tcp_restart", "test_tcp_start"), SERVICE),
    **dict.fromkeys(("test_boxlite", "test_boxlite_faults", "test_boxlite_saved", "test_boxlite_server", "test_qemu", "test_qemu_crash",
                     "test_qemu_ends", "test_qemu_faults", "test_qemu_images", "test_qemu_reports", "test_qemu_room", "test_qemu_templates",
                     "test_shell_served"), OWN),
    "test_images": "it looks for what the store has in roots that are namespaces; test_qemu has a micro-VM of the store",
    "test_isolation": "of what namespaces, filters and cgroups refuse; of micro-VMs the conformance suite and test_qemu tell",
    "test_user": "it runs others once more for an ordinary user",
    "test_fs.Many.test_a_hundred_thousand_files": "an emulated machine takes minutes to make them",
    "test_op_stall": "it holds sbx-files by ptrace, which is none of the host's processes; what waits for it is the worker, whatever boxes are",
    "test_reports.Images": "of how images are unpacked; test_qemu_images has a micro-VM of a hostile one",
    "test_fs.Reports.test_row_15_what_is_closed_is_told": "nothing in a machine is closed to its root",
}

"""BoxLite's own SDK, as npm has it, drives a live sbxd over loopback TCP with a bearer token.

The cases are JavaScript, in boxlite_sdk/; each is a subtest here, and one that did not run has failed. npm installs the version
of the lock file into build/boxlite_sdk/, once. Some cases again:

    SBX_SDK_CASES="tty kill" make integ TEST=test_boxlite_sdk
"""

import json
import os
import platform
import secrets
import socket
import subprocess
import tempfile
import unittest

import backends
import npm
from harness import BOUND, ROOT, Daemon, DaemonTest, open_fds, other_mounts, slurp, wait_for

SOURCES = os.path.join(ROOT, "tests/integ/boxlite_sdk")
NATIVE = "node_modules/@boxlite-ai/boxlite-linux-x64-gnu/boxlite.linux-x64-gnu.node"

CASES = """
    create_unnamed create_named create_duplicate_name create_bad_name create_with_options create_as_user create_bad_options
    get_or_create two_boxes_are_isolated list unknown_ids a_removed_box_is_not_found stop_and_start start_and_stop_twice
    stop_ends_what_runs remove_needs_force remove_ends_what_runs remove_by_name metrics tokens what_it_can_not_do
    boxes_outlive_the_runtime simple_box boxes_at_once

    exit_codes exit_by_signal programs_are_found_by_name no_such_program arguments_are_verbatim environment working_folder
    the_user_is_root stdin stdin_is_bytes stdin_of_20_mib_in_one_write stdin_that_nobody_reads stdin_is_open_until_closed
    a_child_that_keeps_the_pipes

    a_silent_command streams_are_apart lines_4000_of_stdout lines_4000_of_stderr lines_4000_of_both output_of_8_mib
    output_that_nobody_reads output_comes_as_it_is_made short_commands_lose_nothing characters_are_whole
    a_character_in_two_writes bytes_that_are_no_text eight_at_once eight_wait_at_once

    tty tty_input tty_end_of_input tty_interrupt tty_resize tty_resized_at_once resize_without_tty signal_is_caught signal_ends
    signals_that_are_refused kill kill_at_once control_of_what_has_ended timeout

    file_of_text file_of_all_byte_values file_of_16_mib file_of_any_size file_into_a_folder
    file_keeps_its_mode_and_gets_the_owner file_replaces odd_names folder folder_into_one_that_is_there folder_of_one_file
    folder_that_is_empty folder_of_1000_files folder_with_links missing_paths paths_that_are_refused files_at_once

    nothing_is_left
""".split()


def install_sdk():
    if platform.machine() != "x86_64":
        raise unittest.SkipTest(f"the SDK's native part is not made for {platform.machine()}")
    return npm.install("boxlite_sdk", NATIVE)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class BoxliteSdk(DaemonTest):
    config = "replicas: 50\n"
    env = {"SBX_OF_THE_HOST": "secret"}

    @classmethod
    def setUpClass(cls):
        cls.sdk = install_sdk()
        cls.mounts_before = other_mounts()
        cls.token = secrets.token_urlsafe(32)
        with tempfile.NamedTemporaryFile("w", prefix="sbxd-test-token-", delete=False) as f:
            f.write(cls.token + "\n")
        cls.addClassCleanup(os.unlink, f.name)
        cls.address = f"127.0.0.1:{free_port()}"
        cls.d = Daemon(cls.config, cls.env, cls.wrapper, args=("--listen-tcp", cls.address, "--token-file", f.name))

    def run_cases(self):
        """name -> what the case said of itself; and what node said otherwise."""
        env = {k: v for k, v in os.environ.items() if k.lower() not in ("http_proxy", "https_proxy", "all_proxy")}
        env.update(SBX_SDK=self.sdk, SBX_URL=f"http://{self.address}", SBX_TOKEN=self.token, SBX_BOUND=str(BOUND),
                   SBX_IMAGE=backends.current.image, SBX_PATIENCE=str(backends.current.patience))
        only = os.environ.get("SBX_SDK_CASES", "").split()
        node = subprocess.run(["node", f"{SOURCES}/run.mjs", *only], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=BOUND * 20)
        records, rest = {}, [f"node ended with {node.returncode}", node.stderr]
        for line in node.stdout.splitlines():
            if line.startswith('{"case":'):
                record = json.loads(line)
                records[record["case"]] = record
            else:
                rest.append(line)
        return records, "\n".join(rest)

    def test_every_case(self):
        pid = self.d.process.pid
        fds, processes = len(open_fds(pid)), len(self.d.processes())
        records, rest = self.run_cases()
        for name in os.environ.get("SBX_SDK_CASES", "").split() or CASES:
            with self.subTest(name):
                self.assertIn(name, records, f"did not run: {rest[-3000:]}")
                self.assertTrue(records[name]["ok"], records[name].get("error"))
        with self.subTest("every case is listed"):
            self.assertEqual(set(records) - set(CASES), set())
        with self.subTest("sbxd keeps nothing of it"):
            wait_for("the boxes' processes to be gone", lambda: len(self.d.processes()) <= processes)
            wait_for("sbxd to close what it opened", lambda: len(open_fds(pid)) <= fds)

"""POST run: what goes in, what comes out, and what ends it."""

import base64
import json
import os
import unittest

from harness import IS_ROOT, DaemonTest, in_threads, output_bytes, slurp, wait_for


class Run(DaemonTest):
    config = "replicas: 50\nenvironment:\n  FROM_CONFIG: 'yes'\n  BOTH: config\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = cls.d.acquire("run", "t")["box_id"]

    def processes(self, pattern):
        script = f"for f in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$f 2>/dev/null; echo; done | grep -c '{pattern}'"
        out = self.d.run(self.box, ["/bin/sh", "-c", script])
        return int(out["stdout"] or 0)

    def test_exit_status_and_signal(self):
        r = self.d.run(self.box, "exit 7")
        self.assertEqual((r["exit_code"], r["signal"], r["timed_out"]), (7, None, False))
        r = self.d.run(self.box, "kill -TERM $$")
        self.assertEqual((r["exit_code"], r["signal"]), (None, 15))
        self.assertGreaterEqual(r["duration_ms"], 0)

    def test_argv_is_not_a_shell(self):
        r = self.d.run(self.box, ["printf", "%s|", "a b", "$HOME", ";", ""])
        self.assertEqual(r["stdout"], "a b|$HOME|;||")

    def test_streams_are_apart(self):
        r = self.d.run(self.box, "echo out; echo err >&2")
        self.assertEqual((r["stdout"], r["stderr"]), ("out\n", "err\n"))

    def test_environment(self):
        r = self.d.run(self.box, "echo $FROM_CONFIG $BOTH $CALL; env | grep -c '^SBX' ; true", env={"BOTH": "call", "CALL": "x"})
        self.assertEqual(r["stdout"], "yes call x\n0\n")
        for name in ("1A", "A-B", "", "A B", "A="):
            r = self.d.post(f"/v1/boxes/{self.box}/run", {"command": "true", "env": {name: "x"}})
            self.assertEqual((r.status, r.json["error"]["code"]), (400, "invalid_argument"), name)

    def test_cwd_and_user(self):
        self.assertEqual(self.d.sh(self.box, "pwd", cwd="/tmp"), "/tmp\n")
        for user, ids in (("0", "0\n0\n"), ("root", "0\n0\n"), ("nobody", "65534\n65534\n"), ("1000:1001", "1000\n1001\n")):
            if IS_ROOT or ids == "0\n0\n":
                self.assertEqual(self.d.sh(self.box, "id -u; id -g", user=user), ids)
                continue
            r = self.d.post(f"/v1/boxes/{self.box}/run", {"command": "true", "user": user})
            self.assertEqual((r.status, r.reason), (422, "execution_failed"), "an ordinary user's boxes have one uid, which is 0 there")
            self.assertIn("not mapped in this box", r.json["error"]["message"])
        r = self.d.post(f"/v1/boxes/{self.box}/run", {"command": "true", "user": "nobody-such"})
        self.assertEqual((r.status, r.json["error"]["code"]), (422, "execution_failed"))
        r = self.d.post(f"/v1/boxes/{self.box}/run", {"command": "true", "cwd": "/no/such"})
        self.assertEqual((r.status, r.reason), (422, "execution_failed"), "404 would say that the box is gone")
        self.assertIn("/no/such", r.json["error"]["message"])

    def test_a_program_that_is_not_there(self):
        r = self.d.post(f"/v1/boxes/{self.box}/run", {"argv": ["no-such-program"]})
        self.assertEqual((r.status, r.json["error"]["code"]), (422, "execution_failed"))
        self.assertIn("no-such-program", r.json["error"]["message"])

    def test_row_10_eight_mib_of_output_arrive_intact(self):
        r = self.d.run(self.box, "head -c 8388608 /dev/zero | tr '\\0' 'a'")
        self.assertEqual(len(r["stdout"]), 8388608)
        self.assertEqual(set(r["stdout"]), {"a"})
        self.assertFalse(r["truncated"])

    def test_binary_output_arrives_intact(self):
        program = "import os,sys; d=bytes(range(256))*4096; os.write(1,d[:1000]); sys.stdout.buffer.write(d[1000:])"
        r = self.d.run(self.box, ["python3", "-c", program])
        self.assertEqual(r["stdout_encoding"], "base64")
        self.assertEqual(output_bytes(r), bytes(range(256)) * 4096)

    def test_invalid_utf8_arrives_intact(self):
        r = self.d.run(self.box, ["printf", "ok \\303\\050 \\355\\240\\200"])
        self.assertEqual(output_bytes(r), b"ok \xc3\x28 \xed\xa0\x80")
        r = self.d.run(self.box, ["printf", "na\\303\\257ve \\342\\234\\223"])
        self.assertEqual((r["stdout"], r["stdout_encoding"]), ("naïve ✓", "utf-8"))

    def test_one_mib_of_stdin_arrives_intact(self):
        data = os.urandom(1 << 20)
        r = self.d.run(self.box, ["cat"], stdin_base64=base64.b64encode(data).decode())
        self.assertEqual(output_bytes(r), data)
        self.assertEqual(self.d.run(self.box, "cat", stdin="naïve ✓")["stdout"], "naïve ✓")

    def test_without_stdin_there_is_end_of_file(self):
        self.assertEqual(self.d.run(self.box, "cat; echo end")["stdout"], "end\n")

    def test_stdin_that_nobody_reads_does_not_block(self):
        r = self.d.run(self.box, "true", stdin="x" * (4 << 20))
        self.assertEqual(r["exit_code"], 0)

    def test_output_is_cut_at_the_limit_and_says_so(self):
        r = self.d.run(self.box, "head -c 100000 /dev/zero | tr '\\0' x; echo end >&2", max_output_bytes=1000)
        self.assertEqual((len(r["stdout"]), r["truncated"], r["exit_code"]), (1000, True, 0))

    def test_a_background_child_that_holds_stdout_does_not_hold_the_answer(self):
        r = self.d.run(self.box, "sleep 1000 & echo started")
        self.assertEqual(r["stdout"], "started\n")
        self.assertEqual(self.processes("^sleep 1000"), 1, "it lives on with the box")
        self.d.run(self.box, "pkill -f 'sleep 1000'")

    def test_a_client_that_hangs_up_ends_its_command(self):
        c = self.d.connect()
        c.request("POST", f"/v1/boxes/{self.box}/run", json.dumps({"command": "sleep 3000 & sleep 3001"}))
        wait_for("the command to run", lambda: self.processes("^sleep 300[01]") == 2)
        c.close()
        wait_for("its tree to be gone", lambda: self.processes("sleep 300[01]") == 0)

    def test_tty(self):
        r = self.d.run(self.box, "test -t 0 && test -t 1 && echo tty; stty size", tty=True)
        self.assertIn("tty\r\n", r["stdout"])

    def ndjson(self, body):
        c = self.d.connect()
        c.request("POST", f"/v1/boxes/{self.box}/run", json.dumps(body), {"Accept": "application/x-ndjson"})
        r = c.getresponse()
        self.assertEqual(r.status, 200)
        lines = [json.loads(line) for line in r.read().splitlines()]
        c.close()
        return lines

    def test_streaming(self):
        lines = self.ndjson({"command": "echo out; echo err >&2; exit 3"})
        self.assertEqual(lines[-1]["exit_code"], 3)
        self.assertEqual("".join(x["data"] for x in lines[:-1] if x["stream"] == "stdout"), "out\n")
        self.assertEqual("".join(x["data"] for x in lines[:-1] if x["stream"] == "stderr"), "err\n")

    def test_streaming_comes_as_it_is_written(self):
        c = self.d.connect()
        body = json.dumps({"command": "echo first; read x </tmp/gate; echo last"})
        self.d.sh(self.box, "rm -f /tmp/gate; mkfifo /tmp/gate")
        c.request("POST", f"/v1/boxes/{self.box}/run", body, {"Accept": "application/x-ndjson"})
        r = c.getresponse()
        self.assertEqual(json.loads(r.readline())["data"], "first\n")
        self.d.sh(self.box, "echo go > /tmp/gate")
        self.assertEqual(json.loads(r.readline())["data"], "last\n")
        self.assertEqual(json.loads(r.readline())["exit_code"], 0)
        c.close()

    def test_row_10_characters_split_across_writes_stay_whole(self):
        program = ("import os,time\nfor b in '✓é€😀'.encode():\n os.write(1,bytes([b])); time.sleep(0.003)\n")
        lines = self.ndjson({"argv": ["python3", "-c", program]})
        self.assertTrue(all(x["encoding"] == "utf-8" for x in lines[:-1]), lines)
        self.assertEqual("".join(x["data"] for x in lines[:-1]), "✓é€😀")

    def test_streaming_eight_mib_binary(self):
        lines = self.ndjson({"command": "head -c 8388608 /dev/urandom | tee /tmp/r | cat"})
        data = b"".join(base64.b64decode(x["data"]) if x["encoding"] == "base64" else x["data"].encode() for x in lines[:-1])
        self.assertEqual(len(data), 8388608)
        self.assertEqual(self.d.read(self.box, "/tmp/r").body, data)

    def test_a_reader_that_stops_stops_only_itself(self):
        c = self.d.connect()
        body = json.dumps({"command": "head -c 300000000 /dev/zero"})
        c.request("POST", f"/v1/boxes/{self.box}/run", body, {"Accept": "application/x-ndjson"})
        r = c.getresponse()
        r.read(1000)
        for _ in range(5):
            self.assertEqual(self.d.sh(self.box, "echo alive"), "alive\n")
        pid = self.d.inspect(self.box)["pid"]
        rss = [int(l.split()[1]) for l in slurp(f"/proc/{pid}/status").splitlines() if l.startswith("VmRSS")][0]
        if not os.environ.get("SBX_SAN"):
            self.assertLess(rss, 32 * 1024, "kB: what is not read is not stored")
        c.close()

    def test_sixty_four_commands_at_once(self):
        got = in_threads(64, lambda i: self.d.run(self.box, f"echo {i}")["stdout"])
        self.assertEqual(got, [f"{i}\n" for i in range(64)])

    def test_wrong_requests(self):
        cases = [
            ({}, 400), ({"command": 1}, 400), ({"argv": "x"}, 400), ({"argv": []}, 400), ({"argv": [1]}, 400),
            ({"command": "a", "argv": ["b"]}, 400), ({"command": "a", "env": []}, 400), ({"command": "a", "env": {"A": 1}}, 400),
            ({"command": "a", "cwd": 1}, 400), ({"command": "a", "timeout_seconds": "1"}, 400),
            ({"command": "a", "timeout_seconds": -1}, 400), ({"command": "a", "max_output_bytes": "x"}, 400),
            ({"command": "a", "stdin": "x", "stdin_base64": "eA=="}, 400), ({"command": "a", "stdin_base64": "***"}, 400),
            ({"command": "a", "tty": 1}, 400), ({"command": "a\0b"}, 400), ({"argv": ["a\0b"]}, 400), ({"command": ""}, 400),
        ]
        for body, status in cases:
            r = self.d.post(f"/v1/boxes/{self.box}/run", body)
            self.assertEqual(r.status, status, f"{body}: {r}")
            self.assertEqual(r.json["error"]["code"], "invalid_argument", body)
            self.assertTrue(r.json["error"]["message"], body)
        for raw in ("", "[]", "{", "nonsense", '{"command":"a","command":"b"}', '{"a":' * 100):
            r = self.d.post(f"/v1/boxes/{self.box}/run", raw.encode())
            self.assertEqual(r.status, 400, raw)
        self.assertEqual(self.d.get(f"/v1/boxes/{self.box}/run").status, 405)
        self.assertEqual(self.d.sh(self.box, "echo fine"), "fine\n")

    def test_an_unknown_member_is_refused_wherever_it_stands(self):
        made = self.d.post("/v1/boxes", {}).json["box_id"]
        box = f"/v1/boxes/{self.box}"
        for path, body in (("/v1/acquire", {"user_id": "u", "lease_second": 1}), (f"{box}/release", {"lease": "x"}),
                           (f"{box}/run", {"command": "true", "timeout": 1}), (f"{box}/exec", {"command": "true", "cwd": "/tmp"}),
                           (f"{box}/fs/mkdir", {"path": "/tmp/new", "recursive": True}), (f"{box}/fs/rename", {"from": "/a", "to": "/b", "x": 1}),
                           ("/v1/boxes", {"memory": 512}), ("/v1/boxes", {"network": {"mode": "enabled", "dns": []}}),
                           (f"/v1/boxes/{made}/stop", {"timeout": 1}), ("/v1/images/pull", {"image": "host"})):
            r = self.d.post(path, body)
            self.assertEqual((r.status, r.reason), (400, "invalid_argument"), f"{path} {body}: {r}")
            self.assertTrue(any(f'"{name}"' in r.json["error"]["message"] for name in body), r)
        self.assertEqual(self.d.run(self.box, "test -e /tmp/new")["exit_code"], 1, "nothing was done")
        self.assertEqual(self.d.request("DELETE", f"/v1/boxes/{made}?force=true").status, 204)


if __name__ == "__main__":
    unittest.main()

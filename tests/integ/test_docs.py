"""The guides do what they say: the examples of docs/*.md are run, their tables and man pages held against the programs.

An example is a block marked sh; those of one file share one shell. Comment lines right behind a command are what it prints,
with … for whatever changes (SBX_DOCS_SHOW=1 shows what they do print). `<!-- not run: WHY -->` before a block keeps it from being run; in README.md only blocks are run
that have `<!-- run -->` before them.
"""

import glob
import os
import re
import signal
import subprocess
import tempfile
import unittest

import contract
import test_boxlite_sdk
import yaml
import ctl
from harness import BOUND, BUILD, ROOT, Daemon, DaemonTest, slurp, wait_for
from tcp import TokenFile

BLOCK = re.compile(r"(?:<!-- (run|not run: [^\n]*) -->\n\s*)?^```sh\n(.*?)^```$", re.M | re.S)
GUIDES = sorted(glob.glob(f"{ROOT}/docs/*.md") + glob.glob(f"{ROOT}/docs/guides/*.md")) + [f"{ROOT}/README.md"]
SDKS = {"boxlite-sdk.md": test_boxlite_sdk.install_sdk}  # what a guide has npm install, which the tests have already
PAGES = sorted(glob.glob(f"{ROOT}/docs/*.[1-8]"))


def examples(path):
    """The blocks of a guide that are to be run: [(line, text)]."""
    text = slurp(path)
    by_name = path.endswith("README.md")
    return [(text.count("\n", 0, m.start(2)) + 1, m.group(2)) for m in BLOCK.finditer(text)
            if (m.group(1) == "run" if by_name else not (m.group(1) or "").startswith("not run"))]


def steps(line, text):
    """A block as [(line, commands, lines that are printed or None)]."""
    found, commands, shown = [], [], None
    for i, row in enumerate(text.splitlines(), line):
        comment = row.startswith("#")
        if comment and commands:
            shown = (shown or []) + [row[1:].removeprefix(" ")]
        elif shown is not None or (not row and commands and not commands[-1].endswith("\\")):
            found.append((first, commands, shown))
            commands, shown = [], None
        if not comment and row:
            first = first if commands else i
            commands.append(row)
    if commands:
        found.append((first, commands, shown))
    return found


def pattern(shown):
    return "\n".join(".*".join(re.escape(part) for part in line.split("…")) for line in shown)


class Examples(DaemonTest):
    @classmethod
    def setUpClass(cls):
        cls.token = TokenFile()
        cls.addClassCleanup(cls.token.remove)
        cls.config = f"replicas: 20\nlisten_tcp: 127.0.0.1:0\ntoken_file: {cls.token.path}\n"
        super().setUpClass()

    def run_guide(self, path):
        with tempfile.TemporaryDirectory(prefix="sbxd-test-") as place:
            script, every = ["set -eu"], [s for line, text in examples(path) for s in steps(line, text)]
            for i, (_, commands, _) in enumerate(every):
                script += ["{", *commands, f"}} >{place}/{i} 2>&1", f"echo {i} >{place}/done"]
            env = {**os.environ, "SBXD_SOCKET": self.d.socket, "PATH": f"{BUILD}:{os.environ['PATH']}", "TOKEN_FILE": self.token.path,
                   "ADDRESS": re.findall(r"serving on http://([^ ]*): ", self.d.log())[-1], "LANG": "C.UTF-8"}
            os.mkdir(f"{place}/cwd")
            if os.path.basename(path) in SDKS:
                os.symlink(f"{SDKS[os.path.basename(path)]()}/node_modules", f"{place}/cwd/node_modules")
            with open(f"{place}/script", "w", encoding="utf-8") as f:
                f.write("\n".join(script) + "\n")
            r = subprocess.run(["bash", f"{place}/script"], cwd=f"{place}/cwd", env=env, stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, timeout=BOUND * 4)
            for i, (line, commands, shown) in enumerate(every):
                where = f"{os.path.basename(path)}:{line}: {commands[0]}"
                self.assertTrue(os.path.exists(f"{place}/{i}"), f"{where}: not reached: {r}")
                got = slurp(f"{place}/{i}").rstrip("\n")
                if os.environ.get("SBX_DOCS_SHOW"):
                    print(f"--- {where}\n{got}")
                last = int(slurp(f"{place}/done")) if os.path.exists(f"{place}/done") else -1
                self.assertGreaterEqual(last, i, f"{where}: failed, {r.returncode}: {got}")
                if shown is not None:
                    self.assertRegex(got, re.compile(rf"\A{pattern(shown)}\Z"), where)
            self.assertEqual(r.returncode, 0, r)

    def test_every_example_works(self):
        found = 0
        for path in GUIDES:
            with self.subTest(os.path.basename(path)):
                found += len(examples(path))
                self.run_guide(path)
        self.assertGreater(found, 10)

    def test_the_guide_has_every_endpoint(self):
        text = slurp(f"{ROOT}/docs/api.md")
        for op in contract.Contract().operations:
            path = re.sub(r"\\\{\w+\\\}", r"[^/?\\s\"']+", re.escape(op.path))
            if op.node["tags"] != ["unsupported"]:
                self.assertTrue(re.search(rf"{path}(?![\w/])", text), f"{op.path} is not in docs/api.md")


def sbxd(*args, env=None):
    return subprocess.run([f"{BUILD}/sbxd", *args], capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})})


def flat(settings):
    """Sections as a.b."""
    found = {}
    for key, value in settings.items():
        if isinstance(value, dict) and key != "environment":
            found.update({f"{key}.{k}": v for k, v in value.items()})
        else:
            found[key] = value
    return found


class Configuration(unittest.TestCase):
    """docs/configuration.md and sbxd.yaml(5) against what sbxd itself says of its settings."""

    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile("w", prefix="sbxd-test-", suffix=".yaml", delete=False) as f:
            cls.file = f.name
        cls.addClassCleanup(os.unlink, cls.file)
        cls.text = slurp(f"{ROOT}/docs/configuration.md")
        rows = [[c.strip() for c in line.strip("|").split("|")] for line in cls.text.splitlines() if line.startswith("| `")]
        cls.rows = {row[0].strip("` |"): row[1:] for row in rows if len(row) == 6}
        cls.defaults = flat(yaml.safe_load(cls.check("").stdout))

    @classmethod
    def check(cls, text, **env):
        with open(cls.file, "w", encoding="utf-8") as f:
            f.write(text)
        return sbxd("--config", cls.file, "--check-config", env=env)

    def test_every_key_and_its_default(self):
        self.assertGreater(len(self.defaults), 40)
        self.assertEqual({k: yaml.safe_load(row[1].strip("`")) for k, row in self.rows.items()}, self.defaults)

    def test_the_manual_page_has_the_same(self):
        page = re.findall(r"^\.It Ic ([a-z_.]+) : (.*)$", slurp(f"{ROOT}/docs/sbxd.yaml.5"), re.M)
        self.assertEqual({k: yaml.safe_load(v.replace("\\(dq", '"')) for k, v in page}, self.defaults)
        marked = re.findall(r"^\.It Ic ([a-z_.]+) : (?:(?!^\.It|^\.El).)*?^\.Pq R$", slurp(f"{ROOT}/docs/sbxd.yaml.5"), re.M | re.S)
        self.assertEqual(set(marked), {k for k, row in self.rows.items() if row[3] == "yes"})
        for key, row in self.rows.items():
            bounds = re.search(r"from (\S+) to (\d+)$", row[2])
            if bounds:
                self.assertRegex(slurp(f"{ROOT}/docs/sbxd.yaml.5"), rf"(?s)Ic {re.escape(key)} : (?:(?!\n\.It).)*\b{bounds[1]}\s+to\s+{bounds[2]}\b")

    def test_what_is_allowed_is_what_the_error_says(self):
        for key, (_, _, allowed, *_) in self.rows.items():
            with self.subTest(key):
                if key == "environment":
                    r = self.check("environment:\n  A: " + "x" * 65536)
                    self.assertIn(f"more than {re.findall('[0-9]+', allowed)[0]} bytes", r.stderr)
                else:
                    r = self.check("", **{"SBXD_" + key.upper().replace(".", "_"): "\x01"})
                    self.assertTrue(r.stderr.splitlines()[0].endswith(f"is not allowed; give {allowed}"), r.stderr)
                self.assertEqual(r.returncode, 2)

    def test_bounds_are_bounds(self):
        for key, (_, _, allowed, *_) in self.rows.items():
            bounds = re.search(r"from (\S+) to (\d+)$", allowed)
            variable = "SBXD_" + key.upper().replace(".", "_")
            for value in bounds.groups() if bounds else ():
                past = f"{int(value) + 1}" if value == bounds[2] else "0.0001" if "." in value else f"{int(value) - 1}"
                self.assertIn("is not allowed", self.check("", **{variable: past}).stderr, (key, past))
                self.assertNotIn("is not allowed", self.check("", **{variable: value}).stderr, (key, value))

    def other_value(self, key, allowed):
        default = self.defaults[key]
        if key == "environment":
            return {"A": "b"}
        if isinstance(default, bool):
            return not default
        if "," in allowed and allowed.split(", ")[0] in (str(default), "soft"):
            return yaml.safe_load(allowed.split(", ")[-1])
        if isinstance(default, (int, float)):
            return default - 1 if default else 1
        return "127.0.0.1:0" if key == "listen_tcp" else "/x"

    def test_what_reloads(self):
        others = {k: self.other_value(k, row[2]) for k, row in self.rows.items() if k != "network"}  # which has one value
        settings = {}
        for key, value in others.items():
            section, _, name = key.rpartition(".")
            (settings.setdefault(section, {}) if section else settings)[name] = value
        d = Daemon("max_boxes: 16\n")
        try:
            d.write_config(yaml.safe_dump(settings))
            d.process.send_signal(signal.SIGHUP)
            last = list(self.defaults)[-1]
            wait_for("the reload", lambda: f"configuration: {last} " in d.log())
            said = dict(re.findall(r"configuration: ([a-z_.]+) (changed|differs, but needs a restart)", d.log()))
            self.assertEqual(said, {k: "changed" if self.rows[k][3] == "yes" else "differs, but needs a restart" for k in others})
            self.assertEqual(d.stop(), 0)
        finally:
            d.kill()
            d.remove()

    def test_what_must_fit_together(self):
        provoked = {"listen_tcp: needs": "listen_tcp: 127.0.0.1:1\n", "token_file: is": "token_file: /x\n", "network:": "network: user\n",
                    "listen_tcp: is": "listen_tcp: 10.0.0.1:1\ntoken_file: /x\n", "replicas:": "replicas: 9\nmax_boxes: 8\n",
                    "prewarm:": "prewarm: 9\n", "max_boxes:": "namespace: {uid_base: 4294901759}\n"}
        table = self.text.partition("## What must fit together")[2]
        errors = re.findall(r"^\| `(.*?)` \|", table, re.M)
        self.assertEqual(len(errors), len(provoked))
        for error in errors:
            config = next(c for begin, c in provoked.items() if error.startswith(begin))
            r = self.check(config)
            self.assertEqual(r.returncode, 2, r)
            self.assertRegex(r.stderr, re.sub(r"\b[NMB]\b", r"\\d+", re.escape(error)))

    def test_what_is_passed_over(self):
        source = re.search(r"ignored\[\] = \{(.*?)\};", slurp(f"{ROOT}/supervisor/config_table.c"), re.S).group(1)
        listed = re.search(r"mean\s+nothing here are passed over: (.*?)\.\n", self.text, re.S).group(1)
        self.assertEqual(set(re.findall(r"`(\w+)`", listed)), set(re.findall(r'"(\w+)"', source)))


class Pages(unittest.TestCase):
    """Manual pages are sound, and say what --help says."""

    @staticmethod
    def rendered(page):
        r = subprocess.run(["mandoc", "-T", "utf8", f"{ROOT}/docs/{page}"], capture_output=True, text=True, timeout=60, check=True)
        return " ".join(re.sub(".\b", "", r.stdout).split())

    def test_lint(self):
        self.assertLessEqual({"sbxctl.1", "sbxtop.1", "sbx-mcp.1", "sbxd.8", "sbx-worker.8", "sbxd.yaml.5"},
                             {os.path.basename(p) for p in PAGES})
        for page in PAGES:
            r = subprocess.run(["mandoc", "-T", "lint", "-W", "all", page], capture_output=True, text=True, timeout=60)
            of_the_host = ("referenced manual not found", "mandoc.db")
            found = [line for line in (r.stdout + r.stderr).splitlines() if not any(words in line for words in of_the_host)]
            self.assertEqual(found, [])

    def test_sbxd(self):
        options = re.findall(r"^  (--\S+)(?: ([A-Z:]+))?  +\S", sbxd("--help").stdout, re.M)
        self.assertGreater(len(options), 10)
        page = re.findall(r"^\.It Fl -(\S+)(?: Ar (\S+))?$", slurp(f"{ROOT}/docs/sbxd.8"), re.M)
        self.assertEqual([(f"--{name}", arg) for name, arg in page], options)

    def test_sbx_mcp(self):
        r = subprocess.run([f"{BUILD}/sbx-mcp", "--help"], capture_output=True, text=True, timeout=60)
        options = re.findall(r"^  (--\S+)(?: ([A-Z]+))?", r.stdout, re.M)
        self.assertGreater(len(options), 10)
        page = re.findall(r"^\.It Fl -(\S+)(?: Ar (\S+))?$", slurp(f"{ROOT}/docs/sbx-mcp.1"), re.M)
        self.assertEqual([(f"--{name}", arg) for name, arg in page], options)

    def test_sbxctl(self):
        """Commands in the order of --help, each with the words and all the options that it has there, and no others."""
        r = subprocess.run([f"{BUILD}/sbxctl", "--help"], capture_output=True, text=True, timeout=60)
        commands = re.findall(r"^  (\S.*?) *\n      \S", r.stdout, re.M)
        self.assertGreater(len(commands), 10)
        text = self.rendered("sbxctl.1")
        at = 0
        for command in commands:
            self.assertIn(f" {command} ", text[at:], "not in the page, or in another order")
            at = text.index(f" {command} ", at)
        source = slurp(f"{ROOT}/docs/sbxctl.1")
        entries = re.split(r"(?m)^\.It Ic ", source.partition("The commands are:")[2].partition("Of all commands:")[0])[1:]
        self.assertEqual(len(entries), len(commands))
        for entry, (name, options) in zip(entries, ctl.table().items(), strict=True):
            self.assertEqual(self.documented_options(entry), set(options), name)
        common = self.documented_options(source.partition("Of all commands:")[2].partition(".Sh")[0])
        self.assertEqual(common, {"--json", "--socket", "--instance", "-h", "--help"})

    @staticmethod
    def documented_options(text):
        """Of each line ".It Fl x , -name Ar VALUE"."""
        return {f"-{name}" for line in re.findall(r"(?m)^\.It Fl (.*)$", text) for name in line.partition(" Ar ")[0].split(" , ")}

    def test_every_program_has_its_page(self):
        """All that is installed, but what only other programs start in a box."""
        installed = re.findall(r"install -m 755 (.*?) \$\(DESTDIR\)", slurp(f"{ROOT}/Makefile"))
        programs = {os.path.basename(p) for line in installed for p in line.split()} - {"sbx-guest", "sbx-files"}
        self.assertLessEqual({"sbxd", "sbxctl", "sbxtop", "sbx-worker"}, programs)
        pages = {os.path.basename(p).rpartition(".")[0]: p for p in PAGES}
        for program in programs:
            self.assertIn(program, pages)
            self.assertIn(f".Nm {program}\n", slurp(pages[program]))

"""Runs the examples of a guide that are Python.

As in test_docs.py: blocks marked python share one interpreter, and comments behind a statement are what it prints.
"""

import contextlib
import io
import os
import re

import test_docs
from harness import slurp

PYTHON = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def run_python(case, path, **names):
    """`names` are there for the examples before they begin."""
    text = slurp(path)
    names["__name__"] = "guide"
    blocks = [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in PYTHON.finditer(text)]
    case.assertGreater(len(blocks), 1)
    for line, commands, shown in [s for b in blocks for s in test_docs.steps(*b)]:
        where = f"{os.path.basename(path)}:{line}"
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile("\n" * (line - 1) + "\n".join(commands), path, "exec"), names)  # noqa: S102 - that is the test
        if os.environ.get("SBX_DOCS_SHOW"):
            print(f"--- {where}\n{out.getvalue()}")
        if shown is not None:
            case.assertRegex(out.getvalue() + "\n", re.compile(rf"\A{test_docs.pattern(shown)}\n+\Z"), where)

#!/usr/bin/env python3
"""Turns the commands that `make -Bn V=1` prints into compile_commands.json."""

import json
import os
import re
import sys

entries = []
for line in sys.stdin:
    m = re.search(r"(?:^|\s)(\S*(?:gcc|clang) .* -c -o \S+ (\S+\.c))\s*$", line)
    if m:
        entries.append({"directory": os.getcwd(), "command": m.group(1), "file": m.group(2)})
json.dump(entries, sys.stdout, indent=1)

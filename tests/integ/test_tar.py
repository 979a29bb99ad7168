"""PUT files and GET files: trees into a box and out of it as tar archives, hostile ones too."""

import io
import os
import socket
import stat
import tarfile
import threading
import time
import unittest
from urllib.parse import quote

from harness import BOUND, BUILD, DaemonTest, descendants, in_threads, slurp, start_time, wait_for

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
MTIME = 1_600_000_000


def member(name, kind=tarfile.REGTYPE, data=b"", link="", mode=0o644, mtime=MTIME):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(data)
    info.linkname = link
    info.mode = mode
    info.mtime = mtime
    info.uid = info.gid = 4242
    return info, data


def archive(*members, fmt=tarfile.PAX_FORMAT):
    """The bytes of an archive of member()s, or of (name, data)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt, encoding="utf-8", errors="surrogateescape") as t:
        for m in members:
            info, data = m if isinstance(m[0], tarfile.TarInfo) else member(m[0], data=m[1])
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def unarchive(data):
    """{name: (TarInfo, bytes)} of an archive."""
    with tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8", errors="surrogateescape") as t:
        return {i.name: (i, t.extractfile(i).read() if i.isreg() else b"") for i in t}


class TarTest(DaemonTest):
    config = "replicas: 50\ndisk_mib: 160\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = cls.d.acquire("tar", "t")["box_id"]

    def put(self, path, data, query="", box=None, **kw):
        return self.d.request("PUT", f"/v1/boxes/{box or self.box}/files?path={quote(path)}{query}", data,
                              headers={"Content-Type": "application/x-tar"}, **kw)

    def fetch(self, path, query="", **kw):
        return self.d.get(f"/v1/boxes/{self.box}/files?path={quote(path)}{query}", **kw)

    def upload(self, path, *members, query="", **kw):
        r = self.put(path, archive(*members, **kw), query)
        self.assertEqual((r.status, r.body), (204, b""), r)

    def download(self, path, query=""):
        r = self.fetch(path, query)
        self.assertEqual((r.status, r.headers["Content-Type"]), (200, "application/x-tar"), r)
        return unarchive(r.body)

    def expect(self, reply, status, reason, *words):
        self.assertEqual((reply.status, reply.reason), (status, reason), reply)
        for word in words:
            self.assertIn(word, reply.json["error"]["message"])

    def sh(self, command):
        return self.d.sh(self.box, command)

    def tree(self, path):
        """What find says of a tree."""
        return self.sh(f"cd {path} && find . -mindepth 1 -printf '%P %y %m %l\\n' | sort").splitlines()

    def leftovers(self):
        return self.sh("find / -xdev -name '.sbx-*.tmp' 2>/dev/null; find /tmp /mnt -name '.sbx-*.tmp'")


class Upload(TarTest):
    def test_every_format(self):
        for name, fmt in FORMATS.items():
            at = f"/tmp/formats/{name}"
            long = "d" * 90 + "/" + "f" * 90
            self.upload(
                at, member("sub", tarfile.DIRTYPE, mode=0o750), ("sub/file", bytes(range(256))), ("sub/empty", b""),
                member("run", data=b"#!/bin/sh\necho ran\n", mode=0o755), member("link", tarfile.SYMTYPE, link="sub/file"),
                member("hard", tarfile.LNKTYPE, link="sub/file"), ("./dotted//name", b"x"), (long, b"long"), fmt=fmt)
            self.assertEqual(self.sh(f"{at}/run"), "ran\n")
            self.assertEqual(self.d.read(self.box, f"{at}/sub/file").body, bytes(range(256)))
            self.assertEqual(self.d.read(self.box, f"{at}/{long}").body, b"long")
            self.assertEqual(self.d.read(self.box, f"{at}/dotted/name").body, b"x")
            self.assertEqual(self.sh(f"readlink {at}/link; stat -c '%h %a %u %g %Y' {at}/hard {at}/sub/file; stat -c '%a %Y' {at}/sub"),
                             f"sub/file\n2 644 0 0 {MTIME}\n2 644 0 0 {MTIME}\n750 {MTIME}\n")
        self.assertEqual(self.leftovers(), "")


if __name__ == "__main__":
    unittest.main()

"""Where the service is, and what shows it who asks: a Unix socket, whose peer the kernel names, or TCP with a token."""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass, field
from typing import Any, Sequence
from urllib.parse import urlsplit

from ._call import NO_HEADERS
from ._errors import BadAddress

Target = tuple[socket.AddressFamily, Any]  # what a socket is made of, and what it connects to
TOKEN_MAX = 512  # characters; as sbxd has it


@dataclass(frozen=True)
class Address:
    """Made by the functions below. It may be shown: its token is not."""

    name: str  # for people: the path of the socket, or the URL
    path: str | None = None  # of a Unix socket; None: TCP
    host: str = ""
    port: int = 0
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None

    def targets(self) -> list[Target] | None:
        """What to connect to, first to last; None: the host's name has to be looked up."""
        if self.path is not None:
            return [(socket.AF_UNIX, self.path)]
        if self.host == "localhost":  # is that on every host, whatever a resolver says
            return [(socket.AF_INET, ("127.0.0.1", self.port)), (socket.AF_INET6, ("::1", self.port))]
        ip = _ip(self.host)
        if ip is None:
            return None
        return [(socket.AF_INET if ip.version == 4 else socket.AF_INET6, (self.host, self.port))]

    def credentials(self) -> Sequence[tuple[str, str]]:
        """Headers that each request brings. A token file is read each time: so it may be changed while we run."""
        if self.path is not None:
            return NO_HEADERS
        token = self.token if self.token_file is None else _token_of(self.token_file)
        return (("Authorization", f"Bearer {token}"),)


def found(infos: Sequence[tuple[Any, ...]]) -> list[Target]:
    """What getaddrinfo says, as targets."""
    return [(info[0], info[4]) for info in infos]


def address(
    socket_path: str | None, url: str | None, token: str | None, token_file: str | None, allow_remote_http: bool
) -> Address:
    """What a client was told, else what the environment says, else where sbxd has its socket. BadAddress."""
    if socket_path is not None and url is not None:
        raise BadAddress("a socket and a URL are given: which one is meant?")
    if socket_path is None and url is None:
        socket_path = os.environ.get("SBXD_SOCKET") or None
        url = None if socket_path else os.environ.get("SBXD_URL") or None
    if url is None:
        if token is not None or token_file is not None:
            raise BadAddress("a token is given, and no URL: on its socket sbxd asks for none")
        path = socket_path or _usual_socket()
        return Address(path, path)
    return _tcp(url, token, token_file, allow_remote_http)


def _usual_socket() -> str:
    """Where sbxd has its socket when this user started it, or root."""
    uid = os.geteuid()
    if uid != 0:
        base = os.environ.get("XDG_RUNTIME_DIR")
        own = f"{base}/sbxd/sbxd.sock" if base else f"/tmp/sbxd-{uid}/sbxd.sock"
        if os.path.exists(own):
            return own
    return "/run/sbxd/sbxd.sock"


def _tcp(url: str, token: str | None, token_file: str | None, allow_remote_http: bool) -> Address:
    host, port = _host_and_port(url)
    name = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    ip = _ip(host)
    if not (allow_remote_http or host == "localhost" or (ip is not None and ip.is_loopback)):
        raise BadAddress(
            f"{name} is another host, and HTTP shows the token to whoever listens between: "
            "let a tunnel end at 127.0.0.1, or say allow_remote_http=True"
        )
    if token is not None and token_file is not None:
        raise BadAddress("a token and a file with one are given: which one is meant?")
    if token is None and token_file is None:
        token = os.environ.get("SBXD_TOKEN") or None
        token_file = None if token else os.environ.get("SBXD_TOKEN_FILE") or None
    if token is None and token_file is None:
        raise BadAddress(f"{name} needs a token: token=, token_file=, SBXD_TOKEN or SBXD_TOKEN_FILE")
    return Address(name, None, host, port, _checked(token, "the token") if token is not None else None, token_file)


def _host_and_port(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 80
        plain = parts.username is None and parts.path in ("", "/") and not parts.query and not parts.fragment
    except ValueError:
        host, port, plain = None, 0, False
    if host is None or not plain or parts.scheme != "http":
        # It is not shown: what is wrong with it may be that it has the token in it.
        raise BadAddress("the URL must be http://HOST:PORT, and nothing else")
    return host, port


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _token_of(path: str) -> str:
    try:
        with open(path, "rb") as f:
            text = f.read(TOKEN_MAX + 3)
    except OSError as e:
        raise BadAddress(f"the token file {path} cannot be read: {e.strerror or e}") from e
    return _checked(text.decode("latin-1").removesuffix("\n").removesuffix("\r"), f"the token file {path}")


def _checked(token: str, what: str) -> str:
    """sbxd's own rule. What is wrong is not shown."""
    if not token or len(token) > TOKEN_MAX or not all("!" <= c <= "~" for c in token):
        raise BadAddress(f"{what} must be one line of printable ASCII without blanks")
    return token

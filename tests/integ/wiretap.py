"""What goes over the sockets of this process to a daemon, as pairs of request and response.

Every socket that is connected to a daemon is listened to, whoever made it: http.client, a test that writes bytes by hand,
one that hangs up in the middle. Nothing is changed, and nothing is waited for.
"""

import collections
import socket

HEAD_MAX = 1 << 20
KEPT_MAX = 64 << 20  # of a body; more is counted only
RAW_TYPES = ("application/octet-stream", "application/x-tar")


class Message:
    """A request or a response, as far as it has come."""

    def __init__(self, head):
        first, *lines = head.decode("latin-1").split("\r\n")
        self.words = first.split(" ", 2)
        self.fields = [tuple(p.strip() for p in line.split(":", 1)) for line in lines if ":" in line]
        self.headers = {k.lower(): v for k, v in self.fields}
        self.body = bytearray()  # None: longer than anybody wants to know
        self.complete = False

    def keep(self, data):
        if self.body is None or self.headers.get("content-type") in RAW_TYPES or len(self.body) + len(data) > KEPT_MAX:
            self.body = None
        else:
            self.body += data


class Reader:
    """One direction of a connection, cut into messages. `framing(message)` says how long its body is: a number of bytes,
    "chunked", "close", "frames" of a WebSocket server, or None: what follows is not for us."""

    def __init__(self, framing, on_body, on_end, on_frame=None):
        self.framing, self.on_body, self.on_end, self.on_frame = framing, on_body, on_end, on_frame
        self.state = self._head
        self.text = bytearray()  # of a head, or of a line
        self.left = 0
        self.message = None

    def feed(self, data):
        data = memoryview(data)
        while len(data) and self.state:
            data = data[self.state(data):]

    def stop(self):
        self.state = None

    def _line(self, data, end, most=HEAD_MAX):
        """Collects text up to `end`. (bytes used, the text or None)"""
        before = len(self.text)
        self.text += data[:most]
        at = self.text.find(end, max(0, before - len(end)))
        if at < 0:
            if len(self.text) >= most:
                self.stop()
            return min(len(data), most), None
        text, used = bytes(self.text[:at]), at + len(end) - before
        self.text.clear()
        return used, text

    def _head(self, data):
        used, text = self._line(data, b"\r\n\r\n")
        if text is None:
            if self.text.startswith(b"\r\n"):
                del self.text[:2]
            return used
        self.message = Message(text.lstrip(b"\r\n"))
        length = self.framing(self.message)
        if length is None:
            self.stop()
        elif length == "chunked":
            self.state = self._chunk_size
        elif length == "close":
            self.state = self._rest
        elif length == "frames":
            self.state = self._frame_head
        else:
            self.left, self.state = length, self._counted
            if length == 0:
                self._end()
        return used

    def _end(self):
        self.state = self._head
        self.message.complete = True
        self.on_end(self.message)

    def _pass(self, data):
        n = min(len(data), self.left)
        self.on_body(self.message, data[:n])
        self.left -= n
        return n

    def _counted(self, data):
        n = self._pass(data)
        if self.left == 0:
            self._end()
        return n

    def _rest(self, data):
        self.on_body(self.message, data)
        return len(data)

    def _chunk_size(self, data):
        used, text = self._line(data, b"\r\n", 1024)
        try:
            if text is not None:
                self.left = int(text.split(b";")[0], 16)
                self.state = self._chunk if self.left else self._trailer
        except ValueError:
            self.stop()
        return used

    def _chunk(self, data):
        n = self._pass(data)
        if self.left == 0:
            self.state = self._chunk_end
        return n

    def _chunk_end(self, data):
        used, text = self._line(data, b"\r\n", 1024)
        if text is not None:
            self.state = self._chunk_size
        return used

    def _trailer(self, data):
        used, text = self._line(data, b"\r\n", 1024)
        if text == b"":
            self._end()
        return used


    def _frame_head(self, data):
        for used, byte in enumerate(data, 1):
            self.text.append(byte)
            more = {126: 2, 127: 8}.get(self.text[1] & 127, 0) if len(self.text) > 1 else 1
            if len(self.text) == 2 + more:
                self.opcode = self.text[0] & 15
                self.left = int.from_bytes(self.text[2:], "big") if more else self.text[1] & 127
                self.text.clear()
                self.state = self._frame
                self._frame(data[:0])
                break
        return used

    def _frame(self, data):
        n = min(len(data), self.left)
        self.text += data[:n]
        self.left -= n
        if self.left == 0:
            payload = bytes(self.text)
            self.text.clear()
            self.state = self._frame_head
            self.on_frame(self.message, self.opcode, payload)
        return n


class Tap:
    """One connection. `judge` has begin(request, response), body(response, bytes), end(request, response) and, after a 101,
    frame(response, opcode, bytes); the request is None when there was none that could be read."""

    def __init__(self, judge):
        self.judge = judge
        self.requests = collections.deque()  # that have no response yet
        self.out = Reader(self._request, lambda m, data: m.keep(data), lambda m: None)
        self.inbound = Reader(self._response, judge.body, self._response_end, judge.frame)
        self.request = None  # of the response that is being read

    def sent(self, data):
        self.out.feed(data)

    def received(self, data):
        try:
            if len(data):
                self.inbound.feed(data)
            elif self.inbound.state == self.inbound._rest:
                self.inbound._end()
        except BaseException:  # it was said what is wrong: once is enough
            self.inbound.stop()
            raise

    def _request(self, m):
        if len(m.words) != 3:
            return None
        self.requests.append(m)
        length = m.headers.get("content-length", "0")
        if m.headers.get("transfer-encoding", "").lower() == "chunked":
            return "chunked"
        return int(length) if length.isdecimal() and length.isascii() else None

    def _response(self, m):
        m.status = int(m.words[1])
        if m.status == 100:
            return 0
        self.request = self.requests.popleft() if self.requests else None
        self.judge.begin(self.request, m)
        if m.status == 101:
            self.out.stop()
            return "frames"
        if m.status in (204, 304) or (self.request and self.request.words[0] == "HEAD"):
            return 0
        if m.headers.get("transfer-encoding") == "chunked":
            return "chunked"
        return int(m.headers["content-length"]) if "content-length" in m.headers else "close"

    def _response_end(self, m):
        if m.status != 100:
            self.judge.end(self.request, m)


def is_daemon(family, address):
    if family == socket.AF_UNIX:
        return str(address).endswith("/sbxd.sock")
    return family in (socket.AF_INET, socket.AF_INET6) and (address[0].startswith("127.") or address[0] in ("::1", "localhost"))


class TappedSocket(socket.socket):
    judge = None
    tap = None

    def connect(self, address):
        super().connect(address)
        if is_daemon(self.family, address):
            self.tap = Tap(TappedSocket.judge)

    def sendall(self, data, *flags):
        if self.tap:  # before: the response may be read by another thread
            self.tap.sent(data)
        return super().sendall(data, *flags)

    def send(self, data, *flags):
        n = super().send(data, *flags)
        if self.tap:
            self.tap.sent(memoryview(data)[:n])
        return n

    def sendmsg(self, buffers, *rest):
        data = b"".join(buffers)
        n = super().sendmsg([data], *rest)
        if self.tap:
            self.tap.sent(data[:n])
        return n

    def recv(self, n, flags=0):
        data = super().recv(n, flags)
        if self.tap and n and not flags & socket.MSG_PEEK:
            self.tap.received(data)
        return data

    def recv_into(self, buffer, nbytes=0, flags=0):
        n = super().recv_into(buffer, nbytes, flags)
        if self.tap and len(buffer) and not flags & socket.MSG_PEEK:
            self.tap.received(memoryview(buffer)[:n])
        return n


def listen(judge):
    """From now on every connection to a daemon is told to judge."""
    TappedSocket.judge = judge
    socket.socket = TappedSocket

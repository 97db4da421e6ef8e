"""A small RESP2 client, enough to ask a test node anything."""
from __future__ import annotations

import socket
import ssl
from typing import Any, List, NamedTuple, Optional, Tuple, Union
from urllib.parse import quote

Address = Union[str, Tuple[str, int]]


class Tls(NamedTuple):
    """Paths of PEM files: an authority, and a certificate of it for 127.0.0.1 with its key."""

    ca_file: str
    cert_file: str
    key_file: str


class ReplyError(Exception):
    """The server answered with an error."""


def encode(*args: Any) -> bytes:
    """One command as RESP bytes; str, bytes, int and float arguments."""
    parts = [a if isinstance(a, (bytes, bytearray)) else str(a).encode() for a in args]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), bytes(p)) for p in parts)


def dial(address: Address, timeout_s: float) -> socket.socket:
    """Connects to (host, port) or to the path of a unix socket."""
    if isinstance(address, tuple):
        return socket.create_connection(address, timeout_s)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(timeout_s)
    try:
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def url_of(address: Address, user: Optional[str], password: Optional[str], db: Optional[int] = None,
           tls: Optional[Tls] = None) -> str:
    """A node's URL as the library takes it."""
    login = "" if password is None else "%s:%s@" % (quote(user or "", safe=""), quote(password, safe=""))
    if isinstance(address, tuple):
        scheme = "rediss" if tls else "redis"
        return "%s://%s%s:%d%s" % (scheme, login, *address, "" if db is None else "/%d" % db)
    return "unix://%s%s%s" % (login, quote(address), "" if db is None else "?db=%d" % db)


class RespConnection:
    """A connection to one server; replies are bytes, int, None or lists, errors are raised as ReplyError."""

    def __init__(self, address: Address, timeout_s: float = 30.0, tls: Optional[Tls] = None) -> None:
        self.sock = dial(address, timeout_s)
        if tls:
            context = ssl.create_default_context(cafile=tls.ca_file)
            context.load_cert_chain(tls.cert_file, tls.key_file)
            self.sock = context.wrap_socket(self.sock, server_hostname="127.0.0.1")
        self.file = self.sock.makefile("rb")

    def command(self, *args: Any) -> Any:
        reply = self.pipeline([args])[0]
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def pipeline(self, commands: List[Tuple[Any, ...]]) -> List[Any]:
        """Sends all, then reads all; error replies stand in the list."""
        self.sock.sendall(b"".join(encode(*c) for c in commands))
        return [self.read() for _ in commands]

    def pipeline_then(self, commands: List[Tuple[Any, ...]], *last: Any) -> Tuple[List[Any], bytes]:
        """As pipeline(), and the bytes that come for one more command: to compare, where to read them takes long."""
        self.sock.sendall(b"".join(encode(*c) for c in [*commands, last, ("PING",)]))
        replies, raw = [self.read() for _ in commands], b""
        while not raw.endswith(b"+PONG\r\n"):
            more = self.file.read1(65536)
            if not more:
                raise ConnectionError("the server closed the connection")
            raw += more
        return replies, raw

    def read(self) -> Any:
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            return ReplyError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        raise ConnectionError("not RESP2: %r" % line)

    def close(self) -> None:
        self.file.close()
        self.sock.close()

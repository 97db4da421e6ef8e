"""A scripted server for replies that a real one cannot be made to give."""
from __future__ import annotations

import hashlib
import itertools
import os
import socket
import struct
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from .listener import Listener

HOLD = "hold"    # answer no further until let_go()
CLOSE = "close"  # close the connection
RESET = "reset"  # close it with a RST

Step = Union[bytes, str]
Reply = Union[Step, Tuple[Step, ...], List[Any], Callable[[List[bytes]], Any]]

_run_ids = itertools.count(1)


class FakeServer:
    """Answers as a healthy standalone master that may vote, except for the commands in `replies`.

    A reply is raw bytes, HOLD, CLOSE or RESET; a tuple of those, done in order; a callable that gets the arguments and
    returns one of them; or a list of replies of which each is used once and the last stays. The name "connect" stands
    for the moment of the connection, "PROVE" for the scripts that are tried in the set-up. Whatever was received stands
    in `seen`, one list of arguments per command; the tried scripts stand in `proofs`.
    """

    def __init__(self, replies: Optional[Mapping[str, Reply]] = None, accepting: bool = True) -> None:
        self.run_id = "%040x" % (0xfa4e << 64 | next(_run_ids))
        self.replies: Dict[str, Reply] = {name.upper(): reply for name, reply in (replies or {}).items()}
        self.seen: List[List[bytes]] = []
        self.proofs: List[List[bytes]] = []
        self.connections: List[socket.socket] = []
        self.accepted = 0
        self.bootstrap()
        self._owner = os.getpid()
        self._go = threading.Event()
        self._lock = threading.Lock()
        self._listen(accepting)

    def _listen(self, accepting: bool) -> None:
        self._listener = Listener(accepting)
        self.host, self.port = self._listener.sock.getsockname()
        if accepting:
            self.open()

    def open(self) -> None:
        """Begins to take connections, where it was made with accepting=False: until now they neither succeed nor
        fail."""
        self._listener.open()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def name(self) -> str:
        return "%s:%d" % (self.host, self.port)

    @property
    def url(self) -> str:
        return "redis://" + self.name

    def bootstrap(self, nodes: int = 1, database: int = 0, max_ttl_ms: Optional[int] = None) -> None:
        """Its marker is that of a server that may vote for clients of so many nodes."""
        self.marker = b"v2 %s 0 %d %d fa4e %d -" % (self.run_id.encode(), nodes, database, max_ttl_ms or 30000)

    def count(self, command: str) -> int:
        """How many commands of that name arrived."""
        with self._lock:
            return sum(1 for args in self.seen if args[0].upper() == command.upper().encode())

    def let_go(self) -> None:
        """Ends every HOLD, also those to come."""
        self._go.set()

    def close(self) -> None:
        if os.getpid() != self._owner:  # what is shut in a forked child is shut for its parent, too
            return
        self._go.set()
        _shut(self._listener.sock)  # wakes accept, which close alone does not
        self._listener.close()
        with self._lock:
            for sock in self.connections:
                _shut(sock)

    def __enter__(self) -> "FakeServer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # -- one thread per connection

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.sock.accept()
            except OSError:
                return
            with self._lock:
                self.connections.append(sock)
                self.accepted += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            with sock, sock.makefile("rb") as lines:
                if not self._perform(sock, self._take("CONNECT", [], b"")):
                    return
                while True:
                    args = _read_command(lines)
                    if args is None:
                        return
                    name = self._note(args)
                    if not self._perform(sock, self._take(name, args, None)):
                        return
        except OSError:
            pass

    def _note(self, args: List[bytes]) -> str:
        """Remembers a command: the name under which its reply stands."""
        name = _name_of(args)
        with self._lock:
            (self.proofs if name == "PROVE" else self.seen).append(args)
        return name

    def _take(self, name: str, args: List[bytes], otherwise: Optional[bytes]) -> Any:
        with self._lock:
            reply = self.replies.get(name, otherwise)
            if isinstance(reply, list):
                reply = reply.pop(0) if len(reply) > 1 else reply[0]
        if callable(reply):
            reply = reply(args)
        return self._healthy(name, args) if reply is None else reply

    def _perform(self, sock: socket.socket, reply: Any) -> bool:
        for step in reply if isinstance(reply, tuple) else (reply,):
            if step == HOLD:
                self._go.wait()
            elif step == CLOSE:
                _shut(sock)
                return False
            elif step == RESET:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            elif step:
                sock.sendall(step)
        return True

    def _healthy(self, name: str, args: List[bytes]) -> bytes:
        sub = args[1].upper() if len(args) > 1 else b""
        if name == "HELLO":
            return _array(b"server", b"redis", b"version", b"7.0.15", b"proto", 2, b"id", 1, b"mode", b"standalone",
                          b"role", b"master", b"modules", [])
        if name == "INFO":
            return _bulk(self.info().encode())
        if name == "SCRIPT" and sub == b"LOAD":
            return _bulk(hashlib.sha1(args[2]).hexdigest().encode())
        if name == "PROVE":
            return b":0\r\n" if args[0] == b"EVAL" else b"*1\r\n:0\r\n"
        if name in ("EVALSHA", "EVAL"):
            return _script_reply(args)
        if name == "GETRANGE":
            return _bulk(b"")
        if name == "PTTL":
            return b":-2\r\n"
        if name == "EXISTS":
            return b":0\r\n"
        if name == "GET":
            return _bulk(self.marker) if args[1].endswith(b"libredlock:m") else b"$-1\r\n"
        if name == "TIME":
            now_us = time.time_ns() // 1000
            return _array(b"%d" % (now_us // 1000000), b"%d" % (now_us % 1000000))
        if name == "PING":
            return b"+PONG\r\n"
        return b"+OK\r\n"

    def info(self, **changed: Any) -> str:
        """The text of INFO, with fields changed: for replies={"INFO": lambda args: bulk(fake.info(role="slave"))}."""
        fields: Dict[str, Any] = {
            "redis_version": "7.0.15", "redis_mode": "standalone", "run_id": self.run_id, "uptime_in_seconds": 100000,
            "role": "master", "connected_slaves": 0, "maxmemory": 0, "maxmemory_policy": "noeviction", "loading": 0}
        fields.update(changed)
        return "".join("%s:%s\r\n" % item for item in fields.items())


def bulk(text: Union[str, bytes]) -> bytes:
    """A RESP bulk string."""
    return _bulk(text.encode() if isinstance(text, str) else text)


def _bulk(data: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(data), data)


def _array(*items: Any) -> bytes:
    parts = [b"*%d\r\n" % len(items)]
    for item in items:
        parts.append(b":%d\r\n" % item if isinstance(item, int) else _array(*item) if isinstance(item, list)
                     else _bulk(item))
    return b"".join(parts)


def _script_reply(args: List[bytes]) -> bytes:
    """1 for a release (keys, token); as many 1 as keys for an extension (keys, ttl, tokens); an empty queue."""
    keys = int(args[2])
    if any(b"libredlock:q:" in key for key in args[3:3 + keys]):
        return b"*2\r\n:0\r\n:-2\r\n" if len(args) - 3 - keys == 10 else b":1\r\n"
    return b":1\r\n" if len(args) - 3 == 2 * keys else _array(*[1] * keys)


def _name_of(args: List[bytes]) -> str:
    is_proof = len(args) > 3 and args[0] in (b"EVAL", b"EVALSHA") and b"libredlock:proof:" in args[3]
    return "PROVE" if is_proof else args[0].decode("latin-1").upper()


def _read_command(lines: Any) -> Optional[List[bytes]]:
    head = lines.readline()
    if not head.startswith(b"*"):
        return None
    args = []
    for _ in range(int(head[1:])):
        size = lines.readline()
        if not size.startswith(b"$"):
            return None
        args.append(lines.read(int(size[1:]) + 2)[:-2])
    return args


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass

"""A proxy between a client and a node that holds, delays, loses and drops what passes; and an address that is dead."""
from __future__ import annotations

import re
import selectors
import socket
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Pattern, Tuple, Union

from .cut import Cut, arguments, frame_end
from .resp import Address, dial, url_of

UP = "up"      # from the client to the server
DOWN = "down"  # from the server to the client
BOTH = "both"


class _Pipe:
    """One direction of one connection: chunks on their way from source to sink, each with the time it is due."""

    def __init__(self, direction: str, source: socket.socket, sink: socket.socket) -> None:
        self.direction = direction
        self.source = source
        self.sink = sink
        self.chunks: Deque[Tuple[float, bytes]] = deque()
        self.rest = b""        # the beginning of a command or reply, while there are cuts
        self.due: Deque[Optional[Cut]] = deque()  # of the server's side: the cut for each reply that is owed
        self.ended = False     # the source has closed
        self.dropped = False   # the client's side was cut
        self.late = False      # dropped, and what it had sent waits for deliver()
        self.finished = False  # the end was passed on


class Proxy:
    """Listens on loopback and passes everything to `target`: a Node, (host, port) or the path of a unix socket.

    It keeps the order of bytes and doubles none, as TCP does. All faults may be set and lifted at any time.
    """

    def __init__(self, target: Any) -> None:
        self._target: Address = getattr(target, "address", target)
        self._login = getattr(target, "login", (None, None))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        self._lock = threading.RLock()
        self._pipes: List[_Pipe] = []
        self._held = {UP: False, DOWN: False}
        self._delay_s = {UP: 0.0, DOWN: 0.0}
        self._swallow = False
        self._refuse = False
        self._watches: List[Tuple[str, Pattern[bytes], Callable[[], Any]]] = []
        self._cuts: List[Cut] = []
        self._closing = False
        self._wake_read, self._wake_write = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        return "%s:%d" % (self.host, self.port)

    @property
    def url(self) -> str:
        """With the credentials of the node behind it."""
        return url_of((self.host, self.port), *self._login)

    @property
    def connections(self) -> int:
        """How many connections pass through it now."""
        with self._lock:
            return sum(1 for pipe in self._pipes if pipe.direction == UP and not pipe.dropped)

    def held_bytes(self, direction: str = BOTH) -> bytes:
        """What waits in the proxy, of dropped connections too."""
        with self._lock:
            return b"".join(data for pipe in self._pipes if direction in (BOTH, pipe.direction)
                            for _, data in pipe.chunks)

    # -- faults

    def hold(self, direction: str = BOTH) -> None:
        """Keeps bytes back until go()."""
        self._change(lambda: self._held.update({d: True for d in _directions(direction)}))

    def go(self) -> None:
        """Ends hold, delay, black_hole and refuse; what was held moves on."""

        def lift() -> None:
            self._held = {UP: False, DOWN: False}
            self._delay_s = {UP: 0.0, DOWN: 0.0}
            self._swallow = self._refuse = False
            self._watches.clear()
            self._cuts.clear()

        self._change(lift)

    def delay(self, up_ms: float = 0, down_ms: float = 0) -> None:
        """Every byte takes that much longer from now on."""
        self._change(lambda: self._delay_s.update({UP: up_ms / 1000, DOWN: down_ms / 1000}))

    def black_hole(self) -> None:
        """Connections stay and new ones are taken, but every byte from now on is lost, until go()."""
        self._change(lambda: setattr(self, "_swallow", True))

    def refuse(self) -> None:
        """New connections are closed at once, until go()."""
        self._change(lambda: setattr(self, "_refuse", True))

    def drop(self, late: bool = False) -> None:
        """Cuts the client's side of every connection. With late=True what the client had sent and was held reaches the
        server with deliver() (and is executed then); otherwise it is lost."""
        self._change(lambda: self._drop(late))

    def deliver(self) -> None:
        """Passes on the bytes of connections dropped with late=True, then closes them towards the server."""

        def free() -> None:
            for pipe in self._pipes:
                pipe.late = False

        self._change(free)

    def when(self, pattern: Union[str, bytes], action: Callable[[], Any], direction: str = UP) -> None:
        """Once: calls `action` (for example proxy.hold) before the first chunk that matches the regular expression is
        passed on in that direction."""
        raw = pattern.encode() if isinstance(pattern, str) else pattern
        self._change(lambda: self._watches.append((direction, re.compile(raw, re.S), action)))

    def at(self, name: str, key: Union[str, bytes, None], action: Callable[[], Any], nth: int = 1,
           byte: Optional[int] = None, direction: str = UP) -> None:
        """Once: calls `action` after so many bytes (None: all) of the nth command from now on with that name and with
        `key` among its arguments (None: any), or of the reply to it. Bytes that follow meet what the action has set."""
        cut = Cut(direction, name, key, nth, byte, action)
        self._change(lambda: self._cuts.append(cut))

    def close(self) -> None:
        if not self._closing:
            self._change(lambda: setattr(self, "_closing", True))
        self._thread.join(5)

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # -- the thread

    def _change(self, change: Callable[[], Any]) -> None:
        with self._lock:
            change()
            self._wake_write.send(b"x")  # the thread cannot end before that

    def _run(self) -> None:
        while not self._closing:
            for key, _ in self._selector.select(self._pause_s()):
                with self._lock:
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.fileobj is self._wake_read:
                        self._wake_read.recv(4096)
                    else:
                        self._receive(key.data)
            with self._lock:
                self._flush()
        self._end()

    def _pause_s(self) -> Optional[float]:
        with self._lock:
            due = [pipe.chunks[0][0] for pipe in self._pipes if pipe.chunks and self._moves(pipe)]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            if self._refuse:
                raise ConnectionError
            server = dial(self._target, 5)
        except OSError:
            client.close()
            return
        for sock in (client, server):
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._add(_Pipe(UP, client, server))
        self._add(_Pipe(DOWN, server, client))

    def _add(self, pipe: _Pipe) -> None:
        self._pipes.append(pipe)
        self._selector.register(pipe.source, selectors.EVENT_READ, pipe)

    def _receive(self, pipe: _Pipe) -> None:
        if pipe not in self._pipes or pipe.ended:
            return
        try:
            data = pipe.source.recv(65536)
        except OSError:
            data = b""
        if not data:
            pipe.ended = True
            self._selector.unregister(pipe.source)
        elif not self._swallow:
            self._notice(pipe.direction, data)
            self._pass_on(pipe, data)

    def _pass_on(self, pipe: _Pipe, data: bytes) -> None:
        if not (self._cuts or pipe.rest or pipe.due):
            return self._queue(pipe, data)
        pipe.rest += data
        end = frame_end(pipe.rest)
        while end:
            frame, pipe.rest = pipe.rest[:end], pipe.rest[end:]
            self._pass_frame(pipe, frame)
            end = frame_end(pipe.rest)
        return None

    def _pass_frame(self, pipe: _Pipe, frame: bytes) -> None:
        cut = self._cut_of(pipe, frame)
        if cut is None:
            return self._queue(pipe, frame)
        split = len(frame) if cut.byte is None else cut.byte
        self._queue(pipe, frame[:split])
        self._flush()
        cut.action()
        self._queue(pipe, frame[split:])
        return None

    def _cut_of(self, pipe: _Pipe, frame: bytes) -> Optional[Cut]:
        if pipe.direction == DOWN:
            return pipe.due.popleft() if pipe.due else None
        args = arguments(frame)
        found = [cut for cut in self._cuts if cut.is_at(args)]
        self._cuts = [cut for cut in self._cuts if cut not in found]
        for twin in self._pipes:
            if twin.source is pipe.sink:
                twin.due.append(next((cut for cut in found if cut.direction == DOWN), None))
        return next((cut for cut in found if cut.direction == UP), None)

    def _queue(self, pipe: _Pipe, data: bytes) -> None:
        is_lost = self._swallow or pipe.dropped and not pipe.late
        if data and not is_lost:
            pipe.chunks.append((time.monotonic() + self._delay_s[pipe.direction], data))

    def _notice(self, direction: str, data: bytes) -> None:
        for watch in list(self._watches):
            if watch[0] == direction and watch[1].search(data):
                self._watches.remove(watch)
                watch[2]()

    def _moves(self, pipe: _Pipe) -> bool:
        return not pipe.late if pipe.dropped else not self._held[pipe.direction]

    def _flush(self) -> None:
        for pipe in list(self._pipes):
            while pipe.chunks and self._moves(pipe) and pipe.chunks[0][0] <= time.monotonic():
                self._send(pipe, pipe.chunks.popleft()[1])
            if pipe.ended and not pipe.chunks and self._moves(pipe) and not pipe.finished:
                pipe.finished = True
                _half_close(pipe.sink)
        self._forget_finished()

    def _send(self, pipe: _Pipe, data: bytes) -> None:
        try:
            pipe.sink.sendall(data)
        except OSError:
            pipe.chunks.clear()

    def _forget_finished(self) -> None:
        for pipe in list(self._pipes):
            twin = next((p for p in self._pipes if p.source is pipe.sink), None)
            if pipe.finished and (twin is None or twin.finished):
                for done in filter(None, (pipe, twin)):
                    self._pipes.remove(done)
                    self._close(done.source)
                self._close(pipe.sink)
                return self._forget_finished()
        return None

    def _drop(self, late: bool) -> None:
        for up in [pipe for pipe in self._pipes if pipe.direction == UP and not pipe.dropped]:
            down = next(pipe for pipe in self._pipes if pipe.source is up.sink)
            down.chunks.clear()
            down.finished = True
            if late:
                self._receive_rest(up)
            self._close(up.source)
            up.ended = up.dropped = True
            up.late = late
            if not late:
                up.chunks.clear()

    def _receive_rest(self, pipe: _Pipe) -> None:
        """What the client has sent and nobody has read yet."""
        pipe.source.setblocking(False)
        try:
            while not pipe.ended:
                data = pipe.source.recv(65536)
                if not data:
                    return
                pipe.chunks.append((time.monotonic(), data))
        except OSError:
            pass

    def _close(self, sock: socket.socket) -> None:
        try:
            self._selector.unregister(sock)
        except (KeyError, ValueError):
            pass
        sock.close()

    def _end(self) -> None:
        with self._lock:
            for pipe in self._pipes:
                pipe.source.close()
                pipe.sink.close()
            self._pipes.clear()
            for sock in (self._listener, self._wake_read, self._wake_write):
                sock.close()
            self._selector.close()


class BlackHole:
    """An address of loopback that never answers a SYN: its queue of connections is full."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self.host, self.port = self._listener.getsockname()
        self._fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex((self.host, self.port))
            self._fillers.append(filler)

    @property
    def name(self) -> str:
        return "%s:%d" % (self.host, self.port)

    @property
    def url(self) -> str:
        return "redis://" + self.name

    def close(self) -> None:
        for sock in [self._listener, *self._fillers]:
            sock.close()

    def __enter__(self) -> "BlackHole":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _directions(direction: str) -> Tuple[str, ...]:
    return (UP, DOWN) if direction == BOTH else (direction,)


def _half_close(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass

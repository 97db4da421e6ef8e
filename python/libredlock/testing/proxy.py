"""A proxy between a client and a node that holds, delays, loses and drops what passes; and an address that is dead."""
from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Deque, List, Optional, Pattern, Set, Tuple, TypeVar, Union

from .cut import Cut, arguments, frame_end
from .listener import Listener
from .resp import Address, url_of

UP = "up"      # from the client to the server
DOWN = "down"  # from the server to the client
BOTH = "both"

_DIAL_S = 5
_Result = TypeVar("_Result")
_Self = TypeVar("_Self", bound="_Listener")


class _Faults:
    """What a proxy does to all of its connections."""

    def __init__(self) -> None:
        self.errors: List[Exception] = []  # of actions
        self.lift()

    def lift(self) -> None:
        self.held = {UP: False, DOWN: False}
        self.delay_s = {UP: 0.0, DOWN: 0.0}
        self.swallow = self.refuse = False
        self.watches: List[Tuple[str, Pattern[bytes], Callable[[], Any]]] = []
        self.cuts: List[Cut] = []

    def notice(self, direction: str, data: bytes) -> None:
        found = [watch for watch in self.watches if watch[0] == direction and watch[1].search(data)]
        self.watches = [watch for watch in self.watches if watch not in found]
        for watch in found:
            self.act(watch[2])

    def cuts_at(self, command: bytes) -> List[Cut]:
        if not self.cuts:
            return []
        args = arguments(command)
        found = [cut for cut in self.cuts if cut.is_at(args)]
        self.cuts = [cut for cut in self.cuts if cut not in found]
        return sorted(found, key=lambda cut: cut.place(len(command)))

    def act(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except Exception as error:
            self.errors.append(error)


class _End(asyncio.Protocol):
    """One end of a connection, the client or the server, and what it has sent on its way to the other end."""

    other: _End
    transport: asyncio.Transport

    def __init__(self, faults: _Faults, direction: str) -> None:
        self.faults = faults
        self.direction = direction
        self.loop = asyncio.get_running_loop()
        self.chunks: Deque[Tuple[float, bytes]] = deque()  # each with the time it is due
        self.rest = b""        # a command or reply that is not complete yet
        self.passed = 0        # so much of the rest is in the chunks already
        self.owed: Deque[List[Cut]] = deque()  # of the server: the cuts in each reply to come
        self.full = True       # takes nothing now: is not connected yet, or does not read
        self.ended = False     # sends no more
        self.finished = False  # and the other end was notified
        self.lost = False      # is closed in both directions
        self.late: Optional[bool] = None  # dropped with late=True: whether it waits for deliver()
        self.silent = False    # what comes is kept back, until speak()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(0)  # what does not fit stays in the chunks
        self.full = False
        self.other.flush()

    def pause_writing(self) -> None:
        self.full = True
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        self.full = False
        self.other.flush()
        if not self.full:
            self.other.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self.faults.swallow and self.direction == UP:
            return
        self.rest += data
        self.faults.notice(self.direction, data)
        begin = 0  # of the next command or reply; the rest is cut once for all of them, as there may be thousands
        while end := frame_end(self.rest, begin):
            cuts = self.cuts_in(self.rest[begin:end])
            if cuts:
                self.leave(begin)
                self.pass_with_stops(cuts, end - begin)
                begin = 0
            else:
                self.queue(self.rest[max(begin, self.passed):end])
                begin = end
        self.leave(begin)
        if not (self.faults.cuts or any(self.owed)):
            self.pass_rest()
        self.flush()

    def eof_received(self) -> bool:
        self.pass_rest()
        self.ended = True
        self.flush()
        return True  # the other direction stays open

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self.lost = True
        self.full = False
        self.eof_received()
        self.other.flush()

    def pass_with_stops(self, cuts: List[Cut], size: int) -> None:
        """A complete command or reply, with a stop at each of its cuts."""
        done = 0
        for cut in cuts:
            self.take(cut.place(size) - done)
            done = cut.place(size)
            self.flush()
            self.faults.act(cut.action)
        self.take(size - done)

    def cuts_in(self, frame: bytes) -> List[Cut]:
        if self.direction == DOWN:
            return self.owed.popleft() if self.owed else []
        cuts = self.faults.cuts_at(frame)
        self.other.owed.append([cut for cut in cuts if cut.direction == DOWN])
        return [cut for cut in cuts if cut.direction == UP]

    def take(self, size: int) -> None:
        self.queue(self.rest[self.passed:size])
        self.leave(size)

    def leave(self, size: int) -> None:
        """That much of the rest is in the chunks."""
        self.rest, self.passed = self.rest[size:], max(0, self.passed - size)

    def pass_rest(self) -> None:
        self.queue(self.rest[self.passed:])
        self.passed = len(self.rest)

    def queue(self, data: bytes) -> None:
        if self.faults.swallow or not data:
            return
        delay_s = self.faults.delay_s[self.direction]
        self.chunks.append((self.loop.time() + delay_s, data))
        if delay_s:
            self.loop.call_later(delay_s, self.flush)

    def flush(self) -> None:
        """Passes on what is due, and then the end."""
        if self.silent or (self.faults.held[self.direction] if self.late is None else self.late):
            return
        sink, now_s = self.other, self.loop.time()
        while self.chunks and self.chunks[0][0] <= now_s and not sink.full:
            data = self.chunks.popleft()[1]
            if not sink.transport.is_closing():
                sink.transport.write(data)
        if self.ended and not self.chunks and not sink.full:
            self.finished = True
            with suppress(OSError):
                sink.transport.write_eof()
            if sink.finished:
                self.transport.close()
                sink.transport.close()


class _Client(_End):
    """The end that connected to the proxy; its other end is the server."""

    def __init__(self, faults: _Faults, sock: socket.socket) -> None:
        super().__init__(faults, UP)
        self.sock = sock
        self.other = _End(faults, DOWN)
        self.other.other = self

    def held_bytes(self, direction: str) -> bytes:
        return b"".join(b"".join(data for _, data in end.chunks) + end.rest[end.passed:]
                        for end in (self, self.other) if direction in (BOTH, end.direction))

    def go(self) -> None:
        for end in (self, self.other):
            end.silent = False
            end.owed = deque([] for _ in end.owed)
            end.pass_rest()
            end.flush()

    def silence(self, direction: str) -> None:
        for end in (self, self.other):
            end.silent = end.silent or direction in (BOTH, end.direction)

    def drop(self, late: bool) -> None:
        if self.late is not None:
            return
        self.pass_rest()
        self.rest, self.passed = b"", 0
        self.other.chunks.clear()
        if late:
            self.receive_unread()
            self.late = self.other.finished = True
        else:
            self.chunks.clear()
            self.other.transport.abort()
        self.ended = True
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)  # the client shall know now, abort() closes a moment later
        self.transport.abort()

    def receive_unread(self) -> None:
        with suppress(OSError):
            while data := self.sock.recv(65536):
                self.queue(data)

    def deliver(self) -> None:
        if self.late:
            self.late = False
            self.flush()


class _Listener:
    """An address of loopback."""

    def __init__(self, accepting: bool, login: Tuple[Optional[str], Optional[str]] = (None, None)) -> None:
        self._listener = Listener(accepting)
        self._login = login
        self.host, self.port = self._listener.sock.getsockname()

    @property
    def name(self) -> str:
        return "%s:%d" % (self.host, self.port)

    @property
    def url(self) -> str:
        """With the credentials of the node behind it, if there is one."""
        return url_of((self.host, self.port), *self._login)

    def close(self) -> None:
        self._listener.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Proxy(_Listener):
    """Listens on loopback and passes everything to `target`: a Node, (host, port) or the path of a unix socket.

    It keeps the order of bytes and doubles none, as TCP does. All faults may be set and lifted at any time and are in
    force when the call returns. The actions of when() and at() run in the proxy's event loop: nothing else passes and
    no call returns before an action has, and close() raises what one has raised.
    """

    def __init__(self, target: Any, accepting: bool = True) -> None:
        super().__init__(accepting, getattr(target, "login", (None, None)))
        self._target: Address = getattr(target, "address", target)
        self._faults = _Faults()
        self._clients: List[_Client] = []
        self._opening: Set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._is_open = False
        if accepting:
            self.open()

    def open(self) -> None:
        """Begins to take connections, where it was made with accepting=False: until now they neither succeed nor
        fail."""
        self._listener.open()
        self._change(self._begin)

    def lead_to(self, target: Any) -> None:
        """New connections go to another server: an address that was moved."""
        self._change(lambda: setattr(self, "_target", getattr(target, "address", target)))

    @property
    def connections(self) -> int:
        """How many connections pass through it now."""
        return self._change(lambda: sum(not client.transport.is_closing() for client in self._clients))

    def held_bytes(self, direction: str = BOTH) -> bytes:
        """What waits in the proxy, of dropped connections too."""
        return self._change(lambda: b"".join(client.held_bytes(direction) for client in self._clients))

    # -- faults

    def hold(self, direction: str = BOTH) -> None:
        """Keeps bytes back until go()."""
        held = (UP, DOWN) if direction == BOTH else (direction,)
        self._change(lambda: self._faults.held.update({one: True for one in held}))

    def go(self) -> None:
        """Ends all that was set: hold, silence, delay, black_hole, refuse, when, at; what was held moves on."""

        def lift() -> None:
            self._faults.lift()
            self._each(_Client.go)

        self._change(lift)

    def silence(self, direction: str = BOTH) -> None:
        """Keeps back what comes on the connections of now, until go(): a network has forgotten them, new ones work.
        What the client has sent on one of them reaches the server with go(), also if the client has closed it since."""
        self._change(lambda: self._each(lambda client: client.silence(direction)))

    def delay(self, up_ms: float = 0, down_ms: float = 0) -> None:
        """Every byte takes that much longer from now on."""
        self._change(lambda: self._faults.delay_s.update({UP: up_ms / 1000, DOWN: down_ms / 1000}))

    def black_hole(self) -> None:
        """Connections stay and new ones are taken, but every byte from now on is lost, until go()."""
        self._change(lambda: setattr(self._faults, "swallow", True))

    def refuse(self) -> None:
        """New connections are closed at once, until go()."""
        self._change(lambda: setattr(self._faults, "refuse", True))

    def drop(self, late: bool = False) -> None:
        """Cuts the client's side of every connection. With late=True what the client had sent and was held reaches the
        server with deliver() (and is executed then); otherwise it is lost."""
        self._change(lambda: self._each(lambda client: client.drop(late)))

    def deliver(self) -> None:
        """Passes on the bytes of connections dropped with late=True, then closes them towards the server."""
        self._change(lambda: self._each(_Client.deliver))

    def when(self, pattern: Union[str, bytes], action: Callable[[], Any], direction: str = UP) -> None:
        """Once: calls `action` (for example proxy.hold) before the first chunk that matches the regular expression is
        passed on in that direction."""
        raw = pattern.encode() if isinstance(pattern, str) else pattern
        self._change(lambda: self._faults.watches.append((direction, re.compile(raw, re.S), action)))

    def at(self, name: str, key: Union[str, bytes, None], action: Callable[[], Any], nth: int = 1,
           byte: Optional[int] = None, direction: str = UP) -> None:
        """Once: calls `action` after so many bytes (None: all) of the nth command from now on with that name and with
        `key` among its arguments (None: any), or of the reply to it. Bytes that follow meet what the action has set."""
        cut = Cut(direction, name, key, nth, byte, action)
        self._change(lambda: self._faults.cuts.append(cut))

    def close(self) -> None:
        if self._thread.is_alive():
            self._change(self._end)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        if self._faults.errors:
            raise self._faults.errors.pop(0)

    # -- in the loop, where alone all this is touched

    def _change(self, change: Callable[[], _Result]) -> _Result:
        """Waits until the loop has done it; who has connected to the proxy before is one of the clients then."""
        if threading.current_thread() is self._thread or not self._thread.is_alive():
            return change()

        async def settle_and_change() -> _Result:
            if self._is_open:
                self._accept()
            if self._opening:
                await asyncio.wait(self._opening)
            return change()

        return asyncio.run_coroutine_threadsafe(settle_and_change(), self._loop).result()

    def _begin(self) -> None:
        self._listener.sock.setblocking(False)
        self._is_open = True
        self._loop.add_reader(self._listener.sock, self._accept)

    def _each(self, change: Callable[[_Client], None]) -> None:
        for client in self._clients:
            change(client)

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            while True:
                sock, _ = self._listener.sock.accept()
                if self._faults.refuse:
                    sock.close()
                else:
                    task = self._loop.create_task(self._open(sock))
                    self._opening = {task, *(one for one in self._opening if not one.done())}

    async def _open(self, sock: socket.socket) -> None:
        client = _Client(self._faults, sock)
        dial = (self._loop.create_unix_connection(lambda: client.other, self._target)
                if isinstance(self._target, str) else
                self._loop.create_connection(lambda: client.other, *self._target))
        try:
            await asyncio.wait_for(dial, _DIAL_S)
        except (OSError, asyncio.TimeoutError):
            sock.close()
            return
        if sock.family != socket.AF_UNIX:  # asyncio does not for a socket that it has not made
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await self._loop.connect_accepted_socket(lambda: client, sock)
        self._clients = [*(one for one in self._clients if not (one.lost and one.other.lost)), client]

    def _end(self) -> None:
        self._loop.remove_reader(self._listener.sock)
        self._listener.close()
        for client in self._clients:
            client.transport.abort()
            client.other.transport.abort()


class BlackHole(_Listener):
    """An address of loopback that never answers a SYN: its queue of connections is full."""

    def __init__(self) -> None:
        super().__init__(accepting=False)

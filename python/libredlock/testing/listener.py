"""A listening socket of loopback, also one that takes no connection yet."""
from __future__ import annotations

import select
import socket
from contextlib import suppress
from typing import List

_FULL_S = 30


class Listener:
    """With accepting=False its queue is full until open(): connections neither succeed nor fail. Linux asks again after
    a second."""

    def __init__(self, accepting: bool = True) -> None:
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=128 if accepting else 0)
        self._fillers: List[socket.socket] = [] if accepting else [socket.socket() for _ in range(4)]
        for filler in self._fillers:
            filler.setblocking(False)
            filler.connect_ex(self.sock.getsockname())
        if self._fillers:
            select.select([], self._fillers, [], _FULL_S)  # the one that is let in fills it

    def open(self) -> None:
        self._close_fillers()
        self.sock.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                self.sock.accept()[0].close()
        self.sock.setblocking(True)
        self.sock.listen(128)

    def close(self) -> None:
        self._close_fillers()
        self.sock.close()

    def _close_fillers(self) -> None:
        for filler in self._fillers:
            filler.close()
        self._fillers = []

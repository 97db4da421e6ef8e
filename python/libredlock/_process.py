"""What concerns the whole process: forks, and leaving cleanly."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from ._base import ClientBase


class Process:
    """This process; its generation rises in every child."""

    __slots__ = ("generation", "main_thread", "armed", "is_leaving", "_clients", "__weakref__")

    def __init__(self) -> None:
        self.generation = 0
        self.main_thread = threading.main_thread().ident
        self.armed = -1
        self.is_leaving = False
        self._clients: WeakSet[ClientBase] = WeakSet()
        os.register_at_fork(after_in_child=self._forked)

    def add(self, client: ClientBase) -> None:
        self._clients.add(client)

    def arm(self) -> None:
        """Sees to it that held locks are released at exit; to be called at the first lock of every process."""
        if self.armed == self.generation:
            return
        if self.armed < 0:
            import atexit

            atexit.register(self.leave)
        self.armed = self.generation
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None:
            multiprocessing.register_after_fork(self, Process._arm_child)
            self._arm_child()

    def _arm_child(self) -> None:
        """A child of multiprocessing runs no atexit handlers, and forgets all finalizers when its work begins."""
        multiprocessing = sys.modules["multiprocessing.util"]
        multiprocessing.Finalize(None, self.leave, exitpriority=-100)

    def leave(self) -> None:
        self.is_leaving = True
        for client in list(self._clients):
            client._leave()

    def stay_if_leaving(self) -> None:
        """At exit only daemon threads still wait; they stop as such threads do, without a traceback of their own."""
        while self.is_leaving and threading.get_ident() != self.main_thread:
            time.sleep(60)

    def _forked(self) -> None:
        self.generation += 1
        self.is_leaving = False
        self.main_thread = threading.get_ident()
        watch = sys.modules.get("libredlock._watch")
        if watch is not None:
            watch.watch.forked()
        for client in list(self._clients):
            client._forked()


here = Process()

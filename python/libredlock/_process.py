"""What concerns the whole process: forks, and leaving cleanly."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING
from weakref import WeakSet

from ._core import lib

if TYPE_CHECKING:
    from ._base import ClientBase


class Process:
    """This process; its generation rises in every child."""

    __slots__ = ("generation", "registered", "is_leaving", "_clients", "__weakref__")

    def __init__(self) -> None:
        self.generation = generation()
        lib.main_thread = threading.main_thread().ident
        self.registered = -1
        self.is_leaving = False
        self._clients: WeakSet[ClientBase] = WeakSet()
        os.register_at_fork(after_in_child=self.notice_fork)

    def add(self, client: ClientBase) -> None:
        self._clients.add(client)

    def register_exit(self) -> None:
        """Sees to it that held locks are released at exit; to be called at the first lock of every process."""
        if self.registered == self.generation:
            return
        if self.registered < 0:
            import atexit

            atexit.register(self.leave)
        self.registered = self.generation
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None:
            multiprocessing.register_after_fork(self, Process._register_child)
            self._register_child()

    def _register_child(self) -> None:
        """A child of multiprocessing runs no atexit handlers, and forgets all finalizers when its work begins."""
        multiprocessing = sys.modules["multiprocessing.util"]
        multiprocessing.Finalize(None, self.leave, exitpriority=-100)

    def leave(self) -> None:
        """Releases what is held and ends the notification thread."""
        self.is_leaving = True
        lib.main_thread = threading.get_ident()  # the others stay where they are
        for client in list(self._clients):
            client._leave()
        notifier = sys.modules.get("libredlock._notify")
        if notifier is not None:
            notifier.notifier.join()

    def exit(self, request: SystemExit) -> None:
        """Ends the process with the status of a SystemExit that was raised in another thread than the main one."""
        status = request.code
        try:
            if status is not None and not isinstance(status, int):
                print(status, file=sys.stderr)
                status = 1
            self.leave()
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        finally:
            os._exit(status if isinstance(status, int) else 0)

    def stay_if_leaving(self) -> None:
        """At exit all threads but the one that leaves stop as daemon threads do, without a traceback of their own."""
        while self.is_leaving and threading.get_ident() != lib.main_thread:
            time.sleep(60)

    def notice_fork(self) -> None:
        """In a child, before its first use of the package. A fork in C, of uWSGI for example, runs none of Python's
        hooks: each lock compares generations."""
        if self.generation == generation():
            return
        self.generation = generation()
        self.is_leaving = False
        lib.main_thread = threading.get_ident()
        notifier = sys.modules.get("libredlock._notify")
        if notifier is not None:
            notifier.notifier.forked()
        for client in list(self._clients):
            client._forked()


generation = lib.redlock_fork_generation  # of a line of forks; costs no system call

this_process = Process()

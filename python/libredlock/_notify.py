"""One thread per process that logs what happens to the clients' nodes and locks, and calls on_lost.

In a process that gevent or eventlet has patched it is a greenlet.
"""

from __future__ import annotations

import os
import threading
from _thread import RLock
from typing import TYPE_CHECKING, Any
from weakref import ref

from ._core import lib
from ._hold import ADOPTED
from ._options import spelled
from ._process import generation, this_process

if TYPE_CHECKING:
    from ._client import Client

# How late the end of an unrenewed lease may be noticed if nothing else happens and no on_lost waits for it.
TICK_S = 1.0

# How long leaving waits for a callback that has not returned.
JOIN_S = 0.2


class Notifier:
    """Waits for the events of all clients on duplicates of their descriptors, which outlive them.

    The thread starts with the first client and ends with the last one. Nothing that it calls ends it earlier.
    """

    def __init__(self) -> None:
        self._mutex = RLock()  # of threads also where greenlets are: it is never held across a switch
        self._clients: dict[int, ref[Client]] = {}
        self._pipe: list[int] = []
        self._is_running = False
        self._thread: Any = None

    def add(self, client: Client) -> None:
        descriptor = lib.redlock_client_event_fd(client._handle)
        if descriptor < 0:
            return
        # what the thread needs: a fork during an import of its own would leave the child without that module
        import json  # noqa: F401
        import logging  # noqa: F401
        import select  # noqa: F401

        with self._mutex:
            if not self._pipe:
                self._pipe = list(os.pipe())
                for end in self._pipe:
                    os.set_blocking(end, False)
            if ref(client) not in list(self._clients.values()):
                self._clients[os.dup(descriptor)] = ref(client)
            thread = threading.Thread(target=lambda: self._run(thread), name="libredlock", daemon=True)
            runs = self._is_running and self._thread.is_alive()
            if not runs:
                self._thread, self._is_running = thread, True
        if runs:
            self.wake()
            return
        try:
            thread.start()  # if a signal handler raises in it, and it has not begun to run, another one takes its place
        except RuntimeError:
            if threading.main_thread().is_alive():
                raise  # else it is a lock of an atexit handler: Python 3.12 starts no more threads then

    def wake(self) -> None:
        """The thread looks at everything again."""
        if self._is_running:
            try:
                os.write(self._pipe[1], b"!")
            except (BlockingIOError, RuntimeError):  # with eventlet, another greenlet is just doing it
                pass

    def join(self) -> None:
        """When a client is closed: if it was the last one, an interpreter inside another one may end now, and must not
        end before its threads."""
        self.wake()
        thread, clients = self._thread, (reference() for reference in list(self._clients.values()))
        if any(client is not None and not client.closed for client in clients):
            return
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            thread.join(JOIN_S)

    def forked(self) -> None:
        """The thread is the parent's."""
        for descriptor in (*self._clients, *self._pipe):
            os.close(descriptor)
        self.__init__()  # type: ignore[misc]

    def _run(self, thread: Any) -> None:
        import select

        # as they are when it starts: a thread does not become a greenlet when the process is patched later
        poll = getattr(select, "poll", None)  # eventlet takes it away
        wait, born = select.select, generation()
        while self._goes_on(thread):
            self._wait(poll, wait, born)
            for descriptor, reference in list(self._clients.items()):
                client = reference()
                if client is None or client.closed:
                    del self._clients[descriptor]
                    os.close(descriptor)
                else:
                    self._notify(client)
                del client

    def _goes_on(self, thread: Any) -> bool:
        """Until the last client has gone, or another thread has taken its place."""
        with self._mutex:
            if thread is not self._thread:
                return False
            self._is_running = bool(self._clients)
            return self._is_running

    def _wait(self, poll: Any, wait: Any, born: int) -> None:
        wakeups = self._pipe[0]
        readable = _readable(poll, wait, [wakeups, *self._clients], self._limit_s())
        while born != generation():  # a greenlet, copied by a fork: threading has forgotten it, and fails when it ends
            wait([], [], [], 3600.0)
        if wakeups in readable:
            try:
                os.read(wakeups, 1000)
            except BlockingIOError:
                pass

    def _notify(self, client: Client) -> None:
        try:
            client._tell()
        except SystemExit as request:
            this_process.exit(request)
        except BaseException:
            print_failure()

    def _limit_s(self) -> float:
        limits = [TICK_S]
        for reference in list(self._clients.values()):
            client = reference()
            for hold in client._watched_holds() if client else ():
                if hold._state() != ADOPTED:  # whose lease is not known
                    limits.append(hold.remaining + 0.001)
        return min(limits)


def _readable(poll: Any, wait: Any, descriptors: list[int], limit_s: float) -> Any:
    if poll is None:
        return wait(descriptors, [], [], limit_s)[0]
    polled = poll()
    for descriptor in descriptors:
        polled.register(descriptor, 1)  # POLLIN
    return [descriptor for descriptor, _ in polled.poll(limit_s * 1000)]


notifier = Notifier()


# ---- logging ----------------------------------------------------------------------------------------------------


def log(line: str) -> None:
    """One event as a record of the logger "libredlock", with its fields as attributes redlock_*."""
    import json
    import logging

    event = json.loads(line)
    about = event.get("resource") or event.get("node")
    try:
        logging.getLogger("libredlock").log(
            logging.INFO if event["event"] == "node_up" else logging.WARNING,
            "%s: %s",
            f"{event['event']} {about}" if about else event["event"],
            spelled(event.get("parts") or [event.get("detail") or str(event.get("count"))]),
            extra={f"redlock_{field}": value for field, value in event.items()},
        )
    except Exception:  # of a filter or a handler of the program
        print_failure()


def print_failure() -> None:
    """As logging does it with the failures of handlers."""
    import logging
    import sys
    import traceback

    if logging.raiseExceptions and sys.stderr is not None:
        traceback.print_exc()

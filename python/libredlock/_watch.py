"""One thread per process that logs what happens to the clients' nodes and locks, and calls on_lost.

In a process that gevent or eventlet has patched it is a greenlet.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional
from weakref import ref

from ._core import lib

if TYPE_CHECKING:
    from ._client import Client

# How late the end of a lease that nobody renews may be noticed where nothing else happens and no on_lost waits for it.
TICK_S = 1.0


class Watch:
    """Waits for the events of all clients on duplicates of their descriptors, which outlive them."""

    def __init__(self) -> None:
        self._clients: Dict[int, ref[Client]] = {}
        self._bell: List[int] = []

    def add(self, client: Client) -> None:
        descriptor = lib.redlock_client_event_fd(client._handle)
        if descriptor < 0:
            return
        self._clients[os.dup(descriptor)] = ref(client)
        if self._bell:
            self.ring()
            return
        # what the thread needs: a fork during an import of its own would leave the child without that module
        import json  # noqa: F401
        import logging  # noqa: F401
        import select  # noqa: F401
        import threading

        self._bell = list(os.pipe())
        for end in self._bell:
            os.set_blocking(end, False)
        threading.Thread(target=self._run, name="libredlock", daemon=True).start()

    def ring(self) -> None:
        """The thread looks at everything again."""
        if self._bell:
            try:
                os.write(self._bell[1], b"!")
            except BlockingIOError:
                pass

    def forked(self) -> None:
        """The thread is the parent's."""
        for descriptor in (*self._clients, *self._bell):
            os.close(descriptor)
        self._clients, self._bell = {}, []

    def _run(self) -> None:
        bell = self._bell[0]
        while True:
            if bell in _readable([bell, *self._clients], self._limit_s()):
                os.read(bell, 1000)
            for descriptor, reference in list(self._clients.items()):
                client = reference()
                if client is None or client.closed:
                    del self._clients[descriptor]
                    os.close(descriptor)
                else:
                    client._tell()
                del client

    def _limit_s(self) -> Optional[float]:
        if not self._clients:
            return None
        limits = [TICK_S]
        for reference in list(self._clients.values()):
            client = reference()
            limits.extend(lock.remaining + 0.001 for lock in (client._watched_locks() if client else ()))
        return min(limits)


def _readable(descriptors: List[int], limit_s: Optional[float]) -> Any:
    import select

    if not hasattr(select, "poll"):  # eventlet takes it away
        return select.select(descriptors, [], [], limit_s)[0]
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(None if limit_s is None else limit_s * 1000)]


watch = Watch()


# ---- logging ----------------------------------------------------------------------------------------------------


def log(line: str) -> None:
    """One event as a record of the logger "libredlock", with its fields as attributes redlock_*."""
    import json
    import logging

    event = json.loads(line)
    about = event.get("resource") or event.get("node")
    logging.getLogger("libredlock").log(
        logging.INFO if event["event"] == "node_up" else logging.WARNING,
        "%s: %s",
        f"{event['event']} {about}" if about else event["event"],
        event.get("detail") or event.get("count"),
        extra={f"redlock_{field}": value for field, value in event.items()},
    )

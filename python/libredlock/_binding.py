"""A client of libredlock.aio in one event loop: each loop that uses the client reads its descriptors.

Any of the loops finds the operations that have ended, also those of tasks of the others, and hands the results over.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from contextvars import Context
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, TypeVar, Union
from weakref import ref

from ._core import ffi, lib
from ._errors import error
from ._hold import PENDING
from ._lock import WARN_AFTER_MS, warn_of_itself

if TYPE_CHECKING:
    from .aio import Client, Hold

T = TypeVar("T")

_advance = lib.redlock_client_advance
_next = lib.redlock_client_next
_status = lib.redlock_lock_status
running_loop = asyncio._get_running_loop  # None where there is none


class Binding:
    """What a client has in one event loop."""

    __slots__ = ("loop", "holds", "timer", "_client", "_descriptors", "__weakref__")

    def __init__(self, client: Client, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.holds: dict[int, ref[Hold]] = {}
        self.timer: Optional[asyncio.TimerHandle] = None
        self._client = ref(client)
        handle = client._opened()
        self._descriptors: Sequence[int] = ()
        if client._listens:
            self._descriptors = lib.redlock_client_fd(handle), lib.redlock_client_event_fd(handle)
            if min(self._descriptors) < 0:
                raise error(-min(self._descriptors), "")
            # in no context of a request: it would be that of all records of the log
            read = Context().run
            read(loop.add_reader, self._descriptors[0], _on_readable, self._client, loop, ffi.new("uint64_t *"))
            read(loop.add_reader, self._descriptors[1], _on_event, self._client)
        # a loop closes its asynchronous generators before it ends, and passes for one thus this too
        notice = sys.get_asyncgen_hooks().firstiter
        if notice is not None and not getattr(loop, "_asyncgens_shutdown_called", False):
            notice(self)  # type: ignore[arg-type]

    def watch_waits(self, seen: Optional[dict[int, int]] = None) -> None:
        """Once a second, until no task waits: warns those that wait for a lock that they hold themselves, by this Lock
        or another one of the same resource."""
        client, times = self._client(), {}
        if client is not None:
            client._unbind_closed()
        known = [hold() for hold in list(self.holds.values())]
        held = {(hold._owner(), _name(hold)) for hold in known if hold is not None and hold.owned()}
        for tag, (ended, hold) in list(client._pending.items()) if client is not None else ():
            owner = hold._owner()
            if owner is None or tag in self.holds or hold._has_ended or ended.get_loop() is not self.loop:
                continue
            times[tag] = 1 + (seen or {}).get(tag, 0)
            if times[tag] == 2 and (owner, _name(hold)) in held:
                warn_of_itself("task", repr(hold._resource))
        self.timer = self.loop.call_later(WARN_AFTER_MS / 1000, self.watch_waits, times) if times else None

    async def aclose(self) -> None:
        """The loop is about to end: asyncio.run, for example, calls this when its tasks are done."""
        client = self._client()
        if client is not None:
            client._unbind(self)

    def stop(self) -> None:
        """The loop no longer reads; called in any thread."""
        loop = self.loop
        if loop.is_closed():
            return
        for descriptor in self._descriptors:
            if loop.is_running() and loop is not running_loop():
                call_in(loop, loop.remove_reader, descriptor)
            else:
                loop.remove_reader(descriptor)

    def take_holds(self) -> list[Hold]:
        """Releases those of tasks of the ended loop."""
        taken = []
        for hold in [hold() for hold in list(self.holds.values())]:
            if hold is not None and hold.owned():
                hold._loss = "closed"
                hold._forget()
                taken.append(hold)
        self.holds.clear()
        return taken


def _name(hold: Hold) -> bytes:
    first: Any = hold._resource[0] if isinstance(hold._resource, tuple) else hold._resource
    return first if isinstance(first, bytes) else bytes(first.encode())


def need_loop() -> asyncio.AbstractEventLoop:
    loop = running_loop()
    if loop is None:
        raise RuntimeError("libredlock.aio needs a running asyncio event loop (trio has none)")
    return loop


async def in_thread(function: Callable[[], T]) -> T:
    """Calls what blocks while the loop goes on, to its end also if the task is cancelled meanwhile."""
    ended: asyncio.Future[None] = need_loop().create_future()
    calls = [function]  # the thread drops what it refers to before the task goes on
    del function
    results: list[Union[T, BaseException]] = []

    def run() -> None:
        try:
            results.append(calls.pop()())
        except BaseException as failure:
            results.append(failure)
        settle(ended, None)

    start_thread(run)
    await ended
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def start_thread(function: Callable[[], object]) -> None:
    """One of its own: those of an executor may be busy, or gone."""
    try:
        threading.Thread(target=function, name="libredlock-close").start()
    except RuntimeError:  # at the end of the interpreter there are no more threads
        function()


def call_in(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: Any) -> None:
    """Soon, by a loop that may run in another thread; not at all if it is closed."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        pass


def settle(future: asyncio.Future[Any], result: object) -> None:
    """Gives a future its result, from any thread."""
    loop = future.get_loop()
    if loop is not running_loop():
        call_in(loop, settle, future, result)
    elif not future.done():
        future.set_result(result)


def _on_readable(reference: ref[Client], loop: asyncio.AbstractEventLoop, found_tag: Any) -> None:
    """Called by a loop: lets the core work, and wakes the tasks whose operation ended."""
    client = reference()
    if client is None:
        return
    pending, watched = client._pending, client._watched
    at_risk: list[Any] = []
    handle = client._handle
    found = _advance(handle, found_tag)
    while found == 1:
        tag = found_tag[0]
        operation = pending.get(tag)
        if operation is not None:
            ended, hold = operation
            status = _status(hold._handle)
            if status != PENDING and pending.get(tag) is operation:
                pending.pop(tag, None)
                if ended.get_loop() is not loop:
                    settle(ended, status)
                elif not ended.done():
                    ended.set_result(status)
        watching = watched.get(tag)
        if watching is not None:
            at_risk.append(watching())
        found = _next(handle, found_tag)
    for held in at_risk:
        if held is not None:
            held._tell_if_lost()


def _on_event(reference: ref[Client]) -> None:
    client = reference()
    if client is not None:
        client._tell()

"""A client of libredlock.aio in one event loop: each loop that uses the client reads its descriptors.

Any of the loops finds the operations that have ended, also those of tasks of the others, and hands the results over.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, TypeVar, Union
from weakref import ref

from ._core import ffi, lib
from ._errors import error
from ._line import WARN_AFTER_MS, warn_of_itself
from ._queue import Ticket, first, holder, leave

if TYPE_CHECKING:
    from .aio import Client, Lock

T = TypeVar("T")

PENDING = lib.REDLOCK_PENDING
HELD = lib.REDLOCK_STATE_HELD
_advance = lib.redlock_client_advance
_next = lib.redlock_client_next
_status = lib.redlock_lock_status
running_loop = asyncio._get_running_loop  # None where there is none


class Binding:
    """What a client has in one event loop."""

    __slots__ = ("loop", "tickets", "timer", "_client", "_descriptors", "__weakref__")

    def __init__(self, client: Client, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.tickets: Dict[Ticket, ref[Lock]] = {}
        self.timer: Optional[asyncio.TimerHandle] = None
        self._client = ref(client)
        handle = client._opened()
        self._descriptors = lib.redlock_client_fd(handle), lib.redlock_client_event_fd(handle)
        if min(self._descriptors) < 0:
            raise error(-min(self._descriptors), "")
        loop.add_reader(self._descriptors[0], _on_readable, self._client, loop, ffi.new("uint64_t *"))
        loop.add_reader(self._descriptors[1], _on_event, self._client)
        # a loop closes its asynchronous generators before it ends, and passes for one thus this too
        notice = sys.get_asyncgen_hooks().firstiter
        if notice is not None and not getattr(loop, "_asyncgens_shutdown_called", False):
            notice(self)  # type: ignore[arg-type]

    def watch_waits(self, seen: Optional[Dict[Ticket, int]] = None) -> None:
        """Once a second, until no task waits: warns those that wait for a lock that they hold themselves, by this Lock
        or another one of the same resource."""
        held, waiting = set(), {}
        times: Dict[Ticket, int] = {}
        for ticket, reference in list(self.tickets.items()):
            lock = reference()
            if lock is None:
                continue
            if not hasattr(ticket, "owner"):
                waiting[ticket] = lock
                times[ticket] = 1 + (seen or {}).get(ticket, 0)
            elif lib.redlock_lock_state(lock._handle) == HELD:
                held.add((ticket.owner, _name(lock)))
        for ticket, lock in waiting.items():
            if times[ticket] == 2 and (ticket.task, _name(lock)) in held:
                warn_of_itself("task", repr(lock._resource))
        self.timer = self.loop.call_later(WARN_AFTER_MS / 1000, self.watch_waits, times) if waiting else None

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

    def release_all(self) -> int:
        """Abandons the locks that tasks of the ended loop hold or wait for. Returns how many were held."""
        count = 0
        tickets, self.tickets = self.tickets, {}
        for ticket, reference in tickets.items():
            lock = reference()
            if lock is None:
                continue
            if holder(lock._line) is ticket and lib.redlock_lock_state(lock._handle) == HELD:
                count += 1
                lock._forget_hold()
            elif first(lock._line) is ticket:
                lib.redlock_lock_cancel(lock._handle)
            leave(lock._line, ticket)
        return count


def _name(lock: Lock) -> bytes:
    first_of = lock._names()[0]
    return first_of if isinstance(first_of, bytes) else first_of.encode()


def need_loop() -> asyncio.AbstractEventLoop:
    loop = running_loop()
    if loop is None:
        raise RuntimeError("libredlock.aio needs a running asyncio event loop (trio has none)")
    return loop


async def in_thread(function: Callable[[], T]) -> T:
    """Calls what blocks while the loop goes on, to its end also if the task is cancelled meanwhile."""
    ended: asyncio.Future[None] = need_loop().create_future()
    results: List[Union[T, BaseException]] = []

    def run() -> None:
        try:
            results.append(function())
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
    if loop is running_loop():
        if not future.done():
            future.set_result(result)
    else:
        call_in(loop, _settle_here, future, result)


def _settle_here(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _on_readable(reference: ref[Client], loop: asyncio.AbstractEventLoop, found_tag: Any) -> None:
    """Called by a loop: lets the core work, and wakes the tasks whose operation ended."""
    client = reference()
    if client is None:
        return
    pending, watched = client._pending, client._watched
    at_risk: Optional[List[Any]] = None
    with client._mutex:  # another thread may be closing it
        handle = client._handle
        found = _advance(handle, found_tag)
        while found == 1:
            tag = found_tag[0]
            operation = pending.get(tag)
            if operation is not None:
                ended, lock = operation
                status = _status(lock._handle)
                if status != PENDING and pending.pop(tag, None) is not None:
                    if ended.get_loop() is not loop:
                        settle(ended, status)
                    elif not ended.done():
                        ended.set_result(status)
            if tag in watched:
                at_risk = at_risk or []
                at_risk.append(watched[tag]())
            found = _next(handle, found_tag)
    for held in at_risk or ():
        if held is not None:
            held._tell_if_lost()


def _on_event(reference: ref[Client]) -> None:
    client = reference()
    if client is not None:
        client._tell()

"""Clients without nodes, for unit tests of programs that take locks.

    from libredlock.testing import MemoryClient

    client = MemoryClient(ttl=10)
    with client.lock("orders:42") as hold:
        client.lose("orders:42")  # as if the nodes had lost it
        assert hold.lost

They are clients, whose locks are kept in memory: with the methods, kinds, options and errors of libredlock.Client, or
of libredlock.aio.Client with AsyncMemoryClient. Clients that share a `store` exclude each other, in threads and event
loops of one process; so do all that are made as Client("memory://").
"""
from __future__ import annotations

import asyncio
import threading
import time
from fnmatch import fnmatchcase
from typing import Any, Callable, Dict, Iterable, List, Optional
from weakref import ref

from .. import _client, _lock, _task_lock, _thread_lock, aio
from .._base import Report, _mode_of, is_in_memory
from .._binding import running_loop, settle
from .._core import lib
from .._election import SeatBase
from .._errors import NoQuorum, Vote
from .._hold import HoldBase
from .._listing import Listed, Listing
from .._options import seconds
from .store import Handle, Store, said

PENDING = lib.REDLOCK_PENDING
ALL = Store()  # of those made as Client("memory://")
_NODE = "unix:///memory"  # never asked


class InMemory(HoldBase):
    """A hold whose engine is the store."""

    _state_of = staticmethod(lambda handle: handle.state() if handle else lib.REDLOCK_STATE_FREE)
    _validity_ms_of = staticmethod(lambda handle: handle.validity_ms())
    _fence_of = staticmethod(lambda handle: handle.fence)
    _slot_of = staticmethod(lambda handle: handle.slot)
    _attempts_of = staticmethod(lambda handle: handle.attempts)
    _loss_of = staticmethod(lambda handle: handle.loss())
    _token_of = said(lambda handle: handle.token)
    _parts_of = said(Handle.message)
    _get_of = staticmethod(lambda handle, *more: lib.redlock_lock_get(handle.native, *more))
    _set_of = staticmethod(lambda handle, *more: lib.redlock_lock_set(handle.native, *more))
    _detach_of = staticmethod(lambda handle: handle.detach())
    _adopt_of = staticmethod(lambda handle, token, size: handle.adopt(token.decode()))
    _cancel_of = staticmethod(lambda handle: handle.cancel())
    _start_of = staticmethod(lambda handle, operation, argument: handle.start(operation, argument))
    _held_by_of = staticmethod(lambda handle: handle.held_by())

    def _votes(self) -> Dict[str, Vote]:
        """What the memory would answer."""
        votes: Dict[str, Vote] = self._handle.votes()
        return votes


class MemoryHold(InMemory, _thread_lock.Hold):
    """A Hold of a MemoryClient."""


class MemoryTerm(InMemory, _thread_lock.Term):
    """A Term of a MemoryClient."""


class _Looks(InMemory, _task_lock.Hold):
    """Finds out by a timer that its lease has ended."""

    _timer: Optional[asyncio.TimerHandle] = None

    def _foresee_end(self) -> None:
        loop = running_loop()
        if self._timer is not None:
            self._timer.cancel()
        if loop is not None:
            self._timer = loop.call_later(max(0.001, self.remaining), _look, ref(self))


class AsyncMemoryHold(_Looks):
    """A Hold of an AsyncMemoryClient."""


class AsyncMemoryTerm(_Looks, _task_lock.Term):
    """A Term of an AsyncMemoryClient."""


def _look(reference: Any) -> None:
    hold = reference()
    if hold is None or hold._has_ended or hold._client.closed:
        return
    hold._tell_if_lost()
    if hold.owned():
        hold._foresee_end()


class _InStore(_lock.LockBase):
    def _new(self, is_block: bool = False) -> Any:
        hold = super()._new(is_block)
        names = tuple(self._client._prefix + name for name in (self._name, *self._more))
        hold._handle = Handle(self._client, hold._handle, names, "permits" in self._of_kind())
        return hold


class MemoryLock(_InStore, _thread_lock.Lock):
    """A Lock of a MemoryClient."""

    _hold_type: Any = MemoryHold


class MemoryRLock(MemoryLock, _thread_lock.RLock):
    """An RLock of a MemoryClient."""


class MemorySeat(SeatBase, MemoryLock):
    """The lock of an election."""

    _hold_type: Any = MemoryTerm

    def _acquire(self, hold: Any, limit_ms: int) -> int:
        self.waiting.append(hold)
        return int(lib.REDLOCK_CANCELLED) if self.is_stopped else super()._acquire(hold, limit_ms)


class AsyncMemoryLock(_InStore, _task_lock.Lock):
    """A Lock of an AsyncMemoryClient."""

    _hold_type: Any = AsyncMemoryHold


class AsyncMemoryRLock(AsyncMemoryLock, _task_lock.RLock):
    """An RLock of an AsyncMemoryClient."""


class AsyncMemorySeat(_task_lock.Seat, AsyncMemoryLock):
    """The lock of an election."""

    _hold_type: Any = AsyncMemoryTerm


class _InMemory:
    """What both kinds of clients have in common. The core's client is for the options: it is never asked for a node."""

    store: Store
    _listens = False
    _handle: Any
    _nodes: Iterable[str]
    _prefix: bytes
    _opened: Callable[[], Any]

    def __init__(self, nodes: Any = None, *, store: Optional[Store] = None, **options: Any) -> None:
        """nodes: not used, but those of "memory://" share a store."""
        if store is None:
            store = ALL if is_in_memory(nodes) else Store()
        self.store, self._store_key = store, object()  # first: also what is refused is collected
        super().__init__(_NODE, **options)  # type: ignore[call-arg]
        self._prefix = options.get("key_prefix", "").encode()
        self._nodes = ("memory",)
        with store.mutex:
            store.clients.add(self)

    def pass_time(self, length: Any) -> None:
        """So many seconds go by: leases end, those that are renewed do not."""
        self.store.pass_time(seconds("length", length, "0 and more"))

    def lose(self, resource: Any) -> None:
        """The nodes lose the resource: whoever holds it has lost it."""
        for key in self._keys(resource):
            self.store.lose(key)

    def set_reachable(self, reachable: bool) -> None:
        """Whether enough nodes answer."""
        self.store.reachable = reachable
        self.store.scan()

    def _keys(self, resource: Any) -> List[bytes]:
        return [self._prefix + name for name in _lock._names(resource)]

    def describe(self) -> Dict[str, Any]:
        """Less than of a client with nodes."""
        self._opened()
        votes = self.store.reachable
        node = {"node": "memory", "votes": votes, "why": "" if votes else "unreachable", "advice": ""}
        return {"quorum": 1, "voting": int(votes), "waiting": len(self.store.waiting), "nodes": [node]}

    def metrics(self) -> str:
        """None."""
        self._opened()
        return "# EOF\n"

    def _hear(self, line: str) -> None:
        pass

    def _process(self) -> None:
        pass

    def _report(self, probe: Any, status: int) -> Report:
        resource, store, votes = probe._resource, self.store, probe.votes
        if not store.reachable:
            words = f'no quorum: 0 of 1 nodes granted "{resource}", 1 needed: memory unreachable'
            raise NoQuorum(words, resource=resource, votes=votes)
        held = probe._handle.others()
        if not held:
            return Report(resource, "free", None, None, votes)
        entry = max(held, key=lambda entry: entry.over_ms())
        left_s, holder = votes["memory"].ttl, entry.holder(store.now_ms(), len(held))
        return Report(resource, "shared" if entry.is_shared else "held", entry.token, left_s, votes, holder)

    def _listed(self, probe: Any, status: int) -> Listing:
        """Those that `fnmatch` finds: it takes a pattern as SCAN does, but for backslashes."""
        pattern, store = probe._resource, self.store
        glob = self._keys(pattern)[0].decode("latin-1")
        if not store.reachable:
            raise NoQuorum(f'no quorum: 0 of 1 nodes listed "{pattern}", 1 needed: memory unreachable')
        with store.mutex:
            names = sorted({name for name in store.names() if fnmatchcase(name.decode("latin-1"), glob)})
            rows = [row for name in names for row in store.listed(name, name[len(self._prefix):])]
            if not set("*?[").intersection(glob):
                rows = [row for row in rows if not row.slot] or [Listed(pattern, "", "free", None, None, None, 0, None)]
            return Listing(rows)

    def _bootstrapper(self, new: bool, yes: bool, replace: bool, dry: bool) -> Callable[[], List[Dict[str, Any]]]:
        _mode_of(new, yes, replace, dry)
        self._opened()
        return lambda: [{"node": "memory", "did": "nothing", "votes": True, "max_ttl_ms": None, "found": "votes"}]

    def _take_handle(self) -> Any:
        """At the end: whoever waits is told, and what is held is free."""
        native = super()._take_handle()  # type: ignore[misc]
        with self.store.mutex:
            mine = [handle for handle in self.store.waiting if handle.client is self._store_key]
        for handle in mine:
            handle.cancel()
        self.store.leave(self._store_key)
        return native


class MemoryClient(_InMemory, _client.Client):
    """A libredlock.Client without nodes."""

    _lock_type = MemoryLock
    _rlock_type = MemoryRLock
    _seat_type = MemorySeat

    def _choose_how_to_wait(self) -> None:
        super()._choose_how_to_wait()
        self._drive = self._drive_memory
        self._run = lambda handle, operation, argument: self._drive(self, handle, operation, argument)
        self._release_held = lambda handle: -1
        self._release = lambda handle: self._drive(self, handle, lib.REDLOCK_RELEASE, 0)

    def _drive_memory(self, client: Any, handle: Any, operation: int, argument: int) -> int:
        turn, warns_s = threading.Event(), time.monotonic() + _lock.WARN_AFTER_MS / 1000
        handle.wake, handle.thread = turn.set, threading.get_ident()
        handle.start(operation, argument)
        while handle.status == PENDING:
            if self._greenlets is None:
                turn.wait(self.store.limit_s())
            else:
                self._pause(min(self.store.limit_s(), 0.01))
            self.store.scan()
            if time.monotonic() > warns_s and handle.waits_for_itself():
                warns_s = float("inf")
                _lock.warn_of_itself("thread", repr(handle.shown()))
        return int(handle.status)

    def _ask(self, operation: int, probes: List[Any], argument: int = 0) -> List[int]:
        return [self._drive(self, probe._handle, operation, argument) for probe in probes]


class AsyncMemoryClient(_InMemory, aio.Client):
    """A libredlock.aio.Client without nodes."""

    _lock_type = AsyncMemoryLock
    _rlock_type = AsyncMemoryRLock
    _seat_type = AsyncMemorySeat

    def _begin(
        self, hold: Any, loop: asyncio.AbstractEventLoop, operation: int, argument: int, state: int = 0
    ) -> asyncio.Future[int]:
        ended: asyncio.Future[int] = loop.create_future()
        if state not in (0, hold._handle.state()):
            ended.set_result(-1)
            return ended
        self._pending[id(hold)] = ended, hold
        known = ref(hold)  # the handle has what wakes it

        def wake() -> None:
            at = known()
            if at is not None and at._handle.status != PENDING and self._pending.pop(id(at), None) is not None:
                settle(ended, int(at._handle.status))

        hold._handle.wake = wake
        hold._handle.start(operation, argument)
        wake()
        if not ended.done():
            self._scan_later(ended)
        return ended

    def _scan_later(self, ended: asyncio.Future[int]) -> None:
        def scan() -> None:
            if not ended.done():
                self.store.scan()
                self._scan_later(ended)

        if not ended.done():
            ended.get_loop().call_later(self.store.limit_s(), scan)


"""Clients without nodes, for unit tests of programs that take locks.

    from libredlock.testing import MemoryClient

    client = MemoryClient(ttl=10)
    with client.lock("orders:42") as lock:
        client.lose("orders:42")  # as if the nodes had lost it
        assert lock.lost

Locks have the methods, options and errors of libredlock.Client, or of libredlock.aio.Client with AsyncMemoryClient.
Clients that share a `store` exclude each other, in threads and event loops of one process.
"""
from __future__ import annotations

import asyncio
import os
import socket
import threading
from typing import Any, Callable, Dict, Generic, Iterator, List, NoReturn, Optional, TypeVar
from weakref import WeakSet, WeakValueDictionary

from .._base import Report
from .._binding import call_in
from .._core import lib
from .._decorator import AsyncDecorator, BlockingDecorator
from .._deprecated import OldNames
from .._election import options_of
from .._errors import (
    Busy,
    Cancelled,
    Closed,
    Holder,
    InvalidOption,
    Lost,
    NoQuorum,
    NotHeld,
    RedlockError,
    Status,
    Vote,
)
from .._lock import note_loss
from .._options import (
    BY_OPTION,
    CLIENT_KEYWORDS,
    LOCK_KEYWORDS,
    seconds,
    set_client,
    ttl_ms,
    unknown,
    wait_ms,
    with_permits,
)
from .._reentrant import shared
from .store import Hold, Store

AnyLock = TypeVar("AnyLock", bound="_Lock")

_DEFAULTS: Dict[str, Any] = {"ttl": 10, "wait": None, "renew": None, "fence": False, "max_hold": 3600, "max_ttl": 30,
                             "client_name": "libredlock"}
_CANCEL_MESSAGE = "libredlock: the lock was lost"


class _Lock:
    """What both kinds of locks have in common: all but waiting."""

    def __init__(
        self, client: _Client[Any], resource: Any, options: Dict[str, Any], function: str, on_lost: Any = None,
        cancel_on_lost: bool = False,
    ) -> None:
        if not isinstance(resource, (str, bytes)) or not resource:
            raise TypeError(f"resource={resource!r}: MemoryClient takes str or bytes, 1 byte to 512 MB")
        if options.get("shared"):
            words = f"{function}(shared=True): MemoryClient has no locks that are shared"
            raise InvalidOption(words, resource=resource)
        if options.get("permits", 1) != 1 or options.get("slot"):
            words = f"{function}({resource!r}): MemoryClient has no permits"
            raise InvalidOption(words, resource=resource)
        self.resource: Any = resource
        self._client, self._store = client, client.store
        self._name = client._prefix + (resource if isinstance(resource, bytes) else resource.encode())
        for keyword in options:
            if keyword not in LOCK_KEYWORDS:
                raise unknown(function, keyword, LOCK_KEYWORDS | {"on_lost"})
        _check(options)
        if on_lost is not None and not callable(on_lost):
            raise TypeError(f"on_lost={on_lost!r}: takes a function of the lock, or None")
        self._options = {**client._options, **options}
        self._on_lost, self._cancel_on_lost = on_lost, cancel_on_lost
        self._hold: Optional[Hold] = None
        self._last: Optional[Hold] = None
        self.fence: Optional[int] = None
        self.slot: Optional[int] = None
        self.attempts = 0
        self._is_stopped = False

    # ---- local facts

    @property
    def token(self) -> Optional[str]:
        return self._last.token if self._last else None

    @property
    def remaining(self) -> float:
        if not self.owned():
            return 0.0
        hold = self._hold
        assert hold is not None
        left = (hold.limit if hold.renews else hold.ends_at()) - self._store.now()
        return min(left, self._ttl_s()) if hold.renews else left

    @property
    def lost(self) -> bool:
        return self._hold is not None and not self.owned()

    @property
    def votes(self) -> Dict[str, Vote]:
        status = Status.OK if self.owned() else Status.NOT_HELD
        return {"memory": Vote(status, "granted" if self.owned() else "no key", self.remaining or None, "")}

    def owned(self) -> bool:
        with self._store.mutex:
            return self._hold is not None and self._store.hold_of(self._name) is self._hold

    def locked(self) -> bool:
        return self._hold is not None

    def check(self) -> None:
        if not self.owned():
            raise self._gone()

    _begin_hold = _leave_hold = _end_hold = staticmethod(lambda *_: None)  # what a term of an election tells its lock

    def detach(self) -> str:
        with self._store.mutex:
            self.check()
            hold, self._hold = self._hold, None
            assert hold is not None
            hold.renews, hold.ends = False, self._store.now() + self._ttl_s()
            return hold.token

    # ---- what acquire, extend and release do without waiting

    def _ttl_s(self) -> float:
        return seconds("ttl", self._options["ttl"], "")

    def _limit_ms(self, blocking: Any, timeout: Any) -> int:
        limit = BY_OPTION if blocking is True and timeout == -1 else wait_ms(blocking, timeout)
        if limit != BY_OPTION:
            return limit
        wait = self._options["wait"]
        return -1 if wait is None else round(seconds("wait", wait, "") * 1000)

    def _attempts(self, limit_ms: int, wake: Callable[[], object], is_scoped: bool) -> Iterator[float]:
        """Tries to take it, and yields how long to sleep before the next attempt at most; it is held at the end, or
        not."""
        store, waiters = self._store, self._store.waiters[self._name]
        until = store.now() + limit_ms / 1000 if limit_ms >= 0 else float("inf")
        self.attempts = 0
        with store.mutex:
            waiters.append(wake)
        try:
            while True:
                with store.mutex:
                    if self._client.closed or self._is_stopped:
                        raise Cancelled(f"the client was closed while {self.resource!r} was waited for")
                    self._need_nodes()
                    holding = store.hold_of(self._name)
                    self.attempts += 1
                    if holding is None and waiters[0] is wake:
                        self._take(is_scoped)
                        return
                    ends = holding.ends_at() if holding else float("inf")
                    left = min(until, ends) - store.now()
                    if store.now() >= until:
                        return
                yield max(0.001, min(left, 1.0))
        finally:
            with store.mutex:
                waiters.remove(wake)
                store.wake(self._name)

    def _take(self, is_scoped: bool) -> None:
        renew = self._options["renew"]
        max_hold = self._options["max_hold"]
        limit = None if max_hold is None else seconds("max_hold", max_hold, "")
        hold = Hold(self, self._store.now(), self._ttl_s(), is_scoped if renew is None else renew, limit)
        number = self._store.grant(self._name, hold)
        self.fence = number if self._options["fence"] else None
        self._hold = self._last = hold

    def _adopt(self, token: str) -> None:
        with self._store.mutex:
            hold = self._store.hold_of(self._name)
            if hold is None or hold.token != token:
                hold = Hold(self, self._store.now(), 0, False, None)
                hold.token, hold.reason = token, "gone"
            hold.lock = self
            self._hold = self._last = hold

    def _extend(self, ttl: Any) -> float:
        ms = ttl_ms(ttl)
        with self._store.mutex:
            self._need_nodes()
            self.check()
            assert self._hold is not None
            until = self._store.now() + (ms / 1000 if ms else self._ttl_s())
            self._hold.ends = max(self._hold.ends, until)
            return self.remaining

    def _release(self) -> None:
        with self._store.mutex:
            if not self.owned():
                failure = self._gone()
                self._hold = None
                raise failure
            self._hold = None
            self._store.free(self._name)

    def _downgrade(self) -> NoReturn:
        self.check()
        raise InvalidOption("downgrade(): MemoryClient has no locks that are shared", resource=self.resource)

    def _stop_waiting(self) -> None:
        with self._store.mutex:
            self._is_stopped = True
            for wake in list(self._store.waiters[self._name]):
                wake()

    def _need_nodes(self) -> None:
        if not self._store.reachable:
            vote = Vote(Status.UNREACHABLE, "unreachable", None, "")
            words = f'no quorum: 0 of 1 nodes granted "{self.resource}", 1 needed: memory unreachable'
            raise NoQuorum(words, resource=self.resource, votes={"memory": vote})

    def _gone(self) -> RedlockError:
        if self._hold is None:
            return NotHeld(f"the lock on {self.resource!r} is not held", resource=self.resource)
        failure = Lost(f"the lock on {self.resource!r} was lost: {self._hold.reason}", resource=self.resource)
        failure.reason = self._hold.reason
        return failure

    def _busy(self) -> Busy:
        report = self._client._report(self.resource)
        failure = Busy(f"{self.resource!r} is held by others", resource=self.resource, votes=report.votes)
        failure.held_by = report.held_by
        return failure

    def _notify(self, hold: Hold) -> None:
        if hold is self._hold and self._on_lost is not None:
            self._on_lost(self)

    def __repr__(self) -> str:
        state = "held" if self.owned() else "lost" if self.lost else "not held here"
        return f"<{type(self).__module__}.{type(self).__qualname__} {self.resource!r} {state}>"


class MemoryLock(_Lock):
    """A lock of a MemoryClient, with the methods of libredlock.Lock."""

    def acquire(self, blocking: bool = True, timeout: Any = -1) -> bool:
        return self._acquire(self._limit_ms(blocking, timeout), False)

    def _acquire(self, limit_ms: int, is_scoped: bool) -> bool:
        before, turn = self._hold, threading.Event()
        for limit_s in self._attempts(limit_ms, turn.set, is_scoped):
            turn.wait(limit_s)
            turn.clear()
        return self._hold is not None and self._hold is not before

    def release(self) -> None:
        self._release()

    def extend(self, ttl: Any = None) -> float:
        return self._extend(ttl)

    def downgrade(self, ttl: Any = None) -> float:
        self._downgrade()

    def __enter__(self) -> MemoryLock:
        if self.owned():  # adopted
            return self
        if not self._acquire(self._limit_ms(True, -1), True):
            raise self._busy()
        return self

    def __exit__(self, kind: Any, failure: Optional[BaseException], trace: Any) -> None:
        try:
            self.release()
        except RedlockError as loss:
            if failure is None:
                raise
            note_loss(failure, loss)


class AsyncMemoryLock(_Lock):
    """A lock of an AsyncMemoryClient, with the methods of libredlock.aio.Lock."""

    _body: Optional[asyncio.Task[Any]] = None
    _has_cancelled = False

    async def acquire(self, blocking: bool = True, timeout: Any = -1) -> bool:
        return await self._acquire(self._limit_ms(blocking, timeout), False)

    async def _acquire(self, limit_ms: int, is_scoped: bool) -> bool:
        before, turn, loop = self._hold, asyncio.Event(), asyncio.get_running_loop()
        attempts = self._attempts(limit_ms, lambda: call_in(loop, turn.set), is_scoped)
        try:
            for limit_s in attempts:
                timer = loop.call_later(limit_s, turn.set)
                try:
                    await turn.wait()
                finally:
                    timer.cancel()
                turn.clear()
        finally:
            attempts.close()  # type: ignore[attr-defined]
        return self._hold is not None and self._hold is not before

    async def release(self) -> None:
        self._release()

    async def extend(self, ttl: Any = None) -> float:
        return self._extend(ttl)

    async def downgrade(self, ttl: Any = None) -> float:
        self._downgrade()

    async def __aenter__(self) -> AsyncMemoryLock:
        if not self.owned() and not await self._acquire(self._limit_ms(True, -1), True):
            raise self._busy()
        self._watch_body()
        return self

    async def __aexit__(self, kind: Any, failure: Optional[BaseException], trace: Any) -> None:
        is_ours = self._unwatch_body(failure)
        try:
            await self.release()
        except RedlockError as loss:
            if failure is None or is_ours:
                raise loss from None
            note_loss(failure, loss)

    def _watch_body(self) -> None:
        self._body, self._has_cancelled = asyncio.current_task(), False

    def _unwatch_body(self, failure: Optional[BaseException]) -> bool:
        """True if the body was cancelled by the loss."""
        body, self._body = self._body, None
        if self._has_cancelled and hasattr(body, "uncancel"):
            body.uncancel()  # type: ignore[union-attr]
        return self._has_cancelled and isinstance(failure, asyncio.CancelledError)

    def _notify(self, hold: Hold) -> None:
        super()._notify(hold)
        if hold is self._hold and self._cancel_on_lost and self._body is not None:
            self._has_cancelled = True
            call_in(self._body.get_loop(), self._body.cancel, _CANCEL_MESSAGE)


def _check(options: Dict[str, Any]) -> None:
    """By the core's own rules."""
    handle = lib.redlock_client_new()
    try:
        for keyword, value in options.items():
            set_client(handle, keyword, value)
    finally:
        lib.redlock_client_free(handle)


class _Client(OldNames, Generic[AnyLock]):
    """What both kinds of clients have in common."""

    _lock_type: Callable[..., AnyLock]

    def __init__(self, nodes: Any = None, *, store: Optional[Store] = None, **options: Any) -> None:
        for keyword in options:
            if keyword not in CLIENT_KEYWORDS:
                raise unknown(type(self).__name__, keyword, CLIENT_KEYWORDS)
        _check(options)
        self.store = Store() if store is None else store
        self.closed = False
        self._prefix = options.get("key_prefix", "").encode()
        self._options = {**_DEFAULTS, **options}
        self._locks: WeakSet[AnyLock] = WeakSet()
        self._mutex, self._rlocks = self.store.mutex, WeakValueDictionary()  # type: ignore[var-annotated]

    def lock(self, resource: Any, *, on_lost: Any = None, **options: Any) -> AnyLock:
        return self._made(resource, options, "lock", on_lost)

    def adopt(self, resource: Any, token: str, *, on_lost: Any = None, **options: Any) -> AnyLock:
        lock = self._made(resource, options, "adopt", on_lost)
        lock._adopt(token)
        return lock

    def _made(self, *arguments: Any, kind: Any = None) -> AnyLock:
        if self.closed:
            raise Closed("the client is closed")
        lock: AnyLock = (kind or self._lock_type)(self, *arguments)
        self._locks.add(lock)
        return lock

    def pass_time(self, length: Any) -> None:
        """So many seconds go by: leases end, those that are renewed do not."""
        self.store.pass_time(seconds("length", length, "0 and more"))

    def lose(self, resource: Any) -> None:
        """The nodes lose the resource: whoever holds it has lost it."""
        self.store.lose(self._prefix + (resource if isinstance(resource, bytes) else resource.encode()))

    def set_reachable(self, reachable: bool) -> None:
        """Whether enough nodes answer."""
        self.store.reachable = reachable

    def describe(self) -> Dict[str, Any]:
        votes = self.store.reachable
        node = {"node": "memory", "votes": votes, "why": "" if votes else "unreachable", "advice": ""}
        return {"quorum": 1, "voting": int(votes), "nodes": [node]}

    def events(self) -> List[Dict[str, Any]]:
        return []

    def metrics(self) -> str:
        return "# EOF\n"

    def _report(self, resource: Any) -> Report:
        with self.store.mutex:
            if not self.store.reachable:
                self._lock_type(self, resource, {}, "status")._need_nodes()
            hold = self.store.hold_of(self._prefix + (resource if isinstance(resource, bytes) else resource.encode()))
            if hold is None:
                return Report(resource, "free", None, None, {"memory": Vote(Status.NOT_HELD, "no key", None, "")})
            left, name = hold.lock.remaining, hold.lock._options["client_name"]
            holder = Holder(name, socket.gethostname(), os.getpid(), self.store.now() - hold.since)
            votes = {"memory": Vote(Status.BUSY, f"busy ({left:.1f} s left)", left, hold.token)}
            return Report(resource, "held", hold.token, left, votes, holder)

    def _close(self) -> None:
        with self.store.mutex:
            self.closed = True
            for lock in list(self._locks):
                if lock.owned():
                    self.store.free(lock._name)
            for waiters in self.store.waiters.values():
                for wake in list(waiters):
                    wake()


class MemoryClient(_Client[MemoryLock]):
    """A libredlock.Client without nodes."""

    _lock_type = MemoryLock

    def rlock(self, resource: Any, *, on_lost: Any = None, **options: Any) -> Any:
        from .kinds import MemoryRLock

        def make() -> Any:
            return self._made(resource, options, "rlock", on_lost, kind=MemoryRLock)

        return shared(self, make, resource, (options, on_lost))

    def semaphore(
        self, resource: Any, count: Optional[int] = None, /, *, on_lost: Any = None, **options: Any
    ) -> Any:
        return self._made(resource, with_permits(count, options), "semaphore", on_lost)

    def election(self, resource: Any, *, on_lost: Any = None, **options: Any) -> Any:
        from .._thread_election import Election

        return Election(self._made(resource, options_of(options), "election", on_lost))

    def with_lock(self, resource: Any, *, on_busy: Any = "raise", on_lost: Any = None, **options: Any) -> Any:
        def lock(name: Any) -> MemoryLock:
            return self._made(name, options, "with_lock", on_lost)

        return BlockingDecorator(lock, resource, on_busy, options)

    status, check, close = _Client._report, _Client.describe, _Client._close

    def bootstrap(self, **mode: bool) -> List[Dict[str, Any]]:
        return [{"node": "memory", "did": "nothing", "votes": True, "max_ttl_ms": None, "found": "votes"}]

    def __enter__(self) -> MemoryClient:
        return self

    def __exit__(self, *_: Any) -> None:
        self._close()


class AsyncMemoryClient(_Client[AsyncMemoryLock]):
    """A libredlock.aio.Client without nodes."""

    _lock_type = AsyncMemoryLock

    def rlock(self, resource: Any, *, on_lost: Any = None, cancel_on_lost: bool = False, **options: Any) -> Any:
        from .kinds import AsyncMemoryRLock

        def make() -> Any:
            return self._made(resource, options, "rlock", on_lost, cancel_on_lost, kind=AsyncMemoryRLock)

        return shared(self, make, resource, (options, on_lost, cancel_on_lost))

    def semaphore(
        self, resource: Any, count: Optional[int] = None, /, *, on_lost: Any = None, cancel_on_lost: bool = False,
        **options: Any,
    ) -> Any:
        return self._made(resource, with_permits(count, options), "semaphore", on_lost, cancel_on_lost)

    def election(self, resource: Any, *, on_lost: Any = None, cancel_on_lost: bool = True, **options: Any) -> Any:
        from .._task_election import Election

        return Election(self._made(resource, options_of(options), "election", on_lost, cancel_on_lost))

    def lock(
        self, resource: Any, *, on_lost: Any = None, cancel_on_lost: bool = False, **options: Any
    ) -> AsyncMemoryLock:
        return self._made(resource, options, "lock", on_lost, cancel_on_lost)

    def with_lock(
        self, resource: Any, *, on_busy: Any = "raise", on_lost: Any = None, cancel_on_lost: bool = False,
        **options: Any,
    ) -> Any:
        def lock(name: Any) -> AsyncMemoryLock:
            return self._made(name, options, "with_lock", on_lost, cancel_on_lost)

        return AsyncDecorator(lock, resource, on_busy, options)

    async def status(self, resource: Any) -> Report:
        return self._report(resource)

    async def check(self) -> Dict[str, Any]:
        return self.describe()

    async def bootstrap(self, **mode: bool) -> List[Dict[str, Any]]:
        return [{"node": "memory", "did": "nothing", "votes": True, "max_ttl_ms": None, "found": "votes"}]

    async def close(self) -> None:
        self._close()

    async def __aenter__(self) -> AsyncMemoryClient:
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._close()

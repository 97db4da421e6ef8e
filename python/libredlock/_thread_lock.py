"""A lock that threads, or greenlets, share: it feels like threading.Lock."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional, Type, TypeVar
from weakref import ref

from ._blocking import SLICE_MS, wait, warn_if_a_loop_stops
from ._core import lib
from ._errors import Cancelled, Closed, Holder, RedlockError
from ._facts import ADOPTED
from ._line import LOOK_AGAIN_S, WARN_AFTER_MS
from ._lock import HOLDER_LIMIT_MS, LockBase, note_loss
from ._native import held_by
from ._notify import notifier
from ._options import BY_OPTION, ttl_ms, wait_ms
from ._process import generation, this_process
from ._queue import LEAVING, Ticket, leave
from .types import Seconds

if TYPE_CHECKING:
    from ._client import Client

AnyLock = TypeVar("AnyLock", bound="Lock")

OK = lib.REDLOCK_OK
PENDING = lib.REDLOCK_PENDING
IN_FLIGHT = lib.REDLOCK_IN_FLIGHT
BUSY = lib.REDLOCK_BUSY
ACQUIRE = lib.REDLOCK_ACQUIRE
EXTEND = lib.REDLOCK_EXTEND
INSPECT = lib.REDLOCK_INSPECT
_run = lib.run_operation
_set = lib.redlock_lock_set
_wait = lib.redlock_lock_wait
_state = lib.redlock_lock_state
now_ms = lib.now_ms


class Lock(LockBase):
    """A lock on one resource, made by Client.lock(); use it as a threading.Lock, or as `with lock:`.

    Threads may share it: they queue in memory, first come, first served, and one of them at a time talks to the
    nodes. release() lets the next one in, and so does the end of the lease. Errors are subclasses of RedlockError.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        _client: Client

    def _check_on_lost(self, on_lost: Any) -> None:
        import inspect

        super()._check_on_lost(on_lost)
        if inspect.iscoroutinefunction(on_lost):
            raise TypeError(f"on_lost={on_lost!r} is async: use libredlock.aio, or a plain function")

    def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> bool:
        limit_ms = BY_OPTION if blocking is True and timeout == -1 else wait_ms(blocking, timeout)
        if self._renews:
            self._unscoped()
        ticket = Ticket()
        try:
            status = self._take(ticket, limit_ms)
            if status == OK:
                return True
            if status != BUSY:
                raise self._error(status)
            leave(self._line, ticket)
            return False
        except BaseException:
            self._abandon(ticket)
            raise

    def release(self) -> None:
        ticket = self._held_ticket(True)
        client, handle, line, owner = self._client, self._handle, self._line, ticket.owner
        try:
            ticket.owner = LEAVING
            if self._on_lost is not None:
                self._unwatch()
            status = client._release(handle)
            if status == IN_FLIGHT:  # another thread is extending it
                turn = Ticket()
                try:
                    self._wait_for_extensions(turn)
                    status = client._release(handle)
                finally:
                    leave(self._extensions, turn)
            if status != OK:
                self._judge_release(status)
            leave(line, ticket)
        except BaseException:
            self._abandon_release(ticket, owner)
            raise

    def extend(self, ttl: Optional[Seconds] = None) -> float:
        argument = ttl_ms(ttl)
        self._held_ticket(False)
        ticket = Ticket()
        try:
            self._wait_for_extensions(ticket)
            self._held_ticket(False)
            status = self._client._drive(self._client, self._handle, EXTEND, argument)
        finally:
            leave(self._extensions, ticket)
        if status == IN_FLIGHT:  # another thread is releasing it
            raise self._not_held(lib.REDLOCK_STATE_FREE)
        if status != OK:
            raise self._extend_error(status, ttl)
        return self.remaining

    def downgrade(self, ttl: Optional[Seconds] = None) -> float:
        ttl_ms(ttl)  # refuses what is not allowed
        self._held_ticket(False)
        self._alone(self._share)
        return self.extend(ttl)

    def detach(self) -> str:
        ticket = Ticket()
        try:
            self._wait_for_extensions(ticket)
            return self._detach()
        finally:
            leave(self._extensions, ticket)

    def __enter__(self: AnyLock) -> AnyLock:
        """Takes the lock, waiting as the option `wait` says; renews it until the end of the block.

        Raises Busy if others hold it at the end of the wait, and what acquire() raises.
        """
        ticket = Ticket()
        if self._renew is None and not self._renews:  # scoped forms renew, unless it was said otherwise
            _set(self._handle, b"renew", b"true")
            self._renews = True
        try:
            if self._line and _state(self._handle) == ADOPTED:
                self.extend()
                return self
            status = self._take(ticket, BY_OPTION)
            if status != OK:
                raise self._refused(ticket, status)
            return self
        except BaseException:
            self._abandon(ticket)
            raise

    def __exit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Releases the lock. Raises Lost if it was lost, unless the block failed by itself: then the loss is logged."""
        if failure is None:
            self.release()
            return
        try:
            self.release()
        except RedlockError as loss:
            note_loss(failure, loss)

    def _take(self, ticket: Ticket, limit_ms: int) -> int:
        """Through the line and to the nodes. Unless it is OK the caller has to leave the line."""
        client = self._client
        if self._generation != generation():
            self._forked()
        line = self._line
        line.append(ticket)
        if line[0] is not ticket:
            left_ms = self._queue(ticket, limit_ms)
            if left_ms is None:
                return int(BUSY)
            limit_ms = left_ms
        status: int
        if self._downgraded:
            status = self._take_alone()
            if status != OK:
                return status
        if client._greenlets is not None:
            status = client._drive(client, self._handle, ACQUIRE, limit_ms)
        else:  # as drive() does it, and with less on the way
            status = _run(self._handle, ACQUIRE, limit_ms, SLICE_MS)
            if status == PENDING:
                status = wait(client, self._handle)
        if status == OK:
            ticket.owner = client._current()
            if self._on_lost is not None:
                self._watch()
        return status

    def _refused(self, ticket: Ticket, status: int) -> RedlockError:
        """Why a block is not entered. Whoever is next in the line need not wait for the holder's name."""
        failure = self._error(status, self._why_queued(ticket))
        if self._is_unnamed(failure):
            self._leave(ticket)
            failure.held_by = self._ask_who_holds()  # type: ignore[attr-defined]
        return failure

    def _ask_who_holds(self) -> Optional[Holder]:
        """Of several resources, of the first that is held."""
        until_ms = now_ms() + HOLDER_LIMIT_MS
        for name in self._names():
            if now_ms() >= until_ms:
                return None
            try:
                handle = Lock(self._client, name, {}, "status", None)._handle
            except Closed:
                return None
            self._inspect(handle, until_ms)
            holder = held_by(handle)
            if holder is not None:
                return holder
        return None

    def _inspect(self, handle: Any, until_ms: int) -> None:
        client = self._client
        if client._greenlets is not None:
            client._drive(client, handle, INSPECT, 0)
            return
        status = _run(handle, INSPECT, 0, SLICE_MS)
        while status == PENDING and now_ms() < until_ms:
            status = _wait(handle, SLICE_MS)
        if status == PENDING:
            lib.redlock_lock_cancel(handle)
            _wait(handle, SLICE_MS)

    def _queue(self, ticket: Ticket, limit_ms: int) -> Optional[int]:
        """Waits for the others in the line: what is left of the wait in ms, None if nothing is."""
        if self._is_first(ticket):
            return limit_ms
        if limit_ms == BY_OPTION:
            limit_ms = self._wait_option_ms()
        if limit_ms == 0:
            return None
        warn_if_a_loop_stops()
        begin_ms = now_ms()
        is_first = self._sleep(ticket, lambda: self._is_first(ticket), begin_ms + limit_ms if limit_ms > 0 else -1)
        if self._client._is_leaving:
            this_process.stay_if_leaving()
            raise Cancelled(f"the client was closed while {self._resource!r} was waited for", resource=self._resource)
        if not is_first:
            return None
        return limit_ms if limit_ms < 0 else max(0, limit_ms - (now_ms() - begin_ms))

    def _sleep(self, ticket: Ticket, is_over: Callable[[], bool], until_ms: int) -> bool:
        """Until it is over, or the client is closed: True; False at the time until_ms, if that is not negative."""
        client = self._client
        client._is_patched()
        turn = client._turn()
        ticket.wake = lambda: _open(turn)
        client._sleepers.add(ticket)
        warn_ms = now_ms() + WARN_AFTER_MS
        try:
            while not is_over() and not client._is_leaving:
                if now_ms() >= warn_ms:
                    warn_ms = sys.maxsize
                    self._warn_of_itself()
                left_s = min(LOOK_AGAIN_S, self._until_expiry())
                if until_ms >= 0:
                    left_s = min(left_s, (until_ms - now_ms()) / 1000)
                if left_s <= 0:
                    return False
                turn.acquire(timeout=left_s)
        finally:
            client._sleepers.discard(ticket)
        return True

    def _wait_for_extensions(self, ticket: Ticket) -> None:
        """One thread at a time extends, and a release waits for it. The caller has to leave the line."""
        if self._generation != generation():
            self._forked()
        line = self._extensions
        line.append(ticket)
        if line[0] is not ticket:
            self._sleep(ticket, lambda: line[0] is ticket, -1)

    def _alone(self, call: Callable[[], None]) -> None:
        """Calls it while no other thread extends the lock."""
        turn = Ticket()
        try:
            self._wait_for_extensions(turn)
            call()
        finally:
            leave(self._extensions, turn)

    def _watch(self) -> None:
        """From now on on_lost is called."""
        self._client._watched[id(self)] = ref(self)
        notifier.wake()

    def _unwatch(self) -> None:
        self._client._watched.pop(id(self), None)


def _open(turn: Any) -> None:
    try:
        turn.release()
    except RuntimeError:
        pass  # woken already

"""The synchronous surface: locks that feel like threading.Lock."""

from __future__ import annotations

import threading
import time
from threading import get_ident
from types import TracebackType
from typing import Any, Callable, Iterable, Literal, Mapping, Optional, Type, TypeVar, Union, overload

from ._base import ADOPTED, HELD, ClientBase, LockBase, Report, note_loss, report
from ._core import lib
from ._errors import Cancelled, RedlockError, error
from ._gate import Gate, Room, Visit
from ._native import text, votes
from ._options import milliseconds, ttl_ms
from ._process import here
from .types import ClientOptions, Guard, GuardOr, LockOptions, Resource, Seconds, Unpack

T = TypeVar("T")
Named = Union[Resource, Callable[..., Resource]]
AnyLock = TypeVar("AnyLock", bound="Lock")
AnyClient = TypeVar("AnyClient", bound="Client")

# Python's signal handlers run between two calls of the core, so the main thread never stays in one for longer.
SLICE_MS = 25

# A year: what the core takes. threading.TIMEOUT_MAX, which locks of threading take, is longer.
LONGEST_WAIT_MS = 31_536_000_000

OK = lib.REDLOCK_OK
PENDING = lib.REDLOCK_PENDING
IN_FLIGHT = lib.REDLOCK_IN_FLIGHT
BUSY = lib.REDLOCK_BUSY
ACQUIRE = lib.REDLOCK_ACQUIRE
BY_OPTION = -2
_acquire = lib.redlock_lock_acquire
_start = lib.redlock_lock_start
_wait = lib.redlock_lock_wait
_release = lib.redlock_lock_release
_state = lib.redlock_lock_state


def drive(handle: Any, operation: int, argument: int) -> int:
    """Runs an operation to its end; signal handlers run in between if this is the main thread."""
    status: int = _start(handle, operation, argument)
    limit_ms = SLICE_MS if get_ident() == here.main_thread else -1
    if status == OK:
        status = PENDING
    while status == PENDING:
        status = _wait(handle, limit_ms)
    return status


def wait_ms_of(blocking: bool, timeout: Any) -> int:
    """The wait for acquire(blocking, timeout), judged as threading.Lock judges them."""
    if not blocking:
        if timeout != -1:
            raise ValueError(f"timeout={timeout!r}: not allowed with blocking=False")
        return 0
    allowed = "-1 (the option wait), or 0 and more seconds"
    if isinstance(timeout, (int, float)) and timeout == -1:
        return BY_OPTION
    if isinstance(timeout, (int, float)) and timeout > threading.TIMEOUT_MAX:
        raise OverflowError(f"timeout={timeout!r}: above threading.TIMEOUT_MAX ({threading.TIMEOUT_MAX})")
    ms = milliseconds("timeout", timeout, allowed)
    if ms > threading.TIMEOUT_MAX * 1000:
        raise OverflowError(f"timeout={timeout!r}: above threading.TIMEOUT_MAX ({threading.TIMEOUT_MAX})")
    return min(ms, LONGEST_WAIT_MS)


class Lock(LockBase):
    """A lock on one resource, made by Client.lock(); use it as a threading.Lock, or as `with lock:`.

    Threads may share it: they queue in memory, first come, first served, and one of them at a time talks to the
    nodes. Only release() lets the next one in, also after the lock was lost. Errors are subclasses of RedlockError.
    """

    __slots__ = ("_gate", "_busy_with")

    _client: Client

    def __init__(self, client: Client, resource: Resource, options: Mapping[str, Any], function: str) -> None:
        super().__init__(client, resource, options, function)
        self._fresh_gate()

    def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> bool:
        """Takes the lock: True, or False if others hold it at the end of the wait.

        timeout: seconds to wait for other threads and for the nodes together; -1 means the option `wait`.
        Raises NoQuorum, RefusedConfig or TimedOut if the nodes gave no verdict, Cancelled if the client was closed.
        The lock is not renewed, unless the option renew=True says so: see `remaining` and extend().
        """
        wait_ms = BY_OPTION if blocking and timeout == -1 else wait_ms_of(blocking, timeout)
        if self._renews:
            self._unscoped()
        visit = Visit()
        try:
            status = self._enter(visit, wait_ms)
            if status != OK and status != BUSY:
                raise self._error(status)
            if status == BUSY:
                self._gate.leave(visit)
            return bool(status == OK)
        except BaseException:
            self._abandon(visit)
            raise

    def release(self) -> None:
        """Gives the lock up; nodes that do not answer are cleaned up later and are no error.

        Raises NotHeld if it was never taken, Lost if it had lapsed (the deletes are sent all the same), Forked in a
        child of the process that holds it.
        """
        gate = self._gate if self._generation == here.generation else self._gate_now()
        visit = gate.holder
        try:
            if visit is None or not gate.unhold(visit):
                visit = None
                raise self._not_held(self._state_between_holds())
            status = _release(self._handle)
            if status == IN_FLIGHT:  # another thread is extending it
                with self._busy_with:
                    status = _release(self._handle)
            if status != OK:
                self._judge_release(status)
            gate.leave(visit)
        except BaseException:
            if visit is not None and not gate.is_held_by(visit):
                self._abandon(visit)
            raise

    def extend(self, ttl: Optional[Seconds] = None) -> None:
        """Prolongs the lock to `ttl` seconds from now (None: the option); it never shortens a lease.

        Raises Lost if it is gone, for good; NoQuorum if a majority did not confirm (it stays held for `remaining`);
        Limit if max_extensions or max_hold is used up; NotHeld if it was never taken.
        """
        arg = ttl_ms(ttl)
        gate = self._gate_now()
        with self._busy_with:
            if gate.holder is None:
                raise self._not_held(self._state_between_holds())
            status = lib.redlock_lock_extend(self._handle, arg)
            if status == IN_FLIGHT:  # another thread is releasing it
                raise self._not_held(lib.REDLOCK_STATE_FREE)
            if status != OK:
                raise self._error(status)

    def locked(self) -> bool:
        """True from acquire() to release(), as threading.Lock.locked(); owned() says whether the lease still runs."""
        return self._gate_now().holder is not None

    def detach(self) -> str:
        """Hands the lock over: returns its token for Client.adopt() and forgets it. Local, no I/O."""
        gate = self._gate_now()
        with self._busy_with:
            token = self._detach()
        visit = gate.holder
        if visit is not None and gate.unhold(visit):
            gate.leave(visit)
        return token

    def __enter__(self: AnyLock) -> AnyLock:
        """Takes the lock, waiting as the option `wait` says; renews it until the end of the block.

        Raises Busy if others hold it at the end of the wait, and what acquire() raises.
        """
        visit = Visit()
        if not self._renews:
            self._scoped()
        try:
            if _state(self._handle) == ADOPTED:
                self.extend()
                return self
            status = self._enter(visit, BY_OPTION)
            if status != OK:
                raise self._error(status, "" if self._gate.is_in(visit) else self._busy_here())
            return self
        except BaseException:
            self._abandon(visit)
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

    def _enter(self, visit: Visit, wait_ms: int) -> int:
        """Through the gate and to the nodes. Unless it is OK the caller has to leave the gate."""
        gate = self._gate if self._generation == here.generation else self._gate_now()
        if not gate.enter(visit):
            left_ms = self._queue(gate, visit, wait_ms)
            if left_ms is None:
                return int(BUSY)
            wait_ms = left_ms
        if get_ident() != here.main_thread:
            status: int = _acquire(self._handle, wait_ms)
        else:
            status = drive(self._handle, ACQUIRE, wait_ms)
        if status == OK:
            gate.hold(visit)
        return status

    def _queue(self, gate: Gate, visit: Visit, wait_ms: int) -> Optional[int]:
        """Waits for the other threads: what is left of the wait in ms, None if nothing is."""
        if wait_ms == BY_OPTION:
            wait_ms = self._wait_option_ms()
        if wait_ms == 0:
            return None
        start = time.monotonic()
        let_in = gate.sleep(visit, min(wait_ms / 1000, threading.TIMEOUT_MAX) if wait_ms > 0 else -1)
        if self._client.closed:
            raise Cancelled(f"the client was closed while {self._resource!r} was waited for", resource=self._resource)
        if not let_in:
            return None
        if wait_ms < 0:
            return wait_ms
        return max(0, wait_ms - int((time.monotonic() - start) * 1000))

    def _busy_here(self) -> str:
        return f"another thread of this process holds {self._resource!r}"

    def _wait_option_ms(self) -> int:
        return int(text(lib.redlock_lock_get, self._handle, b"wait_ms"))

    def _adopted(self, token: str) -> Lock:
        self._adopt(token)
        visit = Visit()
        self._gate.enter(visit)
        self._gate.hold(visit)
        return self

    def _abandon(self, visit: Visit) -> None:
        """Takes back whatever an interrupted call has reached."""
        gate = self._gate
        if gate.is_in(visit):
            gate.unhold(visit)
            lib.redlock_lock_cancel(self._handle)
            if _state(self._handle) == HELD:
                _release(self._handle)
            self._client._process()
        gate.leave(visit)

    def _gate_now(self) -> Gate:
        if self._generation != here.generation:
            self._generation = here.generation
            here.arm()
            self._fresh_gate()
        return self._gate

    def _fresh_gate(self) -> None:
        self._gate = Gate(self._client._room)
        self._busy_with = threading.Lock()


class Client(ClientBase):
    """A set of nodes, shared by any number of threads; `with Client() as client:` closes it at the end.

    nodes: URLs, or one str of URLs separated by commas; None takes them from the environment variable REDLOCK_NODES.
        redis://[user:password@]host[:port][/database] or unix://[user:password@]/path[?db=n]
    options: the defaults of all its locks, and the client's own (docs/options.md); durations are seconds or
        timedelta. `wait` is None: for ever.

    Opening never blocks: the nodes are connected to in the background. Raises InvalidOption or TypeError.
    """

    def __init__(self, nodes: Union[None, str, Iterable[str]] = None, **options: Unpack[ClientOptions]) -> None:
        self._room = Room()
        super().__init__(nodes, **options)

    def lock(self, resource: Resource, **options: Unpack[LockOptions]) -> Lock:
        """A lock on a resource (str as UTF-8, or bytes). Nothing is taken yet; no I/O."""
        return Lock(self, resource, options, "lock")

    def adopt(self, resource: Resource, token: str, **options: Unpack[LockOptions]) -> Lock:
        """Takes over a lock that was detached elsewhere. extend() confirms it, and so does `with`; no I/O here.

        That nobody else held it in between is not promised.
        """
        return Lock(self, resource, options, "adopt")._adopted(token)

    @overload
    def guard(
        self, resource: Named, *, on_busy: Literal["raise"] = "raise", **options: Unpack[LockOptions]
    ) -> Guard: ...

    @overload
    def guard(self, resource: Named, *, on_busy: Literal["skip"], **options: Unpack[LockOptions]) -> GuardOr[None]: ...

    @overload
    def guard(self, resource: Named, *, on_busy: T, **options: Unpack[LockOptions]) -> GuardOr[T]: ...

    def guard(self, resource: Named, *, on_busy: Any = "raise", **options: Unpack[LockOptions]) -> Any:
        """Decorates a function, method or generator: it runs while the lock is held and renewed.

        resource: a text with names of the arguments in braces, "report:{user_id}", or a function of the same
            arguments that returns the resource. Names are checked when the function is decorated; None or '' as a
            value is a ValueError at the call.
        on_busy: "raise" raises Busy when others hold the lock at the end of the wait; "skip" does not run the
            function and returns None; anything else is returned instead. Without wait= the last two do not wait.
        A generator holds the lock from its first next() to its close. Raises what `with client.lock(...)` raises.
        """
        from ._guard import OnBusy, guard

        busy = OnBusy(on_busy)
        if not busy.raises:
            options.setdefault("wait", 0)
        Lock(self, b"guard", options, "guard")  # refuses wrong options now
        return guard(lambda name: Lock(self, name, options, "guard"), resource, busy)

    def status(self, resource: Resource) -> Report:
        """Asks every node who holds the resource, without touching it. Raises NoQuorum if too few answer."""
        handle = self._new_handle(resource)
        try:
            status = drive(handle, lib.REDLOCK_INSPECT, 0)
            answers = votes(handle, list(self._nodes))
            if status not in (OK, BUSY):
                raise error(status, text(lib.redlock_lock_message, handle), resource, answers)
            return report(resource, answers)
        finally:
            lib.redlock_lock_free(handle)

    def close(self) -> None:
        """Ends the client: whoever waits gets Cancelled, held locks are released; takes at most exit_drain seconds."""
        self._leave()

    def __enter__(self: AnyClient) -> AnyClient:
        """The client itself."""
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Closes the client."""
        self.close()

    def _leave(self) -> None:
        self._room.close()
        super()._leave()

    def _forked(self) -> None:
        self._room = Room()
        super()._forked()

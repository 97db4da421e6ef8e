"""The synchronous surface: locks that feel like threading.Lock."""

from __future__ import annotations

import os
import sys
from _thread import _local, allocate_lock
from threading import get_ident
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, List, Literal, Optional, Set, Type, TypeVar, Union, overload
from weakref import ref

from . import _greenlets
from ._base import ClientBase, Report
from ._core import lib
from ._errors import Cancelled, Closed, Holder, RedlockError
from ._facts import ADOPTED
from ._line import LOOK_AGAIN_S, WARN_AFTER_MS, warn_of_itself
from ._lock import HOLDER_LIMIT_MS, LockBase, note_loss
from ._native import held_by
from ._notify import notifier
from ._options import BY_OPTION, ttl_ms, wait_ms
from ._process import generation, this_process
from ._queue import LEAVING, Ticket, leave
from .types import ClientOptions, Decorator, DecoratorOr, LockOptions, Named, Resource, Seconds, Unpack

T = TypeVar("T")
AnyLock = TypeVar("AnyLock", bound="Lock")
AnyClient = TypeVar("AnyClient", bound="Client")

# Python's signal handlers run between two calls of the core, so the main thread never stays in one for longer.
SLICE_MS = 25

OK = lib.REDLOCK_OK
PENDING = lib.REDLOCK_PENDING
IN_FLIGHT = lib.REDLOCK_IN_FLIGHT
BUSY = lib.REDLOCK_BUSY
CANCELLED = lib.REDLOCK_CANCELLED
INVALID = lib.REDLOCK_INVALID
ACQUIRE = lib.REDLOCK_ACQUIRE
EXTEND = lib.REDLOCK_EXTEND
INSPECT = lib.REDLOCK_INSPECT
RELEASE = lib.REDLOCK_RELEASE
_run = lib.run_operation
_set = lib.redlock_lock_set
_wait = lib.redlock_lock_wait
_state = lib.redlock_lock_state
now_ms = lib.now_ms


def drive(client: Client, handle: Any, operation: int, argument: int) -> int:
    """Runs an operation to its end; signal handlers run in between if this is the main thread."""
    status: int = _run(handle, operation, argument, SLICE_MS)
    return wait(client, handle) if status == PENDING else status


def wait(client: Client, handle: Any) -> int:
    """The end of an operation that is not over at once."""
    _warn_if_a_loop_stops()
    is_main = get_ident() == this_process.main_thread
    status, slices = PENDING, 0
    while status == PENDING:
        if is_main and client._is_patched():
            return int(client._greenlets.wait(client, handle))
        status = _wait(handle, SLICE_MS if is_main else -1)
        slices += 1
        if slices == WARN_AFTER_MS // SLICE_MS and status == PENDING:
            _warn_of_itself(handle)
    return int(CANCELLED if status == INVALID else status)  # INVALID: the client was closed since it was started


def _warn_of_itself(handle: Any) -> None:
    """The main thread waits for a lock that this process holds, and there is no other thread that may release it."""
    import threading

    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    known = None if any(thread.name != "libredlock" for thread in others) else held_by(handle)
    if known is not None and (known.pid, known.host) == (os.getpid(), os.uname().nodename):
        warn_of_itself("thread", "a lock")


def _warn_if_a_loop_stops() -> None:
    """Once in a process, where a thread that runs an event loop has to wait."""
    global _has_warned
    asyncio = sys.modules.get("asyncio")
    if _has_warned or asyncio is None or asyncio._get_running_loop() is None:
        return
    _has_warned = True
    import warnings

    words = "libredlock.Client blocks the event loop that runs in this thread while it waits; use libredlock.aio.Client"
    warnings.warn(words, RuntimeWarning, stacklevel=5)


_has_warned = False


class Lock(LockBase):
    """A lock on one resource, made by Client.lock(); use it as a threading.Lock, or as `with lock:`.

    Threads may share it: they queue in memory, first come, first served, and one of them at a time talks to the
    nodes. release() lets the next one in, and so does the end of the lease. Errors are subclasses of RedlockError.
    """

    __slots__ = ()

    _client: Client

    def _check_on_lost(self, on_lost: Any) -> None:
        import inspect

        super()._check_on_lost(on_lost)
        if inspect.iscoroutinefunction(on_lost):
            raise TypeError(f"on_lost={on_lost!r} is async: use libredlock.aio, or a plain function")


    def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> bool:
        """Takes the lock: True, or False if others hold it at the end of the wait.

        timeout: seconds to wait for other threads and for the nodes together; -1 means the option `wait`.
        Raises NoQuorum, RefusedConfig or TimedOut if the nodes gave no verdict, Cancelled if the client was closed.
        The lock is not renewed, unless the option renew=True says so: see `remaining` and extend().
        """
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
        """Gives the lock up; nodes that do not answer are cleaned up later and are no error.

        Raises NotHeld if it was never taken, Lost if it had expired or a majority of the nodes no longer had it (the
        deletes are sent all the same), Forked in a child of the process that holds it.
        """
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
        """Prolongs the lock to `ttl` seconds from now (None: the option); returns `remaining`. It never shortens a
        lease.

        Raises Lost if it is gone, for good; NoQuorum if a majority did not confirm (it stays held for `remaining`);
        Limit if max_extensions or max_hold is used up; NotHeld if it was never taken.
        """
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

    def detach(self) -> str:
        """Hands the lock over: returns its token for Client.adopt() and forgets it. Local, no I/O."""
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
        client = self._client
        try:
            handle = Lock(client, self._resource, {}, "status", None)._handle
        except Closed:
            return None
        if client._greenlets is not None:
            client._drive(client, handle, INSPECT, 0)
            return held_by(handle)
        until_ms = now_ms() + HOLDER_LIMIT_MS
        status = _run(handle, INSPECT, 0, SLICE_MS)
        while status == PENDING and now_ms() < until_ms:
            status = _wait(handle, SLICE_MS)
        if status == PENDING:
            lib.redlock_lock_cancel(handle)
            _wait(handle, SLICE_MS)
        return held_by(handle)

    def _queue(self, ticket: Ticket, limit_ms: int) -> Optional[int]:
        """Waits for the others in the line: what is left of the wait in ms, None if nothing is."""
        if self._is_first(ticket):
            return limit_ms
        if limit_ms == BY_OPTION:
            limit_ms = self._wait_option_ms()
        if limit_ms == 0:
            return None
        _warn_if_a_loop_stops()
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


def _closed_turn() -> Any:
    turn = allocate_lock()
    turn.acquire()
    return turn


_of_thread = _local()


def _current_thread() -> object:
    """What stands for this thread, and for no later one: the numbers of threads are used again."""
    try:
        return _of_thread.identity
    except AttributeError:
        _of_thread.identity = identity = object()
        return identity


class Client(ClientBase):
    """A set of nodes, shared by any number of threads; `with Client() as client:` closes it at the end.

    nodes: URLs, or one str of URLs separated by commas; None takes them from the environment variable REDLOCK_NODES.
        `redis://[user:password@]host[:port][/database]`, `rediss://...` or `unix://[user:password@]/path[?db=n]`
    options: the defaults of all its locks, and the client's own (docs/options.md); durations are seconds or
        timedelta. `wait` is None: for ever.

    Opening never blocks: the nodes are connected to in the background. Raises InvalidOption or TypeError.
    """

    _lock_type: Any = Lock  # of lock(), adopt() and with_lock(); libredlock.otel has another one

    def __init__(self, nodes: Union[None, str, Iterable[str]] = None, **options: Unpack[ClientOptions]) -> None:
        self._sleepers: Set[Ticket] = set()
        self._is_leaving = False
        self._greenlets: Any = None
        super().__init__(nodes, **options)

    def _choose_how_to_wait(self) -> None:
        """As threads do, in C, or as greenlets."""
        library = _greenlets.patched()
        self._greenlets = None if library is None else _greenlets.Greenlets(self, library, drive)
        if self._greenlets is None:
            self._drive: Callable[[Client, Any, int, int], int] = drive
            self._release: Callable[[Any], int] = lib.redlock_lock_release
            self._current: Callable[[], object] = _current_thread
            self._turn: Callable[[], Any] = _closed_turn
        else:
            self._drive, self._release = self._greenlets.drive, self._greenlets.release
            self._current, self._turn = self._greenlets.current, self._greenlets.turn

    def _is_patched(self) -> bool:
        """Whether greenlets wait; the process may have been patched since its first lock."""
        if self._greenlets is None and _greenlets.patched() is not None:
            self._choose_how_to_wait()
        return self._greenlets is not None

    def lock(
        self,
        resource: Resource,
        *,
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Lock:
        """A lock on a resource (str as UTF-8, or bytes). Nothing is taken yet; no I/O.

        on_lost: called with the lock, in a thread of the package, at the moment at which the held lock is lost.
        """
        lock: Lock = self._lock_type(self, resource, options, "lock", on_lost)
        return lock

    def adopt(
        self,
        resource: Resource,
        token: str,
        *,
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Lock:
        """Takes over a lock that was detached elsewhere. extend() confirms it, and so does `with`; no I/O here.

        That nobody else held it in between is not promised.
        """
        lock: Lock = self._lock_type(self, resource, options, "adopt", on_lost)
        lock._adopt(token)
        if on_lost is not None:
            lock._watch()
        return lock

    @overload
    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: Literal["raise"] = "raise",
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Decorator: ...

    @overload
    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: Literal["skip"],
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> DecoratorOr[None]: ...

    @overload
    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: T,
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> DecoratorOr[T]: ...

    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: Any = "raise",
        on_lost: Optional[Callable[[Lock], object]] = None,
        **options: Unpack[LockOptions],
    ) -> Any:
        """Decorates a function, method or generator: it runs while the lock is held and renewed.

        resource: a text with names of the arguments in braces, "report:{user_id}", or a function of the same
            arguments that returns the resource. Names are checked when the function is decorated; None or '' as a
            value is a ValueError at the call.
        on_busy: "raise" raises Busy when others hold the lock at the end of the wait; "skip" does not run the
            function and returns None; anything else is returned instead. Without wait= the last two do not wait.
        on_lost: as for lock().
        A generator holds the lock from its first next() to its close. Raises what `with client.lock(...)` raises.
        """
        from ._decorator import BlockingDecorator

        def lock(name: Resource) -> Any:
            return self._lock_type(self, name, options, "with_lock", on_lost)

        return BlockingDecorator(lock, resource, on_busy, options)  # type: ignore[arg-type]

    def status(self, resource: Resource) -> Report:
        """Asks every node who holds the resource, without touching it. Raises NoQuorum if too few answer."""
        lock = Lock(self, resource, {}, "status", None)
        return self._report(lock, self._drive(self, lock._handle, lib.REDLOCK_INSPECT, 0))

    def check(self) -> Dict[str, Any]:
        """Asks every node, then describes the client as `redlock doctor --json` does.

        "voting" says how many nodes may vote, and each of "nodes" has "votes", "why" not, and an "advice". Waits for up
        to connect_timeout.
        """
        lock = Lock(self, "check", {}, "check", None)
        self._drive(self, lock._handle, lib.REDLOCK_INSPECT, 0)
        return self.describe()

    def bootstrap(
        self, *, new: bool = False, yes: bool = False, replace: bool = False, dry: bool = False
    ) -> List[Dict[str, Any]]:
        """Says that no lock is live, so that nodes that are new or were restarted vote at once, as `redlock bootstrap`.

        new: for deployment scripts; nodes that were never used, if all answer. yes: also nodes that are quarantined.
        replace: also where another max_ttl, list of nodes or cluster is registered. dry: only tells what it would do.
        One dict per node: "node", "did" (nothing, registered, replaced, left_alone, no_answer), "votes", "max_ttl_ms"
        and "found", in words. Takes at most twice connect_timeout.
        """
        from ._bootstrap import bootstrap, mode_of

        mode = mode_of(new, yes, replace, dry)
        lock = Lock(self, "bootstrap", {}, "bootstrap", None)  # keeps the core's client if this one is closed
        handle, nodes = self._opened(), list(self._nodes)

        def run() -> List[Dict[str, Any]]:
            with self._bootstrapping:
                return bootstrap(handle, nodes, mode)

        told: List[Dict[str, Any]] = run() if self._greenlets is None else self._greenlets.in_thread(run)
        del lock
        return told

    def close(self) -> None:
        """Ends the client: whoever waits gets Cancelled, held locks are released; takes at most exit_drain seconds."""
        if self._greenlets is None:
            self._leave()
            return
        self._wake_sleepers()
        try:
            self._tell_the_last()
        finally:
            self._greenlets.close(self._take_handle())
            notifier.wake()

    def __enter__(self: AnyClient) -> AnyClient:
        """The client itself."""
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Closes the client."""
        self.close()

    # ---- how the process waits --------------------------------------------------------------------------------------

    def _register(self) -> None:
        super()._register()
        self._choose_how_to_wait()
        notifier.add(self)

    def _wake_sleepers(self) -> None:
        self._is_leaving = True
        for ticket in list(self._sleepers):
            if ticket.wake is not None:
                ticket.wake()

    def _leave(self) -> None:
        self._wake_sleepers()
        super()._leave()
        notifier.wake()

    def _forked(self) -> None:
        super()._forked()
        self._sleepers = set()

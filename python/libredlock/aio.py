"""The asyncio surface: the same names as the synchronous one, with await and async with.

    async with libredlock.aio.Client(["redis://a", "redis://b", "redis://c"]) as client:
        async with client.lock("orders:42", ttl=10, wait=5, cancel_on_lost=True):
            ...

Any number of tasks share a client; the event loop watches its one descriptor, and no thread is started for an
operation. Works on asyncio and uvloop.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Literal, Mapping, Optional, Set, Tuple, Type, TypeVar, Union, overload
from weakref import ref

from ._base import ADOPTED, AT_ONCE, HELD, LOOK_AGAIN_S, ClientBase, LockBase, Report, note_loss
from ._core import ffi, lib
from ._errors import Cancelled, RedlockError, error
from ._options import BY_OPTION, ttl_ms, wait_ms
from ._queue import LEAVING, Ticket, first, leave
from .types import AsyncGuard, AsyncGuardOr, ClientOptions, LockOptions, Named, Resource, Seconds, Unpack

T = TypeVar("T")
AnyLock = TypeVar("AnyLock", bound="Lock")
AnyClient = TypeVar("AnyClient", bound="Client")

__all__ = ["Client", "Lock"]

CANCEL_MESSAGE = "libredlock: the lock was lost"
OK = lib.REDLOCK_OK
PENDING = lib.REDLOCK_PENDING
BUSY = lib.REDLOCK_BUSY
ACQUIRE = lib.REDLOCK_ACQUIRE
EXTEND = lib.REDLOCK_EXTEND
RELEASE = lib.REDLOCK_RELEASE
_start = lib.redlock_lock_start
_set = lib.redlock_lock_set
_status = lib.redlock_lock_status
_cancel = lib.redlock_lock_cancel
_state = lib.redlock_lock_state
_advance = lib.redlock_client_advance
_next = lib.redlock_client_next
_running_loop = asyncio._get_running_loop  # None where there is none


class Lock(LockBase):
    """A lock on one resource, made by Client.lock(); use it as an asyncio.Lock, or as `async with lock:`.

    Tasks may share it: they queue in memory, first come, first served. release() lets the next one in, and so does
    the end of the lease. Cancelling a task that waits leaves no key. Errors are subclasses of RedlockError.
    """

    __slots__ = ("_tag", "_cancel_on_lost", "_body", "_cancellations", "_has_cancelled")

    _client: Client
    _keywords = LockBase._keywords | {"cancel_on_lost"}
    _sharer = "task"

    def __init__(
        self,
        client: Client,
        resource: Resource,
        options: Mapping[str, Any],
        function: str,
        on_lost: Optional[Callable[[Lock], object]],
        cancel_on_lost: bool,
    ) -> None:
        """Called by the methods of Client."""
        self._tag = next(client._tags)
        super().__init__(client, resource, options, function, on_lost)
        if not isinstance(cancel_on_lost, bool):
            raise TypeError(f"cancel_on_lost={cancel_on_lost!r}: takes True or False")
        self._cancel_on_lost = cancel_on_lost
        self._body: Optional[asyncio.Task[Any]] = None
        self._has_cancelled = False
        lib.redlock_lock_set_tag(self._handle, self._tag)

    async def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> bool:
        """Takes the lock: True, or False if others hold it at the end of the wait.

        timeout: seconds to wait for other tasks and for the nodes together; -1 means the option `wait`.
        Raises NoQuorum, RefusedConfig or TimedOut if the nodes gave no verdict, Cancelled if the client was closed.
        The lock is not renewed, unless the option renew=True says so: see `remaining` and extend().
        """
        limit_ms = BY_OPTION if blocking and timeout == -1 else wait_ms(blocking, timeout)
        if self._renews:
            self._unscoped()
        ticket = Ticket()
        try:
            status = await self._take(ticket, limit_ms)
            if status == OK:
                return True
            if status != BUSY:
                raise self._error(status)
            leave(self._line, ticket)
            return False
        except BaseException:
            self._abandon(ticket)
            raise

    async def release(self) -> None:
        """Gives the lock up; nodes that do not answer are cleaned up later and are no error.

        Raises NotHeld if it was never taken, Lost if it had lapsed or a majority of the nodes no longer had it (the
        deletes are sent all the same), Forked in a child of the process that holds it.
        """
        client = self._client
        loop = _running_loop()
        if loop is None or loop is not client._loop:
            loop = client._bind()
        ticket = self._held_ticket(True)
        ticket.owner = LEAVING
        tag = self._tag
        if tag in client._watched:
            self._unwatch()
        try:
            if self._extending is not None:
                async with self._extending:  # an extension by another task ends first
                    status = await client._run(loop, self._handle, tag, RELEASE, 0)
            else:
                status = _start(self._handle, RELEASE if client._pending else RELEASE | AT_ONCE, 0)
                if status == OK:
                    status = await client._end_of(loop, self._handle, tag)
            if status != OK:
                self._judge_release(status)
            self._leave(ticket)
        except BaseException:
            client._pending.pop(tag, None)
            _cancel(self._handle)
            self._forget_hold()
            client._process()
            self._leave(ticket)
            raise

    async def extend(self, ttl: Optional[Seconds] = None) -> float:
        """Prolongs the lock to `ttl` seconds from now (None: the option); returns `remaining`. It never shortens a
        lease.

        Raises Lost if it is gone, for good; NoQuorum if a majority did not confirm (it stays held for `remaining`);
        Limit if max_extensions or max_hold is used up; NotHeld if it was never taken.
        """
        argument = ttl_ms(ttl)
        loop = self._client._bind()
        self._held_ticket(False)
        if self._extending is None:
            self._extending = asyncio.Lock()
        async with self._extending:
            self._held_ticket(False)
            status = await self._client._run(loop, self._handle, self._tag, EXTEND, argument)
        if status != OK:
            raise self._error(status)
        return self.remaining

    def detach(self) -> str:
        """Hands the lock over: returns its token for Client.adopt() and forgets it. Local, no I/O."""
        token = self._detach()
        self._client._holds.pop(self._tag, None)
        return token

    async def __aenter__(self: AnyLock) -> AnyLock:
        """Takes the lock, waiting as the option `wait` says; renews it until the end of the block.

        Raises Busy if others hold it at the end of the wait, and what acquire() raises.
        """
        ticket = Ticket()
        if self._renew is None and not self._renews:  # scoped forms renew, unless it was said otherwise
            _set(self._handle, b"renew", b"true")
            self._renews = True
        try:
            if self._line and _state(self._handle) == ADOPTED:
                await self.extend()
            else:
                status = await self._take(ticket, BY_OPTION)
                if status != OK:
                    raise self._error(status, self._why_queued(ticket))
            if self._cancel_on_lost:
                self._watch_body()
            return self
        except BaseException:
            self._abandon(ticket)
            raise

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Releases the lock. Raises Lost if it was lost, unless the block failed by itself: then the loss is logged."""
        is_ours = self._unwatch_body(failure)
        try:
            await self.release()
        except RedlockError as loss:
            if failure is None or is_ours:
                raise loss from None
            note_loss(failure, loss)

    async def _take(self, ticket: Ticket, limit_ms: int) -> int:
        """Through the line and to the nodes. Unless it is OK the caller has to leave the line."""
        client = self._client
        loop = _running_loop()
        if loop is None or loop is not client._loop:
            loop = client._bind()
        if self._era is not client._era:
            self._begin_era()
        line = self._line
        line.append(ticket)
        if line[0] is not ticket:
            left_ms = await self._queue(loop, ticket, limit_ms)
            if left_ms is None:
                return int(BUSY)
            limit_ms = left_ms
        # what is alone gains nothing by leaving with others in the loop's next turn
        handle, tag = self._handle, self._tag
        status: int = _start(handle, ACQUIRE if client._pending else ACQUIRE | AT_ONCE, limit_ms)
        if status == OK:
            status = await client._end_of(loop, handle, tag)
        if status == OK:
            ticket.owner = id(asyncio.current_task())
            client._holds[tag] = handle
            self._extending = None
            if self._on_lost is not None:
                self._watch()
        return status

    async def _queue(self, loop: asyncio.AbstractEventLoop, ticket: Ticket, limit_ms: int) -> Optional[int]:
        """Waits for the others in the line: what is left of the wait in ms, None if nothing is."""
        if self._is_first(ticket):
            return limit_ms
        if limit_ms == BY_OPTION:
            limit_ms = self._wait_option_ms()
        if limit_ms == 0:
            return None
        client = self._client
        begin = time.monotonic()
        while not self._is_first(ticket):
            left = LOOK_AGAIN_S if limit_ms < 0 else min(LOOK_AGAIN_S, begin + limit_ms / 1000 - time.monotonic())
            if left <= 0:
                return None
            await self._sleep(loop, ticket, min(left, self._until_lapse()))
            if client.closed:
                name = self._resource
                raise Cancelled(f"the client was closed while {name!r} was waited for", resource=name)
        return limit_ms if limit_ms < 0 else max(0, limit_ms - int((time.monotonic() - begin) * 1000))

    async def _sleep(self, loop: asyncio.AbstractEventLoop, ticket: Ticket, limit_s: float) -> None:
        turn: asyncio.Future[None] = loop.create_future()
        ticket.wake = lambda: _settle(turn, None)
        timer = loop.call_later(limit_s, ticket.wake)
        self._client._sleepers.add(ticket)
        try:
            await turn
        finally:
            self._client._sleepers.discard(ticket)
            timer.cancel()

    def _leave(self, ticket: Ticket) -> None:
        self._client._holds.pop(self._tag, None)
        leave(self._line, ticket)

    def _abandon(self, ticket: Ticket) -> None:
        if first(self._line) is ticket:
            self._client._holds.pop(self._tag, None)
            self._client._pending.pop(self._tag, None)
        super()._abandon(ticket)

    def _adopt(self, token: str) -> Ticket:
        ticket = super()._adopt(token)
        self._client._holds[self._tag] = self._handle
        return ticket

    def _watch(self) -> None:
        """Starts to watch for its loss."""
        self._client._watched[self._tag] = ref(self)

    def _unwatch(self) -> None:
        self._client._watched.pop(self._tag, None)

    def _watch_body(self) -> None:
        self._body = asyncio.current_task()
        self._has_cancelled = False
        self._cancellations = _cancelling(self._body)
        self._watch()
        self._tell_if_lost()

    def _tell_if_lost(self) -> None:
        if self._body is not None and not self._has_cancelled and self.lost:
            self._has_cancelled = True
            self._body.cancel(CANCEL_MESSAGE)
        super()._tell_if_lost()

    def _unwatch_body(self, failure: Optional[BaseException]) -> bool:
        """True if the body was cancelled by the loss, and by nobody else."""
        body, self._body = self._body, None
        if body is None or not self._has_cancelled:
            return False
        if sys.version_info >= (3, 11):
            is_ours = body.uncancel() <= self._cancellations
        else:
            is_ours = failure is not None and failure.args == (CANCEL_MESSAGE,)
        return is_ours and isinstance(failure, asyncio.CancelledError)

    def __del__(self) -> None:
        if self._line:
            self._client._holds.pop(self._tag, None)
        super().__del__()


class Client(ClientBase):
    """A set of nodes, shared by any number of tasks; `async with Client() as client:` closes it at the end.

    nodes: URLs, or one str of URLs separated by commas; None takes them from the environment variable REDLOCK_NODES.
        redis://[user:password@]host[:port][/database] or unix://[user:password@]/path[?db=n]
    options: the defaults of all its locks, and the client's own (docs/options.md); durations are seconds or
        timedelta. `wait` is None: for ever.

    Opening never blocks. The client belongs to the event loop of its first await, and moves to another one when
    nothing is held or pending. Raises InvalidOption or TypeError.
    """

    _lock_type: Any = Lock  # of lock(), adopt() and guard(); libredlock.otel has another one

    def __init__(self, nodes: Union[None, str, Iterable[str]] = None, **options: Unpack[ClientOptions]) -> None:
        self._tags = itertools.count(1)
        self._tag = ffi.new("uint64_t *")
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._descriptors: Tuple[int, ...] = ()
        self._holds: Dict[int, Any] = {}
        self._pending: Dict[int, Tuple[asyncio.Future[int], Any]] = {}
        self._sleepers: Set[Ticket] = set()
        super().__init__(nodes, **options)

    def lock(
        self,
        resource: Resource,
        *,
        on_lost: Optional[Callable[[Lock], object]] = None,
        cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> Lock:
        """A lock on a resource (str as UTF-8, or bytes). Nothing is taken yet; no I/O.

        on_lost: called with the lock, by the event loop, at the moment at which the held lock is lost.
        cancel_on_lost: cancels the body of `async with` at that moment; the block then ends with Lost.
        """
        lock: Lock = self._lock_type(self, resource, options, "lock", on_lost, cancel_on_lost)
        return lock

    def adopt(
        self,
        resource: Resource,
        token: str,
        *,
        on_lost: Optional[Callable[[Lock], object]] = None,
        cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> Lock:
        """Takes over a lock that was detached elsewhere. extend() confirms it, and so does `async with`; no I/O here.

        That nobody else held it in between is not promised.
        """
        lock: Lock = self._lock_type(self, resource, options, "adopt", on_lost, cancel_on_lost)
        lock._adopt(token)
        if on_lost is not None:
            lock._watch()
        return lock

    @overload
    def guard(
        self,
        resource: Named,
        *,
        on_busy: Literal["raise"] = "raise",
        cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> AsyncGuard: ...

    @overload
    def guard(
        self,
        resource: Named,
        *,
        on_busy: Literal["skip"],
        cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> AsyncGuardOr[None]: ...

    @overload
    def guard(
        self, resource: Named, *, on_busy: T, cancel_on_lost: bool = False, **options: Unpack[LockOptions]
    ) -> AsyncGuardOr[T]: ...

    def guard(
        self,
        resource: Named,
        *,
        on_busy: Any = "raise",
        cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> Any:
        """Decorates an async function, method or generator: it runs while the lock is held and renewed.

        resource: a text with names of the arguments in braces, "report:{user_id}", or a function of the same
            arguments that returns the resource. Names are checked when the function is decorated; None or '' as a
            value is a ValueError at the call.
        on_busy: "raise" raises Busy when others hold the lock at the end of the wait; "skip" does not run the
            function and returns None; anything else is returned instead. Without wait= the last two do not wait.
        A generator holds the lock from its first anext() to its aclose(). Raises what `async with client.lock(...)`
        raises.
        """
        from ._guard import OnBusy, async_guard

        busy = OnBusy(on_busy)
        if not busy.raises:
            options.setdefault("wait", 0)
        Lock(self, b"guard", options, "guard", None, cancel_on_lost)  # refuses wrong options now
        def lock(name: Resource) -> Any:
            return self._lock_type(self, name, options, "guard", None, cancel_on_lost)

        return async_guard(lock, resource, busy)

    async def status(self, resource: Resource) -> Report:
        """Asks every node who holds the resource, without touching it. Raises NoQuorum if too few answer."""
        loop = self._bind()
        lock = Lock(self, resource, {}, "status", None, False)
        return self._report(lock, await self._run(loop, lock._handle, lock._tag, lib.REDLOCK_INSPECT, 0))

    async def check(self) -> Dict[str, Any]:
        """Asks every node, then describes the client as `redlock doctor --json` does.

        "voting" says how many nodes may vote, and each of "nodes" has "votes", "why" not, and an "advice". Waits for up
        to connect_timeout.
        """
        loop = self._bind()
        lock = Lock(self, "check", {}, "check", None, False)
        await self._run(loop, lock._handle, lock._tag, lib.REDLOCK_INSPECT, 0)
        return self.describe()

    async def close(self) -> None:
        """Ends the client: whoever waits gets Cancelled, held locks are released; takes at most exit_drain seconds."""
        self._cancel_all()
        handle = self._closed_handle()
        if handle:
            await asyncio.get_running_loop().run_in_executor(None, lib.redlock_client_free, handle)

    async def __aenter__(self: AnyClient) -> AnyClient:
        """The client itself."""
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Closes the client."""
        await self.close()

    def _end_of(self, loop: asyncio.AbstractEventLoop, handle: Any, tag: int) -> asyncio.Future[int]:
        """The status at the end of an operation that was started; whoever awaits it no longer takes it out."""
        ended: asyncio.Future[int] = loop.create_future()
        self._pending[tag] = ended, handle
        return ended

    async def _run(self, loop: asyncio.AbstractEventLoop, handle: Any, tag: int, operation: int, argument: int) -> int:
        """Starts an operation and awaits its end: its status."""
        status: int = _start(handle, operation if self._pending else operation | AT_ONCE, argument)
        if status != OK:
            return status
        try:
            return await self._end_of(loop, handle, tag)
        except BaseException:
            self._pending.pop(tag, None)
            _cancel(handle)
            self._process()
            raise

    def _current(self) -> int:
        return id(asyncio.current_task())

    # ---- the event loop ---------------------------------------------------------------------------------------------

    def _bind(self) -> asyncio.AbstractEventLoop:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError("libredlock.aio needs a running asyncio event loop (trio has none)") from None
        if loop is not self._loop:
            self._rebind(loop)
        return loop

    def _rebind(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not None:
            if self._loop.is_closed():
                self._bury()
            elif self._holds or self._pending or self._sleepers:
                raise RuntimeError(f"the client has locks held or pending on {self._loop!r}; it was used on {loop!r}")
            self._forget_loop()
        handle = self._opened()
        descriptors = lib.redlock_client_fd(handle), lib.redlock_client_event_fd(handle)
        if min(descriptors) < 0:
            raise error(-min(descriptors), "")
        reference: ref[Client] = ref(self)
        loop.add_reader(descriptors[0], _on_readable, reference)
        loop.add_reader(descriptors[1], _on_event, reference)
        self._loop, self._descriptors = loop, descriptors

    def _bury(self) -> None:
        """Nobody can release what tasks of a closed loop hold, or wait for what they have started."""
        for _, handle in self._pending.values():
            _cancel(handle)
        for handle in self._holds.values():
            if _state(handle) == HELD and _start(handle, RELEASE | AT_ONCE, 0) == OK:
                _cancel(handle)
        if self._holds:
            import warnings

            words = f"{len(self._holds)} locks were held on {self._loop!r}, which is closed; they are released"
            warnings.warn(words, ResourceWarning, source=self, stacklevel=5)
        self._forget_tasks()

    def _forget_tasks(self) -> None:
        self._era = object()
        self._holds, self._pending, self._sleepers, self._watched = {}, {}, set(), {}

    def _forget_loop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is None or loop.is_closed():
            return
        for descriptor in self._descriptors:
            if loop.is_running() and loop is not _running_loop():
                loop.call_soon_threadsafe(loop.remove_reader, descriptor)
            else:
                loop.remove_reader(descriptor)

    def _cancel_all(self) -> None:
        self._is_open = False
        pending, self._pending = self._pending, {}
        for ended, handle in pending.values():
            _cancel(handle)
            _settle(ended, lib.REDLOCK_CANCELLED)
        for ticket in list(self._sleepers):
            if ticket.wake is not None:
                ticket.wake()

    def _closed_handle(self) -> Any:
        self._forget_loop()
        return super()._closed_handle()

    def _forked(self) -> None:
        self._loop = None  # the parent's: its selector is shared, so nothing is taken out of it
        super()._forked()
        self._forget_tasks()


def _cancelling(task: Optional[asyncio.Task[Any]]) -> int:
    """How often the task was asked to cancel; 0 where Python does not count it."""
    if sys.version_info >= (3, 11):
        return task.cancelling() if task is not None else 0
    return 0


def _settle(future: asyncio.Future[Any], result: object) -> None:
    if not future.done() and not future.get_loop().is_closed():
        future.set_result(result)


def _on_readable(reference: ref[Client]) -> None:
    """Called by the loop: lets the core work, and wakes the tasks whose operation ended."""
    client = reference()
    if client is None:
        return
    handle, found_tag, pending = client._handle, client._tag, client._pending
    found = _advance(handle, found_tag)
    while found == 1:
        tag = found_tag[0]
        if tag in pending:
            ended, lock = pending[tag]
            status = _status(lock)
            if status != PENDING:
                del pending[tag]
                if not ended.done():
                    ended.set_result(status)
        if tag in client._watched:
            watched = client._watched[tag]()
            if watched is not None:
                watched._tell_if_lost()
        found = _next(handle, found_tag)


def _on_event(reference: ref[Client]) -> None:
    client = reference()
    if client is not None:
        client._tell()

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
from types import TracebackType
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Literal,
    Mapping,
    Optional,
    Set,
    Tuple,
    Type,
    TypeVar,
    Union,
    overload,
)
from weakref import ref

from ._base import ClientBase, Report
from ._binding import Binding, call_in, in_thread, need_loop, running_loop, settle, start_thread
from ._core import lib
from ._errors import Cancelled, Closed, Holder, RedlockError
from ._facts import ADOPTED
from ._line import AT_ONCE, LOOK_AGAIN_S, WARN_AFTER_MS
from ._lock import HOLDER_LIMIT_MS, LockBase, note_loss
from ._native import held_by
from ._options import BY_OPTION, ttl_ms, wait_ms
from ._process import generation
from ._queue import LEAVING, Ticket, first, leave
from .types import AsyncDecorator, AsyncDecoratorOr, ClientOptions, LockOptions, Named, Resource, Seconds, Unpack

T = TypeVar("T")
AnyLock = TypeVar("AnyLock", bound="Lock")
AnyClient = TypeVar("AnyClient", bound="Client")

__all__ = ["Client", "Lock"]

CANCEL_MESSAGE = "libredlock: the lock was lost"
OK = lib.REDLOCK_OK
BUSY = lib.REDLOCK_BUSY
ACQUIRE = lib.REDLOCK_ACQUIRE
EXTEND = lib.REDLOCK_EXTEND
RELEASE = lib.REDLOCK_RELEASE
_start = lib.redlock_lock_start
_set = lib.redlock_lock_set
_cancel = lib.redlock_lock_cancel
_state = lib.redlock_lock_state
now_ms = lib.now_ms


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

    async def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> bool:
        """Takes the lock: True, or False if others hold it at the end of the wait.

        timeout: seconds to wait for other tasks and for the nodes together; -1 means the option `wait`.
        Raises NoQuorum, RefusedConfig or TimedOut if the nodes gave no verdict, Cancelled if the client was closed.
        The lock is not renewed, unless the option renew=True says so: see `remaining` and extend().
        """
        limit_ms = BY_OPTION if blocking is True and timeout == -1 else wait_ms(blocking, timeout)
        if self._renews:
            self._unscoped()
        ticket = Ticket()
        try:
            status = await self._take(ticket, limit_ms)
            if status == OK:
                return True
            if status != BUSY:
                raise self._error(status)
            self._leave(ticket)
            return False
        except BaseException:
            self._abandon(ticket)
            raise

    async def release(self) -> None:
        """Gives the lock up; nodes that do not answer are cleaned up later and are no error.

        Raises NotHeld if it was never taken, Lost if it had expired or a majority of the nodes no longer had it (the
        deletes are sent all the same), Forked in a child of the process that holds it.
        """
        client = self._client
        binding = client._binding
        if binding is None or binding.loop is not running_loop():
            binding = client._bind()
        ticket = self._held_ticket(True)
        ticket.owner = LEAVING
        if self._tag in client._watched:
            self._unwatch()
        try:
            if self._extensions:  # by another task
                await self._end_of_extensions()
            status = await client._begin(self, binding.loop, RELEASE, 0)
            if status != OK:
                self._judge_release(status)
            self._leave(ticket)
        except BaseException:
            client._pending.pop(self._tag, None)
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
        self._held_ticket(False)
        ticket = Ticket()
        try:
            await self._wait_for_extensions(ticket)
            self._held_ticket(False)
            status = await self._client._run(self, EXTEND, argument)
        finally:
            leave(self._extensions, ticket)
        if status != OK:
            raise self._extend_error(status, ttl)
        return self.remaining

    def detach(self) -> str:
        """Hands the lock over: returns its token for Client.adopt() and forgets it. Local, no I/O."""
        return self._detach()

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
                    raise await self._refused(ticket, status)
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
        if self._generation != generation():
            self._forked()
        binding = client._binding
        if binding is None or binding.loop is not running_loop():
            binding = client._bind()
        line = self._line
        ticket.binding = binding
        ticket.task = asyncio.current_task()
        binding.tickets[ticket] = ref(self)
        line.append(ticket)
        if binding.timer is None:
            binding.timer = binding.loop.call_later(WARN_AFTER_MS / 1000, binding.watch_waits)
        if line[0] is not ticket:
            left_ms = await self._queue(ticket, limit_ms)
            if left_ms is None:
                return int(BUSY)
            limit_ms = left_ms
        status = await client._begin(self, binding.loop, ACQUIRE, limit_ms)
        if status == OK:
            ticket.owner = ticket.task
            if self._on_lost is not None:
                self._watch()
        return status

    async def _refused(self, ticket: Ticket, status: int) -> RedlockError:
        """Why a block is not entered. Whoever is next in the line need not wait for the holder's name."""
        failure = self._error(status, self._why_queued(ticket))
        if self._is_unnamed(failure):
            self._leave(ticket)
            failure.held_by = await self._ask_who_holds()  # type: ignore[attr-defined]
        return failure

    async def _ask_who_holds(self) -> Optional[Holder]:
        try:
            lock = Lock(self._client, self._resource, {}, "status", None, False)
        except Closed:
            return None
        try:
            await asyncio.wait_for(self._client._run(lock, lib.REDLOCK_INSPECT, 0), HOLDER_LIMIT_MS / 1000)
        except asyncio.TimeoutError:
            pass
        return held_by(lock._handle)

    async def _queue(self, ticket: Ticket, limit_ms: int) -> Optional[int]:
        """Waits for the others in the line: what is left of the wait in ms, None if nothing is."""
        if self._is_first(ticket):
            return limit_ms
        if limit_ms == BY_OPTION:
            limit_ms = self._wait_option_ms()
        if limit_ms == 0:
            return None
        begin_ms = now_ms()
        while not self._is_first(ticket):
            left_s = min(LOOK_AGAIN_S, self._until_expiry())
            if limit_ms >= 0:
                left_s = min(left_s, (begin_ms + limit_ms - now_ms()) / 1000)
            if left_s <= 0:
                return None
            await self._sleep(ticket, left_s)
            if self._client.closed or ticket not in ticket.binding.tickets:
                name = self._resource
                raise Cancelled(f"the client was closed while {name!r} was waited for", resource=name)
        return limit_ms if limit_ms < 0 else max(0, limit_ms - (now_ms() - begin_ms))

    def _is_first(self, ticket: Ticket) -> bool:
        binding = getattr(first(self._line), "binding", None)
        if binding is not None and binding.loop.is_closed():
            self._client._unbind(binding)
        return super()._is_first(ticket)

    async def _sleep(self, ticket: Ticket, limit_s: float) -> None:
        """Until the ticket is woken, by whichever loop."""
        loop = ticket.binding.loop
        turn: asyncio.Future[None] = loop.create_future()
        ticket.wake = lambda: settle(turn, None)
        timer = loop.call_later(limit_s, ticket.wake)
        self._client._sleepers.add(ticket)
        try:
            await turn
        finally:
            self._client._sleepers.discard(ticket)
            timer.cancel()

    async def _wait_for_extensions(self, ticket: Ticket) -> None:
        """One task at a time extends, and a release waits for it. The caller has to leave the line."""
        line = self._extensions
        ticket.binding = self._client._bind()
        line.append(ticket)
        while line[0] is not ticket:
            if line[0].binding.loop.is_closed():
                leave(line, line[0])
            else:
                await self._sleep(ticket, LOOK_AGAIN_S)

    async def _end_of_extensions(self) -> None:
        ticket = Ticket()
        try:
            await self._wait_for_extensions(ticket)
        finally:
            leave(self._extensions, ticket)

    def _leave(self, ticket: Ticket) -> None:
        binding = getattr(ticket, "binding", None)
        if binding is not None:
            binding.tickets.pop(ticket, None)
        leave(self._line, ticket)

    def _abandon(self, ticket: Ticket) -> None:
        if first(self._line) is ticket:
            self._client._pending.pop(self._tag, None)
        super()._abandon(ticket)

    def _adopt(self, token: str) -> Ticket:
        ticket = super()._adopt(token)
        ticket.binding = None if running_loop() is None else self._client._bind()
        if ticket.binding is not None:
            ticket.binding.tickets[ticket] = ref(self)
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
        """In the event loop of whoever holds it."""
        if not self.lost:
            return
        holding, body = self._holding(), self._body
        binding = getattr(holding, "binding", None)
        loop = body.get_loop() if body is not None else binding.loop if binding is not None else None
        if loop is not None and loop is not running_loop() and not loop.is_closed():
            call_in(loop, self._tell_if_lost)
            return
        if body is not None and not self._has_cancelled:
            self._has_cancelled = True
            body.cancel(CANCEL_MESSAGE)
        super()._tell_if_lost()

    def _call_on_lost(self, on_lost: Callable[[Any], object]) -> None:
        result = on_lost(self)
        if asyncio.iscoroutine(result):
            task = asyncio.get_running_loop().create_task(self._await_on_lost(result))
            self._client._tasks.add(task)
            task.add_done_callback(self._client._tasks.discard)

    async def _await_on_lost(self, result: Any) -> None:
        try:
            await result
        except Exception:
            self._log_on_lost()

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
        for ticket in getattr(self, "_line", ()):
            if getattr(ticket, "binding", None) is not None:
                ticket.binding.tickets.pop(ticket, None)
        super().__del__()


class Client(ClientBase):
    """A set of nodes, shared by any number of tasks; `async with Client() as client:` closes it at the end.

    nodes: URLs, or one str of URLs separated by commas; None takes them from the environment variable REDLOCK_NODES.
        `redis://[user:password@]host[:port][/database]`, `rediss://...` or `unix://[user:password@]/path[?db=n]`
    options: the defaults of all its locks, and the client's own (docs/options.md); durations are seconds or
        timedelta. `wait` is None: for ever.

    Opening never blocks. Any number of event loops may use the client and its locks, one after another or at the same
    time in several threads. Raises InvalidOption or TypeError.
    """

    _lock_type: Any = Lock  # of lock(), adopt() and with_lock(); libredlock.otel has another one

    def __init__(self, nodes: Union[None, str, Iterable[str]] = None, **options: Unpack[ClientOptions]) -> None:
        self._tags = itertools.count(1)
        self._bindings: Dict[asyncio.AbstractEventLoop, Binding] = {}
        self._binding: Optional[Binding] = None  # the one that was used last
        self._pending: Dict[int, Tuple[asyncio.Future[int], Lock]] = {}
        self._sleepers: Set[Ticket] = set()
        self._tasks: Set[asyncio.Task[None]] = set()
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
    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: Literal["raise"] = "raise",
        on_lost: Optional[Callable[[Lock], object]] = None,
        cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> AsyncDecorator: ...

    @overload
    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: Literal["skip"],
        on_lost: Optional[Callable[[Lock], object]] = None,
        cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> AsyncDecoratorOr[None]: ...

    @overload
    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: T,
        on_lost: Optional[Callable[[Lock], object]] = None,
        cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> AsyncDecoratorOr[T]: ...

    def with_lock(
        self,
        resource: Named,
        *,
        on_busy: Any = "raise",
        on_lost: Optional[Callable[[Lock], object]] = None,
        cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> Any:
        """Decorates an async function, method or generator: it runs while the lock is held and renewed.

        resource: a text with names of the arguments in braces, "report:{user_id}", or a function of the same
            arguments that returns the resource. Names are checked when the function is decorated; None or '' as a
            value is a ValueError at the call.
        on_busy: "raise" raises Busy when others hold the lock at the end of the wait; "skip" does not run the
            function and returns None; anything else is returned instead. Without wait= the last two do not wait.
        on_lost, cancel_on_lost: as for lock().
        A generator holds the lock from its first anext() to its aclose(). Raises what `async with client.lock(...)`
        raises.
        """
        from ._decorator import AsyncDecorator

        def lock(name: Resource) -> Any:
            return self._lock_type(self, name, options, "with_lock", on_lost, cancel_on_lost)

        return AsyncDecorator(lock, resource, on_busy, options)  # type: ignore[arg-type]

    async def status(self, resource: Resource) -> Report:
        """Asks every node who holds the resource, without touching it. Raises NoQuorum if too few answer."""
        lock = Lock(self, resource, {}, "status", None, False)
        return self._report(lock, await self._run(lock, lib.REDLOCK_INSPECT, 0))

    async def check(self) -> Dict[str, Any]:
        """Asks every node, then describes the client as `redlock doctor --json` does.

        "voting" says how many nodes may vote, and each of "nodes" has "votes", "why" not, and an "advice". Waits for up
        to connect_timeout.
        """
        lock = Lock(self, "check", {}, "check", None, False)
        await self._run(lock, lib.REDLOCK_INSPECT, 0)
        return self.describe()

    async def bootstrap(
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
        lock = Lock(self, "bootstrap", {}, "bootstrap", None, False)  # keeps the core's client if this one is closed
        handle, nodes = self._opened(), list(self._nodes)

        def run() -> List[Dict[str, Any]]:
            with self._bootstrapping:
                return bootstrap(handle, nodes, mode)

        told: List[Dict[str, Any]] = await in_thread(run)
        del lock
        return told

    async def close(self) -> None:
        """Ends the client: whoever waits gets Cancelled, held locks are released; takes at most exit_drain seconds."""
        try:
            self._tell_the_last()
        finally:
            self._cancel_all()
            handle = self._take_handle()
        if handle and running_loop() is not None:
            await in_thread(lambda: lib.redlock_client_free(handle))
        else:
            lib.redlock_client_free(handle)

    async def __aenter__(self: AnyClient) -> AnyClient:
        """The client itself."""
        need_loop()
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Closes the client."""
        await self.close()

    def _begin(
        self, lock: Lock, loop: asyncio.AbstractEventLoop, operation: int, argument: int
    ) -> asyncio.Future[int]:
        """Starts an operation: the status at its end. Whoever awaits it no longer takes it out of those pending."""
        pending, tag = self._pending, lock._tag
        if not pending:  # what is alone gains nothing by leaving with others in the loop's next turn
            operation |= AT_ONCE
        ended: asyncio.Future[int] = loop.create_future()
        pending[tag] = ended, lock  # before its end, which another loop may find
        status = _start(lock._handle, operation, argument)
        if status != OK:
            del pending[tag]
            ended.set_result(status)
        return ended

    async def _run(self, lock: Lock, operation: int, argument: int) -> int:
        """Starts an operation and awaits its end: its status."""
        try:
            return await self._begin(lock, self._bind().loop, operation, argument)
        except BaseException:
            self._pending.pop(lock._tag, None)
            _cancel(lock._handle)
            self._process()
            raise

    def _current(self) -> object:
        loop = running_loop()
        return None if loop is None else asyncio.current_task(loop)

    # ---- event loops ------------------------------------------------------------------------------------------------

    def _bind(self) -> Binding:
        """What it has in the running event loop."""
        binding, loop = self._binding, running_loop()
        if binding is not None and binding.loop is loop:
            return binding
        loop = need_loop()
        binding = self._bindings.get(loop)
        if binding is None:
            with self._mutex:
                for other in list(self._bindings.values()):
                    if other.loop.is_closed():
                        self._unbind(other)
                binding = self._bindings[loop] = Binding(self, loop)
        self._binding = binding
        return binding

    def _unbind(self, binding: Binding) -> None:
        """The event loop ends: nobody can release what its tasks hold, or wait for what they have started."""
        with self._mutex:
            if self._bindings.pop(binding.loop, None) is None:
                return
            if self._binding is binding:
                self._binding = None
            binding.stop()
            for tag, (ended, _) in list(self._pending.items()):
                if ended.get_loop() is binding.loop and self._pending.pop(tag, None) is not None:
                    settle(ended, lib.REDLOCK_CANCELLED)
            count = binding.release_all()
        if count:
            import warnings

            words = f"{count} locks were held by tasks of {binding.loop!r} when it ended; they are released"
            warnings.warn(words, ResourceWarning, source=self, stacklevel=2)

    def _cancel_all(self) -> None:
        with self._mutex:
            self._is_open = False
            while self._pending:
                _, (ended, lock) = self._pending.popitem()
                _cancel(lock._handle)
                settle(ended, lib.REDLOCK_CANCELLED)
            for ticket in list(self._sleepers):
                ticket.wake()

    def _take_handle(self) -> Any:
        with self._mutex:
            for binding in self._bindings.values():
                binding.stop()
            self._bindings, self._binding = {}, None
            return super()._take_handle()

    def _forked(self) -> None:
        super()._forked()  # the selectors of the parent's loops are shared, so nothing is taken out of them
        self._bindings, self._binding, self._pending, self._sleepers = {}, None, {}, set()

    def __del__(self) -> None:
        if not self._handle:
            return
        if self._bindings:
            import warnings

            warnings.warn(f"{self!r} was collected without close()", ResourceWarning, source=self)
        if running_loop() is None:
            super().__del__()
        else:  # which must not stand still
            handle = self._take_handle()
            start_thread(lambda: lib.redlock_client_free(handle))


def _cancelling(task: Optional[asyncio.Task[Any]]) -> int:
    """How often the task was asked to cancel; 0 where Python does not count it."""
    if sys.version_info >= (3, 11):
        return task.cancelling() if task is not None else 0
    return 0

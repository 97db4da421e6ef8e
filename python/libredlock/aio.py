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
from collections import deque
from types import TracebackType
from typing import (
    Any,
    Callable,
    Deque,
    Dict,
    Iterable,
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

from ._base import ADOPTED, HELD, ClientBase, LockBase, Report, note_loss, report
from ._client import BUSY, BY_OPTION, OK, PENDING, Named, wait_ms_of
from ._core import ffi, lib
from ._errors import Cancelled, RedlockError, error
from ._native import text, votes
from ._options import LOCK_KEYWORDS, ttl_ms
from ._process import here
from .types import AsyncGuard, AsyncGuardOr, ClientOptions, LockOptions, Resource, Seconds, Unpack

T = TypeVar("T")
AnyLock = TypeVar("AnyLock", bound="Lock")
AnyClient = TypeVar("AnyClient", bound="Client")

__all__ = ["Client", "Lock"]

CANCEL_MESSAGE = "libredlock: the lock was lost"
_start = lib.redlock_lock_start
_status = lib.redlock_lock_status
_cancel = lib.redlock_lock_cancel
_state = lib.redlock_lock_state
_process = lib.redlock_client_process
_advance = lib.redlock_client_advance
AT_ONCE = lib.REDLOCK_AT_ONCE
_next = lib.redlock_client_next


class Gate:
    """The queue in memory of the tasks that share one Lock; see _gate.Gate for the words."""

    __slots__ = ("owner", "holder", "_queue")

    def __init__(self) -> None:
        self.owner: Optional[object] = None
        self.holder: Optional[object] = None
        self._queue: Deque[Tuple[object, asyncio.Future[bool]]] = deque()

    def enter(self, visit: object) -> bool:
        if self.owner is None:
            self.owner = visit
        return self.owner is visit

    async def queue(self, visit: object, client: Client, timeout: Optional[float]) -> bool:
        """Waits for up to timeout seconds (None: for ever): True if let in."""
        loop = client._bind()
        turn: asyncio.Future[bool] = loop.create_future()
        timer = None if timeout is None else loop.call_later(timeout, _settle, turn, False)
        self._queue.append((visit, turn))
        client._turns.add(turn)
        try:
            return await turn
        finally:
            client._turns.discard(turn)
            if timer is not None:
                timer.cancel()

    def leave(self, visit: object) -> None:
        if self.owner is not visit:
            for waiter in self._queue:
                if waiter[0] is visit:
                    self._queue.remove(waiter)
                    return
            return
        self.owner = self.holder = None
        while self._queue:
            following, turn = self._queue.popleft()
            if not turn.done():
                self.owner = following
                turn.set_result(True)
                return


class Lock(LockBase):
    """A lock on one resource, made by Client.lock(); use it as an asyncio.Lock, or as `async with lock:`.

    Tasks may share it: they queue in memory, first come, first served. Only release() lets the next one in, also
    after the lock was lost. Cancelling a task that waits leaves no key. Errors are subclasses of RedlockError.
    """

    __slots__ = ("_gate", "_busy_with", "_tag", "_cancel_on_lost", "_body", "_cancellations", "_has_cancelled")

    _client: Client
    _keywords = LOCK_KEYWORDS | {"cancel_on_lost"}

    def __init__(
        self, client: Client, resource: Resource, options: Mapping[str, Any], function: str, cancel_on_lost: bool
    ) -> None:
        self._gate = Gate()
        super().__init__(client, resource, options, function)
        if not isinstance(cancel_on_lost, bool):
            raise TypeError(f"cancel_on_lost={cancel_on_lost!r}: takes True or False")
        self._cancel_on_lost = cancel_on_lost
        self._body: Optional[asyncio.Task[Any]] = None
        self._busy_with: Optional[asyncio.Lock] = None
        self._has_cancelled = False
        self._tag = next(client._tags)
        lib.redlock_lock_set_tag(self._handle, self._tag)

    async def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> bool:
        """Takes the lock: True, or False if others hold it at the end of the wait.

        timeout: seconds to wait for other tasks and for the nodes together; -1 means the option `wait`.
        Raises NoQuorum, RefusedConfig or TimedOut if the nodes gave no verdict, Cancelled if the client was closed.
        The lock is not renewed, unless the option renew=True says so: see `remaining` and extend().
        """
        wait_ms = BY_OPTION if blocking and timeout == -1 else wait_ms_of(blocking, timeout)
        if self._renews:
            self._unscoped()
        visit = object()
        try:
            status = await self._enter(visit, wait_ms)
            if status != OK and status != BUSY:
                raise self._error(status)
            if status == BUSY:
                self._gate.leave(visit)
            return bool(status == OK)
        except BaseException:
            self._abandon(visit)
            raise

    async def release(self) -> None:
        """Gives the lock up; nodes that do not answer are cleaned up later and are no error.

        Raises NotHeld if it was never taken, Lost if it had lapsed (the deletes are sent all the same), Forked in a
        child of the process that holds it.
        """
        gate = self._gate_now()
        visit, gate.holder = gate.holder, None
        if visit is None:
            raise self._not_held(self._state_between_holds())
        client = self._client
        client._held -= 1
        try:
            if self._busy_with is None:
                status = await client._run(self._handle, self._tag, lib.REDLOCK_RELEASE, 0)
            else:
                async with self._busy_with:  # an extension by another task ends first
                    status = await client._run(self._handle, self._tag, lib.REDLOCK_RELEASE, 0)
            if status != OK:
                self._judge_release(status)
        finally:
            if _state(self._handle) == HELD:
                self._send_release()
            gate.leave(visit)

    async def extend(self, ttl: Optional[Seconds] = None) -> None:
        """Prolongs the lock to `ttl` seconds from now (None: the option); it never shortens a lease.

        Raises Lost if it is gone, for good; NoQuorum if a majority did not confirm (it stays held for `remaining`);
        Limit if max_extensions or max_hold is used up; NotHeld if it was never taken.
        """
        argument = ttl_ms(ttl)
        if self._gate_now().holder is None:
            raise self._not_held(self._state_between_holds())
        self._client._bind()
        if self._busy_with is None:
            self._busy_with = asyncio.Lock()
        async with self._busy_with:
            if self._gate.holder is None:
                raise self._not_held(self._state_between_holds())
            status = await self._client._run(self._handle, self._tag, lib.REDLOCK_EXTEND, argument)
            if status != OK:
                raise self._error(status)

    def locked(self) -> bool:
        """True from acquire() to release(), as asyncio.Lock.locked(); owned() says whether the lease still runs."""
        return self._gate_now().holder is not None

    def detach(self) -> str:
        """Hands the lock over: returns its token for Client.adopt() and forgets it. Local, no I/O."""
        gate = self._gate_now()
        token = self._detach()
        visit = gate.holder
        if visit is not None:
            self._client._held -= 1
            gate.leave(visit)
        return token

    async def __aenter__(self: AnyLock) -> AnyLock:
        """Takes the lock, waiting as the option `wait` says; renews it until the end of the block.

        Raises Busy if others hold it at the end of the wait, and what acquire() raises.
        """
        visit = object()
        if not self._renews:
            self._scoped()
        try:
            if _state(self._handle) == ADOPTED:
                await self.extend()
            else:
                status = await self._enter(visit, BY_OPTION)
                if status != OK:
                    raise self._error(status, "" if self._gate.owner is visit else self._busy_here())
            if self._cancel_on_lost:
                self._watch_body()
            return self
        except BaseException:
            self._abandon(visit)
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

    async def _enter(self, visit: object, wait_ms: int) -> int:
        """Through the gate and to the nodes. Unless it is OK the caller has to leave the gate."""
        gate = self._gate_now()
        client = self._client
        if not gate.enter(visit):
            left_ms = await self._queue(gate, visit, wait_ms)
            if left_ms is None:
                return int(BUSY)
            wait_ms = left_ms
        status = await client._run(self._handle, self._tag, lib.REDLOCK_ACQUIRE, wait_ms)
        if status == OK:
            gate.holder = visit
            client._held += 1
            self._busy_with = None
        return status

    async def _queue(self, gate: Gate, visit: object, wait_ms: int) -> Optional[int]:
        """Waits for the other tasks: what is left of the wait in ms, None if nothing is."""
        if wait_ms == BY_OPTION:
            wait_ms = int(text(lib.redlock_lock_get, self._handle, b"wait_ms"))
        if wait_ms == 0:
            return None
        loop = self._client._bind()
        start = loop.time()
        let_in = await gate.queue(visit, self._client, wait_ms / 1000 if wait_ms > 0 else None)
        if self._client.closed:
            raise Cancelled(f"the client was closed while {self._resource!r} was waited for", resource=self._resource)
        if not let_in:
            return None
        return wait_ms if wait_ms < 0 else max(0, wait_ms - int((loop.time() - start) * 1000))

    def _busy_here(self) -> str:
        return f"another task of this process holds {self._resource!r}"

    def _abandon(self, visit: object) -> None:
        """Takes back whatever an interrupted call has reached, without waiting for the nodes."""
        gate = self._gate
        if gate.owner is visit:
            if gate.holder is visit:
                self._client._held -= 1
            if _state(self._handle) == HELD:
                self._send_release()
        gate.leave(visit)

    def _send_release(self) -> None:
        """Sends the deletes; a release that is cancelled goes on inside the client."""
        _cancel(self._handle)
        if _start(self._handle, lib.REDLOCK_RELEASE, 0) == OK:
            self._client._process()
            _cancel(self._handle)

    def _adopted(self, token: str) -> Lock:
        self._adopt(token)
        visit = object()
        self._gate.owner = self._gate.holder = visit
        self._client._held += 1
        return self

    def _watch_body(self) -> None:
        self._body = asyncio.current_task()
        self._has_cancelled = False
        self._cancellations = _cancelling(self._body)
        self._client._bodies[self._tag] = self
        self._cancel_if_lost()

    def _cancel_if_lost(self) -> None:
        if self._body is not None and not self._has_cancelled and self.lost:
            self._has_cancelled = True
            self._body.cancel(CANCEL_MESSAGE)

    def _unwatch_body(self, failure: Optional[BaseException]) -> bool:
        """True if the body was cancelled by the loss, and by nobody else."""
        body, self._body = self._body, None
        self._client._bodies.pop(self._tag, None)
        if body is None or not self._has_cancelled:
            return False
        if sys.version_info >= (3, 11):
            is_ours = body.uncancel() <= self._cancellations
        else:
            is_ours = failure is not None and failure.args == (CANCEL_MESSAGE,)
        return is_ours and isinstance(failure, asyncio.CancelledError)

    def _gate_now(self) -> Gate:
        if self._generation != here.generation:
            self._generation = here.generation
            here.arm()
            self._gate = Gate()
            self._busy_with = None
        return self._gate

    def __del__(self) -> None:
        if self._handle and self._generation == here.generation and self._gate.holder is not None:
            self._client._held -= 1
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

    def __init__(self, nodes: Union[None, str, Iterable[str]] = None, **options: Unpack[ClientOptions]) -> None:
        self._tags = itertools.count(1)
        self._tag = ffi.new("uint64_t *")
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._descriptor = -1
        self._held = 0
        self._pending: Dict[int, Tuple[asyncio.Future[int], Any]] = {}
        self._turns: Set[asyncio.Future[bool]] = set()
        self._bodies: Dict[int, Lock] = {}
        super().__init__(nodes, **options)

    def lock(self, resource: Resource, *, cancel_on_lost: bool = False, **options: Unpack[LockOptions]) -> Lock:
        """A lock on a resource (str as UTF-8, or bytes). Nothing is taken yet; no I/O.

        cancel_on_lost: cancels the body of `async with` at the moment at which the lock is lost; the block then
        ends with Lost.
        """
        return Lock(self, resource, options, "lock", cancel_on_lost)

    def adopt(
        self, resource: Resource, token: str, *, cancel_on_lost: bool = False, **options: Unpack[LockOptions]
    ) -> Lock:
        """Takes over a lock that was detached elsewhere. extend() confirms it, and so does `async with`; no I/O here.

        That nobody else held it in between is not promised.
        """
        return Lock(self, resource, options, "adopt", cancel_on_lost)._adopted(token)

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
        Lock(self, b"guard", options, "guard", cancel_on_lost)  # refuses wrong options now
        return async_guard(lambda name: Lock(self, name, options, "guard", cancel_on_lost), resource, busy)

    async def status(self, resource: Resource) -> Report:
        """Asks every node who holds the resource, without touching it. Raises NoQuorum if too few answer."""
        handle = self._new_handle(resource)
        tag = next(self._tags)
        lib.redlock_lock_set_tag(handle, tag)
        try:
            status = await self._run(handle, tag, lib.REDLOCK_INSPECT, 0)
            answers = votes(handle, list(self._nodes))
            if status not in (OK, BUSY):
                raise error(status, text(lib.redlock_lock_message, handle), resource, answers)
            return report(resource, answers)
        finally:
            lib.redlock_lock_free(handle)

    async def close(self) -> None:
        """Ends the client: whoever waits gets Cancelled, held locks are released; takes at most exit_drain seconds."""
        self._cancel_all()
        handle = self._closed()
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

    async def _run(self, handle: Any, tag: int, operation: int, argument: int) -> int:
        """Starts an operation and awaits its end: its status."""
        loop = self._bind()
        # what is alone gains nothing by leaving with others in the loop's next turn
        status: int = _start(handle, operation if self._pending else operation | AT_ONCE, argument)
        if status != OK:
            return status
        ended: asyncio.Future[int] = loop.create_future()
        self._pending[tag] = ended, handle
        try:
            return await ended
        except BaseException:
            _cancel(handle)
            self._process()
            raise
        finally:
            self._pending.pop(tag, None)

    def _bind(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._rebind(loop)
        return loop

    def _rebind(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not None:
            if self._held or self._pending or self._turns:
                raise RuntimeError(f"the client has locks held or pending on {self._loop!r}; it was used on {loop!r}")
            self._forget_loop()
        descriptor = lib.redlock_client_fd(self._opened())
        if descriptor < 0:
            raise error(-descriptor, "")
        reference: ref[Client] = ref(self)
        loop.add_reader(descriptor, _on_readable, reference)
        self._loop, self._descriptor = loop, descriptor

    def _forget_loop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is None or loop.is_closed():
            return
        if loop.is_running() and loop is not _running_loop():
            loop.call_soon_threadsafe(loop.remove_reader, self._descriptor)
        else:
            loop.remove_reader(self._descriptor)

    def _step(self) -> None:
        """Called by the loop: lets the core work, and wakes the tasks whose operation ended."""
        handle, tag = self._handle, self._tag
        found = _advance(handle, tag)
        while found == 1:
            pending = self._pending.get(tag[0])
            if pending is not None:
                status = _status(pending[1])
                if status != PENDING:
                    _settle(pending[0], status)
            body = self._bodies.get(tag[0])
            if body is not None:
                body._cancel_if_lost()
            found = _next(handle, tag)

    def _cancel_all(self) -> None:
        self._is_open = False
        pending, self._pending = self._pending, {}
        for ended, handle in pending.values():
            _cancel(handle)
            _settle(ended, lib.REDLOCK_CANCELLED)
        for turn in list(self._turns):
            _settle(turn, False)

    def _closed(self) -> Any:
        """Takes the handle away from everybody else; the caller frees it."""
        self._forget_loop()
        with self._mutex:
            handle, self._handle, self._is_open = self._handle, ffi.NULL, False
        return handle

    def _leave(self) -> None:
        lib.redlock_client_free(self._closed())

    def _forked(self) -> None:
        self._loop = None  # the parent's: its selector is shared, so nothing is taken out of it
        self._held = 0
        self._pending, self._turns, self._bodies = {}, set(), {}
        super()._forked()


def _cancelling(task: Optional[asyncio.Task[Any]]) -> int:
    """How often the task was asked to cancel; 0 where Python does not count it."""
    if sys.version_info >= (3, 11):
        return task.cancelling() if task is not None else 0
    return 0


def _settle(future: asyncio.Future[Any], result: object) -> None:
    if not future.done() and not future.get_loop().is_closed():
        future.set_result(result)


def _running_loop() -> Optional[asyncio.AbstractEventLoop]:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _on_readable(reference: ref[Client]) -> None:
    client = reference()
    if client is not None:
        client._step()

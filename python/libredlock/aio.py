"""The asyncio surface: the same names as the synchronous one, with await and async with.

    async with libredlock.aio.Client(["redis://a", "redis://b", "redis://c"]) as client:
        async with client.lock("orders:42", ttl=10, cancel_on_lost=True):
            ...

Any number of tasks share a client; the event loop watches its one descriptor, and no thread is started for an
operation. Works on asyncio and uvloop.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Awaitable, Callable, Iterable, Literal, Optional, TypeVar, Union, overload
from weakref import ref

from ._base import ClientBase, Report
from ._binding import Binding, in_thread, need_loop, running_loop, settle, start_thread
from ._core import ffi, lib
from ._election import options_of
from ._errors import Busy
from ._hold import AT_ONCE, OK
from ._listing import Listing
from ._lock import shared
from ._options import list_ms, with_permits
from ._signature import name_options
from ._task_lock import Election, Hold, Lock, RLock, Seat, Term
from .types import (
    AsyncDecorator,
    AsyncDecoratorOr,
    AsyncDecoratorWithHold,
    ClientOptions,
    LockOptions,
    Named,
    Resource,
    Resources,
    Seconds,
    Unpack,
    WithLockOptions,
)

T = TypeVar("T")
OnLost = Optional[Callable[[Hold], object]]
AnyClient = TypeVar("AnyClient", bound="Client")

__all__ = ["Client", "Election", "Hold", "Lock", "RLock", "Term"]

_start = lib.start_operation

for _made in (Election, Hold, Lock, RLock, Term):
    _made.__module__ = __name__  # as users import them


class Client(ClientBase):
    """A set of nodes, shared by any number of tasks; `async with Client() as client:` closes it at the end.

    nodes: URLs, or one str of URLs separated by commas; None takes them from the environment variable REDLOCK_NODES.
        `redis://[user:password@]host[:port][/database]`, `rediss://...` or `unix://[user:password@]/path[?db=n]`
    options: the defaults of all its locks, and the client's own (docs/options.md); durations are seconds or
        timedelta. `wait` is None: for ever.

    Opening never blocks. Any number of event loops may use the client and its locks, one after another or at the same
    time in several threads. Raises InvalidOption or TypeError.
    """

    # of lock(), adopt() and with_lock(), of rlock() and of election(); libredlock.otel has others
    _lock_type: type[Lock] = Lock
    _rlock_type: type[RLock] = RLock
    _seat_type: Any = Seat
    _in_memory = "AsyncMemoryClient"
    _listens = True

    def __init__(self, nodes: Union[None, str, Iterable[str]] = None, **options: Unpack[ClientOptions]) -> None:
        self._bindings: dict[asyncio.AbstractEventLoop, Binding] = {}
        self._binding: Optional[Binding] = None  # the one that was used last
        self._pending: dict[int, tuple[asyncio.Future[int], Hold]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        super().__init__(nodes, **options)

    def lock(
        self, resource: Resources, *, on_lost: OnLost = None, cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> Lock:
        return self._lock_type(self, resource, options, "lock", on_lost, cancel_on_lost)

    def rlock(
        self, resource: Resource, *, on_lost: OnLost = None, cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> RLock:
        kind: Any = self._rlock_type
        return shared(self, kind, resource, options, on_lost, cancel_on_lost)  # type: ignore[no-any-return]

    def semaphore(
        self, resource: Resource, count: Optional[int] = None, /, *, on_lost: OnLost = None,
        cancel_on_lost: bool = False, **options: Unpack[LockOptions],
    ) -> Lock:
        return self._lock_type(self, resource, with_permits(count, options), "semaphore", on_lost, cancel_on_lost)

    def election(
        self, resource: Resource, *, on_lost: OnLost = None, cancel_on_lost: bool = True, **options: Unpack[LockOptions]
    ) -> Election:
        return Election(self._seat_type(self, resource, options_of(options), "election", on_lost, cancel_on_lost))

    def adopt(
        self, resource: Resources, token: str, *, on_lost: OnLost = None, cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> Hold:
        lock = self._lock_type(self, resource, options, "adopt", on_lost, cancel_on_lost)
        hold: Hold = lock._adopt(token)
        hold._belong(None if running_loop() is None else self._bind())
        return hold

    @overload
    def with_lock(
        self, resource: Named, *, hold: str, on_busy: Any = "raise", on_lost: OnLost = None,
        cancel_on_lost: bool = False, **options: Unpack[WithLockOptions],
    ) -> AsyncDecoratorWithHold: ...

    @overload
    def with_lock(
        self, resource: Named, *, on_busy: Literal["raise"] = "raise", on_lost: OnLost = None,
        cancel_on_lost: bool = False, **options: Unpack[WithLockOptions],
    ) -> AsyncDecorator: ...

    @overload
    def with_lock(
        self, resource: Named, *, on_busy: Literal["skip"], on_lost: OnLost = None,
        cancel_on_lost: bool = False, **options: Unpack[WithLockOptions],
    ) -> AsyncDecoratorOr[None]: ...

    @overload
    def with_lock(
        self, resource: Named, *, on_busy: Callable[[Busy], Awaitable[T]], on_lost: OnLost = None,
        cancel_on_lost: bool = False, **options: Unpack[WithLockOptions],
    ) -> AsyncDecoratorOr[T]: ...

    @overload
    def with_lock(
        self, resource: Named, *, on_busy: Callable[[Busy], T], on_lost: OnLost = None,
        cancel_on_lost: bool = False, **options: Unpack[WithLockOptions],
    ) -> AsyncDecoratorOr[T]: ...

    @overload
    def with_lock(
        self, resource: Named, *, on_busy: T, on_lost: OnLost = None,
        cancel_on_lost: bool = False, **options: Unpack[WithLockOptions],
    ) -> AsyncDecoratorOr[T]: ...

    def with_lock(
        self, resource: Named, *, on_busy: Any = "raise", hold: Optional[str] = None, reentrant: bool = False,
        keep: Optional[Seconds] = None, on_lost: OnLost = None, cancel_on_lost: bool = False,
        **options: Unpack[LockOptions],
    ) -> Any:
        from ._decorator import AsyncDecorator

        more = {"on_lost": on_lost, "cancel_on_lost": cancel_on_lost}
        return AsyncDecorator(self, resource, on_busy, hold, reentrant, keep, more, options)

    async def status(self, resource: Resources, *, permits: Optional[int] = None, slot: Optional[int] = None) -> Report:
        looks = self._looks(resource, permits, slot)
        return self._reported(resource, looks, await self._ask(lib.REDLOCK_INSPECT, sum(looks, [])))

    async def locks(self, pattern: Resource = "*", *, timeout: Optional[Seconds] = None) -> Listing:
        probe = self._probe(pattern)
        return self._listed(probe, (await self._ask(lib.REDLOCK_LIST, [probe], list_ms(timeout)))[0])

    async def release(
        self, resource: Resources, *, force: bool = False, permits: Optional[int] = None, slot: Optional[int] = None
    ) -> int:
        probe = self._removal(resource, force, permits, slot)
        return self._removed(probe, (await self._ask(lib.REDLOCK_REMOVE, [probe]))[0])

    async def _ask(self, operation: int, probes: list[Any], argument: int = 0) -> list[int]:
        """All at the same time: their statuses."""
        need_loop()
        return await asyncio.gather(*(self._run(probe, operation, argument) for probe in probes))

    async def check(self) -> dict[str, Any]:
        await self._ask(lib.REDLOCK_INSPECT, [self._probe("check")])
        return self.describe()

    async def bootstrap(
        self, *, new: bool = False, yes: bool = False, replace: bool = False, dry: bool = False
    ) -> list[dict[str, Any]]:
        return await in_thread(self._bootstrapper(new, yes, replace, dry))

    async def close(self) -> None:
        try:
            self._tell_the_last()
        finally:
            self._is_open = False
            self._cancel(None)
            handle = self._take_handle()
            for hold in self._watched_holds():
                hold._tell_if_lost()
        if handle and running_loop() is not None:
            await in_thread(lambda: self._drain(handle))
        else:
            self._drain(handle)

    async def __aenter__(self: AnyClient) -> AnyClient:
        """The client itself."""
        need_loop()
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Closes the client."""
        await self.close()

    def _begin(
        self, hold: Hold, loop: asyncio.AbstractEventLoop, operation: int, argument: int, state: int = 0
    ) -> asyncio.Future[int]:
        """Starts an operation: the status at its end, below 0 if it is in another state than that one. Whoever awaits
        it no longer takes it out of those pending."""
        pending, tag = self._pending, id(hold)
        if not pending:  # what is alone gains nothing by leaving with others in the loop's next turn
            operation |= AT_ONCE
        ended: asyncio.Future[int] = loop.create_future()
        mine = ended, hold
        if pending.setdefault(tag, mine) is not mine:  # before it is started: another loop may find its end
            ended.set_result(lib.REDLOCK_IN_FLIGHT)
            return ended
        status = _start(hold._handle, tag, operation, argument, state)
        if not self._is_open:  # another loop closes it, and may have looked for what is pending before
            hold._cancel_of(hold._handle)
            status = lib.REDLOCK_CANCELLED
        if status != OK and pending.pop(tag, None) is not None:
            ended.set_result(status)
        return ended

    async def _run(self, hold: Hold, operation: int, argument: int) -> int:
        """Starts an operation and awaits its end: its status."""
        ended = self._begin(hold, self._bind().loop, operation, argument)
        try:
            return await ended
        except BaseException:
            known = self._pending.get(id(hold))
            if known is not None and known[0] is ended:
                self._pending.pop(id(hold), None)
                hold._cancel_of(hold._handle)
                self._process()
            raise

    def _current(self) -> object:
        loop = running_loop()
        task = None if loop is None else asyncio.current_task(loop)
        return None if task is None else ref(task)

    # ---- event loops ------------------------------------------------------------------------------------------------

    def _bind(self, loop: Optional[asyncio.AbstractEventLoop] = None) -> Binding:
        """What it has in the running event loop. To ask which that is costs a system call up to Python 3.11."""
        binding, loop = self._binding, loop or need_loop()
        if binding is not None and binding.loop is loop:
            return binding
        binding = self._bindings.get(loop)
        if binding is None:
            with self._mutex:
                self._unbind_closed()
                binding = self._bindings[loop] = Binding(self, loop)
        self._binding = binding
        return binding

    def _unbind_closed(self) -> None:
        """Of loops that were closed and told nobody: others may wait for what their tasks hold."""
        for binding in list(self._bindings.values()):
            if binding.loop.is_closed():
                self._unbind(binding)

    def _unbind(self, binding: Binding) -> None:
        """The event loop ends: locks held by its tasks can no longer be released, nor their operations awaited."""
        with self._mutex:
            if self._bindings.pop(binding.loop, None) is None:
                return
            if self._binding is binding:
                self._binding = None
            binding.stop()
            self._cancel(binding.loop)
            taken = binding.take_holds()
            self._process()
        for hold in taken:
            hold._tell_if_lost()
        if taken:
            import warnings

            words = f"{len(taken)} locks were held by tasks of {binding.loop!r} when it ended; they are released"
            warnings.warn(words, ResourceWarning, source=self, stacklevel=2)

    def _cancel(self, loop: Optional[asyncio.AbstractEventLoop]) -> None:
        """What is pending, in one event loop or in all."""
        for tag, (ended, _) in list(self._pending.items()):
            pending = self._pending.pop(tag, None) if loop in (None, ended.get_loop()) else None
            if pending is not None:  # it may be another one of that hold, which a task of another loop has begun since
                ended, hold = pending
                hold._cancel_of(hold._handle)
                settle(ended, lib.REDLOCK_CANCELLED)

    def _take_handle(self) -> Any:
        with self._mutex:
            for binding in self._bindings.values():
                binding.stop()
            self._bindings, self._binding = {}, None
            return super()._take_handle()

    def _forked(self) -> None:
        super()._forked()  # the selectors of the parent's loops are shared, so nothing is taken out of them
        self._bindings, self._binding, self._pending = {}, None, {}

    def __del__(self) -> None:
        if self._handle and self._bindings:
            import warnings

            warnings.warn(f"{self!r} was collected without close()", ResourceWarning, source=self)
        if not self._handle or running_loop() is None:
            super().__del__()
        else:  # which must not stand still
            self._take_handle()
            memory = self._memory
            start_thread(lambda: ffi.release(memory))


name_options(Client)

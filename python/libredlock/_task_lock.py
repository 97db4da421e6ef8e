"""A lock that tasks share: it feels like asyncio.Lock."""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Type, TypeVar
from weakref import ref

from ._binding import call_in, running_loop, settle
from ._core import lib
from ._errors import Cancelled, Closed, Holder, RedlockError
from ._facts import ADOPTED
from ._line import LOOK_AGAIN_S, WARN_AFTER_MS
from ._lock import HOLDER_LIMIT_MS, LockBase, note_loss
from ._native import held_by
from ._options import BY_OPTION, ttl_ms, wait_ms
from ._process import generation
from ._queue import LEAVING, Ticket, first, leave
from .types import Resources, Seconds

if TYPE_CHECKING:
    from .aio import Client

AnyLock = TypeVar("AnyLock", bound="Lock")

CANCEL_MESSAGE = "libredlock: the lock was lost"
OK = lib.REDLOCK_OK
BUSY = lib.REDLOCK_BUSY
ACQUIRE = lib.REDLOCK_ACQUIRE
EXTEND = lib.REDLOCK_EXTEND
RELEASE = lib.REDLOCK_RELEASE
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

    if TYPE_CHECKING:
        _client: Client

    _keywords = LockBase._keywords | {"cancel_on_lost"}
    _sharer = "task"

    def __init__(
        self,
        client: Any,
        resource: Resources,
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
                await self._alone(lambda: None)
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

    async def downgrade(self, ttl: Optional[Seconds] = None) -> float:
        ttl_ms(ttl)  # refuses what is not allowed
        self._held_ticket(False)
        await self._alone(self._share)
        return await self.extend(ttl)

    def detach(self) -> str:
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
        if self._downgraded:
            status = self._take_alone()
            if status != OK:
                return status
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
        """Of several resources, of the first that is held."""
        until_ms = now_ms() + HOLDER_LIMIT_MS
        for name in self._names():
            if now_ms() >= until_ms:
                return None
            try:
                lock = Lock(self._client, name, {}, "status", None, False)
            except Closed:
                return None
            asked, limit_s = self._client._run(lock, lib.REDLOCK_INSPECT, 0), (until_ms - now_ms()) / 1000
            try:
                await asyncio.wait_for(asked, limit_s)
            except asyncio.TimeoutError:
                pass
            holder = held_by(lock._handle)
            if holder is not None:
                return holder
        return None

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

    async def _alone(self, call: Callable[[], None]) -> None:
        """Calls it while no other task extends the lock."""
        turn = Ticket()
        try:
            await self._wait_for_extensions(turn)
            call()
        finally:
            leave(self._extensions, turn)

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
        """True if the body was cancelled by the loss, and by no other cause."""
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


def _cancelling(task: Optional[asyncio.Task[Any]]) -> int:
    """How often the task was asked to cancel; 0 where Python does not count it."""
    if sys.version_info >= (3, 11):
        return task.cancelling() if task is not None else 0
    return 0

"""A lock of tasks: it feels like asyncio.Lock, and its holds can be handed around. And elections:
`async for term in client.election(...): async with term: ...`"""

from __future__ import annotations

import asyncio
import inspect
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, Coroutine, Literal, Optional, TypeVar, Union
from weakref import ref

from ._base import Report
from ._binding import Binding, call_in, need_loop, running_loop
from ._election import CandidateBase, ElectionBase, SeatBase, TermBase
from ._errors import Cancelled, Closed, RedlockError
from ._hold import ACQUIRE, BUSY, EXPIRE, EXTEND, HELD, IN_FLIGHT, OK, PAUSE_S, RELEASE, WHO, HoldBase
from ._lock import HOLDER_LIMIT_MS, WARN_AFTER_MS, LockBase, calling_frame
from ._options import BY_OPTION, NOT_GIVEN, ttl_ms, wait_ms
from .types import Seconds

if TYPE_CHECKING:
    from types import CoroutineType

    from .aio import Client
else:
    CoroutineType = Coroutine  # which takes parameters from Python 3.9 on

AnyHold = TypeVar("AnyHold", bound="Hold")
Function = TypeVar("Function", bound=Callable[..., Any])

CANCEL_MESSAGE = "libredlock: the lock was lost"


def awaited(function: Function) -> Function:
    """A plain function that notes which task calls it, whichever runs the coroutine that it returns: wait_for(),
    shield(), gather() and create_task() run it in one of its own."""
    if sys.version_info >= (3, 12):
        return inspect.markcoroutinefunction(function)
    function._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]
    return function


class Hold(HoldBase):
    """One acquisition of a lock, as `await lock.acquire()` and `async with lock as hold:` give it. Any task may use it.

    What ended stays ended: after the release or a loss every act raises NotHeld or Lost, whoever has acquired the lock
    since. `async with hold:` releases it at the end of the block, and renews it until then.
    """

    if TYPE_CHECKING:
        _client: Client

    _binding: Optional[Binding] = None
    _body: Optional[asyncio.Task[Any]] = None
    _has_cancelled = False
    _cancellations = 0

    async def release(self) -> None:
        client, loop, status = self._client, running_loop() or need_loop(), -1
        binding = client._binding
        try:
            is_here = binding is not None and binding.loop is loop and client._is_open
            if self._count == 1 and not self._has_ended and is_here:
                self._has_ended = True
                status = await client._begin(self, loop, RELEASE, 0, HELD)
                self._has_ended = status >= 0
            if status < 0:
                if not self._begin_release():
                    return
                self._has_ended = True
                client._bind(loop)
                status = await client._begin(self, loop, RELEASE, 0)
            if status == IN_FLIGHT:  # another task is extending it
                status = await self._in_turn(RELEASE, 0)
            self._unwatch()
            if status != OK:
                self._judge_release(status)
        except RedlockError:
            raise
        except BaseException:
            self._abandon()
            raise

    async def extend(self, ttl: Optional[Seconds] = None) -> float:
        return await self._act("extend", EXTEND, ttl)

    async def expire(self, ttl: Optional[Seconds] = None) -> float:
        return await self._act("expire", EXPIRE, ttl)

    async def downgrade(self, ttl: Optional[Seconds] = None) -> float:
        ttl_ms(ttl)  # refuses what is not allowed
        self._check_act("downgrade")
        status = self._share()
        while status == IN_FLIGHT:
            await asyncio.sleep(PAUSE_S)
            status = self._share()
        if status != OK:
            raise self._error(status)
        return await self.extend(ttl)

    async def _act(self, act: str, operation: int, ttl: Any) -> float:
        argument = ttl_ms(ttl)
        self._check_act(act)
        return self._judge_act(act, await self._in_turn(operation, argument), ttl)

    async def _in_turn(self, operation: int, argument: int) -> int:
        """Its status when no other task's act is in flight any more, which ends within the lease."""
        pause_s, is_release = PAUSE_S, self._has_ended
        status = await self._client._run(self, operation, argument)
        while status == IN_FLIGHT and self._has_ended == is_release:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.02)
            status = await self._client._run(self, operation, argument)
        return status

    async def __aenter__(self: AnyHold) -> AnyHold:
        """The hold itself, renewed until the end of the block; an adopted one is extended first."""
        try:
            if self._begin_to_renew():
                await self.extend()
                self._renew = self._renew is not False
            self._enter_body()
            return self
        except RedlockError:
            raise
        except BaseException:
            self._abandon()
            raise

    async def __aexit__(
        self, kind: Optional[type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> Optional[bool]:
        """Releases it. Raises Lost if it was lost, unless the block failed by itself: then the loss is logged."""
        return await self._leave(failure)

    async def _leave(self, failure: Optional[BaseException], count: int = 1) -> Optional[bool]:
        """At the end of a block; True for an error that ends there."""
        is_its_end = self._unwatch_body(failure) or (failure is not None and self._is_its_end(failure))
        try:
            if self._count == count == 1 or self._is_left_to_release(count):
                await self.release()
        except RedlockError as loss:
            if self._leaves(loss, failure, is_its_end):
                raise loss from None
        return is_its_end and self._ends != ()

    def _belong(self, binding: Optional[Binding]) -> None:
        """It is held by a task of this event loop, if any."""
        self._binding = binding
        if binding is not None:
            binding.holds[id(self)] = ref(self)

    # ---- its loss ---------------------------------------------------------------------------------------------------

    def _unwatch(self) -> None:
        if self._client._watched:
            super()._unwatch()
        if self._has_ended and self._binding is not None:
            self._binding.holds.pop(id(self), None)

    def _enter_body(self) -> None:
        if self._cancel_on_lost and self._body is None:
            self._body = asyncio.current_task()
            self._has_cancelled = False
            if sys.version_info >= (3, 11) and self._body is not None:
                self._cancellations = self._body.cancelling()
            self._watch()
            self._tell_if_lost()

    def _tell_if_lost(self) -> None:
        """In the event loop of whoever holds it."""
        if not self.lost:
            return
        body, binding = self._body, self._binding
        loop = body.get_loop() if body is not None else binding.loop if binding is not None else None
        if loop is not None and loop is not running_loop() and not loop.is_closed():
            call_in(loop, self._tell_if_lost)
            return
        if body is not None and not self._has_cancelled and loop is running_loop():
            self._has_cancelled = True
            body.cancel(CANCEL_MESSAGE)
        super()._tell_if_lost()

    def _call_on_lost(self, on_lost: Callable[[Any], object]) -> None:
        result = on_lost(self)
        if not asyncio.iscoroutine(result):
            return
        loop = running_loop()
        if loop is None:  # that of the holder has ended
            result.close()
            return
        task = loop.create_task(self._await_on_lost(result))
        self._client._tasks.add(task)
        task.add_done_callback(self._client._tasks.discard)

    async def _await_on_lost(self, result: Any) -> None:
        try:
            await result
        except Exception:
            self._log_on_lost()

    def _unwatch_body(self, failure: Optional[BaseException]) -> bool:
        """True if the body was cancelled by the loss, and by no other cause."""
        if self._body is None or self._count > 1:
            return False
        body, self._body = self._body, None
        if not self._has_cancelled:
            return False
        if sys.version_info >= (3, 11):
            is_ours = body.uncancel() <= self._cancellations
        else:
            is_ours = failure is not None and failure.args == (CANCEL_MESSAGE,)
        return is_ours and isinstance(failure, asyncio.CancelledError)


class Lock(LockBase):
    """A lock on one resource, or on several: a name with options, made by Client.lock(). Use it as an asyncio.Lock, or
    as `async with lock as hold:`.

    Any number of tasks may share it; each acquisition is a Hold of its own, and the methods of the lock mean the newest
    one of the task that calls them. Without one owned() and `lost` are False, `remaining` is 0.0, `loss` is None, and
    the others raise NotHeld. Cancelling a task that waits leaves no key. Errors are subclasses of RedlockError.
    """

    if TYPE_CHECKING:
        _client: Client

    _keywords = LockBase._keywords | {"cancel_on_lost"}
    _hold_type: Any = Hold
    _sharer = "task"

    @awaited
    def acquire(
        self, blocking: bool = True, timeout: Seconds = -1
    ) -> Coroutine[Any, Any, Union[Hold, Literal[False]]]:
        limit_ms = BY_OPTION if blocking is True and timeout is NOT_GIVEN else wait_ms(blocking, timeout)
        return self._take(limit_ms, False, False, self._client._current())

    @awaited
    def take(self, blocking: bool = True, timeout: Seconds = -1) -> Coroutine[Any, Any, Hold]:
        return self._take(wait_ms(blocking, timeout), True, False, self._client._current())

    @awaited
    def release(self) -> Coroutine[Any, Any, None]:
        return self._release(self._client._current())

    @awaited
    def extend(self, ttl: Optional[Seconds] = None) -> Coroutine[Any, Any, float]:
        return self._do("extend", ttl, self._client._current())

    @awaited
    def expire(self, ttl: Optional[Seconds] = None) -> Coroutine[Any, Any, float]:
        return self._do("expire", ttl, self._client._current())

    @awaited
    def downgrade(self, ttl: Optional[Seconds] = None) -> Coroutine[Any, Any, float]:
        return self._do("downgrade", ttl, self._client._current())

    @awaited
    def __aenter__(self) -> CoroutineType[Any, Any, Hold]:
        """Takes the lock, waiting as the option `wait` says; renews it until the end of the block.

        Raises Busy if others hold it at the end of the wait, and what acquire() raises.
        """
        frame = calling_frame(1)
        return self._enter(id(frame), frame.f_code, self._client._current())  # type: ignore[return-value]

    @awaited
    def __aexit__(
        self, kind: Optional[type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> CoroutineType[Any, Any, None]:
        """Releases the hold that the block was entered with. Raises Lost if it was lost, unless the block failed by
        itself: then the loss is logged."""
        hold, count = self._left(calling_frame(1))
        return self._exit(hold, count, failure)  # type: ignore[return-value]

    async def status(self) -> Report:
        return await self._client.status(self._resource, **self._of_kind())

    async def _release(self, owner: Any) -> None:
        hold = self._mine(owner)
        try:
            await hold.release()
        finally:
            self._forget(hold)

    async def _do(self, act: str, ttl: Any, owner: Any) -> float:
        return float(await getattr(self._mine(owner), act)(ttl))

    async def _enter(self, at: int, code: Any, owner: Any) -> Hold:
        hold: Hold = await self._take(BY_OPTION, True, True, owner)
        self._begin_block(hold, at, code)
        return hold

    async def _exit(self, hold: Any, count: int, failure: Optional[BaseException]) -> None:
        try:
            await hold._leave(failure, count)
        finally:
            self._forget(hold)

    async def _take(self, limit_ms: int, raises: bool, is_block: bool, owner: Any) -> Any:
        """The hold; False if others have the lock at the end of the wait, or Busy. owner: the task that has called, if
        one has; else it is the one that runs this."""
        client = self._client
        binding = client._binding
        if binding is None or binding.loop is not running_loop():
            binding = client._bind()
        if owner is None:
            owner = ref(asyncio.current_task() or binding.loop)
        if self._holds:
            self._give_up(owner)
        hold = self._new(is_block)
        try:
            hold._owner = owner
            if binding.timer is None:
                binding.timer = binding.loop.call_later(WARN_AFTER_MS / 1000, binding.watch_waits)
            status = await self._acquire(hold, limit_ms, binding)
            if status == OK:
                hold._belong(binding)
                self._granted(hold, owner)
                return hold
            hold._has_ended = True
            if status == BUSY and not raises:
                self._refused = hold
                return False
            if status == BUSY and client._is_open:
                await client._run(hold, WHO, HOLDER_LIMIT_MS)
            raise self._refusal(hold, status)
        except BaseException:
            client._pending.pop(id(hold), None)
            self._abandon(hold)
            raise

    def _acquire(self, hold: Any, limit_ms: int, binding: Binding) -> Awaitable[int]:
        return self._client._begin(hold, binding.loop, ACQUIRE, limit_ms)

    def _is_over(self, owner: Any) -> bool:
        return owner is None or not isinstance(owner, asyncio.Future) or owner.done()


class RLock(Lock):
    """A re-entrant lock on one resource, made by Client.rlock(): the task that holds it may take it again, and releases
    it as often; blocks nest. Nothing is sent for that, and each acquisition gives the same hold. A task that it starts
    is another one, and waits.

    Whether it is renewed is decided by the outermost acquire() or block. If it is lost, an inner acquire() raises Lost,
    and so does each release; then it may be taken again.
    """

    async def _take(self, limit_ms: int, raises: bool, is_block: bool, owner: Any) -> Any:
        if owner is None:
            loop = need_loop()
            owner = ref(asyncio.current_task(loop) or loop)
        return self._again(owner) or await super()._take(limit_ms, raises, is_block, owner)


class Term(TermBase, Hold):
    """One term of a leader, a Hold whose number is `fence`: `async with term:` releases the seat at the end of the
    block, and another candidate leads.

    When the lease is lost, the block is cancelled and ends without an error, unless cancel_on_lost=False; the loop
    stands by again.
    """


class Seat(SeatBase, Lock):
    _hold_type: Any = Term

    def _acquire(self, hold: Any, limit_ms: int, binding: Binding) -> Awaitable[int]:
        self.waiting.append(hold)
        return super()._acquire(hold, limit_ms, binding)


class Election(ElectionBase):
    """Made by Client.election(): `async for term in election: async with term: ...` is a candidate, which leads in each
    step.

    Each step waits until it leads. The loop ends after stop() and when the client is closed.
    """

    def __aiter__(self) -> AsyncIterator[Term]:
        """A new candidate: an iterator over its terms. A former one that was not released ends with the next step."""
        return Candidate(self)


class Candidate(CandidateBase):
    def __aiter__(self) -> Candidate:
        return self

    async def __anext__(self) -> Term:
        election, former = self._election, self._former()
        if former is not None:
            await former._leave(None)
        if election._is_over():
            raise StopAsyncIteration
        try:
            term: Term = await election._seat._take(BY_OPTION, True, False, None)
        except (Cancelled, Closed):
            if not election._is_over():
                raise
            raise StopAsyncIteration from None
        if election._is_over():
            await term._leave(None)
            raise StopAsyncIteration
        self._term = term
        return term

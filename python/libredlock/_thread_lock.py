"""A lock of threads, or greenlets: it feels like threading.Lock, and its holds can be handed around. And elections:
`for term in client.election(...): with term: ...`"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Iterator, Literal, Optional, TypeVar, Union

from ._base import Report
from ._blocking import wait
from ._election import CandidateBase, ElectionBase, SeatBase, TermBase
from ._errors import Cancelled, Closed, RedlockError
from ._hold import ACQUIRE, BUSY, EXPIRE, EXTEND, IN_FLIGHT, OK, PAUSE_S, PENDING, WHO, HoldBase
from ._lock import HOLDER_LIMIT_MS, LockBase, calling_frame
from ._notify import notifier
from ._options import BY_OPTION, NOT_GIVEN, ttl_ms, wait_ms
from ._process import this_process
from .types import Seconds

if TYPE_CHECKING:
    from ._client import Client

AnyHold = TypeVar("AnyHold", bound="Hold")


class Hold(HoldBase):
    """One acquisition of a lock, as `lock.acquire()` and `with lock as hold:` give it. Any thread may use it.

    What ended stays ended: after the release or a loss every act raises NotHeld or Lost, whoever has acquired the lock
    since. `with hold:` releases it at the end of the block, and renews it until then.
    """

    if TYPE_CHECKING:
        _client: Client

    def release(self) -> None:
        client, status = self._client, -1
        try:  # around it all: a signal handler may raise between any two steps
            if self._count == 1 and not self._has_ended and client._is_open:
                release = client._release_held
                self._has_ended = True
                status = release(self._handle)
                if status == OK and not client._watched:
                    return
                self._has_ended = status >= 0
            if status < 0:
                if not self._begin_release():
                    return
                self._has_ended = True
                status = client._release(self._handle)
            if status == IN_FLIGHT:  # another thread is extending it
                status = self._in_turn(client._release, self._handle)
            if client._watched:
                self._unwatch()
            if status != OK:
                self._judge_release(status)
        except RedlockError:
            raise
        except BaseException:
            self._abandon_release()
            raise

    def extend(self, ttl: Optional[Seconds] = None) -> float:
        return self._act("extend", EXTEND, ttl)

    def expire(self, ttl: Optional[Seconds] = None) -> float:
        return self._act("expire", EXPIRE, ttl)

    def downgrade(self, ttl: Optional[Seconds] = None) -> float:
        ttl_ms(ttl)  # refuses what is not allowed
        self._check_act("downgrade")
        status = self._in_turn(self._share)
        if status != OK:
            raise self._error(status)
        return self.extend(ttl)

    def _act(self, act: str, operation: int, ttl: Any) -> float:
        argument, client = ttl_ms(ttl), self._client
        self._check_act(act)
        status = self._in_turn(client._drive, client, self._handle, operation, argument)
        return self._judge_act(act, status, ttl)

    def _in_turn(self, call: Callable[..., int], *arguments: Any) -> int:
        """Its status when no other thread's act is in flight any more, which ends within the lease."""
        pause_s, is_release = PAUSE_S, self._has_ended
        status = call(*arguments)
        while status == IN_FLIGHT and self._has_ended == is_release:
            self._client._pause(pause_s)
            pause_s = min(2 * pause_s, 0.02)
            status = call(*arguments)
        return status

    def __enter__(self: AnyHold) -> AnyHold:
        """The hold itself, renewed until the end of the block; an adopted one is extended first."""
        try:
            if self._begin_to_renew():
                self.extend()
                self._renew = self._renew is not False
            self._enter_body()
            return self
        except RedlockError:
            raise
        except BaseException:
            self._abandon()
            raise

    def __exit__(
        self, kind: Optional[type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> Optional[bool]:
        """Releases it. Raises Lost if it was lost, unless the block failed by itself: then the loss is logged."""
        return self._leave(failure)

    def _leave(self, failure: Optional[BaseException], count: int = 1) -> Optional[bool]:
        """At the end of a block; True for an error that ends there."""
        is_its_end = failure is not None and self._is_its_end(failure)
        try:
            if self._count == count == 1 or self._is_left_to_release(count):
                self.release()
        except RedlockError as loss:
            if self._leaves(loss, failure, is_its_end):
                raise loss from None
        return is_its_end

    def _foresee_end(self) -> None:
        notifier.wake()


class Lock(LockBase):
    """A lock on one resource, or on several: a name with options, made by Client.lock(). Use it as a threading.Lock, or
    as `with lock as hold:`.

    Any number of threads may share it; each acquisition is a Hold of its own, and the methods of the lock mean the
    newest one of the calling thread. Without one owned() and `lost` are False, `remaining` is 0.0, `loss` is None, and
    the others raise NotHeld. Errors are subclasses of RedlockError.
    """

    if TYPE_CHECKING:
        _client: Client

    _hold_type: Any = Hold

    def _check_on_lost(self, on_lost: Any) -> None:
        import inspect

        super()._check_on_lost(on_lost)
        if inspect.iscoroutinefunction(on_lost):
            raise TypeError(f"on_lost={on_lost!r} is async: use libredlock.aio, or a plain function")

    def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> Union[Hold, Literal[False]]:
        limit_ms = BY_OPTION if blocking is True and timeout is NOT_GIVEN else wait_ms(blocking, timeout)
        return self._take(limit_ms, False, False)  # type: ignore[no-any-return]

    def take(self, blocking: bool = True, timeout: Seconds = -1) -> Hold:
        return self._take(wait_ms(blocking, timeout), True, False)  # type: ignore[no-any-return]

    def release(self) -> None:
        current = self._client._current
        hold = self._own(current())
        if hold is None:
            raise self._not_mine()
        try:
            hold.release()
        finally:
            self._forget(hold)

    def extend(self, ttl: Optional[Seconds] = None) -> float:
        return float(self._mine().extend(ttl))

    def expire(self, ttl: Optional[Seconds] = None) -> float:
        return float(self._mine().expire(ttl))

    def downgrade(self, ttl: Optional[Seconds] = None) -> float:
        return float(self._mine().downgrade(ttl))

    def status(self) -> Report:
        return self._client.status(self._resource, **self._of_kind())

    def __enter__(self) -> Hold:
        """Takes the lock, waiting as the option `wait` says; renews it until the end of the block.

        Raises Busy if others hold it at the end of the wait, and what acquire() raises.
        """
        hold: Hold = self._take(BY_OPTION, True, True)
        frame = calling_frame(1)
        self._begin_block(hold, id(frame), frame.f_code)
        return hold

    def __exit__(
        self, kind: Optional[type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Releases the hold that the block was entered with. Raises Lost if it was lost, unless the block failed by
        itself: then the loss is logged."""
        if calling_frame is None or (kind is GeneratorExit and this_process.is_leaving):  # there may be no globals left
            return
        hold, count = self._left(calling_frame(1))
        try:
            hold._leave(failure, count)
        finally:
            self._forget(hold)

    def _take(self, limit_ms: int, raises: bool, is_block: bool) -> Any:
        """The hold; False if others have the lock at the end of the wait, or Busy."""
        client = self._client
        if self._holds:
            self._give_up(client._current())
        hold = self._new(is_block)
        try:
            status = self._acquire(hold, limit_ms)
            if status == OK:
                current = client._current
                self._granted(hold, current())
                return hold
            hold._has_ended = True
            if status == BUSY and not raises:
                self._refused = hold
                return False
            if status == BUSY and client._is_open:
                client._drive(client, hold._handle, WHO, HOLDER_LIMIT_MS)
            raise self._refusal(hold, status)
        except BaseException:
            self._abandon(hold)
            raise

    def _acquire(self, hold: Any, limit_ms: int) -> int:
        run = self._client._run
        status = run(hold._handle, ACQUIRE, limit_ms)
        return wait(self._client, hold._handle, self) if status == PENDING else status


class RLock(Lock):
    """A re-entrant lock on one resource, made by Client.rlock(): the thread that holds it may take it again, and
    releases it as often; blocks nest. Nothing is sent for that, and each acquisition gives the same hold.

    Whether it is renewed is decided by the outermost acquire() or block. If it is lost, an inner acquire() raises Lost,
    and so does each release; then it may be taken again.
    """

    def _take(self, limit_ms: int, raises: bool, is_block: bool) -> Any:
        return self._again(self._client._current()) or super()._take(limit_ms, raises, is_block)


class Term(TermBase, Hold):
    """One term of a leader, a Hold whose number is `fence`: `with term:` releases the seat at the end of the block, and
    another candidate leads.

    When the lease is lost, somebody else may lead, whatever the block does: the block asks `lost`, calls check() before
    anything that cannot be undone, or on_lost reports the loss. The block then ends without an error, and the loop
    stands by again.
    """


class Seat(SeatBase, Lock):
    _hold_type: Any = Term

    def _acquire(self, hold: Any, limit_ms: int) -> int:
        """A stop() that came before the wait has begun ends it, too."""
        self.waiting.append(hold)
        status = self._client._run(hold._handle, ACQUIRE, limit_ms)
        if self.is_stopped:
            hold._cancel_of(hold._handle)
        return wait(self._client, hold._handle) if status == PENDING else status


class Election(ElectionBase):
    """Made by Client.election(): `for term in election: with term: ...` is a candidate, which leads in each step.

    Each step waits until it leads. The loop ends after stop() and when the client is closed.
    """

    def __iter__(self) -> Iterator[Term]:
        """A new candidate: an iterator over its terms. A former one that was not released ends with the next step."""
        return Candidate(self)


class Candidate(CandidateBase):
    def __iter__(self) -> Candidate:
        return self

    def __next__(self) -> Term:
        election, former = self._election, self._former()
        if former is not None:
            former._leave(None)
        if election._is_over():
            raise StopIteration
        try:
            term: Term = election._seat._take(BY_OPTION, True, False)
        except (Cancelled, Closed):
            if not election._is_over():
                raise
            raise StopIteration from None
        if election._is_over():
            term._leave(None)
            raise StopIteration
        self._term = term
        return term

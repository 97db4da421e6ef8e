"""A re-entrant lock that tasks share."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Optional, Type, TypeVar

from ._errors import RedlockError
from ._lock import note_loss
from ._options import wait_ms
from ._reentrant import Reentrant
from ._task_lock import Lock
from .types import Seconds

AnyLock = TypeVar("AnyLock", bound="RLock")


class RLock(Reentrant, Lock):
    """A re-entrant lock on one resource, made by Client.rlock(): the task that holds it may take it again, and releases
    it as often; blocks nest. Nothing is sent for that. A task that it starts is another one, and waits.

    Whether it is renewed is decided by the outermost acquire() or block. If it is lost, an inner acquire() raises Lost,
    and so does each release; then it may be taken again. Only the task that holds it may release it.
    """

    __slots__ = ("_inner", "_given")

    def __init__(self, *arguments: Any) -> None:
        """Called by Client.rlock()."""
        self._inner = 0
        super().__init__(*arguments)

    async def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> bool:
        if self._is_mine():
            wait_ms(blocking, timeout)  # refuses what is not allowed
            await self._alone(self._enter)
            return True
        self._refuse_owed()
        return await super().acquire(blocking, timeout)

    async def release(self) -> None:
        if self._inner and self._is_mine():
            await self._alone(self._leave_inner)
            return
        self._refuse_of_another()
        await super().release()

    async def downgrade(self, ttl: Optional[Seconds] = None) -> float:
        self._refuse_of_another()
        self._refuse_inside("downgrade")
        return await super().downgrade(ttl)

    def detach(self) -> str:
        self._refuse_inside("detach")
        return super().detach()

    async def __aenter__(self: AnyLock) -> AnyLock:
        """Takes the lock, again if this task holds it. The outermost block renews it until its end."""
        if self._is_mine():
            await self._alone(self._enter)
            return self
        self._refuse_owed()
        return await super().__aenter__()

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Releases it once. Raises Lost if it was lost, unless the block failed by itself: then the loss is logged."""
        if not self._inner:  # the block that cancel_on_lost is about
            await super().__aexit__(kind, failure, trace)
            return
        try:
            await self.release()
        except RedlockError as loss:
            if failure is None:
                raise loss from None
            note_loss(failure, loss)

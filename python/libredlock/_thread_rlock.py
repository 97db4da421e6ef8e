"""A re-entrant lock that threads, or greenlets, share: it feels like threading.RLock."""

from __future__ import annotations

from typing import Any, Optional, TypeVar

from ._options import wait_ms
from ._reentrant import Reentrant
from ._thread_lock import Lock
from .types import Seconds

AnyLock = TypeVar("AnyLock", bound="RLock")


class RLock(Reentrant, Lock):
    """A re-entrant lock on one resource, made by Client.rlock(): the thread that holds it may take it again, and
    releases it as often; blocks nest. Nothing is sent for that.

    Whether it is renewed is decided by the outermost acquire() or block. If it is lost, an inner acquire() raises Lost,
    and so does each release; then it may be taken again. Only the thread that holds it may release it.
    """

    __slots__ = ("_inner", "_given")

    def __init__(self, *arguments: Any) -> None:
        """Called by Client.rlock()."""
        self._inner = 0
        super().__init__(*arguments)

    def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> bool:
        if self._is_mine():
            wait_ms(blocking, timeout)  # refuses what is not allowed
            self._alone(self._enter)
            return True
        self._refuse_owed()
        return super().acquire(blocking, timeout)

    def release(self) -> None:
        if self._inner and self._is_mine():
            self._alone(self._leave_inner)
            return
        self._refuse_of_another()
        super().release()

    def downgrade(self, ttl: Optional[Seconds] = None) -> float:
        self._refuse_of_another()
        self._refuse_inside("downgrade")
        return super().downgrade(ttl)

    def detach(self) -> str:
        self._refuse_inside("detach")
        return super().detach()

    def __enter__(self: AnyLock) -> AnyLock:
        """Takes the lock, again if this thread holds it. The outermost block renews it until its end."""
        if self._is_mine():
            self._alone(self._enter)
            return self
        self._refuse_owed()
        return super().__enter__()

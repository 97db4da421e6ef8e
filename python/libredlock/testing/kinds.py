"""The other kinds of lock of MemoryClient and AsyncMemoryClient."""
from __future__ import annotations

import asyncio
import threading
from typing import Any, Optional

from .._errors import NotHeld, RedlockError
from .._lock import note_loss
from .._options import wait_ms
from .memory import AsyncMemoryLock, MemoryLock, _Lock


class _Reentrant(_Lock):
    """Whoever holds it may take it again."""

    _owner: Any = None
    _inner = 0

    def _me(self) -> Any:
        raise NotImplementedError

    def _is_mine(self) -> bool:
        return self._hold is not None and self._owner == self._me()

    def _enter(self) -> None:
        self.check()
        self._inner += 1

    def _leaves_inner(self) -> bool:
        """Whether the release was not the outermost one, which is left to the caller."""
        if self.owned() and not self._is_mine():
            raise NotHeld(f"the lock on {self.resource!r} is held by somebody else", resource=self.resource)
        is_inner, self._inner = self._inner > 0, max(0, self._inner - 1)
        if is_inner:
            self.check()
        return is_inner


class MemoryRLock(_Reentrant, MemoryLock):
    """A lock of MemoryClient.rlock(), with the methods of libredlock.RLock."""

    def _me(self) -> int:
        return threading.get_ident()

    def _acquire(self, limit_ms: int, is_scoped: bool) -> bool:
        if not super()._acquire(limit_ms, is_scoped):
            return False
        self._owner, self._inner = self._me(), 0
        return True

    def acquire(self, blocking: bool = True, timeout: Any = -1) -> bool:
        if not self._is_mine():
            return super().acquire(blocking, timeout)
        wait_ms(blocking, timeout)
        self._enter()
        return True

    def release(self) -> None:
        if not self._leaves_inner():
            super().release()

    def __enter__(self) -> MemoryRLock:
        if self._is_mine():
            self._enter()
        elif not self._acquire(self._limit_ms(True, -1), True):
            raise self._busy()
        return self


class AsyncMemoryRLock(_Reentrant, AsyncMemoryLock):
    """A lock of AsyncMemoryClient.rlock(), with the methods of libredlock.aio.RLock."""

    def _me(self) -> Any:
        return asyncio.current_task()

    async def _acquire(self, limit_ms: int, is_scoped: bool) -> bool:
        if not await super()._acquire(limit_ms, is_scoped):
            return False
        self._owner, self._inner = self._me(), 0
        return True

    async def acquire(self, blocking: bool = True, timeout: Any = -1) -> bool:
        if not self._is_mine():
            return await super().acquire(blocking, timeout)
        wait_ms(blocking, timeout)
        self._enter()
        return True

    async def release(self) -> None:
        if not self._leaves_inner():
            await super().release()

    async def __aenter__(self) -> AsyncMemoryRLock:
        if self._is_mine():
            self._enter()
            return self
        if not await self._acquire(self._limit_ms(True, -1), True):
            raise self._busy()
        self._watch_body()
        return self

    async def __aexit__(self, kind: Any, failure: Optional[BaseException], trace: Any) -> None:
        if not self._inner:
            await super().__aexit__(kind, failure, trace)
            return
        try:
            await self.release()
        except RedlockError as loss:
            if failure is None:
                raise
            note_loss(failure, loss)

"""What re-entrant locks of both surfaces have in common: the holder may take one again without asking the nodes."""

from __future__ import annotations

from typing import Any

from ._core import lib
from ._errors import InvalidOption, NotHeld
from ._lock import LockBase
from ._queue import Ticket

OK = lib.REDLOCK_OK
_set = lib.redlock_lock_set
_acquire = lib.redlock_lock_acquire
_release = lib.redlock_lock_release


class Reentrant(LockBase):
    """The core counts while its option reentrant is on. It is off around the outermost acquire and release, so that a
    call that a signal handler has cut off between two steps leaves no count behind."""

    __slots__ = ()  # a second base may have none: RLock has them

    _inner: int
    """How often whoever holds it has taken it again."""
    _given: Any
    """The options that it was made with."""

    def _is_mine(self) -> bool:
        holding = self._holding()
        return holding is not None and holding.owner is self._client._current()

    def _refuse_owed(self) -> None:
        """A hold that was lost has to be released as often as it was taken first."""
        if self._expired and self._client._current() in self._expired:
            raise self._lost()

    def _refuse_of_another(self) -> None:
        if self._holding() is not None and not self._is_mine() and not self._is_replaced():
            words = f"the lock on {self._resource!r} is held by another {self._sharer}"
            raise NotHeld(words, resource=self._resource)

    def _refuse_inside(self, call: str) -> None:
        if self._inner:
            words = f"{call}(): {self._resource!r} was acquired {self._inner + 1} times; release it until one is left"
            raise InvalidOption(words, resource=self._resource)

    def _enter(self) -> None:
        """Once more; no I/O. The caller has waited for extensions."""
        _set(self._handle, b"reentrant", b"true")
        status = _acquire(self._handle, 0)
        if status == OK:
            self._inner += 1  # type: ignore[misc]
            return
        if not self._inner:
            self._stop_counting()
        raise self._error(status)

    def _leave_inner(self) -> None:
        """One of several; no I/O. The caller has waited for extensions."""
        self._inner -= 1  # type: ignore[misc]  # first: a count too small would release what a block relies on
        status = _release(self._handle)
        if not self._inner:
            self._stop_counting()
        if status != OK:
            self._judge_release(status)

    def _stop_counting(self) -> None:
        """From now on a release is the outermost one."""
        _set(self._handle, b"reentrant", b"false")

    def _expire(self, ticket: Ticket) -> None:
        inner, self._inner = self._inner, 0  # type: ignore[misc]
        self._stop_counting()
        super()._expire(ticket)
        if inner and self._expired is not None:
            self._expired[ticket.owner] += inner

    def _forked(self) -> None:
        super()._forked()
        self._inner = 0  # type: ignore[misc]


def shared(client: Any, make: Any, resource: Any, given: Any) -> Any:
    """The one object of a client on a resource, as long as somebody has it."""
    key = resource.encode("utf-8", "surrogatepass") if isinstance(resource, str) else resource
    with client._mutex:
        known = client._rlocks.get(key) if isinstance(key, bytes) else None
        if known is None:
            lock = make()
            client._rlocks[key] = lock
            lock._given = given
            return lock
    if known._given != given:
        raise InvalidOption(f"rlock({resource!r}): it exists already, with other options", resource=resource)
    return known

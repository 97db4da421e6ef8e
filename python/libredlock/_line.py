"""A lock's line of waiters: those of one process who share it."""

from __future__ import annotations

from typing import Any

from ._core import lib
from ._errors import Busy, RedlockError
from ._facts import ADOPTED, FREE, HELD, LOST, Facts
from ._native import text
from ._process import generation
from ._queue import LEAVING, Ticket, first, holder, leave

EXPIRIES_KEPT = 1000

# Those who wait in the line look at it again this often: a wake-up that a signal handler cut off is made good for.
LOOK_AGAIN_S = 1.0

# After this time a thread or task that waits for its own hold is warned.
WARN_AFTER_MS = 1000

AT_ONCE = lib.REDLOCK_AT_ONCE
_state = lib.redlock_lock_state


class Shared(Facts):
    """A lock that threads or tasks share: each call has a ticket in the line, and the first of them is served."""

    __slots__ = ()

    _sharer = "thread"

    def _is_first(self, ticket: Ticket) -> bool:
        """Whether it is the ticket's turn. A hold ahead of it that has expired is removed."""
        line = self._line
        holding = holder(line)
        if holding is not None and _state(self._handle) == LOST:
            self._expire(holding)
        return line[0] is ticket

    def _until_expiry(self) -> float:
        left_ms = lib.redlock_lock_validity_ms(self._handle)
        return left_ms / 1000 + 0.001 if left_ms > 0 else LOOK_AGAIN_S

    def _why_queued(self, ticket: Ticket) -> str:
        """Why the end of a wait has found the lock busy: "" leaves it to the core."""
        holding = holder(self._line)
        if first(self._line) is ticket:
            return ""
        if holding is not None and holding.owner is self._client._current():
            return f"this {self._sharer} holds {self._resource!r} already: a Lock is not re-entrant"
        return f"another {self._sharer} of this process holds {self._resource!r}"

    def _warn_of_itself(self) -> None:
        """Whoever waits holds the lock: it gets it when the lease ends, or when somebody else releases it."""
        holding = holder(self._line)
        if holding is not None and holding.owner is self._client._current():
            warn_of_itself(self._sharer, repr(self._resource))

    def _wait_option_ms(self) -> int:
        return int(text(lib.redlock_lock_get, self._handle, b"wait_ms"))

    def _is_unnamed(self, failure: RedlockError) -> bool:
        return isinstance(failure, Busy) and failure.held_by is None

    def _expire(self, ticket: Ticket) -> None:
        """Remembers whose hold has expired, for they may still want to release it."""
        if self._expired is None:
            self._expired = {}
        if len(self._expired) >= EXPIRIES_KEPT:
            self._expired.clear()
        self._unwatch()
        self._expired[ticket.owner] = self._expired.get(ticket.owner, 0) + 1
        self._leave(ticket)

    def _held_ticket(self, is_release: bool) -> Ticket:
        """The same for extend() and release(), which raise why there is none."""
        if self._generation != generation():
            self._forked()
        if self._expired and self._is_replaced():
            failure = self._lost()
            if is_release:
                self._forget_expiry()
            raise failure
        try:
            ticket = self._line[0]
            if ticket.owner is not LEAVING:
                return ticket
        except (IndexError, AttributeError):
            pass  # there is none, or it waits
        state = _state(self._handle)
        raise self._not_held(state if state == lib.REDLOCK_STATE_FORKED else FREE)  # a loss was told before

    def _forget_expiry(self) -> None:
        expired, me = self._expired or {}, self._client._current()
        if expired.get(me, 0) > 1:
            expired[me] -= 1
        else:
            expired.pop(me, None)

    def _abandon(self, ticket: Ticket) -> None:
        """Takes back what a refused or interrupted call has reached, without waiting for the nodes."""
        if first(self._line) is ticket:
            ticket.owner = LEAVING
            lib.redlock_lock_cancel(self._handle)
            self._forget_hold()
            self._client._process()  # a cancel is only a mark: this sends the deletes
        self._leave(ticket)

    def _leave(self, ticket: Ticket) -> None:
        leave(self._line, ticket)

    def _abandon_release(self, ticket: Ticket, owner: Any) -> None:
        """After a release that failed or was interrupted: before it has begun the lock stays held."""
        if _state(self._handle) in (HELD, ADOPTED):
            ticket.owner = owner
        else:
            self._leave(ticket)

    def _forget_hold(self) -> None:
        """Sends the deletes; a release that is cancelled goes on inside the client."""
        if _state(self._handle) != HELD:
            return
        lib.redlock_lock_cancel(self._handle)
        if lib.redlock_lock_start(self._handle, lib.REDLOCK_RELEASE | AT_ONCE, 0) == lib.REDLOCK_OK:
            lib.redlock_lock_cancel(self._handle)

    def _watch(self) -> None:
        """Starts to watch for its loss."""
        raise NotImplementedError

    def _unwatch(self) -> None:
        """Stops watching for its loss."""
        raise NotImplementedError


def warn_of_itself(who: str, what: str) -> None:
    import logging

    words = "this %s waits for %s, which it holds itself: a Lock is not re-entrant"
    logging.getLogger("libredlock").warning(words, who, what)

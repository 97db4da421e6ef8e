"""Election of a leader: `for term in client.election(...): with term: ...`"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Optional, Type

from ._blocking import PENDING, wait
from ._core import lib
from ._election import ElectionBase, TermBase
from ._errors import Cancelled, Closed, Lost, NotHeld
from ._lock import note_loss
from ._queue import Ticket
from ._thread_lock import ACQUIRE, OK, Lock

_run = lib.run_operation
_cancel = lib.redlock_lock_cancel


class Seat(Lock):
    """The lock of one candidate."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.election: Any = None

    def _take(self, ticket: Ticket, limit_ms: int) -> int:
        """As Lock does it, for one thread alone: a stop() that came before the wait has begun ends it, too."""
        if self._client._greenlets is not None:
            return super()._take(ticket, limit_ms)
        self._holding()  # notices a fork
        self._line.append(ticket)
        status: int = _run(self._handle, ACQUIRE, limit_ms, 0)
        if self.election._is_stopped:
            _cancel(self._handle)
        if status == PENDING:
            status = wait(self._client, self._handle)
        if status == OK:
            ticket.owner = self._client._current()
            if self._on_lost is not None:
                self._watch()
        return status


class Term(TermBase):
    """One term of a leader: `with term:` releases the seat at the end of the block, and another candidate leads.

    When the lease is lost, somebody else may lead, whatever the block does: the block asks `lost`, calls check() before
    anything that cannot be undone, or on_lost reports the loss. The block then ends without an error, and the loop
    stands by again.
    """

    def __enter__(self) -> Term:
        """The term itself, which has begun already."""
        self._lock._begin_hold()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> bool:
        """Releases the seat. A loss is no error; the block's own error leaves."""
        self._was_lost = self.lost
        hold = self._lock._leave_hold(failure)
        try:
            self._lock.release()
        except (Lost, NotHeld) as loss:
            self._was_lost = True
            if failure is not None and not self._is_its_end(failure):
                note_loss(failure, loss)
        finally:
            self._lock._end_hold(hold)
        return self._is_its_end(failure)


class Election(ElectionBase):
    """A candidate, made by Client.election(): an iterator over its terms. `for term in election: with term: ...`

    Each step waits until it leads. The loop ends after stop() and when the client is closed.
    """

    def __iter__(self) -> Election:
        """The election itself."""
        return self

    def __next__(self) -> Term:
        """The next term of this candidate; a former one that was not released ends here."""
        if self._lock.locked():
            Term(self._lock).__exit__(None, None, None)
        if self._is_over():
            raise StopIteration
        try:
            self._lock.acquire()
        except (Cancelled, Closed) as failure:
            self._ends(failure)
            raise StopIteration from None
        if self._is_stopped:
            Term(self._lock).__exit__(None, None, None)
            raise StopIteration
        return Term(self._lock)

"""Election of a leader: `for term in client.election(...): with term: ...`"""

from __future__ import annotations

from typing import Any, Iterator

from ._blocking import wait
from ._core import lib
from ._election import ElectionBase, SeatBase, TermBase
from ._errors import Cancelled, Closed
from ._hold import ACQUIRE, PENDING
from ._options import BY_OPTION
from ._thread_lock import Hold, Lock

_run = lib.run_operation
_cancel = lib.redlock_lock_cancel


class Term(TermBase, Hold):
    """One term of a leader, a Hold whose number is `fence`: `with term:` releases the seat at the end of the block, and
    another candidate leads.

    When the lease is lost, somebody else may lead, whatever the block does: the block asks `lost`, calls check() before
    anything that cannot be undone, or on_lost reports the loss. The block then ends without an error, and the loop
    stands by again.
    """

    __slots__ = ()


class Seat(SeatBase, Lock):
    """The lock of an election."""

    _hold_type: Any = Term

    def _acquire(self, hold: Any, limit_ms: int) -> int:
        """A stop() that came before the wait has begun ends it, too."""
        if self._client._greenlets is not None:
            return super()._acquire(hold, limit_ms)
        status: int = _run(hold._handle, ACQUIRE, limit_ms, 0)
        if self.is_stopped:
            _cancel(hold._handle)
        return wait(self._client, hold._handle) if status == PENDING else status


class Election(ElectionBase):
    """Made by Client.election(): `for term in election: with term: ...` is a candidate, which leads in each step.

    Each step waits until it leads. The loop ends after stop() and when the client is closed.
    """

    def __iter__(self) -> Iterator[Term]:
        """A new candidate: an iterator over its terms. A former one that was not released ends with the next step."""
        return Candidate(self)


class Candidate:
    """An iterator over terms."""

    def __init__(self, election: Election) -> None:
        self._election = election
        self._term: Any = None

    def __iter__(self) -> Candidate:
        return self

    def __next__(self) -> Term:
        election, former, self._term = self._election, self._term, None
        if former is not None and not former._has_ended:
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

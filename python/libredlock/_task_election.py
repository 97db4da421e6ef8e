"""Election of a leader: `async for term in client.election(...): async with term: ...`"""

from __future__ import annotations

from typing import Any, AsyncIterator

from ._election import ElectionBase, SeatBase, TermBase
from ._errors import Cancelled, Closed
from ._options import BY_OPTION
from ._task_lock import Hold, Lock


class Term(TermBase, Hold):
    """One term of a leader, a Hold whose number is `fence`: `async with term:` releases the seat at the end of the
    block, and another candidate leads.

    When the lease is lost, the block is cancelled and ends without an error, unless cancel_on_lost=False; the loop
    stands by again.
    """

    __slots__ = ()


class Seat(SeatBase, Lock):
    """The lock of an election."""

    _hold_type: Any = Term


class Election(ElectionBase):
    """Made by Client.election(): `async for term in election: async with term: ...` is a candidate, which leads in each
    step.

    Each step waits until it leads. The loop ends after stop() and when the client is closed.
    """

    def __aiter__(self) -> AsyncIterator[Term]:
        """A new candidate: an iterator over its terms. A former one that was not released ends with the next step."""
        return Candidate(self)


class Candidate:
    """An iterator over terms."""

    def __init__(self, election: Election) -> None:
        self._election = election
        self._term: Any = None

    def __aiter__(self) -> Candidate:
        return self

    async def __anext__(self) -> Term:
        election, former, self._term = self._election, self._term, None
        if former is not None and not former._has_ended:
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

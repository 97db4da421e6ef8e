"""Election of a leader: `async for term in client.election(...): async with term: ...`"""

from __future__ import annotations

from types import TracebackType
from typing import Optional, Type

from ._election import ElectionBase, TermBase
from ._errors import Cancelled, Closed, Lost, NotHeld
from ._lock import note_loss


class Term(TermBase):
    """One term of a leader: `async with term:` releases the seat at the end of the block, and another candidate leads.

    When the lease is lost, the block is cancelled and ends without an error, unless cancel_on_lost=False; the loop
    stands by again.
    """

    async def __aenter__(self) -> Term:
        """The term itself, which has begun already."""
        self._lock._begin_hold()
        if self._lock._cancel_on_lost:
            self._lock._watch_body()
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> bool:
        """Releases the seat. A loss is no error; the block's own error leaves."""
        is_its_end = self._lock._unwatch_body(failure) or self._is_its_end(failure)
        self._was_lost = self.lost
        hold = self._lock._leave_hold(failure)
        try:
            await self._lock.release()
        except (Lost, NotHeld) as loss:
            self._was_lost = True
            if failure is not None and not is_its_end:
                note_loss(failure, loss)
        finally:
            self._lock._end_hold(hold)
        return is_its_end


class Election(ElectionBase):
    """A candidate, made by Client.election(): an iterator over its terms. `async for term in election: async with term:
    ...`

    Each step waits until it leads. The loop ends after stop() and when the client is closed.
    """

    def __aiter__(self) -> Election:
        """The election itself."""
        return self

    async def __anext__(self) -> Term:
        """The next term of this candidate; a former one that was not released ends here."""
        if self._lock.locked():
            await Term(self._lock).__aexit__(None, None, None)
        if self._is_over():
            raise StopAsyncIteration
        try:
            await self._lock.acquire()
        except (Cancelled, Closed) as failure:
            self._ends(failure)
            raise StopAsyncIteration from None
        if self._is_stopped:
            await Term(self._lock).__aexit__(None, None, None)
            raise StopAsyncIteration
        return Term(self._lock)

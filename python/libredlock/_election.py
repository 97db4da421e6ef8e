"""What elections of both surfaces have in common: a leader is whoever holds a renewed lock with a fencing number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from ._errors import Lost, NotHeld
from ._hold import HoldBase
from .types import Resource

# A candidate stands by for as long as it takes, through outages too.
_STANDS_BY: dict[str, Any] = {"wait": None, "outage_wait": None}
_OF_EVERY_ELECTION: dict[str, Any] = {"renew": True, "fence": True, "shared": False, "permits": 1, "layout": "string"}
REFUSED = {
    **dict.fromkeys(("wait", "retry_count"), "a candidate stands by until it leads, or until stop()"),
    **dict.fromkeys(("permits", "shared"), "one candidate leads at a time"),
    "layout": "only a key that is a string has a fencing number",
    "renew": "the lease of a leader is always renewed",
    "fence": "the term is always the fencing number",
}


def options_of(given: Mapping[str, Any]) -> dict[str, Any]:
    for keyword in given:
        if keyword in REFUSED:
            raise TypeError(f"election() takes no {keyword}=: {REFUSED[keyword]}")
    return {**_STANDS_BY, **given, **_OF_EVERY_ELECTION}


class TermBase(HoldBase):
    """What a hold is in addition when it is the term of a leader."""

    _ends = Lost, NotHeld

    if TYPE_CHECKING:

        @property
        def fence(self) -> int: ...

    def _begin_to_renew(self) -> bool:
        return False  # it has begun already, and is renewed

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__qualname__} {self.fence} of {super().__repr__()}>"


class SeatBase:
    """The lock of all candidates of one election. It keeps no term: whoever leads has it."""

    _implied: Mapping[str, Any] = {**_STANDS_BY, **_OF_EVERY_ELECTION}

    def __init__(self, client: Any, resource: Any, *arguments: Any) -> None:
        self.is_stopped = False
        self.waiting: list[Any] = []
        if isinstance(resource, (list, tuple)):
            raise TypeError(f"election({resource!r}): takes one resource, str or bytes")
        super().__init__(client, resource, *arguments)  # type: ignore[call-arg]

    def _granted(self, hold: Any, owner: Any) -> None:
        hold._owner = owner
        if hold._on_lost is not None:
            hold._watch()
        self.waiting.remove(hold)

    def _abandon(self, hold: Any) -> None:
        if hold in self.waiting:
            self.waiting.remove(hold)
        super()._abandon(hold)  # type: ignore[misc]


class CandidateBase:
    def __init__(self, election: Any) -> None:
        self._election = election
        self._term: Any = None

    def _former(self) -> Any:
        """The term that its loop has not released."""
        former, self._term = self._term, None
        return None if former is None or former._has_ended else former


class ElectionBase:
    """Any number of candidates: each iterator is one."""

    def __init__(self, seat: Any) -> None:
        self._seat = seat

    @property
    def resource(self) -> Resource:
        """What is led."""
        return self._seat.resource  # type: ignore[no-any-return]

    def stop(self) -> None:
        """Its candidates stand by no more: a wait ends at once, and a loop when its block has ended, which is not
        interrupted. Any thread, and signal handlers."""
        self._seat.is_stopped = True
        for hold in self._seat.waiting[:]:
            hold._cancel_of(hold._handle)

    def _is_over(self) -> bool:
        return self._seat.is_stopped or bool(self._seat._client.closed)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__qualname__} {self.resource!r}>"

"""What elections of both surfaces have in common: a leader is whoever holds a renewed lock with a fencing number."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from ._errors import Lost, NotHeld, RedlockError
from ._options import unknown
from .types import Resource

# A candidate stands by for as long as it takes, through outages too.
_STANDS_BY: Dict[str, Any] = {"wait": None, "outage_wait": None, "max_hold": None}
_OF_EVERY_ELECTION: Dict[str, Any] = {"renew": True, "fence": True}
_REFUSED = {
    "wait": "a candidate stands by until it leads, or until stop()",
    "retry_count": "a candidate stands by until it leads, or until stop()",
    "renew": "the lease of a leader is always renewed",
    "fence": "the term is always the fencing number",
}


def options_of(given: Mapping[str, Any]) -> Dict[str, Any]:
    """Those of the lock."""
    for keyword in given:
        if keyword in _REFUSED:
            raise TypeError(f"election() takes no {keyword}=: {_REFUSED[keyword]}")
        if keyword == "reentrant":
            raise unknown("election", keyword, ())
    return {**_STANDS_BY, **given, **_OF_EVERY_ELECTION}


class TermBase:
    """One term of a leader: it has begun, and lasts until its block ends or the lock is lost."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._was_lost: Optional[bool] = None  # when its block has ended
        self.fence: int = lock.fence or 0
        """The number of the term, larger than that of every leader before. A store that rejects smaller numbers than
        it has seen rejects a leader whose term is over."""

    @property
    def resource(self) -> Resource:
        """What is led."""
        resource: Resource = self._lock.resource
        return resource

    @property
    def remaining(self) -> float:
        """Seconds that it may lead without a renewal; 0.0 after a loss. Local, no I/O."""
        return float(self._lock.remaining) if self._was_lost is None else 0.0

    @property
    def lost(self) -> bool:
        """True from the moment at which somebody else may lead. Local, no I/O."""
        return bool(self._lock.lost) if self._was_lost is None else self._was_lost

    def owned(self) -> bool:
        """True while nobody else can lead. Local, no I/O."""
        return self._was_lost is None and bool(self._lock.owned())

    def check(self) -> None:
        """Returns if it leads now; raises Lost if not, which ends the block and the term. Local, no I/O."""
        if self._was_lost is not None:
            raise NotHeld(f"the term {self.fence} of {self.resource!r} is over", resource=self.resource)
        self._lock.check()

    def _is_its_end(self, failure: Optional[BaseException]) -> bool:
        """Whether the block has ended because it has seen the loss."""
        return isinstance(failure, Lost) and failure.resource == self._lock.resource

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__qualname__} {self.fence} of {self._lock!r}>"


class ElectionBase:
    """A candidate."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._is_stopped = False

    @property
    def resource(self) -> Resource:
        """What is led."""
        resource: Resource = self._lock.resource
        return resource

    def stop(self) -> None:
        """Stands by no more: a wait ends at once, and the loop when its block has ended, which is not interrupted. Any
        thread, and signal handlers."""
        self._is_stopped = True
        if not self._lock.locked():
            self._lock._stop_waiting()

    def _is_over(self) -> bool:
        return self._is_stopped or bool(self._lock._client.closed)

    def _ends(self, failure: RedlockError) -> None:
        """Ends a wait because of stop() or close(); else it is reported."""
        if not self._is_over():
            raise failure

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__qualname__} {self._lock.resource!r}>"

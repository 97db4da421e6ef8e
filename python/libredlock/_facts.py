"""What a lock knows about itself without I/O, and the errors that say so."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple, Union

from ._core import lib
from ._errors import Busy, Closed, InvalidOption, Lost, NotHeld, RedlockError, Vote, error
from ._native import held_by, text, votes
from ._options import contradiction, seconds_hint, seconds_of, spelled
from ._process import generation, this_process
from ._queue import Line, Ticket, holder
from ._surface import LockSurface
from .types import Resource, Resources

HELD = lib.REDLOCK_STATE_HELD
ADOPTED = lib.REDLOCK_STATE_ADOPTED
LOST = lib.REDLOCK_STATE_LOST
FREE = lib.REDLOCK_STATE_FREE
_state = lib.redlock_lock_state


class Facts(LockSurface):
    """The fields of a lock, and what can be read from them."""

    __slots__ = (
        "_client",
        "_handle",
        "_resource",
        "_renew",
        "_renews",
        "_generation",
        "_line",
        "_extensions",
        "_expired",
        "_on_lost",
        "_downgraded",
    )

    _client: Any
    _handle: Any
    _resource: Union[Resource, Tuple[Resource, ...]]
    _renew: Optional[bool]
    _renews: bool
    _generation: int
    _line: Line
    """The holder, then the waiters."""
    _extensions: Line
    """The thread or task that extends it, then those that wait to extend or release it."""
    _expired: Optional[Dict[Any, int]]
    """How many holds of whom have expired without a release."""
    _on_lost: Optional[Callable[[Any], object]]
    _downgraded: bool
    """The option shared is that of downgrade(), for the last hold."""

    @property
    def resource(self) -> Resources:
        """What is locked, as it was given; a tuple if it is several."""
        return self._resource

    @property
    def token(self) -> Optional[str]:
        """The random value of the lock that is held or was last, 40 hexadecimal digits; None before."""
        return text(lib.redlock_lock_token, self._handle) or None

    @property
    def fence(self) -> Optional[int]:
        """The fencing number of the lock that is held or was last, with the option fence: larger than that of every
        holder before. A store that rejects smaller numbers than it has seen rejects a holder whose lease is over. None
        without."""
        return int(lib.redlock_lock_fence(self._handle)) or None

    @property
    def slot(self) -> Optional[int]:
        """Which of the permits is held or was last, from 0, with the option permits: at most one holder has it at a
        time. None without."""
        slot = int(lib.redlock_lock_slot(self._handle))
        return slot if slot >= 0 else None

    @property
    def attempts(self) -> int:
        """How many attempts the last acquire() or extend() has made. Local, no I/O."""
        return int(lib.redlock_lock_attempts(self._handle))

    @property
    def remaining(self) -> float:
        """Seconds that the lock is held without an extension; 0.0 if it is not held. Local, no I/O."""
        if self._is_replaced():
            return 0.0
        return float(lib.redlock_lock_validity_ms(self._handle) / 1000)

    @property
    def lost(self) -> bool:
        """True from the moment at which a held lock has expired, whether or not any node answers. Local, no I/O."""
        return bool(self._state() == LOST)

    @property
    def votes(self) -> Dict[str, Vote]:
        """What every node answered to the last operation, by the node's name. Local, no I/O."""
        return votes(self._handle, list(self._client._nodes))

    def owned(self) -> bool:
        """True while the lease runs: no other client can hold the lock now. Local, no I/O."""
        return bool(self._state() == HELD)

    def locked(self) -> bool:
        """True while this object holds the lock, from acquire() to release(), also if the lease has ended; owned()
        says whether it runs. Client.status(resource).held asks the nodes whether anybody holds it. No I/O."""
        return self._holding() is not None

    def check(self) -> None:
        """Returns if the lock is held now; raises Lost, Forked or NotHeld if not. Local, no I/O."""
        state = self._state()
        if state != HELD:
            raise self._not_held(state)

    def _names(self) -> Tuple[Resource, ...]:
        return self._resource if isinstance(self._resource, tuple) else (self._resource,)

    def _forked(self) -> None:
        """Those who hold it or wait for it are in the parent process."""
        this_process.notice_fork()
        self._generation = this_process.generation
        if self._client._registered != self._generation:
            self._client._register()
        self._line, self._extensions, self._expired = [], [], None

    def _is_replaced(self) -> bool:
        """Whether the hold of whoever calls has expired, and somebody has acquired the lock since."""
        if not self._expired:
            return False
        me, holding = self._client._current(), holder(self._line)
        return me in self._expired and (holding is None or bool(holding.owner is not me))

    def _holding(self) -> Optional[Ticket]:
        """The ticket that holds the lock; also if the lease has ended, until the release."""
        if self._generation != generation():
            self._forked()
        return holder(self._line)

    def _state(self) -> Any:
        return LOST if self._is_replaced() else _state(self._handle)

    def _not_held(self, state: int) -> RedlockError:
        name = self._resource
        if state == LOST:
            return self._lost()
        if state == lib.REDLOCK_STATE_FORKED:
            return self._error(lib.REDLOCK_FORKED, f"the lock on {name!r} belongs to the parent process")
        if state == ADOPTED:
            return NotHeld(f"the token for {name!r} is not confirmed yet: extend() confirms it", resource=name)
        if state == lib.REDLOCK_STATE_INVALID:
            return self._error(lib.REDLOCK_INVALID)
        return NotHeld(f"the lock on {name!r} is not held", resource=name)

    def _lost(self) -> RedlockError:
        if self._is_replaced():
            reason, words = "expired", ": its lease ended, and it was acquired again since"
        else:
            reason, words = _LOSSES.get(lib.redlock_lock_loss(self._handle), ("", ""))
        said, answers = f"the lock on {self._resource!r} was lost{words}", self.votes
        if reason == "gone":
            said += ": " + ", ".join(f"{node} {vote.words}" for node, vote in answers.items())
        failure = Lost(said, resource=self._resource, votes=answers)
        failure.reason = reason
        return failure

    def _error(self, status: int, message: str = "") -> RedlockError:
        if status == lib.REDLOCK_INVALID and not message:
            return self._invalid()
        if status == lib.REDLOCK_CANCELLED:
            this_process.stay_if_leaving()
            if self._client.closed:
                message = f"the client was closed while {self._resource!r} was waited for"
        if status == lib.REDLOCK_LOST:
            return self._lost()
        words = message or spelled(text(lib.redlock_lock_message_parts, self._handle))
        failure = error(status, words, self._resource, self.votes)
        if isinstance(failure, Busy):
            failure.held_by = held_by(self._handle)
        return failure

    def _extend_error(self, status: int, ttl: Any) -> RedlockError:
        if status != lib.REDLOCK_INVALID or self._client.closed:
            return self._error(status)
        hint = seconds_hint(ttl, self._max_ttl_s())
        return InvalidOption(f"extend({ttl!r}): {self._why_invalid()}{hint}", resource=self._resource)

    def _invalid(self) -> RedlockError:
        if self._client.closed:
            this_process.stay_if_leaving()
            return Closed("the client is closed", resource=self._resource)
        return InvalidOption(self._why_invalid(), resource=self._resource)

    def _why_invalid(self) -> str:
        return contradiction(text(lib.redlock_lock_message_parts, self._handle))

    def _max_ttl_s(self) -> float:
        return seconds_of(text(lib.redlock_lock_get, self._handle, b"max_ttl_ms"))


_LOSSES = {
    lib.REDLOCK_LOSS_EXPIRED: ("expired", ": its lease expired"),
    lib.REDLOCK_LOSS_GONE: ("gone", ": too many nodes no longer had its token"),
    lib.REDLOCK_LOSS_RESTARTED: ("restarted", ": too many nodes restarted"),
    lib.REDLOCK_LOSS_REFUSED: ("refused", ": too many nodes became ineligible to vote"),
    lib.REDLOCK_LOSS_LIMIT: ("limit", ": max_hold allowed no further renewal"),
    lib.REDLOCK_LOSS_CLOCK: ("clock", ": the clocks of too many nodes were stepped forward"),
    lib.REDLOCK_LOSS_CLOSED: ("closed", ": the client was closed, which released it"),
}

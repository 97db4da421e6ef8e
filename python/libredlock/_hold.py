"""What one hold knows of itself without I/O, and the errors that say so."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any, Callable, NoReturn, Optional, Union
from weakref import ref

from ._core import ffi, lib
from ._errors import Busy, Closed, InvalidOption, Lost, NotHeld, RedlockError, Vote, error
from ._native import held_by, text, votes
from ._options import contradiction, seconds_hint, seconds_of, spelled
from ._process import this_process
from .types import Resource, Resources, Seconds

HELD = lib.REDLOCK_STATE_HELD
ADOPTED = lib.REDLOCK_STATE_ADOPTED
LOST = lib.REDLOCK_STATE_LOST
FREE = lib.REDLOCK_STATE_FREE
FORKED = lib.REDLOCK_STATE_FORKED
OK = lib.REDLOCK_OK
PENDING = lib.REDLOCK_PENDING
BUSY = lib.REDLOCK_BUSY
IN_FLIGHT = lib.REDLOCK_IN_FLIGHT
ACQUIRE = lib.REDLOCK_ACQUIRE
EXTEND = lib.REDLOCK_EXTEND
EXPIRE = lib.REDLOCK_EXPIRE
RELEASE = lib.REDLOCK_RELEASE
WHO = lib.REDLOCK_WHO
AT_ONCE = lib.REDLOCK_AT_ONCE
PAUSE_S = 0.0005  # before it is asked again whether another act has ended; then it doubles
NULL = ffi.NULL


class Facts:
    """What a hold says of itself, and a lock of the caller's hold."""

    _resource: Union[Resource, tuple[Resource, ...]]

    def _mine(self) -> HoldBase:
        """That hold; NotHeld without."""
        raise NotImplementedError

    def _mine_if_any(self) -> Optional[HoldBase]:
        raise NotImplementedError

    @property
    def resource(self) -> Resources:
        """What is locked, as it was given; a tuple if it is several."""
        return self._resource

    @property
    def token(self) -> str:
        """The random value of the lock on the nodes, 40 hexadecimal digits."""
        hold = self._mine()
        return text(hold._token_of, hold._handle)

    @property
    def fence(self) -> Optional[int]:
        """The fencing number, with the option fence: larger than that of every holder before. A store that rejects
        smaller numbers than it has seen rejects a holder whose lease is over. None without."""
        hold = self._mine()
        return int(hold._fence_of(hold._handle)) or None

    @property
    def slot(self) -> Optional[int]:
        """Which of the permits it is, from 0, with the option permits: at most one holder has it at a time. None
        without."""
        hold = self._mine()
        slot = int(hold._slot_of(hold._handle))
        return slot if slot >= 0 else None

    @property
    def attempts(self) -> int:
        """How many attempts the acquisition or the last extend() has made. Local, no I/O."""
        hold = self._mine()
        return int(hold._attempts_of(hold._handle))

    @property
    def votes(self) -> dict[str, Vote]:
        """What every node answered to the last operation, by the node's name. Local, no I/O."""
        return self._mine()._votes()

    @property
    def remaining(self) -> float:
        """Seconds that the lock is held without an extension; 0.0 if it is not held. Local, no I/O."""
        hold = self._mine_if_any()
        return float(hold._validity_ms_of(hold._handle) / 1000) if hold is not None and hold._is_owned() else 0.0

    @property
    def lost(self) -> bool:
        """True from the moment from which somebody else may hold the lock, though it was not released: its lease has
        ended, the client was closed, the event loop has ended, or this is a child of the process that holds it. Local,
        no I/O."""
        hold = self._mine_if_any()
        return hold is not None and hold._is_lost()

    @property
    def loss(self) -> Optional[str]:
        """Why it was lost, as Lost.reason; None if it was not."""
        hold = self._mine_if_any()
        return hold._reason() if hold is not None and hold._is_lost() else None

    def owned(self) -> bool:
        """True while the lease runs: no other client can hold the lock now. Local, no I/O."""
        hold = self._mine_if_any()
        return hold is not None and hold._is_owned()

    def check(self) -> None:
        """Returns if the lock is held now; raises Lost, Forked or NotHeld if not. Local, no I/O."""
        hold = self._mine()
        if not hold._is_owned():
            raise hold._gone()

    # ---- what it does: told here for both surfaces. In asyncio what waits is awaited --------------------------------

    def release(self) -> Any:
        """Gives the lock up; nodes that do not answer are cleaned up later and are no error.

        Raises NotHeld if it was released already, Lost if its lease had ended or a majority of the nodes no longer had
        it (the deletes are sent all the same), Forked in a child of the process that holds it.
        """

    def extend(self, ttl: Optional[Seconds] = None) -> Any:
        """Prolongs the lock to `ttl` seconds from now (None: the option); returns `remaining`. It never shortens a
        lease.

        Raises Lost if it is gone, for good; NoQuorum if a majority did not confirm (it stays held for `remaining`);
        Limit if max_extensions or max_hold is used up; NotHeld if it was released.
        """

    def expire(self, ttl: Optional[Seconds] = None) -> Any:
        """Sets the lease to `ttl` seconds from now (None: the option), whether that is longer or shorter, and
        renewals go on with it until the next expire(), also after an extend(). Returns `remaining`. Otherwise as
        extend(), but it does not count as an extension."""

    def downgrade(self, ttl: Optional[Seconds] = None) -> Any:
        """Continues as a reader: from the call on others may hold the lock together with this one, as with the option
        shared, and nobody alone until they all have released it. Otherwise as extend(). There is no way back but a
        release.

        Raises what extend() raises: it shares the lock even if too few nodes answered.
        """

    def detach(self) -> Any:
        """Hands the lock over: returns its token for Client.adopt() and forgets it. Local, no I/O."""


class HoldBase(Facts):
    """One native handle, which no other hold ever gets. It refers to no Lock."""

    _client: Any
    _handle: Any = NULL
    _owner: Any = ref(set())  # a weak reference to a thread, a greenlet or a task: the same one for the same owner
    _context: Any
    _block: Any = None  # entered last and not left: its frame as a number, the code, the count then, the block around
    _count = 1  # how often its owner has acquired it, of a re-entrant lock
    _has_ended = True  # it was released or detached; or it is not made yet, or asks the nodes only
    _loss = ""  # the reason, once the loss is known here; the core knows it before
    _renew: Optional[bool] = None  # what the options say; None: blocks renew
    _on_lost: Optional[Callable[[Any], object]] = None
    _cancel_on_lost = False

    # What a hold asks of its engine; the one in memory has the same.
    _state_of = lib.redlock_lock_state
    _validity_ms_of = lib.redlock_lock_validity_ms
    _fence_of = lib.redlock_lock_fence
    _slot_of = lib.redlock_lock_slot
    _attempts_of = lib.redlock_lock_attempts
    _loss_of = lib.redlock_lock_loss
    _token_of = lib.redlock_lock_token
    _parts_of = lib.redlock_lock_message_parts
    _get_of = lib.redlock_lock_get
    _set_of = lib.redlock_lock_set
    _detach_of = lib.redlock_lock_detach
    _cancel_of = lib.redlock_lock_cancel
    _start_of = lib.redlock_lock_start
    _adopt_of = lib.redlock_lock_adopt_bytes
    _held_by_of: Any = staticmethod(held_by)

    def _mine(self, owner: Any = None) -> HoldBase:
        return self

    def _mine_if_any(self) -> Optional[HoldBase]:
        return self

    def locked(self) -> bool:
        """True until the release, also if the lease has ended; owned() says whether it runs. Local, no I/O."""
        return not self._has_ended and self._state() in (HELD, ADOPTED, LOST)

    def _is_owned(self) -> bool:
        return not self._has_ended and self._state() == HELD

    def _is_lost(self) -> bool:
        state = self._state()  # before, as a release in another thread sets the mark first
        if self._has_ended:  # or is about to find out that it was lost
            return bool(self._loss) or state in (LOST, FORKED)
        return state not in (HELD, ADOPTED)

    def _votes(self) -> dict[str, Vote]:
        return votes(self._handle, list(self._client._nodes))

    def _state(self) -> int:
        """FREE of what was taken away: by the end of the client or of the event loop."""
        if self._loss or not self._client._is_open:
            return int(FREE)
        state: int = self._state_of(self._handle)
        return state

    def _reason(self) -> str:
        if self._loss:
            return self._loss
        known = _LOSSES.get(self._loss_of(self._handle))
        if known:
            return known[0]
        taken = "closed" if self._client.closed else "gone"  # an adopted token that the nodes did not have
        return {FREE: taken, FORKED: "forked"}.get(self._state(), "")

    def _gone(self) -> RedlockError:
        """Why it is not held."""
        name, state = self._resource, self._state()
        if state == FORKED and not self._has_ended:
            return self._error(lib.REDLOCK_FORKED, f"the lock on {name!r} belongs to the parent process")
        if state == ADOPTED and not self._has_ended:
            return NotHeld(f"the token for {name!r} is not confirmed yet: extend() confirms it", resource=name)
        if self._is_lost():
            return self._lost()
        return NotHeld(f"the lock on {name!r} is not held: this hold of it has ended", resource=name)

    def _lost(self) -> Lost:
        reason, answers = self._reason(), self._votes()
        if reason == "closed":
            this_process.stay_if_leaving()
        said = f"the lock on {self._resource!r} was lost{_LOSS_WORDS.get(reason, '')}"
        if reason == "gone":
            said += ": " + ", ".join(f"{node} {vote.words}" for node, vote in answers.items())
        failure = Lost(said, resource=self._resource, votes=answers)
        failure.reason = reason
        return failure

    def _error(self, status: int, message: str = "") -> RedlockError:
        if status == lib.REDLOCK_INVALID and not message:
            if not self._client.closed:
                return InvalidOption(self._why_invalid(), resource=self._resource)
            this_process.stay_if_leaving()
            return Closed("the client is closed", resource=self._resource)
        if status == lib.REDLOCK_CANCELLED:
            this_process.stay_if_leaving()
            if self._client.closed:
                message = f"the client was closed while {self._resource!r} was waited for"
        if status == lib.REDLOCK_LOST:
            return self._lost()
        words = message or spelled(text(self._parts_of, self._handle))
        failure = error(status, words, self._resource, self._votes())
        if isinstance(failure, Busy):
            failure.held_by = self._held_by_of(self._handle)
        return failure

    def _why_invalid(self) -> str:
        return contradiction(text(self._parts_of, self._handle))

    def _max_ttl_s(self) -> float:
        return seconds_of(text(self._get_of, self._handle, b"max_ttl_ms"))

    # ---- what acts have in common -----------------------------------------------------------------------------------

    def _check_act(self, act: str) -> None:
        """Before it is extended, shared or handed over."""
        if self._has_ended or self._state() not in (HELD, ADOPTED):
            raise self._gone()
        if self._count > 1 and act != "extend":
            words = f"{act}(): {self._resource!r} was acquired {self._count} times; release it until one is left"
            raise InvalidOption(words, resource=self._resource)

    def _judge_act(self, act: str, status: int, ttl: Any) -> float:
        if id(self) in self._client._watched:
            self._foresee_end()
        if self._has_ended:  # by a release meanwhile
            raise self._gone()
        if status == lib.REDLOCK_INVALID and not self._client.closed:
            hint = seconds_hint(ttl, self._max_ttl_s())
            raise InvalidOption(f"{act}({ttl!r}): {self._why_invalid()}{hint}", resource=self._resource)
        if status != OK:
            raise self._gone() if self._is_lost() else self._error(status)
        return self.remaining

    def _share(self) -> int:
        """It is a reader's from now on, unless another act is in flight."""
        self.check()
        if text(self._get_of, self._handle, b"shared") == "true":
            return int(OK)
        return int(self._set_of(self._handle, b"shared", b"true"))

    def _begin_to_renew(self) -> bool:
        """For a block, unless it was said otherwise. Whether it is an extension that begins it."""
        self._check_act("extend")
        if self._renew is not None or self._state() not in (HELD, ADOPTED):
            return bool(self._state() == ADOPTED)
        self._set_of(self._handle, b"renew", b"true")
        return True

    def detach(self) -> str:
        self._check_act("detach")
        token = self.token
        try:
            self._has_ended = True
            status = self._detach_of(self._handle)
            if status:
                raise self._lost() if status == lib.REDLOCK_LOST else self._error(status)
        except BaseException:
            self._abandon_release()
            raise
        self._unwatch()
        self._count = 0  # a block has nothing to release any more
        return token

    def _begin_release(self) -> bool:
        """Whether it is the outermost one; raises what makes it impossible, and then changes nothing."""
        if self._on_lost is not None and not self._has_ended:
            self._tell_if_lost()
        if self._count > 1:
            self._count -= 1
            if self._is_lost():
                raise self._lost()
            return False
        state = self._state()  # before, as another thread's release sets the mark first
        if self._has_ended or state == FORKED:
            raise self._gone()
        if state == FREE:
            self._lose()
            raise self._lost()
        if state == LOST:
            self._loss = self._reason()  # the core has it as free while the release is in flight
        return True

    def _judge_release(self, status: int) -> None:
        if status == lib.REDLOCK_NO_QUORUM or status == lib.REDLOCK_REFUSED_CONFIG:
            return  # an adopted token on nodes that are away; their keys end with their TTL
        if status == lib.REDLOCK_CANCELLED:
            return  # the client, or its event loop, has ended: the deletes are sent all the same
        if status == lib.REDLOCK_LOST or (status == lib.REDLOCK_INVALID and self._client.closed):
            self._lose()
            raise self._lost()
        self._abandon_release()
        raise self._error(status)

    def _lose(self) -> None:
        self._loss = self._reason() or "expired"
        self._end()

    def _end(self) -> None:
        self._has_ended = True
        self._unwatch()

    def _abandon_release(self) -> None:
        """After a release that failed or was interrupted: before it has begun the lock stays held."""
        if not self._loss and self._state_of(self._handle) in (HELD, ADOPTED, LOST):
            self._has_ended = False

    def _abandon(self) -> None:
        """Takes back what a refused or interrupted call has reached, without waiting for the nodes."""
        if self._count > 1:  # the innermost acquisition of several
            self._count -= 1
            return
        self._end()
        self._forget()
        self._client._process()  # a cancel is only a mark: this sends the deletes

    def _forget(self) -> None:
        """Sends the deletes; a release that is cancelled goes on inside the client."""
        self._cancel_of(self._handle)
        state = self._state_of(self._handle)
        if state in (HELD, ADOPTED, LOST) and self._start_of(self._handle, RELEASE | AT_ONCE, 0) == OK:
            self._cancel_of(self._handle)

    # ---- blocks -----------------------------------------------------------------------------------------------------

    def _is_left_to_release(self, count: int) -> bool:
        """At the end of a block that began when it was acquired so often: not if it was handed over. What a block has
        released already it does not take from the blocks around it."""
        if 0 < self._count < count and self._count <= len(blocks(self)) and not self._has_ended:
            words = f"the lock on {self._resource!r} is held by the outer block: this one has released it already"
            raise NotHeld(words, resource=self._resource)
        return self._count > 0

    def _enter_body(self) -> None:
        """A block begins. libredlock.otel has more to do here, and at its end."""

    _ends: tuple[type[RedlockError], ...] = ()
    """What ends a block without an error: the loss of a term."""

    def _is_its_end(self, failure: BaseException) -> bool:
        """Whether the block of a term has ended because it has seen the loss."""
        return self._ends != () and isinstance(failure, Lost) and failure.resource == self._resource

    def _leaves(self, loss: RedlockError, failure: Optional[BaseException], is_its_end: bool) -> bool:
        """Whether the loss that a block's end has found leaves it. An error of the block itself leaves unchanged, and
        the loss is logged and, from Python 3.11, added to it as a note."""
        if failure is None or is_its_end:
            return not isinstance(loss, self._ends)
        is_left_over = isinstance(failure, GeneratorExit) and getattr(loss, "reason", "") == "closed"
        if is_left_over or this_process.is_leaving:  # there may be no modules any more
            return False
        import logging

        logging.getLogger("libredlock").warning("%s (while %s left the block)", str(loss), type(failure).__name__)
        if hasattr(failure, "add_note"):
            failure.add_note(f"libredlock: {loss}")
        return False

    # ---- its loss ---------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """From now on on_lost is called, with the context variables of whoever acquired it."""
        if self._on_lost is not None:
            self._context = copy_context()
        self._client._watched[id(self)] = ref(self)
        self._foresee_end()
        if not self._client._is_open:  # another thread closes it, and may have told the others before
            self._tell_if_lost()

    def _foresee_end(self) -> None:
        """It is watched, and the end of its lease may have moved."""

    def _unwatch(self) -> None:
        if self._client._watched:
            self._client._watched.pop(id(self), None)

    def _tell_if_lost(self) -> None:
        """Calls on_lost: whoever takes it off the watch does."""
        if not self._is_lost() or self._state() == FORKED:
            return
        if self._client._watched.pop(id(self), None) is None or self._on_lost is None:
            return
        on_lost, self._on_lost = self._on_lost, None  # a block may put it on the watch again
        try:
            self._context.run(self._call_on_lost, on_lost)
        except Exception:
            self._log_on_lost()

    def _call_on_lost(self, on_lost: Callable[[Any], object]) -> None:
        on_lost(self)

    def _log_on_lost(self) -> None:
        import logging

        logging.getLogger("libredlock").exception("on_lost of %r failed", self._resource)

    def __del__(self) -> None:
        if not self._has_ended:
            self._collect()

    def _collect(self) -> None:
        """It goes out of scope without a release."""
        if self._client._is_open and self._state_of(self._handle) == HELD:
            import warnings

            warnings.warn(f"{self!r} was collected while held; it is released", ResourceWarning, source=self)
        self._end()
        self._handle = NULL  # for coroutines that are collected with it, and later

    def __repr__(self) -> str:
        state = "not held any more" if self._has_ended else _STATES.get(self._state(), "lost")
        left = f", {self.remaining:.3f} s left" if self._is_owned() else ""
        return f"<{type(self).__module__}.{type(self).__qualname__} {self._resource!r} {state}{left}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Hold cannot be pickled or copied: hand it over with detach() and Client.adopt()")


def blocks(hold: HoldBase) -> list[Any]:
    """That were entered with it and not left, the last one first."""
    found, block = [], hold._block
    while block is not None:
        found.append(block)
        block = block[3]
    return found


_LOSSES = {
    lib.REDLOCK_LOSS_EXPIRED: ("expired", ": its lease expired"),
    lib.REDLOCK_LOSS_GONE: ("gone", ": too many nodes no longer had its token"),
    lib.REDLOCK_LOSS_RESTARTED: ("restarted", ": too many nodes restarted"),
    lib.REDLOCK_LOSS_REFUSED: ("refused", ": too many nodes became ineligible to vote"),
    lib.REDLOCK_LOSS_LIMIT: ("limit", ": max_hold allowed no further renewal"),
    lib.REDLOCK_LOSS_CLOCK: ("clock", ": the clocks of too many nodes were stepped forward"),
    lib.REDLOCK_LOSS_CLOSED: ("closed", ": the client was closed, or its event loop, and released it"),
}
_LOSS_WORDS = dict(_LOSSES.values())

_STATES = {HELD: "held", LOST: "lost", ADOPTED: "adopted", FORKED: "held by the parent process"}

"""A lock: a name with options, and the table of the holds that were acquired by it."""

from __future__ import annotations

import sys
from typing import Any, Callable, Mapping, NoReturn, Optional, Sequence

from ._core import ffi, lib
from ._errors import Busy, Closed, InvalidOption, NoMemory, NotHeld, RedlockError
from ._hold import ADOPTED, BUSY, FORKED, HELD, LOST, NULL, Facts, HoldBase, blocks
from ._options import LOCK_KEYWORDS, pair, seconds_hint, set_lock, unknown
from ._process import generation, this_process
from .types import Resources, Seconds

OPTIONS_KEPT = 1000
LOST_KEPT = 1000
ENDED_KEPT = 8
LONGEST_NAME = 512 << 20

# For so long the nodes are asked who holds a busy lock.
HOLDER_LIMIT_MS = 250

# After this time a thread or task that waits for its own hold is warned.
WARN_AFTER_MS = lib.WARN_AFTER_MS

Checked = tuple[bytes, Optional[bool], bool]
"""Options as names and values for the core; renew; and whether several may hold such a lock."""

now_ms = lib.redlock_now_ms
_make = lib.make_lock
_free = lib.redlock_lock_free
_owned = ffi.gc  # freed in C: what a signal handler raises in __del__ cannot come before it


def _names(resource: Any) -> list[bytes]:
    """Of several resources; InvalidOption or TypeError for what cannot be locked."""
    names = resource if isinstance(resource, (list, tuple)) else [resource]
    if not names:
        raise InvalidOption(f"resource={resource!r}: takes 1 to 100 resources")
    try:
        return [one if isinstance(one, bytes) else one.encode() for one in names]
    except UnicodeEncodeError as failure:
        raise InvalidOption(f"resource={resource!r}: not encodable as UTF-8 ({failure.reason})") from None
    except AttributeError:
        words = "takes str or bytes, 1 byte to 512 MB, or a list or tuple of them"
        raise TypeError(f"resource={resource!r}: {words}") from None


class LockBase(Facts):
    """It has no native handle. A signal handler may raise between any two steps, so every change of the table is a
    single call of the list, which others see done or not done; there is no mutex that could stay taken."""

    _keywords = LOCK_KEYWORDS | {"on_lost"}
    _implied: Mapping[str, Any] = {}  # options that nobody has written
    _hold_type: Any = HoldBase
    _sharer = "thread"
    _refused: Any = None
    _given: Any

    def __init__(
        self, client: Any, resource: Resources, options: Mapping[str, Any], function: str,
        on_lost: Optional[Callable[[Any], object]], cancel_on_lost: bool = False,
    ) -> None:
        self._client = client
        self._resource = tuple(resource) if isinstance(resource, list) else resource
        self._on_lost, self._cancel_on_lost = on_lost, cancel_on_lost
        self._holds: list[HoldBase] = []  # the newest first
        self._more: Sequence[bytes] = ()
        self._type = self._hold_type  # each acquisition finds it in the object at once
        try:
            self._name = resource if isinstance(resource, bytes) else resource.encode()  # type: ignore[union-attr]
        except (AttributeError, UnicodeEncodeError):
            self._name, *self._more = _names(resource)
        # locks are made with the same few options over and over: the client remembers those that it has checked
        key = (*options.items(), *map(type, options.values()))
        try:
            known = client._settings.get(key)
        except TypeError:  # a value that is refused, since none that is allowed is unhashable
            known = None
        if known is None or self._more or not client._is_open or not 0 < len(self._name) <= LONGEST_NAME:
            known = self._checked(options, function, key)
        settings, self._renew, self._admits_several = known
        self._recipe = len(self._name).to_bytes(8, sys.byteorder) + self._name + settings  # as make_lock() takes it
        if on_lost is not None:
            self._check_on_lost(on_lost)
        if cancel_on_lost is not False and cancel_on_lost is not True:
            raise TypeError(f"cancel_on_lost={cancel_on_lost!r}: takes True or False")
        self._is_plain = self._renew is None and on_lost is None and not cancel_on_lost

    def _check_on_lost(self, on_lost: Any) -> None:
        if not callable(on_lost):
            raise TypeError(f"on_lost={on_lost!r}: takes a function of the hold, or None")

    def _checked(self, options: Mapping[str, Any], function: str, key: Any) -> Checked:
        """Step by step, each of which may be refused in words, on a handle that acquires nothing."""
        client = self._client
        trial = HoldBase()
        trial._client, trial._resource = client, self._resource
        handle = trial._handle = _owned(lib.redlock_lock_new(client._opened(), self._name, len(self._name)), _free)
        if not handle:
            raise NoMemory("no memory for a lock", resource=self._resource)
        if lib.redlock_lock_state(handle) == lib.REDLOCK_STATE_INVALID:
            raise trial._error(lib.REDLOCK_INVALID)
        for another in self._more:
            status = lib.redlock_lock_add(handle, another, len(another))
            if status:
                raise trial._error(status)
        for keyword in options:
            if keyword not in LOCK_KEYWORDS:
                raise unknown(function, keyword, self._keywords)
        for keyword, value in options.items():
            set_lock(handle, self._resource, keyword, value)
        if lib.redlock_lock_check(handle) == lib.REDLOCK_INVALID:
            written = (keyword for keyword in options if keyword not in self._implied)
            given = ", ".join(f"{keyword}={options[keyword]!r}" for keyword in written)
            hint = seconds_hint(options.get("ttl"), trial._max_ttl_s())
            raise InvalidOption(f"{function}({given}): {trial._why_invalid()}{hint}", resource=self._resource)
        if len(client._settings) >= OPTIONS_KEPT:
            client._settings.clear()
        made = b"".join(b"%b\0%b\0" % pair(keyword, value) for keyword, value in options.items()) + b"\0"
        several = client._admits_several or bool(options.get("shared")) or options.get("permits", 1) != 1
        checked: Checked = made, options.get("renew", client._renew), several
        client._settings[key] = checked
        return checked

    def _of_kind(self) -> dict[str, int]:
        """What it says itself of permits, for client.status()."""
        words = self._recipe[8 + len(self._name):].split(b"\0")
        given = dict(zip(words[::2], words[1::2]))
        return {name: int(given[name.encode()]) for name in ("permits", "slot") if name.encode() in given}

    def _new(self, is_block: bool = False) -> Any:
        """A hold that has acquired nothing yet. This is on the way of every acquisition: what a hold has by itself is
        not set, and what is called is not looked up as a method."""
        client, kind = self._client, self._type
        renews = is_block and self._renew is None  # blocks do, unless it was said otherwise
        process = client._registered
        hold = kind()
        hold._client = client
        hold._resource = self._resource
        hold._block = None
        hold._count = 1
        if not self._is_plain:
            hold._renew, hold._on_lost, hold._cancel_on_lost = self._renew, self._on_lost, self._cancel_on_lost
        if renews:
            hold._renew = True
        made = _make(client._handle, process, self._recipe, renews)
        hold._handle = _owned(made, _free)
        hold._has_ended = False
        return hold if made and not self._more else self._completed(hold, is_block, process)

    def _completed(self, hold: Any, is_block: bool, process: int) -> Any:
        """Of several resources, or the first one of a process; raises what there is no handle for."""
        for another in self._more:
            if hold._handle and lib.redlock_lock_add(hold._handle, another, len(another)):
                hold._handle = NULL
        if hold._handle:
            return hold
        hold._has_ended = True
        if process != generation():
            self._client._register()
            return LockBase._new(self, is_block)
        if self._client.closed:
            this_process.stay_if_leaving()
            raise Closed("the client is closed", resource=self._resource)
        raise NoMemory("no memory for a lock", resource=self._resource)

    def _new_probe(self) -> Any:
        """What asks the nodes, and acquires nothing."""
        probe = self._new()
        probe._has_ended = True
        return probe

    def _adopt(self, token: str) -> Any:
        if not isinstance(token, str):
            raise TypeError(f"token={token!r}: takes a str, as detach() gives it")
        try:
            value = token.encode("utf-8")
        except UnicodeEncodeError as failure:
            raise ValueError(f"token={token!r}: cannot be written as UTF-8: {failure.reason}") from None
        hold = self._new()
        status = hold._adopt_of(hold._handle, value, len(value))
        if status:
            raise hold._error(status)
        if hold._on_lost is not None:
            hold._watch()
        return hold

    # ---- whose hold -------------------------------------------------------------------------------------------------

    def _granted(self, hold: Any, owner: Any) -> None:
        """It is the newest of its owner from now on."""
        hold._owner = owner
        if self._holds:
            self._tidy(owner)
        self._holds.insert(0, hold)
        if self._on_lost is not None:
            hold._watch()

    def _give_up(self, owner: Any) -> None:
        """Deletes the keys that lost holds of the owner, and of those that have ended, have left: they outlast the
        lease by the drift of clocks. And completes its releases of which signals have cut off the call and its
        repair."""
        for hold in self._holds.copy():
            if hold._has_ended and hold._owner is owner and hold._state() in (HELD, ADOPTED):
                hold._forget()
            if not hold._has_ended and self._succeeds(owner, hold) and hold._state() == LOST:
                hold._loss = hold._reason()
                hold._forget()

    def _tidy(self, owner: Any) -> None:
        """Takes off what has ended, and what the owner has lost, or one that has ended: it has acquired an exclusive
        lock again."""
        ended = 0
        for hold in self._holds.copy():
            ended += hold._has_ended
            if hold._has_ended:  # a block that has not been left yet will look for it, unless a signal has cut it off
                is_over = hold._block is None or ended > ENDED_KEPT
            else:
                is_left = hold._block is None and self._succeeds(owner, hold)
                is_over = (is_left and hold.lost) or (len(self._holds) >= LOST_KEPT and not hold.owned())
            if is_over:
                self._forget(hold, True)

    def _succeeds(self, owner: Any, hold: Any) -> bool:
        """Whether the owner, by its next acquisition, is done with what was lost."""
        return not self._admits_several and (hold._owner is owner or self._is_over(hold._owner()))

    def _forget(self, hold: Any, is_over: bool = False) -> None:
        """After a release, unless a block will look for it."""
        if is_over or (hold._has_ended and hold._block is None):
            try:
                self._holds.remove(hold)
            except ValueError:
                pass

    def _abandon(self, hold: Any) -> None:
        hold._abandon()
        if hold._has_ended:
            self._forget(hold, True)

    def _own(self, owner: Any, takes_lost: bool = True) -> Optional[HoldBase]:
        """The newest of the owner's holds, or one whose owner has ended; None without."""
        for hold in self._holds.copy():
            if hold._owner is owner and not hold._has_ended:
                return hold
        live = [hold for hold in self._holds.copy() if not hold._has_ended]
        if len(live) == 1 and self._is_over(live[0]._owner()) and (takes_lost or not live[0].lost):
            if owner is not None:
                live[0]._owner = owner
            return live[0]
        return None

    def _is_over(self, owner: Any) -> bool:
        """Whether a thread, a greenlet or a task has ended."""
        return owner is None or bool(getattr(owner, "dead", False))

    def _mine(self, owner: Any = None) -> HoldBase:
        """The caller's hold; NotHeld without."""
        hold = self._own(self._client._current() if owner is None else owner)
        if hold is None:
            raise self._not_mine()
        return hold

    def _mine_if_any(self) -> Optional[HoldBase]:
        return self._own(self._client._current())

    def _not_mine(self) -> NotHeld:
        name = self._resource
        for hold in self._holds.copy():
            if hold.owned():
                words = f"the lock on {name!r} is held by another {self._sharer}, {self._called(hold._owner())}"
                words += f", for {hold.remaining:.1f} s more; any {self._sharer} may release the Hold itself"
                return NotHeld(words, resource=name)
        return NotHeld(f"the lock on {name!r} is not held", resource=name)

    def _called(self, owner: Any) -> str:
        """The name of a thread, a greenlet or a task."""
        name = getattr(owner, "get_name", None)
        return str(name()) if name is not None else str(owner)

    def _again(self, owner: Any) -> Any:
        """The hold that its owner takes once more, of a re-entrant lock; no I/O. What another has lost and left is no
        loss of its own."""
        hold = self._own(owner, False)
        if hold is None or hold._state() == FORKED:
            return None
        if hold.lost:
            raise hold._lost()
        count = hold._count
        try:
            hold._count = count + 1
            return hold
        except BaseException:  # of a signal handler
            hold._count = count
            raise

    # ---- blocks -----------------------------------------------------------------------------------------------------

    def _begin_block(self, hold: Any, at: int, code: Any) -> None:
        around = hold._block
        try:
            hold._block = at, code, hold._count, around
            hold._enter_body()
        except BaseException:  # of a signal handler, for example: the block does not begin
            hold._block = around
            self._abandon(hold)
            raise

    def _left(self, frame: Any) -> Any:
        """The hold of the block that a frame leaves, and which of its acquisitions that is."""
        at, code = id(frame), frame.f_code
        for hold in self._holds.copy():
            block = hold._block
            if block is not None and block[0] == at and block[1] is code:
                hold._block = block[3]
                return hold, block[2]
        return self._left_elsewhere(frame, at, code)

    def _left_elsewhere(self, frame: Any, at: int, code: Any) -> Any:
        """The same of one within which others were entered, and of one that was entered elsewhere, by an ExitStack for
        example: the newest of the owner's that no frame on a stack will look for, or else the only one of that kind."""
        holds = self._holds.copy()
        for hold in holds:
            for block in blocks(hold):
                if block[0] == at and block[1] is code:
                    hold._block = _without(block, hold._block)
                    return hold, block[2]
        owner, alive = self._client._current(), set()
        has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
        for one in sys._current_frames().values() if has_gil else [frame]:  # of a thread that runs they may not be read
            while one is not None:
                alive.add((id(one), one.f_code))
                one = one.f_back
        entered = [hold for hold in holds if hold._block is not None and hold._block[:2] not in alive]
        own = [hold for hold in entered if hold._owner is owner]
        if not own and not has_gil:  # another thread's: those of the module that leaves it, contextlib for example
            entered = [hold for hold in entered if hold._block[1].co_filename == code.co_filename]
        if not own and len(entered) != 1:
            return self._mine(owner), 1
        left = (own or entered)[0]
        block, left._block = left._block, left._block[3]
        return left, block[2]

    # ---- what it does and says, told here for both surfaces ---------------------------------------------------------

    def acquire(self, blocking: bool = True, timeout: Seconds = -1) -> Any:
        """Takes the lock: a Hold, which is always true, or False if others hold it at the end of the wait.

        timeout: seconds to wait; -1 means the option `wait`.
        Raises NoQuorum, RefusedConfig or TimedOut if the nodes gave no verdict, Cancelled if the client was closed.
        The lock is not renewed, unless the option renew=True says so: see `remaining` and extend().
        """

    def take(self, blocking: bool = True, timeout: Seconds = -1) -> Any:
        """As acquire(), but raises Busy if others hold the lock at the end of the wait."""

    def status(self) -> Any:
        """Client.status() of what it locks: who holds it, by whichever program."""

    @property
    def refused(self) -> Optional[Busy]:
        """Why the last acquire() by this object that returned False did so, with `votes`; else None. Its `held_by` is
        None: only take() and blocks ask who holds the lock."""
        hold = self._refused
        return None if hold is None else self._refusal(hold)  # type: ignore[return-value]

    def locked(self) -> bool:
        """True while anybody holds the lock by this object, from acquire() to release(), also if the lease has ended.
        Client.status(resource).held asks the nodes whether anybody holds it at all. Local, no I/O."""
        return any(hold.locked() for hold in self._holds.copy())

    def detach(self) -> str:
        hold = self._mine()
        token: str = hold.detach()
        self._forget(hold)
        return token

    # ---- what is refused --------------------------------------------------------------------------------------------

    def _refusal(self, hold: Any, status: int = BUSY) -> RedlockError:
        words, owner = "", self._client._current()
        if status == BUSY and not self._admits_several:
            owners = [other._owner for other in self._holds.copy() if other.owned()]
            if owner in owners:
                words = f"this {self._sharer} holds {self._resource!r} already: a Lock is not re-entrant"
            elif owners:
                words = f"another {self._sharer} of this process holds {self._resource!r}"
        return hold._error(status, words)  # type: ignore[no-any-return]

    def _waits_for_itself(self, owner: Any) -> bool:
        return not self._admits_several and any(hold._owner is owner and hold.owned() for hold in self._holds.copy())

    def __repr__(self) -> str:
        held = [hold for hold in self._holds.copy() if hold.locked()]
        state = "not held here" if not held else "held" if any(hold.owned() for hold in held) else "lost"
        return f"<{type(self).__module__}.{type(self).__qualname__} {self._resource!r} {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Lock cannot be pickled or copied: hand it over with detach() and Client.adopt()")


def _without(block: Any, last: Any) -> Any:
    """The blocks but for one."""
    return block[3] if last is block else (*last[:3], _without(block, last[3]))


def warn_of_itself(who: str, what: str) -> None:
    import logging

    words = "this %s waits for %s, which it holds itself: a Lock is not re-entrant"
    logging.getLogger("libredlock").warning(words, who, what)


def shared(client: Any, kind: Any, resource: Any, options: Any, *more: Any) -> Any:
    """The one re-entrant lock of a client on a resource, as long as somebody has it."""
    key = resource.encode("utf-8", "surrogatepass") if isinstance(resource, str) else resource
    if not isinstance(key, bytes):
        raise TypeError(f"rlock({resource!r}): takes one resource, str or bytes")
    with client._mutex:
        known = client._rlocks.get(key)
        if known is None:
            client._rlocks[key] = lock = kind(client, resource, options, "rlock", *more)
            lock._given = options, more
            return lock
    if known._given != (options, more):
        raise InvalidOption(f"rlock({resource!r}): it exists already, with other options", resource=resource)
    return known


calling_frame = sys._getframe  # its id and code tell it from all others while it lives, and from most of later ones

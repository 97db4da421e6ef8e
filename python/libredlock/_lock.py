"""What locks of both surfaces have in common: how they are made, handed over and told of their loss."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, NoReturn, Optional, Sequence

from ._core import ffi, lib
from ._errors import InvalidOption, NoMemory, RedlockError
from ._facts import ADOPTED, FREE, HELD, LOST
from ._line import Shared
from ._native import text
from ._options import LOCK_KEYWORDS, pair, seconds_hint, set_lock, unknown
from ._process import generation
from ._queue import Ticket
from .types import Resources

OPTIONS_KEPT = 1000

# A single attempt does not wait for slow nodes to learn who holds the lock.
HOLDER_LIMIT_MS = 250

NULL = ffi.NULL
_state = lib.redlock_lock_state
_free = lib.redlock_lock_free
_owned = ffi.gc  # freed in C: what a signal handler raises in __del__ cannot come before it
_new = lib.redlock_lock_new
_make = lib.make_lock
_set = lib.redlock_lock_set


def _unusable(resource: Resources, failure: Exception) -> Exception:
    if isinstance(failure, UnicodeEncodeError):
        return InvalidOption(f"resource={resource!r}: not encodable as UTF-8 ({failure.reason})")
    return TypeError(f"resource={resource!r}: takes str or bytes, 1 byte to 512 MB, or a list or tuple of them")


def _names(resources: Any) -> List[bytes]:
    """Of a list or tuple; InvalidOption or TypeError for what is in it."""
    if not resources:
        raise InvalidOption(f"resource={resources!r}: takes 1 to 100 resources")
    try:
        return [one if isinstance(one, bytes) else one.encode() for one in resources]
    except (AttributeError, UnicodeEncodeError) as failure:
        raise _unusable(resources, failure) from None


class LockBase(Shared):
    """One holder's handle on a resource, or on several."""

    __slots__ = ("__weakref__",)

    _keywords = LOCK_KEYWORDS | {"on_lost"}
    _tag = 0  # by which the core reports the ends of its operations

    def __init__(
        self,
        client: Any,
        resource: Resources,
        options: Mapping[str, Any],
        function: str,
        on_lost: Optional[Callable[[Any], object]],
    ) -> None:
        """Called by the methods of Client."""
        self._handle = NULL
        self._client = client
        self._resource = tuple(resource) if isinstance(resource, list) else resource
        self._renew = client._renew
        self._renews = False
        self._generation = generation()
        self._line = []
        self._extensions = []
        self._expired = None
        self._on_lost = on_lost
        self._downgraded = False
        more: Sequence[bytes] = ()
        try:
            name = resource if isinstance(resource, bytes) else resource.encode()  # type: ignore[union-attr]
        except (AttributeError, UnicodeEncodeError) as failure:
            if not isinstance(resource, (list, tuple)):
                raise _unusable(resource, failure) from None
            name, *more = _names(resource)
        if client._registered != self._generation:
            client._register()
        # locks are made with the same few options over and over: the client remembers those that it has checked
        key = (*options.items(), *map(type, options.values()))
        try:
            settings = client._settings.get(key)
        except TypeError:  # a value that is refused, since none that is allowed is unhashable
            settings = None
        if settings is not None and not more:
            with client._mutex:
                self._handle = _owned(_make(client._handle, name, len(name), settings, len(settings), self._tag), _free)
        if not self._handle:
            self._make_checked(name, more, options, function, key)
        if "renew" in options:
            self._renew = options["renew"]
        if on_lost is not None:
            self._check_on_lost(on_lost)

    def _check_on_lost(self, on_lost: Any) -> None:
        if not callable(on_lost):
            raise TypeError(f"on_lost={on_lost!r}: takes a function of the lock, or None")

    def _make_checked(
        self, name: bytes, more: Sequence[bytes], options: Mapping[str, Any], function: str, key: Any
    ) -> None:
        """Step by step, each of which may be refused in words."""
        client = self._client
        with client._mutex:
            self._handle = _owned(_new(client._opened(), name, len(name)), _free)
        if not self._handle:
            raise NoMemory("no memory for a lock", resource=self._resource)
        lib.redlock_lock_set_tag(self._handle, self._tag)
        if _state(self._handle) == lib.REDLOCK_STATE_INVALID:
            raise self._error(lib.REDLOCK_INVALID)
        for another in more:
            status = lib.redlock_lock_add(self._handle, another, len(another))
            if status:
                raise self._error(status)
        for keyword in options:
            if keyword not in LOCK_KEYWORDS:
                raise unknown(function, keyword, self._keywords)
        for keyword, value in options.items():
            set_lock(self._handle, self._resource, keyword, value)
        if lib.redlock_lock_check(self._handle) == lib.REDLOCK_INVALID:
            given = ", ".join(f"{keyword}={value!r}" for keyword, value in options.items())
            hint = seconds_hint(options.get("ttl"), self._max_ttl_s())
            raise InvalidOption(f"{function}({given}): {self._why_invalid()}{hint}", resource=self._resource)
        if len(client._settings) >= OPTIONS_KEPT:
            client._settings.clear()
        client._settings[key] = b"".join(b"%b\0%b\0" % pair(keyword, value) for keyword, value in options.items())

    def _tell_if_lost(self) -> None:
        """Calls on_lost, once for a hold."""
        holding, on_lost = self._holding(), self._on_lost
        if on_lost is None or holding is None or hasattr(holding, "is_notified") or _state(self._handle) != LOST:
            return
        holding.is_notified = True
        try:
            self._call_on_lost(on_lost)
        except Exception:
            self._log_on_lost()

    def _call_on_lost(self, on_lost: Callable[[Any], object]) -> None:
        on_lost(self)

    def _log_on_lost(self) -> None:
        import logging

        logging.getLogger("libredlock").exception("on_lost of %r failed", self._resource)

    def _begin_hold(self) -> None:
        """A term of an election begins. libredlock.otel has more to do here, and in the next two."""

    def _leave_hold(self, failure: Optional[BaseException]) -> Any:
        """The term has ended; the result of the release is not known yet."""

    def _end_hold(self, body: Any) -> None:
        """It was released: body is what _leave_hold() returned."""

    def _judge_release(self, status: int) -> None:
        if status == lib.REDLOCK_NO_QUORUM or status == lib.REDLOCK_REFUSED_CONFIG:
            return  # an adopted token on nodes that are away; their keys end with their TTL
        if status == lib.REDLOCK_CANCELLED and self._client.closed:
            return  # closing the client completes it
        raise self._error(status)

    def _unscoped(self) -> None:
        """A plain acquire() after a scoped form: it does not renew."""
        _set(self._handle, b"renew", b"false")
        self._renews = False

    def _share(self) -> None:
        """The hold is a reader's from now on. The caller has waited for extensions."""
        self.check()
        if text(lib.redlock_lock_get, self._handle, b"shared") == "true":
            return
        status = _set(self._handle, b"shared", b"true")
        if status:
            raise self._error(status)
        self._downgraded = True

    def _take_alone(self) -> int:
        """Before an acquisition, after a downgraded hold."""
        status = int(_set(self._handle, b"shared", b"false"))
        self._downgraded = status != lib.REDLOCK_OK
        return status

    def _stop_waiting(self) -> None:
        lib.redlock_lock_cancel(self._handle)

    def _adopt(self, token: str) -> Ticket:
        if not isinstance(token, str):
            raise TypeError(f"token={token!r}: takes a str, as detach() gives it")
        try:
            value = token.encode("utf-8")
        except UnicodeEncodeError as failure:
            raise ValueError(f"token={token!r}: cannot be written as UTF-8: {failure.reason}") from None
        status = lib.redlock_lock_adopt_bytes(self._handle, value, len(value))
        if status:
            raise self._error(status)
        ticket = Ticket()
        ticket.owner = self._client._current()
        self._line.append(ticket)
        return ticket

    def _detach(self) -> str:
        token = self.token
        status = lib.redlock_lock_detach(self._handle)
        if status:
            raise self._not_held(LOST) if status == lib.REDLOCK_LOST else self._error(status)
        holding = self._holding()
        if holding is not None:
            self._leave(holding)
        return token or ""

    def __del__(self) -> None:
        if getattr(self, "_line", None) and _state(self._handle) == HELD:
            import warnings

            warnings.warn(f"{self!r} was collected while held; it is released", ResourceWarning, source=self)
        self._handle = NULL  # for coroutines that are collected with it, and later

    def __repr__(self) -> str:
        state = _STATES.get(_state(self._handle), "invalid")
        left = f", {self.remaining:.3f} s left" if self.owned() else ""
        return f"<{type(self).__module__}.{type(self).__qualname__} {self._resource!r} {state}{left}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Lock cannot be pickled or copied: hand it over with detach() and Client.adopt()")


_STATES = {
    FREE: "not held here",
    HELD: "held",
    LOST: "lost",
    ADOPTED: "adopted",
    lib.REDLOCK_STATE_FORKED: "held by the parent process",
}


def note_loss(failure: BaseException, loss: RedlockError) -> None:
    """The body's own error leaves unchanged; the loss is logged and, from Python 3.11, added to it as a note."""
    import logging

    logging.getLogger("libredlock").warning("%s (while %s left the block)", loss, type(failure).__name__)
    if hasattr(failure, "add_note"):
        failure.add_note(f"libredlock: {loss}")

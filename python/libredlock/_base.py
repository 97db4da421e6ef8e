"""What the synchronous and the asyncio surface have in common: all that does no I/O."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Deque, Dict, Iterable, List, Mapping, NamedTuple, NoReturn, Optional, Union

from ._core import ffi, lib
from ._errors import Closed, InvalidOption, NoMemory, NotHeld, RedlockError, Status, Vote, error
from ._native import node_names, text, votes
from ._options import (
    CLIENT_KEYWORDS,
    LOCK_KEYWORDS,
    contradiction,
    raise_for_client,
    set_client,
    set_lock,
    set_nodes,
    unknown,
)
from ._process import here
from .types import ClientOptions, Resource, Unpack

EVENTS_KEPT = 1000
HELD = lib.REDLOCK_STATE_HELD
ADOPTED = lib.REDLOCK_STATE_ADOPTED
_state = lib.redlock_lock_state


class Report(NamedTuple):
    """Who holds a resource, as the nodes said it at one moment."""

    resource: Resource
    verdict: str
    """"held": one token is on a majority of the nodes; "free": a majority has none; "unclear": neither."""
    token: Optional[str]
    """The holder's token, or None."""
    remaining: Optional[float]
    """Seconds until the holder's majority ends, if nobody extends it; None if nobody holds it."""
    votes: Mapping[str, Vote]
    """Every node's answer by the node's name."""


def report(resource: Resource, answers: Mapping[str, Vote]) -> Report:
    """Counts the answers of an inspection."""
    quorum = len(answers) // 2 + 1
    ttls: Dict[str, List[float]] = {}
    for vote in answers.values():
        if vote.token:
            ttls.setdefault(vote.token, []).append(vote.ttl or 0.0)
    for token, left in ttls.items():
        if len(left) >= quorum:
            return Report(resource, "held", token, sorted(left, reverse=True)[quorum - 1], answers)
    is_free = sum(vote.status == Status.NOT_HELD for vote in answers.values()) >= quorum
    return Report(resource, "free" if is_free else "unclear", None, None, answers)


def _as_bytes(resource: Resource) -> bytes:
    if isinstance(resource, bytes):
        return resource
    if not isinstance(resource, str):
        raise TypeError(f"resource={resource!r}: takes str or bytes, 1 byte to 512 MB")
    try:
        return resource.encode()
    except UnicodeEncodeError as failure:
        raise InvalidOption(f"resource={resource!r}: not encodable as UTF-8 ({failure.reason})") from None


class ClientBase:
    """A set of nodes with the default options of its locks."""

    _handle: Any = ffi.NULL

    def __init__(self, nodes: Union[None, str, Iterable[str]] = None, **options: Unpack[ClientOptions]) -> None:
        self._mutex = threading.RLock()
        self._is_open = False
        self._nodes: Iterable[str] = ()
        self._renew: Optional[bool] = options.get("renew")
        self._events: Deque[Dict[str, Any]] = deque(maxlen=EVENTS_KEPT)
        for keyword in options:
            if keyword not in CLIENT_KEYWORDS:
                raise unknown("Client", keyword, CLIENT_KEYWORDS)
        self._handle = lib.redlock_client_new()
        if not self._handle:
            raise NoMemory("no memory for a client")
        options.setdefault("wait", None)
        for keyword, value in options.items():
            set_client(self._handle, keyword, value)
        set_nodes(self._handle, nodes)
        status = lib.redlock_client_open(self._handle)
        if status:
            raise_for_client(self._handle, status)
        self._is_open = True
        self._nodes = node_names(self._handle)
        here.add(self)

    @property
    def closed(self) -> bool:
        """True after close()."""
        return not self._is_open

    def describe(self) -> Dict[str, Any]:
        """Options, nodes, what each may vote on and why not, counters. Passwords are not in it. No I/O."""
        import json

        with self._mutex:
            description = text(lib.redlock_client_describe, self._opened())
        described: Dict[str, Any] = json.loads(description)
        return described

    def events(self) -> List[Dict[str, Any]]:
        """What happened to the client's nodes and locks, the last 1,000, oldest first.

        Each call takes what the core has queued and logs it under "libredlock". No I/O.
        """
        import json
        import logging

        with self._mutex:
            fresh = []
            while True:
                line = text(lib.redlock_client_event, self._handle)
                if not line:
                    break
                fresh.append(json.loads(line))
            self._events.extend(fresh)
            kept = list(self._events)
        for event in fresh:
            logging.getLogger("libredlock").info("%s", " ".join(f"{name}={event[name]}" for name in event))
        return kept

    def _opened(self) -> Any:
        if not self._is_open:
            raise Closed("the client is closed")
        return self._handle

    def _new_handle(self, resource: Resource) -> Any:
        name = _as_bytes(resource)
        if here.armed != here.generation:
            here.arm()
        with self._mutex:
            handle = lib.redlock_lock_new(self._opened(), name, len(name))
        if not handle:
            raise NoMemory("no memory for a lock", resource=resource)
        return handle

    def _process(self) -> None:
        with self._mutex:
            if self._is_open:
                lib.redlock_client_process(self._handle)

    def _leave(self) -> None:
        """Closes at exit, or from close(): releases what is held within the limit of exit_drain."""
        with self._mutex:
            handle, self._handle, self._is_open = self._handle, ffi.NULL, False
        lib.redlock_client_free(handle)

    def _forked(self) -> None:
        self._mutex = threading.RLock()

    def __del__(self) -> None:
        if self._handle:
            self._leave()

    def __repr__(self) -> str:
        nodes = ", ".join(self._nodes)
        return f"<{type(self).__module__}.{type(self).__qualname__} {nodes if self._is_open else 'closed'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Client cannot be pickled or copied: make one in each process")


class LockBase:
    """One holder's handle on one resource."""

    __slots__ = ("_client", "_handle", "_resource", "_renew", "_renews", "_generation", "__weakref__")

    _keywords = LOCK_KEYWORDS

    def __init__(self, client: ClientBase, resource: Resource, options: Mapping[str, Any], function: str) -> None:
        self._handle = ffi.NULL
        self._generation = here.generation
        self._client = client
        for keyword in options:
            if keyword not in LOCK_KEYWORDS:
                raise unknown(function, keyword, self._keywords)
        self._resource = resource
        self._renew = options.get("renew", client._renew)
        self._renews = False
        self._handle = client._new_handle(resource)
        if _state(self._handle) == lib.REDLOCK_STATE_INVALID:
            raise self._error(lib.REDLOCK_INVALID)
        if options:
            self._set(options, function)

    def _set(self, options: Mapping[str, Any], function: str) -> None:
        for keyword, value in options.items():
            set_lock(self._handle, self._resource, keyword, value)
        if lib.redlock_lock_check(self._handle) == lib.REDLOCK_INVALID:
            given = ", ".join(f"{keyword}={value!r}" for keyword, value in options.items())
            raise InvalidOption(f"{function}({given}): {self._why_invalid()}", resource=self._resource)

    def _why_invalid(self) -> str:
        return contradiction(text(lib.redlock_lock_message, self._handle))

    @property
    def resource(self) -> Resource:
        """What is locked, as it was given."""
        return self._resource

    @property
    def token(self) -> Optional[str]:
        """The random value of the lock that is held or was last, 40 hexadecimal digits; None before."""
        return text(lib.redlock_lock_token, self._handle) or None

    @property
    def remaining(self) -> float:
        """Seconds that the lock is held without an extension; 0.0 if it is not held. Local, no I/O."""
        return float(lib.redlock_lock_validity_ms(self._handle) / 1000)

    @property
    def lost(self) -> bool:
        """True from the moment at which a held lock has lapsed, whether or not any node answers. Local, no I/O."""
        return bool(_state(self._handle) == lib.REDLOCK_STATE_LOST)

    @property
    def votes(self) -> Dict[str, Vote]:
        """What every node answered to the last operation, by the node's name. Local, no I/O."""
        return votes(self._handle, list(self._client._nodes))

    def owned(self) -> bool:
        """True while the lease runs: nobody else can hold the lock now. Local, no I/O."""
        return bool(_state(self._handle) == HELD)

    def check(self) -> None:
        """Returns if the lock is held now; raises Lost, Forked or NotHeld if not. Local, no I/O."""
        state = _state(self._handle)
        if state != HELD:
            raise self._not_held(state)

    def _not_held(self, state: int) -> RedlockError:
        name = self._resource
        if state == lib.REDLOCK_STATE_LOST:
            return self._error(lib.REDLOCK_LOST, f"the lock on {name!r} was lost")
        if state == lib.REDLOCK_STATE_FORKED:
            return self._error(lib.REDLOCK_FORKED, f"the lock on {name!r} belongs to the parent process")
        if state == ADOPTED:
            return NotHeld(f"the token for {name!r} is not confirmed yet: extend() confirms it", resource=name)
        if state == lib.REDLOCK_STATE_INVALID:
            return self._error(lib.REDLOCK_INVALID)
        return NotHeld(f"the lock on {name!r} is not held", resource=name)

    def _error(self, status: int, message: str = "") -> RedlockError:
        if status == lib.REDLOCK_INVALID and not message:
            return self._invalid()
        words = message or text(lib.redlock_lock_message, self._handle)
        return error(status, words, self._resource, self.votes)

    def _invalid(self) -> RedlockError:
        if self._client.closed:
            return Closed("the client is closed", resource=self._resource)
        return InvalidOption(self._why_invalid(), resource=self._resource)

    def _judge_release(self, status: int) -> None:
        if status == lib.REDLOCK_NO_QUORUM or status == lib.REDLOCK_REFUSED_CONFIG:
            return  # an adopted token on nodes that are away; their keys end with their TTL
        raise self._error(status)

    def _state_between_holds(self) -> int:
        """Why there is nothing to release: a loss was told to the release before."""
        state: int = _state(self._handle)
        return state if state == lib.REDLOCK_STATE_FORKED else lib.REDLOCK_STATE_FREE

    def _scoped(self) -> None:
        """Scoped forms renew, unless it was said otherwise."""
        if self._renew is None:
            lib.redlock_lock_set(self._handle, b"renew", b"true")
            self._renews = True

    def _unscoped(self) -> None:
        if self._renew is None:
            lib.redlock_lock_set(self._handle, b"renew", b"false")
            self._renews = False

    def _adopt(self, token: str) -> None:
        if not isinstance(token, str):
            raise TypeError(f"token={token!r}: takes a str, as detach() gives it")
        try:
            value = token.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"token={token!r}: cannot be written as UTF-8: {error.reason}") from None
        status = lib.redlock_lock_adopt_bytes(self._handle, value, len(value))
        if status:
            raise self._error(status)

    def _detach(self) -> str:
        token = self.token
        status = lib.redlock_lock_detach(self._handle)
        if status:
            raise self._error(status)
        return token or ""

    def __del__(self) -> None:
        if not getattr(self, "_handle", None):
            return
        if _state(self._handle) == HELD:
            import warnings

            warnings.warn(f"{self!r} was collected while held; it is released", ResourceWarning, source=self)
        lib.redlock_lock_free(self._handle)

    def __repr__(self) -> str:
        state = _STATES.get(_state(self._handle), "invalid")
        left = f", {self.remaining:.3f} s left" if self.owned() else ""
        return f"<{type(self).__module__}.{type(self).__qualname__} {self._resource!r} {state}{left}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Lock cannot be pickled or copied: hand it over with detach() and Client.adopt()")


_STATES = {
    lib.REDLOCK_STATE_FREE: "free",
    HELD: "held",
    lib.REDLOCK_STATE_LOST: "lost",
    ADOPTED: "adopted",
    lib.REDLOCK_STATE_FORKED: "held by the parent process",
}


def note_loss(failure: BaseException, loss: RedlockError) -> None:
    """The body's own error leaves unchanged; the loss is logged and, from Python 3.11, added to it as a note."""
    import logging

    logging.getLogger("libredlock").warning("%s (while %s left the block)", loss, type(failure).__name__)
    if hasattr(failure, "add_note"):
        failure.add_note(f"libredlock: {loss}")

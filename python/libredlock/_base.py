"""What the synchronous and the asyncio surface have in common: all that does no I/O."""

from __future__ import annotations

from _thread import RLock, allocate_lock
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterable, List, Literal, Mapping, NamedTuple, NoReturn, Optional, Union
from weakref import ref

from ._core import ffi, lib
from ._deprecated import OldNames
from ._errors import Busy, Closed, Holder, InvalidOption, Lost, NoMemory, NotHeld, RedlockError, Vote, error
from ._native import held_by, node_names, text, votes
from ._notify import log
from ._options import (
    CLIENT_KEYWORDS,
    LOCK_KEYWORDS,
    contradiction,
    pair,
    raise_for_client,
    seconds_hint,
    seconds_of,
    set_client,
    set_lock,
    set_nodes,
    unknown,
    with_our_names,
)
from ._process import generation, this_process
from ._queue import LEAVING, Line, Ticket, first, holder, leave
from .types import ClientOptions, Resource, Unpack

EVENTS_KEPT = 1000
OPTIONS_KEPT = 1000
EXPIRIES_KEPT = 1000

# A single attempt does not wait for slow nodes to learn who holds the lock.
HOLDER_LIMIT_MS = 250

# Those who wait in the line look at it again this often: a wake-up that a signal handler cut off is made good for.
LOOK_AGAIN_S = 1.0

# Who waits for what it holds itself is warned after so long.
WARN_AFTER_MS = 1000

HELD = lib.REDLOCK_STATE_HELD
ADOPTED = lib.REDLOCK_STATE_ADOPTED
LOST = lib.REDLOCK_STATE_LOST
FREE = lib.REDLOCK_STATE_FREE
AT_ONCE = lib.REDLOCK_AT_ONCE
NULL = ffi.NULL
_state = lib.redlock_lock_state
_free = lib.redlock_lock_free
_owned = ffi.gc  # freed in C: what a signal handler raises in __del__ cannot come before it
_new = lib.redlock_lock_new
_make = lib.make_lock
_set = lib.redlock_lock_set


class Report(NamedTuple):
    """Who holds a resource, as the nodes said it at one moment."""

    resource: Resource
    verdict: Literal["held", "free", "split", "unknown"]
    """"held": one token is on a majority of the nodes; "free": a majority has no key; "split": neither, attempts are
    in progress or left keys behind; "unknown": too few nodes answered."""
    token: Optional[str]
    """The holder's token, or None."""
    remaining: Optional[float]
    """Seconds until the holder's majority ends, if nobody extends it; None if nobody holds it."""
    votes: Mapping[str, Vote]
    """Every node's answer by the node's name."""
    held_by: Optional[Holder] = None
    """The client that holds it; None if that is not known."""

    @property
    def held(self) -> bool:
        """Whether somebody holds it."""
        return self.verdict == "held"


_VERDICTS: Dict[int, Literal["held", "free", "split", "unknown"]] = {
    lib.REDLOCK_VERDICT_UNKNOWN: "unknown",
    lib.REDLOCK_VERDICT_FREE: "free",
    lib.REDLOCK_VERDICT_HELD: "held",
    lib.REDLOCK_VERDICT_SPLIT: "split",
}


class ClientBase(OldNames):
    """A set of nodes with the default options of its locks."""

    _handle: Any = ffi.NULL

    def __init__(self, nodes: Union[None, str, Iterable[str]] = None, **options: Unpack[ClientOptions]) -> None:
        self._mutex = RLock()  # of threads also where greenlets are: it is never held across a switch
        self._bootstrapping = allocate_lock()
        self._is_open = False
        self._nodes: Iterable[str] = ()
        self._renew: Optional[bool] = options.get("renew")
        self._events: Deque[str] = deque(maxlen=EVENTS_KEPT)
        self._registered = -1  # the generation of processes in which it was used
        self._settings: Dict[Any, bytes] = {}  # names and values for the core, by the options that they were made of
        self._watched: Dict[int, ref[LockBase]] = {}
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
            raise_for_client(self._handle, status, options.get("ttl"))
        self._is_open = True
        self._nodes = node_names(self._handle)
        this_process.add(self)

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

    def metrics(self) -> str:
        """Figures of the client's locks and nodes as OpenMetrics text, for Prometheus. No I/O."""
        with self._mutex:
            return text(lib.redlock_client_metrics, self._opened())

    def events(self) -> List[Dict[str, Any]]:
        """What happened to the client's nodes and locks, the last 1,000, oldest first. No I/O.

        All of it is logged by itself under "libredlock": node_up as INFO, the rest as WARNING.
        """
        import json

        self._tell()
        return [json.loads(line) for line in self._events]

    def _tell(self) -> None:
        """Logs what the core has queued, and calls on_lost of locks that were lost."""
        with self._mutex:
            fresh = []
            while True:
                line = text(lib.redlock_client_event, self._handle)
                if not line:
                    break
                fresh.append(line)
            self._events.extend(fresh)
        for line in fresh:
            log(line)
        for lock in self._watched_locks():
            lock._tell_if_lost()

    def _watched_locks(self) -> List[LockBase]:
        """Held locks that have an on_lost, or a body to cancel."""
        locks = [reference() for reference in list(self._watched.values())]
        return [lock for lock in locks if lock is not None]

    def _opened(self) -> Any:
        if not self._is_open:
            raise Closed("the client is closed")
        return self._handle

    def _register(self) -> None:
        """At the first lock in every process."""
        this_process.notice_fork()
        self._registered = this_process.generation
        this_process.register_exit()

    def _report(self, lock: LockBase, status: int) -> Report:
        """What an inspection found."""
        handle, resource = lock._handle, lock._resource
        answers = votes(handle, list(self._nodes))
        verdict = lib.redlock_lock_verdict(handle)
        if verdict == lib.REDLOCK_VERDICT_UNKNOWN:
            raise error(status, text(lib.redlock_lock_message, handle), resource, answers)
        if verdict != lib.REDLOCK_VERDICT_HELD:
            return Report(resource, _VERDICTS[verdict], None, None, answers)
        ttl_ms = lib.redlock_lock_holder_ttl_ms(handle)
        remaining = float("inf") if ttl_ms == lib.REDLOCK_TTL_ENDLESS else ttl_ms / 1000
        token = text(lib.redlock_lock_holder, handle)
        return Report(resource, "held", token, remaining, answers, held_by(handle))

    def _process(self) -> None:
        with self._mutex:
            if self._is_open:
                lib.redlock_client_process(self._handle)

    def _tell_the_last(self) -> None:
        """Before it closes."""
        if self._is_open and self._registered == this_process.generation:
            self._tell()

    def _take_handle(self) -> Any:
        """Takes the handle away from everybody else; the caller frees it."""
        with self._mutex:
            handle, self._handle, self._is_open = self._handle, ffi.NULL, False
        return handle

    def _leave(self) -> None:
        """Closes at exit, or from close(): releases what is held within the limit of exit_drain."""
        try:
            self._tell_the_last()
        finally:
            lib.redlock_client_free(self._take_handle())

    def _forked(self) -> None:
        self._mutex = RLock()
        self._watched = {}

    def __del__(self) -> None:
        if self._handle:
            self._leave()

    def __repr__(self) -> str:
        nodes = ", ".join(self._nodes)
        return f"<{type(self).__module__}.{type(self).__qualname__} {nodes if self._is_open else 'closed'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Client cannot be pickled or copied: make one in each process")


def _unusable(resource: Resource, failure: Exception) -> Exception:
    if isinstance(failure, UnicodeEncodeError):
        return InvalidOption(f"resource={resource!r}: not encodable as UTF-8 ({failure.reason})")
    return TypeError(f"resource={resource!r}: takes str or bytes, 1 byte to 512 MB")


class LockBase:
    """One holder's handle on one resource."""

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
        "__weakref__",
    )

    _client: Any
    _keywords = LOCK_KEYWORDS | {"on_lost"}
    _sharer = "thread"
    _tag = 0  # what the core tells of the ends of its operations with

    def __init__(
        self,
        client: Any,
        resource: Resource,
        options: Mapping[str, Any],
        function: str,
        on_lost: Optional[Callable[[Any], object]],
    ) -> None:
        """Called by the methods of Client."""
        self._handle = NULL
        self._client = client
        self._resource = resource
        self._renew = client._renew
        self._renews = False
        self._generation = generation()
        self._line: Line = []
        self._extensions: Line = []
        self._expired: Optional[Dict[Any, int]] = None
        self._on_lost = on_lost
        try:
            name = resource if isinstance(resource, bytes) else resource.encode()
        except (AttributeError, UnicodeEncodeError) as failure:
            raise _unusable(resource, failure) from None
        if client._registered != self._generation:
            client._register()
        # locks are made with the same few options over and over: the client remembers those that it has checked
        key = (*options.items(), *map(type, options.values()))
        try:
            settings = client._settings.get(key)
        except TypeError:  # a value that is refused, since none that is allowed is unhashable
            settings = None
        if settings is not None:
            with client._mutex:
                self._handle = _owned(_make(client._handle, name, len(name), settings, len(settings), self._tag), _free)
        if not self._handle:
            self._make_checked(name, options, function, key)
        if "renew" in options:
            self._renew = options["renew"]
        if on_lost is not None:
            self._check_on_lost(on_lost)

    def _check_on_lost(self, on_lost: Any) -> None:
        if not callable(on_lost):
            raise TypeError(f"on_lost={on_lost!r}: takes a function of the lock, or None")

    def _make_checked(self, name: bytes, options: Mapping[str, Any], function: str, key: Any) -> None:
        """Step by step, each of which may be refused in words."""
        client = self._client
        with client._mutex:
            if not client._is_open:
                raise Closed("the client is closed")
            self._handle = _owned(_new(client._handle, name, len(name)), _free)
        if not self._handle:
            raise NoMemory("no memory for a lock", resource=self._resource)
        lib.redlock_lock_set_tag(self._handle, self._tag)
        if _state(self._handle) == lib.REDLOCK_STATE_INVALID:
            raise self._error(lib.REDLOCK_INVALID)
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

    # ---- local facts ------------------------------------------------------------------------------------------------

    @property
    def resource(self) -> Resource:
        """What is locked, as it was given."""
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
        """True while the lease runs: nobody else can hold the lock now. Local, no I/O."""
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

    # ---- the line of those who share the lock -----------------------------------------------------------------------

    def _forked(self) -> None:
        """Those who hold it or wait for it are in the parent process."""
        this_process.notice_fork()
        self._generation = this_process.generation
        if self._client._registered != self._generation:
            self._client._register()
        self._line, self._extensions, self._expired = [], [], None

    def _is_first(self, ticket: Ticket) -> bool:
        """Whether it is a ticket's turn; a hold that has expired is in nobody's way."""
        line = self._line
        holding = holder(line)
        if holding is not None and _state(self._handle) == LOST:
            self._expire(holding)
        return line[0] is ticket

    def _until_expiry(self) -> float:
        left_ms = lib.redlock_lock_validity_ms(self._handle)
        return left_ms / 1000 + 0.001 if left_ms > 0 else LOOK_AGAIN_S

    def _why_queued(self, ticket: Ticket) -> str:
        """Why the end of a wait has found the lock busy: "" leaves it to the core."""
        holding = holder(self._line)
        if first(self._line) is ticket:
            return ""
        if holding is not None and holding.owner is self._client._current():
            return f"this {self._sharer} holds {self._resource!r} already: a Lock is not re-entrant"
        return f"another {self._sharer} of this process holds {self._resource!r}"

    def _warn_of_itself(self) -> None:
        """Whoever waits holds the lock: it gets it when the lease ends, or when somebody else releases it."""
        holding = holder(self._line)
        if holding is not None and holding.owner is self._client._current():
            warn_of_itself(self._sharer, repr(self._resource))

    def _is_unnamed(self, failure: RedlockError) -> bool:
        """Whether a single attempt has found a holder without asking for its name."""
        return isinstance(failure, Busy) and failure.held_by is None and self.attempts == 1

    def _expire(self, ticket: Ticket) -> None:
        """Remembers whose hold has expired, for they may still want to release it."""
        if self._expired is None:
            self._expired = {}
        if len(self._expired) >= EXPIRIES_KEPT:
            self._expired.clear()
        self._unwatch()
        self._expired[ticket.owner] = self._expired.get(ticket.owner, 0) + 1
        self._leave(ticket)

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

    def _held_ticket(self, is_release: bool) -> Ticket:
        """The same for extend() and release(), which raise why there is none."""
        if self._generation != generation():
            self._forked()
        if self._expired and self._is_replaced():
            failure = self._lost()
            if is_release:
                self._forget_expiry()
            raise failure
        try:
            ticket = self._line[0]
            if ticket.owner is not LEAVING:
                return ticket
        except (IndexError, AttributeError):
            pass  # there is none, or it waits
        state = _state(self._handle)
        raise self._not_held(state if state == lib.REDLOCK_STATE_FORKED else FREE)  # a loss was told before

    def _forget_expiry(self) -> None:
        expired, me = self._expired or {}, self._client._current()
        if expired.get(me, 0) > 1:
            expired[me] -= 1
        else:
            expired.pop(me, None)

    def _abandon(self, ticket: Ticket) -> None:
        """Takes back what a refused or interrupted call has reached, without waiting for the nodes."""
        if first(self._line) is ticket:
            ticket.owner = LEAVING
            lib.redlock_lock_cancel(self._handle)
            self._forget_hold()
            self._client._process()  # a cancel is only a mark: this sends the deletes
        self._leave(ticket)

    def _leave(self, ticket: Ticket) -> None:
        leave(self._line, ticket)

    def _abandon_release(self, ticket: Ticket, owner: Any) -> None:
        """After a release that failed or was interrupted: before it has begun the lock stays held."""
        if _state(self._handle) in (HELD, ADOPTED):
            ticket.owner = owner
        else:
            self._leave(ticket)

    def _forget_hold(self) -> None:
        """Sends the deletes; a release that is cancelled goes on inside the client."""
        if _state(self._handle) != HELD:
            return
        lib.redlock_lock_cancel(self._handle)
        if lib.redlock_lock_start(self._handle, lib.REDLOCK_RELEASE | AT_ONCE, 0) == lib.REDLOCK_OK:
            lib.redlock_lock_cancel(self._handle)

    def _watch(self) -> None:
        """Starts to watch for its loss."""
        raise NotImplementedError

    def _unwatch(self) -> None:
        """Stops watching for its loss."""
        raise NotImplementedError

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

    # ---- errors -----------------------------------------------------------------------------------------------------

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
        words = message or with_our_names(text(lib.redlock_lock_message, self._handle))
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
            return Closed("the client is closed", resource=self._resource)
        return InvalidOption(self._why_invalid(), resource=self._resource)

    def _why_invalid(self) -> str:
        return contradiction(text(lib.redlock_lock_message, self._handle))

    def _judge_release(self, status: int) -> None:
        if status == lib.REDLOCK_NO_QUORUM or status == lib.REDLOCK_REFUSED_CONFIG:
            return  # an adopted token on nodes that are away; their keys end with their TTL
        if status == lib.REDLOCK_CANCELLED and self._client.closed:
            return  # closing the client completes it
        raise self._error(status)

    # ---- options that change, handing over ---------------------------------------------------------------------------

    def _unscoped(self) -> None:
        """A plain acquire() after a scoped form: it does not renew."""
        _set(self._handle, b"renew", b"false")
        self._renews = False

    def _max_ttl_s(self) -> float:
        return seconds_of(text(lib.redlock_lock_get, self._handle, b"max_ttl_ms"))

    def _wait_option_ms(self) -> int:
        return int(text(lib.redlock_lock_get, self._handle, b"wait_ms"))

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

_LOSSES = {
    lib.REDLOCK_LOSS_EXPIRED: ("expired", ": its lease expired"),
    lib.REDLOCK_LOSS_GONE: ("gone", ": too many nodes no longer had its token"),
    lib.REDLOCK_LOSS_RESTARTED: ("restarted", ": too many nodes restarted"),
    lib.REDLOCK_LOSS_REFUSED: ("refused", ": too many nodes became ineligible to vote"),
    lib.REDLOCK_LOSS_LIMIT: ("limit", ": max_hold allowed no further renewal"),
    lib.REDLOCK_LOSS_CLOCK: ("clock", ": the clocks of too many nodes were stepped forward"),
}


def warn_of_itself(who: str, what: str) -> None:
    import logging

    words = "this %s waits for %s, which it holds itself: a Lock is not re-entrant"
    logging.getLogger("libredlock").warning(words, who, what)


def note_loss(failure: BaseException, loss: RedlockError) -> None:
    """The body's own error leaves unchanged; the loss is logged and, from Python 3.11, added to it as a note."""
    import logging

    logging.getLogger("libredlock").warning("%s (while %s left the block)", loss, type(failure).__name__)
    if hasattr(failure, "add_note"):
        failure.add_note(f"libredlock: {loss}")

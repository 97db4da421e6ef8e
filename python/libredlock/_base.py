"""What clients of both surfaces have in common: all that does no I/O."""

from __future__ import annotations

import os
import sys
from _thread import RLock, allocate_lock
from collections import deque
from typing import Any, Callable, Iterable, Literal, Mapping, NamedTuple, NoReturn, Optional, Sequence, TypeVar, Union
from weakref import WeakValueDictionary, ref

from ._core import ffi, lib
from ._errors import Closed, Holder, NoMemory, Vote, error
from ._hold import HoldBase
from ._listing import Listing, listing
from ._native import held_by, node_names, string, text, votes
from ._notify import log
from ._options import CLIENT_KEYWORDS, raise_for_client, set_client, set_nodes, unknown
from ._process import this_process
from .types import ClientOptions, Resource, Resources, Seconds, Unpack

EVENTS_KEPT = 1000

AnyClient = TypeVar("AnyClient", bound="ClientBase")

Verdict = Literal["held", "free", "split", "unknown", "shared"]


class Report(NamedTuple):
    """Who holds a resource, as the nodes said it at one moment."""

    resource: Resources
    verdict: Verdict
    """"held": one token is on a majority of the nodes; "shared": a majority is held by readers (option shared); "free":
    a majority has no key; "split": none of these, attempts are in progress or left keys behind; "unknown": too few
    nodes answered. Of permits "held" says that all are, of several resources that one of them is."""
    token: Optional[str]
    """The holder's token, or None; of readers, that of the longest lease."""
    remaining: Optional[float]
    """Seconds until the holder's majority ends, if nobody extends it; None if nobody holds it."""
    votes: Mapping[str, Vote]
    """Every node's answer by the node's name."""
    held_by: Optional[Holder] = None
    """The client that holds it; None if that is not known."""
    each: tuple[Report, ...] = ()
    """A report for each of its permits, by their slots, or for each of several resources; then these have the tokens,
    votes and holders, and `remaining` is until it is free if nobody extends."""

    @property
    def held(self) -> bool:
        """Whether somebody holds it, alone or shared."""
        return self.verdict in ("held", "shared")


_OF_PERMITS: tuple[Verdict, ...] = ("free", "unknown", "split", "held")
_OF_SEVERAL: tuple[Verdict, ...] = ("held", "shared", "split", "unknown", "free")


def _whole(resource: Resources, each: Sequence[Report], order: tuple[Verdict, ...], last: Any) -> Report:
    """Its verdict is the first one of an order that one of its parts has; last: which of their ends is its own."""
    verdict: Verdict = next(one for one in order if any(report.verdict == one for report in each))
    ends = [report.remaining for report in each if report.remaining is not None]
    left_s = last(ends) if verdict in ("held", "shared") else None
    return Report(resource, verdict, None, left_s, {}, None, tuple(each))


_PLAIN: dict[str, Any] = {"permits": 1, "slot": None}


def _kind(permits: Optional[int], slot: Optional[int]) -> dict[str, Any]:
    return {name: value for name, value in (("permits", permits), ("slot", slot)) if value is not None}


_VERDICTS: dict[int, Verdict] = {
    getattr(lib, f"REDLOCK_VERDICT_{name.upper()}"): name for name in ("unknown", "free", "held", "split", "shared")
}


def is_in_memory(nodes: object) -> bool:
    return (os.environ.get("REDLOCK_NODES") if nodes is None else nodes) in ("memory://", ["memory://"])


class ClientBase:
    """A set of nodes with the default options of its locks."""

    _handle: Any = ffi.NULL
    """The core's client until close()."""
    _memory: Any = ffi.NULL
    """The same, until no thread can use it any more. Freed in C, whatever a signal handler raises in __del__."""
    _lock_type: Any
    _nodes: Iterable[str]
    _in_memory: str
    """What Client("memory://") makes, for tests of programs; not where a program has a class of its own."""

    def __new__(cls: type[AnyClient], nodes: Any = None, *_: Any, **options: Any) -> AnyClient:
        kind: Any = cls
        if "_in_memory" in vars(cls) and is_in_memory(nodes):
            from .testing import memory

            kind = getattr(memory, cls._in_memory)
        made: AnyClient = object.__new__(kind)
        return made

    def __init__(self, nodes: Union[None, str, Iterable[str]] = None, **options: Unpack[ClientOptions]) -> None:
        self._mutex = RLock()  # of threads also where greenlets are: it is never held across a switch
        self._bootstrapping = allocate_lock()
        self._is_open = False
        self._nodes = ()
        self._renew: Optional[bool] = options.get("renew")
        self._admits_several = bool(options.get("shared")) or options.get("permits", 1) != 1
        self._events: deque[str] = deque(maxlen=EVENTS_KEPT)
        self._registered = -1  # the generation of processes in which it was used
        self._settings: dict[Any, Any] = {}  # what locks need of options, by the options
        self._watched: dict[int, ref[HoldBase]] = {}
        self._rlocks: WeakValueDictionary[bytes, Any] = WeakValueDictionary()
        for keyword in options:
            if keyword not in CLIENT_KEYWORDS:
                raise unknown("Client", keyword, CLIENT_KEYWORDS)
        self._handle = self._memory = ffi.gc(lib.redlock_client_new(), lib.redlock_client_free)
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

    # ---- what makes locks or asks the nodes: told here for both surfaces. In asyncio what waits is awaited ----------

    def lock(self, *arguments: Any, **options: Any) -> Any:
        """A lock on a resource (str as UTF-8, or bytes): a name with options, for any number of threads or tasks.
        Nothing is taken yet; no I/O.

        on_lost: called with the hold at the moment at which it is lost, in a thread of the package, or in
            asyncio by the event loop.
        cancel_on_lost: in asyncio only; cancels the body of `async with` at that moment, and the block ends with Lost.
        """

    def rlock(self, *arguments: Any, **options: Any) -> Any:
        """The re-entrant lock of this client on a resource: the thread, or in asyncio the task, that holds it may take
        it again, and releases it as often. Each call for a resource returns the same object, as long as it is in use;
        other options than those it was made with are an InvalidOption. No I/O.

        on_lost, cancel_on_lost: as for lock().
        """

    def semaphore(self, *arguments: Any, **options: Any) -> Any:
        """One of several permits of a resource, which at most so many hold at a time in all programs, with a lease as
        any lock: client.lock(resource, permits=n). `slot` tells which one is held, from 0. No I/O.

            with client.semaphore("gpu", 4) as permit:
                work(permit.slot)

        One object serves all threads or tasks: it lets in as many as there are permits.
        on_lost, cancel_on_lost: as for lock().
        """

    def election(self, *arguments: Any, **options: Any) -> Any:
        """An election of the one who leads a resource, of any number of candidates in all programs. Each loop over it
        is a candidate and gets its terms; `with term:` is the work of a leader, `term.fence` the number of the term.

            for term in client.election("scheduler"):  # waits until it leads
                with term:
                    lead(term.fence)

        The lease is renewed; ttl is how long the seat is empty after a leader died. Loops end after
        `election.stop()` and when the client is closed.
        on_lost, cancel_on_lost: as for lock(); in asyncio the block of a term is cancelled at its loss, unless it is
            False.
        """

    def adopt(self, *arguments: Any, **options: Any) -> Any:
        """Takes over a lock that was detached elsewhere: a Hold. extend() confirms it, and so does a block; no I/O.

        Another holder may have had it in between.
        """

    def with_lock(self, *arguments: Any, **options: Any) -> Any:
        """Decorates a function, method or generator: it runs while the lock is held and renewed. In asyncio these are
        async.

        resource: a text with names of the arguments in braces, "report:{user_id}", or a function of the same
            arguments that returns the resource; a list of them holds all or none. Names are checked when the function
            is decorated; None or '' as a value is a ValueError at the call.
        on_busy: "raise" raises Busy when others hold the lock at the end of the wait; "skip" does not run the
            function and returns None; a function is called with the Busy, and what it returns is returned, as is
            anything else. Without wait= all but "raise" do not wait.
        hold: the name of the function's keyword argument that gets the Hold.
        reentrant: a thread or task that holds the lock enters again, as with rlock().
        keep: for what runs once in a fleet: after a success the lock stays until so many seconds after it was acquired;
            without wait= a call waits for half of that at most.
        on_lost, cancel_on_lost: as for lock().
        A generator holds the lock from its first item to its close. Raises what `with client.lock(...)` raises.
        """

    def status(self, resource: Resources, *, permits: Optional[int] = None, slot: Optional[int] = None) -> Any:
        """Asks every node who holds the resource, or each of several, without touching it. Raises NoQuorum if too few
        answer.

        permits: asks for each of so many, of a semaphore; the option of the client is the default. slot: for that one.
        """

    def locks(self, pattern: Resource = "*", *, timeout: Optional[Seconds] = None) -> Any:
        """Lists the locks that the nodes have, whoever holds them: holder, remaining time, and who waits. For people:
        it goes through all keys of every node, up to 25,000 a second, and the user needs +scan.

        pattern: as Redis' SCAN has it, of the name behind key_prefix: `client.locks("orders:*")`. Without a `*`, `?` or
            `[` it is one name, which needs no SCAN, and is listed also when it is free; of permits that is slot 0, and
            `client.status(name, permits=n)` tells of all.
        timeout: the list ends with what was found by then, and `more` is True; so it is beyond 10,000 locks.
        Raises NoQuorum or RefusedConfig if too few nodes have told all that they have.
        """

    def release(
        self, resource: Resources, *, force: bool = False, permits: Optional[int] = None, slot: Optional[int] = None
    ) -> Any:
        """Deletes a lock whoever holds it, for an operator who knows that the holder is gone: the holder is not
        stopped. Returns on how many nodes it was; 0 if nobody held it. Takes no name that comes from users: one of the
        package's own keys would be deleted, too.

        force: has to be True. permits: of all of so many, of a semaphore, or of the one of slot.
        Raises NoQuorum or RefusedConfig if too few nodes have answered, or are eligible to vote.
        """

    def check(self) -> Any:
        """Asks every node, then describes the client as `redlock doctor --json` does.

        "voting" says how many nodes may vote, and each of "nodes" has "votes", "why" not, and an "advice". Waits for up
        to connect_timeout.
        """

    def bootstrap(self, *, new: bool = False, yes: bool = False, replace: bool = False, dry: bool = False) -> Any:
        """Says that no lock is live, so that nodes that are new or were restarted vote at once, as `redlock bootstrap`.

        new: for deployment scripts; nodes without a marker, if all answer. yes: nodes that are new or quarantined.
        replace: rewrites another max_ttl, list of nodes or cluster, and ends no quarantine. dry: only tells what the
        next call would do; that call then does no more.
        One dict per node: "node", "did" (nothing, registered, replaced, left_alone, no_answer), "votes", "max_ttl_ms"
        and "found", in words. Takes at most twice connect_timeout.
        """

    def close(self) -> Any:
        """Ends the client: whoever waits gets Cancelled, held locks are released; takes at most exit_drain seconds."""

    @property
    def closed(self) -> bool:
        """True after close()."""
        return not self._is_open

    def describe(self) -> dict[str, Any]:
        """Options, nodes, what each may vote on and why not, counters. Passwords are not in it. No I/O."""
        import json

        return json.loads(text(lib.redlock_client_describe, self._opened()))  # type: ignore[no-any-return]

    def metrics(self) -> str:
        """Figures of the client's locks and nodes as OpenMetrics text, for Prometheus. No I/O."""
        return text(lib.redlock_client_metrics, self._opened())

    def events(self) -> list[dict[str, Any]]:
        """What happened to the client's nodes and locks, the last 1,000, oldest first. No I/O.

        All of it is logged by itself under "libredlock": node_up as INFO, the rest as WARNING.
        """
        import json

        self._tell()
        return [json.loads(line) for line in list(self._events)]

    def _tell(self) -> None:
        """Logs what the core has queued, and calls on_lost of what was lost."""
        while True:
            line = text(lib.redlock_client_event, self._handle)
            if not line:
                break
            self._hear(line)
        for hold in self._watched_holds():
            hold._tell_if_lost()

    def _hear(self, line: str) -> None:
        self._events.append(line)
        log(line)

    def _watched_holds(self) -> list[HoldBase]:
        """Those that have an on_lost, or a body to cancel."""
        holds = [reference() for reference in list(self._watched.values())]
        return [hold for hold in holds if hold is not None]

    def _opened(self) -> Any:
        handle = self._handle
        if not handle or not self._is_open:
            this_process.stay_if_leaving()
            raise Closed("the client is closed")
        return handle

    def _register(self) -> None:
        """At the first acquisition in every process."""
        this_process.notice_fork()
        this_process.register_exit()
        self._listen()
        self._registered = this_process.generation  # last: a signal handler may have ended it before

    def _listen(self) -> None:
        """Begins to notice what happens to its nodes and locks."""

    # ---- what is asked of the nodes ---------------------------------------------------------------------------------

    def _probe(self, resource: Resources, kind: dict[str, Any] = _PLAIN) -> Any:
        return type(self)._lock_type(self, resource, kind, "status", None)._new_probe()

    def _looks(self, resource: Resources, permits: Optional[int], slot: Optional[int]) -> list[list[Any]]:
        """What asks who holds it: for each resource one, or one for each of its permits."""
        kind = _kind(permits, slot)
        names = resource if resource and isinstance(resource, (list, tuple)) else [resource]
        return [self._look(name, kind) for name in names]

    def _look(self, name: Resources, kind: dict[str, Any]) -> list[Any]:
        probe = self._probe(name, kind)
        permits, slot = (int(text(probe._get_of, probe._handle, option)) for option in (b"permits", b"slot"))
        if permits == 1 or slot >= 0:
            return [probe]
        probes = [self._probe(name, kind) for _ in range(permits)]
        for number, one in enumerate(probes):
            one._set_of(one._handle, b"slot", b"%d" % number)
        return probes

    def _reported(self, resource: Resources, looks: list[list[Any]], statuses: list[int]) -> Report:
        ended = iter(statuses)
        reports = []
        for look in looks:
            each = [self._report(probe, next(ended)) for probe in look]
            reports.append(each[0] if len(each) == 1 else _whole(each[0].resource, each, _OF_PERMITS, min))
        if not isinstance(resource, (list, tuple)):
            return reports[0]
        return _whole(tuple(resource), reports, _OF_SEVERAL, max)

    def _listed(self, probe: Any, status: int) -> Listing:
        if status not in (lib.REDLOCK_OK, lib.REDLOCK_TIMED_OUT):
            raise probe._error(status)
        return listing(probe._handle)

    def _removal(self, resource: Resources, force: bool, permits: Optional[int], slot: Optional[int]) -> Any:
        if force is not True:
            words = "deletes a lock whoever holds it, and only with force=True; to give up a lock of your own say"
            raise TypeError(f"release({resource!r}): {words} hold.release(), or adopt(resource, token).release()")
        return self._probe(resource, _kind(permits, slot))

    def _removed(self, probe: HoldBase, status: int) -> int:
        if status:
            raise probe._error(status)
        return sum(vote.status == lib.REDLOCK_OK for vote in probe.votes.values())

    def _bootstrapper(self, new: bool, yes: bool, replace: bool, dry: bool) -> Callable[[], list[dict[str, Any]]]:
        """What bootstraps the nodes; it blocks."""
        mode, handle, nodes = _mode_of(new, yes, replace, dry), self._opened(), list(self._nodes)
        probe = self._probe("bootstrap")  # keeps the core's client if this one is closed

        def run(probe: Any = probe) -> list[dict[str, Any]]:
            with self._bootstrapping:
                return _bootstrap(handle, nodes, mode)

        return run

    def _report(self, probe: HoldBase, status: int) -> Report:
        handle: Any = probe._handle
        resource: Any = probe._resource
        verdict = lib.redlock_lock_verdict(handle)
        if verdict == lib.REDLOCK_VERDICT_UNKNOWN:
            raise probe._error(status)
        answers = votes(handle, list(self._nodes))
        if verdict not in (lib.REDLOCK_VERDICT_HELD, lib.REDLOCK_VERDICT_SHARED):
            return Report(resource, _VERDICTS[verdict], None, None, answers)
        ttl_ms = lib.redlock_lock_holder_ttl_ms(handle)
        remaining = float("inf") if ttl_ms == lib.REDLOCK_TTL_ENDLESS else ttl_ms / 1000
        token = text(lib.redlock_lock_holder, handle)
        return Report(resource, _VERDICTS[verdict], token, remaining, answers, held_by(handle))

    def _process(self) -> None:
        lib.redlock_client_process(self._handle)

    def _tell_the_last(self) -> None:
        if self._is_open and self._registered == this_process.generation and sys.meta_path:  # not without modules
            self._tell()

    def _take_handle(self) -> Any:
        """Takes the handle away from everybody else; the caller drains it. There is no mutex: a signal handler that
        raises at the end of a `with` of Python 3.10 or older would leave it locked."""
        self._is_open = False
        handle, self._handle = self._handle, ffi.NULL
        return handle

    def _leave(self, drain: Optional[Callable[[Any], object]] = None) -> None:
        """Closes at exit, or from close(): releases what is held within the limit of exit_drain."""
        try:
            self._tell_the_last()
        finally:
            (drain or self._drain)(self._take_handle())

    def _drain(self, handle: Any) -> None:
        """A method, so that whoever calls it in a thread keeps the client's memory."""
        lib.redlock_client_drain(handle, -1)

    def _forked(self) -> None:
        self._mutex, self._bootstrapping = RLock(), allocate_lock()
        self._watched = {}

    def __del__(self) -> None:
        if self._handle:
            self._leave()

    def __repr__(self) -> str:
        nodes = ", ".join(self._nodes)
        return f"<{type(self).__module__}.{type(self).__qualname__} {nodes if self._is_open else 'closed'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Client cannot be pickled or copied: make one in each process")


# ---- an operator's word that no lock is live, so that nodes that are new or were restarted vote at once --------------

_RAN = (lib.REDLOCK_OK, lib.REDLOCK_NO_QUORUM, lib.REDLOCK_REFUSED_CONFIG)


def _mode_of(new: bool, yes: bool, replace: bool, dry: bool = False) -> int:
    """The core's mode; exactly one of the first three has to be given."""
    given = {"new": new, "yes": yes, "replace": replace}
    for keyword, value in {**given, "dry": dry}.items():
        if not isinstance(value, bool):
            raise TypeError(f"{keyword}={value!r}: takes True or False")
    chosen = [keyword for keyword, value in given.items() if value]
    if len(chosen) != 1:
        said = " and ".join(f"{keyword}=True" for keyword in chosen) or "nothing"
        raise TypeError(f"bootstrap() was given {said}; allowed: one of new=True, yes=True and replace=True")
    return int(getattr(lib, f"REDLOCK_BOOTSTRAP_{chosen[0].upper()}")) + (lib.REDLOCK_BOOTSTRAP_DRY if dry else 0)


def _bootstrap(handle: Any, nodes: list[str], mode: int) -> list[dict[str, Any]]:
    """What was found on each node, and what was done there."""
    status = lib.redlock_client_bootstrap(handle, mode)
    if status not in _RAN:
        raise error(status, text(lib.redlock_client_message, handle))
    return [_told(handle, number, name) for number, name in enumerate(nodes)]


def _told(handle: Any, number: int, name: str) -> dict[str, Any]:
    did, votes, max_ttl_ms = (lib.redlock_client_bootstrapped(handle, number, field) for field in _FIELDS)
    return {
        "node": name,
        "did": string(lib.redlock_bootstrap_did_name(did)),
        "votes": votes == 1,
        "max_ttl_ms": max_ttl_ms if max_ttl_ms > 0 else None,
        "found": text(lib.redlock_client_bootstrap_words, handle, number),
    }


_FIELDS = (lib.REDLOCK_BOOTSTRAP_DID, lib.REDLOCK_BOOTSTRAP_VOTES, lib.REDLOCK_BOOTSTRAP_MAX_TTL_MS)

"""One exception per status of the core, and how a status becomes one."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Mapping, NamedTuple, Optional

from ._core import ffi, lib
from .types import Resources


class Status(IntEnum):
    """What an operation came to, with the core's numbers."""

    OK = 0
    PENDING = 1
    BUSY = 2
    NO_QUORUM = 3
    TIMED_OUT = 4
    CANCELLED = 5
    LOST = 6
    NOT_HELD = 7
    LIMIT = 8
    FORKED = 9
    IN_FLIGHT = 10
    INVALID = 11
    REFUSED_CONFIG = 12
    NO_MEMORY = 13
    INTERNAL = 14
    UNREACHABLE = 15
    QUARANTINED = 16


class Vote(NamedTuple):
    """One node's answer to the last operation."""

    status: Status
    """OK: granted or confirmed; BUSY: held by another; NOT_HELD: not asked, or free; or why it gave no vote."""
    words: str
    """The same for people: "granted", "busy (4.2 s left)", "connection refused"."""
    ttl: Optional[float]
    """Seconds the key has left on that node; None if unknown, infinity if it never ends."""
    token: str
    """After Client.status(): the start of the value under the key, "" if there is none."""


class RedlockError(Exception):
    """What went wrong, in the core's one line. Never raised itself: its subclasses are."""

    status: Status = Status.INTERNAL
    """The core's status."""
    resource: Optional[Resources]
    """What was to be locked; None if it is about a client."""
    votes: Mapping[str, Vote]
    """Every node's answer by the node's name; empty where no node was asked."""

    def __init_subclass__(cls, status: Optional[Status] = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if status is not None:
            cls.status = status

    def __init__(
        self, message: str = "", *, resource: Optional[Resources] = None, votes: Optional[Mapping[str, Vote]] = None
    ) -> None:
        super().__init__(message)
        self.resource = resource
        self.votes = {} if votes is None else votes


class Holder(NamedTuple):
    """The client that holds a lock, as it has told the nodes (option holder_info): for people to read."""

    client_name: str
    host: str
    pid: int
    held: float
    """Seconds since it acquired the lock, by the clocks of two machines."""
    readers: Optional[int] = None
    """How many hold it together; then this is the one whose lease is longest. None: it holds the lock alone."""

    def __str__(self) -> str:
        """As messages name it."""
        if self.readers is not None:
            return f"{self.readers} reader{'s' if self.readers > 1 else ''}"
        return f"{self.client_name or 'a client'} (pid {self.pid} on {self.host}) for {self.held:.1f} s"


class Busy(RedlockError, status=Status.BUSY):
    """Others hold the lock."""

    held_by: Optional[Holder] = None
    """Who holds it. None if that is not known: another library, or nodes that did not say it in time."""

    @property
    def retry_after(self) -> Optional[float]:
        """Seconds until a majority of the nodes is free if nobody extends the lease, as the votes tell it: for HTTP's
        Retry-After. None if they do not, as of permits."""
        told = [vote.ttl for vote in self.votes.values() if vote.ttl is not None]
        if not told:
            return None
        latest = max(told)  # what was not told may last as long
        ends = sorted(
            0.0 if vote.status == Status.OK else latest if vote.ttl is None else vote.ttl
            for vote in self.votes.values()
        )
        left_s = ends[len(ends) // 2]
        return left_s if left_s < float("inf") else None


class NoQuorum(RedlockError, status=Status.NO_QUORUM):
    """Too few nodes answered in time."""


class TimedOut(RedlockError, TimeoutError, status=Status.TIMED_OUT):
    """The wait ended before the nodes gave any verdict."""


class Cancelled(RedlockError, status=Status.CANCELLED):
    """The client was closed while the operation waited."""


class Lost(RedlockError, status=Status.LOST):
    """It was held once and is not any more: whatever was done since may have met another holder."""

    reason: str = ""
    """"expired", "gone" (the token was, on too many nodes), "restarted" (too many nodes), "refused" (too many nodes
    became ineligible to vote), "limit" (of max_hold), "clock" (stepped forward on too many nodes), "closed" (the client
    was, or the event loop has ended, and it was released); "" if it is not known."""


class NotHeld(RedlockError, RuntimeError, status=Status.NOT_HELD):
    """The lock was never taken, or was released already."""


class Limit(RedlockError, status=Status.LIMIT):
    """max_extensions or max_hold is used up; the lock stays held for what remains."""


class Forked(RedlockError, status=Status.FORKED):
    """The lock belongs to the parent process."""


class InFlight(RedlockError, RuntimeError, status=Status.IN_FLIGHT):
    """An operation of this lock is in flight already."""


class InvalidOption(RedlockError, ValueError, status=Status.INVALID):
    """An argument, an option or the state of a handle that is not allowed; the message names it."""


class Closed(RedlockError, ValueError, status=Status.INVALID):
    """The client was closed before the call."""


class RefusedConfig(RedlockError, status=Status.REFUSED_CONFIG):
    """Too many nodes are ineligible to vote: credentials, replica, cluster mode, eviction, one server twice."""


class NoMemory(RedlockError, MemoryError, status=Status.NO_MEMORY):
    """An allocation failed; nothing was changed."""


class Internal(RedlockError, status=Status.INTERNAL):
    """The system refused something (descriptors, threads); the message says what."""


_BY_STATUS = {kind.status: kind for kind in RedlockError.__subclasses__() if kind is not Closed}


def error(
    status: int, message: str, resource: Optional[Resources] = None, votes: Optional[Mapping[str, Vote]] = None
) -> RedlockError:
    """The exception for a status; without a message of its own it gets the status's sentence."""
    kind = _BY_STATUS.get(Status(status), Internal)
    sentence = message or bytes(ffi.string(lib.redlock_status_text(status))).decode()
    return kind(sentence, resource=resource, votes=votes)

"""Types of arguments, for annotations in your own code.

    from libredlock.types import LockOptions

    PATIENT: LockOptions = {"ttl": 30, "wait": 60}
    with client.lock("orders:42", **PATIENT): ...
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import (
    TYPE_CHECKING,
    Any,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Literal,
    Optional,
    Protocol,
    TypedDict,
    TypeVar,
    Union,
    overload,
)

from ._template import Template

if sys.version_info >= (3, 11):
    from typing import ParamSpec, Unpack
elif TYPE_CHECKING:
    from typing_extensions import ParamSpec, Unpack
else:
    try:
        from typing_extensions import ParamSpec, Unpack
    except ImportError:  # only those who read hints at run time need them

        def ParamSpec(name):
            return ...

        class Unpack:
            def __class_getitem__(cls, item):
                return Any


__all__ = [
    "AsyncDecorator", "AsyncDecoratorOr", "AsyncDecoratorWithHold", "ClientOptions", "Decorator", "DecoratorOr",
    "DecoratorWithHold", "LockOptions", "Named", "Resource", "Resources", "Seconds", "Unpack", "WithLockOptions",
]

Resource = Union[str, bytes]
"""What is locked; str stands for its UTF-8 bytes."""

Resources = Union[Resource, list[Resource], tuple[Resource, ...]]
"""What a lock holds: one resource, or a list or tuple of 1 to 100, all of which it holds or none. A str is one resource
and is never iterated."""

Named = Union[
    Resource, Template, list[Union[Resource, Template]], tuple[Union[Resource, Template], ...], Callable[..., Resources]
]
"""What with_lock() locks: one or several, of which a str or a Template has names of arguments in braces, or a function
of the arguments that returns it."""

Seconds = Union[int, float, timedelta]
"""A duration."""


class LockOptions(TypedDict, total=False):
    """What client.lock(), client.adopt() and client.with_lock() take."""

    ttl: Seconds
    """How long a lease lasts unless it is extended. Default: 10 s. Allowed: 0.02 s to 86400 s, not above max_ttl."""
    wait: Optional[Seconds]
    """How long to wait for a lock that others hold; 0 makes one attempt, None waits forever. Default: None. Allowed:
    0 s to 31536000 s, or None: without limit."""
    outage_wait: Optional[Seconds]
    """How long acquire and extend wait while too few nodes answer; 0 makes one attempt. Default: 5 s. Allowed: 0 s
    to 31536000 s, or None: without limit."""
    retry_count: Optional[int]
    """Attempts after the first, within the wait. Default: None. Allowed: 0 to 1000000000, or None: without limit."""
    retry_delay: Seconds
    """The longest pause between attempts; pauses start at three round trips and double. Default: 0.2 s. Allowed:
    0.001 s to 3600 s."""
    retry_jitter: float
    """How much of each pause is random: 0 none of it, 1 all of it. Default: 1.0. Allowed: 0 to 1."""
    queue: bool
    """Waiters queue and are served in order, so a wait that is shorter than the queue never wins; if false, each
    retries after a random pause. Default: True. Allowed: True or False."""
    fence: bool
    """Give every acquisition of a resource a larger number than the one before, for stores that reject smaller ones.
    Default: False. Allowed: True or False."""
    shared: bool
    """Hold the lock together with others that share it, while nobody holds it exclusively; with queue = false those
    who share it may keep out one who wants it alone for ever. Default: False. Allowed: True or False."""
    permits: int
    """At most so many hold the resource at a time; the same in all programs that use it. Default: 1. Allowed: 1 to
    256."""
    slot: Optional[int]
    """Which of the permits is wanted, from 0; None: any that is free. Default: None. Allowed: 0 to 255, below
    permits, or None."""
    layout: Literal["string", "hash"]
    """What a node stores for the lock. string: the token, as plain locks of any library do; hash: {token: 1}, which
    programs with a home-made re-entrant lock ({owner: count}) wait for. Default: string. Allowed: string or hash."""
    drift_factor: float
    """Clock drift to allow for, as a fraction of the TTL. Default: 0.01. Allowed: 0 to 0.1."""
    node_timeout: Union[Seconds, Literal["auto"]]
    """How long an attempt waits for a node's answer, from when its request was written; auto adapts to measured
    round trips and stalls: 50 ms to 1 s, at most a tenth of the TTL. Default: auto. Allowed: auto, or 0.001 s to
    60 s, not above a quarter of the TTL."""
    min_validity: Union[Seconds, Literal["auto"]]
    """An attempt that would leave less validity than this fails; auto is the larger of 5 ms and a tenth of the TTL.
    Default: auto. Allowed: auto, or 0.001 s to 86400 s."""
    renew: bool
    """Extend the lock in the background while it is held. Default: False. Allowed: True or False."""
    max_extensions: Optional[int]
    """Calls of extend allowed during one hold; renewals do not count. Default: None. Allowed: 0 to 1000000000, or
    None: without limit."""
    max_hold: Optional[Seconds]
    """No extension reaches beyond this time after the lock was acquired; if the lock's own ttl is longer, none
    begins later. Default: None. Allowed: 0 s to 31536000 s, or None: without limit."""
    strict_release: bool
    """Also send deletes to nodes that did not grant the lock. Default: False. Allowed: True or False."""


class ClientOptions(LockOptions, total=False):
    """What Client() takes beside the nodes: the defaults of its locks, and its own."""

    max_ttl: Seconds
    """No lease is longer, and a node that may have lost keys does not vote for that long; the same in all programs
    that use the nodes. May end the list of nodes: ?max_ttl=5m. Default: 30 s. Allowed: 0.02 s to 86400 s."""
    wake: Literal["auto", "push", "poll"]
    """How a queued waiter is notified that its turn has come: push by PUBLISH, poll by asking, auto by push if it
    can. Default: auto. Allowed: auto, push or poll."""
    guard: Literal["marker", "external", "off"]
    """How a node that may have lost its keys is kept from voting for max_ttl. marker: by a key that it would lose
    too; external: by something outside libredlock; off: not at all. Default: marker. Allowed: marker, external or
    off."""
    cluster: str
    """Name of this list of nodes; a node that was registered under another name is refused. Give a new list of the
    same length a new name. Default: -. Allowed: at most 32 bytes, letters, digits, '.', '_' and '-'."""
    connect_timeout: Seconds
    """How long connecting to a node may take, including the session set-up. Default: 3 s. Allowed: 0.001 s to 60 s."""
    key_prefix: str
    """Prepended to the resource to form the key. Allowed: at most 256 bytes."""
    client_name: str
    """Name of the connections in CLIENT LIST, and of the holder of a lock. Default: libredlock. Allowed: at most 64
    bytes, printable and without spaces."""
    holder_info: bool
    """Show others who holds a lock: the nodes keep client_name, host and pid of this client. Default: True. Allowed:
    True or False."""
    user_file: str
    """A file with the user name for nodes whose URL has no password; read at each connection. Allowed: at most 4096
    bytes."""
    password_file: str
    """A file with the password for nodes whose URL has none; read at each connection. Allowed: at most 4096 bytes."""
    tls_ca_file: str
    """Certificates of the authorities that are trusted for rediss:// nodes (PEM); without this and tls_ca_path: the
    system's. Allowed: at most 4096 bytes."""
    tls_ca_path: str
    """A folder of such certificates, named as `openssl rehash` does. Allowed: at most 4096 bytes."""
    tls_cert_file: str
    """The certificate that this client shows to rediss:// nodes, with its chain (PEM). Allowed: at most 4096 bytes."""
    tls_key_file: str
    """The key of tls_cert_file, without a passphrase (PEM). Allowed: at most 4096 bytes."""
    tls_server_name: str
    """The name in the certificates of all rediss:// nodes; empty: the host of each URL. Allowed: at most 255 bytes."""
    tls_verify: bool
    """Verify the certificates of rediss:// nodes; if false, anyone on the network path can read and forge traffic.
    Default: True. Allowed: True or False."""
    exit_drain: Seconds
    """How long closing the client may take to release held locks. Default: 0.5 s. Allowed: 0 s to 60 s."""


class WithLockOptions(LockOptions, total=False):
    """What client.with_lock() takes in addition."""

    reentrant: bool
    """Whether a decorated function may call others that lock the same resource, as with client.rlock()."""
    keep: Optional[Seconds]
    """How long the lock stays, from when it was acquired, after a function that has succeeded."""


# ---- what with_lock() gives -----------------------------------------------------------------------------------------

P = ParamSpec("P")
R = TypeVar("R")
Other = TypeVar("Other", covariant=True)
Function = TypeVar("Function", bound=Callable[..., Any])
GeneratorFunction = TypeVar("GeneratorFunction", bound=Callable[..., Generator[Any, Any, Any]])
AsyncGeneratorFunction = TypeVar("AsyncGeneratorFunction", bound=Callable[..., AsyncIterator[Any]])
AnyAsync = Callable[..., Union[Coroutine[Any, Any, Any], AsyncIterator[Any]]]
AsyncFunction = TypeVar("AsyncFunction", bound=AnyAsync)
Coro = Coroutine[Any, Any, R]


class UseAioClient:
    """What a type checker sees where an async function has the synchronous decorator: a TypeError when it runs."""


class Decorator(Protocol):
    """The decorator of libredlock.Client.with_lock: the function keeps its type."""

    @overload
    def __call__(self, function: AnyAsync) -> UseAioClient: ...  # pyright: ignore[reportOverlappingOverload]

    @overload
    def __call__(self, function: Function) -> Function: ...


class DecoratorOr(Protocol[Other]):
    """The same with on_busy: the function may return that instead, and a generator yields nothing."""

    @overload
    def __call__(self, function: AnyAsync) -> UseAioClient: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, function: GeneratorFunction) -> GeneratorFunction: ...

    @overload
    def __call__(self, function: Callable[P, R]) -> Callable[P, Union[R, Other]]: ...


class DecoratorWithHold(Protocol):
    """The same with hold: who calls the function does not give that argument, so none is checked."""

    @overload
    def __call__(self, function: AnyAsync) -> UseAioClient: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, function: Callable[..., R]) -> Callable[..., Union[R, Any]]: ...


class AsyncDecorator(Protocol):
    """The decorator of libredlock.aio.Client.with_lock: the async function keeps its type."""

    def __call__(self, function: AsyncFunction) -> AsyncFunction: ...


class AsyncDecoratorOr(Protocol[Other]):
    """The same with on_busy: awaiting the function may give that instead, and a generator yields nothing."""

    @overload
    def __call__(self, function: AsyncGeneratorFunction) -> AsyncGeneratorFunction: ...

    @overload
    def __call__(self, function: Callable[P, Coro[R]]) -> Callable[P, Coro[Union[R, Other]]]: ...


class AsyncDecoratorWithHold(Protocol):
    """The same with hold: who calls the function does not give that argument, so none is checked."""

    @overload
    def __call__(self, function: Callable[..., Coro[R]]) -> Callable[..., Coro[Union[R, Any]]]: ...

    @overload
    def __call__(self, function: Callable[..., AsyncIterator[R]]) -> Callable[..., AsyncIterator[R]]: ...

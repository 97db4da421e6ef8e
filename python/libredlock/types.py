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
    Literal,
    Optional,
    Protocol,
    TypedDict,
    TypeVar,
    Union,
    overload,
)

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
    "AsyncGuard",
    "AsyncGuardOr",
    "ClientOptions",
    "Guard",
    "GuardOr",
    "LockOptions",
    "Named",
    "Resource",
    "Seconds",
    "Unpack",
]

Resource = Union[str, bytes]
"""What is locked; str stands for its UTF-8 bytes."""

Named = Union[Resource, Callable[..., Resource]]
"""What guard() locks: a resource, or a function of the arguments that returns it."""

Seconds = Union[int, float, timedelta]
"""A duration."""


class LockOptions(TypedDict, total=False):
    """What client.lock(), client.adopt() and client.guard() take; docs/options.md says what each is for."""

    ttl: Seconds
    wait: Optional[Seconds]
    outage_wait: Optional[Seconds]
    retry_count: Optional[int]
    retry_delay: Seconds
    retry_jitter: float
    queue: bool
    fence: bool
    drift_factor: float
    node_timeout: Union[Seconds, Literal["auto"]]
    min_validity: Union[Seconds, Literal["auto"]]
    renew: bool
    max_extensions: Optional[int]
    max_hold: Optional[Seconds]
    strict_release: bool


class ClientOptions(LockOptions, total=False):
    """What Client() takes beside the nodes: the defaults of its locks, and its own."""

    max_ttl: Seconds
    wake: Literal["auto", "push", "poll"]
    guard: Literal["marker", "external", "off"]
    cluster: str
    connect_timeout: Seconds
    key_prefix: str
    client_name: str
    holder_info: bool
    user_file: str
    password_file: str
    tls_ca_file: str
    tls_ca_path: str
    tls_cert_file: str
    tls_key_file: str
    tls_server_name: str
    tls_verify: bool
    exit_drain: Seconds


# ---- what guard() gives -----------------------------------------------------------------------------------------

P = ParamSpec("P")
R = TypeVar("R")
Other = TypeVar("Other", covariant=True)
Function = TypeVar("Function", bound=Callable[..., Any])
AsyncFunction = TypeVar("AsyncFunction", bound=Callable[..., Union[Coroutine[Any, Any, Any], AsyncIterator[Any]]])


class UseTheGuardOfAioClient:
    """What a type checker sees where the synchronous guard decorates an async function; at run time a TypeError."""


class Guard(Protocol):
    """The decorator of libredlock.Client.guard: the function keeps its type."""

    @overload
    def __call__(  # pyright: ignore[reportOverlappingOverload]
        self, function: Callable[..., Union[Coroutine[Any, Any, Any], AsyncIterator[Any]]]
    ) -> UseTheGuardOfAioClient: ...

    @overload
    def __call__(self, function: Function) -> Function: ...

    def __call__(self, function: Any) -> Any: ...


class GuardOr(Protocol[Other]):
    """The same with on_busy: the function may return that instead."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[..., Union[Coroutine[Any, Any, Any], AsyncIterator[Any]]]
    ) -> UseTheGuardOfAioClient: ...

    @overload
    def __call__(self, function: Callable[P, R]) -> Callable[P, Union[R, Other]]: ...

    def __call__(self, function: Any) -> Any: ...


class AsyncGuard(Protocol):
    """The decorator of libredlock.aio.Client.guard: the async function keeps its type."""

    def __call__(self, function: AsyncFunction) -> AsyncFunction: ...


class AsyncGuardOr(Protocol[Other]):
    """The same with on_busy: awaiting the function may give that instead."""

    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]]
    ) -> Callable[P, Coroutine[Any, Any, Union[R, Other]]]: ...

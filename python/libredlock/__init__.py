"""Redlock: distributed locks over independent Redis or Valkey nodes, on a C core.

    import libredlock

    with libredlock.Client(["redis://a", "redis://b", "redis://c"]) as client:
        with client.lock("orders:42", ttl=10) as hold:
            ...

The asyncio surface is libredlock.aio; throw-away nodes for tests are in libredlock.testing.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._base import Report
from ._client import Client
from ._core import lib as _lib
from ._errors import (
    Busy,
    Cancelled,
    Closed,
    Forked,
    Holder,
    InFlight,
    Internal,
    InvalidOption,
    Limit,
    Lost,
    NoMemory,
    NoQuorum,
    NotHeld,
    RedlockError,
    RefusedConfig,
    Status,
    TimedOut,
    Vote,
)
from ._listing import Listed, Listing, Waiter
from ._native import string as _string
from ._template import Template
from ._thread_lock import Election, Hold, Lock, RLock, Term

__version__ = _string(_lib.redlock_version())

__all__ = [
    "Busy", "Cancelled", "Client", "Closed", "Election", "Forked", "Hold", "Holder", "InFlight", "Internal",
    "InvalidOption", "Limit", "Listed", "Listing", "Lock", "Lost", "NoMemory", "NoQuorum", "NotHeld", "RLock",
    "RedlockError", "RefusedConfig", "Report", "Status", "Template", "Term", "TimedOut", "Vote", "Waiter",
]


def _publish() -> None:
    """Tracebacks, logs and pickles name things where users import them from."""
    from typing import get_type_hints

    for name in __all__:
        member = globals()[name]
        if getattr(member, "__annotations__", None):
            member.__annotations__ = get_type_hints(member)  # while the module of their names is still known
        member.__module__ = __name__


_publish()


if _TYPE_CHECKING:
    from . import aio as aio
    from . import otel as otel
    from . import prometheus as prometheus
    from . import testing as testing
    from . import types as types
else:

    def __getattr__(name: str) -> object:
        """Modules that are imported at their first use: `import libredlock` alone stays quick."""
        if name not in ("aio", "otel", "prometheus", "testing", "types"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return import_module(f"{__name__}.{name}")

"""The locks that nodes have."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Union

from ._core import ffi, lib
from ._errors import Holder
from ._native import text


class Waiter(NamedTuple):
    """A client that waits for a lock, as it has told the nodes (option holder_info): for people to read."""

    client_name: str
    host: str
    pid: int
    waited: float
    """Seconds."""


class Listed(NamedTuple):
    """A lock that nodes have, or one of its permits."""

    resource: Union[str, bytes]
    """bytes where it is not UTF-8."""
    kind: str
    """"plain", "shared", "permits", "hash" or "other"."""
    verdict: str
    """"held", "shared", or "split": no majority has the same key."""
    token: Optional[str]
    """The holder's, as in Report."""
    held_by: Optional[Holder]
    """The client that holds it; None if that is not known."""
    remaining: Optional[float]
    """Seconds until the holder's majority ends, if nobody extends it; None if no majority has it."""
    waiting: int
    """How many stand in the queue for it."""
    first: Optional[Waiter]
    """The first of these; None if that is not known."""
    slot: Optional[int] = None
    """Of a permit."""
    permits: Optional[int] = None


class Listing(tuple[Listed, ...]):
    """Locks in the order of their names, with `more`: whether there are others besides."""

    more = False


def listing(handle: Any) -> Listing:
    rows = Listing(_row(handle, index) for index in range(lib.redlock_lock_listed(handle, lib.REDLOCK_LISTED_ROWS)))
    rows.more = lib.redlock_lock_listed(handle, lib.REDLOCK_LISTED_MORE) == 1
    return rows


def _row(handle: Any, index: int) -> Listed:
    import json  # rarely needed, and slow to import

    row = json.loads(text(lib.redlock_lock_row, handle, index, lib.REDLOCK_ROW_JSON))
    by, first, ttl_ms = row.get("held_by"), row["first"], row.get("holder_ttl_ms")
    holder = by and Holder(by["client_name"], by["host"], by["pid"], by["held_ms"] / 1000, by.get("readers"))
    waiter = first and Waiter(first["client_name"], first["host"], first["pid"], first["waited_ms"] / 1000)
    left_s = None if ttl_ms is None else float("inf") if ttl_ms == lib.REDLOCK_TTL_ENDLESS else ttl_ms / 1000
    return Listed(
        _resource(handle, index), row["kind"], row["verdict"], row.get("holder") or None, holder, left_s,
        row["waiting"], waiter, row.get("slot"), row.get("permits"),
    )


def _resource(handle: Any, index: int) -> Union[str, bytes]:
    size = lib.redlock_lock_row(handle, index, lib.REDLOCK_ROW_RESOURCE, ffi.NULL, 0)
    buffer = ffi.new("char[]", size + 1)
    lib.redlock_lock_row(handle, index, lib.REDLOCK_ROW_RESOURCE, buffer, size + 1)
    name = bytes(ffi.buffer(buffer, size))
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name

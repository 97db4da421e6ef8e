"""Texts and answers out of the core."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import _cffi_backend  # type: ignore # noqa: F401 - for what freezes programs: it sees no imports in C

from ._core import ffi, lib
from ._errors import Holder, Status, Vote

_TEXT_SIZE = 512


def string(pointer: Any) -> str:
    """A text that the core owns."""
    return bytes(ffi.string(pointer)).decode("utf-8", "replace")


def text(call: Callable[..., int], *arguments: Any) -> str:
    """What a function with (char *buf, size_t size) at the end says; "" if it failed."""
    size = _TEXT_SIZE
    while True:
        buffer = ffi.new("char[]", size)
        length = call(*arguments, buffer, size)
        if length < size:
            return string(buffer) if length > 0 else ""
        size = length + 1


def held_by(lock: Any) -> Optional[Holder]:
    """The client that holds the lock, if an acquisition or an inspection has learnt of it."""
    found = text(lib.redlock_lock_held_by, lock)
    if not found:
        return None
    import json  # rarely needed, and slow to import

    told = json.loads(found)
    return Holder(told["client_name"], told["host"], told["pid"], told["held_ms"] / 1000, told.get("readers"))


def node_names(client: Any) -> Sequence[str]:
    count = lib.redlock_client_node_count(client)
    return tuple(text(lib.redlock_client_node_name, client, node) for node in range(count))


def votes(handle: Any, nodes: Sequence[str]) -> dict[str, Vote]:
    """Every node's answer to the last operation of a lock."""
    return {name: _vote(handle, node) for node, name in enumerate(nodes)}


def _vote(handle: Any, node: int) -> Vote:
    status = lib.redlock_lock_vote(handle, node)
    words, ttl, token = (text(lib.redlock_lock_answer, handle, node, field) for field in _FIELDS)
    return Vote(Status(status) if status >= 0 else Status.INVALID, words, _seconds(ttl), token)


_FIELDS = (lib.REDLOCK_ANSWER_WORDS, lib.REDLOCK_ANSWER_TTL_MS, lib.REDLOCK_ANSWER_TOKEN)


def _seconds(ttl_ms: str) -> Any:
    if ttl_ms == "none":
        return float("inf")
    return int(ttl_ms) / 1000 if ttl_ms else None

"""An operator's word that no lock is live, so that nodes that are new or were restarted vote at once."""

from __future__ import annotations

from typing import Any

from ._core import lib
from ._errors import error
from ._native import string, text

_RAN = (lib.REDLOCK_OK, lib.REDLOCK_NO_QUORUM, lib.REDLOCK_REFUSED_CONFIG)


def mode_of(new: bool, yes: bool, replace: bool, dry: bool = False) -> int:
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


def bootstrap(handle: Any, nodes: list[str], mode: int) -> list[dict[str, Any]]:
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

"""Keywords from the core's option table: "ttl_ms" in milliseconds is ttl= in seconds; the rest keeps its name."""

from __future__ import annotations

import math
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from ._core import ffi, lib
from ._errors import InvalidOption, RedlockError, Resource, error
from ._native import string, text

if TYPE_CHECKING:
    from typing import Literal, TypedDict

    Seconds = Union[int, float, timedelta]

    class LockOptions(TypedDict, total=False):
        """What client.lock() and client.guard() take; docs/options.md says what each is for."""

        ttl: Seconds
        wait: Optional[Seconds]
        retry_count: Optional[int]
        retry_delay: Seconds
        retry_jitter: float
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
        connect_timeout: Seconds
        key_prefix: str
        client_name: str
        exit_drain: Seconds


NODES_HINT = (
    "no nodes: give them as Client(['redis://host:port', ...]) or in the environment variable REDLOCK_NODES,"
    " separated by commas"
)


class Option(NamedTuple):
    """A row of the core's table and the keyword that it makes."""

    keyword: str
    name: str
    type: str
    is_ms: bool
    range: str
    of_locks: bool

    @property
    def allowed(self) -> str:
        return f"{self.range} ms, given in seconds" if self.is_ms else self.range

    @property
    def may_be_endless(self) -> bool:
        return self.range.startswith("-1 ")

    @property
    def may_be_auto(self) -> bool:
        return self.range.startswith("auto")


def _table() -> Iterable[Option]:
    index = 0
    while lib.redlock_option_at(index, lib.REDLOCK_OPTION_NAME) != ffi.NULL:
        name, kind, unit, allowed, scope = (string(lib.redlock_option_at(index, field)) for field in _FIELDS)
        keyword = name[: -len("_ms")] if unit == "ms" else name
        yield Option(keyword, name, kind, unit == "ms", allowed, scope == "both")
        index += 1


_FIELDS = (
    lib.REDLOCK_OPTION_NAME,
    lib.REDLOCK_OPTION_TYPE,
    lib.REDLOCK_OPTION_UNIT,
    lib.REDLOCK_OPTION_RANGE,
    lib.REDLOCK_OPTION_SCOPE,
)

OPTIONS: Dict[str, Option] = {option.keyword: option for option in _table()}
LOCK_KEYWORDS = frozenset(keyword for keyword, option in OPTIONS.items() if option.of_locks)
CLIENT_KEYWORDS = frozenset(OPTIONS) - {"nodes"}
TTL = OPTIONS["ttl"]


def refused(keyword: str, value: object, why: str) -> InvalidOption:
    return InvalidOption(f"{keyword}={value!r}: {why}")


def unknown(function: str, keyword: str, known: Iterable[str]) -> TypeError:
    """The error for a keyword that there is none of, with the nearest one that there is."""
    import difflib

    for option in OPTIONS.values():
        if option.is_ms and keyword == option.name:
            return TypeError(f"{function}() takes no {keyword}=: use {option.keyword}= in seconds")
    if keyword in OPTIONS:
        return TypeError(f"{function}() takes no {keyword}=: it is an option of the client, not of a lock")
    near = difflib.get_close_matches(keyword, sorted(known), 1, 0.5)
    hint = f"; did you mean {near[0]}=?" if near else ""
    return TypeError(f"{function}() takes no {keyword}={hint}")


def seconds(keyword: str, value: Any, allowed: str) -> float:
    """A duration given as seconds or as a timedelta."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{keyword}={value!r}: takes seconds (int, float) or a timedelta; allowed: {allowed}")
    if not math.isfinite(value):
        raise refused(keyword, value, f"not a duration; allowed: {allowed}")
    return value


def milliseconds(keyword: str, value: Any, allowed: str) -> int:
    """The same in whole milliseconds; a part of one counts as one, so that no duration becomes none."""
    duration = seconds(keyword, value, allowed)
    if duration < 0:
        raise refused(keyword, value, f"it is negative; allowed: {allowed}")
    return math.ceil(round(duration * 1000, 6))


def ttl_ms(value: Any) -> int:
    """The TTL of an extension, where the core takes 0 for "the option"."""
    if value is None:
        return 0
    ms = milliseconds("ttl", value, TTL.allowed)
    if not 0 < ms <= _INT64_MAX:
        raise refused("ttl", value, f"allowed: {TTL.allowed}")
    return ms


_INT64_MAX = 2**63 - 1


def as_text(option: Option, value: Any) -> str:
    """A keyword's value as the core reads it."""
    if value is None and option.may_be_endless:
        return "-1"
    if option.may_be_auto and isinstance(value, str) and value == "auto":
        return value
    if option.is_ms:
        endless = ", None: without limit" if option.may_be_endless else ""
        return str(milliseconds(option.keyword, value, option.allowed + endless))
    if not isinstance(value, _PYTHON_TYPES[option.type]) or isinstance(value, bool) != (option.type == "bool"):
        raise TypeError(f"{option.keyword}={value!r}: takes {_TYPE_WORDS[option.type]}; allowed: {option.range}")
    return str(value).lower() if option.type == "bool" else str(value)


_PYTHON_TYPES: Dict[str, Any] = {"int": int, "float": (int, float), "bool": bool, "string": str}
_TYPE_WORDS = {"int": "an int", "float": "a float", "bool": "True or False", "string": "a str"}


def as_bytes(keyword: str, value: str) -> bytes:
    """Text for the core, which ends at the first NUL."""
    if "\0" in value:
        raise InvalidOption(f"{keyword}: a NUL character is not allowed")
    return value.encode()


def node_urls(nodes: Union[None, str, Iterable[str]]) -> str:
    """The nodes as the core reads them. Never quotes them in an error: they may hold passwords."""
    if nodes is None:
        nodes = os.environ.get("REDLOCK_NODES", "")
    if isinstance(nodes, bytes) or not hasattr(nodes, "__iter__"):
        raise TypeError(f"nodes: takes URLs as one str or as several; this is {type(nodes).__name__}")
    urls: List[str] = [nodes] if isinstance(nodes, str) else list(nodes)
    for url in urls:
        if not isinstance(url, str):
            raise TypeError(f"nodes: every URL is a str; one is {type(url).__name__}")
    joined = ",".join(urls)
    if not joined.strip():
        raise InvalidOption(NODES_HINT)
    return joined


_pairs: Dict[Any, Tuple[bytes, bytes]] = {}
_PAIRS_KEPT = 1000


def pair(keyword: str, value: Any) -> Tuple[bytes, bytes]:
    """Name and value for the core, remembered because locks are made with the same few over and over."""
    try:
        return _pairs[keyword, type(value), value]
    except (KeyError, TypeError):
        option = OPTIONS[keyword]
        made = option.name.encode(), as_bytes(keyword, as_text(option, value))
    if len(_pairs) >= _PAIRS_KEPT:
        _pairs.clear()
    _pairs[keyword, type(value), value] = made
    return made


def set_client(client: Any, keyword: str, value: Any) -> None:
    if lib.redlock_client_set(client, *pair(keyword, value)):
        raise refused(keyword, value, text(lib.redlock_client_message, client))


def set_nodes(client: Any, nodes: Union[None, str, Iterable[str]]) -> None:
    if lib.redlock_client_set(client, b"nodes", as_bytes("nodes", node_urls(nodes))):
        raise InvalidOption(text(lib.redlock_client_message, client))


def set_lock(handle: Any, resource: Resource, keyword: str, value: Any) -> None:
    status = lib.redlock_lock_set(handle, *pair(keyword, value))
    if status == lib.REDLOCK_INVALID:
        raise InvalidOption(f"{keyword}={value!r}: {text(lib.redlock_lock_message, handle)}", resource=resource)
    if status:
        raise error(status, text(lib.redlock_lock_message, handle), resource)


def raise_for_client(client: Any, status: int) -> None:
    failure: RedlockError = error(status, text(lib.redlock_client_message, client))
    raise failure

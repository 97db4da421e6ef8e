"""Keywords from the core's option table: "ttl_ms" in milliseconds is ttl= in seconds; the rest keeps its name."""

from __future__ import annotations

import math
import os
import re
from datetime import timedelta
from numbers import Complex, Integral, Number, Real
from threading import TIMEOUT_MAX
from typing import Any, Iterable, NamedTuple, Optional, Sequence, Union

from ._core import ffi, lib
from ._errors import InvalidOption, RedlockError, error
from ._native import string, text
from .types import Resources

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
    range_parts: str
    default: str

    @property
    def allowed(self) -> str:
        if not self.may_be_endless:
            return spelled(self.range_parts)
        without_end = spelled(self.range_parts.replace(f"{_PART}-1{_PART}", "-1"))[len("-1") :]
        return f"0{without_end}, None: {'any that is free' if self.keyword == 'slot' else 'without limit'}"

    @property
    def may_be_endless(self) -> bool:
        return self.range.startswith("-1 ")

    @property
    def may_be_auto(self) -> bool:
        return self.range.startswith("auto")


def _table() -> Iterable[Option]:
    index = 0
    while lib.redlock_option_at(index, lib.REDLOCK_OPTION_NAME) != ffi.NULL:
        name, kind, unit, allowed, scope, *more = (string(lib.redlock_option_at(index, field)) for field in _FIELDS)
        keyword = name[: -len("_ms")] if unit == "ms" else name
        if keyword not in _OF_NO_LOCK:
            yield Option(keyword, name, kind, unit == "ms", allowed, scope == "both", *more)
        index += 1


_OF_NO_LOCK = ("reentrant",)  # a Lock may be shared, so it cannot tell who acquires it again


_FIELDS = [
    getattr(lib, f"REDLOCK_OPTION_{field}")
    for field in ("NAME", "TYPE", "UNIT", "RANGE", "SCOPE", "RANGE_PARTS", "DEFAULT")
]

OPTIONS: dict[str, Option] = {option.keyword: option for option in _table()}
_KEYWORDS = {option.name: option.keyword for option in OPTIONS.values()}
LOCK_KEYWORDS = frozenset(keyword for keyword, option in OPTIONS.items() if option.of_locks)
CLIENT_KEYWORDS = frozenset(OPTIONS) - {"nodes"}
TTL = OPTIONS["ttl"]


def refused(keyword: str, value: object, why: str, resource: Optional[Resources] = None) -> InvalidOption:
    return InvalidOption(f"{keyword}={value!r}: {why}", resource=resource)


_PART = "\x1f"  # redlock_lock_message_parts
_MS = re.compile(r'(?<!["\w])[a-z_]+_ms\b')  # in an advice, which is one part


def spelled(parts: Union[str, Sequence[str]]) -> str:
    """The core's words, given in parts, with options named as here and durations in seconds."""
    words = list(parts.split(_PART) if isinstance(parts, str) else parts)
    words[1::2] = [_spelled(part) for part in words[1::2]]
    return _MS.sub(lambda name: _KEYWORDS.get(name[0], name[0]), "".join(words))


def _spelled(part: str) -> str:
    return f"{int(part) / 1000:.12g} s" if part.isdigit() else _KEYWORDS.get(part, part)


def seconds_of(ms: str) -> float:
    """An option of the core in milliseconds; infinity where it has another value, such as "auto"."""
    return int(ms) / 1000 if ms.isdigit() else math.inf


def seconds_hint(ttl: Any, max_ttl_s: float) -> str:
    """For those who are used to milliseconds."""
    if isinstance(ttl, (int, float)) and ttl >= 1000 and ttl > max_ttl_s:
        return f"; ttl is in seconds: ttl={ttl / 1000:g} is what other libraries call {ttl:g} ms"
    return ""


def contradiction(parts: str) -> str:
    """Why options that are each allowed do not go together."""
    return spelled(parts).replace("slot is -1", "slot is None").replace("-1 for any", "None for any")


# What other libraries call it: redis-py, python-redis-lock, sherlock, pottery, redlock-py, redlock-ng, aioredlock.
_FOREIGN = {
    "use ttl=, how long the lease lives without an extension": (
        "auto_release_time expire expiry expires lease lease_time lock_ttl lock_timeout internal_lock_timeout"
    ),
    "use ttl=, how long the lease lives without an extension, or wait=, how long to wait for a busy lock": "timeout",
    "use ttl=, how long the lease lives without an extension, or wait=, how long to wait for a busy lock; both in"
    " seconds": "timeout_ms",
    "use wait=0 for one attempt, wait=None to wait for ever": "blocking context_manager_blocking",
    "use wait=, how long to wait for a busy lock": "blocking_timeout acquire_timeout context_manager_timeout",
    "use retry_delay=, the longest pause between two attempts": "sleep retry_interval retry_delay_min retry_delay_max",
    "use retry_count=, attempts after the first one": "retries max_retries retry_times tries",
    "use permits=, or client.semaphore(resource, count)": "count",
    "use max_extensions=": "num_extensions",
    "`with` and with_lock() release by themselves; a lease ends after ttl=": "auto_release",
    "use renew=; `with` and with_lock() renew by themselves": "auto_renewal watchdog",
    "release() raises Lost when the lock was lost; contextlib.suppress(Lost) ignores it": "raise_on_release_error",
    "NoQuorum is raised when too few nodes answer; a single node's error never is": "raise_on_redis_errors",
    "a Lock may be shared by threads: its methods mean the caller's own hold": "thread_local",
    "a token is made for each hold; client.adopt(resource, token) takes over one that detach() gave": "id owner token",
    "locks take it, and with_lock()": "on_lost",
    "locks of libredlock.aio take it, whose tasks can be cancelled": "cancel_on_lost",
    "client.with_lock() takes it": "hold on_busy",
    "use client.with_lock(resource, keep=); expire() sets what is left of a lease": "keep",
    "use client.rlock(), whose owner is a thread or a task, or with_lock(resource, reentrant=True)": "reentrant",
    "the resource is the first argument of lock()": "name key lock_name",
    "use Client(key_prefix=...)": "namespace lock_prefix",
    "the nodes are the first argument of Client(), as URLs: redis://user:password@host:port/database, rediss:// for"
    " TLS": "masters redis redis_client redis_connections connection_list servers host port db password ssl url urls",
}
FOREIGN = {word: hint for hint, words in _FOREIGN.items() for word in words.split()}


def unknown(function: str, keyword: str, known: Iterable[str]) -> TypeError:
    """TypeError for an unknown keyword, with what to use instead."""
    if function == "with_lock":
        known = (*known, "hold", "keep", "on_busy", "reentrant")
    return TypeError(f"{function}() takes no {keyword}={_instead_of(keyword, known)}")


def _instead_of(keyword: str, known: Iterable[str]) -> str:
    import difflib

    for option in OPTIONS.values():
        if option.is_ms and keyword == option.name:
            return f": use {option.keyword}= in seconds"
    if keyword in OPTIONS:
        return ": it is an option of the client, not of a lock"
    if keyword in FOREIGN:
        return f": {FOREIGN[keyword]}"
    near = difflib.get_close_matches(keyword, sorted(known), 1, 0.6)
    return f"; did you mean {near[0]}=?" if near else ""


def seconds(keyword: str, value: Any, allowed: str) -> float:
    """A duration given as seconds or as a timedelta."""
    duration = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(duration, (int, float)) and not _is_another_number(duration) or isinstance(duration, bool):
        raise TypeError(f"{keyword}={value!r}: takes seconds (int, float) or a timedelta; allowed: {allowed}")
    length = _float(duration)  # a small integer of numpy is not multiplied as it is
    if not 0 <= length * 1000 < math.inf:
        why = "it is negative" if length < 0 else "not a duration"
        raise refused(keyword, value, f"{why}; allowed: {allowed}")
    return length


def _float(number: Any) -> float:
    try:
        return float(number)
    except (ArithmeticError, ValueError):  # an int that is too large, a Decimal that is none
        return math.nan


def _is_another_number(value: Any) -> bool:
    """A Fraction, a Decimal or a number of numpy, for example."""
    return isinstance(value, Number) and (isinstance(value, Real) or not isinstance(value, Complex))


def milliseconds(keyword: str, value: Any, allowed: str) -> int:
    """The same in whole milliseconds; a part of one counts as one, so that no duration becomes none."""
    return math.ceil(round(seconds(keyword, value, allowed) * 1000, 6))


BY_OPTION = -2
NOT_GIVEN = -1

# A year: what the core takes. threading.TIMEOUT_MAX, which locks of threading take, is longer.
LONGEST_WAIT_MS = 31_536_000_000


def wait_ms(blocking: bool, timeout: Any) -> int:
    """The wait for acquire(blocking, timeout), judged as threading.Lock judges them."""
    if blocking is True and (timeout is NOT_GIVEN or (isinstance(timeout, (int, float)) and timeout == -1)):
        return BY_OPTION
    if not isinstance(blocking, bool):
        raise TypeError(f"blocking={blocking!r}: takes True or False; acquire(timeout=5) waits for 5 seconds at most")
    if not blocking:
        if timeout != -1:
            raise ValueError(f"timeout={timeout!r}: not allowed with blocking=False")
        return 0
    allowed = "-1 (the option wait), or 0 and more seconds"
    if isinstance(timeout, (int, float)) and timeout > TIMEOUT_MAX:
        raise OverflowError(f"timeout={timeout!r}: above threading.TIMEOUT_MAX ({TIMEOUT_MAX})")
    ms = milliseconds("timeout", timeout, allowed)
    if ms > TIMEOUT_MAX * 1000:
        raise OverflowError(f"timeout={timeout!r}: above threading.TIMEOUT_MAX ({TIMEOUT_MAX})")
    return min(ms, LONGEST_WAIT_MS)


def list_ms(timeout: Any) -> int:
    """The limit of a list, where the core takes -1 for none."""
    allowed = "None, or 0 and more seconds"
    return -1 if timeout is None else min(milliseconds("timeout", timeout, allowed), LONGEST_WAIT_MS)


def ttl_ms(value: Any) -> int:
    """The TTL of an extension, where the core takes 0 for "the option"."""
    if value is None:
        return 0
    ms = milliseconds("ttl", value, TTL.allowed)
    if not 0 < ms <= _INT64_MAX:
        raise refused("ttl", value, f"allowed: {TTL.allowed}")
    return ms


_INT64_MAX = 2**63 - 1


def default_of(keyword: str) -> Any:
    """What an option is unless it is given, as it would be given."""
    option = OPTIONS[keyword]
    words = option.default
    if keyword == "wait" or words == "-1":
        return None
    if option.is_ms:
        return float(words) / 1000 if words != "auto" else words
    kinds: dict[str, Any] = {"int": int, "float": float, "bool": lambda text: text == "true"}
    return kinds.get(option.type, str)(words)


def with_permits(count: Optional[int], options: Any) -> dict[str, Any]:
    """semaphore()'s second argument, which may also be given as the option permits."""
    if count is not None and "permits" in options:
        raise TypeError("semaphore() got multiple values for argument 'permits'")
    if count is None and "permits" not in options:
        raise TypeError("semaphore() misses an argument: how many permits, as in semaphore('gpu', 4)")
    return dict(options) if count is None else {**options, "permits": count}


def as_text(option: Option, value: Any) -> str:
    """A keyword's value as the core reads it."""
    made: Any = value
    if value is None and option.may_be_endless:
        return "-1"
    if option.may_be_auto and isinstance(value, str) and value == "auto":
        return value
    if option.is_ms:
        return str(milliseconds(option.keyword, value, option.allowed))
    if not isinstance(value, _PYTHON_TYPES[option.type]) or isinstance(value, bool) != (option.type == "bool"):
        raise TypeError(f"{option.keyword}={value!r}: takes {_TYPE_WORDS[option.type]}; allowed: {option.allowed}")
    if option.may_be_endless and str(made) == "-1":  # which the core takes for None
        raise refused(option.keyword, value, f"allowed: {option.allowed}")
    made = _float(made) if option.type == "float" else made
    return str(made).lower() if option.type == "bool" else str(made)


_PYTHON_TYPES: dict[str, Any] = {"int": Integral, "float": Real, "bool": bool, "string": str}
_TYPE_WORDS = {"int": "an int", "float": "a float", "bool": "True or False", "string": "a str"}


def as_bytes(keyword: str, value: str) -> bytes:
    """Text for the core, which ends at the first NUL."""
    if "\0" in value:
        raise InvalidOption(f"{keyword}: a NUL character is not allowed")
    try:
        return value.encode()
    except UnicodeEncodeError as failure:
        raise InvalidOption(f"{keyword}: not encodable as UTF-8 ({failure.reason})") from None


def node_urls(nodes: Union[None, str, Iterable[str]]) -> str:
    """The nodes as the core reads them. Never quotes them in an error: they may hold passwords."""
    if nodes is None:
        nodes = os.environ.get("REDLOCK_NODES", "")
    if isinstance(nodes, bytes) or not hasattr(nodes, "__iter__"):
        raise TypeError(f"nodes: takes URLs as one str or as several; this is {type(nodes).__name__}")
    urls: list[str] = [nodes] if isinstance(nodes, str) else list(nodes)
    for url in urls:
        if not isinstance(url, str):
            raise TypeError(f"nodes: every URL is a str; one is {type(url).__name__}")
    joined = ",".join(urls)
    if not joined.strip():
        raise InvalidOption(NODES_HINT)
    return joined


def pair(keyword: str, value: Any) -> tuple[bytes, bytes]:
    option = OPTIONS[keyword]
    return option.name.encode(), as_bytes(keyword, as_text(option, value))


def set_client(client: Any, keyword: str, value: Any) -> None:
    status = lib.redlock_client_set(client, *pair(keyword, value))
    if status == lib.REDLOCK_INVALID:
        raise refused(keyword, value, f"allowed: {OPTIONS[keyword].allowed}")
    if status:
        raise_for_client(client, status)


def set_nodes(client: Any, nodes: Union[None, str, Iterable[str]]) -> None:
    if lib.redlock_client_set(client, b"nodes", as_bytes("nodes", node_urls(nodes))):
        raise InvalidOption(text(lib.redlock_client_message, client))


def set_lock(handle: Any, resource: Resources, keyword: str, value: Any) -> None:
    status = lib.redlock_lock_set(handle, *pair(keyword, value))
    if status == lib.REDLOCK_INVALID:
        raise refused(keyword, value, f"allowed: {OPTIONS[keyword].allowed}", resource)
    if status:
        raise error(status, text(lib.redlock_lock_message, handle), resource)


def raise_for_client(client: Any, status: int, ttl: Any = None) -> None:
    hint = seconds_hint(ttl, seconds_of(text(lib.redlock_client_get, client, b"max_ttl_ms")))
    failure: RedlockError = error(status, contradiction(text(lib.redlock_client_message_parts, client)) + hint)
    raise failure

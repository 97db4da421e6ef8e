"""Waiting for a condition, with a bound."""
from __future__ import annotations

import time
from typing import Callable, TypeVar

T = TypeVar("T")


class Late(AssertionError):
    """Something has not come within its time: it is missing, or the machine is too busy."""


def eventually(condition: Callable[[], T], within_s: float = 30.0, what: str = "") -> T:
    """The first true value of condition(); Late, an AssertionError, when there is none within the bound."""
    end = time.monotonic() + within_s
    pause_s = 0.0005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise Late("not within %g s: %s (last: %r)" % (within_s, what or condition, value))
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.01)


def in_time(value: T, what: str = "") -> T:
    """A value that is true if the time sufficed; Late if it is not."""
    if not value:
        raise Late(what or "not in time")
    return value

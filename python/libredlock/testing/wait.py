"""Waiting for a condition, with a bound."""
from __future__ import annotations

import time
from typing import Callable, TypeVar

T = TypeVar("T")


def eventually(condition: Callable[[], T], within_s: float = 30.0, what: str = "") -> T:
    """The first true value of condition(); AssertionError when there is none within the bound."""
    end = time.monotonic() + within_s
    pause_s = 0.0005
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError("not within %g s: %s (last: %r)" % (within_s, what or condition, value))
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.01)

"""What nodes would keep of the locks of MemoryClient and AsyncMemoryClient."""
from __future__ import annotations

import secrets
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Callable, Dict, List, Optional

from .._core import lib

if TYPE_CHECKING:
    from .memory import _Lock


class Hold:
    """One lock that is held, or was."""

    def __init__(self, lock: _Lock, now: float, ttl: float, renews: bool, max_hold: Optional[float]) -> None:
        self.lock, self.since, self.renews = lock, now, renews
        self.token = secrets.token_hex(20)
        self.ends = now + ttl
        self.limit = float("inf") if max_hold is None else now + max_hold
        self.reason = ""  # of its loss

    def ends_at(self) -> float:
        return self.limit if self.renews else min(self.ends, self.limit)


class Store:
    """What the nodes would keep. Time is that of the machine, and what was let pass."""

    def __init__(self) -> None:
        self.mutex = threading.RLock()
        self.reachable = True
        self._passed = 0.0
        self._holds: Dict[bytes, Hold] = {}
        self._fences: Dict[bytes, int] = defaultdict(int)
        self.waiters: Dict[bytes, List[Callable[[], object]]] = defaultdict(list)

    def now(self) -> float:
        return float(lib.now_ms() / 1000 + self._passed)

    def pass_time(self, length: float) -> None:
        with self.mutex:
            self._passed += length
            for name in list(self._holds):
                self.hold_of(name)

    def lose(self, name: bytes, reason: str = "gone") -> None:
        with self.mutex:
            hold = self._holds.pop(name, None)
            if hold is not None:
                hold.reason = reason
                self.wake(name)
        if hold is not None:
            hold.lock._notify(hold)

    def hold_of(self, name: bytes) -> Optional[Hold]:
        hold = self._holds.get(name)
        if hold is not None and hold.ends_at() <= self.now():
            self.lose(name, "limit" if hold.renews else "expired")
            return None
        return hold

    def grant(self, name: bytes, hold: Hold) -> int:
        self._holds[name] = hold
        self._fences[name] += 1
        return self._fences[name]

    def free(self, name: bytes) -> None:
        self._holds.pop(name, None)
        self.wake(name)

    def wake(self, name: bytes) -> None:
        for wake in self.waiters[name][:1]:
            wake()

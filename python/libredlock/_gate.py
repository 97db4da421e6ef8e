"""The queue in memory of the threads that share one Lock.

A signal handler may raise between any two steps, so each change is a single call of a list, a deque or a set, which
threads and handlers see done or not done; there is no mutex that could stay taken.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Deque, List, Optional, Set

# A wake-up that a signal handler cut off is made good for within this time.
LOOK_AGAIN_S = 1.0


class Visit:
    """One call that wants to pass a gate."""

    __slots__ = ("turn",)

    turn: Any  # a locked lock that the visit sleeps on; there is none before it sleeps

    def wake(self) -> None:
        turn = getattr(self, "turn", None)
        if turn is not None:
            _open(turn)


class Room:
    """What the gates of one client share: who sleeps at them, to be woken when it is closed."""

    __slots__ = ("sleepers", "closed")

    def __init__(self) -> None:
        self.sleepers: Set[Visit] = set()
        self.closed = False

    def close(self) -> None:
        self.closed = True
        for visit in list(self.sleepers):
            visit.wake()


class Gate:
    """Lets one visit in at a time, in the order of their coming: the first in the line is in, until it leaves.

    While it holds the lock it is the holder too.
    """

    __slots__ = ("_line", "_holders", "_room")

    def __init__(self, room: Room) -> None:
        self._line: Deque[Visit] = deque()
        self._holders: List[Visit] = []
        self._room = room

    @property
    def holder(self) -> Optional[Visit]:
        return self._holders[0] if self._holders else None

    @property
    def waiting(self) -> int:
        """How many wait behind the one that is in."""
        return max(0, len(self._line) - 1)

    def is_in(self, visit: Visit) -> bool:
        line = self._line
        return bool(line) and line[0] is visit

    def enter(self, visit: Visit) -> bool:
        """Takes a place in the line: True if it is the first."""
        self._line.append(visit)
        return self._line[0] is visit

    def sleep(self, visit: Visit, timeout: float) -> bool:
        """Waits in the line for up to timeout seconds (-1: for ever): True if it came to be the first."""
        visit.turn = turn = threading.Lock()
        turn.acquire()
        end = time.monotonic() + timeout
        self._room.sleepers.add(visit)
        try:
            while not self.is_in(visit) and not self._room.closed:
                left = LOOK_AGAIN_S if timeout < 0 else min(LOOK_AGAIN_S, end - time.monotonic())
                if left <= 0:
                    break
                turn.acquire(timeout=left)
        finally:
            self._room.sleepers.discard(visit)
        return self.is_in(visit)

    def is_held_by(self, visit: Visit) -> bool:
        return visit in self._holders

    def hold(self, visit: Visit) -> None:
        self._holders.append(visit)

    def unhold(self, visit: Visit) -> bool:
        """Ends the hold: True for the one call that did it."""
        try:
            self._holders.remove(visit)
        except ValueError:
            return False
        return True

    def leave(self, visit: Visit) -> None:
        """Gives up the place in the line, and wakes who is the first then."""
        try:
            self._line.remove(visit)
            self._line[0].wake()
        except (ValueError, IndexError):
            pass


def _open(turn: Any) -> None:
    try:
        turn.release()
    except RuntimeError:
        pass  # woken already

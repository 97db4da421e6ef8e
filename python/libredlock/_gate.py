"""The queue in memory of the threads that share one Lock."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Deque, Dict, Optional, Set, Tuple


class Room:
    """All the gates of one client: their mutex, and who waits at them."""

    __slots__ = ("mutex", "turns", "closed")

    def __init__(self) -> None:
        self.mutex = threading.RLock()
        self.turns: Set[Any] = set()
        self.closed = False

    def close(self) -> None:
        """Wakes everybody who waits."""
        with self.mutex:
            self.closed = True
            while self.turns:
                self.turns.pop().release()


class Gate:
    """Lets one visit in at a time, in the order of their coming. A visit is any object that stands for one call.

    It stays closed from enter() to leave(); while the visit that is in holds the lock it is the holder too. Both stand
    in a dict, whose setdefault() and pop() are one step for all other threads and for signal handlers.
    """

    __slots__ = ("_inside", "_room", "_queue")

    def __init__(self, room: Room) -> None:
        self._inside: Dict[str, object] = {}
        self._room = room
        self._queue: Deque[Tuple[object, Any]] = deque()

    @property
    def owner(self) -> Optional[object]:
        return self._inside.get("owner")

    @property
    def holder(self) -> Optional[object]:
        return self._inside.get("holder")

    def enter(self, visit: object) -> bool:
        """True if the gate was open."""
        return self._inside.setdefault("owner", visit) is visit

    def hold(self, visit: object) -> None:
        """The visit that is in holds the lock."""
        self._inside["holder"] = visit

    def take(self) -> Optional[object]:
        """The holder, for the one thread that may release the lock; None for all others."""
        return self._inside.pop("holder", None)

    def queue(self, visit: object, timeout: float) -> bool:
        """Waits for up to timeout seconds (-1: for ever): True if let in, False if not, or if the room was closed."""
        room = self._room
        turn = threading.Lock()
        turn.acquire()
        with room.mutex:
            if self.enter(visit):
                return True
            if room.closed:
                return False
            self._queue.append((visit, turn))
            room.turns.add(turn)
        turn.acquire(timeout=timeout)
        with room.mutex:
            room.turns.discard(turn)
            if self.owner is not visit:
                self._forget(visit)
            return self.owner is visit

    def leave(self, visit: object) -> None:
        """Opens the gate for the next in the queue, or takes the visit out of the queue."""
        with self._room.mutex:
            inside = self._inside
            if inside.get("owner") is not visit:
                self._forget(visit)
            elif self._queue:
                inside.pop("holder", None)
                inside["owner"], turn = self._queue.popleft()
                if turn in self._room.turns:
                    self._room.turns.discard(turn)
                    turn.release()
            else:
                inside.clear()

    def _forget(self, visit: object) -> None:
        for waiter in self._queue:
            if waiter[0] is visit:
                self._queue.remove(waiter)
                self._room.turns.discard(waiter[1])
                return

"""The queue in memory of the threads that share one Lock."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Deque, Optional, Set, Tuple


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

    It stays closed from enter() to leave(); `holder` is set in between, while that visit holds the lock.
    """

    __slots__ = ("owner", "holder", "_room", "_queue")

    def __init__(self, room: Room) -> None:
        self.owner: Optional[object] = None
        self.holder: Optional[object] = None
        self._room = room
        self._queue: Deque[Tuple[object, Any]] = deque()

    def enter(self, visit: object) -> bool:
        """True if the gate was open."""
        with self._room.mutex:
            if self.owner is None:
                self.owner = visit
            return self.owner is visit

    def queue(self, visit: object, timeout: float) -> bool:
        """Waits for up to timeout seconds (-1: for ever): True if let in, False if not, or if the room was closed."""
        room = self._room
        turn = threading.Lock()
        turn.acquire()
        with room.mutex:
            if self.owner is None:
                self.owner = visit
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

    def take(self) -> Optional[object]:
        """The visit that holds the lock, for the one thread that may release it; None for all others."""
        with self._room.mutex:
            visit, self.holder = self.holder, None
            return visit

    def leave(self, visit: object) -> None:
        """Opens the gate for the next in the queue, or takes the visit out of the queue."""
        with self._room.mutex:
            if self.owner is not visit:
                self._forget(visit)
                return
            self.owner = self.holder = None
            if self._queue:
                self.owner, turn = self._queue.popleft()
                if turn in self._room.turns:
                    self._room.turns.discard(turn)
                    turn.release()

    def _forget(self, visit: object) -> None:
        for waiter in self._queue:
            if waiter[0] is visit:
                self._queue.remove(waiter)
                self._room.turns.discard(waiter[1])
                return

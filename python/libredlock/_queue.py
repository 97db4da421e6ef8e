"""The line in memory of the threads or tasks that share one Lock: the first is served, the others sleep.

A line is a list. A signal handler may raise between any two steps, so every change of it is a single call of the list,
which others see done or not done; there is no mutex that could stay taken.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional

Line = List["Ticket"]


class Ticket:
    """One call's place in the line of a Lock. Nothing is set at first, since most calls find the line empty."""

    __slots__ = ("task", "owner", "wake", "is_notified", "binding")

    task: Any
    """Which task made the call, in asyncio."""
    owner: Any
    """Who holds the lock with it: a thread, a greenlet or a task; LEAVING while it is released."""
    wake: Callable[[], object]
    """What ends its sleep."""
    is_notified: bool
    """on_lost was called for its hold."""
    binding: Any
    """The event loop that it belongs to, in asyncio."""


LEAVING = object()


def holder(line: Line) -> Optional[Ticket]:
    """The first ticket if it holds the lock."""
    front = first(line)
    return front if front is not None and getattr(front, "owner", LEAVING) is not LEAVING else None


def first(line: Line) -> Optional[Ticket]:
    try:
        return line[0]
    except IndexError:
        return None


def leave(line: Line, ticket: Ticket) -> None:
    """Gives the place up, if it still has one, and wakes who is first then."""
    try:
        line.remove(ticket)
    except ValueError:
        return
    if line:
        wake = getattr(first(line), "wake", None)
        if wake is not None:
            wake()

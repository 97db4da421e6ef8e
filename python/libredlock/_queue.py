"""The line in memory of the threads or tasks that share one Lock: the first is served, the others sleep.

A line is a list. A signal handler may raise between any two steps, so every change of it is a single call of the list,
which others see done or not done; there is no mutex that could stay taken.
"""

from __future__ import annotations

from typing import Any, Callable, List, Optional


class Ticket:
    """One call's place in the line of a Lock."""

    owner: Any = None
    """Who holds the lock with it: a thread, a greenlet or a task. None while it waits."""
    wake: Optional[Callable[[], object]] = None
    """Set before it sleeps."""
    is_leaving = False
    """A release of its hold is under way."""
    is_told = False
    """on_lost was called for its hold."""


Line = List[Ticket]


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
    wake_first(line)


def wake_first(line: Line) -> None:
    following = first(line)
    if following is not None and following.wake is not None:
        following.wake()

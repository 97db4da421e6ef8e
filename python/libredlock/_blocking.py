"""Operations that run to their end in the calling thread, and warnings about waits that look like a mistake."""

from __future__ import annotations

import os
import sys
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ._core import lib
from ._hold import PENDING
from ._lock import HOLDER_LIMIT_MS, WARN_AFTER_MS, warn_of_itself
from ._native import held_by

if TYPE_CHECKING:
    from ._client import Client

SLICE_MS = lib.SLICE_MS
CANCELLED = lib.REDLOCK_CANCELLED
INVALID = lib.REDLOCK_INVALID
_run = lib.run_operation
_wait = lib.redlock_lock_wait


def drive(client: Client, handle: Any, operation: int, argument: int) -> int:
    """Runs an operation to its end; signal handlers run in between if this is the main thread."""
    status: int = _run(handle, operation, argument)
    return wait(client, handle) if status == PENDING else status


def wait(client: Client, handle: Any, lock: Any = None) -> int:
    """The end of an operation that is not over at once; lock: by which a hold is acquired."""
    warn_if_a_loop_stops()
    is_main = get_ident() == lib.main_thread
    is_own = bool(lock) and lock._waits_for_itself(client._current())
    status, slices = PENDING, 0 if is_main else WARN_AFTER_MS // SLICE_MS - 1
    try:
        while status == PENDING:
            if is_main and client._is_patched():
                return int(client._greenlets.wait(client, handle))
            status = _wait(handle, SLICE_MS if is_main or is_own else -1)
            slices += 1
            if slices == WARN_AFTER_MS // SLICE_MS and status == PENDING:
                if lock is not None and is_own:
                    warn_of_itself("thread", repr(lock._resource))
                    is_own = False
                elif lock is None or not lock.locked():
                    _warn_of_itself(handle)
    except BaseException:  # of a signal handler
        lib.redlock_lock_cancel(handle)
        raise
    return int(CANCELLED if status == INVALID else status)  # INVALID: the client was closed since it was started


def _warn_of_itself(handle: Any) -> None:
    """The main thread waits for a lock that this process holds, and there is no other thread that may release it."""
    import threading

    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if any(thread.name != "libredlock" for thread in others):
        return
    lib.redlock_lock_who(handle, HOLDER_LIMIT_MS)
    known = held_by(handle)
    if known is not None and (known.pid, known.host) == (os.getpid(), os.uname().nodename):
        warn_of_itself("thread", "a lock")


def warn_if_a_loop_stops() -> None:
    """Once in a process, where a thread that runs an event loop has to wait. Not at a prompt, such as Jupyter's: its
    loop stands still during each line that is not async."""
    global _has_warned
    asyncio = sys.modules.get("asyncio")
    if _has_warned or asyncio is None or asyncio._get_running_loop() is None or hasattr(sys, "ps1"):
        return
    _has_warned = True
    import warnings

    words = "libredlock.Client blocks the event loop that runs in this thread while it waits; use libredlock.aio.Client"
    warnings.warn(words, RuntimeWarning, stacklevel=6)


_has_warned = False

"""Child processes that never outlive us: ended by pid on close, at exit, and by the kernel if we are killed."""
from __future__ import annotations

import atexit
import ctypes
import os
import signal
import subprocess
import sys
import weakref
from typing import Any, List, Optional

from .wait import eventually

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
_children: "weakref.WeakSet[Child]" = weakref.WeakSet()


class Child:
    """A process of ours. The parent-death signal belongs to the starting thread: start from one that stays."""

    def __init__(self, argv: List[str], **popen: Any) -> None:
        self.owner = os.getpid()
        owner = self.owner

        def die_with_parent() -> None:
            if _libc is not None:
                _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != owner:
                    os._exit(1)

        self.process = subprocess.Popen(argv, preexec_fn=die_with_parent, **popen)
        self.pid = self.process.pid
        _children.add(self)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> None:
        """SIGSTOP, and waits until it does nothing any more: the signal alone may find it at work."""
        self.signal(signal.SIGSTOP)
        if sys.platform == "linux":
            eventually(lambda: not self.alive or self._state() == "T", 30, "process %d stops" % self.pid)

    def _state(self) -> str:
        with open("/proc/%d/stat" % self.pid) as stat:
            return stat.read().rpartition(")")[2].split()[0]

    def end(self) -> Optional[int]:
        """Kills and reaps it; a forked child of the test leaves its parent's processes alone."""
        if os.getpid() != self.owner:
            return None
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait()


@atexit.register
def _end_all() -> None:
    for child in list(_children):
        child.end()

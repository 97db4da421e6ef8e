"""Child processes that never outlive us: ended by pid on close, at exit, and by the kernel if we are killed."""
from __future__ import annotations

import atexit
import functools
import os
import signal
import subprocess
import sys
import weakref
from typing import Any, Dict, List, Optional

from .wait import eventually

_children: "weakref.WeakSet[Child]" = weakref.WeakSet()


def _without_preload() -> Dict[str, str]:
    """What is loaded into us, a sanitizer say, is not for others."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@functools.lru_cache(maxsize=None)
def begin_with(parent: int) -> List[str]:
    """What a command begins with that is to die with its parent; nothing where setpriv is not that of util-linux. A
    preexec_fn would run Python in the child, which may wait for ever for a lock that another thread had at the fork."""
    # the shell sees whether the parent died before the signal was asked for
    begin = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", 'test $PPID = "$0" && exec "$@"', str(parent)]
    try:
        known = subprocess.call([*begin[:3], "true"], env=_without_preload(), stderr=subprocess.DEVNULL) == 0
    except FileNotFoundError:
        known = False
    return begin if known else []


class Child:
    """A process of ours. The parent-death signal belongs to the starting thread: start from one that stays."""

    def __init__(self, argv: List[str], **popen: Any) -> None:
        self.owner = os.getpid()
        popen.setdefault("env", _without_preload())
        self.process = subprocess.Popen([*begin_with(self.owner), *argv], **popen)
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

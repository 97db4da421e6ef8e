"""A place in the traffic of a proxy: after byte k of the n-th command that matches NAME KEY, or of its reply."""
from __future__ import annotations

from typing import Any, Callable, List, Optional


class Cut:
    """Where the proxy stops for an action; it happens once."""

    def __init__(self, direction: str, name: str, key: Any, nth: int, byte: Optional[int],
                 action: Callable[[], Any]) -> None:
        self.direction = direction
        self.name = name.upper().encode()
        self.key: Optional[bytes] = key.encode() if isinstance(key, str) else key
        self.left = nth
        self.byte = byte
        self.action = action

    def is_at(self, args: List[bytes]) -> bool:
        """Counts the command if it matches; True if it is the one."""
        if args and args[0].upper() == self.name and (self.key is None or self.key in args[1:]):
            self.left -= 1
        return self.left == 0

    def place(self, size: int) -> int:
        """How many bytes of a command or reply of that size are in front of it."""
        return size if self.byte is None else min(self.byte, size)


def frame_end(data: bytes, start: int = 0) -> int:
    """Where the RESP value that begins at start ends; 0 while it is not complete."""
    line = data.find(b"\r\n", start)
    if line < 0:
        return 0
    kind, end = data[start:start + 1], line + 2
    if kind not in (b"$", b"*"):
        return end
    count = int(data[start + 1:line])
    if kind == b"$":
        end += count + 2 if count >= 0 else 0
        return end if len(data) >= end else 0
    for _ in range(count):
        end = frame_end(data, end)
        if not end:
            return 0
    return end


def arguments(frame: bytes) -> List[bytes]:
    """The arguments of one complete command."""
    args, at = [], frame.index(b"\r\n") + 2
    while at < len(frame):
        line = frame.index(b"\r\n", at)
        size = int(frame[at + 1:line])
        args.append(frame[line + 2:line + 2 + size])
        at = line + 4 + size
    return args

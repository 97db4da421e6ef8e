"""python -m libredlock: the command redlock, which this package has installed."""

from __future__ import annotations

import os
import signal
import sys
from importlib import metadata
from pathlib import Path
from typing import Iterator

NOT_INSTALLED = 127


def places() -> Iterator[Path]:
    """Where pip has put it: its own record says so, but not after `pip install --target`."""
    try:
        for file in metadata.distribution("libredlock").files or ():
            if file.name == "redlock":
                yield Path(str(file.locate()))
    except metadata.PackageNotFoundError:
        pass
    yield Path(__file__).resolve().parents[1] / "bin" / "redlock"


def main() -> int:
    command = next((path for path in places() if os.access(path, os.X_OK)), None)
    if command is None:
        print("libredlock: the command redlock is not beside this package: install it with pip", file=sys.stderr)
        return NOT_INSTALLED
    for name in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and which the command would inherit so
        signal.signal(name, signal.SIG_DFL)
    os.execv(command, ["redlock", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())

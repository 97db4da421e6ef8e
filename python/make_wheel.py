"""Builds a wheel that carries its own hiredis: python make_wheel.py FOLDER (needs auditwheel and patchelf)."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def make_wheel(folder):
    """Returns the wheel's path. Its platform tag is the oldest that the build machine's libc allows."""
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    with tempfile.TemporaryDirectory() as plain:
        run = {"check": True, "cwd": plain, "env": {**os.environ, "PATH": tools}}
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", plain, str(ROOT)], **run)
        (wheel,) = Path(plain).glob("libredlock-*.whl")
        subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(folder), str(wheel)], **run)
    return max(Path(folder).glob("libredlock-*.whl"), key=os.path.getmtime)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where to put the wheel")
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    print(make_wheel(folder))


if __name__ == "__main__":
    main()

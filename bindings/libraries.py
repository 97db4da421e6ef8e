"""Where the C libraries come from that the Python package is linked with: copies in third_party, which source
distributions have and the repository has not, or the system's."""

import os
import shlex
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import List

ROOT = Path(__file__).resolve().parent.parent
HAVE = "UNISTD_H STDINT_H FCNTL_H SYS_STAT_H SYS_TIME_H SYS_TYPES_H GETTIMEOFDAY GETPID SCHED_H SCHED_YIELD OPEN CLOSE"
HAVE += " READ ATOMIC_BUILTINS SYNC_BUILTINS STPCPY SRANDOM STRERROR VASPRINTF"
BUNDLED_FLAGS = ["-w", "-DUSE_URANDOM", '-DPACKAGE="popt"', '-DPOPT_SYSCONFDIR="/etc"']
BUNDLED_FLAGS += [f"-DHAVE_{name}" for name in HAVE.split()]
INSTALL_HINT = (
    "libredlock needs hiredis, jansson, popt and pkg-config to build: apt-get install libhiredis-dev libjansson-dev"
    " libpopt-dev pkg-config (Fedora: dnf install hiredis-devel jansson-devel popt-devel pkgconf;"
    " macOS: brew install hiredis pkgconf)"
)

# What is linked in stays inside, as the names of a library on macOS do by themselves.
HIDDEN = [] if sys.platform == "darwin" else ["-Wl,--exclude-libs,ALL"]

COMPILER_HINT = "libredlock needs a C compiler to build, and there is no {}: apt-get install gcc libc6-dev (or set CC)"


@dataclass
class Library:
    cflags: List[str]
    sources: List[str] = field(default_factory=list)
    libs: List[str] = field(default_factory=list)


def pkg_config(name, *flags):
    try:
        found = subprocess.run(["pkg-config", *flags, name], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        sys.exit(INSTALL_HINT)
    return shlex.split(found.stdout)


def bundled(name):
    folder = f"third_party/{name}"
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).glob("*.c"))
    if not sources:
        sys.exit(f"REDLOCK_LIBRARIES is \"bundled\", but there is no {folder} here; allowed: system")
    # hiredis 0.14 has a function whose type is not quite that of the pointer to it
    return Library([f"-I{folder}", "-Ithird_party", "-Wno-incompatible-pointer-types"], sources=sources)


def archive(name):
    """The static library where pkg-config or the compiler knows it, or None."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    try:
        asked = subprocess.run([*compiler, f"-print-file-name=lib{name}.a"], capture_output=True, text=True)
    except OSError:
        sys.exit(COMPILER_HINT.format(compiler[0]))
    places = [Path("".join(pkg_config(name, "--variable=libdir")), f"lib{name}.a"), Path(asked.stdout.strip())]
    return next((str(path) for path in places if path.is_absolute() and path.is_file()), None)


def system(name):
    """Linked in where there is an archive, so that a wheel needs no such library on the machine that it is moved to."""
    cflags, libs = pkg_config(name, "--cflags"), pkg_config(name, "--libs")
    found = archive(name)
    return Library(cflags, libs=[found, *HIDDEN] if found else libs)


def library(name):
    """The copy in this tree if it has one, else the system's."""
    kinds = {"bundled": bundled, "system": system}
    kind = os.environ.get("REDLOCK_LIBRARIES") or ("bundled" if (ROOT / "third_party").is_dir() else "system")
    if kind not in kinds:
        sys.exit(f"REDLOCK_LIBRARIES is \"{kind}\"; allowed: {', '.join(kinds)}")
    return kinds[kind](name)

"""The recipe of the Python extension libredlock._core: the core's sources and cffi's wrapper in one shared object."""
import shlex
import subprocess
import sys
from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bindings"))
from cdef import declarations  # noqa: E402

INSTALL_HINT = (
    "libredlock needs hiredis and pkg-config to build: apt-get install libhiredis-dev pkg-config"
    " (Fedora: dnf install hiredis-devel pkgconf, macOS: brew install hiredis pkg-config)"
)


def pkg_config(*flags):
    try:
        found = subprocess.run(["pkg-config", *flags, "hiredis"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        sys.exit(INSTALL_HINT)
    return shlex.split(found.stdout)


def link_args():
    if sys.platform == "darwin":
        return ["-Wl,-exported_symbol,_PyInit__core"]
    return ["-Wl,--version-script=python/exports.map", "-Wl,--exclude-libs,ALL", "-Wl,-z,nodelete"]


def builder():
    ffi = FFI()
    ffi.cdef(declarations(ROOT / "core/include/redlock.h"))
    ffi.set_source(
        "libredlock._core",
        '#include "redlock.h"',
        sources=(ROOT / "core/sources.txt").read_text().split(),
        depends=["core/sources.txt", "python/exports.map", *map(str, sorted(ROOT.glob("core/**/*.h")))],
        include_dirs=["core/include"],
        define_macros=[("_GNU_SOURCE", "")],
        extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-pthread", *pkg_config("--cflags")],
        extra_link_args=[*link_args(), "-pthread", *pkg_config("--libs")],
        py_limited_api=True,
    )
    return ffi


ffibuilder = builder()

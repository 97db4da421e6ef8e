#!/usr/bin/env python3
"""The declarations of redlock.h for cffi, derived from the header itself.

    cdef.py [HEADER]              prints them
    cdef.py --functions [HEADER]  prints the names of the functions

The header keeps to what this needs: no variadic or inline function, no callback, no struct by value, and conditionals
only around C++ and attributes.
"""
import contextlib
import hashlib
import os
import re
import runpy
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "core" / "include" / "redlock.h"


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def declarations(header=HEADER):
    """C declarations that cffi's cdef() reads: enums, opaque types and functions."""
    text = without_comments(Path(header).read_text(encoding="utf-8"))
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text, flags=re.S | re.M)
    attributes = re.findall(r"^#define (\w+)[ \t]*$", text, flags=re.M)
    text = re.sub(r"^#.*(?:\\\n.*)*\n", "", text, flags=re.M)
    text = re.sub(r"\b(?:%s)\b" % "|".join(attributes), "", text)
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


def parsed():
    """An FFI that knows the declarations. cffi takes longer to read them than a short program runs: what it has read
    is kept in build/cdef."""
    import _cffi_backend

    text = declarations()
    name = "cdef_" + hashlib.sha256((_cffi_backend.__version__ + text).encode()).hexdigest()[:16]
    path = ROOT / f"build/cdef/{name}.py"
    if not path.exists():
        import cffi

        path.parent.mkdir(parents=True, exist_ok=True)
        ffi = cffi.FFI()
        ffi.cdef(text)
        ffi.set_source(name, None)
        own = path.with_suffix(f".{os.getpid()}")
        with contextlib.redirect_stdout(None):
            ffi.emit_python_code(str(own))
        own.rename(path)
    return runpy.run_path(str(path))["ffi"]


def functions(header=HEADER):
    """Names of the functions, in the header's order."""
    return re.findall(r"\b(redlock_\w+)\(", declarations(header))


def version(header=HEADER):
    """REDLOCK_VERSION, the one place where the version stands."""
    return re.search(r'^#define REDLOCK_VERSION "([^"]+)"', Path(header).read_text(encoding="utf-8"), re.M).group(1)


def has_stable_abi():
    """Free-threaded CPython has none."""
    return not sysconfig.get_config_var("Py_GIL_DISABLED")


def main(arguments):
    names_only = "--functions" in arguments
    header = next((a for a in arguments if not a.startswith("-")), HEADER)
    sys.stdout.write("\n".join(functions(header)) + "\n" if names_only else declarations(header))


if __name__ == "__main__":
    main(sys.argv[1:])

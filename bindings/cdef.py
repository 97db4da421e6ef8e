#!/usr/bin/env python3
"""The declarations of redlock.h for cffi, derived from the header itself.

    cdef.py [HEADER]              prints them
    cdef.py --functions [HEADER]  prints the names of the functions

The header keeps to what this needs: no variadic or inline function, no callback, no struct by value, and conditionals
only around C++ and attributes.
"""
import re
import sys
import sysconfig
from pathlib import Path

HEADER = Path(__file__).resolve().parent.parent / "core" / "include" / "redlock.h"


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

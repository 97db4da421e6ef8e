#!/usr/bin/env python3
"""Writes docs/options.md from the option table of the built library.

    options.py LIBRARY      prints the page
"""
import ctypes
import itertools
import sys

FIELDS = ("name", "type", "unit", "default", "range", "scope", "help")  # enum redlock_option_field

HEAD = """# Options

This page is made from the option table of the library by `./dev docs`; do not edit it.

An option is set by name with a text: `redlock_client_set(client, "ttl_ms", "10000")` before `redlock_client_open`.
Those of scope *both* may also be set for one lock, `redlock_lock_set(lock, "ttl_ms", "500")`; a lock starts with its
client's. The command line has flags of the same names with dashes, and durations with a unit instead of `_ms`:
`--retry-delay 200ms`. A name that is not here or a value out of range is refused with a message that names it and what
is allowed.

| option | type | default | allowed | scope | meaning |
|---|---|---|---|---|---|
"""


def read_options(library):
    option_at = ctypes.CDLL(library).redlock_option_at
    option_at.restype = ctypes.c_char_p
    option_at.argtypes = ctypes.c_int, ctypes.c_int
    for index in itertools.count():
        if option_at(index, 0) is None:
            return
        yield {name: option_at(index, field).decode() for field, name in enumerate(FIELDS)}


def row(option):
    unit = f" ({option['unit']})" if option["unit"] else ""
    default = f"`{option['default']}`" if option["default"] else ""
    cells = f"`{option['name']}`", option["type"] + unit, default, option["range"], option["scope"], option["help"]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("[", "\\[") for cell in cells) + " |\n"


def page(library):
    return HEAD + "".join(map(row, read_options(library)))


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1]))

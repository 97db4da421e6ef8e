#!/usr/bin/env python3
"""Writes docs/options.md from the option table of the built library.

    options.py LIBRARY      prints the page
"""
import ctypes
import itertools
import sys

# enum redlock_option_field
FIELDS = ("name", "type", "unit", "default", "range", "scope", "help", "range_parts", "purpose")

HEAD = """<!-- Made from the option table of the library by ./dev docs: do not edit it. -->

# Options

Options are set by name, as strings: `redlock_client_set(client, "ttl_ms", "10000")` before `redlock_client_open`.
Those of scope *both* may also be set for one lock, `redlock_lock_set(lock, "ttl_ms", "500")`; a lock starts with
its client's. The command has flags of the same names, and durations with a unit instead of `_ms`: `--retry-delay
200ms`. An unknown name or a value out of range is refused with a message that names it and what is allowed.

The column *elsewhere* has the defaults that differ from those of the library.
"""

TABLE = """
## {title}

| option | type | default | elsewhere | allowed | scope | meaning |
|---|---|---|---|---|---|---|
"""

GROUPS = {  # the purposes of the options in it
    "Nodes": "node",
    "The lease": "lease hold handle",
    "Waiting and the attempt": "grant wait",
    "Kinds of lock": "kind",
    "TLS": "tls",
}

ELSEWHERE = {  # what a face sets where its user says nothing
    "wait_ms": "Python, `redlock lead`, elections: no limit; `redlock run`, `lock`, `acquire`: 40 s",
    "outage_wait_ms": "`redlock lead`, elections: no limit",
    "fence": "`redlock lead`, elections: true",
    "renew": "`redlock run`, `lock`, `lead`, `with` in Python, `run()` in PHP: true",
    "connect_timeout_ms": "`redlock status`, `doctor`, `ls`, `top`: 1 s",
}


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
    name = f'<a id="{option["name"]}"></a>`{option["name"]}`'
    cells = (name, option["type"] + unit, default, ELSEWHERE.get(option["name"], ""), option["range"],
             option["scope"], option["help"])
    return "| " + " | ".join(cell.replace("|", "\\|").replace("[", "\\[") for cell in cells) + " |\n"


def page(library):
    options = list(read_options(library))
    text = HEAD
    for title, purposes in GROUPS.items():
        chosen = [option for option in options if option["purpose"] in purposes.split()]
        text += TABLE.format(title=title) + "".join(map(row, chosen))
    return text


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1]))

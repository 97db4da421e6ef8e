#!/usr/bin/env python3
"""Writes into the PHP library what the C library says: options into signatures, constants into the stub.

    php_options.py LIBRARY          writes them anew
    php_options.py --check LIBRARY  names the files that are not current, and fails if there is one

A signature has them between two comments: "options" has those of a client, "options of locks" those that a lock may
set too. A new option so becomes a named and typed parameter everywhere. The stub has the constants of redlock.h.
"""
import re
import sys
import textwrap
from pathlib import Path

import options

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings"))

import cdef  # noqa: E402

TYPES = {"int": "?int", "float": "?float", "bool": "?bool", "string": "?string"}
STUB = ROOT / "php/lib/stubs/redlock.stub.php"
CONSTANTS = re.compile(r"(?<=/\* constants: made by \./dev docs \*/\n)(?:.*\n)*?(?= */\* end of constants \*/)")
PLACE = re.compile(r"^( *)/\* (options(?: of locks)?): made by \./dev docs \*/\n"
                   r"(?:.*\n)*?(?= */\* end of options \*/)", re.M)


def camel(name):
    return re.sub(r"_([a-z])", lambda match: match.group(1).upper(), name)


def parameter(option):
    words = option["type"] == "int" and not re.fullmatch(r"-?\d+", option["default"])  # "auto"
    kind = "int|string|null" if words else TYPES[option["type"]]
    return f"{kind} ${camel(option['name'])} = null,"


def signature(table, of_locks, indent):
    parameters = " ".join(parameter(option) for option in table
                          if option["type"] != "nodes" and (option["scope"] == "both" or not of_locks))
    unbroken = re.sub(r"(?<!,) ", "\0", parameters)  # lines end after a parameter
    lines = textwrap.wrap(unbroken, 120 - len(indent), break_long_words=False)
    return "".join(f"{indent}{line}\n" for line in lines).replace("\0", " ")


def current(text, table):
    def place(match):
        indent, what = match.groups()
        return f"{indent}/* {what}: made by ./dev docs */\n{signature(table, what == 'options of locks', indent)}"

    return PLACE.sub(place, text)


def constants():
    values = re.findall(r"\b(REDLOCK_\w+) = (-?\d+)", cdef.declarations())
    return "".join(f"    const {name} = {value};\n" for name, value in values)


def main(arguments):
    check = "--check" in arguments
    table = list(options.read_options(arguments[-1]))
    stale = []
    for path in [*sorted((ROOT / "php").glob("*/src/**/*.php")), STUB]:
        text = path.read_text()
        made = CONSTANTS.sub(constants(), text) if path == STUB else current(text, table)
        if made != text:
            stale.append(path.relative_to(ROOT))
            if not check:
                path.write_text(made)
    if check and stale:
        sys.exit(f"not current, run ./dev docs: {', '.join(map(str, stale))}")


if __name__ == "__main__":
    main(sys.argv[1:])

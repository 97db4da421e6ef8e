#!/usr/bin/env python3
"""Writes the help of each option, from the option table of the C library, into python/libredlock/types.py, where
editors and language servers find it.

    python_options.py LIBRARY          writes it anew
    python_options.py --check LIBRARY  fails if it is not current
"""
import re
import sys
import textwrap
from pathlib import Path

import options

TYPES = Path(__file__).resolve().parents[2] / "python/libredlock/types.py"
SEEN = re.compile(r"^    (\w+): (.*)\n(?:    \"\"\"(?:.|\n)*?\"\"\"\n)?", re.M)
CLASS = re.compile(r"^class (LockOptions|ClientOptions)\(.*\n    \"\"\".*\"\"\"\n\n", re.M)


NOT_THERE = ("reentrant",)  # a Lock of Python may be shared by threads, so it cannot tell who acquires it again


def keyword(option):
    return option["name"][:-3] if option["unit"] == "ms" else option["name"]


def without_ms(text):
    return re.sub(r"\b(\w+)_ms\b", r"\1", text)


def in_seconds(text):
    """Names of options without _ms, and plain numbers of milliseconds in seconds."""
    bare = r"(?<![\w.-])\d+(?![\w.])"
    return re.sub(bare, lambda number: f"{int(number.group()) / 1000:.12g} s", without_ms(text))


def of_python(option):
    """Default and range as a Python program writes them."""
    default, allowed = option["default"], option["range"]
    if option["unit"] == "ms":
        default, allowed = in_seconds(default), in_seconds(allowed)
    if allowed.startswith("-1 to"):
        allowed = allowed.replace("-1 to", "0 s to" if option["unit"] else "0 to")
        allowed += ", or None" if "-1: " in option["help"] else ", or None: without limit"
        default = "None" if default == "-1" or option["name"] == "wait_ms" else default
    if option["type"] == "bool":
        default, allowed = default.capitalize(), "True or False"
    return default, allowed


def documented(option):
    default, allowed = of_python(option)
    meaning = without_ms(option["help"]).replace("; -1 without limit", "")
    meaning = meaning.replace("-1 waits", "None waits").replace("-1: ", "None: ")
    if ":" not in meaning.split()[0]:
        meaning = meaning[:1].upper() + meaning[1:]
    facts = [f"Default: {default}." if default else "", f"Allowed: {allowed}." if allowed else ""]
    lines = textwrap.wrap(" ".join([meaning + ".", *filter(None, facts)]).replace("..", "."), 110)
    return '    """' + "\n    ".join(lines) + '"""\n'


def current(text, table):
    """The classes of options with what the table says of each key; the types of the keys are written by hand."""
    by_keyword = {keyword(option): option for option in table}
    types = dict(SEEN.findall(text[text.index("class LockOptions") :]))
    made = ""
    place = 0
    for found in CLASS.finditer(text):
        of_locks = found.group(1) == "LockOptions"
        rows = [row for row in by_keyword.values() if (row["scope"] == "both") == of_locks and row["type"] != "nodes"]
        missing = [keyword(row) for row in rows if keyword(row) not in types]
        if missing:
            sys.exit(f"{TYPES.name} has no type for the options {', '.join(missing)}: add it to {found.group(1)}")
        made += text[place : found.end()]
        made += "".join(f"    {keyword(row)}: {types[keyword(row)]}\n{documented(row)}" for row in rows)
        place = text.index("\n\n", found.end()) + 1
    return made + text[place:]


def main(arguments):
    text = TYPES.read_text()
    table = [option for option in options.read_options(arguments[-1]) if option["name"] not in NOT_THERE]
    made = current(text, table)
    if made == text:
        return
    if "--check" in arguments:
        sys.exit(f"{TYPES.name} is not current, run ./dev docs")
    TYPES.write_text(made)


if __name__ == "__main__":
    main(sys.argv[1:])

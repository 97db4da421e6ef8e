#!/usr/bin/env python3
"""Writes docs/troubleshooting.md from the table of reasons of the built library.

    troubleshooting.py LIBRARY      prints the page
"""
import ctypes
import itertools
import sys

HEAD = """<!-- Made from the table of reasons of the library by ./dev docs: do not edit it. -->

# Troubleshooting

Each node that does not vote, and each connection that ended, has one of these reasons. `redlock doctor` shows the
reason of every node with the advice, the field `reason` of `redlock doctor --json` has its name, and `redlock help
NAME` prints the entry below. In messages `...` stands for what differs from node to node; errors of a server keep its
words.
"""

GROUPS = (  # the name of the first reason of each
    ("refused", "Connections"), ("tls-silent", "TLS"), ("file", "Servers"), ("noauth", "Errors of servers"),
    ("no-time", "The restart guard"))  # fmt: skip


def read_reasons(library):
    reason_at = ctypes.CDLL(library).redlock_reason_at
    reason_at.restype = ctypes.c_char_p
    reason_at.argtypes = ctypes.c_int, ctypes.c_int
    for index in itertools.count():
        if reason_at(index, 0) is None:
            return
        yield tuple(reason_at(index, field).decode() for field in range(4))  # enum redlock_reason_field


def page(library):
    titles, text = dict(GROUPS), HEAD
    for name, words, advice, cause in read_reasons(library):
        if name in titles:
            text += f"\n## {titles[name]}\n"
        text += f'\n<a id="{name}"></a>**`{words.replace("%s", "...")}`**<br>\n{cause}<br>\n'
        text += f"*To do:* {advice}.\n"
    return text


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1]))

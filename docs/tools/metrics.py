#!/usr/bin/env python3
"""Writes docs/metrics.md from what a client of the built library reports, and from what the command adds.

    metrics.py LIBRARY      prints the page
"""
import ctypes
import re
import sys
from pathlib import Path

COMMAND = Path(__file__).resolve().parents[2] / "core/cli"

HEAD = """<!-- Made from the library's own output by ./dev docs: do not edit it. -->

# Metrics

`client.metrics()` in Python and PHP and `redlock_client_metrics` in C return these families as OpenMetrics text, for
the client that is asked. [Alerts](alerts.md) says which to watch.

| family | type | labels | meaning |
|---|---|---|---|
"""


COMMAND_HEAD = """
`redlock doctor --metrics` prints those of nodes, and when it asked them. `redlock status --metrics RESOURCE...` prints
those of the resources alone:

| family | type | labels | meaning |
|---|---|---|---|
"""


def exposition(library):
    """Of a client whose node cannot be reached; it has TLS, so that its families are there, too."""
    lib = ctypes.CDLL(library)
    lib.redlock_client_new.restype = ctypes.c_void_p
    lib.redlock_client_metrics.restype = ctypes.c_int64
    lib.redlock_client_metrics.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    client = ctypes.c_void_p(lib.redlock_client_new())
    lib.redlock_client_set(client, b"nodes", b"rediss://127.0.0.1:1")
    lib.redlock_client_set(client, b"guard", b"marker")  # whatever REDLOCK_GUARD says
    if lib.redlock_client_open(client) != 0:
        sys.exit("metrics.py: the client cannot be opened")
    size = lib.redlock_client_metrics(client, None, 0) + 1
    text = ctypes.create_string_buffer(size)
    lib.redlock_client_metrics(client, text, size)
    lib.redlock_client_free(client)
    return text.value.decode()


def rows(text):
    """Labels are those of the samples; a family without samples here belongs to nodes."""
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
        meaning = re.search(rf"^# HELP {name} (.*)$", text, re.M).group(1)
        samples = re.findall(rf"^{name}(?:_total|_info|_bucket)?{{(.*)}} ", text, re.M)
        labels = sorted({label for sample in samples for label in re.findall(r'(\w+)="', sample)})
        if not labels and name.startswith("redlock_node_"):
            labels = ["node"]
        suffix = {"counter": "_total", "info": "_info"}.get(kind, "")
        yield f"| `{name}{suffix}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {meaning} |\n"


def command_rows():
    """The table of status.c, and the strings of the command's source."""
    source = "".join(path.read_text() for path in sorted(COMMAND.glob("*.c")))
    families = re.search(r"families\[FAMILIES\] = {(.*?)^};", source, re.S | re.M).group(1)
    for name, meaning in re.findall(r'{"(\w+)", "(.*?)"}', families):
        labels = "`resource`, `verdict`" if name == "verdict" else "`resource`"
        yield f"| `redlock_resource_{name}` | gauge | {labels} | {meaning} |\n"
    text = re.sub(r'"\s*"', "", source).replace("\\n", "\n").replace('\\"', '"')
    for name, kind, meaning in re.findall(r'# TYPE (\w+) (\w+)\n# HELP \1 (.*?)"', text):
        yield f"| `{name}` | {kind} |  | {meaning} |\n"


def page(library):
    return HEAD + "".join(rows(exposition(library))) + COMMAND_HEAD + "".join(command_rows())


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1]))

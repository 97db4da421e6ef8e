"""The text of client.metrics(), parsed into families."""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple

Sample = tuple[str, dict[str, str], float]

_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Family(NamedTuple):
    """One figure, with a sample for each combination of labels."""

    name: str
    kind: str
    """"counter", "gauge", "histogram" or "info"."""
    help: str
    samples: list[Sample]


def families(text: str) -> Iterator[Family]:
    """The families of a text, in its order."""
    for block in text.split("# TYPE ")[1:]:
        first, help_line, *lines = block.splitlines()
        name, kind = first.split()
        yield Family(name, kind, help_line.split(" ", 3)[3], [_sample(line) for line in lines if line[0] != "#"])


def _sample(line: str) -> Sample:
    found = _SAMPLE.fullmatch(line)
    assert found is not None, line
    labels = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _LABEL.findall(found[2] or "")}
    return found[1], labels, float(found[3])

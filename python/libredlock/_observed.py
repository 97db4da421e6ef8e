"""Figures of clients as observable instruments of OpenTelemetry: they are read, never counted a second time."""

from __future__ import annotations

import re
from typing import Any, Iterator, NamedTuple
from weakref import WeakKeyDictionary, ref

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from . import __version__
from ._base import ClientBase
from ._errors import Closed

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
    """Those of the text of client.metrics(), in its order."""
    for block in text.split("# TYPE ")[1:]:
        first, help_line, *lines = block.splitlines()
        name, kind = first.split()
        yield Family(name, kind, help_line.split(" ", 3)[3], [_sample(line) for line in lines if line[0] != "#"])


def _sample(line: str) -> Sample:
    found = _SAMPLE.fullmatch(line)
    assert found is not None, line
    labels = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _LABEL.findall(found[2] or "")}
    return found[1], labels, float(found[3])


# OpenTelemetry has no observable histogram: its parts are counters, and the buckets cumulative, as in OpenMetrics.
_PARTS = {"_bucket": "bucket", "_count": "count", "_sum": "sum"}


class Observed:
    """The clients whose figures one meter provider gets."""

    def __init__(self, provider: MeterProvider) -> None:
        self._meter: Meter = provider.get_meter("libredlock", __version__)
        self._clients: dict[str, ref[ClientBase]] = {}
        self._made: set[str] = set()
        self._read: list[tuple[str, dict[str, list[Sample]]]] = []
        self._asked: set[str] = set()

    def add(self, name: str, client: ClientBase) -> None:
        """Each instrument is made once, for a second one of the same name would be another figure."""
        if name in dict(self._open()):
            words = f"name={name!r}: another client that is instrumented has" + (" it" if name else " none either")
            raise ValueError(f"{words}; allowed: a name of its own")
        self._clients[name] = ref(client)
        for figure in families(client.metrics()):
            if figure.name not in self._made:
                self._made.add(figure.name)
                self._make(figure)

    def remove(self, client: ClientBase) -> None:
        self._clients = {name: at for name, at in self._clients.items() if at() not in (None, client)}

    def _open(self) -> Iterator[Any]:
        for name, at in list(self._clients.items()):
            client = at()
            if client is not None and not client.closed:
                yield name, client

    def _make(self, figure: Family) -> None:
        name = figure.name.replace("redlock_", "redlock.", 1).replace(".node_", ".node.", 1)
        unit = ""
        if name.endswith("_seconds"):
            name, unit = name[: -len("_seconds")], "s"
        if figure.kind == "gauge":
            self._meter.create_observable_gauge(name, [self._callback(figure.name)], unit, figure.help)
        elif figure.kind == "counter":
            self._meter.create_observable_counter(name, [self._callback(figure.name)], unit, figure.help)
        elif figure.kind == "histogram":
            for suffix, part in _PARTS.items():
                of_part = self._callback(figure.name, suffix)
                part_unit = unit if part == "sum" else ""
                self._meter.create_observable_counter(f"{name}.{part}", [of_part], part_unit, figure.help)

    def _figures(self, asked: str) -> list[tuple[str, dict[str, list[Sample]]]]:
        """Of all clients by name. They are read once for a collection, which asks for each instrument once."""
        if not self._asked or asked in self._asked:
            self._asked, self._read = set(), []
            for name, client in self._open():
                try:
                    self._read.append((name, {one.name: one.samples for one in families(client.metrics())}))
                except Closed:
                    pass
        self._asked.add(asked)
        return self._read

    def _callback(self, name: str, part: str = "") -> Any:
        def observe(options: CallbackOptions) -> Iterator[Observation]:
            for client, figures in self._figures(name + part):
                more = {"redlock.client": client} if client else {}
                for sample, labels, value in figures.get(name, ()):  # a client in memory has none
                    if not part or sample == name + part:
                        yield Observation(value, {**labels, **more})

        return observe


_by_provider: WeakKeyDictionary[MeterProvider, Observed] = WeakKeyDictionary()


def observed_by(provider: MeterProvider) -> Observed:
    """One for each provider, since an instrument is made once."""
    found = _by_provider.get(provider)
    if found is None:
        found = _by_provider[provider] = Observed(provider)
    return found

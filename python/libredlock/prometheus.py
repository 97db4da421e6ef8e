"""The figures of clients in a registry of prometheus_client, which has to be installed:

    prometheus_client.REGISTRY.register(libredlock.prometheus.Collector(client))

For several clients, Collector({"orders": one, "stock": other}): each sample then has the label client.
"""

from typing import TYPE_CHECKING, Any, Iterator, Mapping, Union

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ._errors import Closed

if TYPE_CHECKING:
    from . import Client
    from .aio import Client as AsyncClient

    AnyClient = Union[Client, AsyncClient]


class Collector:
    """Asks the clients for their figures whenever the registry is read; that sends nothing to the nodes."""

    def __init__(self, clients: "Union[AnyClient, Mapping[str, AnyClient]]") -> None:
        """A client, or clients by name. A closed one no longer has figures."""
        self._clients: "Mapping[str, AnyClient]" = clients if isinstance(clients, Mapping) else {"": clients}

    def collect(self) -> Iterator[Any]:
        """What prometheus_client calls."""
        families: dict[str, Any] = {}
        for name, client in self._clients.items():
            try:
                text = client.metrics()
            except Closed:
                continue
            for family in text_string_to_metric_families(text):  # type: ignore[no-untyped-call]
                if name:
                    family.samples = [
                        sample._replace(labels={**sample.labels, "client": name}) for sample in family.samples
                    ]
                if family.name in families:
                    families[family.name].samples.extend(family.samples)
                else:
                    families[family.name] = family
        return iter(families.values())

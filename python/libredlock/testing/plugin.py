"""pytest fixtures: pytest_plugins = ["libredlock.testing.plugin"]."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List

import pytest

from .fake import FakeServer
from .nodes import Cluster
from .proxy import Proxy

_ACCESS = {"password", "users", "login"}


@pytest.fixture(scope="session")
def redlock_variant() -> Dict[str, Any]:
    """What every Cluster(...) of the fixtures is given, unless the test says otherwise; to be overridden, for example
    by {"unix": True, "password": "secret"}."""
    return {}


@pytest.fixture(scope="session")
def redlock_cluster(redlock_variant: Dict[str, Any]) -> Iterator[Cluster]:
    """Five nodes, started once."""
    with Cluster(5, **redlock_variant) as cluster:
        yield cluster


@pytest.fixture
def nodes(redlock_cluster: Cluster) -> Cluster:
    """The session's five nodes, alive, empty and as configured at the start."""
    redlock_cluster.reset()
    return redlock_cluster


def _factory(make: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    made: List[Any] = []

    def build(*args: Any, **kwargs: Any) -> Any:
        made.append(make(*args, **kwargs))
        return made[-1]

    try:
        yield build
    finally:
        for thing in reversed(made):
            thing.close()


@pytest.fixture
def make_cluster(redlock_variant: Dict[str, Any]) -> Iterator[Callable[..., Cluster]]:
    """Cluster(...) that is closed at the end of the test; one with a password or users has none of the variant's."""

    def build(*args: Any, **kwargs: Any) -> Cluster:
        dropped = _ACCESS if _ACCESS & set(kwargs) else set()
        inherited = {name: value for name, value in redlock_variant.items() if name not in dropped}
        return Cluster(*args, **{**inherited, **kwargs})

    yield from _factory(build)


@pytest.fixture
def fake_server() -> Iterator[Callable[..., FakeServer]]:
    """FakeServer(...) that is closed at the end of the test."""
    yield from _factory(FakeServer)


@pytest.fixture
def proxy() -> Iterator[Callable[..., Proxy]]:
    """Proxy(...) that is closed at the end of the test."""
    yield from _factory(Proxy)

"""pytest fixtures: pytest_plugins = ["libredlock.testing.plugin"]."""
from __future__ import annotations

from typing import Any, Callable, Iterator, List

import pytest

from .fake import FakeServer
from .nodes import Cluster
from .proxy import Proxy


@pytest.fixture(scope="session")
def redlock_cluster() -> Iterator[Cluster]:
    """Five nodes, started once."""
    with Cluster(5) as cluster:
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
def make_cluster() -> Iterator[Callable[..., Cluster]]:
    """Cluster(...) that is closed at the end of the test."""
    yield from _factory(Cluster)


@pytest.fixture
def fake_server() -> Iterator[Callable[..., FakeServer]]:
    """FakeServer(...) that is closed at the end of the test."""
    yield from _factory(FakeServer)


@pytest.fixture
def proxy() -> Iterator[Callable[..., Proxy]]:
    """Proxy(...) that is closed at the end of the test."""
    yield from _factory(Proxy)

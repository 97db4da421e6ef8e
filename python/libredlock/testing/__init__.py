"""Throw-away Redis or Valkey nodes for tests of code that uses locks, and ways to break them.

    from libredlock.testing import Cluster

    with Cluster(5) as cluster:
        client = libredlock.Client(cluster.urls)
        cluster[0].kill()

pytest fixtures stand in libredlock.testing.plugin. MemoryClient and AsyncMemoryClient need no nodes at all. Nothing is
needed but the standard library and this package.
"""
from typing import TYPE_CHECKING

from .fake import CLOSE, HOLD, RESET, FakeServer, bulk
from .nodes import Cluster, Node, free_port
from .process import Child
from .proxy import BOTH, DOWN, UP, BlackHole, Proxy
from .resp import ReplyError, RespConnection, Tls, encode
from .wait import Late, eventually

__all__ = ["BOTH", "CLOSE", "DOWN", "HOLD", "RESET", "UP", "BlackHole", "Child", "Cluster", "FakeServer", "Late",
           "Node", "Proxy", "ReplyError", "RespConnection", "Tls", "bulk", "encode", "eventually", "free_port"]


if TYPE_CHECKING:
    from .memory import AsyncMemoryClient as AsyncMemoryClient
    from .memory import MemoryClient as MemoryClient
else:

    def __getattr__(name: str) -> object:
        """The rest of the kit works without the package libredlock."""
        if name not in ("AsyncMemoryClient", "MemoryClient"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import memory

        return getattr(memory, name)

"""What the tests of all parts share: other people's keys, the clock, and patience with a machine that is busy."""

import time

FOREIGN = "f" * 40
# Generous where the time-out is not the subject.
CALM = {"ttl_ms": 8000, "node_timeout_ms": 2000, "connect_timeout_ms": 5000}


def short(ttl_ms):
    """Options for a lease whose lapse is the subject."""
    return {"ttl_ms": ttl_ms, "node_timeout_ms": ttl_ms // 4, "min_validity_ms": 1}


def occupy(nodes, resource="r", ttl_ms=30000, token=FOREIGN):
    """Somebody else's key on these nodes."""
    for node in nodes:
        node.set(resource, token, px=ttl_ms)


def now_ms():
    return time.monotonic() * 1000

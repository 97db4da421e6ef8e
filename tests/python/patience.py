"""Options for a machine that may be slow or busy, where time-outs are not the subject."""

import asyncio

CALM = {"node_timeout": 2, "connect_timeout": 20, "exit_drain": 2}


def short(ttl):
    """For a lease whose lapse is the subject."""
    return {"ttl": ttl, "node_timeout": ttl / 4, "min_validity": 0.001}


def connected(client):
    """The client when it has asked every node: what it sends from now on leaves at once, its deletes too."""
    client.status("connected")
    return client


def outlived(nodes):
    """Whether a lease was renewed three times: each time half a TTL had gone by."""
    return max(node.calls("pexpire") for node in nodes) >= 3


async def until(condition, within=30.0):
    """Waits for it in a task, without holding up the loop."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while not condition():
        assert loop.time() < end, "not in time"
        await asyncio.sleep(0.001)

"""Options for a machine that may be slow or busy, where time-outs are not the subject."""

import asyncio
import re

import pytest

import libredlock
from libredlock.testing import eventually

GENEROUS_TIMEOUTS = {"node_timeout": 2, "connect_timeout": 20, "exit_drain": 2}


def lapsing(ttl):
    """For a lease whose lapse is the subject."""
    return {"ttl": ttl, "node_timeout": ttl / 4, "min_validity": 0.001}


def connected(client):
    """The client when it has asked every node: what it sends from now on leaves at once, its deletes too."""
    client.status("connected")
    return client


def outlived(nodes):
    """Whether a lease was renewed three times: each time half a TTL had gone by."""
    return max(node.calls("pexpire") for node in nodes) >= 3


def busy(attempt, words=""):
    """The Busy that names the holder, in these words. An attempt asks the nodes for the name for 250 ms at most, so a
    late machine may need several."""

    def failure():
        with pytest.raises(libredlock.RedlockError) as caught:
            attempt()
        return named(caught.value) if re.search(words, str(caught.value)) else None

    return eventually(failure, what="Busy names the holder")


async def busy_in_task(attempt):
    loop = asyncio.get_running_loop()
    end = loop.time() + 30
    while True:
        with pytest.raises(libredlock.RedlockError) as caught:
            await attempt()
        if named(caught.value):
            return caught.value
        assert loop.time() < end, f"Busy names the holder (last: {caught.value!r})"


def at_once(attempt):
    """What a single attempt returns. One that was too late for a majority is made again."""

    def answered():
        try:
            return (attempt(),)
        except (libredlock.NoQuorum, libredlock.TimedOut):
            return None

    return eventually(answered)[0]


def named(failure):
    return failure if isinstance(failure, libredlock.Busy) and failure.held_by else None


def said_in_time(text):
    """What a program said, without its warnings of nodes that were late."""
    return re.sub(r"node_(?:silent|down) \S+: no answer for .*\n?", "", text)


async def until(condition, within=30.0):
    """Waits for it in a task, without holding up the loop."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    while not condition():
        assert loop.time() < end, "not in time"
        await asyncio.sleep(0.001)

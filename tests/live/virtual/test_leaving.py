"""Clients that leave while others use them."""
import time

import pytest

import rl
from helpers import Call
from rl import HELD, INVALID, OK, TIMED_OUT
from testing import eventually


@pytest.fixture
def draining(nodes, hold):
    """A client whose drain takes two seconds, since a node hangs: (client, the call)."""
    lock = hold(exit_drain_ms=5000)
    client = lock.client
    nodes[0].stop()
    begun = time.monotonic()
    call = Call(client.drain, 2000)
    eventually(lambda: client.process() == INVALID, what="the drain has begun")
    yield client, call, begun
    nodes[0].cont()


def test_a_second_drain_waits_for_the_first(draining):
    client, first, begun = draining
    assert client.drain(20000) == TIMED_OUT
    assert time.monotonic() - begun > 1.5
    assert first.join() == TIMED_OUT
    assert client.drain(20000) == TIMED_OUT, "no delete was answered since"


def test_a_second_drain_has_its_own_limit(draining):
    client, first, begun = draining
    assert client.drain(10) == TIMED_OUT
    assert first.join() == TIMED_OUT


def test_a_client_may_be_freed_while_it_drains(nodes, draining):
    client, first, begun = draining
    for lock in client.locks:
        lock.free()
    client.free_alone()
    assert first.join() == TIMED_OUT
    assert not any(node.get("r") for node in nodes.nodes[1:])


def test_a_drain_does_not_wait_for_one_that_settles(nodes, make_client):
    client = make_client(nodes.urls, ttl_ms=20000, node_timeout_ms=500)
    held, other = client.lock("held"), client.lock("other")
    assert held.acquire() == OK and held.settle(10000) == OK
    nodes[0].stop()
    assert other.acquire() == OK
    settling = Call(other.settle, -1)
    eventually(lambda: other.set("renew", "false") == rl.IN_FLIGHT, what="the other thread settles")
    draining = Call(client.drain, 5000)
    eventually(lambda: not any(node.get("held") for node in nodes.nodes[1:]), 3)
    assert settling.join() == rl.PENDING
    assert draining.join() == TIMED_OUT
    nodes[0].cont()


def test_waiters_are_cancelled_within_the_limit(nodes, make_client):
    client = make_client(nodes.urls)
    holder = client.lock("a")
    assert holder.acquire() == OK
    locks = [client.lock("a") for _ in range(5)]
    waiting = [Call(lock.acquire, -1) for lock in locks]
    eventually(lambda: all(lock.status == rl.PENDING for lock in locks), 30)
    assert client.drain(10000) == OK
    assert [call.join() for call in waiting] == [rl.CANCELLED] * 5
    assert holder.state != HELD
    nodes.no_keys()

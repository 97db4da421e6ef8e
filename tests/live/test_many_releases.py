"""Releases of very many locks at once, which fill the buffers of real sockets."""
import pytest

import rl
from helpers import spin
from rl import OK, TIMED_OUT
from testing import eventually


@pytest.fixture
def behind(proxies, hold):
    """A lock held on five nodes, each behind a proxy."""
    lock = hold(proxies, ttl_ms=30000, max_ttl_ms=600000)
    lock.proxies = proxies
    return lock


def start_all(client, locks, operation, *args):
    for lock in locks:
        assert lock.start(operation, *args) == OK
    pending = list(locks)

    def are_over():
        while pending and pending[-1].status == OK:
            pending.pop()
        return not pending

    spin(client, are_over, 60)


def have_keys(client, nodes, count):
    """Whether all of these nodes get to have so many keys. One that was late may have lost its connection, and the
    requests on it; or was not asked at all."""
    spin(client, lambda: not any(node["owed"] for node in client.describe()["nodes"]), 60)
    return all(node.command("DBSIZE") >= count for node in nodes)


def take_many(client, nodes, count):
    """So many locks that all nodes have granted, none of which ends meanwhile."""
    locks = [client.lock("m%d" % i, ttl_ms=600000, node_timeout_ms=20000) for i in range(count)]
    for first in range(0, count, 500):
        some = locks[first:first + 500]
        start_all(client, some, rl.ACQUIRE, -1)
        while not have_keys(client, nodes, first + len(some)):
            start_all(client, some, rl.RELEASE)
            start_all(client, some, rl.ACQUIRE, -1)
    return locks


def many_keys(nodes):
    """How many of their keys are left."""
    return sum(key.startswith(b"m") for node in nodes for key in node.keys())


MANY = 40000  # more than may be in flight at a node


def test_many_releases_at_once_leave_no_key(nodes, make_client):
    client = make_client(nodes.urls[:3], max_ttl_ms=600000)
    locks = take_many(client, nodes.nodes[:3], MANY)
    start_all(client, locks, rl.RELEASE)
    spin(client, lambda: client.describe()["debts"] == 0, 60)
    assert many_keys(nodes) == 0


def test_a_drain_of_many_locks_leaves_no_key(nodes, make_client):
    client = make_client(nodes.urls[:3], max_ttl_ms=600000)
    take_many(client, nodes.nodes[:3], MANY)
    assert client.drain(60000) == OK
    assert many_keys(nodes) == 0


def test_a_drain_that_has_no_time_says_so(nodes, make_client):
    client = make_client(nodes.urls[:3], max_ttl_ms=600000)
    locks = take_many(client, nodes.nodes[:3], 2000)
    sent = client.describe()["commands"]
    assert client.drain(0) == TIMED_OUT
    assert {(lock.state, lock.loss) for lock in locks} == {(rl.State.LOST, rl.Loss.CLOSED)}
    assert client.describe()["commands"] - sent < 3000, "it has looked at the clock before all 6000 deletes were sent"


def test_debts_of_very_many_locks_are_remembered_and_paid(nodes, behind):
    """All are remembered, and paid when the node is back."""
    client = behind.client
    locks = take_many(client, nodes, 17000)
    behind.proxies[0].refuse()
    behind.proxies[0].drop()
    eventually(lambda: client.process() == OK and client.describe()["nodes"][0]["state"] != "ready")
    start_all(client, locks, rl.RELEASE)
    assert client.describe()["debts"] == 17000
    behind.proxies[0].go()
    spin(client, lambda: client.describe()["debts"] == 0, 60)
    assert many_keys(nodes) == 0


def test_more_than_a_socket_takes_waits_in_the_client(nodes, make_client):
    """16 MB for a hung node stay in the client until they can be written; the others are not held up."""
    three = nodes.nodes[:3]
    client = make_client([node.url for node in three], ttl_ms=120000, max_ttl_ms=120000, node_timeout_ms=30000)
    resource = b"m" * (16 << 20)
    lock = client.lock(resource)

    def keys(node):
        # the key itself is too long to be asked for again and again
        return node.command("DBSIZE") - node.command("EXISTS", "libredlock:m")

    three[0].stop()
    assert lock.acquire(60000) == OK, lock.message[-500:]
    assert lock.vote(0) == rl.PENDING
    three[0].cont()
    spin(client, lambda: keys(three[0]) == 1, 60, "the node that hung has read all of it")
    assert three[0].get(resource) == lock.token.encode()
    three[0].stop()
    assert lock.extend() == OK and lock.release() == OK
    three[0].cont()
    spin(client, lambda: not any(map(keys, three)), 60, "all keys are deleted")

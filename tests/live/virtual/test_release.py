"""Releases: own keys only, nodes that are away owe a deletion and get it later."""
import pytest

import rl
from helpers import FOREIGN, acquire_until, finish, held_everywhere, now_ms, occupy, spin, spin_until_deleted
from rl import BUSY, NOT_HELD, OK, TIMED_OUT
from testing import eventually


@pytest.fixture
def behind(proxies, hold):
    """A lock held on five nodes, each behind a proxy."""
    lock = hold(proxies, ttl_ms=30000, max_ttl_ms=600000)
    lock.proxies = proxies
    return lock


def test_a_second_release_says_that_nothing_is_held(hold):
    lock = hold()
    assert lock.release() == OK
    assert lock.release() == NOT_HELD and lock.message == 'release: "r" is not held by this handle', lock.message


def test_deletes_that_come_after_the_lease_contradict_nothing(nodes, hold):
    """The nodes stand still until the keys have expired: that the token is gone by then does not make the lock lost."""
    lock = hold(ttl_ms=4000, node_timeout_ms=1000)
    ends_ms = now_ms() + 4000
    eventually(lambda: lock.validity_ms < 300)
    for node in nodes:
        node.stop()
    assert lock.start(rl.RELEASE) == OK
    lock.client.process()
    eventually(lambda: now_ms() > ends_ms + 50, 10)
    for node in nodes:
        node.cont()
    assert finish(lock) == OK, lock.message


def test_deletes_whose_replies_were_lost_contradict_nothing(nodes, proxies, hold):
    """They are sent again on new connections and find nothing, for the first ones were executed."""
    lock = hold(proxies, ttl_ms=30000, node_timeout_ms=7500)
    for p in proxies:
        p.hold("down")
    assert lock.start(rl.RELEASE) == OK
    spin_until_deleted(lock.client, nodes)
    for p in proxies:
        p.drop()
        p.go()
    assert finish(lock) == OK, lock.message


def test_release_needs_no_answer_of_a_stopped_majority(nodes, hold):
    lock = hold(ttl_ms=30000, node_timeout_ms=200)
    for node in nodes.nodes[:3]:
        node.stop()
    assert lock.release() == OK  # it was held at the call; nodes that do not answer are cleaned up later
    assert lock.state == rl.FREE
    for node in nodes.nodes[:3]:
        node.cont()
    nodes.no_keys()


def test_release_debt_is_paid_when_the_node_is_back(nodes, behind):
    away = behind.proxies[0]
    away.refuse()
    away.drop()
    eventually(lambda: away.connections == 0)
    assert behind.release() == OK
    spin(behind.client, lambda: nodes.keys() == {b"r": [0]})
    away.go()
    spin_until_deleted(behind.client, nodes)


def test_a_debt_is_paid_if_the_connection_broke_at_release(nodes, behind):
    broken = behind.proxies[0]
    broken.hold("up")
    assert behind.release() == OK
    eventually(broken.held_bytes)
    broken.drop()  # the delete is lost
    broken.go()
    spin_until_deleted(behind.client, nodes)


def test_a_debt_is_paid_when_a_node_restarts_with_its_data(make_cluster, hold):
    durable = make_cluster(3, config={"appendonly": "yes", "appendfsync": "always"})
    lock = hold(durable, ttl_ms=30000)
    durable[0].kill()
    assert lock.release() == OK
    durable[0].start()
    assert durable[0].get("r") is not None
    spin_until_deleted(lock.client, durable)


def test_debts_of_many_locks_are_paid(nodes, behind):
    locks = [behind.client.lock("m%d" % i) for i in range(200)]
    for lock in locks:
        assert lock.acquire() == OK
    spin(behind.client, lambda: len(nodes[0].keys()) == 201)
    behind.proxies[0].refuse()
    behind.proxies[0].drop()
    for lock in [*locks, behind]:
        assert lock.release() == OK
    behind.proxies[0].go()
    spin_until_deleted(behind.client, nodes)


def test_debt_is_dropped_with_its_ttl(nodes, make_client, proxy):
    """Nobody's later key is met by an old debt, and a debt that has lapsed is not even sent."""
    away = proxy(nodes[0])
    client = make_client([away.url, *nodes.urls[1:]], **rl.lapsing(3000))
    lock = client.lock()
    assert lock.acquire(5000) == OK
    spin(client, lambda: nodes[0].get("r"))
    away.refuse()
    away.drop()
    assert lock.release() == OK
    eventually(lambda: not nodes[0].keys(), 30)
    nodes[0].command("CONFIG", "RESETSTAT")
    occupy([nodes[0]])
    away.go()
    spin(client, lambda: away.connections == 1 and nodes[0].clients())
    assert nodes[0].get("r") == FOREIGN.encode()


def test_node_that_said_no_gets_no_delete(nodes, client):
    occupy(nodes.nodes[:1])
    lock = client.lock(queue=False)  # else home wakes the first in the queue, whatever the key there
    acquire_until(lock, lambda: lock.vote(0) == BUSY)
    nodes[0].command("CONFIG", "RESETSTAT")
    assert lock.release() == OK
    spin(client, lambda: nodes.keys() == {b"r": [0]})
    assert nodes[0].calls("evalsha") + nodes[0].calls("eval") == 0


def test_free_releases(nodes, client):
    lock = client.lock(ttl_ms=30000)
    assert lock.acquire() == OK
    lock.free()
    spin_until_deleted(client, nodes)


def test_a_release_that_meets_noscript_delays_a_drain(nodes, hold):
    """Nobody reads that then and sends it again."""
    lock = hold(ttl_ms=30000)
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    assert lock.start(rl.RELEASE) == OK
    assert lock.client.drain(5000) == OK
    assert not nodes.keys()


def test_release_ends_the_hold_at_the_call(nodes, make_client, proxies):
    """Whatever the nodes do: the lock is not held once the first delete may be out."""
    client = make_client([p.url for p in proxies])
    lock = client.lock()
    assert lock.acquire() == OK
    for p in proxies:
        p.hold("down")
    assert lock.start(rl.RELEASE) == OK
    assert lock.state == rl.FREE and lock.validity_ms == 0
    for p in proxies:
        p.go()
    spin(client, lambda: lock.status == OK)
    nodes.no_keys()


def test_nothing_is_owed_after_a_release(nodes, make_client):
    """Not even until the TTL is over."""
    client = make_client(nodes.urls, ttl_ms=3600000, max_ttl_ms=3600000)
    for number in range(20):
        lock = client.lock("r%d" % number)
        assert lock.acquire(5000) == OK
        held_everywhere(lock)
        assert lock.release() == OK
    spin(client, lambda: client.describe()["debts"] == 0, 20, "no debts")
    before = [node.calls("evalsha") for node in nodes]
    for node in nodes:
        node.kill_clients()
    spin(client, lambda: all(node["connects"] >= 2 for node in client.describe()["nodes"]) and client.settled(), 20,
         "connected again")
    assert [node.calls("evalsha") for node in nodes] == [count + 1 for count in before]  # the proof of the set-up


def test_a_drain_says_that_a_node_which_is_down_may_keep_keys(nodes, behind):
    away = behind.proxies[0]
    away.refuse()
    away.drop()
    eventually(lambda: away.connections == 0)
    assert behind.client.drain(5000) == TIMED_OUT
    assert nodes.keys() == {b"r": [0]}

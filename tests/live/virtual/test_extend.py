"""Extensions: own token only, never shortening, partial ones, limits, sticky loss; NOSCRIPT is mended."""
import pytest

import rl
from helpers import FOREIGN, Call, held_everywhere, lapse, occupy, spin, spin_until_deleted
from rl import BUSY, HELD, INVALID, LIMIT, LOST, NO_QUORUM, OK
from testing import eventually


@pytest.fixture
def held(nodes, hold):
    """A lock that all five nodes have granted."""
    lock = hold()
    return lock


def test_refused_extension_changes_no_later_vote(make_cluster, make_client, proxy):
    """The third node is set up when the extension has been refused: its vote is for the TTL of its SET."""
    nodes = make_cluster(3)
    slow = proxy(nodes[2])
    slow.hold("down")
    urls = [server.url + "/3" for server in (nodes[0], nodes[1], slow)]  # no SET joins a set-up that selects
    client = make_client(urls, settle=False, ttl_ms=9000, max_hold_ms=25000)
    lock = client.lock()
    assert lock.acquire(5000) == OK
    assert lock.extend(30000) == LIMIT
    slow.go()
    spin(client, lambda: "db3" in nodes[2].info("keyspace"))
    assert lock.settle(5000) == OK
    for node in nodes[1:]:
        node.stop()
    assert lock.start(rl.EXTEND, 20000) == OK
    spin(client, lambda: lock.votes[0] == OK)
    assert 0 < lock.validity_ms <= 9000


def test_a_foreign_owner_on_a_minority_ends_no_hold(nodes, held):
    for node in nodes.nodes[:2]:
        node.set("r", FOREIGN, px=20000)
    assert held.extend() == OK and held.state == HELD
    assert held.release() == OK
    spin(held.client, lambda: nodes.keys() == {b"r": [0, 1]})


def test_a_key_gone_on_a_minority_ends_no_hold(nodes, held):
    for node in nodes.nodes[:2]:
        node.delete_keys()
    assert held.start(rl.EXTEND) == OK
    spin(held.client, lambda: held.status == OK and held.votes[:2] == [LOST, LOST])
    assert nodes.keys() == {b"r": [2, 3, 4]}
    for node in nodes.nodes[2:]:
        node.delete_keys()
    assert held.extend() == LOST


def test_an_extension_by_a_minority_changes_nothing(nodes, hold):
    lock = hold(node_timeout_ms=2000)
    for node in nodes.nodes[:2]:
        node.stop()
    assert lock.extend(20000) == OK and lock.validity_ms > 10000
    nodes[2].stop()
    before = lock.validity_ms
    assert lock.extend(30000) == NO_QUORUM  # two nodes of five
    assert lock.state == HELD and 0 < lock.validity_ms <= before
    assert "2 of 5" in lock.message and nodes[2].name in lock.message
    for node in nodes.nodes[:3]:
        node.cont()
    assert lock.extend(30000) == OK and lock.validity_ms > 20000


@pytest.mark.parametrize("ttl_ms", [-1, 19, 86400001, 7999])
def test_a_ttl_outside_of_the_range_is_refused(client, ttl_ms):
    """7999 ms leave less than four times the node time-out of 2000."""
    lock = client.lock()
    assert lock.acquire() == OK
    assert lock.extend(ttl_ms) == INVALID
    assert str(ttl_ms) in lock.message
    assert lock.state == HELD


def test_max_extensions_of_0_allows_none(nodes, make_client):
    lock = make_client(nodes.urls, max_extensions=0).lock()
    assert lock.acquire() == OK and lock.extend() == LIMIT
    assert "max_extensions" in lock.message and lock.start(rl.EXTEND) == LIMIT


def test_max_hold_ends_the_extensions(nodes, make_client):
    lock = make_client(nodes.urls, ttl_ms=4000, node_timeout_ms=1000, max_hold_ms=5000).lock()
    assert lock.acquire(5000) == OK
    eventually(lambda: lock.validity_ms < 2500)
    assert lock.extend() == LIMIT
    assert "max_hold_ms" in lock.message and "5000" in lock.message
    lapse(lock)
    assert lock.loss == rl.Loss.LIMIT and lock.extend() == LOST


def test_a_ttl_above_max_hold_is_extended_as_it_was_acquired(nodes, make_client):
    client = make_client(nodes.urls, ttl_ms=60000, max_ttl_ms=60000, node_timeout_ms=1000, max_hold_ms=2000)
    lock = client.lock()
    assert lock.acquire(5000) == OK
    assert lock.extend() == OK and lock.validity_ms > 55000
    token = lock.token
    assert lock.detach() == OK
    taken = client.lock()
    assert taken.adopt(token) == OK
    assert taken.extend() == OK and taken.expire(50000) == OK and 40000 < taken.validity_ms < 50000
    eventually(lambda: taken.extend() == LIMIT)
    assert "max_hold_ms is 2000" in taken.message


def test_loss_is_sticky(nodes, hold):
    """A lapsed lock stays lost although a majority still has its keys: another may have held it in between."""
    lock = hold(**rl.lapsing(2000))
    token = lock.token
    assert [node.command("PEXPIRE", "r", 30000) for node in nodes] == [1] * 5  # as if these clocks were slow
    lapse(lock)
    assert {node.get("r") for node in nodes} == {token.encode()}
    assert lock.state == rl.State.LOST
    assert lock.extend() == LOST
    assert lock.state == rl.State.LOST and lock.validity_ms == 0
    for node in nodes:
        node.delete_keys()
    assert lock.acquire(10000) == OK and lock.token != token


def test_extension_that_succeeds_too_late_revives_nothing(nodes, proxies, hold):
    """It was executed in time, its replies come after the lease has lapsed."""
    lock = hold(proxies, **rl.lapsing(4000))
    client = lock.client
    for p in proxies:
        p.hold("down")
    assert lock.start(rl.EXTEND, 20000) == OK
    spin(client, lambda: all(node.pttl("r") > 10000 for node in nodes))
    lapse(lock)
    for p in proxies:
        p.go()
    spin(client, lambda: lock.status != rl.PENDING)
    assert lock.status in (LOST, NO_QUORUM) and lock.state == rl.State.LOST
    assert lock.release() == LOST
    spin_until_deleted(client, nodes)  # the long keys do not stay for their 20 s


def test_scripts_are_sent_again_after_a_flush(nodes, held):
    for _ in range(3):
        for node in nodes:
            node.command("SCRIPT", "FLUSH")
        assert held.extend() == OK, held.message
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    assert held.release() == OK, held.message
    spin_until_deleted(held.client, nodes)  # the slower nodes' NOSCRIPT is repaired when it is read


def test_release_that_meets_noscript_waits_for_slower_nodes(nodes, proxy, hold):
    """Their NOSCRIPT would not be read before the next call, and the keys stay until they expire."""
    slow = proxy(nodes[0])
    lock = hold([slow, *nodes.nodes[1:]], **rl.lapsing(30000))
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    slow.hold("down")
    releasing = Call(lock.release)
    eventually(lambda: not any(node.keys() for node in nodes.nodes[1:]), 20, "they have deleted it")
    slow.go()
    assert releasing.join() == OK
    assert not nodes.keys()


def test_scripts_that_some_nodes_have_lost_are_sent_again_to_all(nodes, proxy, make_client):
    """A NOSCRIPT that comes after the majority would not be read before the next call."""
    slow = [proxy(node) for node in nodes.nodes[3:]]
    client = make_client([each.url for each in (*nodes.nodes[:3], *slow)], queue="false")
    lock, other, known = (client.lock(resource, **rl.lapsing(30000)) for resource in ("r", "s", "known"))
    for taken in lock, known:
        assert taken.acquire() == OK
        held_everywhere(taken)
    assert known.release() == OK
    occupy(nodes.nodes[3:], "s")
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    assert other.acquire() == OK
    spin(client, lambda: (other.vote(3), other.vote(4)) == (BUSY, BUSY))
    assert other.release() == OK
    for each in slow:
        each.hold("down")
    assert lock.release() == OK
    eventually(lambda: b"r" not in nodes.keys(), 20, "no key is left")


@pytest.fixture
def long_held(nodes, hold):
    """A lock that all five nodes have granted for so long that it does not lapse within a test."""
    lock = hold(ttl_ms=600000, max_ttl_ms=600000)
    return lock


def test_restart_of_a_minority_leaves_the_rest_of_the_lease(nodes, hold):
    """What a restarted node had granted counts no more, so the lease is as long as the others'."""
    # with the guard, the restarted node would grant the lock to no other client before the lease ends
    lock = hold(guard="off", ttl_ms=60000, max_ttl_ms=600000)
    for node in nodes.nodes[:2]:
        node.stop()
    assert lock.extend(600000) == OK and lock.validity_ms > 60000  # by three nodes
    nodes[2].restart(empty=True)
    spin(lock.client, lambda: lock.validity_ms <= 60000, 30)
    assert lock.state == HELD and lock.validity_ms > 0
    for node in nodes.nodes[:2]:
        node.cont()


def become_replicas(nodes, make_cluster):
    """In place, under the same run_id: an empty master takes the keys of three of them away."""
    master = make_cluster(1)[0]
    for node in nodes.nodes[:3]:
        node.replica_of(master)
        assert node.keys() == []
    for node in nodes.nodes[:3]:
        node.kill_clients()  # it is looked at again


def test_without_a_guard_a_lease_ends_with_the_role(nodes, hold, make_cluster):
    lock = hold(guard="off", ttl_ms=600000, max_ttl_ms=600000)
    become_replicas(nodes, make_cluster)
    spin(lock.client, lambda: lock.state == rl.State.LOST, 30)
    assert lock.extend() == LOST


def test_a_lease_outlasts_the_role_of_its_nodes(nodes, long_held, make_client, make_cluster):
    """Nobody is granted anything by a replica, nor by the master that it becomes until the lease is over."""
    become_replicas(nodes, make_cluster)
    client = long_held.client
    spin(client, lambda: [node["state"] for node in client.describe()["nodes"][:3]] == 3 * ["refused"])
    assert long_held.state == HELD and long_held.validity_ms > 500000
    for node in nodes.nodes[:3]:
        node.replica_of(None)
    other = make_client(nodes.urls, max_ttl_ms=600000).lock()
    assert other.acquire(0) != OK and "quarantined" in other.message
    assert long_held.state == HELD


def test_key_gone_on_a_minority_shortens_the_lease(nodes, hold):
    """A node that says that the token is gone counts no more, although the lease that it once confirmed runs on."""
    lock = hold(ttl_ms=60000, max_ttl_ms=600000)
    for node in nodes.nodes[:2]:
        node.stop()
    assert lock.extend(600000) == OK and lock.validity_ms > 60000  # by three nodes
    nodes[2].command("DEL", "r")
    for node in nodes.nodes[3:]:
        node.stop()
    assert lock.start(rl.EXTEND, 600000) == OK  # only the node without the key can answer
    spin(lock.client, lambda: lock.vote(2) == LOST)
    assert lock.cancel() == OK and lock.state == HELD
    assert 0 < lock.validity_ms <= 60000
    for node in nodes:
        node.cont()


def test_node_restarted_empty_lets_others_in_but_never_two(nodes, held, make_client):
    for node in nodes.nodes[:2]:
        node.restart(empty=True)
    other = make_client(nodes.urls).lock()
    assert other.acquire() == BUSY
    spin(other.client, lambda: nodes.keys() == {b"r": [2, 3, 4]})
    assert held.extend() == OK

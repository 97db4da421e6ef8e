"""Setting what is left of a lease, also to less; and removing a lock by force."""
import pytest

import rl
from helpers import FOREIGN, finish, lapse, occupy, spin
from rl import HELD, LOST, NO_QUORUM, NOT_HELD, OK
from testing import eventually


def pttls(nodes):
    return [node.pttl("r") for node in nodes]


def test_expire_shortens_and_prolongs_on_every_node(nodes, hold):
    lock = hold(ttl_ms=30000)
    assert lock.expire(20000) == OK, lock.message
    assert 10000 < lock.validity_ms <= 20000
    assert lock.settle() == OK
    assert all(0 < pttl <= 20000 for pttl in pttls(nodes)), pttls(nodes)
    assert lock.expire(30000) == OK and lock.validity_ms > 20000
    assert lock.settle() == OK and min(pttls(nodes)) > 20000
    assert lock.release() == OK


def test_expire_confirms_an_adopted_token(nodes, make_client, hold):
    first, second = hold(ttl_ms=30000), make_client(nodes.urls, ttl_ms=30000).lock()
    assert first.detach() == OK
    assert second.adopt(first.token) == OK and second.expire(20000) == OK
    assert second.state == HELD and second.validity_ms <= 20000
    assert second.settle() == OK and max(pttls(nodes)) <= 20000
    assert second.release() == OK


def test_expire_needs_a_held_lock(nodes, make_client):
    lock = make_client(nodes.urls, **rl.lapsing(400)).lock()
    assert lock.expire(5000) == NOT_HELD
    assert lock.acquire(5000) == OK
    lapse(lock)
    assert lock.expire(5000) == LOST


def test_an_extension_afterwards_counts_in_full(hold):
    lock = hold(ttl_ms=30000)
    assert lock.expire(20000) == OK and lock.settle() == OK
    assert lock.extend(30000) == OK and lock.validity_ms > 20000
    assert lock.release() == OK


@pytest.fixture
def shortening(nodes, proxy, hold):
    """A lock that is being shortened to 20 s, and the proxies at which two of three requests are held: they may be
    executed at any time."""
    first, *others = [proxy(node) for node in nodes.nodes[:3]]
    lock = hold([first, *others], ttl_ms=30000)
    for p in others:
        p.hold()
    assert lock.start(rl.EXPIRE, 20000) == OK
    return lock, others


def test_a_shorter_lease_counts_from_the_call(shortening):
    lock, proxies = shortening
    assert lock.validity_ms <= 20000
    assert lock.cancel() == OK and lock.validity_ms <= 20000
    for p in proxies:
        p.go()
    assert lock.release() == OK


def test_shorter_lease_counts_at_once_if_no_node_answers(make_cluster, hold):
    nodes = make_cluster(3)
    lock = hold(nodes, ttl_ms=30000)
    for node in nodes:
        node.kill()
    spin(lock.client, lambda: not any(node["state"] == "ready" for node in lock.client.describe()["nodes"]))
    assert lock.start(rl.EXPIRE, 20000) == OK
    assert 0 < lock.validity_ms <= 20000
    assert lock.cancel() == OK and lock.validity_ms <= 20000


def test_a_lost_shortening_limits_every_later_extension(nodes, shortening):
    """Its connection broke: the server may execute it after any extension that follows on the next one."""
    lock, proxies = shortening
    spin(lock.client, lambda: all(b"PEXPIRE" in p.held_bytes() for p in proxies), what="two requests are held")
    assert lock.cancel() == OK
    for p in proxies:
        p.drop(late=True)
        p.go()
    assert lock.extend(30000) == OK, lock.message
    eventually(lambda: min(node.pttl("r") for node in nodes.nodes[:3]) > 20000, what="all of these are extended")
    assert lock.validity_ms <= 20000
    for p in proxies:
        p.deliver()
    eventually(lambda: all(node.pttl("r") <= 20000 for node in nodes.nodes[1:3]), what="they are executed late")
    assert lock.release() == OK


def test_a_renewal_due_meanwhile_does_not_lengthen_it(nodes, proxy, hold):
    proxies = [proxy(node) for node in nodes.nodes[:3]]
    lock = hold(proxies, ttl_ms=12000, renew=True)
    spin(lock.client, lambda: lock.validity_ms < 6200, what="half of the TTL has nearly passed")
    for p in proxies:
        p.hold()
    assert lock.start(rl.EXPIRE, 8000) == OK
    spin(lock.client, lambda: all(b"EVALSHA" in p.held_bytes() for p in proxies), what="a renewal is behind it")
    for p in proxies:
        p.go()
    assert finish(lock) == OK and lock.settle() == OK
    assert lock.validity_ms <= 8000 and max(node.pttl("r") for node in nodes.nodes[:3]) <= 8000
    assert lock.release() == OK


def test_a_renewal_sent_again_does_not_lengthen_it(nodes, proxy, hold):
    """The servers have lost their scripts: the one that was sent before it comes to nothing."""
    proxies = [proxy(node) for node in nodes.nodes[:3]]
    lock = hold(proxies, ttl_ms=12000, renew=True)
    for node, p in zip(nodes, proxies):
        node.command("SCRIPT", "FLUSH")
        p.hold()
    spin(lock.client, lambda: all(b"EVALSHA" in p.held_bytes() for p in proxies), what="a renewal is held")
    assert lock.start(rl.EXPIRE, 8000) == OK
    for p in proxies:
        p.go()
    assert finish(lock) == OK and lock.settle() == OK
    assert lock.validity_ms <= 8000 and max(node.pttl("r") for node in nodes.nodes[:3]) <= 8000
    assert lock.release() == OK


def test_renewals_go_on_with_the_lease_that_was_set(nodes, hold):
    lock = hold(nodes, ttl_ms=30000, renew=True)
    assert lock.expire(8000) == OK and lock.extend(20000) == OK and lock.settle() == OK
    assert lock.validity_ms > 16000
    spin(lock.client, lambda: lock.validity_ms < 8000, what="the extension is nearly over")
    renewals = lock.client.describe()["renewals"]
    spin(lock.client, lambda: lock.client.describe()["renewals"] > renewals + 2, what="renewals go on")
    assert lock.validity_ms <= 8000 and lock.settle() == OK and max(pttls(nodes)) <= 8000
    assert lock.expire(20000) == OK
    spin(lock.client, lambda: lock.client.describe()["renewals"] > renewals + 4, what="renewals go on")
    assert lock.validity_ms > 8000
    assert lock.release() == OK


def test_remove_deletes_whatever_is_there(nodes, client):
    occupy(nodes.nodes[:2])
    nodes[2].command("HSET", "r", "owner", "1")
    nodes[3].set("r", "x" * 1000)
    lock = client.lock()
    assert lock.remove() == OK
    assert not nodes.keys()
    assert [lock.answer(node) for node in range(5)] == ["deleted"] * 4 + ["nothing to delete"]
    assert lock.acquire() == OK and lock.release() == OK


def test_remove_without_a_majority_deletes_what_it_can(nodes, make_client):
    occupy(nodes)
    client = make_client(nodes.urls)
    for node in nodes.nodes[:3]:
        node.kill()
    lock = client.lock()
    assert lock.start(rl.REMOVE) == OK
    assert finish(lock) == NO_QUORUM
    assert not any(node.get("r") for node in nodes.nodes[3:])
    assert FOREIGN not in lock.message

"""Rights that a user loses and gets back while programs wait."""
import time

import pytest

import rl
from helpers import evict, finish, follow, held_everywhere, lead, refused, spin, waits_told
from rl import HELD, OK, PENDING, REFUSED_CONFIG


def keep(node):
    node.config_set("maxmemory-policy", "noeviction")


USER = ("few", "p")


def rights(*rules):
    return lambda node: node.command("ACL", "SETUSER", USER[0], "on", *rules)


def rotate(node):
    """The old password is gone before the programs have the new one."""
    rights("resetpass", ">new")(node)
    node.command("CLIENT", "KILL", "USER", USER[0])


PASSING = {
    "replica": (follow, lead, "a replica"),
    "evicts": (evict, keep, "evicts keys"),
    "password": (rotate, rights(">p"), "WRONGPASS"),
    "set-denied": (rights("-set"), rights("+set"), "NOPERM"),
}


@pytest.fixture
def few(nodes):
    """The URLs of three nodes for a user of their own."""
    for node in nodes:
        rights(">p", "~*", "&*", "+@all")(node)
    return [node.url_with(*USER) for node in nodes.nodes[:3]]


@pytest.mark.parametrize("refuse, mend, words", PASSING.values(), ids=PASSING)
def test_a_wait_outlasts_what_a_voter_refuses_for(nodes, few, make_client, refuse, mend, words):
    """A majority has voted for this client and refuses now: what has changed may be changed back."""
    client = make_client(few, ttl_ms=1000, node_timeout_ms=250, outage_wait_ms=-1)
    lock = client.lock()
    assert lock.acquire(5000) == OK and lock.release() == OK
    client.events()
    for node in nodes.nodes[:2]:
        refuse(node)

    def refuses():
        status = lock.acquire(0)
        return status == REFUSED_CONFIG or (status == OK and lock.release() != OK)

    spin(client, refuses, what="it is noticed")
    assert lock.start(rl.ACQUIRE, -1) == OK
    told = []
    spin(client, lambda: told.extend(waits_told(client)) or told, what="the wait is told")
    began = time.monotonic()
    spin(client, lambda: time.monotonic() - began > 0.5)
    spin(client, lambda: lock.said(words), what="the nodes refuse again")  # between two attempts nothing is said
    assert lock.status == PENDING, lock.message
    for node in nodes.nodes[:2]:
        mend(node)
    assert finish(lock, 90) == OK, lock.message  # one that was promoted is quarantined
    told += waits_told(client)
    refusals = [words for words in told if words.startswith("waits: 2 of 3 nodes are ineligible to vote: ")]
    assert len(refusals) == 1 and told[0] == refusals[0], told
    assert words in told[0]


def test_an_extension_outlasts_a_failover(nodes, few, make_client):
    """It is tried again until the lease ends or the outage has lasted too long."""
    client = make_client(few, ttl_ms=30000, outage_wait_ms=-1)
    lock = client.lock()
    assert lock.acquire() == OK
    held_everywhere(lock)
    for node in nodes.nodes[:2]:
        rights("-get")(node)
    assert lock.start(rl.EXTEND) == OK
    spin(client, lambda: refused(lock, 2))
    began = time.monotonic()
    spin(client, lambda: time.monotonic() - began > 0.3)
    assert lock.status == PENDING
    for node in nodes.nodes[:2]:
        rights("+get")(node)
    assert finish(lock) == OK and lock.state == HELD, lock.message


@pytest.mark.parametrize("names, options, right", [("ab", {}, "pexpire"), ("a", {"shared": "true"}, "pexpireat"),
                                                   ("a", {"layout": "hash"}, "pexpire")],
                         ids=["several", "shared", "hash"])
def test_keys_that_nobody_may_end_are_not_kept(nodes, few, make_client, names, options, right):
    client = make_client(few, outage_wait_ms=0)
    lock = client.lock(*names, **options)
    assert lock.acquire() == OK and lock.release() == OK and lock.settle() == OK
    for node in nodes.nodes[:3]:
        rights("-" + right)(node)
    assert lock.acquire(0) == REFUSED_CONFIG
    assert lock.settle() == OK
    nodes.no_keys()


@pytest.mark.parametrize("held", "ab")
def test_no_new_set_beside_an_old_one_lacks_an_end(nodes, few, make_client, held):
    reader = make_client(nodes.urls[:3], ttl_ms=30000).lock(held, shared="true")
    client = make_client(few, outage_wait_ms=0)
    lock = client.lock("a", "b", shared="true")
    assert lock.acquire() == OK and lock.release() == OK and lock.settle() == OK
    assert reader.acquire() == OK
    for node in nodes.nodes[:3]:
        rights("-pexpireat")(node)
    assert lock.acquire(0) == REFUSED_CONFIG
    assert lock.settle() == OK and nodes.keys() == {held.encode(): [0, 1, 2]}
    assert all(node.pttl(held) > 0 for node in nodes.nodes[:3])


def test_a_writer_who_may_not_share_keeps_its_keys(nodes, few, make_client):
    client = make_client(few, ttl_ms=30000)
    lock = client.lock()
    assert lock.acquire() == OK
    held_everywhere(lock)
    for node in nodes.nodes[:3]:
        rights("-zadd")(node)
    assert lock.set("shared", "true") == OK and lock.start(rl.EXTEND) == OK
    spin(client, lambda: refused(lock, 3))
    assert lock.state == HELD and [node.get("r") for node in nodes.nodes[:3]] == 3 * [lock.token.encode()]

"""Nodes that refuse to vote: which refusals are waited out, and which end a wait at once."""
import threading
import time

import pytest

import rl
from guarding import GUARDED, MARKER, bootstrapped
from helpers import finish, held_everywhere, spin
from rl import HELD, OK, PENDING, REFUSED_CONFIG

USER = ("few", "p")


def follow(node):
    node.command("REPLICAOF", "127.0.0.1", 1)


def lead(node):
    node.command("REPLICAOF", "NO", "ONE")


def evict(node):
    node.config_set("maxmemory-policy", "allkeys-lru")
    node.config_set("maxmemory", "100mb")


def keep(node):
    node.config_set("maxmemory-policy", "noeviction")


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


def waits_told(client):
    return [event["detail"] for event in client.events()
            if event["event"] == "warning" and "waits: " in event.get("detail", "")]


def refused(lock, count):
    return sum(vote == REFUSED_CONFIG for vote in lock.votes) >= count


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
    assert lock.status == PENDING and lock.said(words) >= 1, lock.message
    for node in nodes.nodes[:2]:
        mend(node)
    assert finish(lock, 90) == OK, lock.message  # one that was promoted is quarantined
    told += waits_told(client)
    refusals = [words for words in told if words.startswith("waits: 2 of 3 nodes are ineligible to vote: ")]
    assert len(refusals) == 1 and told[0] == refusals[0], told
    assert words in told[0]


@pytest.mark.parametrize("wait_ms, outage_wait_ms, least_s", [(-1, 500, 0.5), (500, -1, 0.5), (0, -1, 0)])
def test_a_wait_that_meets_replicas_ends_in_time(nodes, make_client, wait_ms, outage_wait_ms, least_s):
    """By whichever of the two waits ends first; the status and the words are those of the refusal."""
    for node in nodes.nodes[:2]:
        follow(node)
    lock = make_client(nodes.urls[:3], outage_wait_ms=outage_wait_ms).lock()
    began = time.monotonic()
    assert lock.acquire(wait_ms) == REFUSED_CONFIG, lock.message
    assert least_s <= time.monotonic() - began < least_s + 10
    assert lock.said("a replica") == 2



FINAL = {
    "password": lambda node: node.url_with("nobody", "wrong"),
    "database": lambda node: node.url_with(db=99),
    "evicts": lambda node: evict(node) or node.url,
    "foreign-marker": lambda node: node.command("SET", MARKER, "theirs") and node.url,
}


@pytest.mark.parametrize("spoil", FINAL.values(), ids=FINAL)
def test_a_mistake_ends_a_wait_at_once(nodes, make_client, spoil):
    """Nodes that refuse from the first time on, for what does not change by itself."""
    urls = [spoil(node) for node in nodes.nodes[:2]] + nodes.urls[2:3]
    lock = make_client(urls, outage_wait_ms=30000).lock()
    began = time.monotonic()
    assert lock.acquire(30000) == REFUSED_CONFIG, lock.message
    assert time.monotonic() - began < 20


def test_a_replica_beside_a_mistake_may_pass(make_cluster, make_client):
    """A majority refuses; only one of them for good."""
    nodes = make_cluster(3)
    follow(nodes[0])
    client = make_client([nodes.urls[0], nodes[1].url_with("nobody", "wrong"), nodes.urls[2]], outage_wait_ms=-1)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, -1) == OK
    spin(client, lambda: refused(lock, 2))
    lead(nodes[0])
    assert finish(lock, 90) == OK, lock.message


def test_a_wait_that_begins_in_a_failover_is_served(make_cluster, make_client):
    """One address leads to a replica for 1.5 s, and then to the server that was promoted."""
    replica = make_cluster(1)[0]
    follow(replica)
    lock = make_client([replica.url]).lock()
    promotion = threading.Timer(1.5, lead, [replica])
    promotion.start()
    assert lock.acquire(60000) == OK, lock.message
    promotion.join()


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


@pytest.mark.new_nodes
def test_a_wait_outlasts_a_quarantine_with_one_node_down(make_cluster, make_client):
    """One of three is down and one is new: the wait is one for the guard, which outage_wait_ms does not end."""
    servers = make_cluster(3).nodes
    bootstrapped([server.url for server in servers])
    servers[0].kill()
    servers[1].restart(empty=True)
    client = make_client([server.url for server in servers], **dict(GUARDED, outage_wait_ms=500))
    lock = client.lock()
    assert lock.acquire(60000) == OK, lock.message
    told = waits_told(client)
    assert len(told) == 1 and told[0].startswith("waits: 1 of 3 nodes are new or may have lost keys"), told

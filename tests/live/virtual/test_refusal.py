"""Nodes that refuse to vote: which refusals are waited out, and which end a wait at once."""
import time

import pytest

import rl
from guarding import GUARDED, MARKER, bootstrapped
from helpers import Call, evict, finish, follow, lead, refused, spin, waits_told
from rl import OK, REFUSED_CONFIG
from testing import eventually
from testing.wait import in_time


@pytest.mark.parametrize("wait_ms, outage_wait_ms, least_s", [(-1, 500, 0.5), (500, -1, 0.5), (0, -1, 0)])
def test_a_wait_that_meets_replicas_ends_in_time(nodes, make_client, wait_ms, outage_wait_ms, least_s):
    """By whichever of the two waits ends first; the status and the words are those of the refusal."""
    for node in nodes.nodes[:2]:
        follow(node)
    lock = make_client(nodes.urls[:3], outage_wait_ms=outage_wait_ms).lock()
    began = time.monotonic()
    assert lock.acquire(wait_ms) == REFUSED_CONFIG, lock.message
    took_s = time.monotonic() - began
    assert took_s > least_s - 0.001
    in_time(took_s < least_s + 10)
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
    in_time(time.monotonic() - began < 20)


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
    """One address leads to a replica, which is promoted when it has refused."""
    replica = make_cluster(1)[0]
    follow(replica)
    lock = make_client([replica.url]).lock()
    waiting = Call(lock.acquire, 60000)
    eventually(lambda: refused(lock, 1), 30, "the replica refuses")
    assert waiting.is_alive()
    lead(replica)
    assert waiting.join() == OK, lock.message


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

"""Waiting for a busy lock: hand-over, deadline, counts, the TTL, and that retries leave nothing."""

import pytest

import rl
from helpers import FOREIGN, Call, finish, occupy, spin
from rl import BUSY, OK
from testing import eventually


def test_no_wait_is_one_attempt(nodes, client):
    occupy(nodes)
    assert client.lock().acquire(0) == BUSY
    eventually(lambda: [node.calls("set") for node in nodes] == [2] * 5)  # ours and the occupant's


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_retry_count_bounds_the_attempts(nodes, make_client, retries):
    occupy(nodes)
    lock = make_client(nodes.urls, retry_count=retries, retry_delay_ms=5).lock()
    assert lock.acquire(20000) == BUSY
    # a retry may ask the home node alone, so the busiest node has seen them all
    eventually(lambda: max(node.calls("set") for node in nodes) == 1 + 1 + retries)


def test_waiter_survives_an_outage(nodes, make_client):
    lock = make_client(nodes.urls, retry_delay_ms=20, outage_wait_ms=60000).lock()
    for node in nodes.nodes[:3]:
        node.kill()
    waiting = Call(lock.acquire, 30000)
    eventually(lambda: lock.vote(0) == rl.UNREACHABLE or not waiting.is_alive(), 30)
    for node in nodes.nodes[:3]:
        node.start()
    nodes.bootstrap()
    assert waiting.join() == OK


def test_sleeper_takes_over_when_the_holders_key_expires(nodes, make_client):
    """The holder was killed. Whichever node a resource's retries ask first: also one whose key lives for long."""
    client = make_client(nodes.urls, retry_delay_ms=3600000, retry_jitter=0)
    locks = [client.lock("m%d" % i) for i in range(8)]
    for i, ttl_ms in enumerate((700, 800, 900, 30000, 30000)):
        for j in range(8):
            occupy([nodes[i]], "m%d" % j, ttl_ms=ttl_ms)
    for lock in locks:
        assert lock.start(rl.ACQUIRE, 10000) == OK
    assert [finish(lock, 30) for lock in locks] == [OK] * 8, [lock.message for lock in locks]
    assert max(node.calls("set") for node in nodes) < 400
    assert nodes[3].get("m0") == nodes[4].get("m7") == FOREIGN.encode()


def test_split_votes_do_not_live_lock(nodes, make_client):
    """Keys of two dead contenders on two nodes each must not make the sleeper spin."""
    occupy(nodes.nodes[:2], token="a" * 40, ttl_ms=800)
    occupy(nodes.nodes[2:4], token="b" * 40, ttl_ms=800)
    lock = make_client(nodes.urls).lock()
    assert lock.acquire(20000) == OK
    assert max(node.calls("set") for node in nodes) < 400


def test_retries_leave_no_keys(nodes, client):
    """Three busy nodes and two free ones: every attempt wins votes that it has to give back."""
    occupy(nodes.nodes[:3])
    lock = client.lock()
    assert lock.acquire(500) == BUSY
    spin(client, lambda: nodes.keys() == {b"r": [0, 1, 2]})
    assert {node.get("r") for node in nodes.nodes[:3]} == {FOREIGN.encode()}


def test_a_wait_outlasts_a_home_node_that_is_down(nodes, make_client):
    """Whichever node a retry asks first: when it is down, the next one is asked."""
    lock = make_client(nodes.urls, retry_delay_ms=20, node_timeout_ms=200).lock()
    occupy(nodes, ttl_ms=3000)
    waiting = Call(lock.acquire, 30000)
    busiest = eventually(lambda: next((n for n in nodes if n.calls("set") >= 4), None))
    busiest.stop()
    assert waiting.join() == OK
    busiest.cont()


@pytest.mark.parametrize("leftover", range(3))
def test_a_leftover_key_on_one_node_hides_no_free_majority(nodes, make_client, leftover):
    """Whichever node the retries ask first: its key outlives the holder, the others are free."""
    client = make_client([node.url for node in nodes.nodes[:3]])
    occupy(nodes.nodes[:3])
    lock = client.lock()
    waiting = Call(lock.acquire, 10000)
    eventually(lambda: lock.votes.count(BUSY) == 3, what="the attempt was refused")
    for i in range(3):
        if i != leftover:
            nodes[i].command("DEL", "r")
    assert waiting.join() == OK, lock.message

"""Waiters whose users may not do all that a queue needs: they keep nobody from the lock."""
import pytest

import rl
from helpers import spin
from queueing import BEFORE_LAPSE_S, GENEROUS_WAIT_MS, LONG, Turns, warnings
from rl import BUSY, OK
from testing import eventually
from waiters import places, waiter_of


def allow(nodes, *rules):
    """The URLs of the nodes for a user with all rights but for these rules."""
    for node in nodes:
        node.command("ACL", "SETUSER", "few", "on", ">p", "~*", "&*", "+@all", *rules)
    return [node.url_with("few", "p") for node in nodes]


def warned_once_a_node(client):
    """Of each node that was home, or that seemed to be while another was late."""
    told = [event["node"] for event in warnings(client)]
    assert len(set(told)) == len(told), told
    return bool(told)


def serve_all(held, locks):
    """Whoever is late for its turn, as on a busy machine, may see the next go ahead."""
    waiting = list(locks)
    assert held.release() == OK

    def look():
        for lock in locks:
            lock.client.process()
        for lock in [lock for lock in waiting if lock.status == OK]:
            waiting.remove(lock)
            assert lock.release() == OK, lock.message
        return not waiting

    eventually(look, BEFORE_LAPSE_S, "all are served")


@pytest.mark.parametrize("rule", ["resetchannels", "-publish", "-subscribe"])
def test_waiter_without_publish_and_subscribe_is_served_in_order(nodes, held, make_client, rule):
    urls, locks, line = allow(nodes, rule), [], []

    def stand_in_line():
        for lock in locks:
            lock.client.process()
        line[:] = [waiter_of(place) for place in places(nodes)]
        return len(line) == len(locks)

    for number in range(3):
        locks.append(make_client(urls, **LONG).lock())
        assert locks[number].start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
        before = list(line)
        eventually(stand_in_line, 20, "%d wait" % (number + 1))
        assert line[:number] == before, "the last one stands at the end"
    serve_all(held, locks)
    for lock in locks if rule != "-publish" else []:
        assert warned_once_a_node(lock.client)


NO_KEYS = "resetkeys ~r ~libredlock:m ~libredlock:c:*"  # of a queue


@pytest.mark.parametrize("rule", ["-zadd", "-zrange", "-zrank", "-zscore", "-zrem", "-time", NO_KEYS])
def test_clients_that_may_not_queue_are_served(nodes, held, make_client, rule):
    guard = {"guard": "off"} if rule == "-time" else {}  # which needs TIME
    urls, turns, clients = allow(nodes, *rule.split()), Turns(nodes), []
    for number in range(3):
        clients.append(make_client(urls, **LONG, **guard))
        lock = clients[-1].lock()
        turns.wait(number, lock)
        eventually(lambda: lock.votes.count(BUSY) >= 3, 20)
    assert held.release() == OK
    assert sorted(turns.end()) == [0, 1, 2]
    for client in clients:
        assert warned_once_a_node(client) or rule == "-zscore", "which not everybody needs"


def test_a_place_that_nobody_may_end_is_not_kept(nodes, held, make_client):
    client = make_client(allow(nodes), **LONG)
    lock = client.lock()
    assert lock.acquire(0) == BUSY
    allow(nodes, "-pexpire")
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    told = []
    spin(client, lambda: told.extend(warnings(client)) or told, 20, "its place is refused")
    assert lock.cancel() == OK
    assert [node.command("EXISTS", "libredlock:q:r", "libredlock:p:r") for node in nodes] == [0] * 5
    allow(nodes, "+pexpire")


def test_a_free_lock_is_had_after_a_wait_without_zrem(nodes, held, make_client):
    client = make_client(allow(nodes, "-zrem"), **LONG)
    assert client.lock().acquire(300) == BUSY
    assert held.release() == OK
    lock = client.lock()
    assert lock.acquire(5000) == OK, lock.message
    assert not places(nodes)


@pytest.mark.parametrize("rule", ["-publish", "-zrem", "-exists", NO_KEYS])
def test_release_succeeds_when_publish_is_denied(make_cluster, make_client, rule):
    nodes = make_cluster(1)
    client, other = (make_client(allow(nodes, *rule.split()), wake="poll", **LONG) for _ in range(2))
    holder, waiting = client.lock(), other.lock()
    assert holder.acquire() == OK
    assert waiting.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(other, lambda: places(nodes) or rule in (NO_KEYS, "-zrem") and waiting.votes == [BUSY], 20)
    assert holder.release() == OK and holder.answer(0) == "deleted"
    spin(other, lambda: waiting.status == OK, BEFORE_LAPSE_S)
    assert waiting.release() == OK and waiting.answer(0) == "deleted"


def test_refusal_is_reported_once_not_every_ten_seconds(nodes, held, make_client):
    """Of each node on which it would wait: another is home when the first one was late."""
    client = make_client(allow(nodes, "-zadd"), **LONG)
    assert client.lock().acquire(12000) == BUSY
    told = [warning["node"] for warning in warnings(client)]
    assert told and len(told) == len(set(told))

"""Waiters whose users may not do all that a queue needs: they keep nobody from the lock."""
import pytest

import rl
from common import now_ms
from helpers import spin
from queueing import BEFORE_LAPSE_S, GENEROUS_WAIT_MS, LONG, OVERSLEPT_MS, Turns, places, warnings
from rl import BUSY, OK
from testing import eventually
from waiters import freeze_promises, make_waiters_recheck


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


def stand_in_one_queue(nodes):
    """Else the home node was late, and those who stand elsewhere do not keep the order of the others."""
    return sum(bool(places([node])) for node in nodes) == 1


def release_in_order(nodes, held, locks):
    """They win in order. Without wake-ups the first in line asks every 100 ms; the one behind it may take a lock that
    it finds free and that stays free for 50 ms."""
    freeze_promises(nodes)
    waiting, freed_ms, is_one_queue = list(range(len(locks))), now_ms(), stand_in_one_queue(nodes)
    assert held.release() == OK

    def run():
        for lock in locks:
            lock.client.process()

    def look():
        nonlocal freed_ms, is_one_queue
        run()
        for number, lock in enumerate(locks):
            if number in waiting and lock.status == OK:
                free_ms = now_ms() - freed_ms
                may_pass = free_ms > OVERSLEPT_MS - 1 or not is_one_queue
                assert number == waiting[0] or may_pass, (number, waiting, free_ms)
                waiting.remove(number)
                make_waiters_recheck(nodes, run)
                freeze_promises(nodes)
                is_one_queue = stand_in_one_queue(nodes)
                freed_ms = now_ms()
                assert lock.release() == OK, lock.message
        return not waiting

    eventually(look, BEFORE_LAPSE_S, "all are served")


@pytest.mark.parametrize("rule", ["resetchannels", "-publish", "-subscribe"])
def test_waiter_without_publish_and_subscribe_is_served_in_order(nodes, held, make_client, rule):
    urls, locks = allow(nodes, rule), []

    def stand_in_line():
        for lock in locks:
            lock.client.process()
        return len(places(nodes)) == len(locks)

    for number in range(3):
        locks.append(make_client(urls, **LONG).lock())
        assert locks[number].start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
        eventually(stand_in_line, 20, "%d wait" % (number + 1))
    release_in_order(nodes, held, locks)
    for lock in locks if rule != "-publish" else []:
        assert warned_once_a_node(lock.client)


@pytest.mark.parametrize("rule", ["-zadd", "-zrange", "-zrank", "-zscore", "-time"])
def test_clients_that_may_not_queue_are_served(nodes, held, make_client, rule):
    guard = {"guard": "off"} if rule == "-time" else {}  # which needs TIME
    urls, turns, clients = allow(nodes, rule), Turns(nodes), []
    for number in range(3):
        clients.append(make_client(urls, **LONG, **guard))
        lock = clients[-1].lock()
        turns.wait(number, lock)
        eventually(lambda: lock.votes.count(BUSY) >= 3, 20)
    assert held.release() == OK
    assert sorted(turns.end()) == [0, 1, 2]
    for client in clients:
        assert warned_once_a_node(client) or rule == "-zscore", "which not everybody needs"


@pytest.mark.parametrize("rule", ["-publish", "-zrem", "-exists"])
def test_release_succeeds_when_publish_is_denied(make_cluster, make_client, rule):
    nodes = make_cluster(1)
    client, other = (make_client(allow(nodes, rule), wake="poll", **LONG) for _ in range(2))
    holder, waiting = client.lock(), other.lock()
    assert holder.acquire() == OK
    assert waiting.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(other, lambda: places(nodes), 20)
    assert holder.release() == OK and holder.answer(0) == "deleted"
    spin(other, lambda: waiting.status == OK, BEFORE_LAPSE_S)
    assert waiting.release() == OK and waiting.answer(0) == "deleted"


def test_refusal_is_reported_once_not_every_ten_seconds(nodes, held, make_client):
    """Of each node on which it would wait: another is home when the first one was late."""
    client = make_client(allow(nodes, "-zadd"), **LONG)
    assert client.lock().acquire(12000) == BUSY
    told = [warning["node"] for warning in warnings(client)]
    assert told and len(told) == len(set(told))

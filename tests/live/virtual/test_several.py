"""Locks of several resources that wait: in the queue of each in which they were refused."""
import pytest

import rl
from helpers import finish, held_everywhere, spin
from queueing import freeze_promises
from rl import OK, PENDING
from testing import eventually

LONG = {"ttl_ms": 30000}
GENEROUS_WAIT_MS = 120000


def held(lock):
    assert lock.acquire(20000) == OK, lock.message
    held_everywhere(lock)
    return lock


def places(nodes, resource):
    return [place for node in nodes for place in node.command("ZRANGE", "libredlock:q:" + resource, 0, -1)]


def started(lock):
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    return lock


def number(place):
    """That of the waiter: whether it listens is the last bit."""
    client, at = place.decode().replace("/", ":").split(":")
    return client, int(at) >> 1


@pytest.mark.parametrize("options", [{}, {"shared": "true"}, {"layout": "hash"}], ids=str)
def test_it_has_a_place_in_each_queue_in_which_it_was_refused(nodes, make_client, options):
    holders = [held(make_client(nodes.urls).lock(resource, **LONG)) for resource in "bc"]
    lock = started(make_client(nodes.urls).lock("a", "b", "c", **LONG, **options))
    spin(lock.client, lambda: places(nodes, "b"), 20, "it waits for b")
    assert places(nodes, "a") == [] and places(nodes, "c") == []
    assert holders[0].release() == OK
    spin(lock.client, lambda: places(nodes, "c"), 20, "it waits for c, too")
    spin(lock.client, lambda: len({number(place) for place in places(nodes, "b") + places(nodes, "c")}) == 1 and
         len(places(nodes, "b")) == len(places(nodes, "c")) == 1, 20, "it keeps its place for b")
    assert lock.status == PENDING and places(nodes, "a") == []
    assert holders[1].release() == OK
    assert finish(lock) == OK, lock.message
    eventually(lambda: [places(nodes, resource) for resource in "abc"] == [[]] * 3, 20, "it leaves the queues")
    assert lock.release() == OK


def test_a_wait_that_ends_leaves_all_queues(nodes, make_client):
    holders = [held(make_client(nodes.urls).lock(resource, **LONG)) for resource in "ab"]
    lock = started(make_client(nodes.urls).lock("a", "b", **LONG))
    spin(lock.client, lambda: places(nodes, "a"), 20, "it waits for a")
    assert holders[0].release() == OK
    spin(lock.client, lambda: places(nodes, "b"), 20, "it waits for b, too")
    assert lock.cancel() == OK
    assert finish(lock) == rl.CANCELLED
    eventually(lambda: places(nodes, "a") == places(nodes, "b") == [], 20, "it leaves the queues")
    assert held(make_client(nodes.urls).lock("a", **LONG)).release() == OK


def test_its_release_wakes_the_waiters_of_each(nodes, make_client):
    lock = held(make_client(nodes.urls).lock("a", "b", **LONG))
    waiters = [started(make_client(nodes.urls).lock(resource, **LONG)) for resource in "ab"]
    for waiter, resource in zip(waiters, "ab", strict=True):
        listens = lambda: [place for place in places(nodes, resource) if int(place[-1:]) % 2]  # noqa: B023, E731
        spin(waiter.client, listens, 20, "it listens")
    before = sum(node.calls("publish") for node in nodes)
    assert lock.release() == OK
    assert [finish(waiter) for waiter in waiters] == [OK, OK]
    assert sum(node.calls("publish") for node in nodes) == before + 2


def test_it_does_not_pass_those_who_wait_for_the_last_of_them(nodes, make_client):
    holder = held(make_client(nodes.urls).lock("b", **LONG))
    first = started(make_client(nodes.urls).lock("b", **LONG))
    spin(first.client, lambda: places(nodes, "b"), 20, "it waits")
    freeze_promises(nodes, "b")
    for node in nodes:  # free, and nobody was told
        node.command("DEL", "b")
    lock = make_client(nodes.urls).lock("a", "b", **LONG)
    spin(lock.client, lambda: lock.client.settled(), 20, "it is connected")
    for _ in range(20):  # a lock does not wait for long for what a late node says of others
        started(lock)
        spin(lock.client, lambda: lock.status != PENDING or len(places(nodes, "b")) == 2, 20, "it stands behind")
        if lock.status == PENDING:
            break
        assert lock.release() == OK
    assert finish(first) == OK and lock.status == PENDING
    assert first.release() == OK
    assert finish(lock) == OK
    holder.release()

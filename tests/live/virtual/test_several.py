"""Locks of several resources that wait: in the queue of each in which they were refused."""
import pytest

import rl
import waiters
from common import now_ms, occupy
from helpers import finish, held_everywhere, spin
from rl import OK, PENDING
from testing import eventually
from waiters import freeze_promises

LONG = {"ttl_ms": 30000}
GENEROUS_WAIT_MS = 120000


def held(lock):
    assert lock.acquire(20000) == OK, lock.message
    held_everywhere(lock)
    return lock


def places(nodes, resource):
    return waiters.places(nodes, "libredlock:q:" + resource)


def home_of(nodes, resource):
    return waiters.in_order(nodes, resource.encode())[0]


def started(lock):
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    return lock


@pytest.mark.parametrize("options", [{}, {"shared": "true"}, {"layout": "hash"}], ids=str)
def test_it_has_one_arrival_in_the_queues_of_all(nodes, make_client, options):
    holders = [held(make_client(nodes.urls).lock(resource, **LONG)) for resource in "bc"]
    lock = started(make_client(nodes.urls).lock("a", "b", "c", **LONG, **options))
    spin(lock.client, lambda: all(places(nodes, resource) for resource in "abc"), 20, "it waits for all")
    assert len({waiters.waiter_of(place) for resource in "abc" for place in places(nodes, resource)}) == 1
    arrivals = {node.command("ZSCORE", "libredlock:q:" + resource, place) for node in nodes for resource in "abc"
                for place in places([node], resource)}
    assert len(arrivals) == 1, "the same in all queues"
    assert holders[0].release() == OK
    spin(lock.client, lambda: not any(node.command("EXISTS", "b") for node in nodes), 20)
    assert lock.status == PENDING
    assert holders[1].release() == OK
    assert finish(lock) == OK, lock.message
    eventually(lambda: [places(nodes, resource) for resource in "abc"] == [[]] * 3, 20, "it leaves the queues")
    assert lock.release() == OK


def test_it_leaves_the_queue_that_it_entered_before_it_listened(nodes, make_client):
    """When it wins, one of its places still has the name without a listener, and the other, at the same home, not."""
    home = {name: home_of(nodes, name) for name in map(str, range(40))}
    names = [name for name in home if home[name] is home["0"]][:2]
    for ttl_ms in range(1, 12):
        occupy(nodes, names[1], ttl_ms=ttl_ms)
        lock = started(make_client(nodes.urls).lock(*names, **LONG))
        assert finish(lock) == OK, lock.message
        eventually(lambda: not any(places(nodes, name) for name in names), 20, "it leaves the queues")
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


def both_wait(one, other, ms):
    begun_ms = now_ms()
    spin(one.client, lambda: other.client.process() == OK and now_ms() - begun_ms > ms, 20)
    assert one.status == other.status == PENDING


def test_it_makes_no_attempts_while_others_hold(nodes, make_client):
    """But for one in 0.75 s, in which it looks at all nodes."""
    holder = held(make_client(nodes.urls).lock("b", **LONG))
    lock = started(make_client(nodes.urls).lock("a", "b", **LONG))
    both_wait(lock, lock, 5000)
    assert lock.attempts < 15
    assert holder.release() == OK and finish(lock) == OK


def test_readers_of_several_do_not_pass_a_writer(nodes, make_client):
    reader = held(make_client(nodes.urls).lock("b", shared="true", **LONG))
    writer = started(make_client(nodes.urls).lock("b", **LONG))
    spin(writer.client, lambda: places(nodes, "b"), 20, "it waits")
    lock = started(make_client(nodes.urls).lock("a", "b", shared="true", **LONG))
    both_wait(writer, lock, 2000)
    assert reader.release() == OK and finish(writer) == OK
    assert lock.status == PENDING
    assert writer.release() == OK and finish(lock) == OK


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


def serve(singles, until_ms, hold_ms):
    """Each holds for so long, and comes again at once: how many have just done so."""
    turns = 0
    for single in singles:
        single.client.process()
        if single.status == OK and now_ms() >= until_ms.setdefault(single, now_ms() + hold_ms):
            assert single.release() == OK
            started(single)
            until_ms.pop(single)
            turns += 1
    return turns


def test_it_is_served_where_others_never_leave_both_free(nodes, make_client):
    """It keeps what gets free for a while, then lets others pass."""
    singles = [make_client(nodes.urls).lock(resource, **LONG) for resource in "ab"]
    both = make_client(nodes.urls).lock("a", "b", **LONG)
    until_ms, turns = {}, []
    for single in singles:
        started(single)
    spin(singles[0].client, lambda: [single.client.process() for single in singles] and
         {single.status for single in singles} == {OK})
    until_ms.update((single, now_ms() + 100 * number) for number, single in enumerate(singles))
    started(both)

    def work():
        """One of the singles always holds."""
        turns.append(serve(singles, until_ms, 200))
        return both.status != PENDING

    spin(both.client, work, 12, "it has both")
    assert both.status == OK and sum(turns) > 2


def test_it_is_served_where_the_first_queue_cannot_be_used(nodes, make_client):
    """It stands in that of the second, where others always wait."""
    second = next(name for name in map(str, range(40)) if home_of(nodes, name) is not home_of(nodes, "a"))
    home_of(nodes, "a").command("SET", "libredlock:q:a", "of somebody else")
    singles = [started(make_client(nodes.urls).lock(second, **LONG)) for _ in range(3)]
    both = make_client(nodes.urls).lock("a", second, **LONG)
    until_ms = {}

    def work():
        serve(singles, until_ms, 100)
        return both.status != PENDING

    for _ in range(3):
        started(both)
        spin(both.client, work, 3, "it has both")
        assert both.status == OK and both.release() == OK

"""Waiting in order: first come, first served, also across faces."""
import faces
from driver import Waiting
from steps import stand_in_line
from testing import eventually
from waiters import places, waiter_of

TTL_MS = 20000  # no test waits for a lease to end
BEFORE_LAPSE_S = 30


def line_of(nodes, waiting):
    """Who stands in the queue; the holder may, too."""
    return [waiter_of(place) for place in places(nodes)][-len(waiting):] if waiting else []


def release_and_see_order(holder, waiting, nodes, *comers):
    """The queue keeps the order of arrival, whoever is served. On a busy machine one may be late for its turn, and see
    the next go ahead."""
    line = line_of(nodes, waiting)
    assert holder.release() == "OK"
    waiting += [Waiting(lock, -1) for lock in comers]
    while waiting:
        one = eventually(lambda: next((one for one in waiting if not one.pending), None), BEFORE_LAPSE_S,
                         "one is served")
        assert one.result() == "OK"
        waiting.remove(one)
        assert all(other.pending for other in waiting)
        left = [place for place in line_of(nodes, waiting) if place in line]
        assert left == [place for place in line if place in left]
        assert one.lock.release() == "OK"


def test_waiters_are_served_in_the_order_of_arrival(make, nodes):
    holder, *others = (make(ttl_ms=TTL_MS).lock() for _ in range(4))
    assert holder.acquire() == "OK"
    waiting = [stand_in_line(lock, nodes, number) for number, lock in enumerate(others, 1)]
    release_and_see_order(holder, waiting, nodes)


def test_a_releaser_that_comes_again_waits_behind_the_others(make, nodes):
    holder, *others = (make(ttl_ms=TTL_MS).lock() for _ in range(3))
    assert holder.acquire() == "OK"
    waiting = [stand_in_line(lock, nodes, number) for number, lock in enumerate(others, 1)]
    release_and_see_order(holder, waiting, nodes, holder)


def test_waiters_of_all_faces_are_served_in_the_order_of_arrival(parties, nodes):
    holder = parties("c", ttl_ms=TTL_MS).lock()
    assert holder.acquire() == "OK"
    waiting = [stand_in_line(parties(face, ttl_ms=TTL_MS).lock(), nodes, number)
               for number, face in enumerate(faces.FACES, 1)]
    release_and_see_order(holder, waiting, nodes)


def test_no_places_are_taken_without_the_queue(make, nodes):
    holder, other = make().lock(ttl_ms=TTL_MS), make().lock(queue=False, ttl_ms=TTL_MS)
    assert holder.acquire() == "OK"
    waiting = Waiting(other, -1)
    eventually(lambda: max(node.calls("set") for node in nodes) >= 4, BEFORE_LAPSE_S, "it tries again")
    assert places(nodes) == []
    assert holder.release() == "OK"
    assert waiting.result() == "OK"


def test_waiter_without_wake_ups_polls(make, nodes):
    holder, other = make(ttl_ms=TTL_MS).lock(), make(ttl_ms=TTL_MS, wake="poll").lock()
    assert holder.acquire() == "OK"
    waiting = stand_in_line(other, nodes, 1)
    eventually(lambda: max(node.calls("zrank") for node in nodes) >= 4, BEFORE_LAPSE_S, "it asks again")
    assert [node.calls("subscribe") for node in nodes] == [0] * 5
    assert holder.release() == "OK"
    assert waiting.result() == "OK"

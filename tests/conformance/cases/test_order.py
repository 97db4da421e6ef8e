"""Waiting in order: first come, first served, also across faces."""
import faces
from driver import Waiting, now_ms
from steps import places, stand_in_line
from testing import eventually
from waiters import asked_for_a_queue, disagree_about_home, freeze_promises, make_waiters_recheck

TTL_MS = 20000  # no test waits for a lease to end
OVERSLEPT_MS = 50  # of core/src/lock/queue.c
BEFORE_LAPSE_S = 30


def served_ms(nodes):
    """When the lock was taken that is held now."""
    left = [node.command("PTTL", "r") for node in nodes]
    return now_ms() - (TTL_MS - max(left))


def release_and_see_order(holder, waiting, nodes, *comers):
    """Waiters are served in order. The next in line may take a lock that has been free for 50 ms: the one before it has
    overslept. A busy machine delays the reply to a release: the lock may be free since its call."""
    freeze_promises(nodes)
    asked, freed_ms = asked_for_a_queue(nodes), now_ms()
    assert holder.release() == "OK"
    waiting += [Waiting(lock, -1) for lock in comers]
    while waiting:
        one = eventually(lambda: next((one for one in waiting if not one.pending), None), BEFORE_LAPSE_S,
                         "one is served")
        assert one.result() == "OK"
        free_ms = served_ms(nodes) - freed_ms
        if one is not waiting[0] and free_ms <= OVERSLEPT_MS - 10:
            assert disagree_about_home(nodes, asked), (waiting.index(one), free_ms)
        waiting.remove(one)
        assert all(other.pending for other in waiting)
        make_waiters_recheck(nodes)
        freeze_promises(nodes)
        freed_ms = now_ms()
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

"""A lock is one lock, whichever two faces meet at it."""
import pytest

from driver import lapsing
from steps import BEFORE_LAPSE_S, acquire_everywhere
from testing import eventually


def test_each_keeps_the_other_out(first, second, nodes):
    one, other = first.lock(), second.lock()
    assert one.acquire() == "OK"
    assert other.acquire(wait_ms=0) == "BUSY"
    assert one.release() == "OK"
    assert other.acquire(wait_ms=20000) == "OK"
    assert one.acquire(wait_ms=0) == "BUSY"
    assert other.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


def test_one_waits_for_the_other(first, second, nodes):
    one, other = first.lock(), second.lock()
    assert one.acquire() == "OK"
    waiting = other.waiting()
    eventually(lambda: sum(node.calls("set") for node in nodes) > 8, 30, "it has tried")
    assert waiting.pending
    assert one.release() == "OK"
    assert waiting.result() == "OK"


def test_each_has_a_larger_fencing_number_than_the_other_before(first, second, nodes):
    locks = [party.lock(fence=True) for party in (first, second)]
    drawn = []
    for lock in locks * 3:
        taken = lock.acquire(wait_ms=20000)
        assert taken == "OK"
        drawn.append(taken["fence"])
        assert lock.release() == "OK"
    assert drawn == sorted(set(drawn)) and drawn[0] > 0
    assert first.lock().acquire(wait_ms=20000)["fence"] is None


def test_each_has_a_permit_of_its_own(first, second, nodes):
    locks = [party.lock(permits=2) for party in (first, second, first)]
    assert [lock.acquire(wait_ms=20000) for lock in locks[:2]] == ["OK", "OK"]
    assert {lock.slot for lock in locks[:2]} == {0, 1}
    assert locks[2].acquire(wait_ms=0) == "BUSY"
    assert locks[1].release() == "OK"
    assert locks[2].acquire(wait_ms=20000) == "OK"
    assert locks[2].slot == locks[1].slot
    other = second.lock(permits=3).acquire(wait_ms=20000)
    assert other == "REFUSED_CONFIG" and "have 2" in other.message, other


def test_no_more_hold_than_the_larger_number_of_permits(first, second, nodes):
    """The holder of a slot that the other does not know is not noticed by it, but notices it."""
    last = first.lock(permits=3, slot=2)
    acquire_everywhere(last, nodes)
    locks = [second.lock(permits=2) for _ in range(3)]
    assert [lock.acquire(wait_ms=20000) for lock in locks[:2]] == ["OK", "OK"]
    assert locks[2].acquire(wait_ms=0) == "BUSY"
    refused = first.lock(permits=3).acquire(wait_ms=20000)
    assert refused == "REFUSED_CONFIG" and "permits is 3; others that use the resource have 2" in refused.message


def test_hashes_keep_each_other_and_plain_locks_out(first, second, nodes):
    one, two = (party.lock(layout="hash") for party in (first, second))
    plain = second.lock()
    assert one.acquire(wait_ms=20000) == "OK"
    assert (two.acquire(wait_ms=0), plain.acquire(wait_ms=0)) == ("BUSY", "BUSY")
    assert one.release() == "OK"
    assert plain.acquire(wait_ms=20000) == "OK"
    assert one.acquire(wait_ms=0) == "BUSY"
    assert plain.release() == "OK"
    assert two.acquire(wait_ms=20000) == "OK" and two.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("detach", "adopt")
def test_a_detached_lock_is_handed_over(first, second, nodes):
    one = first.lock()
    assert one.acquire() == "OK"
    token = one.detach().token
    first.close()
    other = second.adopt("r", token)
    eventually(lambda: other.extend(8000) == "OK", 20)  # a client that is new may not know all nodes yet
    assert second.lock().acquire(wait_ms=0) == "BUSY"
    assert other.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("extend", "adopt")
def test_a_lock_is_extended_by_its_token(first, second, nodes):
    one = first.lock()
    assert one.acquire() == "OK"
    other = second.adopt("r", one.token)
    eventually(lambda: other.extend(25000) == "OK", 20)
    eventually(lambda: sum(node.pttl("r") > 8000 for node in nodes) >= 3, 20, "a majority has the new TTL")
    other.detach()
    assert one.extend() == "OK"
    assert one.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("extend", "adopt")
def test_a_lock_is_released_by_its_token(first, second, nodes):
    one = first.lock()
    acquire_everywhere(one, nodes)  # a vote that came after the release would stay until the TTL ends
    assert second.adopt("r", one.token).release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)
    assert one.extend() == "LOST"


def test_the_lock_of_a_killed_holder_lapses(first, second, nodes):
    one, other = first.lock(**lapsing(1000)), second.lock()
    assert one.acquire(wait_ms=20000) == "OK"
    first.driver.kill()
    assert other.acquire(wait_ms=20000) == "OK"


def test_readers_hold_together_and_a_writer_alone(first, second, nodes):
    one, two = first.lock(shared=True), second.lock(shared=True)
    assert one.acquire() == "OK"
    assert two.acquire(wait_ms=20000) == "OK"
    writers = first.lock(), second.lock()
    for writer in writers:
        assert writer.acquire(wait_ms=0) == "BUSY"
    assert one.release() == "OK"
    assert writers[0].acquire(wait_ms=0) == "BUSY"
    assert two.release() == "OK"
    assert writers[0].acquire(wait_ms=20000) == "OK"
    assert two.acquire(wait_ms=0) == "BUSY"
    assert writers[0].release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


def test_a_writer_waits_for_a_reader(first, second, nodes):
    reader, writer = first.lock(shared=True), second.lock()
    assert reader.acquire() == "OK"
    waiting = writer.waiting()
    assert waiting.pending
    assert reader.release() == "OK"
    assert waiting.result() == "OK"
    assert writer.release() == "OK"


def test_all_resources_are_held_or_none(first, second, nodes):
    both, other, single = first.lock(["a", "b"]), second.lock(["c", "b"]), first.lock("c")
    assert both.acquire() == "OK"
    assert other.acquire(wait_ms=0) == "BUSY"
    assert second.lock("a").acquire(wait_ms=0) == "BUSY"
    assert single.acquire(wait_ms=20000) == "OK"  # no client holds one of them without the other
    assert both.release() == "OK"
    waiting = other.waiting()
    assert single.release() == "OK"
    assert waiting.result() == "OK"
    assert both.acquire(wait_ms=0) == "BUSY"
    assert other.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("extend", "adopt")
def test_several_are_extended_and_released_by_their_token(first, second, nodes):
    one = first.lock(["a", "b"], shared=True)
    assert one.acquire() == "OK"
    other = second.adopt(["a", "b"], one.token, shared=True)
    eventually(lambda: other.extend(25000) == "OK", 20)
    for key in "ab":
        eventually(lambda: sum(node.pttl(key) > 8000 for node in nodes) >= 3, 20, "a majority has the new TTL")
    assert other.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)
    assert one.extend() == "LOST"

"""One lock object that several threads, tasks or Fibers use: whoever speaks of it means the own hold."""
import pytest

from driver import Waiting, lapsing
from steps import values
from testing import eventually


@pytest.fixture
def late_and_next(make, nodes):
    """One whose lease has ended, and who has got the lock since, by the same object."""
    late, after = make(**lapsing(4000)).lock(fence=True).callers(2)
    assert late.acquire(wait_ms=20000) == "OK"
    eventually(lambda: late.state == "LOST", 30, "its lease ends")
    eventually(lambda: not any(node.get("r") for node in nodes), 30, "its keys go")
    assert after.acquire(wait_ms=30000) == "OK"
    assert after.extend(25000) == "OK"
    return late, after


@pytest.mark.needs("sharing")
def test_a_late_release_spares_the_next(late_and_next, nodes):
    late, after = late_and_next
    assert late.release() == "LOST"
    assert values(nodes, "r") == {after.token.encode()}
    assert after.state == "HELD"
    assert after.release() == "OK"


@pytest.mark.needs("sharing")
def test_late_facts_are_the_late_holders_own(late_and_next, nodes):
    late, after = late_and_next
    token, held = late.token, after.extend(25000)
    told = late.extend(25000)
    assert (told.status, told.token, told.validity_ms) == ("LOST", token, 0)
    assert token != held.token and told.fence < held.fence
    assert late.validity_ms == 0 and after.validity_ms > 0
    assert values(nodes, "r") == {held.token.encode()}


@pytest.mark.needs("sharing")
def test_permits_of_one_object_let_in_as_many(make):
    callers = make(ttl_ms=25000).lock(permits=4).callers(8)
    waiting = [Waiting(caller, -1) for caller in callers]
    inside = eventually(lambda: len(got := [one for one in waiting if not one.pending]) == 4 and got, 30)
    assert {one.result().slot for one in inside} == {0, 1, 2, 3}
    for one in inside:
        assert one.lock.release() == "OK"
    outside = [one for one in waiting if one not in inside]
    assert {one.result().slot for one in outside} == {0, 1, 2, 3}
    for one in outside:
        assert one.lock.release() == "OK"


@pytest.mark.needs("sharing")
def test_readers_of_one_object_are_in_together(make):
    callers = make(ttl_ms=25000).lock(shared=True).callers(3)
    assert [caller.acquire(wait_ms=20000).status for caller in callers] == ["OK"] * 3
    assert [caller.state for caller in callers] == ["HELD"] * 3
    assert [caller.release().status for caller in callers] == ["OK"] * 3


@pytest.mark.needs("sharing", "close")
def test_a_close_is_a_loss_for_whoever_holds(make, nodes):
    party = make(ttl_ms=25000)
    one, other = party.lock().callers(2)
    assert one.acquire(wait_ms=20000) == "OK"
    assert party.close_client() == "OK"
    assert (one.state, one.validity_ms, other.state) == ("LOST", 0, "FREE")
    nodes.no_keys()
    assert one.release() == "LOST"


@pytest.mark.needs("election")
def test_two_on_one_election_lead_in_turn(make):
    one = make(ttl_ms=25000).election()
    (other,) = one.callers(1)
    first = one.acquire(-1)
    assert first == "OK" and one.state == "HELD"
    standing = Waiting(other, -1)
    eventually(lambda: one.party.describe()["waiting"] == 1, 30, "it stands by")
    assert standing.pending
    assert one.release() == "OK"
    assert standing.result().fence > first.fence
    assert (one.state, other.state) == ("FREE", "HELD")
    assert other.release() == "OK"

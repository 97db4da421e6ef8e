"""A held lock that whoever holds it acquires again."""
import pytest

from driver import lapsing
from steps import acquire_everywhere, values
from testing import eventually

pytestmark = pytest.mark.needs("reentrant")


def test_only_the_outermost_release_gives_it_up(make, nodes):
    lock, other = make().lock(reentrant=True), make().lock()
    acquire_everywhere(lock, nodes)
    token = lock.token
    assert lock.acquire(wait_ms=0) == "OK"
    assert lock.acquire(wait_ms=-1) == "OK"
    assert lock.release() == "OK"
    assert lock.release() == "OK"
    assert (lock.state, lock.token) == ("HELD", token)
    assert values(nodes, "r") == {token.encode()}
    assert other.acquire(wait_ms=0) == "BUSY"
    assert lock.release() == "OK"
    assert lock.state == "FREE"
    assert other.acquire(wait_ms=20000) == "OK"


@pytest.mark.needs("body")
def test_an_inner_body_that_releases_early_keeps_the_outer(make, nodes):
    lock, other = make().lock(reentrant=True), make().lock()
    assert lock.body() == "OK"
    for _ in range(2):
        inner = lock.again()
        assert inner == "NOT_HELD"
        assert "released it already" in inner.message and "outer" in inner.message
        assert lock.state == "HELD"
        assert other.acquire(wait_ms=0) == "BUSY"
    assert lock.leave() == "OK"
    nodes.no_keys()


@pytest.mark.needs("body")
def test_a_body_may_release_what_was_acquired_before_it(make, nodes):
    lock = make().lock(reentrant=True)
    assert lock.acquire(wait_ms=20000) == "OK"
    assert lock.again() == "OK"
    assert lock.state == "FREE"
    nodes.no_keys()


def test_inner_calls_need_no_node(make, nodes):
    lock = make().lock(reentrant=True)
    acquire_everywhere(lock, nodes)
    for node in nodes:
        node.stop()
    assert lock.acquire(wait_ms=0) == "OK"
    assert lock.release() == "OK"
    for node in nodes:
        node.cont()
    assert lock.extend() == "OK"
    assert lock.release() == "OK"
    nodes.no_keys()


def test_what_was_lost_is_not_acquired_again_inside(make, nodes):
    """While its owner lives: what an ended one has lost is acquired anew."""
    party = make(**lapsing(4000))
    lock = party.lock(reentrant=True)
    (lock,) = lock.callers(1) if "sharing" in party.can else [lock]
    assert lock.acquire(wait_ms=20000) == "OK"
    assert lock.acquire(wait_ms=0) == "OK"
    eventually(lambda: lock.state == "LOST", 20, "the lease ends")
    nodes.no_keys()
    assert [lock.acquire(wait_ms=0).status, lock.release().status] == ["LOST", "LOST"]
    assert [lock.acquire(wait_ms=0).status, lock.release().status] == ["LOST", "LOST"]
    nodes.no_keys()
    assert lock.acquire(wait_ms=20000) == "OK"
    assert lock.release() == "OK"

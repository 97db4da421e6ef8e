"""A held lock that its handle acquires again: nothing is sent before the outermost release, and a loss is final."""
import pytest

from helpers import held_everywhere, lapse, spin
from rl import ACQUIRE, BUSY, FREE, HELD, INVALID, LOST, OK, RELEASE
from testing import eventually


@pytest.fixture
def held(nodes, hold):
    """Acquired twice; all five nodes have granted it."""
    lock = hold(reentrant="true")
    held_everywhere(lock)
    assert lock.acquire(-1) == OK
    return lock


def test_only_the_outermost_release_deletes(nodes, held, make_client):
    other = make_client(nodes.urls).lock()
    token = held.token
    assert held.acquire(0) == OK and held.release() == OK and held.release() == OK
    assert held.state == HELD and held.token == token
    assert nodes.keys() == {b"r": [0, 1, 2, 3, 4]}
    assert other.acquire(0) == BUSY
    assert held.release() == OK and held.state == FREE
    nodes.no_keys()
    assert other.acquire(5000) == OK


def test_inner_calls_send_nothing_and_need_no_node(nodes, held):
    for node in nodes.nodes:
        node.stop()
    for _ in range(1000):
        assert held.acquire(0) == OK
    assert held.start(ACQUIRE, 0) == OK and held.status == OK and held.client.next() is not None
    for _ in range(1001):
        assert held.release() == OK
    for node in nodes.nodes:
        node.cont()
    assert held.state == HELD and held.extend() == OK


def test_a_lost_lock_is_not_taken_again_inside(nodes, held):
    for node in nodes.nodes:
        node.delete_keys()
    eventually(lambda: held.extend() == LOST)
    assert held.acquire(0) == LOST
    assert "release it as often as it was acquired first" in held.message
    assert nodes.keys() == {}
    assert held.start(RELEASE) == OK and held.status == LOST
    assert held.acquire(0) == LOST
    assert held.release() == LOST
    assert held.acquire(5000) == OK


def test_a_lease_that_ends_inside_is_lost_at_every_depth(nodes, hold):
    lock = hold(reentrant="true", ttl_ms=300, node_timeout_ms=50)
    assert lock.acquire(0) == OK
    lapse(lock)
    assert lock.acquire(0) == LOST and lock.release() == LOST and lock.release() == LOST
    assert lock.acquire(5000) == OK


def test_a_renewed_lock_is_renewed_inside(nodes, hold):
    lock = hold(reentrant="true", renew="true", ttl_ms=400, node_timeout_ms=100)
    assert lock.acquire(0) == OK
    assert lock.release() == OK
    before = lock.validity_ms
    spin(lock.client, lambda: lock.validity_ms < before - 50)
    spin(lock.client, lambda: lock.validity_ms >= before - 50)
    assert lock.state == HELD and lock.release() == OK


def test_it_is_handed_over_at_depth_one_only(nodes, held, make_client):
    assert held.detach() == INVALID
    assert "acquired 2 times" in held.message
    assert held.release() == OK
    token = held.token
    assert held.detach() == OK
    other = make_client(nodes.urls, reentrant="true").lock()
    assert other.adopt(token) == OK and other.acquire(0) == INVALID
    assert other.extend() == OK
    assert other.acquire(0) == OK and other.release() == OK
    assert other.state == HELD and other.release() == OK


def test_without_the_option_it_is_refused(hold):
    lock = hold()
    assert lock.acquire(0) == INVALID and lock.state == HELD

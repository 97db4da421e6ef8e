"""Renewal, its limits, and loss at the local deadline."""
import pytest

from driver import lapsing
from testing import eventually

RENEWED_MS = 4000  # half of it is left when a renewal is due: as long may the machine be busy with others


def beyond(nodes, ttl_ms, times=1.3):
    """Waits for so many TTLs, by a node's own clock."""
    seconds, micros = map(int, nodes[4].command("TIME"))

    def age_ms():
        now, now_micros = map(int, nodes[4].command("TIME"))
        return (now - seconds) * 1000 + (now_micros - micros) / 1000

    eventually(lambda: age_ms() > times * ttl_ms, 60)


@pytest.mark.needs("renew", "state")
def test_a_renewed_lock_outlives_its_ttl(make, nodes):
    lock = make(**lapsing(RENEWED_MS), renew=True).lock()
    token = lock.acquire(wait_ms=20000).token
    beyond(nodes, RENEWED_MS)
    assert lock.state == "HELD" and lock.validity_ms > 0
    assert sum(node.get("r") == token.encode() for node in nodes) >= 3
    assert lock.release() == "OK"
    nodes.no_keys()


@pytest.mark.needs("renew", "state")
def test_a_hold_ends_at_max_hold(make, nodes):
    lock = make(**lapsing(600), renew=True, max_hold_ms=900).lock()
    assert lock.acquire(wait_ms=20000) == "OK"
    eventually(lambda: lock.state == "LOST", 20, "the lock lapses")
    nodes.no_keys()


@pytest.mark.needs("renew", "validity")
def test_a_renewed_lock_is_lost_at_its_local_deadline(make, nodes):
    """Every node hangs: the holder gets no reply, yet knows of the loss."""
    lock = make(**lapsing(1200), renew=True).lock()
    assert lock.acquire(wait_ms=20000) == "OK"
    for node in nodes:
        node.stop()
    eventually(lambda: lock.state == "LOST", 20, "it is lost by the clock alone")
    assert lock.validity_ms == 0


@pytest.mark.needs("renew", "validity")
def test_an_extension_works_beside_the_renewals(make, nodes):
    lock = make(max_ttl_ms=60000, renew=True).lock()
    assert lock.acquire() == "OK"
    assert lock.extend(40000) == "OK"
    assert lock.validity_ms > 8000
    assert lock.release() == "OK"


@pytest.mark.needs("state")
def test_a_holder_that_was_stopped_learns_of_the_loss(make, nodes):
    party = make(**lapsing(600))
    lock = party.lock()
    assert lock.acquire(wait_ms=20000) == "OK"
    party.driver.process.send_signal(19)
    nodes.no_keys()
    other = make().lock()
    assert other.acquire(wait_ms=20000) == "OK"
    party.driver.process.send_signal(18)
    assert lock.state == "LOST"
    assert lock.release() == "LOST"
    assert sum(node.get("r") == other.token.encode() for node in nodes) >= 3


@pytest.mark.needs("body")
def test_a_body_is_renewed(make, nodes):
    lock = make(**lapsing(RENEWED_MS)).lock()
    assert lock.body() == "OK"
    beyond(nodes, RENEWED_MS)
    assert make().lock().acquire() == "BUSY"
    assert lock.leave() == "OK"
    nodes.no_keys()


@pytest.mark.needs("body", "renew")
def test_a_body_is_not_renewed_if_its_client_says_so(make, nodes):
    lock = make(**lapsing(1200), renew=False).lock()
    assert lock.body() == "OK"
    nodes.no_keys()
    assert lock.leave() == "LOST"


@pytest.mark.needs("body")
def test_a_body_whose_lock_is_lost_ends_with_lost(make, nodes):
    lock = make(**lapsing(1200)).lock()
    assert lock.body() == "OK"
    for node in nodes:
        node.flush()
    for node in nodes:
        node.set("r", "f" * 40)
    beyond(nodes, 1200, times=2)
    assert lock.leave() == "LOST"


@pytest.mark.needs("body")
def test_a_body_that_fails_releases_its_lock(make, nodes):
    lock = make().lock()
    assert lock.body() == "OK"
    left = lock.leave(fail=True)
    assert left == "OK" and left.raised == "BodyFailed"
    nodes.no_keys()

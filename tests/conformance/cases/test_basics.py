"""What everybody does with a lock."""
import re

import pytest

from driver import lapsing, now_ms
from steps import BEFORE_LAPSE_S, FOREIGN, acquire_everywhere, occupy, own_ttl_ms, values, waited
from testing import eventually

WAIT_MS = 2000


def test_a_free_lock_is_acquired_and_released(make, nodes):
    party = make()
    ttl_ms = own_ttl_ms(party)
    lock = party.lock("orders:42", ttl_ms=ttl_ms)
    took = lock.acquire()
    assert took == "OK", took
    assert re.fullmatch("[0-9a-f]{40}", took.token)
    assert 0 < took.validity_ms <= ttl_ms * 0.99 - 2, "1 % and 2 ms are for drifting clocks"
    assert values(nodes, "orders:42") == {took.token.encode()}
    assert all(0 < node.pttl("orders:42") <= ttl_ms for node in nodes if node.get("orders:42"))
    assert lock.release() == "OK"
    if "state" in lock.party.can:
        assert (lock.state, lock.validity_ms) == ("FREE", 0)
    nodes.no_keys(BEFORE_LAPSE_S)


def test_every_acquisition_has_a_token_of_its_own(make):
    lock = make().lock()
    tokens = set()
    for _ in range(3):
        tokens.add(lock.acquire().token)
        assert lock.release() == "OK"
    assert len(tokens) == 3


def test_a_held_lock_is_busy(make, nodes):
    party = make()
    holder, other = make().lock(ttl_ms=30000), party.lock(ttl_ms=own_ttl_ms(party))
    acquire_everywhere(holder, nodes)
    refused = other.acquire(wait_ms=0)
    assert refused == "BUSY", refused
    assert sum("busy" in words for words in refused.votes) >= 3
    eventually(lambda: values(nodes, "r") == {holder.token.encode()}, BEFORE_LAPSE_S, "the loser leaves nothing")


def test_a_wait_ends(make, nodes):
    occupy(nodes)
    assert waited(make().lock(), WAIT_MS) == "BUSY"
    assert [node.get("r") for node in nodes] == [FOREIGN.encode()] * 5


def test_a_wait_ends_by_its_option(make, nodes):
    occupy(nodes)
    assert waited(make(wait_ms=WAIT_MS).lock(), -2) == "BUSY"


def test_a_wait_ends_with_its_attempts(make, nodes):
    occupy(nodes)
    assert make(retry_count=2, retry_delay_ms=10, holder_info=False).lock().acquire(wait_ms=-1) == "BUSY"
    assert all(node.calls("set") <= 1 + 3 for node in nodes), "one is the other's, three are attempts"


def test_a_waiter_gets_the_lock_when_its_holder_lapses(make, nodes):
    occupy(nodes, ttl_ms=600)
    assert make().lock().acquire(wait_ms=20000) == "OK"


@pytest.mark.needs("extend")
def test_an_extension_prolongs_the_lease(make, nodes):
    lock = make(max_ttl_ms=60000).lock()
    assert lock.acquire() == "OK"
    assert lock.extend() == "OK", "by its own TTL"
    assert all(node.pttl("r") <= 8000 for node in nodes)
    extended = lock.extend(40000)
    assert extended == "OK" and 8000 < extended.validity_ms <= 40000 - 400 - 2
    eventually(lambda: sum(node.pttl("r") > 8000 for node in nodes) >= 3, 20, "a majority has the new TTL")


@pytest.mark.needs("extend", "validity")
def test_an_extension_never_shortens_a_lease(make, nodes):
    lock = make(max_ttl_ms=60000).lock(ttl_ms=40000)
    assert lock.acquire() == "OK"
    assert lock.extend(5000) == "OK"
    assert 8000 < lock.validity_ms <= 40000 - 400 - 2  # slower nodes may have added to it since it was acquired
    assert all(node.pttl("r") > 8000 for node in nodes if node.get("r"))


@pytest.mark.needs("validity", "state")
def test_validity_runs_down_to_a_loss(make):
    lock = make(**lapsing(600)).lock()
    took = lock.acquire(wait_ms=20000)
    assert took == "OK"
    assert lock.state == "HELD" or now_ms() >= took.t0_ms + took.validity_ms
    eventually(lambda: lock.validity_ms < took.validity_ms, 30, "it runs down")
    eventually(lambda: lock.state == "LOST", 30, "it is lost at the end")
    assert lock.validity_ms == 0


@pytest.mark.needs("state")
def test_a_second_release_has_nothing_to_release(make):
    lock = make().lock()
    assert lock.acquire() == "OK"
    assert lock.release() == "OK"
    assert lock.state == "FREE"
    assert lock.release() == "NOT_HELD"
    assert lock.acquire() == "OK"


@pytest.mark.needs("state")
def test_a_lock_that_is_held_is_not_taken_again(face, make, nodes):
    """Where each acquisition is a hold of its own, it is one more that finds the lock busy."""
    lock = make().lock()
    token = lock.acquire().token
    refused = lock.acquire(wait_ms=0)
    assert refused == ("INVALID" if face == "c" else "BUSY") and refused.message
    assert lock.state == "HELD"
    assert values(nodes, "r") == {token.encode()}


@pytest.mark.needs("status")
def test_status_asks_the_nodes(make, nodes):
    party = make()
    assert party.status("r").verdict == "free"
    lock = party.lock()
    assert lock.acquire() == "OK"
    assert party.status("r").verdict == "held"
    assert lock.release() == "OK"
    eventually(lambda: party.status("r").verdict == "free", BEFORE_LAPSE_S)


@pytest.mark.needs("status")
def test_status_of_a_minority_is_unknown(make, nodes):
    for node in nodes[:3]:
        node.kill()
    reply = make().status("r")
    assert reply == "NO_QUORUM" and reply.get("verdict", "unknown") == "unknown", reply


@pytest.mark.needs("describe")
def test_describe_names_the_nodes(make, nodes):
    party = make()
    assert party.lock().acquire() == "OK"
    described = party.describe()
    assert [node["node"] for node in described["nodes"]] == [node.name for node in nodes]


def test_locks_on_different_resources_are_independent(make):
    party = make()
    first, second = party.lock("one"), party.lock("two")
    assert first.acquire() == "OK"
    assert second.acquire() == "OK"
    assert first.release() == "OK"
    assert second.release() == "OK"


@pytest.mark.needs("adopt")
def test_a_token_that_is_none_is_refused(make):
    party = make()
    lock = party.adopt("r", "x" * 129)
    answer = lock.made if lock.made != "OK" else lock.extend()
    assert answer == "INVALID" and "129 bytes" in answer.message


@pytest.mark.needs("adopt")
def test_a_token_whose_lock_is_gone_is_lost(make):
    party = make()
    lock = party.adopt("r", FOREIGN)
    assert lock.extend() == "LOST"
    assert "state" not in party.can or lock.state != "HELD"
    assert party.adopt("r", FOREIGN).release() == "LOST"

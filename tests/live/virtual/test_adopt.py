"""Handing a lock over: detach here, adopt there."""
import pytest

import rl
from helpers import finish, lapse, occupy, spin
from rl import ACQUIRE, ADOPTED, BUSY, FREE, HELD, INVALID, LOST, NO_QUORUM, NOT_HELD, OK
from testing import eventually
from waiters import places


@pytest.fixture
def handed(nodes, make_client, hold):
    """(token of a detached lock, lock of another client that adopted it)"""
    first = hold()
    token = first.token
    assert first.detach() == OK
    assert first.state == FREE and first.validity_ms == 0
    assert first.release() == NOT_HELD
    first.free()
    second = make_client(nodes.urls).lock()
    assert second.adopt(token) == OK
    assert (second.state, second.validity_ms, second.token) == (ADOPTED, 0, token)
    return second


def test_extension_confirms_it(nodes, handed):
    assert handed.acquire() == INVALID and handed.adopt("a" * 40) == INVALID
    assert handed.extend(20000) == OK
    assert handed.state == HELD and handed.validity_ms > 10000
    assert handed.release() == OK
    nodes.no_keys()


def test_a_release_of_an_adopted_token_needs_answers(nodes, handed):
    for node in nodes:
        node.kill()
    assert handed.release() == NO_QUORUM


def test_a_closed_client_adopts_no_token(client):
    lock = client.lock()
    assert client.drain(5000) == OK
    assert lock.adopt("a" * 40) == INVALID
    assert (lock.state, lock.message) == (FREE, "the client has been closed")


def test_no_quorum_leaves_it_adopted(nodes, handed):
    handed.set("node_timeout_ms", 200)
    for node in nodes.nodes[:3]:
        node.kill()
    assert handed.extend() == NO_QUORUM
    assert handed.state == ADOPTED and handed.validity_ms == 0
    assert handed.detach() == OK


def test_detached_lock_is_never_deleted(nodes, hold):
    lock = hold()
    assert lock.detach() == OK
    lock.free()
    assert lock.client.drain(5000) == OK
    assert nodes.keys() == {b"r": [0, 1, 2, 3, 4]}


def test_a_detached_lock_leaves_the_queue_at_once(nodes, hold, make_client):
    """Its client does nothing else, and whoever adopts it may release it now."""
    held, client = hold(), make_client(nodes.urls)
    waiter = client.lock()
    assert waiter.start(ACQUIRE, 20000) == OK
    spin(client, lambda: places(nodes))
    assert held.release() == OK and finish(waiter) == OK
    assert places(nodes) and waiter.detach() == OK
    eventually(lambda: not places(nodes))


def test_what_was_lost_is_deleted_when_another_is_adopted(nodes, hold):
    lost = hold()
    for node in nodes.nodes[:3]:
        node.command("DEL", "r")
    assert lost.extend() == LOST and nodes.keys() == {b"r": [3, 4]}
    assert lost.adopt("a" * 40) == OK
    nodes.no_keys()


@pytest.mark.parametrize("ends", ["cancelled", "waited"])
def test_a_later_wait_deletes_nothing_of_it(nodes, make_client, ends):
    """Neither where a node had refused the token at first and got it by a renewal later."""
    occupy(nodes.nodes[3:], ttl_ms=60000)
    client = make_client(nodes.urls, renew="true", strict_release="true", **rl.lapsing(2000))
    other, lock = client.lock(), client.lock()
    assert lock.acquire(5000) == OK
    spin(client, lambda: lock.votes[3:] == [BUSY, BUSY])
    for node in nodes.nodes[3:]:
        node.command("DEL", "r")
    token = lock.token
    spin(client, lambda: all(node.get("r") == token.encode() for node in nodes), 20, "the others get it, too")
    assert lock.detach() == OK
    adopter = make_client(nodes.urls, ttl_ms=30000).lock()
    assert adopter.adopt(token) == OK and adopter.extend() == OK
    assert other.start(rl.ACQUIRE, 30000) == OK
    spin(client, lambda: any(node.command("ZCARD", "libredlock:q:r") for node in nodes), 20, "it is in the queue")
    assert lock.start(rl.ACQUIRE, 30000 if ends == "cancelled" else 300) == OK
    if ends == "cancelled":
        assert lock.cancel() == OK
    assert finish(lock) == (rl.CANCELLED if ends == "cancelled" else BUSY)
    probe = client.lock()  # behind whatever was sent
    assert probe.start(rl.INSPECT) == OK and finish(probe) == BUSY
    assert nodes.keys()[b"r"] == [0, 1, 2, 3, 4] and all(node.get("r") == token.encode() for node in nodes)


def test_a_lost_lock_may_adopt_another_token(nodes, make_client):
    client = make_client(nodes.urls, **rl.lapsing(400))
    lock = client.lock()
    assert lock.acquire(5000) == OK
    lapse(lock)
    assert lock.state == rl.State.LOST and lock.detach() == LOST
    assert lock.adopt("a" * 40) == OK and lock.state == ADOPTED
    spin(client, lambda: not nodes.keys())


@pytest.mark.parametrize("token", [b"bGlicmVkbG9jaw+/0123456=", b"0123456789abcdef" * 2, b"aVeryShortTokenOf22let",
                                   b"x", b"\x00raw\xff\r\nbytes\x00of20b", b"-" * 128])
def test_tokens_of_other_libraries_are_adopted(nodes, client, token):
    for node in nodes:
        node.set("r", token, px=20000)
    lock = client.lock(renew=True)
    assert lock.adopt_bytes(token) == OK and lock.token.encode("utf-8", "surrogateescape") == token
    assert lock.extend(30000) == OK, lock.message
    assert lock.settle() == OK and min(node.pttl("r") for node in nodes) > 20000
    assert lock.release() == OK
    nodes.no_keys()


@pytest.mark.parametrize("operation", ["extend", "release"])
def test_anothers_token_of_the_same_size_is_left_alone(nodes, client, operation):
    occupy(nodes, token="b" * 32)
    lock = client.lock()
    assert lock.adopt("a" * 32) == OK
    assert getattr(lock, operation)() == LOST
    assert {node.get("r") for node in nodes} == {b"b" * 32}


def test_an_adopted_token_of_another_library_is_renewed(nodes, make_client):
    for node in nodes:
        node.set("r", "short", px=20000)
    client = make_client(nodes.urls, **dict(rl.lapsing(2000), renew=True))
    lock = client.lock()
    assert lock.adopt("short") == OK and lock.extend(2000) == OK
    for node in nodes:
        node.command("PEXPIRE", "r", 2000)
    eventually(lambda: client.describe()["renewals"] >= 2, 30, "two renewals")
    assert lock.state == HELD and lock.release() == OK
    nodes.no_keys()


def test_an_unconfirmed_token_is_left_alone_by_free(nodes, make_client, hold):
    """Whoever works under it may still need it."""
    first = hold()
    supervisor = make_client(nodes.urls, outage_wait_ms=300)
    second = supervisor.lock()
    assert second.adopt(first.token) == OK
    for node in nodes.nodes[:3]:
        node.stop()
    assert second.extend() == NO_QUORUM and second.state == ADOPTED
    second.free()
    for node in nodes.nodes[:3]:
        node.cont()
    assert supervisor.drain(5000) == OK
    assert nodes.keys() == {b"r": [0, 1, 2, 3, 4]}
    assert first.release() == OK

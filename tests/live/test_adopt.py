"""Handing a lock over: detach here, adopt there."""
import rl
from helpers import FOREIGN, held_everywhere, lapse, occupy, run_python, spin
from rl import ADOPTED, BUSY, FREE, HELD, INVALID, LOST, NO_QUORUM, NOT_HELD, OK
import pytest


@pytest.fixture
def handed(nodes, client, make_client):
    """(token of a detached lock, lock of another client that adopted it)"""
    first = client.lock()
    assert first.acquire() == OK
    held_everywhere(first, nodes)
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


def test_release_of_an_adopted_token(nodes, handed):
    assert handed.release() == OK
    nodes.no_keys()
    assert handed.state == FREE


def test_adopted_but_gone(nodes, handed):
    for node in nodes:
        node.flush()
    assert handed.extend() == LOST
    assert handed.state != HELD


def test_release_of_an_adopted_token_that_is_gone(nodes, handed):
    for node in nodes:
        node.flush()
    assert handed.release() == LOST


def test_release_of_an_adopted_token_without_answers(nodes, handed):
    for node in nodes:
        node.kill()
    assert handed.release() == NO_QUORUM


def test_adopting_anothers_lock_deletes_nothing(nodes, client):
    occupy(nodes)
    lock = client.lock()
    assert lock.adopt("a" * 40) == OK
    assert lock.release() == LOST
    assert {node.get("r") for node in nodes} == {FOREIGN.encode()}


def test_no_quorum_leaves_it_adopted(nodes, make_client, handed):
    handed.set("node_timeout_ms", 200)
    for node in nodes.nodes[:3]:
        node.kill()
    assert handed.extend() == NO_QUORUM
    assert handed.state == ADOPTED and handed.validity_ms == 0
    assert handed.detach() == OK


def test_detached_lock_is_never_deleted(nodes, client):
    lock = client.lock()
    assert lock.acquire() == OK
    held_everywhere(lock, nodes)
    assert lock.detach() == OK
    lock.free()
    assert client.drain(5000) == OK
    assert nodes.keys() == {b"r": [0, 1, 2, 3, 4]}


def test_handed_to_another_process(nodes, client):
    lock = client.lock()
    assert lock.acquire() == OK
    token = lock.token
    assert lock.detach() == OK
    out = run_python("""
client = rl.Client(sys.argv[1], **rl.CALM)
lock = client.lock(); assert lock.adopt(sys.argv[2]) == OK
assert lock.extend(20000) == OK, lock.message
print(lock.state.name, lock.token); lock.detach(); client.free()
""", nodes.nodes_env, token)
    assert out.split() == ["HELD", token]
    assert client.lock().acquire() == BUSY
    assert lock.adopt(token) == OK and lock.extend() == OK
    assert lock.release() == OK
    nodes.no_keys()


def test_adopt_after_a_loss(nodes, make_client):
    client = make_client(nodes.urls, **rl.short(400))
    lock = client.lock()
    assert lock.acquire(5000) == OK
    lapse(lock)
    assert lock.state == rl.State.LOST and lock.detach() == LOST
    assert lock.adopt("a" * 40) == OK and lock.state == ADOPTED
    spin(client, lambda: not nodes.keys())

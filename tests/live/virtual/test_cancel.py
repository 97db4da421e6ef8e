"""Operations that are left before their end: cancel, free, drain."""
import itertools
import select

import pytest

import rl
from helpers import Call, finish, held_everywhere, occupy, spin, spin_until_deleted
from rl import CANCELLED, HELD, INVALID, OK, PENDING
from testing import eventually


def test_cancel_before_anything_was_sent_sends_nothing(nodes, client):
    lock = client.lock()
    assert lock.cancel() == OK  # nothing in flight
    assert lock.acquire() == OK and lock.release() == OK
    calls = [1] * 5
    eventually(lambda: [node.calls("set") for node in nodes] == calls)
    nodes.no_keys()
    assert lock.start(rl.ACQUIRE) == OK and lock.cancel() == OK
    assert lock.status == CANCELLED
    for _ in range(10):
        client.process()
    assert [node.calls("set") for node in nodes] == calls
    assert lock.start(rl.ACQUIRE) == OK and finish(lock) == OK


def test_cancel_at_every_step_leaves_no_key(nodes, client):
    """Cancelled after 0, 1, 2, ... steps of the client: never a key, and a lock that was granted stays held."""
    granted = 0
    for steps in itertools.takewhile(lambda steps: steps < 12 or not granted, range(1000)):
        for _ in range(5):
            lock = client.lock()
            assert lock.start(rl.ACQUIRE, 5000) == OK
            for _ in range(steps):
                select.select([client.fd], [], [], 0.01)
                client.process()
            lock.cancel()
            if lock.state == HELD:
                granted += 1
                assert lock.status == OK and lock.release() == OK
            else:
                assert lock.status == CANCELLED and lock.state == rl.FREE
                assert lock.start(rl.ACQUIRE, -1) == OK and lock.cancel() == OK  # the handle is free at once
            lock.free()
            spin_until_deleted(client, nodes)
    assert granted > 0


def test_cancel_of_a_release_goes_on(nodes, client):
    lock = client.lock()
    assert lock.acquire() == OK
    assert lock.start(rl.RELEASE) == OK and lock.cancel() == OK
    assert lock.state == rl.FREE and lock.status == CANCELLED
    spin_until_deleted(client, nodes)


def test_cancel_of_an_extension_keeps_the_lock(nodes, client):
    lock = client.lock()
    assert lock.acquire() == OK
    assert lock.start(rl.EXTEND) == OK and lock.cancel() == OK
    assert lock.status == CANCELLED and lock.state == HELD
    assert lock.extend() == OK and lock.release() == OK
    spin_until_deleted(client, nodes)


@pytest.mark.parametrize("operation", [rl.ACQUIRE, rl.EXTEND, rl.RELEASE])
def test_free_of_a_lock_in_mid_operation_leaves_no_key(nodes, make_client, proxies, operation):
    client = make_client([p.url for p in proxies], ttl_ms=30000)
    lock = client.lock()
    assert lock.acquire() == OK
    if operation == rl.ACQUIRE:
        assert lock.release() == OK
        nodes.no_keys()
    else:
        held_everywhere(lock)
    for p in proxies:
        p.hold("down")
    assert lock.start(operation) == OK
    spin(client, lambda: all(p.held_bytes() for p in proxies))
    lock.free()
    for p in proxies:
        p.go()
    spin_until_deleted(client, nodes)
    assert client.next() in (None, 0)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_free_of_a_client_in_mid_operation_leaves_no_key(nodes, steps):
    client = rl.Client(nodes.urls, **dict(rl.GENEROUS_TIMEOUTS, ttl_ms=30000, exit_drain_ms=5000))
    assert client.lock("warm").acquire() == OK
    locks = [client.lock("m%d" % i) for i in range(50)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, -1) == OK
    for _ in range(steps):
        client.process()
    client.free_alone()
    assert all(lock.state != HELD and lock.acquire() == INVALID for lock in locks)
    nodes.no_keys()
    client.free()


def test_free_in_mid_operation_waits_for_no_unreachable_node(nodes, proxies):
    client = rl.Client([p.url for p in proxies], ttl_ms=3000, node_timeout_ms=750)
    lock = client.lock()
    assert lock.acquire(5000) == OK and lock.release() == OK
    for p in proxies:
        p.hold("up")
    assert lock.start(rl.ACQUIRE, -1) == OK
    client.process()
    client.free()  # within exit_drain_ms
    for p in proxies:
        p.go()
    nodes.no_keys()  # at worst after the TTL


def test_freeing_a_client_wakes_its_threads(nodes, make_client):
    client = make_client(nodes.urls)
    occupy(nodes)
    locks = [client.lock() for _ in range(4)]
    waiting = [Call(lock.acquire, -1) for lock in locks]
    eventually(lambda: all(lock.status == PENDING for lock in locks))
    client.free_alone()
    assert [call.join() for call in waiting] == [CANCELLED] * 4
    assert nodes.keys() == {b"r": [0, 1, 2, 3, 4]}


def test_drain_releases_what_is_held_and_cancels_waits(nodes, client):
    kept, held, waiting = client.lock("kept"), client.lock("held"), client.lock("occupied")
    occupy(nodes, "occupied")
    assert kept.acquire() == OK and held.acquire() == OK
    token = kept.token
    assert kept.detach() == OK
    assert waiting.start(rl.ACQUIRE, -1) == OK
    assert client.drain(5000) == OK
    assert waiting.status == CANCELLED
    assert (held.state, held.loss, held.validity_ms) == (rl.State.LOST, rl.Loss.CLOSED, 0)
    assert nodes.keys() == {b"kept": [0, 1, 2, 3, 4], b"occupied": [0, 1, 2, 3, 4]}
    assert nodes[0].get("kept") == token.encode()
    assert [held.release(), held.release()] == [rl.LOST] * 2 and "the client has been closed" in held.message
    assert (held.state, held.loss) == (rl.State.LOST, rl.Loss.CLOSED)
    new = client.lock()
    assert new.message == "the client has been closed"
    assert held.acquire() == INVALID and new.acquire() == INVALID
    assert client.drain(100) == OK and client.process() == INVALID


def test_drain_reads_unread_replies_to_the_end(nodes, client):
    """Closing a socket with unread replies resets it, and deletes that are queued at a slow server are lost."""
    locks = [client.lock("m%d" % i) for i in range(1000)]
    assert locks[0].acquire() == OK
    for lock in locks[1:]:
        assert lock.start(rl.ACQUIRE, -1) == OK
    nodes[0].stop()
    client.process()

    def resume():
        eventually(lambda: not client.describe()["open"], 20, "the drain has begun")
        nodes[0].cont()

    resuming = Call(resume)
    assert client.drain(20000) == OK
    resuming.join()
    assert nodes.keys() == {}


def test_drain_ends_with_a_node_that_was_being_set_up(nodes, proxy, make_client):
    """The delete went out behind the set-up: when that is answered there is nothing more to send, nor to wait for."""
    slow = proxy(nodes[0])
    client = make_client([slow.url] + nodes.urls[1:])
    lock = client.lock()
    assert lock.acquire() == OK and lock.release() == OK
    spin(client, client.settled)
    slow.hold("down")
    slow.drop()
    assert lock.acquire() == OK  # its SET joins the set-up of the new connection
    spin(client, lambda: nodes[0].get("r"))
    assert lock.release() == OK
    draining = Call(client.drain, 600000)
    eventually(lambda: not any(node.clients() for node in nodes[1:]), 30, "the others are done")
    slow.go()
    assert draining.join() == OK
    nodes.no_keys()


def test_drain_with_a_hung_node_times_out_and_deletes(nodes, hold):
    lock = hold()
    nodes[0].stop()
    assert lock.client.drain(200) == rl.TIMED_OUT
    nodes.no_keys()  # on those that run
    nodes[0].cont()
    nodes.no_keys()  # the delete had been written before the end

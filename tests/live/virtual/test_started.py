"""The started shape: start, descriptor, process, next; wait; and what ends when nobody looks."""

import rl
from helpers import FOREIGN, Call, finish, occupy, spin
from rl import BUSY, CANCELLED, HELD, IN_FLIGHT, INVALID, NO_QUORUM, NOT_HELD, OK, PENDING
from testing import eventually


def test_a_start_that_cannot_be_is_refused_at_once(client):
    lock = client.lock()
    assert lock.start(rl.EXTEND) == NOT_HELD
    assert lock.start(rl.ACQUIRE) == OK
    for operation in rl.Operation:
        assert lock.start(operation) == IN_FLIGHT
    assert lock.acquire() == lock.extend() == lock.release() == lock.adopt("a" * 40) == lock.detach() == IN_FLIGHT
    assert lock.set("ttl_ms", 9000) == IN_FLIGHT
    assert finish(lock) == OK
    assert lock.start(rl.ACQUIRE) == INVALID and lock.state == HELD


def test_wait_drives_the_operation(client):
    lock = client.lock()
    assert lock.wait(10) == NOT_HELD
    assert lock.start(rl.ACQUIRE) == OK
    assert lock.wait() == OK and lock.state == HELD
    assert lock.wait(0) == OK


def test_wait_returns_at_its_limit(nodes, client):
    occupy(nodes)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, -1) == OK
    assert lock.wait(0) == PENDING and lock.wait(50) == PENDING
    assert lock.cancel() == OK and lock.wait() == CANCELLED


def test_inspect_shows_token_and_ttl_on_every_node(nodes, client):
    lock = client.lock()
    assert lock.start(rl.INSPECT) == OK and finish(lock) == OK  # free
    assert lock.votes == [NOT_HELD] * 5 and [lock.answer(i) for i in range(5)] == ["free"] * 5
    assert "free" in lock.message and "5 of 5" in lock.message
    occupy(nodes.nodes[:4], ttl_ms=20000)
    nodes[4].command("SET", "r", "for ever")
    assert lock.start(rl.INSPECT) == OK and finish(lock) == BUSY
    for i in range(4):
        assert lock.vote(i) == BUSY and lock.answer(i, rl.TOKEN) == FOREIGN
        assert 0 < int(lock.answer(i, rl.TTL_MS)) <= 20000
    assert (lock.answer(4, rl.TOKEN), lock.answer(4, rl.TTL_MS)) == ("for ever", "none")
    assert "without a TTL" in lock.answer(4)
    assert lock.state == rl.FREE
    assert nodes[0].get("r") == FOREIGN.encode()  # untouched
    for node in nodes.nodes[:3]:
        node.command("DEL", "r")
    assert lock.start(rl.INSPECT) == OK and finish(lock) in (OK, BUSY)
    assert [lock.answer(i, rl.TOKEN) for i in range(3)] == [""] * 3  # not what was said before


def test_inspect_needs_answers_of_a_majority(nodes, make_client, fake_server):
    fake = fake_server({"GETRANGE": b"-NOPERM this user has no permissions to run the 'getrange' command\r\n"})
    lock = make_client([fake.url, *nodes.urls[1:4], "redis://127.0.0.1:1"]).lock()
    assert lock.start(rl.INSPECT) == OK and finish(lock) == OK
    assert "NOPERM" in lock.answer(0) and lock.vote(4) == rl.UNREACHABLE
    for node in nodes.nodes[1:3]:
        node.kill()
    eventually(lock.client.settled, 30)
    assert lock.start(rl.INSPECT) == OK and finish(lock) == NO_QUORUM


def test_inspect_leaves_a_held_lock_held(nodes, hold):
    lock = hold()
    nodes[0].set("r", b"\x00\n\xff" + b"x" * 100)
    assert lock.start(rl.INSPECT) == OK
    finish(lock)
    assert lock.state == HELD and lock.answer(1, rl.TOKEN) == lock.token
    assert lock.answer(0, rl.TOKEN).startswith("\\x00\\x0a\\xff") and "x" * 65 not in lock.answer(0, rl.TOKEN)
    assert lock.extend() == OK


# ---- the last look, and descriptors that stay readable


def test_win_of_an_expired_lock_is_not_reported(nodes, make_client):
    """A loop that is busy for longer than the lease."""
    client = make_client(nodes.urls, **rl.lapsing(400))

    def lapsed():
        lock = client.lock()
        assert lock.start(rl.ACQUIRE) == OK
        spin(client, lambda: lock.status != PENDING or lock.state == HELD)
        if lock.state != HELD:
            return None
        eventually(lambda: lock.state != HELD, 20)
        return lock

    lock = eventually(lapsed, 30)
    assert lock.state == rl.State.LOST
    assert lock.status == rl.LOST and lock.wait() == rl.LOST
    assert "the lease expired" in lock.message


def test_extension_of_an_expired_lock_is_not_reported(nodes, make_client):
    client = make_client(nodes.urls, **rl.lapsing(1000))
    lock = client.lock()
    assert lock.acquire(5000) == OK
    assert lock.start(rl.EXTEND) == OK
    spin(client, lambda: lock.votes.count(OK) >= 3)
    eventually(lambda: lock.state != HELD, 20)
    assert lock.status == rl.LOST


def test_a_wait_after_the_loss_acquires_nothing(nodes, make_client):
    """A caller that saw the win in the state and waits later gets the loss: only an acquire acquires."""
    client = make_client(nodes.urls, **rl.lapsing(400))
    lock = client.lock()

    def won():
        assert lock.start(rl.ACQUIRE) == OK
        spin(client, lambda: lock.state == HELD or lock.status != PENDING)
        return lock.state == HELD

    eventually(won, 30)
    token = lock.token
    eventually(lambda: lock.state == rl.State.LOST, 20)
    assert lock.wait() == rl.LOST
    assert lock.state == rl.State.LOST and lock.token == token
    assert not nodes.keys() or all(node.get("r") in (None, token.encode()) for node in nodes)


def test_settle_reaches_the_nodes_that_are_slow_to_connect(nodes, make_client, proxies, hold):
    """An extension that a majority has confirmed goes on to the others, and detach can wait for that."""
    first = hold(ttl_ms=20000)
    assert first.detach() == OK
    for p in proxies[3:]:
        p.delay(100, 100)
    client = make_client([p.url for p in proxies], settle=False, ttl_ms=30000)
    lock = client.lock()
    assert lock.adopt(first.token) == OK
    assert lock.extend() == OK
    assert lock.settle() == OK
    assert min(node.pttl("r") for node in nodes) > 20000
    assert lock.detach() == OK


def test_settle_ends_when_the_last_node_has_deleted(nodes, make_client, proxies, hold):
    """It was not connected when the release ended; its key is deleted as soon as it is, and nothing more is to come."""
    first = hold(ttl_ms=30000)
    assert first.detach() == OK
    proxies[0].hold("down")
    lock = make_client([p.url for p in proxies], settle=False, ttl_ms=30000).lock()
    assert lock.adopt(first.token) == OK
    assert lock.release() == OK
    proxies[0].go()
    assert lock.settle(20000) == OK
    assert not nodes.keys()


def test_settle_has_a_limit(nodes, client):
    lock = client.lock()
    nodes[0].stop()
    assert lock.acquire(5000) == OK
    assert lock.settle(50) == PENDING
    nodes[0].cont()
    assert lock.settle() == OK
    assert lock.votes == [OK] * 5
    assert lock.release() == OK


def test_settle_works_beside_a_thread_that_drives(nodes, client):
    occupy(nodes, "busy")
    other = client.lock("busy")
    waiting = Call(other.acquire, -1)
    lock = client.lock()
    eventually(lambda: other.votes.count(BUSY) >= 3)
    nodes[0].stop()
    assert lock.acquire(5000) == OK
    settling = Call(lock.settle, -1)
    eventually(lambda: lock.set("strict_release", "false") == IN_FLIGHT, what="it waits")
    nodes[0].cont()
    assert settling.join() == OK and lock.votes == [OK] * 5
    other.cancel()
    assert waiting.join() == CANCELLED and lock.release() == OK

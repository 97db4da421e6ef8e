"""Waiting for a busy lock: hand-over, deadline, counts, the TTL as a hint, and that retries leave nothing."""
import threading

import pytest
import rl
from helpers import FOREIGN, Call, finish, occupy, spin
from rl import BUSY, CANCELLED, HELD, NO_QUORUM, OK, PENDING
from testing import eventually


def test_waiter_gets_the_lock_after_the_release(client):
    holder, waiter = client.lock(), client.lock()
    assert holder.acquire() == OK
    waiting = Call(waiter.acquire, 20000)
    eventually(lambda: waiter.status == PENDING)
    assert holder.release() == OK
    assert waiting.join() == OK and waiter.state == HELD


def test_waiters_take_over_one_after_another(nodes, make_client):
    clients = [make_client(nodes.urls) for _ in range(3)]
    inside, count, failures = threading.Lock(), [0], []

    def work(client):
        lock = client.lock()
        for _ in range(10):
            if lock.acquire(-1) != OK:
                return failures.append(lock.message)
            if not inside.acquire(blocking=False):
                return failures.append("two holders")
            count[0] += 1
            inside.release()
            lock.release()
        return None

    for call in [Call(work, client) for client in clients for _ in range(3)]:
        call.join(120)
    assert failures == [] and count[0] == 90
    nodes.no_keys()


def test_no_wait_is_one_attempt(nodes, client):
    occupy(nodes)
    assert client.lock().acquire(0) == BUSY
    eventually(lambda: [node.calls("set") for node in nodes] == [2] * 5)  # ours and the occupant's


def test_wait_of_the_option(nodes, make_client):
    occupy(nodes)
    lock = make_client(nodes.urls, wait_ms=0, retry_delay_ms=20).lock()
    assert lock.acquire(-2) == BUSY
    eventually(lambda: [node.calls("set") for node in nodes] == [2] * 5)
    assert lock.set("wait_ms", 1000) == OK
    assert lock.acquire(-2) == BUSY
    assert max(node.calls("set") for node in nodes) > 3


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_retry_count(nodes, make_client, retries):
    occupy(nodes)
    lock = make_client(nodes.urls, retry_count=retries, retry_delay_ms=5).lock()
    assert lock.acquire(20000) == BUSY
    # a retry may ask the home node alone, so the busiest node has seen them all
    eventually(lambda: max(node.calls("set") for node in nodes) == 1 + 1 + retries)


def test_deadline_while_busy(nodes, client):
    occupy(nodes)
    lock = client.lock()
    assert lock.acquire(200) == BUSY
    assert nodes.keys() == {b"r": [0, 1, 2, 3, 4]}
    assert {node.get("r") for node in nodes} == {FOREIGN.encode()}


def test_deadline_without_a_quorum(nodes, make_client):
    lock = make_client(nodes.urls, node_timeout_ms=500).lock()
    for node in nodes.nodes[:3]:
        node.kill()
    assert lock.acquire(1000) == NO_QUORUM


def test_waiter_survives_an_outage(nodes, make_client):
    lock = make_client(nodes.urls, retry_delay_ms=20).lock()
    for node in nodes.nodes[:3]:
        node.kill()
    waiting = Call(lock.acquire, 30000)
    eventually(lambda: lock.vote(0) == rl.UNREACHABLE or not waiting.is_alive(), 30)
    for node in nodes.nodes[:3]:
        node.start()
    assert waiting.join() == OK


def test_sleeper_takes_over_when_the_holders_key_expires(nodes, make_client):
    """The holder was killed. Whichever node a resource's retries ask first: also one whose key lives for long."""
    client = make_client(nodes.urls, retry_delay_ms=3600000, retry_jitter=0)
    locks = [client.lock("m%d" % i) for i in range(8)]
    for i, ttl_ms in enumerate((700, 800, 900, 30000, 30000)):
        for j in range(8):
            occupy([nodes[i]], "m%d" % j, ttl_ms=ttl_ms)
    for lock in locks:
        assert lock.start(rl.ACQUIRE, 10000) == OK
    assert [finish(lock, 30) for lock in locks] == [OK] * 8, [lock.message for lock in locks]
    assert max(node.calls("set") for node in nodes) < 400
    assert nodes[3].get("m0") == nodes[4].get("m7") == FOREIGN.encode()


def test_holder_killed(nodes, make_client):
    from helpers import python
    code = """
client = rl.Client(sys.argv[1], ttl_ms=4000, node_timeout_ms=1000)
lock = client.lock(); assert lock.acquire(5000) == OK
print("held", flush=True); sys.stdin.read()
"""
    import subprocess
    holder = python(code, nodes.nodes_env, stdin=subprocess.PIPE)
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.wait()
    lock = make_client(nodes.urls).lock()
    assert lock.acquire(0) == BUSY
    assert lock.acquire(20000) == OK
    assert lock.release() == OK
    nodes.no_keys()


def test_split_votes_do_not_live_lock(nodes, make_client):
    """Keys of two dead contenders on two nodes each: the hint of a free node must not make the sleeper spin."""
    occupy(nodes.nodes[:2], token="a" * 40, ttl_ms=800)
    occupy(nodes.nodes[2:4], token="b" * 40, ttl_ms=800)
    lock = make_client(nodes.urls).lock()
    assert lock.acquire(20000) == OK
    assert max(node.calls("set") for node in nodes) < 400


def test_retries_leave_no_keys(nodes, client):
    """Three busy nodes and two free ones: every attempt wins votes that it has to give back."""
    occupy(nodes.nodes[:3])
    lock = client.lock()
    assert lock.acquire(500) == BUSY
    spin(client, lambda: nodes.keys() == {b"r": [0, 1, 2]})
    assert {node.get("r") for node in nodes.nodes[:3]} == {FOREIGN.encode()}


def test_waiter_is_cancelled_from_another_thread(nodes, client):
    occupy(nodes)
    lock = client.lock()
    waiting = Call(lock.acquire, -1)
    eventually(lambda: lock.status == PENDING)
    assert lock.cancel() == OK
    assert waiting.join() == CANCELLED and lock.state == rl.FREE
    spin(client, lambda: nodes.keys() == {b"r": [0, 1, 2, 3, 4]})
    for node in nodes:
        node.flush()
    assert lock.acquire(5000) == OK


def test_home_node_down_while_waiting(nodes, make_client):
    """Whichever node a retry asks first: when it is down, the next one is asked."""
    lock = make_client(nodes.urls, retry_delay_ms=20, node_timeout_ms=200).lock()
    occupy(nodes, ttl_ms=3000)
    waiting = Call(lock.acquire, 30000)
    busiest = eventually(lambda: next((n for n in nodes if n.calls("set") >= 4), None))
    busiest.stop()
    assert waiting.join() == OK
    busiest.cont()

"""Too few nodes that answer in time: what is outlasted, and for how long a call puts up with it."""
import time

import pytest

import rl
from helpers import Call, now_ms, occupy, spin
from rl import BUSY, HELD, NO_QUORUM, OK, REFUSED_CONFIG
from testing import HOLD, eventually

# What ordinary programs have: nothing but the nodes.
PLAIN = {"node_timeout_ms": "auto", "ttl_ms": 10000}


def in_stall(nodes, ms, function, *args):
    """The result of a blocking call at whose beginning the nodes hang; after that time they go on."""
    for node in nodes:
        node.stop()
    call, end_ms = Call(function, *args), now_ms() + ms
    eventually(lambda: now_ms() >= end_ms or not call.is_alive())
    for node in nodes:
        node.cont()
    return call.join()


def tries(call, wanted, times=10):
    """The machine itself may stall for longer than a call puts up with: one of a few tries has to succeed."""
    results = []
    while len(results) < times and wanted not in results:
        results.append(call())
    return results[-1] if results else None


def test_a_client_whose_idle_connections_end_is_served_at_once(nodes, client):
    """However often: servers close what is idle, each for the same reason, and an event loop sees it each time."""
    lock = client.lock()
    assert lock.acquire() == OK and lock.release() == OK
    for closed in range(1, 8):
        until_ms = now_ms() + 1500
        spin(client, lambda until_ms=until_ms: now_ms() > until_ms and client.settled())
        for node in nodes:
            node.kill_clients()
        spin(client, lambda closed=closed: all(node["drops"] >= closed for node in client.describe()["nodes"]))
    assert lock.acquire(0) == OK, lock.message


@pytest.mark.parametrize("rtt_ms", [60, 120])
def test_locks_work_over_slow_networks(nodes, make_client, proxy, rtt_ms):
    proxies = [proxy(node) for node in nodes.nodes[:3]]
    for p in proxies:
        p.delay(rtt_ms / 2, rtt_ms / 2)
    lock = make_client([p.url for p in proxies], **PLAIN).lock()

    def cycle():
        status = lock.acquire(0)
        if status == OK:
            assert lock.extend() == OK, lock.message
            assert lock.release() == OK
        return status

    assert tries(cycle, OK) == OK, lock.message


@pytest.mark.parametrize("ms", [100, 300])
def test_a_stall_of_all_nodes_fails_no_attempt(nodes, make_client, ms):
    lock = make_client(nodes.urls, **PLAIN).lock()

    def attempt():
        status = in_stall(nodes, ms, lock.acquire, 0)
        if status == OK:
            assert lock.release() == OK
        return status

    assert tries(attempt, OK) == OK, lock.message


def test_a_stall_does_not_end_an_extension(nodes, make_client):
    """Nor does one that is longer than the time-out of an attempt."""
    lock = make_client(nodes.urls, **PLAIN).lock()
    assert lock.acquire() == OK
    assert in_stall(nodes, 1500, lock.extend, 30000) == OK, lock.message
    assert lock.validity_ms > 15000
    assert lock.release() == OK


def test_an_extension_asks_again_where_it_was_refused(nodes, hold):
    """Nodes that were down, or that answered with an error that passes, come back while the lease still runs."""
    lock = hold(ttl_ms=30000, outage_wait_ms=60000, retry_delay_ms=50)
    eventually(lambda: all(node.pttl("r") < 30000 for node in nodes))  # else there is nothing to write
    for node in nodes.nodes[:3]:
        node.config_set("min-replicas-to-write", 1)
    extending = Call(lock.extend, 30000)
    eventually(lambda: lock.votes.count(NO_QUORUM) == 3, 30, "three nodes refuse to write")
    assert extending.is_alive()
    for node in nodes.nodes[:3]:
        node.config_set("min-replicas-to-write", 0)
    assert extending.join() == OK, lock.message
    assert lock.release() == OK


def test_a_refusal_stands_that_is_asked_again_too_late(make_client, fake_server):
    """The extension ends while its last question is on its way."""
    error = b"-NOPERM no\r\n"
    fakes = [fake_server({"EVALSHA": error, "EVAL": error}) for _ in range(3)]
    lock = make_client([fake.url for fake in fakes], outage_wait_ms=300, retry_delay_ms=50).lock()
    assert lock.acquire(5000) == OK, lock.message
    extending = Call(lock.extend)
    eventually(lambda: lock.said("NOPERM") == 3, 30, "they refuse")
    for fake in fakes:
        fake.replies.update({"EVALSHA": (HOLD, error), "EVAL": (HOLD, error)})
    assert extending.join() == REFUSED_CONFIG and lock.said("NOPERM") == 3, lock.message


def test_an_extension_ends_before_its_lease(nodes, make_client):
    """While it is of use still."""
    lock = make_client(nodes.urls, ttl_ms=8000, node_timeout_ms=100, min_validity_ms=5000, outage_wait_ms=-1).lock()
    assert lock.acquire(5000) == OK
    for node in nodes.nodes[:3]:
        node.kill()
    assert lock.extend() == NO_QUORUM
    assert lock.state == HELD and lock.validity_ms <= 5000


@pytest.mark.parametrize("wait_ms", [-1, 600000])
def test_a_wait_puts_up_with_an_outage_for_a_time_only(nodes, make_client, wait_ms):
    lock = make_client(nodes.urls, outage_wait_ms=400, retry_delay_ms=20).lock()
    for node in nodes.nodes[:3]:
        node.kill()
    begun = now_ms()
    assert Call(lock.acquire, wait_ms).join() == NO_QUORUM
    assert now_ms() - begun >= 400
    assert lock.said("connection refused") == 3


def test_nodes_that_are_never_reached_end_a_wait():
    """From the first call on, as with a wrong port."""
    with rl.opened("redis://127.0.0.1:1", outage_wait_ms=300) as client:
        assert Call(client.lock().acquire, -1).join() == NO_QUORUM


def test_an_outage_in_the_middle_of_a_wait_ends_it(nodes, make_client):
    """The time counts from when a majority answered last."""
    lock = make_client(nodes.urls, outage_wait_ms=300, retry_delay_ms=20, node_timeout_ms=500).lock()
    occupy(nodes)
    waiting = Call(lock.acquire, -1)
    eventually(lambda: lock.votes.count(BUSY) >= 3, what="others hold it")
    for node in nodes.nodes[:3]:
        node.kill()
    assert waiting.join() == NO_QUORUM


def test_all_that_wait_are_told_why_an_outage_ends_it(nodes, make_client):
    """Only the first of a client has asked the nodes."""
    client = make_client(nodes.urls, outage_wait_ms=300, retry_delay_ms=20, node_timeout_ms=500)
    occupy(nodes)
    locks = [client.lock() for _ in range(4)]
    calls = [Call(lock.acquire, -1) for lock in locks]
    eventually(lambda: max(lock.votes.count(BUSY) for lock in locks) >= 3, what="others hold it")
    for node in nodes.nodes[:3]:
        node.kill()
    assert [call.join() for call in calls] == [NO_QUORUM] * 4
    assert [lock.said("connection refused") for lock in locks] == [3] * 4, locks[-1].message


def test_a_busy_lock_is_no_outage(nodes, make_client):
    lock = make_client(nodes.urls, outage_wait_ms=200, retry_delay_ms=20).lock()
    occupy(nodes)
    begun = now_ms()
    assert lock.acquire(1500) == BUSY
    assert now_ms() - begun >= 1500


def test_one_attempt_is_not_bounded_by_it(nodes, make_client):
    lock = make_client(nodes.urls, outage_wait_ms=0).lock()
    for wait_ms in 0, 60000, -1:
        assert in_stall(nodes, 500, lock.acquire, wait_ms) == OK, lock.message
        assert in_stall(nodes, 500, lock.extend) == OK, lock.message
        assert lock.release() == OK


def test_without_an_outage_wait_one_attempt_is_made(nodes, make_client):
    client = make_client(nodes.urls, outage_wait_ms=0, node_timeout_ms=200)
    lock, other = client.lock(), client.lock("s")
    assert lock.acquire(5000) == OK
    for node in nodes:
        node.kill()
    for call in lambda: lock.extend(8000), lambda: other.acquire(60000), lambda: other.acquire(-1):
        begun = now_ms()
        assert call() == NO_QUORUM and now_ms() - begun < 5000
    assert other.attempts == 1 and lock.state == HELD


def test_the_time_out_counts_from_the_write(nodes, make_client):
    """An event loop that is busy between start and process: the nodes have not been asked yet."""
    client = make_client(nodes.urls, node_timeout_ms=300)
    assert client.fd >= 0
    lock = client.lock()
    assert lock.start(rl.ACQUIRE) == OK
    late = now_ms() + 400
    eventually(lambda: now_ms() > late, 10)
    assert client.process() == OK
    assert lock.status in (rl.PENDING, OK), lock.message
    spin(client, lambda: lock.status != rl.PENDING)
    assert lock.status == OK and lock.state == HELD
    assert lock.release() == OK


def test_refusal_by_a_majority_does_not_wait_for_the_rest(nodes, make_client):
    """A hung node beside four that answer costs a few round trips, not the time of a stall."""
    lock = make_client(nodes.urls, **PLAIN).lock()
    assert lock.acquire(5000) == OK and lock.release() == OK
    occupy(nodes.nodes[:2])
    nodes[4].stop()

    def split():
        begun = time.monotonic()
        assert lock.acquire(0) in (BUSY, NO_QUORUM)  # two granted, two busy, one silent
        return time.monotonic() - begun

    assert min(split() for _ in range(10)) < 0.6  # not a second, as where a majority is silent

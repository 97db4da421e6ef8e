"""Many threads on one client; one handle belongs to one thread at a time."""

import rl
from helpers import Call, occupy, spin
from rl import CANCELLED, IN_FLIGHT, OK, PENDING
from testing import eventually


def test_misuse_of_one_handle_gets_in_flight(nodes, client):
    occupy(nodes)
    lock = client.lock()
    waiting = Call(lock.acquire, -1)
    eventually(lambda: lock.status == PENDING)
    calls = [lambda: lock.acquire(), lock.extend, lock.release, lambda: lock.start(rl.ACQUIRE),
             lambda: lock.adopt("a" * 40), lock.detach, lambda: lock.set("ttl_ms", 9000)]
    assert [call() for call in calls] == [IN_FLIGHT] * len(calls)
    assert (lock.state, lock.validity_ms) == (rl.FREE, 0)
    assert lock.cancel() == OK and waiting.join() == CANCELLED


def test_started_operations_end_while_threads_drive(nodes, client):
    started = [client.lock("s%d" % i) for i in range(20)]
    for tag, lock in enumerate(started):
        lock.set_tag(tag + 1)
        assert lock.start(rl.ACQUIRE, 10000) == OK
    blocking = client.lock("b")
    assert blocking.acquire() == OK
    occupied = client.lock("b")
    assert occupied.acquire(500) == rl.BUSY  # drives for half a second
    spin(client, lambda: all(lock.status == OK for lock in started))


def test_clients_of_many_threads_come_and_go(nodes):
    def work(number):
        for i in range(5):
            with rl.opened(nodes.urls) as client:
                lock = client.lock("m%d-%d" % (number, i))
                assert lock.acquire(10000) == OK, lock.message

    for call in [Call(work, i) for i in range(8)]:
        call.join(120)
    nodes.no_keys()

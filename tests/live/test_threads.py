"""Many threads on one client; one handle belongs to one thread at a time."""
import threading

import rl
from helpers import Call, occupy, spin
from rl import CANCELLED, HELD, IN_FLIGHT, OK, PENDING
from testing import eventually


def test_threads_contend_for_one_resource(nodes, client):
    inside, entered, failures = threading.Lock(), [0], []

    def work():
        lock = client.lock()
        for _ in range(3):
            if lock.acquire(-1) != OK:
                failures.append(lock.message)
            elif inside.acquire(blocking=False):
                entered[0] += 1
                inside.release()
                lock.release()
            else:
                failures.append("two holders")

    for call in [Call(work) for _ in range(30)]:
        call.join(120)
    assert failures == [] and entered[0] == 90
    nodes.no_keys()
    assert max(len(node.clients()) for node in nodes) == 1  # one connection whatever the number of threads


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


def test_many_threads_misuse_one_handle(nodes, client):
    """Whatever they get, it is a status, and one of them at a time has the operation."""
    lock = client.lock()
    seen = set()

    def work():
        for _ in range(30):
            seen.add(lock.acquire(1000))
            seen.add(lock.extend())
            _ = lock.state, lock.validity_ms, lock.token, lock.message
            seen.add(lock.release())

    for call in [Call(work) for _ in range(8)]:
        call.join(120)
    assert seen <= {OK, IN_FLIGHT, rl.INVALID, rl.NOT_HELD, rl.LOST}
    if lock.state == HELD:
        assert lock.release() == OK
    spin(client, lambda: not nodes.keys())


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

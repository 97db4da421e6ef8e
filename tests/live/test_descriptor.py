"""The started shape in a program's loop: the descriptor, the tags that it is given, and signals."""
import select
import signal
import threading
import time

import rl
from helpers import Call, finish, occupy, spin, spin_until_deleted
from rl import BUSY, CANCELLED, HELD, INVALID, NO_QUORUM, OK, PENDING
from testing import eventually


def run_loop(client, wanted):
    """An event loop as a program would write it: the tags in the order in which they came."""
    poll, tags = select.poll(), []
    poll.register(client.fd, select.POLLIN)
    deadline = time.monotonic() + 30
    while len(tags) < wanted and time.monotonic() < deadline:
        poll.poll(30000)
        assert client.process() == OK
        tag = client.next()
        while tag is not None:
            tags.append(tag)
            tag = client.next()
    return tags


def test_a_lock_is_acquired_extended_and_released(nodes, client):
    lock = client.lock()
    lock.set_tag(2 ** 64 - 1)
    fd = client.fd
    for operation in (rl.ACQUIRE, rl.EXTEND, rl.RELEASE):
        assert lock.start(operation) == OK
        assert lock.status == PENDING
        assert run_loop(client, 1) == [2 ** 64 - 1]
        assert lock.status == OK
        assert client.fd == fd
    nodes.no_keys()


def test_start_sends_nothing_and_makes_the_descriptor_readable(nodes, client):
    lock = client.lock()
    assert lock.acquire() == OK and lock.release() == OK
    spin(client, lambda: nodes[0].calls("set") == 1)
    nodes.no_keys()
    calls = nodes[0].calls("set")

    def quiet():
        client.process()
        return not select.select([client.fd], [], [], 0)[0]

    eventually(quiet)
    assert lock.start(rl.ACQUIRE) == OK
    assert select.select([client.fd], [], [], 0)[0]
    assert nodes[0].calls("set") == calls
    assert finish(lock) == OK


def test_at_once_sends_in_the_call(nodes, client):
    lock = client.lock()
    lock.set_tag(5)
    assert lock.acquire() == OK and lock.release() == OK
    fd = client.fd
    spin(client, lambda: not select.select([fd], [], [], 0)[0])
    calls = nodes[0].calls("set")
    assert lock.start(rl.ACQUIRE | rl.AT_ONCE) == OK
    eventually(lambda: nodes[0].calls("set") == calls + 1)
    assert run_loop(client, 1) == [5] and lock.state == HELD
    assert lock.start(rl.ACQUIRE | rl.AT_ONCE) == INVALID and lock.start(rl.AT_ONCE) == INVALID
    assert lock.start(rl.RELEASE | rl.AT_ONCE) == OK and run_loop(client, 1) == [5]
    nodes.no_keys()


def advance_loop(client, wanted):
    """A loop on advance: the tags, and how many times the descriptor was readable with nothing to do."""
    tags, idle = [], 0
    deadline = time.monotonic() + 30
    while len(tags) < wanted and time.monotonic() < deadline:
        select.select([client.fd], [], [], 30)
        tag = client.advance()
        idle += tag is None
        while tag is not None:
            tags.append(tag)
            tag = client.next()
    return tags, idle


def test_advance_gives_every_tag(nodes, client):
    locks = {tag: client.lock("m%d" % tag) for tag in range(1, 101)}
    for tag, lock in locks.items():
        lock.set_tag(tag)
    for operation in (rl.ACQUIRE, rl.EXTEND, rl.RELEASE):
        for lock in locks.values():
            assert lock.start(operation) == OK
        assert sorted(advance_loop(client, 100)[0]) == sorted(locks)
        assert all(lock.status == OK for lock in locks.values())
    nodes.no_keys()


def test_work_left_by_advance_makes_the_descriptor_readable(client):
    locks = {tag: client.lock("m%d" % tag) for tag in (1, 2, 3)}
    fd, tags = client.fd, []
    for tag, lock in locks.items():
        lock.set_tag(tag)
        assert lock.start(rl.ACQUIRE) == OK
    assert [lock.wait() for lock in locks.values()] == [OK] * 3
    for _ in locks:  # as a loop that takes one tag a turn
        assert select.select([fd], [], [], 30)[0]
        tags.append(client.advance())
    assert sorted(tags) == [1, 2, 3]
    spin(client, lambda: not select.select([fd], [], [], 0)[0])


def test_what_ends_in_process_makes_the_descriptor_readable(client):
    """A thread may process for others, who wait for the descriptor."""
    lock = client.lock()
    lock.set_tag(7)
    fd = client.fd
    assert lock.start(rl.ACQUIRE) == OK
    assert finish(lock) == OK
    assert select.select([fd], [], [], 0)[0]
    assert client.next() == 7


def test_many_operations_in_flight_get_their_own_replies(nodes, client):
    """Replies are matched by position: each operation gets its own."""
    locks = {tag: client.lock("m%d" % tag) for tag in range(1, 301)}
    busy = range(1, 301, 3)
    for tag in busy:
        occupy(nodes, "m%d" % tag)
    for tag, lock in locks.items():
        lock.set_tag(tag)
        assert lock.start(rl.ACQUIRE, 0) == OK
    assert sorted(run_loop(client, 300)) == sorted(locks)
    assert [lock.status for lock in locks.values()] == [BUSY if tag in busy else OK for tag in locks]
    for tag in locks.keys() - busy:
        assert locks[tag].start(rl.RELEASE) == OK
    assert sorted(run_loop(client, 200)) == sorted(locks.keys() - busy)
    eventually(lambda: nodes.keys().keys() == {b"m%d" % tag for tag in busy}, 5, "its own keys are deleted")


def test_deadlines_are_in_the_descriptor(nodes, make_client):
    client = make_client(nodes.urls, node_timeout_ms=500)
    lock = client.lock()
    lock.set_tag(1)
    assert lock.acquire(5000) == OK and lock.release() == OK
    for node in nodes:
        node.stop()
    while client.next() is not None:
        pass
    assert lock.start(rl.ACQUIRE, 0) == OK
    assert run_loop(client, 1) == [1] and lock.status == NO_QUORUM
    for node in nodes:
        node.cont()
    spin_until_deleted(client, nodes)


def send_until(send, done):
    """Again and again: the first may come before the other thread sleeps."""
    while not done.wait(0.2):
        send()


def test_wait_returns_for_a_signal(nodes, client):
    occupy(nodes)
    lock = client.lock()
    caught, done = [], threading.Event()
    old = signal.signal(signal.SIGUSR1, lambda *_: caught.append(1))
    try:
        assert lock.start(rl.ACQUIRE, -1) == OK
        main = threading.main_thread().ident
        sending = Call(send_until, lambda: signal.pthread_kill(main, signal.SIGUSR1), done)
        assert lock.wait(60000) == PENDING
        assert caught
    finally:
        done.set()
        sending.join()
        signal.signal(signal.SIGUSR1, old)
    lock.cancel()


def test_blocking_calls_survive_signals(nodes, client):
    occupy(nodes, ttl_ms=1000)
    lock = client.lock()
    caught = []
    old = signal.signal(signal.SIGALRM, lambda *_: caught.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        assert lock.acquire(20000) == OK
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert caught


def turns(client, during_s=0.5):
    """How often a loop would be woken in that time."""
    poll = select.poll()
    poll.register(client.fd, select.POLLIN)
    count, end = 0, time.monotonic() + during_s
    while time.monotonic() < end:
        if poll.poll(int(during_s * 1000)):
            count += 1
        client.process()
    return count


def test_a_cancel_after_the_end_does_not_keep_a_loop_awake(client):
    lock = client.lock()
    assert client.fd >= 0
    assert lock.acquire() == OK and lock.release() == OK
    assert lock.cancel() == OK
    assert lock.state == rl.FREE  # a getter sees the cancel before the loop does
    assert turns(client) < 100


def test_a_cancelled_wait_of_a_thread_does_not_keep_a_loop_awake(nodes, client):
    occupy(nodes)
    lock = client.lock()
    assert client.fd >= 0
    waiting = Call(lock.acquire, -1)
    eventually(lambda: lock.votes.count(BUSY) >= 3)
    assert lock.cancel() == OK
    assert waiting.join() == CANCELLED
    assert turns(client) < 100


def test_locks_with_unread_ends_are_freed_as_quickly():
    with rl.opened("redis://127.0.0.1:1") as client:
        def time_to_free(ended):
            locks = [client.lock() for _ in range(20000)]
            for lock in locks if ended else ():
                assert lock.start(rl.ACQUIRE) == OK and lock.cancel() == OK
            assert client.process() == OK
            client.locks.clear()
            begun = time.thread_time()
            for lock in reversed(locks):
                lock.free()
            return time.thread_time() - begun

        assert time_to_free(ended=True) < 5 * time_to_free(ended=False) + 0.1

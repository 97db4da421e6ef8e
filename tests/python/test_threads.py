"""One client, and one Lock, shared by many threads."""

import concurrent.futures
import contextlib
import re
import threading
import time

import pytest

import libredlock
from libredlock._lock import LockBase
from libredlock._notify import notifier
from libredlock.testing import Late, eventually
from patience import GENEROUS_TIMEOUTS, lapsing
from steps import at_each_step


def in_threads(count, body):
    """Runs body(i) in threads; the first exception of any of them is raised here."""
    failures = []

    def run(i):
        try:
            body(i)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert not any(thread.is_alive() for thread in threads), "threads hang"
    if failures:
        raise failures[0]


def test_a_hundred_threads_share_a_client(client, nodes):
    counts = [0] * 10

    def work(i):
        for _ in range(3):
            with client.lock(f"r{i % 10}"):
                count = counts[i % 10]
                time.sleep(0)
                counts[i % 10] = count + 1

    in_threads(100, work)
    assert counts == [30] * 10
    # whatever the number of threads: the second tells waiters, and a third one may be replacing a silent one
    assert max(len(node.clients()) for node in nodes) <= 3
    nodes.no_keys()


def test_a_hundred_threads_share_a_lock(client, nodes):
    lock = client.lock("r")
    inside = []
    count = 0

    def work(i):
        nonlocal count
        with lock:
            inside.append(i)
            assert len(inside) == 1
            count += 1
            inside.clear()

    in_threads(100, work)
    assert count == 100
    nodes.no_keys()


def test_a_stranger_is_refused_whenever_the_holder_releases(client):
    with concurrent.futures.ThreadPoolExecutor(1) as holder:

        def begin():
            lock = client.lock("r")
            holder.submit(lock.acquire).result()
            return lock

        def holder_releases(lock):
            return holder.submit(lock.release).result()

        for refusal, released in at_each_step(LockBase._own, begin, libredlock.Lock.release, holder_releases):
            assert isinstance(refusal, libredlock.NotHeld) and released is None, refusal


def test_a_client_begins_while_the_thread_forgets_another(nodes):
    class Compared(libredlock.Client):
        __hash__ = libredlock.Client.__hash__

        def __eq__(self, other):
            if other is later:
                self.close()
                with contextlib.suppress(Late):  # if the thread just waits for this one, it forgets nothing
                    eventually(lambda: len(notifier._clients) < known, 1)
            return self is other

    with libredlock.Client(nodes.urls) as later, libredlock.Client(nodes.urls) as one, Compared(nodes.urls) as first:
        for client in first, one:
            assert client.lock("r", wait=20).acquire()
            client.release("r", force=True)
        known = len(notifier._clients)
        assert later.lock("r", wait=20).acquire() and first.closed


def waiting(client):
    return client.describe()["waiting"]


def queue_up(lock, names, order):
    """Threads that wait for a lock one behind the other."""
    threads = []
    for position, name in enumerate(names, 1):

        def wait(name=name):
            if lock.acquire():
                order.append(name)
                lock.release()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        eventually(lambda: waiting(lock._client) == position, 30, "the thread waits")
        threads.append(thread)
    return threads


def test_threads_of_one_lock_are_served_in_order(client):
    lock = client.lock("r")
    lock.acquire()
    order = []
    threads = queue_up(lock, range(8), order)
    lock.release()
    for thread in threads:
        thread.join(30)
    assert order == list(range(8))


def test_the_timeout_covers_the_queue(client):
    lock, got = client.lock("r"), []
    lock.acquire()
    in_threads(1, lambda _: got.append(lock.acquire(timeout=0.1)))
    assert got == [False] and waiting(client) == 0
    assert lock.acquire(blocking=False) is False
    lock.release()
    assert lock.acquire(blocking=False)
    lock.release()


def test_with_on_a_lock_that_another_thread_holds_is_busy(client):
    lock = client.lock("r", wait=0.05)
    assert lock.acquire(timeout=20)
    with pytest.raises(libredlock.Busy, match="this thread holds 'r' already: a Lock is not re-entrant"):
        with lock:
            pytest.fail("entered")

    def enter(_):
        with pytest.raises(libredlock.Busy, match="another thread of this process holds 'r'"):
            with lock:
                pytest.fail("entered")

    in_threads(1, enter)
    assert lock.owned()
    lock.release()


def test_another_thread_s_lost_hold_is_not_named_as_the_holder(client, other):
    lock, is_over = client.lock("r", wait=0, **lapsing(0.4)), threading.Event()
    with concurrent.futures.ThreadPoolExecutor(1) as holder:
        hold = holder.submit(lock.take).result()
        blocked = holder.submit(is_over.wait)  # it may still hold what it has not released
        try:
            with other.lock("r"):
                assert hold.lost and lock.acquire() is False
                assert re.match("held by (others|.* \\(pid ).*: [0-2] of 5 nodes granted", str(lock.refused))
                with pytest.raises(libredlock.NotHeld, match="the lock on 'r' is not held$"):
                    lock.release()
        finally:
            is_over.set()
        assert blocked.result()


def test_any_thread_may_release_a_hold(client):
    lock = client.lock("r")
    hold = lock.acquire()
    in_threads(1, lambda _: hold.release())
    assert not lock.locked()


def test_waiter_gets_a_lock_whose_lease_has_ended(client, nodes):
    """The thread whose lease has ended gets an error from each call, and its release does not end the other's hold."""
    lock, in_turn = client.lock("r", **lapsing(4)), threading.Event()
    done, tokens = threading.Event(), []

    def second(_):
        tokens.append(lock.acquire(timeout=30).token)
        lock.extend(30)
        in_turn.set()
        assert done.wait(30)
        lock.check()
        lock.release()

    lock.acquire()
    thread = threading.Thread(target=second, args=(0,), daemon=True)
    thread.start()
    assert in_turn.wait(30)
    assert lock.lost and not lock.owned() and lock.remaining == 0
    for call in (lock.check, lock.extend, lock.release):
        with pytest.raises(libredlock.Lost, match="its lease expired"):
            call()
    assert any(node.get("r") == tokens[0].encode() for node in nodes)
    done.set()
    thread.join(30)
    assert not thread.is_alive() and not lock.locked()
    nodes.no_keys()


def test_extend_beside_release_is_no_misuse(client):
    lock = client.lock("r", max_extensions=None)
    for _ in range(20):
        hold = lock.acquire()
        stop = threading.Event()

        def extend(_, stop=stop, hold=hold):
            while not stop.is_set():
                try:
                    hold.extend()
                except (libredlock.NotHeld, libredlock.Lost):
                    return

        thread = threading.Thread(target=extend, args=(0,), daemon=True)
        thread.start()
        lock.release()
        stop.set()
        thread.join(30)
        assert not thread.is_alive()


def test_close_cancels_waiters(nodes, other):
    client = libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    taken, shared = other.lock("taken", renew=True), client.lock("shared")
    taken.acquire()
    shared.acquire()
    cancelled = []

    def wait(lock):
        with pytest.raises(libredlock.Cancelled):
            lock.acquire()
        cancelled.append(lock)

    locks = (client.lock("taken"), shared, shared)
    threads = [threading.Thread(target=wait, args=(lock,), daemon=True) for lock in locks]
    for thread in threads:
        thread.start()
    eventually(lambda: waiting(client) == 3, 30)
    client.close()
    for thread in threads:
        thread.join(30)
    assert len(cancelled) == 3
    taken.release()
    nodes.no_keys()


def test_a_thread_is_not_taken_for_one_that_has_ended(client):
    """Though it has the same number."""
    gpu = client.semaphore("gpu", 2)
    in_threads(1, lambda _: gpu.acquire())
    kept = gpu.acquire()
    for _ in range(20):  # one of them gets the number again
        in_threads(1, lambda _: pytest.raises(libredlock.NotHeld, gpu.check))
    assert kept.owned()

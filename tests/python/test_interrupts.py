"""Signal handlers that raise at any moment: no lock is left in a state that nobody can end."""

import contextlib
import signal
import sys
import threading
import time

import pytest

import libredlock
from libredlock.testing.wait import in_time
from patience import GENEROUS_TIMEOUTS

SIGNALS = """
import random, signal
import libredlock
class Interrupt(BaseException): pass
def interrupt(_, frame):
    while frame is not None:
        if frame.f_code is cycle.__code__: raise Interrupt
        frame = frame.f_back
random.seed(7)
client = libredlock.Client(**GENEROUS_TIMEOUTS)
client.status("connected")
interrupted = 0
lock = client.KIND
def cycle():
    BODY
signal.signal(signal.SIGALRM, interrupt)
for number in range(6000):
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, 6e-4), 3e-4)
        cycle()
    except Interrupt:
        interrupted += 1
    except libredlock.RedlockError:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    while lock.locked():
        try:
            lock.release()
        except libredlock.RedlockError:
            pass
print(interrupted > 100, bool(lock.acquire(timeout=20)))
"""
BODIES = {
    "plain": ("lock('r', ttl=30, wait=20)", "lock.acquire(); lock.extend(); lock.release()"),
    "block": ("lock('r', ttl=30, wait=20)", "\n    with lock:\n        lock.extend()"),
    "rlock": ("rlock('r', ttl=30, wait=20)", "\n    with lock:\n        with lock: pass\n        lock.extend()"),
    "semaphore": ("semaphore('r', 2, ttl=30, wait=20)", "\n    with lock:\n        with lock: pass"),
    "reader": ("lock('r', ttl=30, wait=20)", "\n    with lock:\n        lock.downgrade()"),
}


@pytest.mark.parametrize("kind", BODIES)
def test_no_interrupt_poisons_a_lock(script, nodes, kind):
    made, body = BODIES[kind]
    source = SIGNALS.replace("KIND", made).replace("BODY", body)
    assert script(f"GENEROUS_TIMEOUTS = {GENEROUS_TIMEOUTS}\n" + source).end(280)[:2] == (0, "True True")
    nodes.no_keys()


class Interrupt(BaseException):
    pass


def cut_off(call, number):
    """Calls it with an exception of a signal handler at so many lines of the package; whether there were as many."""
    left = [number]

    def trace(frame, event, _):
        if "libredlock" not in frame.f_code.co_filename or "__del__" in names_of(frame):
            return None
        left[0] -= event == "line"
        if event == "line" and left[0] == 0:
            raise Interrupt
        return trace

    sys.settrace(trace)
    try:
        call()
    except Interrupt:
        pass
    finally:
        sys.settrace(None)
    return left[0] <= 0


def names_of(frame):
    """The functions that run."""
    while frame is not None:
        yield frame.f_code.co_name
        frame = frame.f_back


def within(lock, *acts):
    def call():
        with lock:
            for act in acts:
                act()

    return call


def taken_by_another_thread(lock):
    """Whether a thread can take and release it; one that waits for a mutex of the package never ends."""
    taken = []

    def call():
        taken.append(lock.acquire(timeout=20))
        lock.release()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(60)
    return bool(taken and taken[0]) and not thread.is_alive()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("kind", ["plain", "block", "hold", "rlock", "reader", "detach"])
def test_an_interrupt_at_any_line_poisons_no_lock(client, nodes, kind):
    lock, kept = client.rlock("r", ttl=30, wait=20) if kind == "rlock" else client.lock("r", ttl=30, wait=20), []
    call = {
        "plain": lambda: (lock.acquire(), lock.extend(), lock.release()),
        "block": within(lock, lock.extend),
        "hold": lambda: (kept.append(lock.take()), kept[-1].extend(), kept[-1].release()),
        "rlock": within(lock, within(lock), lock.extend),
        "reader": within(lock, lock.downgrade),
        "detach": lambda: client.adopt("r", lock.take().detach()).release(),
    }[kind]
    number = 1
    while cut_off(call, number):
        while lock.locked():
            with contextlib.suppress(libredlock.RedlockError):
                lock.release()
        if kind == "detach":
            for node in nodes:
                node.delete_keys()
        assert taken_by_another_thread(lock), number
        number += 1
    assert number > 20
    nodes.no_keys()


def test_an_interrupt_as_a_hold_s_block_begins_releases_it(client, nodes):
    lock, number = client.lock("r", ttl=30, wait=20), 1
    while cut_off(lock.take().__enter__, number):
        assert not lock.locked() or number == 1  # nothing has begun there
        while lock.locked():
            lock.release()
        number += 1
    assert number > 20
    lock.release()
    nodes.no_keys()


def test_an_interrupted_extension_does_not_hold_up_the_release(nodes):
    def interrupt(*_):
        raise Interrupt

    with libredlock.Client(nodes.urls, **{**GENEROUS_TIMEOUTS, "outage_wait": None}) as client:
        hold = client.lock("r", ttl=30).take()
        client.status("r")
        for node in nodes:
            node.stop()
        former = signal.signal(signal.SIGALRM, interrupt)
        try:
            with pytest.raises(Interrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                hold.extend()
            began = time.monotonic()
            hold.release()
            in_time(time.monotonic() - began < 15, "the release does not wait until the lease is nearly over")
        finally:
            signal.signal(signal.SIGALRM, former)
            for node in nodes:
                node.cont()
        nodes.no_keys()


def test_a_release_that_was_cut_off_twice_is_completed(client):
    """The second signal has cut off the repair: it is marked, and the core was never told."""
    lock = client.lock("r", ttl=30)
    hold = lock.take()
    hold._has_ended = True
    assert lock.acquire(timeout=20) and not hold.owned()
    lock.release()

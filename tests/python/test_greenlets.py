"""Real greenlets of gevent and eventlet: whoever waits for a lock stops alone."""

import os
import textwrap
from importlib.util import find_spec

import pytest

from patience import GENEROUS_TIMEOUTS, lapsing

GEVENT = """
from gevent import monkey
monkey.patch_all(PATCH)
import gevent
from gevent import spawn, sleep, Timeout
def join(greenlets):
    gevent.joinall(greenlets, raise_error=True)
kill = gevent.kill
"""
EVENTLET = """
import warnings
warnings.showwarning = lambda *_, **__: None  # it is deprecated, and says so
import eventlet
eventlet.monkey_patch(PATCH)
from eventlet import spawn, sleep, Timeout
def join(greenlets):
    for greenlet in greenlets:
        greenlet.wait()
kill = eventlet.kill
"""
SOCKETS_ONLY = {
    "gevent": "thread=False, time=False, os=False, subprocess=False, signal=False, queue=False",
    "eventlet": "thread=False, time=False, os=False",
}
BOTH = {"gevent": GEVENT, "eventlet": EVENTLET}


@pytest.fixture(params=[(name, patch) for name in BOTH for patch in ("all", "sockets")], ids="-".join)
def greenlets(request, script, nodes):
    """Runs a program whose process is patched; it has a client, and may take a minute."""
    name, patch = request.param
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")

    def run(source):
        head = BOTH[name].replace("PATCH", "" if patch == "all" else SOCKETS_ONLY[name])
        client = f"import libredlock\nclient = libredlock.Client(**{GENEROUS_TIMEOUTS})\nclient.status('connected')\n"
        return script(head + client + textwrap.dedent(source)).end()

    return run


def test_the_holder_goes_on_while_another_greenlet_waits(greenlets, nodes):
    said = greenlets(
        """
        order = []
        def hold(name):
            with client.lock("r", ttl=10):
                order.append(name)
                for _ in range(5):
                    sleep(0.01)
                order.append(name)
        join([spawn(hold, name) for name in "abc"])
        print(order[0::2] == order[1::2], sorted(order))
        """
    )
    assert said == (0, "True ['a', 'a', 'b', 'b', 'c', 'c']", "")
    nodes.no_keys()


def test_the_others_go_on_while_one_waits(greenlets, client):
    with client.lock("r"):
        said = greenlets(
            """
            ticks = 0
            def tick():
                global ticks
                while True:
                    ticks += 1
                    sleep(0.001)
            def ticks_while_it_waits():
                before = ticks
                try:
                    assert client.lock("r").acquire(timeout=0.5) is False
                except libredlock.TimedOut:
                    pass  # no node was in time
                return ticks - before
            ticking = spawn(tick)
            print(any(ticks_while_it_waits() > 10 for _ in range(60)))
            kill(ticking)
            """
        )
    assert said == (0, "True", "")


def test_a_refused_greenlet_is_told_who_holds_the_lock(greenlets, client):
    with client.lock("r"):
        said = greenlets(
            """
            try:
                client.lock("r", wait=0).take()
            except libredlock.Busy as failure:
                print(failure.held_by.pid)
            """
        )
    assert said == (0, str(os.getpid()), "")


def test_greenlets_of_one_lock_queue(greenlets, nodes):
    said = greenlets(
        """
        lock, order = client.lock("r"), []
        def hold(number):
            with lock:
                order.append(number)
                sleep(0.001)
                assert order[-1] == number
        join([spawn(hold, number) for number in range(20)])
        print(order == list(range(20)))
        lock.acquire()
        print(lock.acquire(timeout=0.05), lock.acquire(blocking=False), lock.extend() > 1, lock.owned())
        lock.release()
        """
    )
    assert said == (0, "True\nFalse False True True", "")
    nodes.no_keys()


def test_many_greenlets_wait_for_many_locks(greenlets, nodes):
    said = greenlets(
        """
        counts = [0] * 5
        def work(i):
            for _ in range(3):
                with client.lock(f"r{i % 5}"):
                    count = counts[i % 5]
                    sleep(0)
                    counts[i % 5] = count + 1
        join([spawn(work, i) for i in range(50)])
        print(counts, client.status("r0").verdict)
        """
    )
    assert said == (0, "[30, 30, 30, 30, 30] free", "")
    nodes.no_keys()


def test_a_greenlet_that_is_killed_or_timed_out_leaves_no_key(greenlets, client, nodes):
    held = client.lock("r", renew=True)
    held.acquire()
    said = greenlets(
        """
        lock, others = client.lock("r"), []
        def wait():
            with client.lock("r"):
                others.append(1)
        reading, waiting = spawn(wait), spawn(wait)
        sleep(0.05)
        kill(reading)
        try:
            with Timeout(0.1):
                lock.acquire()
        except Timeout:
            print("timed out", lock.locked(), lock.owned())
        while True:
            try:
                print(lock.acquire(timeout=0.1))
                break
            except libredlock.TimedOut:
                pass  # no node was in time
        kill(waiting)
        sleep(0)
        print(others)
        """
    )
    assert said == (0, "timed out False False\nFalse\n[]", "")
    held.release()
    nodes.no_keys()


def test_what_ended_is_in_flight_until_its_greenlet_hears(greenlets, client):
    with client.lock("other"):
        said = greenlets(
            """
            reader = spawn(client.lock("other").acquire)  # it reads for all, and goes on with that
            while not client.describe()["waiting"]:
                sleep(0)
            hold = client.lock("r", ttl=10).take()
            def second():
                while hold.remaining < 12:  # the first extension is in flight
                    sleep(0)
                hold.extend(25)
            greenlets = [spawn(hold.extend, 20), spawn(second)]
            with Timeout(30):
                join(greenlets)
            print(hold.remaining > 20)
            kill(reader)
            """
        )
    assert said == (0, "True", "")


def test_close_cancels_greenlets_that_wait(greenlets, client):
    with client.lock("r"):
        said = greenlets(
            """
            shared, cancelled = client.lock("shared"), []
            shared.acquire()
            def wait(lock):
                try:
                    lock.acquire()
                except libredlock.Cancelled:
                    cancelled.append(1)
            waiting = [spawn(wait, lock) for lock in (client.lock("r"), client.lock("r"), shared)]
            sleep(0.05)
            client.close()
            join(waiting)
            print(len(cancelled))
            """
        )
    assert said == (0, "3", "")


def test_a_client_in_memory_lets_greenlets_go_on(greenlets):
    said = greenlets(
        """
        from libredlock.testing import MemoryClient
        one = MemoryClient()
        other = MemoryClient(store=one.store)
        held = one.lock("r").take()
        waiting = spawn(lambda: print("taken:", other.lock("r").take().owned()))
        while not one.store.waiting:
            sleep(0)
        held.release()
        join([waiting])
        left = one.lock("q").take()
        one.close()
        print("free:", bool(other.lock("q").acquire(blocking=False)))
        """
    )
    assert said == (0, "taken: True\nfree: True", "")


def test_greenlets_are_notified_of_losses(greenlets, nodes):
    said = greenlets(
        """
        import logging
        told = []
        class Told(logging.Handler):
            def emit(self, record):
                if record.redlock_event != "node_silent":  # a node was late
                    told.append(record.redlock_event)
        logging.getLogger("libredlock").addHandler(Told())
        lost = []
        lock = client.lock("r", ttl=0.3, node_timeout=0.05, on_lost=lost.append)
        hold = lock.acquire()
        for _ in range(2000):
            if lost and "lost" in told:
                break
            sleep(0.01)
        print(lost == [hold], told)
        """
    )
    assert said == (0, "True ['lost']", "")


def test_threads_take_locks_beside_the_greenlets(greenlets, nodes):
    """A thread of the library's pool waits as threads do, while greenlets use the same client."""
    said = greenlets(
        """
        def cycles(name):
            for _ in range(10):
                with client.lock("r"):
                    pass
            return name
        try:
            in_thread = eventlet.tpool.execute
        except NameError:
            in_thread = lambda function, *arguments: gevent.get_hub().threadpool.apply(function, arguments)
        except AttributeError:
            from eventlet.tpool import execute as in_thread
        beside = [spawn(cycles, number) for number in range(3)]
        print(in_thread(cycles, "thread"))
        join(beside)
        """
    )
    assert said == (0, "thread", "")
    nodes.no_keys()


LATE = {
    "gevent": GEVENT.replace("monkey.patch_all(PATCH)\n", ""),
    "eventlet": EVENTLET.replace("eventlet.monkey_patch(PATCH)\n", ""),
}
PATCH = {"gevent": "monkey.patch_all()", "eventlet": "eventlet.monkey_patch()"}
ONE_NAME = """
order = []
def hold(name):
    with client.lock("r", ttl=10):
        order.append(name)
        sleep(0.01)
        order.append(name)
lock = client.lock("shared")
def hold_shared():
    with lock:
        sleep(0.001)
join([spawn(hold, name) for name in "abc"] + [spawn(hold_shared) for _ in range(3)])
print(order[0::2] == order[1::2], len(order))
"""


def test_a_child_of_a_fork_goes_on_without_a_word(greenlets, nodes):
    said = greenlets(
        f"""
        import logging, os
        logging.disable()
        lost = []
        with client.lock("parent", ttl=10) as held:
            pid = os.fork()
            if pid == 0:
                hold = client.lock("child", on_lost=lost.append, **{lapsing(0.5)}).take()
                while not lost:
                    sleep(0.01)
                raise SystemExit(held.lost and 23)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), held.owned())
        """
    )
    assert said == (0, "23 True", "")


USE = """
client.status("used")
with client.lock("used"):
    pass
seen = []
eventually(lambda: seen.extend(event["event"] for event in client.events()) or seen.count("node_up") >= 5)
"""
# eventlet makes the locks of logging and threading green, which a thread must not be about to take.
UNTIL_THE_THREAD_WAITS = """
eventually(lambda: all(frame.f_code.co_name == "_readable" for thread, frame in sys._current_frames().items()
                       if thread != threading.get_ident()))
"""


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("use", ["", USE], ids=["made", "used"])
@pytest.mark.parametrize("fork", [False, True], ids=["same process", "preload"])
def test_a_client_made_before_the_process_is_patched_works(script, nodes, name, use, fork):
    """As a server makes it that loads the program, forks its workers and patches them."""
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    source = "import libredlock, os, sys, threading, time\nfrom libredlock.testing import eventually\n"
    source += f"client = libredlock.Client(**{GENEROUS_TIMEOUTS})\n{use}"
    source += UNTIL_THE_THREAD_WAITS
    if fork:
        source += "pid = os.fork()\nif pid: os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    source += f"{LATE[name]}\n{PATCH[name]}\n{ONE_NAME}"
    status, said, _ = script(source).end()
    assert (status, said) == (0, "True 6")
    nodes.no_keys()

"""Unrequested reports: records of the logger "libredlock", and on_lost."""

import asyncio
import contextlib
import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

import libredlock
from libredlock import _notify, aio
from libredlock.testing import eventually
from patience import GENEROUS_TIMEOUTS, lapsing, outlived, until


@pytest.fixture
def records(caplog):
    """The records with a given event."""
    caplog.set_level("DEBUG", "libredlock")

    def records(event):
        return [record for record in caplog.records if getattr(record, "redlock_event", None) == event]

    return records


def one(records, event):
    return eventually(lambda: records(event), 30, event)[0]


def test_loss_is_logged_without_being_asked_for(client, records, nodes):
    lock = client.lock("orders:42", **lapsing(6), renew=True)
    lock.acquire()
    eventually(lambda: outlived(nodes), 30)
    for node in nodes:
        node.stop()
    record = one(records, "lost")
    assert (record.name, record.levelno) == ("libredlock", logging.WARNING)
    assert record.getMessage() == "lost orders:42: the lease expired"
    assert record.redlock_resource == "orders:42" and record.redlock_reason == "expired" and record.redlock_at_ms > 0
    assert one(records, "at_risk").levelno == logging.WARNING
    with pytest.raises(libredlock.Lost):
        lock.release()


def test_nodes_are_logged(records, nodes):
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
        client.status("r")
        up = eventually(lambda: len(records("node_up")) == 5 and records("node_up"), 30)
        assert {record.redlock_node for record in up} == {node.name for node in nodes}
        assert {record.levelno for record in up} == {logging.INFO}
        nodes[0].kill()
        with client.lock("r"):
            record = one(records, "node_down")
    assert record.levelno == logging.WARNING and record.redlock_node == nodes[0].name
    assert nodes[0].name in record.getMessage()


def test_events_are_read_while_another_one_happens(client, records, monkeypatch):
    held, loads = [client.lock("r", **lapsing(0.4)).take()], json.loads
    one(records, "lost")

    def slow(line):
        if threading.current_thread() is threading.main_thread() and len(held) == 1:
            held.append(client.lock("s", **lapsing(0.4)).take())
            eventually(lambda: len(records("lost")) == 2, 30)
        return loads(line)

    monkeypatch.setattr(json, "loads", slow)
    assert "r" in [event.get("resource") for event in client.events()] and len(held) == 2


def test_events_are_kept_and_logged_once(client, records):
    lock = client.lock("gone", **lapsing(0.4))
    lock.acquire()
    one(records, "lost")
    losses = [event for event in client.events() if event["event"] == "lost"]
    assert [event["resource"] for event in losses] == ["gone"]
    assert losses == [event for event in client.events() if event["event"] == "lost"]
    assert len(records("lost")) == 1


def test_asyncio_logs_by_itself(nodes, run, records):
    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            lock = client.lock("r", **lapsing(0.4))
            await lock.acquire()
            await until(lambda: records("lost"))

    run(main())
    assert records("lost")[0].redlock_resource == "r" and records("node_up")


def test_on_lost_is_called_once_at_the_loss(client, nodes):
    lost, holds = [], []
    lock = client.lock("r", **lapsing(0.4), on_lost=lost.append)
    other = client.lock("other", ttl=20, on_lost=lost.append)
    other.acquire()
    for count in (1, 2):
        holds.append(lock.acquire())
        eventually(lambda: len(lost) == count, 30)
        with pytest.raises(libredlock.Lost):
            lock.release()
    assert lost == holds
    other.release()
    nodes.no_keys()


def test_on_lost_is_called_while_the_with_block_hangs(client, nodes):
    """The block itself asks no node."""
    lost = threading.Event()
    with pytest.raises(libredlock.Lost):
        with client.lock("r", **lapsing(2), on_lost=lambda lock: lost.set()):
            for node in nodes:
                node.stop()
            assert lost.wait(60)


def test_on_lost_is_called_for_an_adopted_lock(client, other):
    lock = client.lock("r", ttl=10)
    lock.acquire()
    client.status("r")
    lost = threading.Event()
    adopted = other.adopt("r", lock.detach(), **lapsing(4), on_lost=lambda lock: lost.set())
    adopted.extend()
    adopted.extend(4.5)
    assert lost.wait(60) and adopted.lost


def test_on_lost_is_called_at_an_end_that_was_moved(client, monkeypatch):
    monkeypatch.setattr(_notify, "TICK_S", 1000)  # nothing else wakes the thread
    lost = threading.Event()
    terms = {"ttl": 25, "node_timeout": 0.5, "min_validity": 0.001}
    hold = client.lock("r", **terms, on_lost=lambda lock: lost.set()).take()
    adopted = client.adopt("q", client.lock("q", ttl=25).take().detach(), on_lost=print)
    assert _notify.notifier._limit_s() > 5  # the lease of one that is adopted is not known yet
    hold.expire(2)
    assert lost.wait(15)
    adopted.release()


def test_an_error_in_on_lost_is_logged(client, caplog):
    def fails(lock):
        raise KeyError("mine")

    lock = client.lock("r", **lapsing(0.4), on_lost=fails)
    lock.acquire()
    record = eventually(lambda: [r for r in caplog.records if "on_lost" in r.getMessage()], 30)[0]
    assert record.exc_info[0] is KeyError and "'r'" in record.getMessage()


def test_on_lost_in_asyncio_is_called_by_the_loop(nodes, run):
    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            lost = asyncio.get_running_loop().create_future()
            lock = client.lock("r", **lapsing(0.4), on_lost=lost.set_result)
            hold = await lock.acquire()
            assert await lost is hold
            with pytest.raises(libredlock.Lost):
                await lock.release()

    run(main())


def hold_until_it_is_closed(client, holds, told):
    with contextlib.suppress(libredlock.RedlockError):
        while True:
            holds.append(client.lock(str(uuid4()), on_lost=told.append).acquire())


def hold_in_a_loop_until_it_is_closed(client, holds, told):
    async def main():
        with contextlib.suppress(libredlock.RedlockError):
            while True:
                holds.append(await client.lock(str(uuid4()), on_lost=told.append).acquire())
        await until(lambda: set(holds) <= set(told))

    asyncio.run(main())


@pytest.mark.parametrize("surface, work", [(libredlock, hold_until_it_is_closed),
                                           (aio, hold_in_a_loop_until_it_is_closed)])
def test_on_lost_hears_of_a_close_just_after_the_grant(nodes, surface, work):
    for _ in range(20):
        client, holds, told = surface.Client(nodes.urls, **GENEROUS_TIMEOUTS), [], []
        with ThreadPoolExecutor() as pool:
            working = [pool.submit(work, client, holds, told) for _ in range(4)]
            eventually(lambda: len(holds) > 20)
            closing = client.close()
            if surface is aio:
                asyncio.run(closing)
        assert [job.result() for job in working] == [None] * 4
        eventually(lambda: set(holds) == set(told))
        assert len(holds) == len(told)


def test_a_block_entered_while_another_thread_closes_is_lost(on_client, monkeypatch):
    async def body(client):
        told, belong = [], aio.Hold._belong

        def close(hold, binding):  # as far as close() has come there when the lock is granted here
            client._is_open = False
            belong(hold, binding)

        monkeypatch.setattr(aio.Hold, "_belong", close)
        with pytest.raises(libredlock.Lost):
            async with client.lock("r", on_lost=told.append, cancel_on_lost=True) as hold:
                await asyncio.Event().wait()
        assert told == [hold] and hold.lost
        client._is_open = True

    on_client(body)


def test_a_release_while_another_thread_closes_says_lost(client, on_client):
    def as_far_as_close_has_come(client, hold):
        client._is_open = False
        assert hold.lost

    def is_still_lost(client, hold, failure):
        assert failure.reason == hold.loss == "closed" and hold.lost
        client._is_open = True

    hold = client.lock("r").take()
    as_far_as_close_has_come(client, hold)
    with pytest.raises(libredlock.Lost) as caught:
        hold.release()
    is_still_lost(client, hold, caught.value)

    async def body(client):
        hold = await client.lock("s").take()
        as_far_as_close_has_come(client, hold)
        with pytest.raises(libredlock.Lost) as caught:
            await hold.release()
        is_still_lost(client, hold, caught.value)

    on_client(body)


@pytest.mark.parametrize("module", [libredlock, aio])
def test_on_lost_must_be_a_function(module):
    client = module.Client("redis://127.0.0.1:1")
    with pytest.raises(TypeError, match="on_lost=5"):
        client.lock("r", on_lost=5)


def test_a_forked_child_logs_too(script, nodes):
    source = f"""
import logging, os, sys
logging.basicConfig(level="INFO", stream=sys.stdout, format="%(levelname)s %(redlock_event)s %(redlock_resource)s")
logging.getLogger("libredlock").addFilter(lambda record: record.redlock_event == "lost")
import libredlock
client = libredlock.Client(**{GENEROUS_TIMEOUTS})
client.lock("warm", **{lapsing(0.4)}).acquire(); client.status("warm")
pid = os.fork()
if pid == 0:
    import time
    lock = client.lock("child", **{lapsing(0.4)})
    lock.acquire()
    for _ in range(3000):
        if any(event["event"] == "lost" for event in client.events()): break
        time.sleep(0.01)
    os._exit(0)
os.waitpid(pid, 0)
"""
    status, out, err = script(source).end()
    assert status == 0 and "WARNING lost child" in out.splitlines(), out + err


def losing(then):
    """A program whose on_lost, filter or handler does something, and that goes on to lose locks of two clients."""
    return f"""
import logging, os, signal, sys, threading, time
import libredlock
{then}
client = libredlock.Client(**{GENEROUS_TIMEOUTS})
first, later = threading.Event(), threading.Event()
def fails(lock):
    first.set()
    raise FAILURE
lock = client.lock("r", **{lapsing(0.4)}, on_lost=fails)
lock.acquire()
assert first.wait(60)
for number in range(2):  # of this client, then of another one
    another = client.lock(f"s{{number}}", **{lapsing(0.4)}, on_lost=lambda lock: later.set())
    another.acquire()
    print(later.wait(60))
    later.clear()
    client = libredlock.Client(**{GENEROUS_TIMEOUTS})
"""


@pytest.mark.parametrize(
    "failure",
    [
        "class FAILURE(BaseException): pass",
        "FAILURE = KeyboardInterrupt",
        "FAILURE = KeyError('x')\nlogging.getLogger('libredlock').addFilter(lambda record: 1 / 0)",
        "FAILURE = KeyError('x')\n"
        "class Handler(logging.Handler):\n    def emit(self, record): raise OSError\n"
        "logging.getLogger('libredlock').addHandler(Handler())",
    ],
    ids=["base exception", "interrupt", "filter", "handler"],
)
def test_no_callback_ends_the_notifications(script, nodes, failure):
    status, out, err = script(losing(failure)).end()
    assert (status, out) == (0, "True\nTrue"), err
    assert "Traceback" in err


@pytest.mark.parametrize(
    "exits, ends",
    [("SystemExit('it is lost')", (1, "it is lost")), ("SystemExit(3)", (3, "")), ("SystemExit", (0, ""))],
)
def test_sys_exit_in_on_lost_ends_the_process(script, nodes, exits, ends):
    """And releases what it holds."""
    source = losing(f"FAILURE = {exits}").replace("assert first", "kept.acquire(); print('out'); assert first")
    source = source.replace("lock = client", "kept = client.lock('kept', ttl=30)\nlock = client", 1)
    source = source.replace("    print(later", "    time.sleep(600); print(later")
    status, out, err = script(source).end()
    logged = "lost r: the lease expired"  # by the thread of notifications, before or after the text of the exit
    assert (status, out) == (ends[0], "out")
    assert "\n".join(line for line in err.splitlines() if line != logged) == ends[1]
    nodes.no_keys()


def test_sys_exit_in_on_lost_of_asyncio_ends_the_loop(script, nodes):
    source = f"""
import asyncio, sys
from libredlock import aio
async def main():
    async with aio.Client(**{GENEROUS_TIMEOUTS}) as client:
        await client.lock("r", **{lapsing(0.4)}, on_lost=lambda lock: sys.exit(3)).acquire()
        lock = client.lock("s", **{lapsing(0.4)}, on_lost=lambda lock: sys.exit(3))
        await lock.acquire()
        await asyncio.sleep(600)
asyncio.run(main())
"""
    assert script(source).end()[0] == 3


def test_an_async_on_lost_is_awaited(nodes, run, caplog):
    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            lost = asyncio.get_running_loop().create_future()

            async def on_lost(lock):
                await asyncio.sleep(0)
                lost.set_result(lock)
                raise KeyError("mine")

            lock = client.lock("r", **lapsing(0.4), on_lost=on_lost)
            hold = await lock.acquire()
            assert await lost is hold
            await asyncio.sleep(0)

    run(main())
    assert [r for r in caplog.records if "on_lost of 'r' failed" in r.getMessage() and r.exc_info[0] is KeyError]


def test_the_blocking_client_refuses_an_async_on_lost(client):
    async def on_lost(lock):
        pass

    with pytest.raises(TypeError, match="on_lost=.* is async: use libredlock.aio"):
        client.lock("r", on_lost=on_lost)


def test_concurrent_first_locks_start_one_thread(script, nodes):
    source = f"""
import sys, threading
import libredlock
sys.setswitchinterval(1e-5)
clients = [libredlock.Client(**{GENEROUS_TIMEOUTS}) for _ in range(20)]
begin, failures = threading.Barrier(20), []
threading.excepthook = lambda failure: failures.append(failure)
def work(client):
    begin.wait()
    client.lock(str(id(client))).acquire().release()
threads = [threading.Thread(target=work, args=(client,)) for client in clients]
for thread in threads: thread.start()
for thread in threads: thread.join()
print([thread.name for thread in threading.enumerate()], failures)
"""
    for _ in range(3):
        assert script(source).end() == (0, "['MainThread', 'libredlock'] []", "")


def test_the_thread_ends_with_the_last_client(nodes, script):
    source = f"""
import threading
import libredlock
from libredlock.testing import eventually
for _ in range(3):
    with libredlock.Client(**{GENEROUS_TIMEOUTS}) as client, libredlock.Client(**{GENEROUS_TIMEOUTS}) as other:
        client.lock("r").acquire(), other.lock("s").acquire()
        assert threading.active_count() == 2
    eventually(lambda: threading.active_count() == 1, 30)
"""
    assert script(source).end() == (0, "", "")


def test_a_fork_in_c_is_noticed(script, nodes):
    """As uWSGI forks: none of Python's hooks runs in the child. So no other thread may wait for the GIL just then: the
    child would inherit its place in a condition variable, and hang in CPython. On a late machine one may have begun to
    wait after the look; then another child is forked."""
    source = f"""
import ctypes, os, threading, time
import libredlock
from libredlock.testing import eventually

def others_wait_for_the_gil():
    others = set(os.listdir("/proc/self/task")) - {{str(os.getpid())}}
    return any("futex" in open(f"/proc/self/task/{{other}}/wchan").read() for other in others)

client = libredlock.Client(**{GENEROUS_TIMEOUTS})
lock = client.lock("parent's", ttl=30)
lock.acquire()
def fork():
    lock.extend()
    eventually(lambda: not others_wait_for_the_gil(), 30)
    return ctypes.PyDLL(None).fork()
def has_ended(pid):
    try:
        return eventually(lambda: os.waitpid(pid, os.WNOHANG)[0], 15)
    except AssertionError:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
for _ in range(3):
    pid = fork()
    if pid == 0 or has_ended(pid):
        break
if pid == 0:
    try:
        lost = threading.Event()
        own = client.lock("r", **{lapsing(0.4)}, on_lost=lambda lock: lost.set())
        own.acquire()
        print(lost.wait(60), lock.locked(), flush=True)
        try:
            lock.release()
        except libredlock.Forked:
            print("forked", flush=True)
    finally:
        os._exit(0)
lock.check()
lock.release()
"""
    assert script(source).end()[:2] == (0, "True False\nforked")
    nodes.no_keys()

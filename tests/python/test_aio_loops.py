"""Event loops of asyncio: several with one client, those that end, and a client that closes."""

import asyncio
import gc
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

import libredlock
from libredlock import aio
from libredlock._core import lib
from libredlock.testing import eventually
from patience import GENEROUS_TIMEOUTS, lapsing, until
from steps import at_each_step


def test_two_loops_share_a_client_and_its_locks(nodes):
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    try:
        lock = client.lock("r")
        first.run_until_complete(lock.acquire())
        assert second.run_until_complete(client.lock("other").acquire(timeout=20))
        assert second.run_until_complete(lock.acquire(timeout=0.01)) is False
        first.run_until_complete(lock.release())
        second.run_until_complete(lock.acquire())
        first.run_until_complete(lock.release())
        first.run_until_complete(client.close())
    finally:
        first.close()
        second.close()
    nodes.no_keys()


@pytest.fixture
def two_loops():
    """One to run, and one that runs in another thread."""
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    thread = threading.Thread(target=second.run_forever)
    thread.start()
    yield first, second
    second.call_soon_threadsafe(second.stop)
    thread.join()
    for loop in first, second:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def test_two_loops_may_extend_one_hold_at_the_same_time(nodes, two_loops):
    first, second = two_loops
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    hold = first.run_until_complete(client.lock("r", ttl=30).take(timeout=20))

    def extend(_):
        return first.run_until_complete(asyncio.wait_for(hold.extend(), 20))

    def begin_to_extend(_):
        theirs = asyncio.run_coroutine_threadsafe(hold.extend(), second)
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), second).result()
        return theirs

    for left, theirs in at_each_step(aio.Client._begin, lambda: None, extend, begin_to_extend):
        assert left > 0 and theirs.result(20) > 0
    first.run_until_complete(client.close())


@pytest.mark.parametrize("is_quick", [True, False])
def test_a_client_may_be_closed_whenever_another_loop_acquires(nodes, two_loops, is_quick):
    """Wholly, or until it has cancelled what waits."""
    first, _ = two_loops

    class Client(aio.Client):
        def __init__(self):
            super().__init__(nodes.urls, **GENEROUS_TIMEOUTS)
            self.has_cancelled, self.goes_on = threading.Event(), threading.Event()

        def _take_handle(self):
            self.has_cancelled.set()
            assert is_quick or self.goes_on.wait(60)
            return super()._take_handle()

    def acquire(client):
        try:
            return first.run_until_complete(asyncio.wait_for(client.lock("r").take(), 20))
        finally:
            client.goes_on.set()

    def close(client):
        closing = pool.submit(lambda: asyncio.run(client.close()))
        assert client.has_cancelled.wait(60)
        return closing.result(60) if is_quick else closing

    with ThreadPoolExecutor(1) as pool:
        for came_to, closing in at_each_step(aio.Client._begin, Client, acquire, close):
            ended = isinstance(came_to, (libredlock.Cancelled, libredlock.Closed))
            assert ended or came_to.loss == "closed", came_to  # a grant that came before the close is lost with it
            assert (closing if is_quick else closing.result(60)) is None


def in_loops_of_threads(count, main):
    """Runs main(number) in as many threads, each with an event loop of its own: what each returned."""
    with ThreadPoolExecutor(count) as pool:
        runs = [pool.submit(lambda number=number: asyncio.run(main(number))) for number in range(count)]
        return [run.result(60) for run in runs]


def test_loops_of_many_threads_use_a_client_at_once(nodes):
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    counts = [0] * 3

    async def main(number):
        for turn in range(10):
            async with client.lock(f"r{(number + turn) % 3}") as lock:
                count = counts[(number + turn) % 3]
                await asyncio.sleep(0)
                counts[(number + turn) % 3] = count + 1
                await lock.extend()
        return (await client.status("nobody's")).verdict

    assert in_loops_of_threads(8, main) == ["free"] * 8
    assert sum(counts) == 80
    asyncio.run(client.close())
    nodes.no_keys()


def test_loops_of_many_threads_share_a_lock(nodes):
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    lock, inside = client.lock("r"), []

    async def main(number):
        for _ in range(5):
            async with lock:
                inside.append(number)
                await asyncio.sleep(0)
                assert inside == [number]
                inside.clear()

    in_loops_of_threads(8, main)
    assert not lock.locked()
    asyncio.run(client.close())
    nodes.no_keys()


def test_on_lost_and_cancellation_reach_the_loop_of_the_holder(nodes):
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)

    async def main(number):
        notified = []
        if number == 0:  # another loop, which finds the losses too
            while len(lost) < 3:
                await client.status("other")
            return None
        lock = client.lock(
            f"r{number}",
            **lapsing(0.4),
            renew=False,
            cancel_on_lost=True,
            on_lost=lambda _: notified.append(asyncio.get_running_loop()),
        )
        try:
            async with lock:
                await asyncio.sleep(600)
        except libredlock.Lost:
            lost.append(number)
        return notified == [asyncio.get_running_loop()]

    lost = []
    assert in_loops_of_threads(4, main) == [None, True, True, True]
    asyncio.run(client.close())


def test_loops_that_end_leave_nothing(nodes):
    """Neither descriptors nor connections nor locks, though the client is not closed."""
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)

    async def main(number=0):
        async with client.lock(f"r{number}"):
            pass

    asyncio.run(main())
    before = open_things(nodes)
    for _ in range(5):
        in_loops_of_threads(8, main)
    left = client.lock("left", ttl=30)
    with pytest.warns(ResourceWarning, match="1 locks were held by tasks of .* when it ended"):
        asyncio.run(left.acquire())
    eventually(lambda: no_more_than(before, nodes), 30)
    eventually(lambda: not any(node.get("left") for node in nodes), 30)
    asyncio.run(client.close())
    nodes.no_keys()


def test_on_lost_is_called_if_warnings_are_errors(nodes):
    client, lost = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS), []
    left = client.lock("left", ttl=30, on_lost=lost.append)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        hold = asyncio.run(left.acquire())
    assert lost == [hold]
    asyncio.run(client.close())


def test_loop_closed_early_blocks_no_other(nodes):
    """No asynchronous generators are shut down: whoever waits behind its task finds that out."""
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    lock, loop = client.lock("r", ttl=30), asyncio.new_event_loop()
    loop.run_until_complete(lock.acquire())
    waits = threading.Event()

    async def wait():
        waiting = asyncio.ensure_future(lock.acquire(timeout=20))
        await asyncio.sleep(0)
        waits.set()
        with pytest.warns(ResourceWarning, match="1 locks"):
            assert await waiting
        await lock.release()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: asyncio.run(wait()))
        waits.wait(30)
        loop.close()
        done.result(60)
    asyncio.run(client.close())
    nodes.no_keys()


def test_a_client_moves_on_when_its_loop_was_closed(nodes):
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)

    async def use():
        async with client.lock("r"):
            pass

    for _ in range(3):
        asyncio.run(use())
    asyncio.run(client.close())


def test_a_closed_loop_does_not_poison_the_client(nodes):
    """What its tasks held and waited for ends with it, with a warning: the next loop finds a client as new."""
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    left, busy = client.lock("left", ttl=30), client.lock("left", ttl=30)
    with pytest.warns(ResourceWarning, match="1 locks were held"):
        asyncio.run(left.acquire())
    token = left.token

    async def use():
        assert await busy.acquire(timeout=20)
        assert busy.token != token and not left.locked()
        with pytest.raises(libredlock.Lost) as caught:
            await left.release()
        assert caught.value.reason == "closed"
        await busy.release()
        async with left:
            left.check()

    asyncio.run(use())
    asyncio.run(client.close())
    nodes.no_keys()


def test_other_event_loops_are_refused_in_words(nodes):
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    for refused in client.__aenter__(), client.lock("r").acquire(), client.status("r"):
        with pytest.raises(RuntimeError, match="needs a running asyncio event loop"):
            refused.send(None)
    assert not client.closed


def test_closing_the_loop_with_operations_pending_is_clean(nodes, other, recwarn):
    held = other.lock("r", renew=True)
    held.acquire()
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)

    async def main():
        asyncio.ensure_future(client.lock("r").acquire())
        await until(lambda: client.describe()["waiting"])

    asyncio.run(main())
    loop = asyncio.new_event_loop()
    task = loop.create_task(client.lock("r").acquire())
    loop.run_until_complete(until(lambda: client.describe()["waiting"]))
    loop._ready.clear()
    task._log_destroy_pending = False
    loop.close()
    del task, loop
    gc.collect()
    held.release()
    asyncio.run(client.close())
    nodes.no_keys()


def test_a_wait_of_a_closed_loop_blocks_no_other(nodes, other):
    client, loop = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS), asyncio.new_event_loop()
    with other.lock("r"):
        task = loop.create_task(client.lock("r", ttl=30).acquire())
        loop.run_until_complete(until(lambda: client.describe()["waiting"]))
        loop.close()

    async def main():
        async with client:
            lock = client.lock("r", wait=20)
            assert await lock.acquire()
            await lock.release()

    asyncio.run(main())
    task._log_destroy_pending = False
    nodes.no_keys()


def test_an_extension_ends_with_its_closed_loop(nodes):
    """The lock is that of another loop, whose tasks extend it again."""
    client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    lock, loop, closed = client.lock("r", ttl=30), asyncio.new_event_loop(), asyncio.new_event_loop()
    loop.run_until_complete(lock.acquire())
    for node in nodes:
        node.stop()
    sent = client.describe()["commands"]
    task = closed.create_task(lock.extend())
    closed.run_until_complete(until(lambda: client.describe()["commands"] > sent))
    closed._ready.clear()
    task._log_destroy_pending = False
    closed.close()
    del task, closed

    async def look_for_closed_loops():
        client._bind()

    async def extend():
        sent = client.describe()["commands"]
        extending = asyncio.ensure_future(lock.extend())
        await until(lambda: extending.done() or client.describe()["commands"] > sent)
        for node in nodes:
            node.cont()
        await extending

    asyncio.run(look_for_closed_loops())
    gc.collect()
    for coroutine in extend(), lock.release(), client.close():
        loop.run_until_complete(coroutine)
    loop.close()
    nodes.no_keys()


def test_closing_the_client_cancels_waiters(nodes, run, other):
    held = other.lock("taken", renew=True)
    held.acquire()

    async def main():
        client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
        shared = client.lock("shared")
        await shared.acquire()
        waiting = [client.lock("taken"), shared, shared]
        tasks = [asyncio.ensure_future(lock.acquire()) for lock in waiting]
        await until(lambda: client.describe()["waiting"])
        await client.close()
        await client.close()
        for task in tasks:
            with pytest.raises(libredlock.Cancelled):
                await task
        with pytest.raises(ValueError):
            client.lock("r")

    run(main())
    held.release()
    nodes.no_keys()


def test_closing_the_client_ends_a_block_without_an_error(nodes, run):
    """Its release is in flight: the deletes are sent, and the nodes that hang answer nothing."""

    async def main():
        client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
        leaving = asyncio.Event()

        async def work():
            async with client.lock("r", ttl=30):
                for node in nodes:
                    node.stop()
                leaving.set()

        task = asyncio.ensure_future(work())
        await leaving.wait()
        await asyncio.sleep(0)
        await client.close()
        await task

    run(main())


def open_things(nodes):
    """Descriptors of this process, and connections to each node: a server may notice the end of one late."""
    return [len(os.listdir("/proc/self/fd")), *(len(node.clients()) for node in nodes)]


def no_more_than(before, nodes):
    return all(now <= then for now, then in zip(open_things(nodes), before))


def test_close_that_is_cancelled_closes(nodes, run):
    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            await client.status("r")
        before = open_things(nodes)
        for _ in range(5):
            client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
            await client.status("r")
            closing = asyncio.ensure_future(client.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
        await until(lambda: no_more_than(before, nodes))

    run(main())


def test_close_needs_no_executor(nodes, run):
    """Neither one that has a free thread, nor one that still takes work."""

    async def main():
        blocked = threading.Event()
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            lock = client.lock("r", ttl=30)
            await lock.acquire()
            loop = asyncio.get_running_loop()
            loop.set_default_executor(ThreadPoolExecutor(1))
            busy = loop.run_in_executor(None, blocked.wait)
        nodes.no_keys()
        blocked.set()
        await busy
        client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
        await client.lock("r", ttl=30).acquire()
        await loop.shutdown_default_executor()
        await client.close()
        nodes.no_keys()

    run(main())


def test_a_client_can_be_closed_at_exit(script, nodes):
    source = f"""
import asyncio, atexit
from libredlock import aio
client = aio.Client(**{GENEROUS_TIMEOUTS})
lock = client.lock("r", ttl=30)
loop = asyncio.new_event_loop()
loop.run_until_complete(lock.acquire())
atexit.register(lambda: asyncio.run(client.close()))
"""
    assert script(source).end() == (0, "", "")
    nodes.no_keys()


def test_what_is_begun_while_a_client_is_cancelled_ends(nodes, run, monkeypatch):
    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            hold, begun = await client.lock("r").acquire(), []
            loop, cancel = asyncio.get_running_loop(), lib.redlock_lock_cancel
            first = client._begin(await client.lock("a").acquire(), loop, lib.REDLOCK_EXTEND, 8000)
            client._begin(hold, loop, lib.REDLOCK_EXTEND, 8000)

            def cancel_of(handle):  # and meanwhile, in another loop, the second one ends, and its task releases
                if not begun:
                    client._pending.pop(id(hold))
                    cancel(hold._handle)
                    client._process()
                    begun.append(client._begin(hold, loop, lib.REDLOCK_RELEASE, 0))
                return cancel(handle)

            monkeypatch.setattr(aio.Hold, "_cancel_of", staticmethod(cancel_of))
            client._cancel(None)
            assert (await asyncio.wait_for(begun[0], 30), await first) == (lib.REDLOCK_CANCELLED, lib.REDLOCK_CANCELLED)

    run(main())


def test_dropped_client_warns_and_does_not_stop_the_loop(nodes, run, monkeypatch):
    started, start = [], threading.Thread.start
    gc.collect()  # a client that another case has dropped
    monkeypatch.setattr(threading.Thread, "start", lambda self: (started.append(self.name), start(self)))

    async def main():
        client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
        await client.status("r")
        with pytest.warns(ResourceWarning, match="Client .* was collected without close"):
            del client
            gc.collect()
        assert started == ["libredlock-close"]

    run(main())


def test_clients_that_are_collected_in_a_loop_are_freed_once(script):
    source = """
import asyncio, gc, warnings
from libredlock.testing import AsyncMemoryClient
warnings.simplefilter("ignore")
gc.set_threshold(50, 5, 5)
async def drop():
    client = AsyncMemoryClient()
    await client.lock("r").acquire()
    client.itself = client
for _ in range(600):
    asyncio.run(drop())
"""
    assert script(source).end(200)[0] == 0

"""The asyncio surface."""

import asyncio
import os
import threading

import pytest

import libredlock
from patience import busy_in_task, lapsing, until


def test_a_thousand_tasks_share_a_client(on_client, nodes):
    async def body(client):
        counts = [0] * 50

        async def work(i):
            async with client.lock(f"r{i % 50}"):
                count = counts[i % 50]
                await asyncio.sleep(0)
                counts[i % 50] = count + 1

        await asyncio.gather(*(work(i) for i in range(1000)))
        assert counts == [20] * 50

    on_client(body)
    nodes.no_keys()


def test_tasks_of_one_lock_are_served_in_order(on_client):
    async def body(client):
        lock = client.lock("r")
        await lock.acquire()
        order = []

        async def work(i):
            async with lock:
                order.append(i)

        tasks = [asyncio.ensure_future(work(i)) for i in range(20)]
        await asyncio.sleep(0)
        await lock.release()
        await asyncio.gather(*tasks)
        assert order == list(range(20))

    on_client(body)


def test_the_timeout_covers_the_queue(on_client):
    async def body(client):
        lock = client.lock("r")
        await lock.acquire()
        assert await lock.acquire(timeout=0.05) is False
        assert await lock.acquire(blocking=False) is False
        await lock.release()
        assert await lock.acquire(blocking=False)
        await lock.release()

    on_client(body)


def test_no_operation_starts_a_thread(on_client):
    async def body(client):
        await asyncio.gather(*(client.status(f"r{i}") for i in range(20)))
        before = threading.active_count()
        async with client.lock("r"):
            assert threading.active_count() == before

    on_client(body)


def test_a_lapsed_lock_is_lost(on_client, nodes):
    async def body(client):
        with pytest.raises(libredlock.Lost):
            async with client.lock("r", **lapsing(0.4), renew=False) as lock:
                await until(lambda: lock.lost)
        with pytest.raises(KeyError):
            async with client.lock("r", **lapsing(0.4), renew=False) as lock:
                await until(lambda: lock.lost)
                raise KeyError

    on_client(body)


def test_a_lock_whose_lease_has_ended_can_be_taken_again(on_client, nodes):
    async def body(client):
        lock, holds = client.lock("r", **lapsing(2)), 0
        while holds < 3:
            try:
                assert await lock.acquire(blocking=False)
            except (libredlock.NoQuorum, libredlock.TimedOut):  # the machine was late
                continue
            holds += 1
            await until(lambda: lock.lost)
        async with lock:
            lock.check()
        with pytest.raises(libredlock.NotHeld):
            await lock.release()

    on_client(body)
    nodes.no_keys()


def test_a_task_that_waits_gets_a_lock_whose_lease_has_ended(on_client, nodes):
    async def body(client):
        lock, in_turn, done = client.lock("r", **lapsing(4)), asyncio.Event(), asyncio.Event()

        async def second():
            assert await lock.acquire(timeout=30)
            await lock.extend(30)
            in_turn.set()
            await done.wait()
            lock.check()
            await lock.release()

        await lock.acquire()
        task = asyncio.ensure_future(second())
        await in_turn.wait()
        assert lock.lost and not lock.owned() and lock.remaining == 0
        for call in (lock.extend, lock.release):
            with pytest.raises(libredlock.Lost, match="its lease expired"):
                await call()
        done.set()
        await task
        assert not lock.locked()

    on_client(body)
    nodes.no_keys()


def test_cancel_on_lost_cancels_the_body_at_the_moment_of_loss(on_client, nodes):
    async def body(client):
        with pytest.raises(libredlock.Lost):
            async with client.lock("r", **lapsing(0.4), cancel_on_lost=True):
                for node in nodes:
                    node.stop()
                await asyncio.sleep(600)
        task = asyncio.current_task()
        assert not hasattr(task, "cancelling") or task.cancelling() == 0
        await asyncio.sleep(0)

    on_client(body)


def test_cancel_on_lost_leaves_others_cancellations_alone(on_client, nodes):
    async def body(client):
        inside, lost = asyncio.Event(), asyncio.Event()

        async def job():
            lock = client.lock("r", **lapsing(0.4), renew=False, cancel_on_lost=True)
            async with lock:
                inside.set()
                try:
                    await asyncio.sleep(600)
                finally:
                    lost.set()
                    await asyncio.sleep(600)

        task = asyncio.ensure_future(job())
        await lost.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        task = asyncio.ensure_future(job())
        lost.clear()
        inside.clear()
        await inside.wait()
        task.cancel()
        await lost.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    on_client(body)


def test_cancel_on_lost_lets_an_error_of_the_body_through(on_client):
    async def body(client):
        with pytest.raises(KeyError):
            async with client.lock("r", **lapsing(0.4), renew=False, cancel_on_lost=True):
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    raise KeyError("mine") from None

    on_client(body)


def test_cancel_on_lost_swallowed_by_the_body_still_raises(on_client):
    async def body(client):
        with pytest.raises(libredlock.Lost):
            async with client.lock("r", **lapsing(0.4), renew=False, cancel_on_lost=True):
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    pass
        await asyncio.sleep(0)

    on_client(body)


def test_a_lock_is_handed_to_the_blocking_client_and_back(on_client, client, nodes):
    async def body(mine):
        lock = client.lock("r")
        lock.acquire()
        client.status("r")  # asks every node behind the requests of acquire
        async with mine.adopt("r", lock.detach(), ttl=8) as adopted:
            assert (await mine.status("r")).token == adopted.token
        assert (await mine.status("r")).verdict == "free"
        assert (await mine.check())["voting"] == 5
        await lock_in_turn(mine)

    async def lock_in_turn(mine):
        lock = mine.lock("r")
        await lock.acquire()
        await mine.status("r")
        client.adopt("r", lock.detach()).release()

    on_client(body)
    nodes.no_keys()


def test_extend_beside_release_is_no_misuse(on_client):
    async def body(client):
        lock = client.lock("r", max_extensions=None)
        for _ in range(10):
            await lock.acquire()

            async def extend():
                while True:
                    await lock.extend()

            task = asyncio.ensure_future(extend())
            await asyncio.sleep(0)
            await lock.release()
            with pytest.raises((libredlock.NotHeld, libredlock.Lost)):
                await task

    on_client(body)


def test_a_single_attempt_names_the_holder(on_client, other):
    async def body(client):
        lock = client.lock("r", wait=0)
        failure = await busy_in_task(lock.__aenter__)
        assert failure.held_by.pid == os.getpid()
        assert (await lock.acquire()) is False and not lock.locked()

    with other.lock("r"):
        on_client(body)


def test_with_lock_decorates_functions_and_generators(on_client):
    class Order:
        id = 7

    async def body(client):
        @client.with_lock("order:{order.id}")
        async def function(order):
            return (await client.status("order:7")).verdict

        @client.with_lock("order:{order.id}")
        async def generator(order):
            got = yield 1
            assert got == "x"
            try:
                yield (await client.status("order:7")).verdict
            except KeyError:
                yield "thrown"

        assert await function(Order()) == "held"
        numbers = generator(Order())
        assert await numbers.asend(None) == 1
        assert await numbers.asend("x") == "held"
        assert await numbers.athrow(KeyError()) == "thrown"
        await numbers.aclose()
        assert (await client.status("order:7")).verdict == "free"
        assert [value async for value in generator_of(client)] == [1, 2]

        for plain in (lambda: None, plain_generator):
            with pytest.raises(TypeError, match="not async"):
                client.with_lock("r")(plain)
        with pytest.raises(ValueError, match="nobody"):
            client.with_lock("{nobody}")(function)
        with pytest.raises(TypeError, match="did you mean ttl="):
            client.with_lock("r", tll=1)

    def plain_generator():
        yield

    def generator_of(client):
        @client.with_lock("g")
        async def numbers():
            yield 1
            yield 2

        return numbers()

    on_client(body)


def test_on_busy_skips_or_returns_something_else(on_client, client):
    async def body(mine):
        @mine.with_lock(lambda n: f"r:{n}", on_busy="skip")
        async def skips(n):
            return n

        @mine.with_lock("r:{n}", on_busy=-1)
        async def differs(n):
            return n

        @mine.with_lock("r:{n}", on_busy="skip")
        async def numbers(n):
            yield n

        @mine.with_lock("r:{n}", on_busy="skip")
        async def fails(n):
            raise libredlock.Busy("mine")

        assert (await skips(1), await differs(1), [n async for n in numbers(1)]) == (1, 1, [1])
        with pytest.raises(libredlock.Busy, match="mine"):
            await fails(1)
        with client.lock("r:1"):
            assert (await skips(1), await differs(1), [n async for n in numbers(1)]) == (None, -1, [])
        with pytest.raises(TypeError, match="generator"):
            mine.with_lock("r", on_busy=5)(numbers.__wrapped__)

    on_client(body)


def test_a_held_lock_that_is_collected_warns_and_is_released(on_client, nodes):
    async def body(client):
        lock = client.lock("r")
        await lock.acquire()
        with pytest.warns(ResourceWarning):
            del lock
        await client.status("r")

    on_client(body)
    nodes.no_keys()


def test_bad_arguments_are_refused(on_client):
    async def body(client):
        lock = client.lock("r")
        for arguments in ({"timeout": -2}, {"blocking": False, "timeout": 1}):
            with pytest.raises(ValueError):
                await lock.acquire(**arguments)
        with pytest.raises(OverflowError):
            await lock.acquire(timeout=1e30)
        with pytest.raises(TypeError, match="cancel_on_lost"):
            client.lock("r", cancel_on_lost=1)
        with pytest.raises(TypeError, match="did you mean"):
            client.lock("r", cancel_on_los=1)

    on_client(body)

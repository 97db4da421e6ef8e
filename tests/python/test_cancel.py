"""Cancelling a task at every await point leaves no key, and the Lock can be used again."""

import asyncio

import pytest

from libredlock import aio
from patience import GENEROUS_TIMEOUTS


async def wind(coroutine, turns):
    """Runs a task for some turns of the loop, cancels it and says whether it had ended before."""
    task = asyncio.ensure_future(coroutine)
    for _ in range(turns):
        await asyncio.sleep(0)
    ended = task.done()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
    return ended


async def cycle(lock):
    async with lock:
        await asyncio.sleep(0)
        await lock.extend()


async def plain(lock):
    await lock.acquire()
    try:
        await lock.extend()
    finally:
        await lock.release()


async def block_of_a_hold(lock):
    async with await lock.take():
        await asyncio.sleep(0)


@pytest.mark.parametrize("body", [cycle, plain, block_of_a_hold])
def test_a_cancel_at_any_turn_of_the_loop_leaves_no_key(nodes, run, body):
    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            async with client.lock("warm"):
                pass
            lock = client.lock("r", ttl=8)
            turns, ended = 0, 0
            while ended < 20:
                ended += await wind(body(lock), turns)
                turns += 1
                assert not lock.locked() and not lock.owned()
                await free(client)
            assert turns > 20
            async with lock:
                pass

    async def free(client):
        while (await client.status("r")).verdict != "free":
            pass

    run(main())
    nodes.no_keys()


def test_a_cancel_while_others_hold_it_leaves_no_key(nodes, run, other):
    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            for turns in range(0, 60, 3):
                await wind(client.lock("r").acquire(), turns)
            waiting = asyncio.ensure_future(client.lock("r").acquire())
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    held = other.lock("r", renew=True)
    held.acquire()
    run(main())
    held.release()
    nodes.no_keys()


def test_a_cancel_in_the_queue_lets_the_next_task_in(nodes, run):
    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            lock = client.lock("r")
            await lock.acquire()
            tasks = [asyncio.ensure_future(lock.acquire()) for _ in range(3)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            tasks[1].cancel()
            await lock.release()
            assert await tasks[2]
            await lock.release()
            for task in tasks[:2]:
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert await lock.acquire(blocking=False)
            await lock.release()

    run(main())
    nodes.no_keys()


def test_a_grant_that_has_just_come_is_given_back(nodes, run):
    """The operation has ended well but the task has not run since: the grant is given back."""

    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            async with client.lock("warm"):
                pass
            hits = 0
            for _ in range(50):
                lock = client.lock("r")
                task = asyncio.ensure_future(lock.acquire())
                while "redlock_locks_held 0\n" in client.metrics() and not task.done():
                    await asyncio.sleep(0)
                hits += not task.done()
                task.cancel()
                try:
                    if await task:
                        await lock.release()
                except asyncio.CancelledError:
                    assert not lock.owned() and not lock.locked()
            return hits

    assert run(main()) > 0
    nodes.no_keys()

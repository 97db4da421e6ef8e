"""Uses of the package with hints: checked by mypy --strict and pyright, and run."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import AsyncIterator, Dict, Generator, Iterator, List

import libredlock
from libredlock import aio


class Order:
    def __init__(self, id: int) -> None:
        self.id = id


def synchronous() -> None:
    with libredlock.Client(ttl=10, wait=5, retry_delay=0.1, node_timeout="auto") as client:
        lock: libredlock.Lock = client.lock("orders:42", ttl=timedelta(seconds=5))
        with lock as hold:
            token: str = hold.token
            left: float = hold.remaining
            votes: Dict[str, libredlock.Vote] = hold.votes
            assert token and left and len(votes) == 5
            longer: float = hold.extend(8)
            assert longer > 0
            hold.check()
        got = lock.acquire(timeout=0.5)
        assert got
        client.adopt("orders:42", got.detach()).release()
        taken: libredlock.Hold = lock.take()
        taken.release()
        report: libredlock.Report = client.status("orders:42")
        assert report.verdict == "free"
        events: List[Dict[str, object]] = list(client.events())
        assert isinstance(events, list)

        @client.with_lock("order:{order.id}", max_hold=60)
        def handle(order: Order, dry: bool = False) -> int:
            return order.id

        @client.with_lock("numbers")
        def numbers() -> Iterator[int]:
            yield from range(3)

        @client.with_lock("numbers", on_busy="skip")
        def none() -> Generator[int, None, None]:
            yield from ()

        for never in none():
            never.bit_length()
        number: int = handle(Order(7), dry=True)
        assert number == 7 and list(numbers()) == [0, 1, 2]
        lost: List[libredlock.Hold] = []
        with client.lock("orders:42", on_lost=lost.append):
            pass
        try:
            with client.lock("orders:42", wait=0), client.lock("orders:42", wait=0):
                pass
        except libredlock.Busy as busy:
            status: libredlock.Status = busy.status
            assert status is libredlock.Status.BUSY


async def asynchronous() -> None:
    async with aio.Client(wait=5) as client:
        lock: aio.Lock = client.lock("orders:42", cancel_on_lost=True)
        async with lock as hold:
            await hold.extend(timedelta(seconds=5))
            hold.check()
        got = await lock.acquire(timeout=0.5)
        assert got
        await client.adopt("orders:42", got.detach()).release()
        report: libredlock.Report = await client.status("orders:42")
        assert report.remaining is None

        @client.with_lock("order:{order.id}")
        async def handle(order: Order) -> int:
            return order.id

        @client.with_lock("numbers")
        async def numbers() -> AsyncIterator[int]:
            for number in range(3):
                yield number

        @client.with_lock("numbers", on_busy="skip")
        async def one() -> AsyncIterator[int]:
            yield 1

        async with contextlib.AsyncExitStack() as stack:
            entered: aio.Hold = await stack.enter_async_context(lock)
            assert entered.owned() and [number async for number in one()] == [1]

        number: int = await handle(Order(7))
        assert number == 7 and [n async for n in numbers()] == [0, 1, 2]


if __name__ == "__main__":
    synchronous()
    asyncio.run(asynchronous())

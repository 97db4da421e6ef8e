"""Programs that type checkers have to refuse, each in the line that says so. Never run."""

from __future__ import annotations

from typing import Optional, Tuple

import libredlock
from libredlock import aio
from libredlock.types import LockOptions

client = libredlock.Client()
aclient = aio.Client()

fine: LockOptions = {"ttl": 3.0, "wait": None, "renew": True}
wrong: LockOptions = {"tll": 3.0}  # mistake
client.lock("r", **fine)
client.lock("r", ttl="10")  # mistake
client.lock("r", ttl_ms=10)  # mistake


class Mine(libredlock.Client):
    mark = 1


with Mine() as mine:
    print(mine.mark)


@client.with_lock("a")
def plain(n: int, dry: bool = False) -> str:
    return str(n)


@client.with_lock("a", on_busy="skip")
def skipped(n: int) -> str:
    return str(n)


@client.with_lock(lambda n: f"r:{n}", on_busy=404)
def answered(n: int) -> str:
    return str(n)


def host(busy: libredlock.Busy) -> int:
    return busy.held_by.pid if busy.held_by else 0


@client.with_lock(["a:{n}", b"b"], on_busy=host)
def told(n: int) -> str:
    return str(n)


@client.with_lock("a", hold="hold")
def with_hold(n: int, hold: libredlock.Hold) -> str:
    return hold.token


told(1).upper()  # mistake
with_hold(1).upper()
with_hold(1).uper()  # mistake
client.with_lock("a", hold=5)  # mistake
client.with_lock("a", reentrant="yes")  # mistake
client.lock("a", reentrant=True)  # mistake
said: str = plain(1, dry=True)
perhaps: Optional[str] = skipped(1)
sure: str = skipped(1)  # mistake
either: "str | int" = answered(1)
plain("1")  # mistake
skipped("1")  # mistake


@client.with_lock("a")
async def wrong_colour(n: int) -> None:
    pass


@client.with_lock("a", on_busy="skip")
async def wrong_colour_too(n: int) -> None:
    pass


@aclient.with_lock("a")
async def awaited(n: int) -> str:
    return str(n)


@aclient.with_lock("a", on_busy="skip")
async def perhaps_awaited(n: int) -> str:
    return str(n)


async def later(busy: libredlock.Busy) -> int:
    return 1


@aclient.with_lock("a", on_busy=later)
async def told_later(n: int) -> str:
    return str(n)


@aclient.with_lock("a", hold="hold")
async def awaited_with_hold(n: int, hold: aio.Hold) -> str:
    return hold.token


async def use() -> Tuple[str, Optional[str]]:
    await wrong_colour(1)  # mistake
    await wrong_colour_too(1)  # mistake
    await awaited("1")  # mistake
    never: str = await told_later(1)  # mistake
    number: "str | int" = await told_later(1)
    awaited_with_hold(1).upper()  # mistake
    print(never, number, (await awaited_with_hold(1)).upper())
    short: str = await perhaps_awaited(1)  # mistake
    print(short)
    return await awaited(1), await perhaps_awaited(1)


@aclient.with_lock("a")  # mistake
def not_async(n: int) -> None:
    pass


@aclient.with_lock("a", on_busy=5)  # mistake
def not_async_too(n: int) -> None:
    pass


aclient.lock("r").release()  # mistake
aclient.with_lock("a", on_bussy="skip")  # mistake
client.lock("r", on_lost=5)  # mistake
client.lock("r", cancel_on_lost=True)  # mistake


async def habits(other: libredlock.aio.Client, memory: libredlock.testing.MemoryClient) -> None:
    lock = other.lock("r")
    lock.acquire()  # mistake
    lock.take()  # mistake
    with lock:  # mistake
        pass
    async with memory.lock("r"):  # mistake
        pass
    hold = await lock.take()
    hold.release()  # mistake
    hold.acquire()  # mistake
    libredlock.aio.Clent()  # mistake
    libredlock.testing.MemoryClent()  # mistake
    got = await lock.acquire()
    got.extend(5)  # mistake
    if got:
        await got.extend(5)
    for term in other.election("r"):  # mistake
        print(term)
    async for led in other.election("r"):
        async with led as again:
            print(again.fence + 1, led.lost)

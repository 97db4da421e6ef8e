#!/usr/bin/env python3
"""What the package costs over the thinnest program of the same runtime on the same client, as one line of JSON.

Chunks of both take turns in one process, and each pair of chunks gives one difference; bench/python.py calls it.
    python bench/python_over.py SHAPE NODES [MILLISECONDS]
SHAPE: blocking; with (a new lock each, over calls on a new handle each); aio, aio-with and uvloop, uvloop-with.
"""

import asyncio
import gc
import json
import statistics
import sys
import time

import libredlock
from libredlock import aio
from libredlock._core import ffi, lib

CHUNK = 20
RESOURCE = "bench:over"
NAME = RESOURCE.encode()
WAIT_OPTION = -2


def per_cycle_us(begin_ns, begin_cpu_ns):
    """Wall and CPU time of a chunk."""
    end_ns, end_cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
    return (end_ns - begin_ns) / CHUNK / 1000, (end_cpu_ns - begin_cpu_ns) / CHUNK / 1000


def checked(status):
    if status:
        raise RuntimeError(ffi.string(lib.redlock_status_name(status)).decode())


# ---- blocking ---------------------------------------------------------------------------------------------------


def bare_blocking(client):
    """Two calls."""
    hold = client.lock(RESOURCE, ttl=10)._new_probe()
    handle, acquire, release = hold._handle, lib.redlock_lock_acquire, lib.redlock_lock_release

    def cycle(keep=hold):
        checked(acquire(handle, WAIT_OPTION))
        checked(release(handle))

    return cycle


def bare_with(client):
    """The same with a handle that is made, set up and freed."""
    handle = client._handle

    def cycle():
        lock = lib.redlock_lock_new(handle, NAME, len(NAME))
        checked(lib.redlock_lock_set(lock, b"ttl_ms", b"10000"))
        checked(lib.redlock_lock_set(lock, b"renew", b"true"))
        checked(lib.redlock_lock_acquire(lock, WAIT_OPTION))
        checked(lib.redlock_lock_release(lock))
        lib.redlock_lock_free(lock)

    return cycle


def our_blocking(client):
    lock = client.lock(RESOURCE, ttl=10)

    def cycle():
        lock.acquire()
        lock.release()

    return cycle


def our_with(client):
    def cycle():
        with client.lock(RESOURCE, ttl=10):
            pass

    return cycle


def blocking(nodes, pairs, bare, ours):
    def chunk(cycle):
        begin_ns, begin_cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
        for _ in range(CHUNK):
            cycle()
        return per_cycle_us(begin_ns, begin_cpu_ns)

    with libredlock.Client(nodes) as client:
        client.status(RESOURCE)
        bare, ours = bare(client), ours(client)
        while pairs.wants_more():
            pairs.add(chunk, bare, ours)


# ---- asyncio ----------------------------------------------------------------------------------------------------


class Bare:
    """One future, one reader, no bookkeeping: one operation of the client is in flight at a time."""

    def __init__(self, client, loop):
        self.client, self.loop, self.ended = client._handle, loop, None
        self.tag = ffi.new("uint64_t *")
        loop.add_reader(lib.redlock_client_fd(self.client), self.readable)

    def readable(self):
        found = lib.redlock_client_advance(self.client, self.tag)
        while found:
            self.ended.set_result(lib.redlock_lock_status(self.lock))
            found = lib.redlock_client_next(self.client, self.tag)

    async def cycle(self):
        for operation, argument in ((lib.REDLOCK_ACQUIRE, WAIT_OPTION), (lib.REDLOCK_RELEASE, 0)):
            self.ended = self.loop.create_future()
            checked(lib.redlock_lock_start(self.lock, operation | lib.REDLOCK_AT_ONCE, argument))
            checked(await self.ended)

    async def new_cycle(self):
        self.lock = lib.redlock_lock_new(self.client, NAME, len(NAME))
        checked(lib.redlock_lock_set(self.lock, b"ttl_ms", b"10000"))
        checked(lib.redlock_lock_set(self.lock, b"renew", b"true"))
        await self.cycle()
        lib.redlock_lock_free(self.lock)


async def in_loop(nodes, pairs, is_new):
    async def chunk(cycle):
        begin_ns, begin_cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
        for _ in range(CHUNK):
            await cycle()
        return per_cycle_us(begin_ns, begin_cpu_ns)

    async def cycle():
        await lock.acquire()
        await lock.release()

    async def new_cycle():
        async with client.lock(RESOURCE, ttl=10):
            pass

    loop = asyncio.get_running_loop()
    with libredlock.Client(nodes) as plain:
        plain.status(RESOURCE)
        bare, kept = Bare(plain, loop), plain.lock(RESOURCE, ttl=10)._new_probe()
        bare.lock = kept._handle
        async with aio.Client(nodes) as client:
            lock = client.lock(RESOURCE, ttl=10)
            await client.status(RESOURCE)
            while pairs.wants_more():
                await pairs.add_awaited(chunk, *((bare.new_cycle, new_cycle) if is_new else (bare.cycle, cycle)))
        loop.remove_reader(lib.redlock_client_fd(plain._handle))


# ---- pairs ------------------------------------------------------------------------------------------------------


class Pairs:
    """Chunks of the bare program and of ours, in turns; the first ones are a warm-up."""

    def __init__(self, milliseconds):
        self.end_s = time.perf_counter() + milliseconds / 1000
        self.warm = 5
        self.pairs = []

    def wants_more(self):
        return self.warm > 0 or not self.pairs or time.perf_counter() < self.end_s

    def add(self, chunk, bare, ours):
        first, second = (bare, ours) if len(self.pairs) % 2 else (ours, bare)
        self.keep(first is bare, chunk(first), chunk(second))

    async def add_awaited(self, chunk, bare, ours):
        first, second = (bare, ours) if len(self.pairs) % 2 else (ours, bare)
        self.keep(first is bare, await chunk(first), await chunk(second))

    def keep(self, is_bare_first, one, other):
        if self.warm > 0:
            self.warm -= 1
            return
        self.pairs.append((one, other) if is_bare_first else (other, one))

    def print(self):
        cost_us, cpu_cost_us = (
            statistics.median(ours[what] - bare[what] for bare, ours in self.pairs) for what in (0, 1)
        )
        bare_us, mine_us = (statistics.median(figures[0] for figures in side) for side in zip(*self.pairs))
        figures = {"cost_us": cost_us, "cpu_cost_us": cpu_cost_us, "bare_us": bare_us, "mine_us": mine_us}
        print(json.dumps({**figures, "pairs": len(self.pairs)}))


def main():
    shape, nodes, milliseconds = sys.argv[1], sys.argv[2], float((sys.argv[3:] or ["1000"])[0])
    pairs = Pairs(milliseconds)
    gc.collect()
    gc.freeze()
    if shape == "blocking":
        blocking(nodes, pairs, bare_blocking, our_blocking)
    elif shape == "with":
        blocking(nodes, pairs, bare_with, our_with)
    else:
        if shape.startswith("uvloop"):
            import uvloop

            asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
        asyncio.run(in_loop(nodes, pairs, shape.endswith("-with")))
    pairs.print()


if __name__ == "__main__":
    main()

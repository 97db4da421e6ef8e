#!/usr/bin/env python3
"""One program of the Python rows of the bench: runs cycles of one shape and prints figures as one line of JSON."""
import argparse
import asyncio
import json
import os
import resource
import statistics
import threading
import time
from urllib.parse import urlsplit


class Figures:
    """Latencies of cycles; the first ones are a warm-up."""

    def __init__(self, milliseconds, warm):
        self.left = warm
        self.milliseconds = milliseconds
        self.latencies_ns = []
        self.failed = 0
        self.begin_ns = self.end_ns = 0
        self.begin_cpu_s = 0.0

    def next(self):
        """May another cycle start?"""
        if self.left > 0:
            self.left -= 1
            return True
        if not self.begin_ns:
            self.begin_cpu_s = cpu_s()
            self.begin_ns = time.perf_counter_ns()
            self.end_ns = self.begin_ns + self.milliseconds * 1_000_000
        return time.perf_counter_ns() < self.end_ns

    def add(self, begin_ns):
        if self.begin_ns and begin_ns >= self.begin_ns:
            self.latencies_ns.append(time.perf_counter_ns() - begin_ns)

    def print(self):
        wall_s = (time.perf_counter_ns() - self.begin_ns) / 1e9
        count = len(self.latencies_ns)
        print(json.dumps({"cycles": count, "failed": self.failed, "cycles_per_s": count / wall_s,
                          "p50_us": statistics.median(self.latencies_ns or [0]) / 1000,
                          "cpu_us": (cpu_s() - self.begin_cpu_s) * 1e6 / max(count, 1)}))


def in_threads(figures, count, make):
    """Each thread runs its own cycle; make(i) gives it."""

    def work(cycle):
        while figures.next():
            begin_ns = time.perf_counter_ns()
            try:
                cycle()
            except Exception:  # a peer's failure is a figure too
                figures.failed += 1
            else:
                figures.add(begin_ns)

    cycles = [make(i) for i in range(count)]
    if count == 1:
        return work(cycles[0])
    threads = [threading.Thread(target=work, args=(cycle,)) for cycle in cycles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def in_tasks(figures, count, make):
    async def work(cycle):
        while figures.next():
            begin_ns = time.perf_counter_ns()
            try:
                await cycle()
            except Exception:
                figures.failed += 1
            else:
                figures.add(begin_ns)

    await asyncio.gather(*[work(make(i)) for i in range(count)])


# ---- libredlock -------------------------------------------------------------------------------------------------


def blocking(figures, urls, count):
    import libredlock

    def make(i):
        lock = client.lock(f"bench:{i}", ttl=10)

        def cycle():
            lock.acquire()
            lock.release()

        return cycle

    with libredlock.Client(urls) as client:
        in_threads(figures, count, make)


def with_block(figures, urls, count):
    import libredlock

    def make(i):
        def cycle():
            with client.lock(f"bench:{i}", ttl=10):
                pass

        return cycle

    with libredlock.Client(urls) as client:
        in_threads(figures, count, make)


def aio(figures, urls, count):
    from libredlock import aio

    async def main():
        def make(i):
            lock = client.lock(f"bench:{i}", ttl=10)

            async def cycle():
                await lock.acquire()
                await lock.release()

            return cycle

        async with aio.Client(urls) as client:
            await in_tasks(figures, count, make)

    asyncio.run(main())


def uvloop(figures, urls, count):
    import uvloop

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    aio(figures, urls, count)


def one_object(figures, urls, count):
    """All threads, or the only one, share a lock object, with no time inside."""
    import libredlock

    with libredlock.Client(urls) as client:
        lock = client.lock("bench", ttl=10)

        def cycle():
            lock.acquire()
            lock.release()

        in_threads(figures, count, lambda i: cycle)


def with_one_object(figures, urls, count):
    import libredlock

    with libredlock.Client(urls) as client:
        lock = client.lock("bench", ttl=10)

        def cycle():
            with lock:
                pass

        in_threads(figures, count, lambda i: cycle)


def aio_one_object(figures, urls, count):
    from libredlock import aio

    async def main():
        async with aio.Client(urls) as client:
            lock = client.lock("bench", ttl=10)

            async def cycle():
                await lock.acquire()
                await lock.release()

            await in_tasks(figures, count, lambda i: cycle)

    asyncio.run(main())


def idle(figures, urls, count):
    """Held and renewed locks without any calls: the share of a core."""
    import libredlock

    with libredlock.Client(urls, ttl=10, renew=True) as client:
        locks = [client.lock(f"idle:{i}") for i in range(count)]
        for lock in locks:
            lock.acquire()
        before, begin = cpu_s(), time.perf_counter()
        time.sleep(figures.milliseconds / 1000)
        share = (cpu_s() - before) / (time.perf_counter() - begin)
        print(json.dumps({"share_of_core": share, "lost": sum(not lock.owned() for lock in locks)}))
        for lock in locks:
            lock.release()


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory(figures, urls, count):
    """What `import libredlock` adds to a process that has cffi's runtime and threading."""
    import _cffi_backend  # noqa: F401

    before = rss_mb()
    import libredlock  # noqa: F401

    print(json.dumps({"import_mb": rss_mb() - before}))


def rss_mb():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


# ---- peers ------------------------------------------------------------------------------------------------------


def addresses(urls):
    return [(part.hostname, part.port) for part in map(urlsplit, urls)]


def redlock_py(figures, urls, count):
    from redlock import Redlock

    def make(i):
        manager = Redlock([{"host": host, "port": port} for host, port in addresses(urls)])

        def cycle():
            lock = manager.lock(f"bench:{i}", 10000)
            if not lock:
                raise RuntimeError("not locked")
            manager.unlock(lock)

        return cycle

    in_threads(figures, count, make)


def pottery(figures, urls, count):
    from pottery import Redlock
    from redis import Redis

    masters = {Redis(host=host, port=port) for host, port in addresses(urls)}

    def make(i):
        lock = Redlock(key=f"bench:{i}", masters=masters, auto_release_time=10)

        def cycle():
            if not lock.acquire():
                raise RuntimeError("not locked")
            lock.release()

        return cycle

    in_threads(figures, count, make)


def redlock_ng(figures, urls, count):
    from redlock import AsyncRedlock, RedlockConfig

    async def main():
        manager = AsyncRedlock(RedlockConfig(masters=list(urls), socket_timeout=5, socket_connect_timeout=5))

        def make(i):
            async def cycle():
                lock = await manager.acquire(f"bench:{i}", 10000)
                if not lock:
                    raise RuntimeError("not locked")
                await manager.release(lock)

            return cycle

        await in_tasks(figures, count, make)

    asyncio.run(main())


def aioredlock(figures, urls, count):
    from aioredlock import Aioredlock

    async def main():
        manager = Aioredlock([{"host": host, "port": port} for host, port in addresses(urls)])

        def make(i):
            async def cycle():
                await manager.unlock(await manager.lock(f"bench:{i}", lock_timeout=10))

            return cycle

        await in_tasks(figures, count, make)
        await manager.destroy()

    asyncio.run(main())


def redis_py(figures, urls, count):
    """A lock on one node alone: less work than any of the others does."""
    from redis.asyncio import Redis

    async def main():
        redis = Redis.from_url(urls[0])

        def make(i):
            lock = redis.lock(f"bench:{i}", timeout=10, thread_local=False)

            async def cycle():
                await lock.acquire()
                await lock.release()

            return cycle

        await in_tasks(figures, count, make)
        await redis.aclose()

    asyncio.run(main())


SHAPES = {shape.__name__.replace("_", "-"): shape for shape in (
    blocking, with_block, aio, uvloop, one_object, with_one_object, aio_one_object, idle, memory, redlock_py,
    pottery, redlock_ng, aioredlock, redis_py)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=list(SHAPES))
    parser.add_argument("--nodes", required=True, help="URLs, separated by commas")
    parser.add_argument("--in-flight", type=int, default=1, metavar="N")
    parser.add_argument("--milliseconds", type=int, default=1000, metavar="MS")
    parser.add_argument("--warm", type=int, default=300, metavar="N", help="cycles before the measurement")
    options = parser.parse_args()
    figures = Figures(options.milliseconds, options.warm)
    SHAPES[options.shape](figures, options.nodes.split(","), options.in_flight)
    if figures.begin_ns:
        figures.print()


if __name__ == "__main__":
    main()

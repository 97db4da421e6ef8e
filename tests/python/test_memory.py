"""Collection, cycles, copies, leaks."""

import copy
import gc
import os
import pickle
import tracemalloc
import weakref

import pytest

import libredlock
from libredlock import aio
from patience import GENEROUS_TIMEOUTS


def rss_kb():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def test_a_held_lock_that_is_collected_warns_and_is_released(client, nodes):
    lock = client.lock("r")
    lock.acquire()
    with pytest.warns(ResourceWarning, match="'r'"):
        del lock
    nodes.no_keys()


def test_a_detached_or_released_lock_is_collected_in_silence(client, nodes, recwarn):
    lock = client.lock("r")
    lock.acquire()
    lock.release()
    lock.acquire()
    client.status("r")
    token = lock.detach()
    del lock
    gc.collect()
    assert not [w for w in recwarn if w.category is ResourceWarning]
    assert client.status("r").token == token
    client.adopt("r", token).release()


def test_there_are_no_reference_cycles(nodes, run):
    gc.collect()
    gc.disable()
    try:
        client = libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS)
        lock = client.lock("r")
        with lock:
            pass
        assert lock.acquire()
        with pytest.raises(libredlock.Busy):
            with client.lock("r", wait=0):
                pass
        lock.release()
        gone = [weakref.ref(lock), weakref.ref(client)]
        client.close()
        del lock, client

        async def use():
            async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
                lock = client.lock("r", cancel_on_lost=True)
                async with lock:
                    pass
                gone.extend([weakref.ref(lock), weakref.ref(client)])

        run(use())
        assert [ref() for ref in gone] == [None] * len(gone)
    finally:
        gc.enable()


def test_an_open_client_is_collected(nodes, run):
    gone = weakref.ref(libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS))
    assert gone() is None

    async def use():
        client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
        async with client.lock("r"):
            pass
        return weakref.ref(client)

    assert run(use())() is None


@pytest.mark.parametrize("module", [libredlock, aio])
def test_copies_and_pickles_are_refused_with_words(nodes, module):
    client = module.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    for thing in (client, client.lock("r")):
        for make in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled or copied"):
                make(thing)


PARTS = 4


def least(grown):
    """Of the parts of a measurement, as if all were like the one that has grown least: what is kept once, as a record
    of the log or an allocator's reserve, is not in all of them; a leak is."""
    return PARTS * min(grown)


def traced_kb():
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 1024


def resident_kb():
    gc.collect()
    return rss_kb()


def grown_kb(work, count):
    """What `count` rounds of work leave behind, by tracemalloc (a tenth of the rounds) and by the resident set."""

    def grown(measure, rounds):
        figures = [measure()]
        for _ in range(PARTS):
            for _ in range(rounds // PARTS):
                work()
            figures.append(measure())
        return least([after - before for before, after in zip(figures, figures[1:])])

    for _ in range(count // 10):
        work()
    tracemalloc.start()
    for _ in range(count // 10):
        work()
    traced = grown(traced_kb, count // 10)
    tracemalloc.stop()
    return traced, grown(resident_kb, count)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_nothing_grows_over_many_cycles(client, other):
    busy = other.lock("busy", renew=True)
    busy.acquire()

    def work():
        with client.lock("r", ttl=8):
            pass

    def fail():
        work()
        with pytest.raises(libredlock.Busy):
            with client.lock("busy", wait=0):
                pass

    traced, resident = grown_kb(work, 20_000)
    assert traced < 64 and resident < 256
    traced, resident = grown_kb(fail, 5_000)
    assert traced < 64 and resident < 256
    busy.release()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_nothing_grows_over_asyncio_cycles(nodes, run):
    async def cycles(client, count):
        for _ in range(count):
            async with client.lock("r", ttl=8):
                pass

    async def grown(client, measure, count):
        figures = [measure()]
        for _ in range(PARTS):
            await cycles(client, count // PARTS)
            figures.append(measure())
        return least([after - before for before, after in zip(figures, figures[1:])])

    async def use():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            await cycles(client, 1_000)
            tracemalloc.start()
            await cycles(client, 100)
            traced = await grown(client, traced_kb, 2_000)
            tracemalloc.stop()
            await cycles(client, 5_000)  # what allocators keep has its size by then
            return traced, await grown(client, resident_kb, 10_000)

    traced, resident = run(use())
    assert traced < 64 and resident < 1024


def test_importing_leaves_heavy_modules_out(script):
    source = """
import sys
if sys.version_info < (3, 11):  # where it is installed, it is imported, and it imports inspect
    try:
        import typing_extensions
    except ImportError:
        pass
before = set(sys.modules)
import libredlock
libredlock.Client()
print([name for name in ("asyncio", "logging", "inspect", "json") if name in sys.modules and name not in before])
"""
    assert script(source).end() == (0, "[]", "")

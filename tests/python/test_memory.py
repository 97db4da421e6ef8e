"""Collection, cycles, copies, leaks."""

import copy
import ctypes
import gc
import pickle
import tracemalloc
import weakref

import pytest

import libredlock
from libredlock import aio
from patience import GENEROUS_TIMEOUTS


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


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


def traced_kb():
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 1024


def allocated_kb():
    """By malloc, in all threads: what Python's own allocator has is traced."""
    gc.collect()
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = Mallinfo
    info = mallinfo()
    return (info.uordblks + info.hblkhd) / 1024


ROUNDS = {allocated_kb: 800, traced_kb: 200}  # tracing is exact, and slow
LEAST_KB = {allocated_kb: 20, traced_kb: 5}  # a leak has 25 kB, or 6: malloc's smallest piece is 32 bytes


def grows(measure, figures):
    """Whether the rounds leave something behind: of four measurements the second least. What is kept or freed once, as
    a record of the log or an allocator's reserve, is in one or two of them; a leak is in all."""
    return sorted(after - before for before, after in zip(figures, figures[1:]))[1] >= LEAST_KB[measure]


@pytest.mark.slow
def test_nothing_grows_over_many_cycles(client, other):
    busy = other.lock("busy", renew=True)
    busy.acquire()

    def work():
        with client.lock("r", ttl=8):
            pass

    def fail():
        with pytest.raises(libredlock.Busy):
            with client.lock("busy", wait=0):
                pass

    def figures(measure, rounds):
        for _ in range(5):
            for number in range(ROUNDS[measure]):
                rounds()
                if number % 10 == 9:
                    client.status("r")  # it awaits every node: nothing is in flight, and never more than ten cycles
            yield measure()

    for rounds in (work, fail):
        allocated = list(figures(allocated_kb, rounds))
        tracemalloc.start()
        traced = list(figures(traced_kb, rounds))
        tracemalloc.stop()
        assert not grows(allocated_kb, allocated) and not grows(traced_kb, traced), (allocated, traced)
    busy.release()


@pytest.mark.slow
def test_nothing_grows_over_asyncio_cycles(nodes, run):
    async def use():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            async def figures(measure):
                for _ in range(5):
                    for number in range(ROUNDS[measure]):
                        async with client.lock("r", ttl=8):
                            pass
                        if number % 10 == 9:
                            await client.status("r")  # as above
                    yield measure()

            allocated = [figure async for figure in figures(allocated_kb)]
            tracemalloc.start()
            traced = [figure async for figure in figures(traced_kb)]
            tracemalloc.stop()
            return allocated, traced

    allocated, traced = run(use())
    assert not grows(allocated_kb, allocated) and not grows(traced_kb, traced), (allocated, traced)


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

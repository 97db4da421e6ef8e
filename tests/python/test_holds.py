"""One lock object that many share: whoever speaks of it means the own hold."""

import asyncio
import contextlib
import contextvars
import gc
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import libredlock
from libredlock import aio
from libredlock.testing import eventually
from patience import GENEROUS_TIMEOUTS, lapsing, until


@pytest.fixture
def threads():
    """Two threads: each runs what it is given, to its end."""
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        yield [lambda call, pool=pool: pool.submit(call).result(60) for pool in (one, two)]


def entered(lock):
    """A request: a generator that goes on in whichever thread calls it, as FastAPI's dependencies do."""
    with lock as hold:
        yield hold


def free(client, resource):
    return client.status(resource).verdict == "free"


def alone_holds(nodes, resource, token):
    """Soon: on a node that was slow to get it, the key of the holder before outlasts the lease by the drift."""
    eventually(lambda: {node.get(resource) for node in nodes} - {None} == {token.encode()})


# ---- threads ---------------------------------------------------------------------------------------------------------


def test_two_permits_are_each_left_in_the_others_thread(client, threads, nodes):
    gpu, (one, two) = client.semaphore("gpu", 2, wait=20), threads
    first, second = entered(gpu), entered(gpu)
    slots = [one(lambda: next(first).slot), two(lambda: next(second).slot)]
    assert sorted(slots) == [0, 1]
    two(first.close)
    assert one(lambda: client.lock("gpu", permits=2, slot=slots[0], wait=20).acquire())
    assert client.lock("gpu", permits=2, slot=slots[1]).acquire(blocking=False) is False
    one(second.close)
    assert client.lock("gpu", permits=2, slot=slots[1], wait=20).acquire()


def test_a_lapsed_block_and_the_next_are_left_across_threads(client, threads, nodes):
    lock, (one, two) = client.lock("r", renew=False, **lapsing(4)), threads
    first, second = entered(lock), entered(lock)
    late = one(lambda: next(first))
    eventually(lambda: late.lost)
    two(lambda: next(second).extend(30))
    with pytest.raises(libredlock.Lost):
        two(lambda: next(first, None))
    assert not free(client, "r")
    one(second.close)
    eventually(lambda: free(client, "r"))


def late_and_next(client, threads, **options):
    """What the late holder's hold was, and that of the next, by one object."""
    lock, (one, two) = client.lock("r", **{**lapsing(4), **options}), threads
    late = one(lambda: lock.acquire() and (lock.token, lock.fence))
    eventually(lambda: one(lambda: lock.lost))
    after = two(lambda: lock.acquire(timeout=30) and lock.extend(30) and (lock.token, lock.fence))
    return lock, late, after


def test_a_late_holder_reads_its_own_facts(client, threads):
    lock, late, after = late_and_next(client, threads, fence=True)
    one, two = threads
    assert after[1] > late[1]
    assert one(lambda: (lock.token, lock.fence)) == late and two(lambda: (lock.token, lock.fence)) == after
    assert one(lambda: (lock.owned(), lock.lost, lock.remaining)) == (False, True, 0.0)
    assert two(lambda: (lock.owned(), lock.lost)) == (True, False)
    two(lock.release)


@pytest.mark.parametrize("act", ["release", "detach", "extend", "check", "downgrade"])
def test_a_late_holder_acts_on_its_own_hold(client, threads, nodes, act):
    lock, _, after = late_and_next(client, threads)
    one, two = threads
    with pytest.raises(libredlock.Lost):
        one(getattr(lock, act))
    assert two(lock.owned) and two(lambda: lock.token) == after[0]
    alone_holds(nodes, "r", after[0])
    two(lock.release)
    eventually(lambda: free(client, "r"))


def test_a_late_release_of_an_acquire_elsewhere_spares_the_next(client, threads, nodes):
    """As by to_thread(): the thread that has acquired it is not the one that releases it."""
    lock, (one, two) = client.lock("r", **lapsing(4)), threads
    late = one(lock.acquire)
    eventually(lambda: late.lost)
    after = two(lambda: lock.acquire(timeout=30) and lock.extend(30) and lock.token)
    with pytest.raises(libredlock.RedlockError):
        lock.release()
    with pytest.raises(libredlock.Lost):
        late.release()
    alone_holds(nodes, "r", after)
    two(lock.release)


def outlive_a_lease(client):
    before = client.describe()["renewals"]
    eventually(lambda: client.describe()["renewals"] >= before + 3, 60, "it is renewed each half of its TTL")


def test_a_block_is_renewed_while_another_thread_waits(client, threads):
    lock, (one, two) = client.lock("r", **lapsing(4)), threads
    with ThreadPoolExecutor(1) as pool:
        first = one(lambda: next(kept := entered(lock)) and kept)
        waiting = pool.submit(lock.acquire, timeout=60)
        eventually(lambda: client.describe()["waiting"])
        outlive_a_lease(client)
        assert not waiting.done() and not free(client, "r")
        two(first.close)
        plain = waiting.result(60)
        eventually(lambda: plain.lost)  # it is not renewed


@pytest.mark.parametrize("kind", ["semaphore", "shared"])
def test_an_object_admits_as_many_threads_as_its_kind(client, kind):
    lock = client.semaphore("gpu", 4, wait=60) if kind == "semaphore" else client.lock("gpu", shared=True, wait=60)
    inside, together = threading.Semaphore(0), threading.Barrier(4)

    def work(_):
        with lock as hold:
            assert hold.owned() and lock.owned()
            together.wait(60)
            inside.release()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [None] * 8
    assert not lock.locked()


def test_close_is_a_loss(nodes):
    lost = []
    client = libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    lock = client.lock("r", on_lost=lost.append)
    hold = lock.acquire()
    with pytest.raises(libredlock.Lost) as caught, client.lock("s") as other:
        threading.Thread(target=client.close).start()
        eventually(lambda: lost)
        assert (hold.lost, hold.loss, hold.owned(), hold.remaining) == (True, "closed", False, 0.0)
        assert other.lost and lock.lost and lost == [hold]
    assert caught.value.reason == "closed"
    with pytest.raises(libredlock.Lost):
        hold.check()
    with pytest.raises(libredlock.Lost):
        lock.release()
    with pytest.raises(libredlock.NotHeld):
        lock.release()


def test_a_leader_stops_when_its_client_is_closed(nodes, client):
    closing = libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    led, turns = threading.Event(), []

    def lead():
        for term in closing.election("scheduler"):
            with term:
                led.set()
                end = time.monotonic() + 60
                while not term.lost and time.monotonic() < end:
                    time.sleep(0.001)
                turns.append(term.lost)

    leader = threading.Thread(target=lead, daemon=True)
    leader.start()
    assert led.wait(60)
    closing.close()
    leader.join(60)
    assert turns == [True]


def test_two_threads_on_one_election_are_two_candidates(client):
    election, leading, terms = client.election("scheduler"), [], []

    def stand(_):
        for term in election:
            with term:
                leading.append(term)
                assert leading == [term] and term.owned()
                time.sleep(0.01)
                terms.append(term.fence)
                leading.clear()
            if len(terms) >= 6:
                election.stop()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(stand, range(2)))
    assert terms == sorted(set(terms))


def test_a_term_that_is_over_does_not_come_back(client, nodes):
    kept = []
    election = client.election("scheduler", **lapsing(4))
    for term in election:
        with term:
            kept.append(term)
            if len(kept) == 2:
                assert not kept[0].owned() and kept[0].lost and kept[0].fence < kept[1].fence
                with pytest.raises(libredlock.Lost):
                    kept[0].check()
                election.stop()
                continue
            for node in nodes:
                node.delete_keys()
            eventually(lambda term=term: term.lost)


def test_on_lost_is_called_while_another_thread_waits(client, threads):
    lost, (one, _) = [], threads
    for number in range(4):
        lock = client.lock(f"r{number}", on_lost=lost.append, **lapsing(1))
        one(lock.acquire)
        assert lock.acquire(timeout=60)
        lock.release()
        eventually(lambda number=number: len(lost) == number + 1, 20)


def test_a_hold_is_true_and_a_refusal_false(client):
    lock = client.lock("r", renew=False, **lapsing(0.4))
    hold = lock.acquire()
    assert isinstance(hold, libredlock.Hold) and hold and lock.refused is None
    eventually(lambda: hold.lost)
    assert hold
    with client.lock("s"):
        asks = client.lock("s", wait=0)
        assert asks.acquire() is False
        assert isinstance(asks.refused, libredlock.Busy) and asks.refused.votes
        with pytest.raises(libredlock.Busy):
            asks.take()
    assert asks.take().owned()


def test_the_caller_s_newest_hold_is_meant(client):
    gpu = client.semaphore("gpu", 3)
    older, newer = gpu.acquire(), gpu.acquire()
    assert gpu.slot == newer.slot
    gpu.release()
    assert not newer.locked() and older.owned() and gpu.slot == older.slot
    gpu.release()
    with pytest.raises(libredlock.NotHeld):
        gpu.release()


def test_blocks_of_a_stack_release_their_own_holds(client):
    gpu = client.semaphore("gpu", 3)
    with contextlib.ExitStack() as stack:
        mine = stack.enter_context(gpu)
        with gpu as inner:
            stack.close()
            assert inner.owned() and not mine.locked()
    with gpu as outer:
        with contextlib.ExitStack() as stack:
            stack.enter_context(gpu)
        assert outer.owned()
    assert not gpu.locked()


@pytest.mark.parametrize("has_gil", [True, False])
def test_a_stack_may_be_closed_in_another_thread(client, monkeypatch, has_gil):
    if not has_gil:  # then the frames of a thread that runs may not be read
        monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
        monkeypatch.delattr(sys, "_current_frames")
    gpu = client.semaphore("gpu", 3)
    with ThreadPoolExecutor(1) as pool, gpu as inner:
        stack = contextlib.ExitStack()
        mine = stack.enter_context(gpu)
        pool.submit(stack.close).result()
        assert inner.owned() and not mine.locked()


def test_a_hold_that_was_released_inside_spares_the_outer_one(client):
    gpu = client.semaphore("gpu", 3)
    with gpu as outer:
        with pytest.raises(libredlock.NotHeld):
            with gpu as inner:
                inner.release()
        assert outer.owned()


def test_facts_of_nothing(nodes):
    """Also before the first acquisition."""
    with libredlock.Client(nodes.urls) as client, client.lock("other"):
        for lock in libredlock.Client(nodes.urls).lock("r"), client.lock("r"), client.rlock("r"):
            assert not (lock.owned() or lock.locked() or lock.lost or lock.loss) and lock.remaining == 0.0
            for call in (lock.release, lock.extend, lock.expire, lock.downgrade, lock.detach, lock.check):
                with pytest.raises(libredlock.NotHeld, match="'r' is not held"):
                    call()


def test_another_thread_is_told_who_holds_it(client, threads):
    lock, (one, _) = client.lock("r"), threads
    hold = one(lock.acquire)
    with pytest.raises(libredlock.NotHeld, match=r"ThreadPoolExecutor.* for .* s more; any thread may release"):
        lock.release()
    assert (lock.owned(), lock.lost, lock.remaining, lock.locked()) == (False, False, 0.0, True)
    hold.release()
    for fact in ("token", "fence", "slot"):
        with pytest.raises(libredlock.NotHeld):
            getattr(lock, fact)


def test_a_hold_of_an_ended_thread_passes_on(client):
    lock = client.lock("r")
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    assert lock.owned()
    lock.release()
    assert not lock.locked()


def test_what_ended_stays_ended(client):
    lock = client.lock("r")
    old = lock.acquire()
    lock.release()
    with lock as new:
        for act in (old.release, old.extend, old.expire, old.downgrade, old.detach, old.check):
            with pytest.raises(libredlock.NotHeld):
                act()
        assert not old.owned() and not old.lost and old.loss is None and new.owned()
        assert old.token != new.token


def test_a_hold_is_a_block_that_renews(client):
    with client.lock("r", **lapsing(4)).take() as hold:
        outlive_a_lease(client)
        assert hold.owned()
    assert not hold.locked()


def test_expire_shortens_a_lease(client):
    hold = client.lock("r", ttl=20).acquire()
    assert hold.extend(25) > 20 and 0 < hold.expire(8) <= 8
    hold.release()


def test_a_lock_that_is_dropped_releases_what_nobody_has(client, nodes):
    gc.collect()
    gc.disable()
    try:
        lock = client.lock("r", ttl=20)
        with pytest.raises(libredlock.Busy):
            with lock:
                client.lock("r", wait=0).__enter__()
        lock.acquire()
        with pytest.warns(ResourceWarning):
            del lock
        eventually(lambda: free(client, "r"))
        kept = client.lock("r", ttl=20, wait=20).acquire()
        assert kept.owned() and not free(client, "r")
        kept.release()
    finally:
        gc.enable()
    nodes.no_keys()


def test_releases_of_many_threads_count_once(client):
    hold, done = client.lock("r").acquire(), []

    def release(_):
        try:
            hold.release()
            done.append(1)
        except libredlock.NotHeld:
            pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(release, range(8)))
    assert done == [1]


def test_on_lost_runs_in_the_context_of_the_acquire(client):
    request, seen = contextvars.ContextVar("request"), []

    def take(number):
        request.set(number)
        lock = client.lock(f"r{number}", on_lost=lambda hold: seen.append(request.get()), **lapsing(0.4))
        return lock.acquire()

    holds = [contextvars.copy_context().run(take, number) for number in range(2)]
    eventually(lambda: sorted(seen) == [0, 1] and holds)


def test_a_decorator_starts_no_thread(script):
    source = f"""
import os
import libredlock
client = libredlock.Client(**{GENEROUS_TIMEOUTS})
lock = client.lock("r")
@client.with_lock("order:{{n}}")
def ship(n): pass
print(len(os.listdir("/proc/self/task")))
"""
    assert script(source).end() == (0, "1", "")


# ---- tasks -----------------------------------------------------------------------------------------------------------

WAYS = {
    "wait_for": lambda lock: asyncio.wait_for(lock.acquire(), 60),
    "create_task": lambda lock: asyncio.create_task(lock.acquire()),
    "shield": lambda lock: asyncio.shield(lock.acquire()),
    "gather": lambda lock: asyncio.gather(lock.acquire()),
    "wait": lambda lock: asyncio.wait([asyncio.ensure_future(lock.acquire())]),
}


@pytest.mark.parametrize("kind", ["lock", "rlock"])
@pytest.mark.parametrize("way", WAYS)
def test_an_acquire_run_by_another_task_is_the_caller_s(on_client, nodes, way, kind):
    async def body(client):
        lock, done = getattr(client, kind)("r", **lapsing(4)), asyncio.Event()
        await WAYS[way](lock)
        assert lock.owned()
        await asyncio.wait_for(lock.release(), 60)
        assert not lock.locked()

        async def second():
            await lock.acquire(timeout=30)
            await lock.extend(30)
            taken.set_result(lock.token)
            await done.wait()
            await lock.release()

        taken = asyncio.get_running_loop().create_future()
        await WAYS[way](lock)
        await until(lambda: lock.lost)
        task = asyncio.create_task(second())
        token = await taken
        with pytest.raises(libredlock.Lost):
            lock.check()
        with pytest.raises(libredlock.Lost):
            await lock.release()
        assert {node.get("r") for node in nodes} - {None} == {token.encode()}
        done.set()
        await task

    on_client(body)


def test_lines_of_a_notebook_are_tasks_of_their_own(nodes):
    """As python -m asyncio and Jupyter run them."""
    lines = """
    client = aio.Client(urls, **options)
    lock = client.lock("r", ttl=20)
    assert await lock.acquire()
    assert lock.owned() and await lock.extend(25) > 20
    await lock.release()
    assert await lock.acquire()
    await lock.release()
    tree = client.rlock("tree")
    assert await tree.acquire()
    assert await tree.acquire()
    await tree.release()
    await tree.release()
    assert not tree.locked()
    await client.close()
    """
    flag = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    names = {"aio": aio, "urls": nodes.urls, "options": GENEROUS_TIMEOUTS}
    loop = asyncio.new_event_loop()
    try:
        for line in textwrap.dedent(lines).strip().splitlines():
            result = eval(compile(line, "line", "single", flags=flag), names)
            if asyncio.iscoroutine(result):
                loop.run_until_complete(result)
    finally:
        loop.close()
    nodes.no_keys()


def test_an_object_admits_as_many_tasks_as_there_are_permits(on_client):
    async def body(client):
        gpu, inside, full = client.semaphore("gpu", 4, wait=60), set(), asyncio.Event()

        async def work(number):
            async with gpu as permit:
                inside.add(permit.slot)
                if len(inside) == 4:
                    full.set()
                await asyncio.wait_for(full.wait(), 60)

        await asyncio.gather(*(work(number) for number in range(8)))
        assert inside == {0, 1, 2, 3} and not gpu.locked()

    on_client(body)


def test_a_block_of_tasks_is_renewed_while_another_waits(on_client):
    async def body(client):
        lock = client.lock("r", **lapsing(2))
        async with lock as hold:
            waiting = asyncio.create_task(lock.acquire())
            await asyncio.sleep(4)
            assert hold.owned() and not waiting.done()
        assert await waiting
        await until(lambda: waiting.result().lost)

    on_client(body)


def test_each_body_is_cancelled_by_its_own_loss(on_client):
    async def body(client):
        lock, ends = client.lock("r", renew=False, cancel_on_lost=True, **lapsing(1)), []

        async def work(clean_up_s):
            try:
                async with lock:
                    try:
                        await asyncio.sleep(60)
                    finally:
                        await asyncio.sleep(clean_up_s)
            except libredlock.Lost:
                ends.append(clean_up_s)

        await asyncio.wait_for(asyncio.gather(work(0.5), work(0)), 30)
        assert sorted(ends) == [0, 0.5]

    on_client(body)


def test_a_lost_hold_stays_lost_while_it_is_released(on_client):
    """The block releases it at once, and then on_lost of a task runs."""
    seen = []

    async def on_lost(hold):
        seen.append((hold.lost, hold.loss))

    async def body(client):
        hold = await client.lock("r", on_lost=on_lost).take()
        await client.release("r", force=True)
        with pytest.raises(libredlock.Lost):
            await hold.extend()
        release = asyncio.create_task(hold.release())
        await asyncio.sleep(0)
        assert (hold.lost, hold.loss, release.done()) == (True, "gone", False)
        with pytest.raises(libredlock.Lost):
            await release
        with pytest.raises(libredlock.Lost):
            async with client.lock("r", on_lost=on_lost, cancel_on_lost=True) as hold:
                await client.release("r", force=True)
                await hold.extend()

    on_client(body)
    assert seen == [(True, "gone")] * 2


def test_close_cancels_a_body(run, nodes):
    async def main():
        lost, client = [], aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
        inside = asyncio.Event()

        async def work():
            async with client.lock("r", cancel_on_lost=True, on_lost=lost.append):
                inside.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(work())
        await inside.wait()
        await client.close()
        with pytest.raises(libredlock.Lost) as caught:
            await asyncio.wait_for(task, 30)
        assert caught.value.reason == "closed" and len(lost) == 1 and lost[0].lost

    run(main())


def test_the_end_of_a_loop_is_a_loss(nodes):
    client, lost = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS), []

    async def take():
        return await client.lock("r", ttl=30, on_lost=lost.append).acquire()

    with pytest.warns(ResourceWarning, match="1 locks were held"):
        hold = asyncio.run(take())
    assert hold.lost and hold.loss == "closed" and lost == [hold]
    asyncio.run(client.close())


def test_notifications_run_in_the_context_of_their_task(on_client):
    request = contextvars.ContextVar("request", default="none")

    async def body(client):
        seen = []

        async def note(hold):
            seen.append(request.get())

        async def take(number):
            request.set(number)
            return await client.lock(f"r{number}", on_lost=note, **lapsing(0.4)).acquire()

        holds = [await asyncio.create_task(take(number)) for number in range(2)]
        await until(lambda: sorted(seen) == [0, 1] and holds)

    on_client(body)


def test_stacks_of_tasks_release_their_own_holds(on_client):
    async def body(client):
        gpu = client.semaphore("gpu", 3)
        async with contextlib.AsyncExitStack() as stack:
            mine = await stack.enter_async_context(gpu)
            async with gpu as inner:
                await stack.aclose()
                assert inner.owned() and not mine.locked()
        assert not gpu.locked()
        stack = contextlib.AsyncExitStack()
        theirs = await stack.enter_async_context(gpu)
        await asyncio.create_task(stack.aclose())
        assert not theirs.locked()

    on_client(body)

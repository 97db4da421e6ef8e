"""Client.rlock(): whoever holds it may take it again, as with threading.RLock."""

import asyncio
import copy
import pickle
import threading

import pytest

import libredlock
from libredlock.testing import eventually
from patience import lapsing, until


def in_thread(call):
    """What a call in another thread returns, or raises."""
    told = []

    def run():
        try:
            told.append(call())
        except BaseException as failure:
            told.append(failure)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert told, "it hangs"
    return told[0]


@pytest.fixture
def tree(client):
    return client.rlock("tree")


def test_several_resources_are_refused(client):
    with pytest.raises(TypeError, match="takes one resource"):
        client.rlock(["a", "b"])


def test_blocks_nest_and_the_outermost_releases(tree, nodes, other):
    with tree as outer:
        token = tree.token
        with tree as again:
            assert again is outer and tree.acquire() is outer and tree.acquire(timeout=5) is outer
            tree.release()
            tree.release()
        assert tree.owned() and tree.token == token
        assert not other.lock("tree").acquire(blocking=False)
    assert not tree.locked()
    nodes.no_keys()


def test_a_block_that_releases_early_leaves_the_outer_its_lock(tree, nodes, other):
    with tree as outer:
        with pytest.raises(libredlock.NotHeld, match="held by the outer block: this one has released it already"):
            with tree as inner:
                inner.release()
        assert outer.owned() and not other.lock("tree").acquire(blocking=False)
    nodes.no_keys()


def test_a_block_that_releases_its_own_turn_and_the_outer_one(tree, nodes):
    with pytest.raises(libredlock.NotHeld, match="this hold of it has ended"):
        with tree:
            with pytest.raises(libredlock.NotHeld, match="this hold of it has ended"):
                with tree:
                    tree.release()
                    tree.release()
            assert not tree.owned()
    nodes.no_keys()


def test_a_block_may_release_what_was_acquired_before_it(tree, nodes):
    tree.acquire()
    with tree:
        tree.release()
    assert not tree.owned()
    nodes.no_keys()


def test_blocks_may_be_left_in_any_order(tree):
    def block():
        with tree:
            yield

    outer = block()
    next(outer)
    with tree:
        assert next(outer, "left") == "left"
        assert tree.owned()
    assert not tree.locked()


def test_inner_calls_need_no_node(tree, nodes):
    with tree:
        for node in nodes:
            node.stop()
        try:
            with tree, tree:
                assert tree.acquire(blocking=False)
            tree.release()
        finally:
            for node in nodes:
                node.cont()
        assert tree.owned()


def test_only_its_thread_releases_it(tree):
    with pytest.raises(RuntimeError):
        tree.release()
    with tree:
        refused = in_thread(tree.release)
        assert isinstance(refused, RuntimeError) and "another thread" in str(refused)
        assert in_thread(lambda: tree.acquire(blocking=False)) is False
        with tree:
            assert isinstance(in_thread(tree.release), RuntimeError)
        assert tree.owned()


def test_others_get_it_when_the_outermost_has_released_it(tree, client):
    entered = threading.Event()

    def second():
        with tree, tree:
            entered.set()

    with tree:
        with tree:
            waiter = threading.Thread(target=second, daemon=True)
            waiter.start()
            eventually(lambda: client.describe()["waiting"] == 1)
        assert not entered.wait(0.05)
    waiter.join(60)
    assert entered.is_set() and not tree.locked()


def test_each_name_has_one_object(client, other):
    assert client.rlock("tree") is client.rlock("tree") is client.rlock(b"tree")
    assert client.rlock("tree") is not client.rlock("leaf")
    kept = client.rlock("tree", ttl=20)  # that of the line above was in use no longer
    assert client.rlock("tree", ttl=20) is kept
    assert other.rlock("tree", ttl=20) is not kept
    with pytest.raises(libredlock.InvalidOption, match="other options"):
        client.rlock("tree")


def test_a_lost_lock_is_not_taken_again_inside(client, nodes):
    lock = client.rlock("tree", **lapsing(4))
    assert lock.acquire() and lock.acquire()
    eventually(lambda: lock.lost)
    for call in (lock.acquire, lock.release, lock.acquire, lock.release):
        with pytest.raises(libredlock.Lost):
            call()
    assert lock.acquire() and lock.owned()
    lock.release()


def test_what_an_ended_thread_has_lost_is_taken_anew(client, nodes):
    lock = client.rlock("tree", **lapsing(0.4))
    late = in_thread(lock.acquire)
    eventually(lambda: late.lost)
    for _ in range(2):
        with lock as hold:
            assert hold is not late and hold.owned()
    assert not lock.locked()
    nodes.no_keys()


def test_what_an_ended_task_has_lost_is_taken_anew(on_client, nodes):
    async def body(client):
        async def acquire():
            return await lock.acquire()

        async def release():
            await lock.release()

        for lock in client.rlock("tree", **lapsing(0.4)), client.lock("r", **lapsing(0.4)):
            late = await asyncio.create_task(acquire())
            await until(lambda late=late: late.lost)
            hold = await asyncio.create_task(acquire())
            assert hold is not late
            await hold.extend(10)
            await asyncio.create_task(release())
            assert not lock.locked()

    on_client(body)
    nodes.no_keys()


def test_a_block_in_a_lost_one_does_not_run(client):
    lock = client.rlock("tree", renew=False, **lapsing(4))
    ran = False
    with pytest.raises(libredlock.Lost), lock, lock:
        eventually(lambda: lock.lost)
        with lock:
            ran = True
    assert not ran
    assert lock.acquire() and lock.release() is None


def test_expired_rlock_passes_on_and_its_owner_gets_an_error(client):
    lock = client.rlock("tree", renew=False, **lapsing(4))
    assert lock.acquire() and lock.acquire()
    eventually(lambda: lock.lost)
    done = threading.Event()
    taken = threading.Event()

    def second():
        with lock, lock:
            taken.set()
            done.wait(60)

    thread = threading.Thread(target=second, daemon=True)
    thread.start()
    assert taken.wait(60)
    for call in (lock.acquire, lock.release, lock.acquire, lock.release):
        with pytest.raises(libredlock.Lost):
            call()
    assert not lock.acquire(blocking=False)
    done.set()
    thread.join(60)
    with lock:
        assert lock.owned()


def test_a_block_is_renewed_at_any_depth(client):
    lock = client.rlock("tree", **lapsing(4))
    with lock:
        with lock:
            before = lock.remaining
            eventually(lambda: lock.remaining < before - 0.05)
            eventually(lambda: lock.remaining > before - 0.05)
        assert lock.owned()


def test_another_thread_may_extend_it_meanwhile(tree):
    stop = threading.Event()
    failures = []

    def extend():
        while not stop.is_set():
            try:
                hold.extend()
            except Exception as failure:
                failures.append(failure)
                return

    with tree as hold:
        thread = threading.Thread(target=extend, daemon=True)
        thread.start()
        for _ in range(200):
            with tree:
                pass
        stop.set()
        thread.join(60)
        assert tree.owned() and not failures


def test_it_is_handed_over_by_its_outermost_holder_only(tree, client):
    with pytest.raises(libredlock.NotHeld):
        tree.detach()
    assert tree.acquire() and tree.acquire()
    with pytest.raises(libredlock.InvalidOption, match="acquired 2 times"):
        tree.detach()
    tree.release()
    adopted = client.adopt("tree", tree.detach())
    adopted.extend()
    adopted.release()


def test_options_are_refused_in_words(client):
    with pytest.raises(TypeError, match=r"client\.rlock\(\)"):
        client.lock("tree", reentrant=True)
    with pytest.raises(TypeError, match="did you mean ttl"):
        client.rlock("tree", tll=5)
    with pytest.raises(TypeError):
        client.rlock(5)
    with pytest.raises(ValueError):
        client.rlock("tree").acquire(blocking=False, timeout=5)
    tree = client.rlock("tree")
    with tree, pytest.raises(ValueError):
        tree.acquire(blocking=False, timeout=5)


def test_it_shows_itself_and_is_not_copied(tree):
    assert repr(tree) == "<libredlock.RLock 'tree' not held here>"
    for copied in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError):
            copied(tree)


def test_a_decorator_is_not_needed(tree):
    def fell(depth):
        with tree:
            return 1 + fell(depth - 1) if depth else 0

    assert fell(20) == 20
    assert not tree.locked()


# ---- asyncio ---------------------------------------------------------------------------------------------------------


def test_tasks_nest_and_exclude_each_other(on_client, nodes):
    async def body(client):
        tree = client.rlock("tree")
        assert client.rlock("tree") is tree
        async with tree as outer:
            async with tree as again:
                assert again is outer and await tree.acquire() is outer
                await tree.release()

            async def other_task():
                with pytest.raises(RuntimeError, match="another task, .*; any task may release the Hold itself"):
                    await tree.release()
                return await tree.acquire(blocking=False)

            assert await asyncio.create_task(other_task()) is False
            assert tree.owned()
        assert not tree.locked()
        assert await asyncio.create_task(tree.acquire())

    on_client(body)


def test_a_block_of_a_task_leaves_the_outer_one_its_lock(on_client):
    async def body(client):
        tree = client.rlock("tree")
        async with tree as outer:
            with pytest.raises(libredlock.NotHeld, match="held by the outer block"):
                async with tree as inner:
                    await inner.release()
            assert outer.owned()
        assert not tree.locked()

    on_client(body)


def test_a_task_learns_of_the_loss_once_for_each_section(on_client):
    async def body(client):
        lock = client.rlock("tree", **lapsing(4))
        assert await lock.acquire() and await lock.acquire()
        await until(lambda: lock.lost)
        for call in (lock.acquire, lock.release, lock.acquire, lock.release):
            with pytest.raises(libredlock.Lost):
                await call()
        assert await lock.acquire()
        await lock.release()

    on_client(body)


def test_the_loss_cancels_the_outermost_block(on_client, nodes):
    async def body(client):
        lock = client.rlock("tree", cancel_on_lost=True, renew=False, **lapsing(4))
        seen = []
        with pytest.raises(libredlock.Lost):
            async with lock:
                async with lock:
                    pass
                try:
                    async with lock:
                        await asyncio.sleep(60)
                except asyncio.CancelledError:
                    seen.append("inner")
                    raise
        assert seen == ["inner"] and not lock.locked()

    on_client(body)

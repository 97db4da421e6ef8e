"""Clients without nodes: the same interface, in threads and in asyncio."""

import asyncio
import gc
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakSet

import pytest

import libredlock
from libredlock import aio
from libredlock.testing import AsyncMemoryClient, MemoryClient, eventually
from libredlock.testing.store import Handle, Store
from patience import busy
from steps import at_each_step


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_they_have_what_the_real_ones_have():
    own = {"lose", "pass_time", "set_reachable"}
    for memory, real in ((MemoryClient, libredlock.Client), (AsyncMemoryClient, aio.Client)):
        assert public(memory) - own == public(real)
        for name in public(real):
            both = getattr(memory, name), getattr(real, name)
            assert len(set(map(inspect.iscoroutinefunction, both))) == 1
        lock, real_lock = memory().lock("r"), real("redis://127.0.0.1:1").lock("r")
        assert public(lock) == public(real_lock) and isinstance(lock, type(real_lock))


@pytest.fixture(params=["memory", "nodes"])
def any_client(request):
    if request.param == "memory":
        return MemoryClient()
    return request.getfixturevalue("client")


def test_other_numbers_of_permits_are_refused(any_client):
    with any_client.semaphore("gpu", 2):
        with pytest.raises(libredlock.RefusedConfig, match="permits is 3; others that use the resource have 2"):
            any_client.semaphore("gpu", 3, wait=0).take()
        assert any_client.semaphore("gpu", 2, wait=0).acquire()


def test_a_list_for_a_name_has_one_permit(any_client):
    with any_client.semaphore("gpu", 2), any_client.semaphore("gpu", 2):
        assert [row.slot for row in any_client.locks("gpu")] == [0]
        assert [row.slot for row in any_client.locks("gpu*")] == [0, 1]


def test_a_refused_acquire_has_not_asked_who_holds_the_lock(any_client):
    with any_client.lock("r"):
        lock = any_client.lock("r", wait=0)
        assert lock.acquire() is False and lock.refused.held_by is None
        assert busy(lock.take).held_by


def test_renewals_go_on_with_the_lease_that_expire_set():
    client = MemoryClient()
    with client.lock("r", ttl=10) as hold:
        hold.expire(0.5)
        client.pass_time(0.7)
        assert hold.owned() and 0 < hold.remaining <= 0.5
    assert client.status("r").verdict == "free"


def test_a_program_sees_no_difference(any_client):
    lock = any_client.lock("r", ttl=10)
    assert lock.acquire() and lock.owned() and lock.locked() and 5 < lock.remaining <= 10
    assert any_client.lock("r").acquire(timeout=0.01) is False
    assert any_client.lock("r").acquire(blocking=False) is False
    report = any_client.status("r")
    assert report.held and report.token == lock.token and not any_client.status("other").held
    with pytest.raises(libredlock.Busy):
        with any_client.lock("r", wait=0):
            pytest.fail("entered")
    assert any_client.with_lock("r", on_busy="skip")(lambda: 1)() is None
    assert 15 < lock.extend(20) <= 20
    adopted = any_client.adopt("r", lock.detach())
    with pytest.raises(libredlock.NotHeld):
        lock.release()
    adopted.extend()
    adopted.release()
    assert any_client.with_lock("r:{n}")(lambda n: any_client.status("r:5").held)(5)
    for wrong in ({"tll": 1}, {"ttl": 0}, {"ttl": "1"}):
        with pytest.raises((TypeError, ValueError), match="tll|ttl="):
            any_client.lock("r", **wrong)
    with pytest.raises(TypeError, match="blocking=5"):
        lock.acquire(5)
    any_client.close()
    with pytest.raises(libredlock.Closed):
        any_client.lock("r")


def test_losses_are_made():
    client, lost = MemoryClient(ttl=10), []
    with pytest.raises(libredlock.Lost) as caught:
        with client.lock("r", on_lost=lost.append) as hold:
            client.pass_time(100)
            hold.check()  # it is renewed
            client.lose("r")
            assert hold.lost and lost == [hold]
    assert caught.value.reason == "gone"
    plain = client.lock("r", on_lost=lost.append)
    late = plain.acquire()
    client.pass_time(11)
    assert plain.lost and lost == [hold, late] and client.lock("r").acquire(blocking=False)
    client.set_reachable(False)
    with pytest.raises(libredlock.NoQuorum, match="unreachable"):
        client.lock("s").acquire()


def test_time_and_losses_that_cannot_be_are_refused():
    client = MemoryClient(ttl=10, key_prefix="p:")
    hold = client.lock(["a", "b"]).take()
    with pytest.raises(libredlock.InvalidOption, match="length=-1: it is negative"):
        client.pass_time(-1)
    with pytest.raises(TypeError, match="resource=3: takes str or bytes"):
        client.lose(3)
    hold.check()
    client.lose(["a", "b"])
    assert hold.lost


def test_threads_exclude_each_other_in_order():
    client, order = MemoryClient(), []
    held = client.lock("r")
    held.acquire()

    def wait(number):
        with client.lock("r"):
            order.append(number)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(5)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        eventually(lambda number=number: len(client.store.waiting) == number, 30)
    with client.store.mutex:  # before anybody has woken
        held.release()
        assert not client.lock("r").acquire(blocking=False)
    for thread in threads:
        thread.join(30)
    assert order == list(range(5))


def test_tasks_and_loops_exclude_each_other(run):
    client, inside = AsyncMemoryClient(), []

    async def work():
        async with client.lock("r"):
            inside.append(1)
            await asyncio.sleep(0)
            assert inside == [1]
            inside.clear()

    async def main():
        await asyncio.gather(*(work() for _ in range(20)))

    run(main())
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(asyncio.run, main()) for _ in range(4)]:
            done.result(60)


def test_cancellation_in_asyncio_leaves_the_lock_free(run):
    async def main():
        async with AsyncMemoryClient() as client:
            with pytest.raises(libredlock.Lost):
                async with client.lock("r", cancel_on_lost=True):
                    client.lose("r")
                    await asyncio.sleep(600)
            async with client.lock("r"):
                waiting = asyncio.ensure_future(client.lock("r").acquire())
                await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            assert not (await client.status("r")).held and await client.lock("r").acquire(blocking=False)

    run(main())


def test_close_cancels_waiters():
    client = MemoryClient()
    held = client.lock("r").acquire()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.lock("r").acquire)
        eventually(lambda: client.store.waiting, 30)
        client.close()
        with pytest.raises(libredlock.Cancelled):
            waiting.result(30)
    assert held.lost and held.loss == "closed"


def test_an_rlock_nests_and_only_its_thread_releases_it(any_client):
    tree = any_client.rlock("tree")
    assert any_client.rlock("tree") is tree
    with tree:
        with tree:
            assert tree.acquire()
            tree.release()
        assert tree.owned() and not any_client.lock("tree").acquire(blocking=False)
        refused = []
        thread = threading.Thread(target=lambda: refused.append(pytest.raises(RuntimeError, tree.release)))
        thread.start()
        thread.join(60)
        assert len(refused) == 1
    assert not tree.locked()


def test_a_lost_lock_is_not_taken_again_inside():
    client = MemoryClient()
    tree = client.rlock("tree")
    assert tree.acquire() and tree.acquire()
    client.lose("tree")
    for call in (tree.acquire, tree.release, tree.acquire, tree.release):
        with pytest.raises(libredlock.Lost):
            call()
    assert tree.acquire()


def test_terms_follow_each_other(any_client):
    election, terms = any_client.election("scheduler"), []
    for term in election:
        with term:
            terms.append(term.fence)
            assert term.owned() and any_client.status("scheduler").held
        if len(terms) == 2:
            election.stop()
    assert terms[1] > terms[0] and not any_client.status("scheduler").held


def test_a_lost_term_is_followed_by_another():
    client, terms = MemoryClient(), []
    election = client.election("scheduler")
    for term in election:
        with term:
            terms.append(term.fence)
            if len(terms) == 1:
                client.lose("scheduler")
                term.check()
            election.stop()
    assert len(terms) == 2


def test_stop_ends_a_wait():
    client = MemoryClient()
    with client.lock("scheduler"):
        election = client.election("scheduler")
        waiting = threading.Thread(target=lambda: list(election))
        waiting.start()
        election.stop()
        waiting.join(60)
        assert not waiting.is_alive()


def test_stop_before_the_wait_has_begun_ends_it(monkeypatch):
    client = MemoryClient()
    with client.lock("scheduler"):
        election, start = client.election("scheduler"), Handle.start
        monkeypatch.setattr(Handle, "start", lambda *arguments: (election.stop(), start(*arguments))[1])
        waiting = threading.Thread(target=lambda: list(election), daemon=True)
        waiting.start()
        waiting.join(60)
        assert not waiting.is_alive()


def test_tasks_take_it_again_and_lead(run):
    async def body():
        client, terms = AsyncMemoryClient(), []
        tree = client.rlock("tree")
        async with tree, tree:
            assert await tree.acquire()
            await tree.release()
        assert not tree.locked()
        election = client.election("scheduler")
        async for term in election:
            async with term:
                terms.append(term.fence)
                if len(terms) == 1:
                    client.lose("scheduler")
                    await asyncio.sleep(60)
                election.stop()
        assert len(terms) == 2

    run(body())


def test_all_kinds_are_there(any_client):
    gpu = any_client.semaphore("gpu", 2)
    with gpu as one, gpu as two:
        assert {one.slot, two.slot} == {0, 1}
        assert gpu.acquire(blocking=False) is False and gpu.refused.votes
    token = any_client.semaphore("cpu", 2, slot=1).take().detach()
    with any_client.adopt("cpu", token, permits=2, slot=1) as permit:
        assert permit.slot == 1
    doc = any_client.lock("doc", shared=True)
    with doc, doc:
        assert any_client.status("doc").held_by.readers == 2
        assert any_client.lock("doc").acquire(blocking=False) is False
    with any_client.lock(["a", "b"], wait=10):
        assert any_client.status("b").held
        assert any_client.lock("b").acquire(blocking=False) is False
    with any_client.lock("w", ttl=8, wait=10, max_extensions=2) as writer:
        assert writer.downgrade() > 0 and any_client.status("w").verdict == "shared"
        writer.extend()
        with pytest.raises(libredlock.Limit):
            writer.extend()
    with pytest.raises(libredlock.InvalidOption, match="above max_ttl"):
        any_client.lock("w", ttl=86_000)


def test_a_renewed_lease_ends_for_others_as_it_does(any_client):
    with any_client.lock("r", ttl=10):
        with pytest.raises(libredlock.Busy) as caught:
            any_client.lock("r", wait=0).take()
        [row] = any_client.locks("r")
        for left_s in caught.value.retry_after, any_client.status("r").remaining, row.remaining:
            assert 0 < left_s <= 10


def test_only_plain_locks_have_numbers_in_memory_too():
    client = MemoryClient(fence=True)
    for name, options in ("p", {"permits": 2}), ("s", {"shared": True}), (["a", "b"], {}), ("h", {"layout": "hash"}):
        assert client.lock(name, **options).take().fence is None
    assert client.lock("r").take().fence == 1


def test_what_is_refused_is_refused_in_memory_too(any_client):
    def take(name, **options):
        return any_client.lock(name, **options).take()

    limited, reader, permit = take("h", ttl=8, max_hold=20), take("r", shared=True), take("p", permits=2)
    limited.extend(12)
    refusals = [
        (libredlock.Limit, r"extension by ttl 25 s: max_hold is 20 s, held for \d+ ms$", lambda: limited.extend(25)),
        (libredlock.Limit, "no further extension by ttl 25 s: max_hold is 20 s", lambda: limited.expire(25)),
        (libredlock.Limit, "max_extensions is 0", take("e", max_extensions=0).extend),
        (libredlock.InvalidOption, "ttl is 0.001 s; allowed: 0.02 s to", lambda: limited.extend(0.001)),
        (libredlock.InvalidOption, "shared is true; allowed for one of several permits", permit.downgrade),
        (libredlock.Busy, "another form: shared; give shared", any_client.adopt("r", reader.detach()).extend),
        (libredlock.InvalidOption, "slot is None", lambda: any_client.adopt("p", permit.token, permits=2)),
        (TypeError, "allowed: one of new=True", any_client.bootstrap),
        (TypeError, "resource=5", lambda: any_client.locks(5)),
        (ValueError, "timeout=-1", lambda: any_client.locks(timeout=-1)),
    ]
    for kind, words, call in refusals:
        with pytest.raises(kind, match=words):
            call()
    assert take("one", permits=1).slot == 0 and take("plain").slot is None
    assert take("long", ttl=20, max_hold=5).remaining > 10
    assert any_client.lock("e", retry_count=1, retry_delay=0.01).acquire(timeout=60) is False
    assert [row.verdict for row in any_client.locks("nobody")] == ["free"]


def test_a_hold_that_is_dropped_is_free_without_the_collector(run):
    async def main():
        async with AsyncMemoryClient() as client:
            gc.disable()
            try:
                await client.lock("r").acquire()
                assert await client.lock("r").acquire(blocking=False)
            finally:
                gc.enable()

    with pytest.warns(ResourceWarning, match="collected while held"):
        run(main())


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_collector_may_come_in_the_midst_of_a_grant():
    class Collected(Store):
        def _grant(self, handle):
            gc.collect()
            return super()._grant(handle)

    client = MemoryClient(store=Collected())
    cycle = [client.lock("r").take()]
    cycle.append(cycle)
    del cycle
    client.lock("r", wait=0).take().release()
    assert not client.locks()


def test_a_block_that_was_not_entered_may_be_tried_again(run):
    client = MemoryClient(ttl=10)
    hold = client.lock("r").take()
    client.set_reachable(False)
    with pytest.raises(libredlock.NoQuorum), hold:
        pytest.fail("entered")
    client.set_reachable(True)
    with hold:
        client.pass_time(60)
        hold.check()  # it is renewed

    async def main():
        async with AsyncMemoryClient(ttl=10) as client:
            hold = await client.lock("r").take()
            client.set_reachable(False)
            with pytest.raises(libredlock.NoQuorum):
                async with hold:
                    pytest.fail("entered")
            client.set_reachable(True)
            async with hold:
                client.pass_time(60)
                hold.check()

    run(main())


def test_facts_are_read_while_another_thread_releases():
    client = MemoryClient()

    def read(hold):
        while hold.locked():
            assert hold.remaining >= 0 and not hold.lost

    with ThreadPoolExecutor(1) as pool:
        for _ in range(300):
            hold = client.lock("r").take()
            reading = pool.submit(read, hold)
            hold.release()
            reading.result(60)


def test_one_of_two_threads_releases_a_hold():
    client = MemoryClient()

    def release(hold):
        return client._release(hold._handle)

    for both in at_each_step(Handle._release, client.lock("r").acquire, release, release):
        assert sorted(both) == sorted([libredlock.Status.OK, libredlock.Status.NOT_HELD])
        assert client.status("r").verdict == "free"


def test_time_passes_while_clients_are_made():
    made = []

    def make(client):
        made.append(MemoryClient(store=client.store))

    for passed, _ in at_each_step(WeakSet.__iter__, MemoryClient, lambda client: client.pass_time(0.001), make):
        assert passed is None


def test_a_lock_is_adopted_where_no_loop_runs(run):
    told = []
    adopted = AsyncMemoryClient().adopt("r", "token", on_lost=lambda hold: told[0].set_result(hold))

    async def main():
        told.append(asyncio.get_running_loop().create_future())
        with pytest.raises(libredlock.Lost):
            await adopted.extend()
        assert await told[0] is adopted

    run(main())


def test_on_lost_is_called_at_the_end_of_a_lease(run):
    lost = []
    hold = MemoryClient().lock("r", ttl=0.05, on_lost=lost.append).acquire()
    eventually(lambda: lost == [hold])

    async def main():
        told = asyncio.get_running_loop().create_future()
        kept = await AsyncMemoryClient().lock("r", ttl=30, on_lost=told.set_result).acquire()
        await kept.expire(0.05)
        assert await asyncio.wait_for(told, 20) is kept

    run(main())


def test_a_client_at_import_may_be_in_memory(monkeypatch):
    one, two = libredlock.Client("memory://", ttl=5), aio.Client(["memory://"])
    assert isinstance(one, MemoryClient) and isinstance(two, AsyncMemoryClient)
    with one.lock("r"):
        assert asyncio.run(two.lock("r").acquire(blocking=False)) is False
    monkeypatch.setenv("REDLOCK_NODES", "memory://")
    with libredlock.Client() as client, client.lock("r"):
        assert one.status("r").held


def test_refused_options_of_a_client_leave_no_other_error():
    for kind in MemoryClient, AsyncMemoryClient:
        with pytest.raises(libredlock.InvalidOption, match="ttl 100 s is above max_ttl"):
            kind(ttl=100)
        gc.collect()


KINDS = {"shared": {"shared": True}, "hash": {"layout": "hash"}, "plain": {}, "permits": {"permits": 2, "slot": 1}}
OTHER_FORMS = (
    ("shared", "plain", "shared; give shared"),
    ("hash", "shared", "hash; give layout hash"),
    ("plain", "permits", "plain; give permits 1"),
    ("permits", "plain", "permit 1 of 2; give permits 2 and slot 1"),
)


@pytest.mark.parametrize("kind, other, words", OTHER_FORMS)
def test_a_token_of_another_kind_is_not_released(any_client, kind, other, words):
    token = any_client.lock("r", **KINDS[kind]).take().detach()
    hold = any_client.adopt("r", token, **KINDS[other])
    for act in hold.extend, hold.release:
        with pytest.raises(libredlock.Busy, match=f"held in another form: {words}") as caught:
            act()
        assert caught.value.retry_after is None and not hold.lost
    any_client.adopt("r", token, **KINDS[kind]).extend()


def test_refusals_have_the_same_words(any_client):
    lock, words = any_client.lock("r", layout="hash").take(), []
    any_client.semaphore("gpu", 1, ttl=9).take().detach()
    permits = [any_client.semaphore("p", 2).take() for _ in range(2)]
    for call in (
        lock.downgrade, lambda: lock.extend(31), lambda: lock.expire(0.001), any_client.semaphore("p", 2, wait=0).take,
        any_client.semaphore("p", 2, wait=0, slot=1).take, any_client.lock("gpu", wait=0).take,
        lambda: any_client.adopt("p", "t", permits=2), lambda: any_client.adopt("p", ""),
    ):
        with pytest.raises(libredlock.RedlockError) as caught:
            call()
        words.append(str(caught.value))
    assert "allowed for a lock whose layout is hash: false; release it first" in words[0]
    assert "ttl 31 s is above max_ttl, 30 s: renew a shorter lock" in words[1]
    assert words[2].endswith("allowed: 0.02 s to max_ttl (30 s)")
    assert words[3].startswith("no permit is free, one is held by libredlock (pid ")
    assert words[4].startswith("its permit is held by libredlock (pid ")
    assert words[5].startswith("held by libredlock (pid ") and ' nodes granted "gpu", ' in words[5]
    assert words[6].endswith("allowed here for permits 2: 0 to 1, the permit that is meant")
    assert words[7].endswith("token has 0 bytes; allowed: 1 to 128")
    assert [row.kind for row in any_client.locks("r")] == ["hash"] and len(permits) == 2

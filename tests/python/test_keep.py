"""with_lock(keep=): a job runs once in a fleet, and its lock stays for a while."""

import asyncio
import gc
import time
import weakref

import pytest

import libredlock
from libredlock import aio
from libredlock.testing import AsyncMemoryClient, MemoryClient, eventually
from libredlock.testing.wait import in_time
from patience import lapsing


@pytest.fixture(params=["memory", "nodes"])
def any_client(request):
    if request.param == "memory":
        return MemoryClient()
    return request.getfixturevalue("client")


def job(client, keep, **options):
    @client.with_lock("report", keep=keep, on_busy="skip", **options)
    def report():
        return "done"

    return report


def test_a_job_that_has_succeeded_keeps_its_lock(any_client):
    assert job(any_client, 25)() == "done"
    report = any_client.status("report")
    assert report.held and 10 < report.remaining <= 25
    assert job(any_client, 25, wait=0)() is None
    any_client.release("report", force=True)
    assert job(any_client, 25)() == "done"


def test_a_job_may_hand_its_lock_over(any_client, caplog):
    token = any_client.with_lock("report", ttl=20, keep=25, hold="hold")(lambda hold: hold.detach())()
    any_client.adopt("report", token).release()
    assert not caplog.records


def test_it_lapses_that_long_after_it_was_acquired(client, nodes):
    began = time.monotonic()

    @client.with_lock("report", ttl=20, keep=1.5, hold="hold")
    def report(hold):
        entered = time.monotonic()
        eventually(lambda: hold.remaining < 19.5)
        return time.monotonic() - entered

    took_s = report()
    assert max(node.pttl("report") for node in nodes) <= 1501 - 1000 * took_s
    with client.lock("report", queue=False):
        assert time.monotonic() - began >= 1.4


def test_a_job_that_fails_or_lasts_longer_is_free_at_once(any_client):
    @any_client.with_lock("report", keep=25)
    def fails():
        raise KeyError("mine")

    with pytest.raises(KeyError):
        fails()
    assert not any_client.status("report").held

    @any_client.with_lock("report", keep=0.02)
    def lasts():
        began = time.monotonic()
        eventually(lambda: time.monotonic() - began > 0.05, what="the time of keep= is over")

    lasts()
    assert not any_client.status("report").held


def test_generators_and_reentrant_functions_keep_it_at_their_end(client):
    @client.with_lock("g", keep=25)
    def numbers():
        yield client.status("g").remaining

    assert len(list(numbers())) == 1 and client.status("g").remaining > 10
    unfinished = client.with_lock("g2", keep=25)(numbers.__wrapped__)()
    next(unfinished)
    unfinished.close()
    assert not client.status("g2").held

    @client.with_lock("r", keep=25, reentrant=True, hold="hold")
    def again(depth, hold):
        if depth:
            again(depth - 1)
        hold.check()

    again(2)
    assert client.status("r").remaining > 10


def test_who_waits_gives_up_after_half_of_the_time(client, other, nodes):
    """One who waited until the lock is free again would repeat the job."""
    with other.lock("report"):
        began = time.monotonic()
        assert job(client, 1)() is None
        assert time.monotonic() - began >= 0.45
        began = time.monotonic()
        with libredlock.Client(nodes.urls, wait=0.1) as hasty:
            assert job(hasty, 25)() is None
        assert in_time(time.monotonic() - began < 10)


@pytest.mark.parametrize("options, words", [
    ({"keep": 31}, r"keep=31: .*up to max_ttl \(30 s\)"),
    ({"keep": 0}, "keep=0: .*above 0 s"),
    ({"keep": -1}, "keep=-1: .*negative"),
    ({"keep": 20, "max_hold": 15}, r"keep=20: .*up to max_hold \(15 s\)"),
    ({"keep": "20"}, "keep='20': takes seconds"),
])
def test_what_could_not_be_kept_is_refused_at_decoration(client, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        client.with_lock("r", **options)
    client.with_lock("r", keep=20, max_hold=None)


def test_time_outs_of_a_whole_lease_do_not_prevent_it(client):
    job(client, 1.2, ttl=20, node_timeout=4, min_validity=3, max_hold=20)()
    assert client.status("report").held


def test_a_lock_that_cannot_be_kept_ends_earlier(nodes, caplog):
    with libredlock.Client(nodes.urls, outage_wait=0.1, connect_timeout=20, exit_drain=0) as client:

        @client.with_lock("report", ttl=10, keep=25)
        def report():
            client.status("report")
            for node in nodes.nodes[:3]:
                node.kill()
            return "done"

        assert report() == "done"
    assert "could not be kept for as long as keep= says; it ends in" in caplog.text


def test_a_loss_leaves_no_cycle(client):
    holds = []

    @client.with_lock("report", keep=20, hold="hold")
    def report(hold):
        holds.append(weakref.ref(hold))
        client.release("report", force=True)

    gc.collect()
    gc.disable()
    try:
        report()
    except libredlock.Lost:
        pass
    finally:
        gc.enable()
    assert [hold() for hold in holds] == [None]


def test_a_loss_is_told(client):
    @client.with_lock("report", keep=25, renew=False, hold="hold", **lapsing(0.3))
    def report(hold):
        eventually(lambda: hold.lost, 30)

    with pytest.raises(libredlock.Lost):
        report()


@pytest.mark.parametrize("kind", ["memory", "nodes"])
def test_tasks_keep_it(kind, nodes, run):
    async def main():
        async with AsyncMemoryClient() if kind == "memory" else aio.Client(nodes.urls) as client:

            @client.with_lock("report", keep=25, on_busy="skip", wait=0)
            async def report():
                await asyncio.sleep(0)
                return "done"

            @client.with_lock("numbers", keep=25)
            async def numbers():
                yield 1

            @client.with_lock("fails", keep=25)
            async def fails():
                raise KeyError("mine")

            assert (await report(), await report()) == ("done", None)
            assert [n async for n in numbers()] == [1]
            for name in "report", "numbers":
                assert (await client.status(name)).remaining > 10
            with pytest.raises(KeyError):
                await fails()
            assert not (await client.status("fails")).held

    run(main())


def test_a_block_whose_hold_was_handed_over_releases_nothing(client, other, caplog):
    lock = client.lock("r", ttl=20)
    with lock as hold:
        token = hold.detach()
    with pytest.raises(KeyError):
        with client.lock("q", ttl=20) as hold:
            hold.detach()
            raise KeyError("mine")
    with pytest.raises(libredlock.NotHeld):
        lock.release()
    assert "left the block" not in caplog.text
    with other.adopt("r", token) as adopted:
        adopted.check()
    assert not client.status("r").held and client.status("q").held

"""status() of permits, readers and several resources; in threads, tasks and memory."""

import time

import pytest

import libredlock
from libredlock import aio
from libredlock.testing import MemoryClient
from libredlock.testing.wait import in_time
from patience import GENEROUS_TIMEOUTS


@pytest.fixture(params=["memory", "nodes"])
def any_client(request):
    if request.param == "memory":
        return MemoryClient()
    return request.getfixturevalue("client")


def verdicts(report):
    return report.verdict, [one.verdict for one in report.each]


def test_status_of_permits_tells_who_holds_each(any_client):
    assert verdicts(any_client.status("gpu", permits=2)) == ("free", ["free", "free"])
    with any_client.lock("gpu", permits=2, slot=1, ttl=20) as second:
        report = any_client.status("gpu", permits=2)
        assert verdicts(report) == ("free", ["free", "held"]) and not report.held and report.remaining is None
        assert report.each[1].token == second.token and report.each[1].held_by.pid
        assert any_client.status("gpu", permits=2, slot=1).token == second.token
        assert not any_client.status("gpu", permits=2, slot=0).held
        with any_client.lock("gpu", permits=2, ttl=8):
            full = any_client.status("gpu", permits=2)
            assert verdicts(full) == ("held", ["held", "held"]) and full.token is None
            assert full.remaining == min(one.remaining for one in full.each)
    for wrong in ({"permits": 0}, {"slot": 1}, {"permits": 2, "slot": 2}):
        with pytest.raises(ValueError, match="permits|slot"):
            any_client.status("gpu", **wrong)


def test_status_of_several_resources_has_one_for_each(any_client):
    assert verdicts(any_client.status(["a", "b"])) == ("free", ["free", "free"])
    with any_client.lock("a", shared=True):
        assert verdicts(any_client.status(["a", "b"])) == ("shared", ["shared", "free"])
        with any_client.lock(b"b") as lock:
            report = any_client.status(("a", b"b"))
            assert report.held and verdicts(report) == ("held", ["shared", "held"])
            assert report.resource == ("a", b"b") and report.each[1].token == lock.token
            assert report.remaining == max(one.remaining for one in report.each)
    with pytest.raises(ValueError, match="1 to 100"):
        any_client.status([])


def test_a_lock_has_the_status_of_what_it_locks(any_client):
    lock, pair, permit = any_client.lock("r"), any_client.lock(["a", "b"]), any_client.semaphore("gpu", 3)
    with lock as hold, pair, permit as third:
        assert lock.status().token == hold.token and lock.status().resource == "r"
        assert verdicts(pair.status()) == ("held", ["held", "held"])
        each = permit.status().each
        assert len(each) == 3 and each[third.slot].token == third.token
        assert any_client.lock("gpu", permits=3, slot=third.slot).status().token == third.token
    assert verdicts(permit.status())[1] == ["free"] * 3


def test_permits_may_be_the_default_of_the_client(nodes):
    """What asks the nodes for something else goes on to do so."""
    with libredlock.Client(nodes.urls, permits=2, **GENEROUS_TIMEOUTS) as client:
        assert client.check()["voting"] == 5
        with client.lock("gpu"):
            assert sorted(verdicts(client.status("gpu"))[1]) == ["free", "held"]
            assert len(client.status(["gpu", "other"]).each) == 2
        assert client.status("gpu", permits=1).each == ()


def test_status_of_too_few_nodes_is_no_quorum(client, nodes):
    for node in nodes.nodes[:3]:
        node.kill()
    for call in (lambda: client.status("gpu", permits=2), lambda: client.status(["a", "b"])):
        with pytest.raises(libredlock.NoQuorum):
            call()


def test_all_permits_are_asked_for_at_the_same_time(client, nodes):
    """A node that hangs delays them together."""
    nodes[0].stop()
    began = time.monotonic()
    assert client.status("gpu", permits=30).verdict == "free"
    waited_s = time.monotonic() - began
    nodes[0].cont()
    assert in_time(waited_s < 10 * GENEROUS_TIMEOUTS["node_timeout"], f"{waited_s:.1f} s")


def test_tasks_have_the_same(on_client):
    async def body(client):
        assert isinstance(client, aio.Client)
        async with client.semaphore("gpu", 2) as permit, client.lock(["a", "b"]) as pair:
            each = (await client.status("gpu", permits=2)).each
            assert each[permit.slot].token == permit.token
            assert (await client.semaphore("gpu", 2).status()).each[permit.slot].held
            report = await client.status(["a", "b"])
            assert [one.token for one in report.each] == [pair.token] * 2
        assert (await client.check())["voting"] == 5

    on_client(body, permits=1)


def test_release_by_force_deletes_a_lock_whoever_holds_it(any_client):
    """It returns on how many nodes it was."""
    count = len(any_client.describe()["nodes"])
    assert any_client.release("r", force=True) == 0
    hold = any_client.lock("r", ttl=20).take()
    with pytest.raises(TypeError, match=r"only with force=True; to give up a lock of your own say hold.release\(\)"):
        any_client.release("r")
    assert any_client.status("r").held
    assert any_client.release("r", force=True) == count
    assert not any_client.status("r").held
    with pytest.raises(libredlock.Lost):
        hold.extend()
    with any_client.lock("r", wait=0):
        pass
    holds = [any_client.semaphore("gpu", 2).take(), any_client.semaphore("gpu", 2).take()]
    holds += [any_client.lock(["a", "b"]).take(), any_client.lock("doc", shared=True).take()]
    assert any_client.release("gpu", force=True, permits=2, slot=1) == count
    assert verdicts(any_client.status("gpu", permits=2)) == ("free", ["held", "free"])
    assert any_client.release("gpu", force=True, permits=2) == count
    assert any_client.release(["a", "b"], force=True) == any_client.release("doc", force=True) == count
    assert verdicts(any_client.status(["gpu", "a", "b", "doc"])) == ("free", ["free"] * 4)
    for hold in holds:
        with pytest.raises(libredlock.Lost):
            hold.release()


def test_release_by_force_needs_a_majority(client, nodes):
    for node in nodes.nodes[:3]:
        node.kill()
    with pytest.raises(libredlock.NoQuorum):
        client.release("r", force=True)


def test_tasks_release_by_force(on_client):
    async def body(client):
        hold = await client.lock("r", ttl=20).take()
        with pytest.raises(TypeError, match="force=True"):
            await client.release("r")
        assert await client.release("r", force=True) == 5
        with pytest.raises(libredlock.Lost):
            await hold.release()

    on_client(body)


def test_busy_tells_when_it_is_worth_trying_again(any_client):
    lock = any_client.lock("r", ttl=20)
    with any_client.lock("r", ttl=20, renew=False):
        with pytest.raises(libredlock.Busy) as caught:
            any_client.lock("r", wait=0).take()
        assert 10 < caught.value.retry_after <= 20
        assert lock.acquire(timeout=0.3) is False  # in the queue not all nodes are asked
        assert 5 < lock.refused.retry_after <= 20
    assert libredlock.Busy("words").retry_after is None


ENDLESS = float("inf")


@pytest.mark.parametrize("answers, expected", [
    ([("BUSY", 3), ("BUSY", 9), ("BUSY", 5)], 5),
    ([("BUSY", 9), ("OK", None), ("BUSY", 4)], 4),
    ([("BUSY", 9), ("UNREACHABLE", None), ("BUSY", None)], 9),
    ([("BUSY", ENDLESS), ("BUSY", 4), ("BUSY", 4)], 4),
    ([("BUSY", ENDLESS), ("BUSY", ENDLESS), ("BUSY", 4)], None),
    ([("BUSY", None), ("NOT_HELD", None), ("NOT_HELD", None)], None),
    ([("BUSY", 7)], 7),
])
def test_it_is_when_a_majority_is_free(answers, expected):
    votes = {f"n{n}": libredlock.Vote(libredlock.Status[status], "", ttl, "")
             for n, (status, ttl) in enumerate(answers)}
    assert libredlock.Busy("words", votes=votes).retry_after == expected

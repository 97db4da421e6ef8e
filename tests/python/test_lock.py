"""The synchronous Lock, one thread."""

import os
import re
import socket
import threading
import time
from datetime import timedelta

import pytest

import libredlock
from libredlock.testing import eventually
from patience import GENEROUS_TIMEOUTS, at_once, busy, connected, lapsing


def lapse(lock):
    """Lets a held lock expire without an extension."""
    eventually(lambda: not lock.owned(), 30, "the lock lapses")


def test_timedelta_is_a_duration(client, nodes):
    with client.lock("r", ttl=timedelta(seconds=25), renew=False) as lock:
        assert 10000 < max(node.pttl("r") for node in nodes) <= 25000
        assert 10 < lock.remaining < 25
        lock.extend(timedelta(seconds=30))
        lock.extend()
        assert lock.remaining > 20


def test_bytes_and_str_name_the_same_resource(client, other):
    with client.lock("gr\u00fcn"):
        assert other.lock("gr\u00fcn".encode()).acquire(blocking=False) is False


def test_with_raises_busy_with_every_nodes_answer(client, other, nodes):
    with client.lock("orders:42"):
        with pytest.raises(libredlock.Busy) as caught:
            with other.lock("orders:42", wait=0):
                pytest.fail("entered")
    busy = caught.value
    assert busy.status is libredlock.Status.BUSY
    assert busy.resource == "orders:42"
    assert set(busy.votes) == {node.name for node in nodes}
    assert [vote.status for vote in busy.votes.values()].count(libredlock.Status.BUSY) >= nodes.quorum
    assert "orders:42" in str(busy) and nodes[0].name in str(busy)
    assert "\n" not in str(busy)


@pytest.mark.parametrize("take", ["with", "acquire"])
def test_an_outage_ends_the_wait_for_ever(nodes, take):
    """`wait` is for a lock that others hold; outage_wait bounds how long too few nodes are put up with."""
    for node in nodes:
        node.kill()
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS, outage_wait=0.3) as client:
        begin = time.monotonic()
        with pytest.raises(libredlock.NoQuorum):
            if take == "acquire":
                client.lock("r").acquire()
            with client.lock("r", wait=None):
                pytest.fail("entered")
        assert time.monotonic() - begin >= 0.3


def test_release_reports_a_lock_lost_on_the_nodes(client, other, nodes):
    lock = client.lock("r", ttl=20)
    lock.acquire()
    for node in nodes:
        node.set("r", "somebody else", px=20_000)
    with pytest.raises(libredlock.Lost, match="^the lock on 'r' was lost: .* no longer had its token: .*") as caught:
        lock.release()
    assert nodes[0].name in str(caught.value) and "nothing to delete" in str(caught.value)
    assert caught.value.reason == "gone" and not lock.locked()
    with pytest.raises(libredlock.NotHeld):
        lock.release()
    with pytest.raises(libredlock.Lost):
        with client.lock("s", ttl=20):
            for node in nodes:
                node.set("s", "somebody else", px=20_000)


def test_a_lock_whose_lease_has_ended_can_be_taken_again(client, nodes):
    """By the same object, without a release: the idiom of "once a minute for all of us"."""
    lock = client.lock("r", **lapsing(2))
    assert at_once(lambda: lock.acquire(blocking=False))
    lapse(lock)
    assert at_once(lambda: lock.acquire(blocking=False))
    lock.check()
    lapse(lock)
    assert lock.acquire(timeout=30)
    lapse(lock)
    with lock:
        assert lock.owned() and lock.locked()
    nodes.no_keys()
    with pytest.raises(libredlock.NotHeld):
        lock.release()


def test_with_block_around_a_reacquired_lease_is_lost(client, nodes):
    lock = client.lock("r", **lapsing(0.4), renew=False)
    with pytest.raises(libredlock.Lost, match="'r' was lost"):
        with lock:
            lapse(lock)
            with lock:
                lock.check()
    assert not lock.locked()
    nodes.no_keys()


def test_a_loss_says_why(client, nodes):
    lock = client.lock("r", **lapsing(0.4))
    lock.acquire()
    lapse(lock)
    assert lock.lost and lock.locked() and lock.remaining == 0
    for call in (lock.check, lock.extend, lock.release):
        with pytest.raises(libredlock.Lost, match="lease expired") as caught:
            call()
        assert caught.value.reason == "expired"
    assert not lock.locked()


def test_check_raises_the_cause(client):
    lock = client.lock("r")
    assert lock.remaining == 0.0
    with pytest.raises(libredlock.NotHeld):
        lock.check()
    with lock:
        lock.check()


def test_error_of_the_body_is_raised_with_the_loss_as_a_note(client, caplog):
    with pytest.raises(KeyError) as caught:
        with client.lock("r", **lapsing(0.4), renew=False) as lock:
            lapse(lock)
            raise KeyError("mine")
    assert caught.value.args == ("mine",)
    assert any(record.name == "libredlock" and "r" in record.getMessage() for record in caplog.records)
    if hasattr(caught.value, "add_note"):
        assert any("libredlock" in note for note in caught.value.__notes__)


def test_votes_are_per_node(client, nodes):
    nodes[0].kill()
    with client.lock("r") as lock:
        eventually(lambda: sum(v.status == libredlock.Status.OK for v in lock.votes.values()) == 4, 30)
        assert lock.votes[nodes[1].name].words == "granted"
        assert lock.votes[nodes[0].name].status != libredlock.Status.OK


@pytest.mark.parametrize(
    "arguments, error",
    [
        ({"timeout": -2}, ValueError),
        ({"timeout": -0.5}, ValueError),
        ({"timeout": float("nan")}, ValueError),
        ({"blocking": False, "timeout": 1}, ValueError),
        ({"timeout": threading.TIMEOUT_MAX * 2}, OverflowError),
        ({"timeout": timedelta.max}, OverflowError),
        ({"timeout": "1"}, TypeError),
        ({"timeout": None}, TypeError),
        ({"blocking": 5}, TypeError),
    ],
)
def test_acquire_judges_its_arguments_as_threading_does(client, arguments, error):
    lock = client.lock("r")
    with pytest.raises(error, match="timeout"):
        lock.acquire(**arguments)
    with pytest.raises(TypeError, match=r"blocking=5: takes True or False; acquire\(timeout=5\) waits"):
        lock.acquire(5)
    assert lock.acquire(blocking=False)
    lock.release()


def test_check_examines_the_nodes(nodes):
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
        report = client.check()
        assert (report["voting"], report["quorum"]) == (5, 3)
        assert all(node["votes"] and node["rtt_us"] > 0 and not node["advice"] for node in report["nodes"])
    with pytest.raises(ValueError):
        client.check()
    nodes[0].kill()
    nodes[1].replica_of(nodes[2])
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
        down, replica = client.check()["nodes"][:2]
        assert (down["votes"], down["advice"]) == (False, "start the server, or correct the address")
        assert "replica" in replica["why"] and "make it a master" in replica["advice"]


def test_a_closed_client_says_so(nodes):
    client = libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    lock = client.lock("r")
    lock.acquire()
    client.close()
    client.close()
    assert client.closed and "closed" in repr(client)
    nodes.no_keys()
    with pytest.raises(ValueError):
        client.lock("r")
    with pytest.raises(ValueError):
        client.describe()
    with pytest.raises(libredlock.RedlockError):
        lock.release()
    with pytest.raises(libredlock.RedlockError):
        lock.acquire()


def test_status_and_busy_name_the_holder(nodes):
    named = libredlock.Client(nodes.urls, client_name="worker-7", **GENEROUS_TIMEOUTS)
    with named as holder, libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as asker:
        assert asker.status("r").held_by is None and not asker.status("r").held
        with holder.lock("r"):
            held_by = asker.status("r").held_by
            assert (held_by.client_name, held_by.host, held_by.pid) == ("worker-7", socket.gethostname(), os.getpid())
            assert 0 <= held_by.held < 60
            assert asker.status("r").held and not asker.lock("r").locked()
            words = r"held by worker-7 \(pid \d+ on .+\) for \d+\.\d s"
            for wait in 1.5, 0:
                failure = busy(asker.lock("r", wait=wait).__enter__, words)
                assert failure.held_by.client_name == "worker-7" and re.match(words, f"held by {failure.held_by}")
        with holder.lock("r", shared=True):
            failure = busy(asker.lock("r", wait=0).__enter__)
            assert str(failure.held_by) == "1 reader" and str(failure).startswith("held by 1 reader: ")


def test_busy_names_the_holder_if_another_node_hangs(nodes):
    holder = connected(libredlock.Client(nodes.urls, client_name="worker-7", **GENEROUS_TIMEOUTS))
    with holder, holder.lock("r"):
        with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as asker:
            asker.status("r")
            nodes[0].stop()
            failure = busy(asker.lock("r", wait=0).__enter__)
            assert failure.held_by.client_name == "worker-7"
            assert [vote.status for vote in failure.votes.values()].count(libredlock.Status.BUSY) >= nodes.quorum
            nodes[0].cont()


def test_ttl_that_looks_like_milliseconds_is_refused(client, nodes):
    """Other libraries take them; ttl=10000 is 2 h 46 min."""
    hint = r"ttl is in seconds: ttl=10 is what other libraries call 10000 ms"
    with libredlock.Client(nodes.urls, max_ttl=30, guard="off", **GENEROUS_TIMEOUTS) as client:
        with pytest.raises(libredlock.InvalidOption, match=hint):
            client.lock("r", ttl=10_000)
        with pytest.raises(libredlock.InvalidOption) as caught:
            client.lock("r", ttl=31)
        assert "other libraries" not in str(caught.value) and "max_ttl" in str(caught.value)
        with client.lock("r", ttl=20) as lock, pytest.raises(libredlock.InvalidOption, match=hint):
            lock.extend(10_000)
    with pytest.raises(libredlock.InvalidOption, match=hint):
        libredlock.Client(nodes.urls, ttl=10_000, max_ttl=30)


def test_the_words_have_the_options_names(client, caplog):
    """Those of the core end in _ms."""
    lock = client.lock("r", **lapsing(4), max_hold=5, renew=True)
    lock.acquire()
    lapse(lock)
    with pytest.raises(libredlock.Lost, match="'r' was lost: max_hold allowed no further renewal"):
        lock.release()
    eventually(lambda: "max_hold" in caplog.text, 30)
    assert "_ms" not in caplog.text


def test_waits_end_where_a_tool_has_stopped_time(client, monkeypatch):
    """As freezegun does."""
    lock = client.lock("r")
    lock.acquire()
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    assert lock.acquire(timeout=0.05) is False
    lock.release()


@pytest.mark.parametrize("prompt, warned", [("", "[('RuntimeWarning', '<string>')]"), ("sys.ps1 = 'In : '", "[]")])
def test_blocking_an_event_loop_warns_once(script, other, prompt, warned):
    """Not for a free lock, unless the machine is so late that it takes a while; and not in a notebook."""
    source = f"""
import asyncio, sys, warnings
import libredlock
{prompt}
async def main():
    with libredlock.Client(**{GENEROUS_TIMEOUTS}) as client:
        for name, limit in ("free", 20), ("r", 0.2), ("r", 0.2):
            lock = client.lock(name)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    if lock.acquire(timeout=limit):
                        lock.release()
                except libredlock.TimedOut:
                    pass
            print([(w.category.__name__, w.filename) for w in caught])
asyncio.run(main())
"""
    expected = (0, f"[]\n{warned}\n[]", "")
    with other.lock("r"):
        for _ in range(10):
            ended = script(source).end()
            if ended == expected:
                break
        assert ended == expected

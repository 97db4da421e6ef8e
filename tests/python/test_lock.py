"""The synchronous Lock, one thread."""

import threading
from datetime import timedelta

import pytest

import libredlock
from libredlock.testing import eventually
from patience import CALM, short

LAST_VERDICT_S = 1  # a wait that ends before any node has answered is TimedOut


def lapse(lock):
    """Lets a held lock run out: nobody extends it."""
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


def test_false_when_others_hold_it(client, other):
    with client.lock("r"):
        lock = other.lock("r", wait=LAST_VERDICT_S)
        assert lock.acquire(blocking=False) is False
        assert lock.acquire(timeout=LAST_VERDICT_S) is False
        assert lock.acquire() is False
        assert not lock.locked() and not lock.owned()


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


def test_no_quorum_raises_also_without_waiting(client, nodes):
    for node in nodes.nodes[:3]:
        node.kill()
    lock = client.lock("r")
    with pytest.raises(libredlock.NoQuorum) as caught:
        lock.acquire(blocking=False)
    assert nodes[0].name in str(caught.value)
    with pytest.raises(libredlock.NoQuorum):
        lock.acquire(timeout=LAST_VERDICT_S)
    with pytest.raises(libredlock.NoQuorum):
        with client.lock("r", wait=LAST_VERDICT_S):
            pytest.fail("entered")


def test_release_of_what_was_never_taken(client):
    lock = client.lock("r")
    with pytest.raises(libredlock.NotHeld) as caught:
        lock.release()
    assert isinstance(caught.value, RuntimeError)  # as threading.Lock raises


def test_release_does_not_fail_because_of_nodes(client, nodes):
    lock = client.lock("r")
    lock.acquire()
    for node in nodes:
        node.kill()
    lock.release()
    assert not lock.owned()


def test_a_lapsed_lock_is_lost_though_no_node_answers(client, nodes):
    lock = client.lock("r", **short(1))
    lock.acquire()
    lock.check()
    for node in nodes:
        node.stop()
    lapse(lock)
    assert lock.lost and lock.locked() and lock.remaining == 0
    with pytest.raises(libredlock.Lost):
        lock.check()
    with pytest.raises(libredlock.Lost):
        lock.extend()
    with pytest.raises(libredlock.Lost):
        lock.release()
    assert not lock.locked()


def test_check_tells_what_is_the_matter(client):
    lock = client.lock("r")
    assert lock.remaining == 0.0
    with pytest.raises(libredlock.NotHeld):
        lock.check()
    with lock:
        lock.check()


def test_renew_false_holds_in_with_too(client):
    with pytest.raises(libredlock.Lost):
        with client.lock("r", **short(0.4), renew=False) as lock:
            lapse(lock)


def test_the_body_s_own_error_leaves_unchanged_and_the_loss_is_noted(client, caplog):
    with pytest.raises(KeyError) as caught:
        with client.lock("r", **short(0.4), renew=False) as lock:
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
    ],
)
def test_acquire_judges_its_arguments_as_threading_does(client, arguments, error):
    lock = client.lock("r")
    with pytest.raises(error, match="timeout"):
        lock.acquire(**arguments)
    assert lock.acquire(blocking=False)
    lock.release()


def test_events_are_kept_and_logged_once(client, caplog):
    caplog.set_level("DEBUG", "libredlock")
    lock = client.lock("gone", **short(0.4))
    lock.acquire()
    lapse(lock)
    with pytest.raises(libredlock.Lost):
        lock.release()
    losses = [event for event in eventually(client.events) if event["event"] == "lost"]
    assert losses and losses[0]["resource"] == "gone"
    logged = len(caplog.records)
    assert losses[0] in client.events()
    assert len([r for r in caplog.records[logged:] if "event=lost" in r.getMessage()]) == 0


def test_a_closed_client_says_so(nodes):
    client = libredlock.Client(nodes.urls, **CALM)
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

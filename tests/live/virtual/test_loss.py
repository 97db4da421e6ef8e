"""Why a lock was lost: told apart in the function, the message and the event."""
import re

import pytest

import rl
from helpers import Call, held_everywhere, lapse, occupy, spin
from queueing import places
from rl import FREE, HELD, LOST, NO_QUORUM, OK, TIMED_OUT, UNREACHABLE, Loss, State
from testing import eventually


def lost_event(client):
    """The event of the loss, as soon as it is there."""
    found = []

    def look():
        found.extend(event for event in client.events() if event["event"] == "lost")
        return found

    spin(client, look, what="the loss is reported")
    assert len(found) == 1
    return found[0]


@pytest.fixture
def held(hold):
    lock = hold(ttl_ms=30000)
    assert lock.loss == Loss.NONE
    return lock


def test_a_lease_that_lapsed_is_lost_as_expired(nodes, make_client):
    client = make_client(nodes.urls, **rl.lapsing(400))
    lock = client.lock()
    assert lock.acquire(5000) == OK
    lapse(lock)
    assert lock.loss == Loss.EXPIRED
    assert lock.message == 'the lock was lost: the lease expired: "r"; extend it in time, or set renew'
    assert lost_event(client)["reason"] == "expired"
    assert lock.acquire(5000) == OK and lock.loss == Loss.NONE
    lock.release()


def test_a_hold_that_may_not_go_on_is_lost_by_its_limit(nodes, make_client):
    client = make_client(nodes.urls, renew=True, **dict(rl.lapsing(600), max_hold_ms=900))
    lock = client.lock()
    assert lock.acquire(5000) == OK
    lapse(lock)
    assert lock.loss == Loss.LIMIT
    assert lock.message == 'the lock was lost: the lease expired: max_hold_ms allowed no further renewal: "r"'
    assert [lock.vote(i) for i in range(5)] == 5 * [OK], "none of them is the cause"
    assert lock.extend() == LOST
    assert lost_event(client)["reason"] == "limit"


def test_an_extension_finds_that_the_token_is_gone(nodes, held):
    for node in nodes.nodes[:3]:
        node.delete_keys()
    assert held.extend() == LOST
    assert held.loss == Loss.GONE
    assert "the token was gone on 3 of 5 nodes" in held.message and "expired" not in held.message
    event = lost_event(held.client)
    assert event["reason"] == "gone" and "expired" not in event["detail"]


def test_a_renewal_finds_that_the_token_is_gone(nodes, hold):
    lock = hold(renew=True, ttl_ms=8000)
    for node in nodes.nodes[:4]:
        node.set("r", "somebody else", px=60000)
    lapse(lock)
    assert lock.loss == Loss.GONE and "of 5 nodes" in lock.message
    assert {node.get("r") for node in nodes.nodes[:4]} == {b"somebody else"}
    assert lost_event(lock.client)["reason"] == "gone"


def test_a_loss_names_only_the_nodes_that_cost_it(nodes, hold):
    """Two had been restarted, and had the token again: that is no cause."""
    lock = hold(renew=True, ttl_ms=8000)
    for node in nodes.nodes[:2]:
        node.restart(empty=True)
    nodes.bootstrap()
    spin(lock.client, lambda: all(node.get("r") for node in nodes.nodes), 30, "a renewal has put it back")
    for node in nodes.nodes[1:4]:
        node.delete_keys()
    spin(lock.client, lambda: lock.state == State.LOST, 30, "a renewal finds nothing")
    assert [lock.vote(i) for i in range(5)] == [OK, LOST, LOST, LOST, OK]
    said = "the lock was lost: the token was gone on 3 of 5 nodes: .*: 3 nodes: the token is gone \\(%s\\)$"
    assert re.search(said % ", ".join(node.name for node in nodes.nodes[1:4]), lock.message), lock.message


def test_a_loss_says_why_each_renewal_failed(nodes, make_client, fake_server):
    """One node is down, one hangs, two refuse."""
    fakes = [fake_server({"EVALSHA": b"-ERR no disk\r\n", "EVAL": b"-ERR no disk\r\n"}) for _ in range(2)]
    lock = make_client([*nodes.urls[:3], *(f.url for f in fakes)], renew=True, **rl.lapsing(2000)).lock()
    assert lock.acquire(5000) == OK
    held_everywhere(lock)
    nodes[0].kill()
    nodes[1].stop()
    lapse(lock)
    nodes[1].cont()
    assert lock.loss == Loss.EXPIRED
    assert [lock.vote(i) for i in range(5)] == [UNREACHABLE, TIMED_OUT, OK, NO_QUORUM, NO_QUORUM], lock.message
    assert 'the lease expired: 1 of 5 nodes kept "r", 3 needed: ' in lock.message, lock.message
    assert "2 nodes: error: ERR no disk" in lock.message and "; start the server, or correct the add" in lock.message
    assert nodes[2].name not in lock.message, lock.message
    risk, = (event["detail"] for event in lock.client.events() if event["event"] == "at_risk")
    assert risk.startswith("a renewal was not confirmed in time: 2 of 5 nodes refused it: " + fakes[0].name), risk


def test_without_a_guard_restarts_are_a_loss(nodes, hold):
    """With the guard it would be lost at the end of its lease: no other client is granted it there before."""
    held = hold(guard="off", ttl_ms=30000)
    for node in nodes.nodes[:3]:
        node.restart(empty=True)
    spin(held.client, lambda: held.state == State.LOST, 30, "the new run_ids are seen")
    assert held.loss == Loss.RESTARTED
    assert "3 of 5 nodes" in held.message and "restarted" in held.message and "expired" not in held.message
    told = [event for event in held.client.events() if event["event"] in ("node_restarted", "lost")]
    assert [event["event"] for event in told] == ["node_restarted"] * 3 + ["lost"]
    assert told[3]["reason"] == "restarted" and held.validity_ms == 0


def test_lease_cut_short_by_a_minority_is_not_said_to_run_out(nodes, proxy, hold):
    """An extension that reached only two of three nodes; one of these loses the key: the older lease of the third
    decides now, earlier than the holder could expect."""
    proxies = [proxy(node) for node in nodes.nodes[:3]]
    lock = hold(proxies, ttl_ms=4000, node_timeout_ms=1000)
    proxies[2].hold()
    assert lock.extend(30000) == OK and lock.validity_ms > 15000
    nodes[0].delete_keys()
    assert lock.start(rl.EXTEND) == OK
    spin(lock.client, lambda: lock.vote(0) == LOST, what="the first node has lost it")
    lapse(lock)
    assert lock.loss == Loss.GONE and "expired" not in lock.message
    proxies[2].go()


# ---- the verdict of a release


@pytest.mark.parametrize("lost", [3, 4, 5])
def test_release_reports_a_majority_without_the_token(nodes, make_client, held, lost):
    for node in nodes.nodes[:lost]:
        node.delete_keys()
    other = make_client(nodes.urls).lock()
    assert other.acquire(5000) == OK  # the second holder, which the first one learns of
    assert held.state == HELD
    assert held.release() == LOST
    assert held.loss == Loss.GONE and held.state == FREE
    assert "the token was gone on" in held.message and "nothing to delete" in held.message
    assert lost_event(held.client)["reason"] == "gone"
    assert other.state == HELD and other.release() in (OK, LOST)


def test_a_minority_that_had_lost_it_breaks_no_promise(nodes, held):
    for node in nodes.nodes[:2]:
        node.delete_keys()
    assert held.release() == OK and held.loss == Loss.NONE
    nodes.no_keys()


def test_a_node_that_never_granted_contradicts_nothing(nodes, make_client):
    occupy(nodes.nodes[:2])
    lock = make_client(nodes.urls).lock()
    assert lock.acquire(5000) == OK
    for node in nodes.nodes[:2]:
        node.delete_keys()
    assert lock.release() == OK and lock.loss == Loss.NONE


def test_a_release_waits_no_longer_than_its_time_for_the_rest(nodes, hold):
    """One node has lost it, the others hang: nothing is proved."""
    lock = hold(ttl_ms=30000, node_timeout_ms=500)
    nodes[0].delete_keys()
    for node in nodes.nodes[1:]:
        node.stop()
    assert Call(lock.release).join() == OK
    for node in nodes.nodes[1:]:
        node.cont()
    eventually(lambda: not nodes.keys(), 30, "the deletes that were on their way")


def test_lost_token_is_deleted_before_the_handle_queues(nodes, held, hold):
    """Another handle of the client waits already, so this one stands behind it without an attempt of its own."""
    client = held.client
    for node in nodes.nodes[:3]:
        node.delete_keys()
    assert held.extend() == LOST
    holder = hold(nodes.nodes[:3], guard="off", ttl_ms=30000)  # its list is another one
    first = client.lock(ttl_ms=30000)
    assert first.start(rl.ACQUIRE, 60000) == OK
    spin(client, lambda: places(nodes), what="the first waits")
    left = [node.get("r") for node in nodes.nodes[3:]]
    assert all(left), "the lost token is still there"
    assert held.start(rl.ACQUIRE, 60000) == OK
    spin(client, lambda: not any(node.get("r") for node in nodes.nodes[3:]), what="the lost token is deleted")
    assert holder.release() == OK

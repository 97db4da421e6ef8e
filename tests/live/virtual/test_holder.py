"""Who holds a lock: what the nodes can tell of the client, and that nothing depends on it."""
import json
import os
import socket
import time

import pytest

import rl
from common import occupy
from helpers import finish, held_everywhere, inspected, lapse, spin
from queueing import LONG, places
from rl import BUSY, INVALID, NO_QUORUM, OK, PENDING
from testing import eventually
from testing.wait import in_time
from waiters import members

pytestmark = pytest.mark.holder_info

HOST = socket.gethostname()


def entries(node):
    return [key for key in node.keys() if b"libredlock:c:" in key and not key.endswith(b":programs")]


def of(lock):
    """Its holder, without the time."""
    found = lock.held_by
    return found and (found["client_name"], found["host"], found["pid"])


ME = ("worker-7", HOST, os.getpid())


def test_inspect_names_the_holder_and_since_when(held, client):
    lock = inspected(client)
    assert of(lock) == ME
    first_ms = lock.held_by["held_ms"]
    assert 0 <= first_ms < 60000
    eventually(lambda: lock.held_by["held_ms"] >= first_ms + 100)
    assert held.release() == OK
    assert inspected(client).held_by is None


def test_an_inspect_waits_for_the_answer(make_cluster, make_client):
    """With a single node there is no slower one that it waits for anyway."""
    nodes = make_cluster(1)
    assert make_client(nodes.urls, client_name="worker-7", **LONG).lock().acquire(5000) == OK
    assert of(inspected(make_client(nodes.urls))) == ME


def test_an_inspect_waits_no_longer_than_for_that(nodes, held, make_client):
    client = make_client(nodes.urls, node_timeout_ms=7500, **LONG)
    for node in nodes:
        node.command("DEL", *entries(node))
    begun_s = time.monotonic()
    assert inspected(client).held_by is None
    in_time(time.monotonic() - begun_s < 10)


def test_nobody_is_asked_who_holds_it_unless_that_is_wanted(held, client):
    lock = client.lock()
    for wait_ms in (500, 0):
        assert lock.acquire(wait_ms) == BUSY
        assert lock.held_by is None and lock.message.startswith("held by others: ")


def test_who_names_the_holder_and_leaves_the_refusal_as_it_is(held, client):
    lock = client.lock()
    assert lock.acquire(0) == BUSY
    spin(client, lambda: PENDING not in lock.votes)
    before = [lock.status, lock.attempts, lock.votes]
    assert lock.who() == BUSY
    assert of(lock) == ME
    assert lock.message.startswith("held by worker-7 (pid %d on %s) for " % (os.getpid(), HOST)), lock.message
    assert [lock.status, lock.attempts, lock.votes] == before
    assert held.release() == OK
    assert lock.who() == OK
    assert lock.held_by is None


def test_who_names_the_holder_of_one_of_several_resources(held, client):
    lock = client.lock("a")
    assert lock.add("r") == OK
    assert lock.acquire(0) == BUSY
    assert lock.who() == BUSY
    assert of(lock) == ME


@pytest.mark.parametrize("slots, wanted, name", [([0, 1], -1, "worker-0"), ([1], -1, "worker-1"),
                                                 ([0, 1], 1, "worker-1"), ([0], 1, None)])
def test_who_names_the_holder_of_a_permit(nodes, make_client, slots, wanted, name):
    """Of the slot that is wanted, or of any."""
    for slot in slots:
        owner = make_client(nodes.urls, client_name="worker-%d" % slot, **LONG).lock(permits=2, slot=slot)
        assert owner.acquire(20000) == OK
        held_everywhere(owner)
    lock = make_client(nodes.urls, **LONG).lock(permits=2, slot=wanted)
    refused = lock.acquire(0) == BUSY if len(slots) == 2 else None
    assert lock.who() == (BUSY if name else OK)
    assert (lock.held_by or {}).get("client_name") == name
    if refused:
        words = "its permit is held by " if wanted == 1 else "no permit is free, one is held by "
        assert lock.message.startswith(words + name + " (pid "), lock.message


@pytest.mark.parametrize("resources", [["r"], ["a", "r"]])
def test_who_as_an_operation_leaves_the_refusal(held, client, resources):
    lock = client.lock(*resources)
    assert lock.acquire(0) == BUSY
    spin(client, lambda: PENDING not in lock.votes)
    before = [lock.status, lock.attempts, lock.votes]
    for _ in range(2):
        assert lock.start(rl.Operation.WHO, 5000) == OK and finish(lock) == BUSY
        assert of(lock) == ME
        assert lock.message.startswith("held by worker-7 (pid %d on %s) for " % (os.getpid(), HOST)), lock.message
        assert [lock.status, lock.attempts, lock.votes] == before
    assert held.release() == OK
    assert lock.start(rl.Operation.WHO, 5000) == OK and finish(lock) == BUSY
    assert lock.held_by is None and lock.message.startswith("held by others: ")
    assert lock.acquire(20000) == OK


def test_who_works_during_a_wait(nodes, held, client):
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, 60000) == OK
    spin(client, lambda: places(nodes))
    assert lock.who() == BUSY
    assert lock.status == PENDING and of(lock) == ME
    assert held.release() == OK
    assert finish(lock) == OK and lock.held_by is None


def test_who_does_not_wait_for_a_node_that_hangs(nodes, held, make_client):
    """Once a majority shows the same holder. An inspect waits for it."""
    client = make_client(nodes.urls, node_timeout_ms=7500, **LONG)
    assert inspected(client).held_by
    nodes[0].stop()
    begun_s = time.monotonic()
    lock = client.lock()
    assert lock.who(60000) == BUSY
    assert of(lock) == ME
    in_time(time.monotonic() - begun_s < 5)
    begun_s = time.monotonic()
    assert lock.start(rl.INSPECT) == OK
    assert finish(lock) == BUSY
    assert time.monotonic() - begun_s > 5
    nodes[0].cont()


def test_who_ends_at_its_limit(nodes, held, make_client):
    client = make_client(nodes.urls, node_timeout_ms=7500, **LONG)
    assert inspected(client).held_by
    for node in list(nodes)[:3]:
        node.stop()
    begun_s = time.monotonic()
    lock = client.lock()
    assert lock.who(300) == NO_QUORUM
    assert lock.held_by is None
    in_time(time.monotonic() - begun_s < 5)
    for node in list(nodes)[:3]:
        node.cont()


def test_who_has_a_limit_of_any_length_or_none(client):
    lock = client.lock()
    assert lock.who(-2) == INVALID and lock.who(2**63 - 1) == OK


@pytest.mark.parametrize("token", ["0123456789" * 4, "of another library"])
def test_a_key_of_others_takes_its_place(nodes, held, client, token):
    lock = client.lock()
    assert lock.acquire(0) == BUSY and lock.who() == BUSY
    assert of(lock) == ME
    occupy(nodes, ttl_ms=30000, token=token)
    assert lock.who() == BUSY
    assert lock.held_by is None and lock.message.startswith("held by others: ")


def test_the_next_holder_is_named(nodes, held, make_client, client):
    lock, following = client.lock(), make_client(nodes.urls, client_name="second", **LONG).lock()
    assert lock.acquire(0) == BUSY and lock.who() == BUSY
    assert held.release() == OK and following.acquire(5000) == OK
    assert of(lock) == ME
    assert lock.who() == BUSY
    assert of(lock) == ("second", HOST, os.getpid())


@pytest.mark.parametrize("value", ["a" * 40, "0123456789abcdef0123456789abcdef01234567", "token", "\x00\xff" * 20])
def test_holders_of_other_libraries_are_not_named(nodes, client, value):
    for node in nodes:
        node.set("r", value.encode("latin-1"), px=60000)
    assert inspected(client).held_by is None
    lock = client.lock()
    assert lock.acquire(0) == BUSY and lock.who() == BUSY
    assert lock.held_by is None and lock.message.startswith("held by others: ")


def test_holder_info_off_writes_no_entry(nodes, hold, client):
    lock = hold(holder_info="false", client_name="secret", **LONG)
    assert [entries(node) for node in nodes] == [[]] * 5
    assert inspected(client).held_by is None
    assert lock.release() == OK


def test_one_node_that_has_the_entry_is_enough(nodes, held, client):
    for node in nodes[:4]:
        for key in entries(node):
            node.command("DEL", key)
    assert of(inspected(client)) == ME


@pytest.mark.parametrize("left", [slice(0, 2), slice(3, 5)])
def test_keys_that_were_left_behind_do_not_hide_the_holder(nodes, client, make_client, left):
    """Two nodes have the token of an earlier client, whose entry is there."""
    other = make_client(nodes.urls, client_name="gone", **LONG).lock()
    assert other.acquire(5000) == OK
    held_everywhere(other)
    for node in set(nodes) - set(list(nodes)[left]):
        node.command("DEL", "r")
    holder = make_client(nodes.urls, client_name="worker-7", **LONG).lock()
    assert holder.acquire(5000) == OK
    lock = inspected(client)
    assert lock.verdict == rl.Verdict.HELD and of(lock) == ME


@pytest.mark.parametrize("entry", [
    b"", b"v1", b"v1 ", b"v1 7", b"v1 7 host", b"v1 x h n", b"v2 7 host name", b"v1 7 host" + b"x" * 300, b"{}",
    b"\x00" * 40,
])
def test_a_malformed_entry_is_not_shown(nodes, held, client, entry):
    for node in nodes:
        node.set(entries(node)[0], entry, px=60000)
    assert inspected(client).held_by is None


def test_an_entry_cannot_break_the_output(nodes, held, client):
    """Whoever writes to the nodes can write anything there."""
    for node in nodes:
        node.set(entries(node)[0], b'v1 -7 ho"st \x1b[31m"}\xff, "x": "\n', px=60000)
    lock = inspected(client)
    assert lock.held_by["pid"] == -7 and lock.held_by["host"] == 'ho"st'
    assert json.dumps(lock.held_by)
    waiter = client.lock()
    assert waiter.acquire(0) == BUSY and waiter.who() == BUSY
    assert "worker-7" not in waiter.message and "pid -7" in waiter.message
    assert "\n" not in waiter.message and "\x1b" not in waiter.message


def test_an_entry_of_another_type_is_no_error(nodes, held, client):
    for node in nodes:
        key = entries(node)[0]
        node.command("DEL", key)
        node.command("HSET", key, "a", "b")
    assert inspected(client).held_by is None
    assert held.extend(30000) == OK


def test_a_client_writes_its_entry_once(nodes, client):
    """To a node that answers after the others with a later lock."""
    lock, cycles = client.lock(), 0
    while cycles < 20 or any(not entries(node) for node in nodes):
        assert lock.acquire(5000) == OK
        assert lock.release() == OK
        cycles += 1
    eventually(lambda: [node.calls("set") for node in nodes] == [cycles + 1] * 5)
    assert {tuple(entries(node)) for node in nodes} == {tuple(entries(nodes[0]))} and len(entries(nodes[0])) == 1


def test_an_entry_outlives_the_lease(nodes, hold):
    """One that answers after the others has none yet."""
    hold(ttl_ms=3600000, max_ttl_ms=3600000)
    found = eventually(lambda: [node.pttl(key) for node in nodes for key in entries(node)])
    assert min(found) > 3600000, found


def test_a_longer_lease_renews_the_entry(nodes, make_client):
    lock = make_client(nodes.urls, max_hold_ms=-1, max_ttl_ms=3600000).lock()
    assert lock.acquire(5000) == OK
    held_everywhere(lock)
    assert lock.extend(3600000) == OK
    for node in nodes:
        eventually(lambda node=node: any(node.pttl(key) > 3600000 for key in entries(node)))


def test_entry_lost_with_the_connection_is_written_again(nodes, hold, client):
    lock = hold(client_name="worker-7", renew="true", ttl_ms=3000, node_timeout_ms=700)
    for node in nodes:
        for key in entries(node):
            node.command("DEL", key)
        node.kill_clients()
    eventually(lambda: all(entries(node) for node in nodes), 30, "renewals go on")
    eventually(client.settled, 30)
    assert of(inspected(client)) == ME
    assert lock.state == rl.HELD


def test_failed_attempt_leaves_no_entry(nodes, make_client):
    occupy(nodes)
    assert make_client(nodes.urls).lock().acquire(0) == BUSY
    assert make_client(nodes.urls).lock(queue="false").acquire(300) == BUSY
    assert [entries(node) for node in nodes] == [[]] * 5


def test_a_waiter_leaves_an_entry_where_it_has_a_place(nodes, make_client):
    occupy(nodes)
    lock = make_client(nodes.urls).lock()
    assert lock.start(rl.ACQUIRE, 60000) == OK
    spin(lock.client, lambda: places(nodes) and any(entries(node) for node in nodes), 20)
    spin(lock.client, lambda: [bool(entries(node)) for node in nodes] == [bool(members(node)) for node in nodes], 20)


def test_an_entry_lives_a_minute_beyond_the_lease(nodes, hold):
    lock = hold(ttl_ms=30000, holder_info="true")
    spin(lock.client, lambda: all(entries(node) for node in nodes), what="all that granted have the holder's entry")
    assert all(80000 < node.pttl(entries(node)[0]) <= 90000 for node in nodes)


def test_a_silent_node_does_not_hold_up_an_inspect(nodes, held, make_client):
    """The entry of the holder's client is read after the token: a node may hang in between."""
    client = make_client(nodes.urls, node_timeout_ms=300)
    nodes[0].stop()
    try:
        assert of(inspected(client)) == ME
    finally:
        nodes[0].cont()


def test_after_a_loss_no_holder_is_named(hold, client):
    lock = hold(**rl.lapsing(1000))
    lapse(lock)
    eventually(lambda: inspected(client).held_by is None, 10, "the keys have expired")

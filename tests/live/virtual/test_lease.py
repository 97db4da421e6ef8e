"""Held becomes lost at the local deadline: without any network event, readable at the descriptor, told as an event."""
import json
import select

import rl
from helpers import lapse, spin
from rl import BUSY, LOST, OK, ffi, lib
from testing import eventually


def readable(client, within_s=10):
    return bool(select.select([client.fd], [], [], within_s)[0])


def drained(client):
    """Runs the client until its descriptor is quiet."""
    def quiet():
        client.process()
        return not readable(client, 0)

    eventually(quiet)
    while client.next() is not None:
        pass
    client.events()


def test_a_loss_at_the_deadline_is_told_with_all_nodes_stopped(nodes, make_client):
    client = make_client(nodes.urls, **rl.lapsing(3000))
    lock = client.lock()
    lock.set_tag(77)
    assert lock.acquire(5000) == OK
    drained(client)
    for node in nodes:
        node.stop()
    tags = []
    while 77 not in tags:
        assert readable(client), "the descriptor tells the loss"
        client.process()
        tags.append(client.next())
    assert lock.state == rl.State.LOST and lock.validity_ms == 0
    assert [e for e in client.events() if e["event"] == "lost" and e["resource"] == "r"]
    assert lock.release() == LOST
    for node in nodes:
        node.cont()


def test_holder_is_lost_before_the_nodes_let_others_in(nodes, make_client):
    """When another gets the lock, the first one has known for at least the drift that it is not held."""
    first = make_client(nodes.urls, **rl.lapsing(500)).lock()
    second = make_client(nodes.urls, retry_delay_ms=1).lock()
    for _ in range(4):
        assert first.acquire(5000) == OK
        assert second.acquire(10000) == OK
        assert first.state == rl.State.LOST
        assert second.release() == OK


def test_event_lines_are_json_and_consumed_once(nodes, make_client):
    client = make_client(nodes.urls, **rl.lapsing(400))
    lock = client.lock("orders:42\n")
    assert lock.acquire(5000) == OK
    lapse(lock)
    spin(client, lambda: client.process() == OK and client.next() is not None)
    small = ffi.new("char[]", 4)
    needed = lib.redlock_client_event(client.handle, small, 4)
    assert needed >= 4  # nothing was consumed
    big = ffi.new("char[]", needed + 1)
    assert lib.redlock_client_event(client.handle, big, needed + 1) == needed
    event = json.loads(ffi.string(big))
    assert event["event"]
    rest = client.events()
    assert all("event" in e for e in rest) and client.events() == []
    assert "lost" in [event["event"], *(e["event"] for e in rest)]


def test_event_queue_is_bounded(nodes, make_client):
    client = make_client(nodes.urls, **rl.lapsing(3000))
    locks = [client.lock("m%d" % i) for i in range(3000)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, 60000) == OK
    spin(client, lambda: all(lock.status == OK for lock in locks), within_s=60)
    spin(client, lambda: all(lock.state == rl.State.LOST for lock in locks))
    client.process()
    events = client.events()
    assert len(events) < 3000
    assert any(e["event"] == "dropped" for e in events)


def test_describe_shows_options_nodes_and_figures(nodes, make_client, make_cluster):
    odd = make_cluster(1, cluster_enabled=True, password="hush")[0]
    client = make_client([*nodes.urls, odd.url, "redis://127.0.0.1:1"], client_name="worker")
    lock = client.lock()
    assert lock.acquire(5000) == OK
    spin(client, lambda: "cluster" in json.dumps(client.describe()["nodes"][5]))
    described = client.describe()
    assert described["options"]["client_name"] == "worker" and str(described["options"]["ttl_ms"]) == "8000"
    assert [node["node"] for node in described["nodes"]] == [client.node_name(i) for i in range(7)]
    assert "refused" in json.dumps(described["nodes"][6])
    assert "hush" not in json.dumps(described)
    assert (described["held"], described["acquired"], described["lost"], described["quorum"]) == (1, 1, 0, 4)
    other = make_client(nodes.urls).lock()
    assert other.acquire() == BUSY

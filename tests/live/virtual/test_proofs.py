"""What proves that a lease counts on: the marker behind an extension, and the identity of the server that has it."""
import time

import pytest

import rl
from guarding import GUARDED, MARKER, REPLACE, bootstrapped, granted_to_another, taken_once
from helpers import held_everywhere, spin
from rl import HELD, OK
from testing import eventually
from testing.wait import in_time

pytestmark = pytest.mark.new_nodes


# ---- the marker behind an extension ----

@pytest.mark.parametrize("kind", [{}, {"shared": "true"}, {"fence": "true"}], ids=["plain", "shared", "fenced"])
def test_an_extension_does_not_count_if_keys_are_lost_behind_it(server, proxy, make_client, kind):
    bootstrapped([server.url])
    relay = proxy(server)
    lock = make_client([relay.url], **GUARDED).lock(**kind)
    assert lock.acquire(5000) == OK, lock.message
    before, readings = lock.validity_ms, server.calls("time")

    def lose_keys():
        eventually(lambda: server.calls("time") > readings, what="the extension and its TIME")
        server.flush()

    relay.at("GET", MARKER, lose_keys, byte=0)
    assert lock.extend() != OK
    assert lock.validity_ms <= before, "it counts until its former end"


def test_a_renewed_lock_outlasts_what_an_operator_does(make_cluster, guarded, make_client):
    """Restarts with data, one after the other; bootstrap; a smaller and a larger number."""
    servers = make_cluster(3, config={"appendonly": "yes"}).nodes
    urls = [server.url for server in servers]
    client = guarded(servers)
    lock = client.lock(renew="true")
    assert lock.acquire(0) == OK
    held_everywhere(lock)
    token = lock.token.encode()

    def goes_on():
        until = time.monotonic() + 4.5  # longer than any lease that was confirmed before
        spin(client, lambda: time.monotonic() > until or lock.state != HELD, 30)
        in_time(lock.loss != rl.Loss.EXPIRED, lock.message)
        assert lock.state == HELD, lock.message

    for server in servers:
        server.set("kept", "without a TTL")
        server.restart()
        assert server.get("kept"), "it has its data"
        spin(client, lambda: all(node["state"] == "ready" for node in client.describe()["nodes"]))
        spin(client, lambda: server.get("r") == token, what="a restart may outlast the key: then it is renewed")
    goes_on()
    bootstrapped(urls)
    for number in 2000, 8000, 4000:
        bootstrapped(urls, REPLACE, max_ttl_ms=number)
        goes_on()
    assert all(server.get("r") == token and 0 < server.pttl("r") <= 4000 for server in servers)
    assert client.lock("another").acquire(0) == OK


# ---- which server it is ----

def fail_over_and_back(master, replica):
    """Ends with `master` as it was, under its run id, without what came last."""
    replica.replica_of(None)  # it has the marker, and not what comes now
    yield
    master.replica_of(replica)
    master.replica_of(None)


@pytest.mark.parametrize("is_connected", [False, True], ids=["new client", "connected client"])
def test_a_master_that_was_a_replica_is_another_server(make_cluster, guarded, is_connected):
    master, replica = make_cluster(2).nodes
    first, second = guarded([master]).lock(), guarded([master])
    replica.replica_of(master)
    steps = fail_over_and_back(master, replica)
    next(steps)
    assert first.acquire(0) == OK
    begun = time.monotonic()
    next(steps, None)
    assert master.get("r") is None and master.get(MARKER)
    spin(second, lambda: time.monotonic() > begun + 1.1)  # its last look is not that young
    granted_to_another(second if is_connected else guarded([master]), first)


def test_a_marker_without_a_history_is_left_as_it_is(server, make_client):
    bootstrapped([server.url])
    text = " ".join(server.get(MARKER).decode().split(" ")[:8])
    server.set(MARKER, text)
    client = make_client([server.url], **GUARDED)
    assert client.lock().acquire(0) == OK and server.get(MARKER).decode() == text


def test_without_a_guard_a_lease_ends_with_the_history(make_cluster, make_client):
    master, replica = make_cluster(2).nodes
    client = make_client([master.url], guard="off", ttl_ms=8000)
    lock = client.lock()
    assert lock.acquire(0) == OK
    master.replica_of(replica)
    master.replica_of(None)
    master.kill_clients()
    spin(client, lambda: lock.state != HELD, 5, "longer than that the lease would last")
    assert lock.loss == rl.Loss.RESTARTED


def test_a_marker_that_was_followed_by_another_is_a_loss(server, guarded):
    """SWAPDB there and back: the keys that were written in between are gone, and the first marker is back."""
    first, second = taken_once(guarded([server])), taken_once(guarded([server]))
    server.command("SWAPDB", 0, 1)
    bootstrapped([server.url])
    lock = first.lock()
    assert lock.acquire(5000) == OK, lock.message
    taken_once(second)
    server.command("SWAPDB", 0, 1)
    assert server.get("r") is None
    granted_to_another(second, lock)


# ---- what an idle process finds ----

@pytest.mark.parametrize("with_data", [True, False])
def test_an_idle_process_is_as_welcome_as_a_new_one(make_cluster, guarded, with_data):
    """It was idle for longer than any lease, while the servers were restarted one after the other and served others."""
    servers = make_cluster(3, config={"appendonly": "yes" if with_data else "no"}).nodes
    idle = taken_once(guarded(servers))
    for server in servers:
        server.restart(empty=not with_data)
        busy = guarded(servers)
        spin(busy, lambda: all(node["votes"] for node in busy.describe()["nodes"]), 30, "its quarantine is over")
        busy.free()
    lock = idle.lock()
    assert lock.acquire(2000) == OK, lock.message

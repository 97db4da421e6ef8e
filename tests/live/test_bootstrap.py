"""redlock_client_bootstrap: an operator says that no lock is live, or that all programs have another number."""

import re

import pytest

import rl
from guarding import DRY, GUARDED, MARKER, NEW, REPLACE, YES, bootstrap, bootstrapped, clock_ms, history_of, marker_of
from helpers import Call, lock_once
from rl import HELD, NO_QUORUM, OK
from testing import eventually

pytestmark = pytest.mark.new_nodes


@pytest.fixture
def server(make_cluster):
    return make_cluster(1).nodes[0]


def test_bootstrap_is_idempotent(make_cluster):
    servers = make_cluster(3, bootstrapped=False).nodes
    urls = [server.url for server in servers]
    for mode in (NEW, YES, REPLACE):
        for server in servers:
            server.flush()
        assert bootstrap(urls, mode | DRY) == (OK, 3 * [("registered", False, 0, "is new or has lost its keys")])
        assert [server.get(MARKER) for server in servers] == 3 * [None]
        assert bootstrap(urls, mode) == (OK, 3 * [("registered", True, 4000, "votes")])
        before = [server.get(MARKER) for server in servers]
        for again in (NEW, YES, REPLACE):
            assert bootstrap(urls, again) == (OK, 3 * [("nothing", True, 4000, "votes")])
        assert [server.get(MARKER) for server in servers] == before


def test_new_is_for_new_deployments_only(make_cluster):
    servers = make_cluster(3, bootstrapped=False).nodes
    urls = [server.url for server in servers]
    servers[2].kill()
    status, nodes = bootstrap(urls, NEW)
    assert status == NO_QUORUM and [node[0] for node in nodes] == ["left_alone", "left_alone", "no_answer"]
    servers[2].start()
    bootstrapped(urls, NEW)
    servers[1].flush()
    status, nodes = bootstrap(urls, NEW)
    assert status == rl.REFUSED_CONFIG and [node[0] for node in nodes] == ["nothing", "left_alone", "nothing"]
    assert servers[1].get(MARKER) is None
    assert [node[0] for node in bootstrap(urls)[1]] == ["nothing", "registered", "nothing"]


def test_a_quarantined_node_is_registered(server, make_client):
    make_client([server.url], **dict(GUARDED, max_ttl_ms=60000)).lock().acquire(0)
    status, nodes = bootstrap([server.url], NEW, max_ttl_ms=60000)
    assert status == rl.REFUSED_CONFIG and re.fullmatch(r"is quarantined for another (\d+ s|1 min)", nodes[0][3])
    assert bootstrap([server.url], max_ttl_ms=60000)[1][0][:3] == ("registered", True, 60000)


@pytest.mark.parametrize("marker, words", [
    (dict(max_ttl_ms=1000), "allows 1 s"),
    (dict(max_ttl_ms=3600000), "allows 1 h"),
    (dict(nodes=5), "is registered for 5 nodes"),
    (dict(cluster="b"), "is registered for cluster b"),
])
def test_replace(server, make_client, marker, words):
    server.set(MARKER, marker_of(server, **marker))
    before = server.get(MARKER)
    status, nodes = bootstrap([server.url])
    assert status == rl.REFUSED_CONFIG and nodes[0][0] == "left_alone" and nodes[0][3] == words
    assert server.get(MARKER) == before
    assert bootstrap([server.url], REPLACE | DRY)[1][0][0] == "replaced" and server.get(MARKER) == before
    assert bootstrap([server.url], REPLACE) == (OK, [("replaced", True, 4000, "votes")])
    assert make_client([server.url], **GUARDED).lock().acquire(0) == OK


def test_replace_of_the_number_leaves_the_rest_of_the_marker(server):
    """So no client that knows it takes it for a loss; and its number does not depend on the time of the first look."""
    since = clock_ms(server) - 60000
    server.set(MARKER, marker_of(server, since=since, max_ttl_ms=1000))
    assert bootstrap([server.url], REPLACE)[0] == OK
    assert server.get(MARKER).decode() == marker_of(server, since=since, history=history_of(server))


def test_replace_of_a_marker_of_0_1(server, make_client):
    server.set(MARKER, "v1 %s 0 1 00 auto 4000 4000 4000" % server.info("server")["run_id"])
    assert bootstrap([server.url])[1][0][3] == "has a marker of version 0.1"
    assert bootstrap([server.url], REPLACE)[0] == OK
    assert make_client([server.url], **GUARDED).lock().acquire(0) == OK


def test_replace_while_a_node_is_away(make_cluster, make_client):
    servers = make_cluster(3).nodes
    urls = [server.url for server in servers]
    bootstrapped(urls)
    servers[2].stop()
    status, nodes = bootstrap(urls, REPLACE, max_ttl_ms=8000, connect_timeout_ms=3000)
    assert status == NO_QUORUM and [node[0] for node in nodes] == ["replaced", "replaced", "no_answer"]
    servers[2].cont()
    lock = make_client(urls, **dict(GUARDED, max_ttl_ms=8000, ttl_ms=8000)).lock()
    assert lock.acquire(0) == OK and "allows 4 s" in lock.message  # a majority is enough
    assert [node[0] for node in bootstrap(urls, REPLACE, max_ttl_ms=8000)[1]] == ["nothing", "nothing", "replaced"]


def test_two_bootstraps_at_once(make_cluster, make_client):
    servers = make_cluster(5, bootstrapped=False).nodes
    urls = [server.url for server in servers]
    calls = [Call(bootstrap, urls) for _ in range(4)]
    results = [call.join() for call in calls]
    assert all(status == OK and all(node[1] for node in nodes) for status, nodes in results), results
    assert make_client(urls, **GUARDED).lock().acquire(0) == OK


def test_bootstrap_leaves_a_replica_alone(make_cluster):
    master, replica = make_cluster(2).nodes
    replica.replica_of(master)
    status, nodes = bootstrap([replica.url], REPLACE)
    assert status == rl.REFUSED_CONFIG and nodes[0][:2] == ("left_alone", False) and "a replica" in nodes[0][3]


def test_bootstrap_takes_only_its_modes(server):
    for mode in (0, 4, 15, 32, 16, -1):
        assert bootstrap_status(server, mode) == rl.INVALID


def bootstrap_status(server, mode):
    client = rl.Client([server.url], open=False, **GUARDED)
    status = rl.lib.redlock_client_bootstrap(client.handle, mode)
    assert "allowed: 1 to 3" in client.message
    assert rl.lib.redlock_client_bootstrapped(client.handle, 0, 0) == -rl.INVALID
    return status


def test_an_open_client_goes_on_beside_its_bootstrap(server, guarded):
    client = guarded([server])
    lock = client.lock()
    assert lock.acquire(0) == OK
    assert rl.lib.redlock_client_bootstrap(client.handle, YES) == OK
    assert lock.state == HELD and lock.extend() == OK and client.describe()["nodes"][0]["connects"] == 1


def test_inspecting_client_registers_nothing(make_cluster):
    server = make_cluster(1, bootstrapped=False).nodes[0]
    client = rl.Client([server.url], open=False, **GUARDED)
    assert rl.lib.redlock_client_open_to_look(client.handle) == OK
    eventually(client.settled, 20)
    node = client.describe()["nodes"][0]
    assert not node["votes"] and node["quarantine_reason"] == "not_registered" and server.get(MARKER) is None
    client.free()


def test_bootstrap_covers_a_restart_seen_later(server, make_client):
    minute = dict(max_ttl_ms=60000)
    bootstrapped([server.url], **minute)
    client = make_client([server.url], **dict(GUARDED, **minute))
    lock_once(client)
    server.restart(empty=True)
    bootstrapped([server.url], **minute)
    lock_once(client)
    assert client.describe()["nodes"][0]["connects"] > 1

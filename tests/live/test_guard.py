"""The restart guard: what a server may have lost is granted to nobody before every lease on it is over.

What can lose keys: a restart without data, a restart with older data, a replica that is promoted, a failover to a
server without keys, FLUSHALL, and a failover behind a connection that is kept. Nothing sees the eviction of one key:
servers that evict are refused (test_session, conformance/cases/test_statuses)."""
import select
import socket
import threading

import pytest

import rl
from guarding import GUARDED, MARKER, granted_to_another
from helpers import finish, spin
from rl import HELD, NO_QUORUM, OK
from testing import eventually


@pytest.fixture
def server(make_cluster):
    return make_cluster(1).nodes[0]


@pytest.fixture
def first(server, guarded):
    lock = guarded([server]).lock()
    assert lock.acquire(0) == OK, lock.message
    return lock


def test_a_server_that_was_restarted_empty(server, first, guarded):
    server.restart(empty=True)
    granted_to_another(guarded([server]), first)


def test_a_server_that_was_restarted_seen_by_a_client_that_knows_it(server, first, guarded):
    second = guarded([server])
    server.restart(empty=True)
    eventually(lambda: second.settled() and second.describe()["nodes"][0]["why"], 60, "it is connected again")
    granted_to_another(second, first)


def test_a_server_that_came_back_with_old_data(server, guarded):
    client = guarded([server])
    server.command("SAVE")
    first = client.lock()
    assert first.acquire(0) == OK
    server.kill()
    server.start()
    assert server.get("r") is None and server.get(MARKER)
    granted_to_another(guarded([server]), first)


def test_flushall_seen_by_a_new_client(server, first, guarded):
    server.flush()
    granted_to_another(guarded([server]), first)


def test_flushall_under_a_connection(server, first, guarded):
    second = guarded([server])
    server.flush()
    granted_to_another(second, first)


def test_flushall_that_somebody_else_saw_first(server, first, guarded):
    second = guarded([server])
    server.flush()
    guarded([server])
    granted_to_another(second, first)


def test_a_replica_that_was_promoted(make_cluster, proxy, guarded):
    master, replica = make_cluster(2).nodes
    relay = proxy(master)
    first = guarded([relay]).lock()
    replica.replica_of(master)
    master.command("REPLICAOF", "NO", "ONE")
    replica.command("REPLICAOF", "NO", "ONE")  # it has the marker, and not what comes now
    assert first.acquire(0) == OK
    assert replica.get(MARKER) and replica.get("r") is None
    relay.lead_to(replica)
    master.kill_clients()
    granted_to_another(guarded([relay]), first)


def test_a_failover_to_a_server_without_keys(make_cluster, proxy, guarded):
    """It was started before the first lock, and has no marker."""
    master, other = make_cluster(2).nodes
    relay = proxy(master)
    first = guarded([relay]).lock()
    assert first.acquire(0) == OK
    relay.lead_to(other)
    master.kill_clients()
    granted_to_another(guarded([relay]), first)


class Balancer:
    """Keeps its clients' connections and passes what they send to another server from one moment on."""

    def __init__(self, server):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "redis://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.name = self.url
        self.server = server
        self.moved = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        server = upstream = None
        while True:
            if server is not self.server:
                self.moved += server is not None
                server, upstream = self.server, socket.create_connection(self.server.address)
            for ready in select.select([client, upstream], [], [], 0.01)[0]:
                data = ready.recv(65536)
                if not data:
                    return
                (upstream if ready is client else client).sendall(data)


@pytest.fixture
def balancer(server):
    one = Balancer(server)
    yield one
    one.listener.close()


def test_a_failover_behind_a_connection_that_is_kept(make_cluster, balancer, guarded):
    first, second = guarded([balancer]).lock(), guarded([balancer])
    assert first.acquire(0) == OK
    balancer.server = make_cluster(1).nodes[0]
    eventually(lambda: balancer.moved >= 2, 10, "the connections of both clients lead to the other server")
    granted_to_another(second, first)


def test_a_first_lock_on_new_servers_is_granted_within_the_wait(make_cluster, make_client):
    client = make_client(make_cluster(3).urls, **GUARDED)
    lock = client.lock()
    lock.start(rl.ACQUIRE, 15000)
    eventually(lambda: "quarantined for another" in lock.message, 10, "it says why it waits")
    assert "new, or without its keys, since 2" in lock.message
    assert not any(node["votes"] for node in client.describe()["nodes"])
    assert lock.wait(20000) == OK, lock.message
    warnings = [event for event in client.events() if event["event"] == "warning"]
    assert len(warnings) == 3 and all("quarantined" in event["detail"] for event in warnings)


def test_bootstrapped_servers_vote_at_once(make_cluster, guarded):
    servers = make_cluster(3).nodes
    client = guarded(servers)
    assert client.lock().acquire(0) == OK
    assert all(server.get(MARKER).startswith(b"v1 %s 0 3 " % server.info("server")["run_id"].encode())
               for server in servers)


def test_who_bootstraps_takes_no_lock(server, make_client):
    lock = make_client([server.url], **dict(GUARDED, guard="bootstrap")).lock()
    assert lock.acquire(0) == NO_QUORUM and "only writes markers" in lock.message
    assert server.get("r") is None


@pytest.mark.parametrize("marker, words", [
    ("something else", "libredlock:m is not a marker of this library"),
    ("v1 {run_id} 0 5 00 4000 4000 4000 4000", "its marker is of 5 nodes, and this client has 1"),
    ("v1 {run_id} 0 1 00 1000 1000 1000 1000", "its marker says max_ttl_ms 1000, and this client's is 4000"),
    ("v1 {run_id} 0 1 00 auto 4000 4000 4000", "its marker says max_ttl_ms auto, and this client's is 4000"),
    ("v1 {run_id} 0 1 00 4000 4000 4000 4001", "is not a marker"),
    ("v1 {run_id} 0 1 00 4000 4000 4000 4000 and more", "is not a marker"),
])
def test_a_marker_that_is_not_understood_is_never_overwritten(server, make_client, marker, words):
    marker = marker.format(run_id=server.info("server")["run_id"])
    server.set(MARKER, marker)
    lock = make_client([server.url], **GUARDED).lock()
    assert lock.acquire(0) == rl.REFUSED_CONFIG and words in lock.message
    assert server.get(MARKER) == marker.encode()


without_a_text = pytest.mark.parametrize(
    "key", [("LPUSH", MARKER, "x"), ("HSET", MARKER, "a", "b"), ("SET", MARKER, "")], ids=["list", "hash", "empty"])


@without_a_text
@pytest.mark.parametrize("guard", ["marker", "bootstrap"])
def test_a_key_without_a_text_is_no_marker(server, make_client, key, guard):
    server.command(*key)
    before = server.command("DUMP", MARKER)
    lock = make_client([server.url], **dict(GUARDED, guard=guard)).lock()
    assert lock.acquire(0) == rl.REFUSED_CONFIG and "libredlock:m is not a marker of this library" in lock.message
    assert server.command("DUMP", MARKER) == before and server.get("r") is None


@without_a_text
@pytest.mark.parametrize("guard", ["marker", "bootstrap"])
def test_a_key_that_somebody_writes_before_the_marker(server, proxy, make_client, key, guard):
    """It was not there when it was read, and is when the script that writes it comes."""
    relay, written = proxy(server), []

    def write():
        server.command(*key)
        written.append(server.command("DUMP", MARKER))

    relay.at("EVAL", MARKER, write, byte=1)
    client = make_client([relay.url], settle=False, **dict(GUARDED, guard=guard))
    words = "libredlock:m is not a marker of this library"
    spin(client, lambda: words in client.describe()["nodes"][0]["why"], 20)
    assert [server.command("DUMP", MARKER)] == written


def test_another_key_in_place_of_the_marker(server, guarded):
    client = guarded([server])
    server.command("DEL", MARKER)
    server.command("HSET", MARKER, "a", "b")
    before = server.command("DUMP", MARKER)
    lock = client.lock()
    assert lock.acquire(0) == NO_QUORUM and "may have lost keys" in lock.message
    spin(client, lambda: client.describe()["nodes"][0]["state"] == "refused")
    assert lock.acquire(5000) == rl.REFUSED_CONFIG and "libredlock:m is not a marker of this library" in lock.message
    assert server.command("DUMP", MARKER) == before


def test_a_holder_keeps_its_lease_where_nobody_else_is_granted(make_cluster, guarded):
    servers = make_cluster(3).nodes
    client = guarded(servers)
    lock = client.lock()
    assert lock.acquire(0) == OK
    for server in servers[:2]:
        server.restart(empty=True)
    eventually(lambda: client.settled() and sum(node["connects"] for node in client.describe()["nodes"]) == 5, 60,
               "it is connected again")
    assert lock.state == HELD and lock.validity_ms > 0


def test_a_renewed_lock_is_put_back_when_a_node_may_vote_again(make_cluster, guarded):
    servers = make_cluster(3).nodes
    client = guarded(servers)
    lock = client.lock(renew="true")
    assert lock.acquire(0) == OK
    servers[0].restart(empty=True)
    eventually(lambda: client.settled() and not client.describe()["nodes"][0]["votes"], 60)
    spin(client, lambda: client.describe()["nodes"][0]["votes"], 30, "it may vote again")
    spin(client, lambda: servers[0].get("r"), 30, "it is put back")
    assert lock.state == HELD


def test_an_extension_counts_no_node_that_may_not_vote(make_cluster, guarded):
    """It has the key from the SET that showed that it has lost others."""
    servers = make_cluster(3).nodes
    client = guarded(servers)
    servers[0].flush()
    lock = client.lock()
    assert lock.acquire(0) == OK, lock.message
    spin(client, lambda: client.describe()["nodes"][0]["connects"] == 2 and client.settled(), what="connected again")
    assert lock.votes[0] == rl.QUARANTINED and servers[0].get("r") == lock.token.encode()
    servers[1].stop()
    assert lock.extend() != OK and "quarantined" in lock.message
    servers[1].cont()


def test_an_adopted_token_counts_where_the_marker_is_as_it_was(make_cluster, guarded):
    """Somebody has set it where this client does not know yet that keys were lost."""
    servers = make_cluster(3).nodes
    lock = guarded(servers, outage_wait_ms=500).lock()
    token = "0123456789" * 4
    lock.adopt(token)
    servers[0].flush()
    for server in servers[:2]:
        server.set("r", token, 60000)
    assert lock.extend() == NO_QUORUM and lock.state != HELD
    assert "quarantined" in lock.message


def test_an_adopted_lock_is_held_again(make_cluster, guarded):
    servers = make_cluster(3).nodes
    first, second = guarded(servers).lock(), guarded(servers).lock()
    assert first.acquire(0) == OK
    second.adopt(first.token)
    first.detach()
    assert second.extend() == OK and second.state == HELD
    assert second.release() == OK and [server.get("r") for server in servers].count(None) >= 2


def test_uptime(server, make_client):
    options = dict(GUARDED, guard="uptime")
    lock = make_client([server.url], **options).lock()
    assert lock.acquire(0) == NO_QUORUM and "it was started a short time ago" in lock.message
    assert server.get(MARKER) is None
    assert lock.acquire(30000) == OK
    other = make_client([server.url], **options).lock("s")
    assert other.acquire(1500) == OK, other.message  # uptime is in seconds; it need not be seen for so long
    server.restart(empty=True)
    granted_to_another(make_client([server.url], **options), lock)


def test_uptime_where_the_first_request_joins_the_set_up(server, make_client, proxy):
    options = dict(GUARDED, guard="uptime", ttl_ms=12000, max_ttl_ms=12000, node_timeout_ms=3000,
                   connect_timeout_ms=25000)
    lock = make_client([server.url], **options).lock()
    assert lock.acquire(30000) == OK
    server.restart(empty=True)
    address = proxy(server, accepting=False)
    second = make_client([address.url], settle=False, **options).lock()
    assert second.start(rl.ACQUIRE, 0) == OK
    address.open()
    assert finish(second) == NO_QUORUM and "it was started a short time ago" in second.message
    assert lock.validity_ms > 0, "the first lease is over, so this shows nothing"
    assert server.calls("set"), "no SET joined the set-up"


def few(servers, *rules):
    """The URLs for a user with all rights but for these rules."""
    for server in servers:
        server.command("ACL", "SETUSER", "few", "reset", "on", ">p", "~*", "&*", "+@all", *rules)
    return [server.url_with("few", "p") for server in servers]


NO_MARKER = [("resetkeys", "~r", "~libredlock:proof:*"), ("resetkeys", "~r", "~libredlock:proof:*", "%R~libredlock:m"),
             ("-time",)]


@pytest.mark.parametrize("rules", NO_MARKER, ids=["no-key", "read-only", "no-time"])
def test_where_the_marker_is_forbidden_restarts_are_noticed(make_cluster, make_client, rules):
    servers = make_cluster(3).nodes
    urls = few(servers, *rules)
    client = make_client(urls, **GUARDED)
    lock = client.lock()
    assert lock.acquire(30000) == OK, lock.message
    warnings = [event["detail"] for event in client.events() if "it forbids the marker" in event["detail"]]
    assert len(warnings) == 3, warnings
    for server in servers:
        server.restart(empty=True)
    granted_to_another(make_client(few(servers, *rules), **GUARDED), lock)


def test_without_a_word_of_the_longest_ttl_a_server_waits_for_a_day(make_cluster, make_client):
    servers = make_cluster(3).nodes
    lock = make_client(few(servers, *NO_MARKER[0]), **dict(GUARDED, max_ttl_ms="auto")).lock()
    assert lock.acquire(0) == NO_QUORUM and "quarantined for another 872" in lock.message, lock.message


def test_a_marker_that_becomes_forbidden_and_is_allowed_again(make_cluster, make_client):
    servers = make_cluster(3).nodes
    urls = few(servers)
    make_client(urls, **dict(GUARDED, guard="bootstrap"))
    client = make_client(urls, **GUARDED)
    lock = client.lock()
    assert lock.acquire(0) == OK and lock.release() == OK
    few(servers, *NO_MARKER[0])
    assert lock.acquire(30000) == OK and lock.release() == OK
    assert any("it forbids the marker" in event["detail"] for event in client.events())
    few(servers)
    assert lock.acquire(30000) == OK and lock.release() == OK

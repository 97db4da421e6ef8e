"""The restart guard: locks that a server may have lost are not granted before every lease on it is over.

What can lose keys: a restart without data, a restart with older data, a replica that is promoted, a failover to a
server without keys, FLUSHALL, and a failover behind a connection that is kept. Nothing sees the eviction of one key:
servers that evict are refused (test_session, conformance/cases/test_statuses)."""
import re

import pytest

import rl
from guarding import GUARDED, MARKER, REPLACE, bootstrapped, granted_to_another
from helpers import spin
from rl import HELD, NO_QUORUM, OK
from testing import eventually

pytestmark = pytest.mark.new_nodes


@pytest.fixture
def first(server, guarded):
    lock = guarded([server]).lock()
    assert lock.acquire(0) == OK, lock.message
    return lock


def test_a_server_that_was_restarted_empty_does_not_vote(server, first, guarded):
    server.restart(empty=True)
    granted_to_another(guarded([server]), first)


def test_restart_is_seen_by_a_client_that_knows_the_server(server, first, guarded):
    second = guarded([server])
    server.restart(empty=True)
    eventually(lambda: second.settled() and second.describe()["nodes"][0]["why"], 60, "it is connected again")
    granted_to_another(second, first)


def test_a_server_that_came_back_with_old_data_does_not_vote(server, guarded):
    client = guarded([server])
    server.command("SAVE")
    first = client.lock()
    assert first.acquire(0) == OK
    server.kill()
    server.start()
    assert server.get("r") is None and server.get(MARKER)
    granted_to_another(guarded([server]), first)


def test_flushall_is_seen_by_a_new_client(server, first, guarded):
    server.flush()
    granted_to_another(guarded([server]), first)


def test_flushall_is_seen_under_a_connection(server, first, guarded):
    second = guarded([server])
    server.flush()
    granted_to_another(second, first)


def test_flushall_is_seen_if_somebody_else_saw_it_first(server, first, guarded):
    second = guarded([server])
    server.flush()
    guarded([server])
    granted_to_another(second, first)


def test_a_replica_that_was_promoted_does_not_vote(make_cluster, proxy, guarded):
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


def test_a_failover_to_a_server_without_keys_is_seen(make_cluster, proxy, guarded):
    """It was started before the first lock, and has no marker."""
    master, other = make_cluster(2).nodes
    relay = proxy(master)
    first = guarded([relay]).lock()
    assert first.acquire(0) == OK
    relay.lead_to(other)
    master.kill_clients()
    granted_to_another(guarded([relay]), first)


@pytest.mark.parametrize("nodes, who", [(1, "the node is"), (3, r"\d of 3 nodes are")])
def test_a_first_lock_on_new_servers_is_granted_within_the_wait(make_cluster, make_client, nodes, who):
    client = make_client(make_cluster(nodes).urls, **GUARDED)
    lock = client.lock()
    lock.start(rl.ACQUIRE, 15000)
    eventually(lambda: "quarantined" in lock.message, what="it says why it waits")
    assert re.search("new, or may have lost keys.* since 2", lock.message)
    assert not any(node["votes"] for node in client.describe()["nodes"])
    assert lock.wait(20000) == OK, lock.message
    (told,) = [event for event in client.events() if event["event"] == "warning"]
    assert re.fullmatch(rf"waits: {who} new or may have lost keys, and do(es)? not vote for another "
                        r"[34]\.\d s; redlock "
                        r"bootstrap ends that if no lock is live", told["detail"])


@pytest.mark.parametrize("lost, is_advised", [(1, False), (2, True)])
def test_bootstrap_is_advised_only_without_a_majority(make_cluster, make_client, lost, is_advised):
    """Where a majority votes there is nothing to do: the others vote by themselves."""
    cluster = make_cluster(3)
    bootstrapped(cluster.urls, max_ttl_ms=60000)
    for node in cluster.nodes[:lost]:
        node.restart(empty=True)
    client = make_client(cluster.urls, **dict(GUARDED, max_ttl_ms=60000))
    lock = client.lock()
    lock.start(rl.ACQUIRE, 60000)
    spin(client, lambda: lock.status == OK or "quarantined" in lock.message)
    said = [lock.message] if is_advised else []
    said += [node["advice"] for node in client.describe()["nodes"]]
    said += [event.get("detail", "") for event in client.events()]
    assert any("redlock bootstrap" in words for words in said) == is_advised, said
    assert is_advised or "wait: it votes by itself" in said


@pytest.mark.parametrize("lost", range(3))
def test_emptied_server_is_reported_while_the_others_vote(make_cluster, make_client, lost):
    cluster = make_cluster(3)
    bootstrapped(cluster.urls)
    cluster[lost].command("FLUSHALL")
    client = make_client(cluster.urls, **GUARDED)
    told = []

    def is_told():
        told.extend(event for event in client.events() if event["event"] == "warning")
        return told

    eventually(is_told, what="the node is quarantined")
    assert client.lock().acquire(0) == OK
    other = (lost + 1) % 3
    cluster[other].kill_clients()
    spin(client, lambda: client.describe()["nodes"][other]["connects"] == 2 and client.settled(), what="it comes again")
    (warning,) = told + [event for event in client.events() if event["event"] == "warning"]
    assert warning["node"] == cluster[lost].name and warning["detail"].startswith("quarantined for another ")


def test_bootstrapped_servers_vote_at_once(make_cluster, guarded):
    servers = make_cluster(3).nodes
    client = guarded(servers)
    assert client.lock().acquire(0) == OK
    assert all(re.fullmatch(r"v2 %s 0 3 0 [0-9a-f]{16} 4000 - 0{16}" % server.info("server")["run_id"],
                            server.get(MARKER).decode()) for server in servers)


def test_the_operator_ends_the_wait_of_a_program_that_runs(make_cluster, make_client):
    servers = make_cluster(3).nodes
    urls = [server.url for server in servers]
    client = make_client(urls, **dict(GUARDED, max_ttl_ms=3600000))
    lock = client.lock()
    lock.start(rl.ACQUIRE, 3000000)
    eventually(lambda: " for another 3" in lock.message, what="it says why it waits")
    bootstrapped(urls, max_ttl_ms=3600000)
    assert lock.wait(20000) == OK, lock.message
    assert all(node["connects"] == 1 for node in client.describe()["nodes"])


def test_describe_shows_the_number_and_the_quarantine(make_cluster, make_client):
    server = make_cluster(1).nodes[0]
    client = make_client([server.url], **GUARDED)
    node = client.describe()["nodes"][0]
    assert (node["max_ttl_ms"], node["quarantined"], node["quarantine_reason"]) == (4000, True, "new")
    assert 0 < node["quarantine_left_ms"] <= 4100
    bootstrapped([server.url])
    spin(client, lambda: client.lock().acquire(0) == OK, 20)
    node = client.describe()["nodes"][0]
    assert (node["quarantined"], node["quarantine_reason"], node["quarantine_left_ms"]) == (False, "", None)


def test_holder_keeps_its_lease_while_others_are_not_granted(make_cluster, guarded):
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
    lock = guarded(servers, outage_wait_ms=500, node_timeout_ms=750).lock()
    token = "0123456789" * 4
    lock.adopt(token)
    servers[0].flush()
    for server in servers[:2]:
        server.set("r", token, 60000)
    assert lock.extend() == NO_QUORUM and lock.state != HELD
    assert "quarantined" in lock.message


def test_expire_of_an_adopted_lock_shortens_every_lease(make_cluster, guarded):
    servers = make_cluster(3).nodes
    first, second = guarded(servers).lock(), guarded(servers, node_timeout_ms=750).lock()
    assert first.acquire(0) == OK
    second.adopt(first.token)
    first.detach()
    assert second.expire(3000) == OK, second.message
    assert second.state == HELD and 0 < second.validity_ms <= 3000
    assert second.settle() == OK and all(0 < server.pttl("r") <= 3000 for server in servers)
    assert second.release() == OK


def test_expire_of_an_adopted_token_skips_emptied_nodes(make_cluster, guarded):
    servers = make_cluster(3).nodes
    lock = guarded(servers, outage_wait_ms=500, node_timeout_ms=750).lock()
    token = "0123456789" * 4
    lock.adopt(token)
    servers[0].flush()
    for server in servers[:2]:
        server.set("r", token, 60000)

    def told():
        assert lock.expire(3000) == NO_QUORUM and lock.state != HELD
        return "quarantined" in lock.message  # unless the wait ends while that node is asked again

    eventually(told, 10, lock.message)


def test_an_adopted_lock_is_held_again(make_cluster, guarded):
    servers = make_cluster(3).nodes
    first, second = guarded(servers).lock(), guarded(servers).lock()
    assert first.acquire(0) == OK
    second.adopt(first.token)
    first.detach()
    assert second.extend() == OK and second.state == HELD
    assert second.release() == OK and [server.get("r") for server in servers].count(None) >= 2


def test_a_round_trip_may_take_more_than_half_a_second(make_cluster, proxy, make_client):
    servers = make_cluster(3).nodes
    bootstrapped([server.url for server in servers])
    proxies = [proxy(server) for server in servers]
    for p in proxies:
        p.delay(up_ms=350, down_ms=350)
    options = dict(GUARDED, ttl_ms=60000, max_ttl_ms=60000, node_timeout_ms=15000, connect_timeout_ms=20000)
    client = make_client([p.url for p in proxies], settle=False, **options)
    lock = client.lock()
    assert lock.acquire(60000) == rl.REFUSED_CONFIG and "allows 4 s" in lock.message  # it is connected
    bootstrapped([server.url for server in servers], REPLACE, max_ttl_ms=60000, ttl_ms=60000)
    assert make_client([p.url for p in proxies], settle=False, **options).lock().acquire(60000) == OK


def test_a_first_registration_works_over_a_slow_network(make_cluster, proxy, make_client):
    """The time that its since is compared with is read behind it."""
    p = proxy(make_cluster(1, bootstrapped=False).nodes[0])
    p.delay(up_ms=1200)
    client = make_client([p.url], settle=False, **dict(GUARDED, connect_timeout_ms=20000))
    lock = client.lock()
    lock.start(rl.ACQUIRE, 60000)
    spin(client, lambda: client.describe()["nodes"][0]["quarantine_reason"] == "new", 40, "it is registered")
    assert client.describe()["nodes"][0]["connects"] == 1

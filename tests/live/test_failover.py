"""Histories of servers, and failovers that only sockets can show: the restart guard sees what may have lost keys."""
import select
import socket
import subprocess
import threading

import pytest

import rl
from guarding import GUARDED, MARKER, bootstrap, bootstrapped, granted_to_another, taken_once
from helpers import spin
from rl import HELD, NO_QUORUM, OK, REFUSED_CONFIG
from testing import eventually

pytestmark = pytest.mark.new_nodes


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


def test_a_failover_behind_a_connection_that_is_kept_is_seen(make_cluster, balancer, guarded):
    first, second = guarded([balancer]).lock(), guarded([balancer])
    assert first.acquire(0) == OK
    balancer.server = make_cluster(1).nodes[0]
    eventually(lambda: balancer.moved >= 2, what="the connections of both clients lead to the other server")
    granted_to_another(second, first)


def test_a_lapsed_lease_does_not_count_in_a_quarantine(make_cluster, make_client, proxy):
    """It has counted before. Now somebody else's vote there is protected by the quarantine, and not this holder."""
    servers = make_cluster(3).nodes
    bootstrapped([server.url for server in servers])
    near = proxy(servers[0])
    relays = [proxy((near.host, near.port)), proxy(servers[1]), proxy(servers[2])]
    client = make_client([relay.url for relay in relays], **dict(GUARDED, ttl_ms=1200, node_timeout_ms=250))
    lock = client.lock(renew="true")
    assert lock.acquire(5000) == OK
    spin(client, lambda: all(server.get("r") for server in servers), 30, "all have granted it, or were healed")
    relays[0].black_hole()
    eventually(lambda: servers[0].get("r") is None, 30, "the lease there is over")

    def lose_keys():
        servers[0].flush()
        relays[2].black_hole()

    near.at("SET", "r", lose_keys, byte=0)
    relays[0].go()
    spin(lock.client, lambda: lock.state != HELD, 30, "one node of three is left")
    assert lock.extend() == rl.LOST


def partial_syncs(master):
    """How many replicas were given what they had missed, and not all data."""
    return int(master.info("stats")["sync_partial_ok"])


def follow_in_part(replica, master):
    before = partial_syncs(master)
    replica.replica_of(master)
    assert partial_syncs(master) == before + 1, "all data were sent"


def promote(replica, master):
    """Once it has all of the stream: what it lacks is not sent in part."""
    def offset(node, name):
        return node.info("replication").get(name)

    eventually(lambda: offset(replica, "slave_repl_offset") == offset(master, "master_repl_offset"), 30, "all has come")
    replica.replica_of(None)


def test_a_failover_there_and_back_with_partial_syncs_is_seen(make_cluster, make_client):
    """The old primary keeps its run id, its data and its marker, but for the key that was lost meanwhile."""
    old, new = make_cluster(2, config={"repl-ping-replica-period": 3600}).nodes  # else a PING may get lost between them
    minute = dict(max_ttl_ms=60000, ttl_ms=60000)
    bootstrapped([old.url], **minute)
    first, second = (make_client([old.url], **dict(GUARDED, **minute)).lock() for _ in range(2))
    assert first.acquire(0) == OK
    marker = old.get(MARKER)
    new.replica_of(old)
    promote(new, old)
    follow_in_part(old, new)
    assert second.acquire(0) in (NO_QUORUM, REFUSED_CONFIG) and "replica" in second.message, second.message
    new.command("DEL", "r")
    eventually(lambda: old.get("r") is None, 30, "the primary's stream has arrived")
    assert old.get(MARKER) == marker
    promote(old, new)
    follow_in_part(new, old)
    eventually(lambda: second.acquire(0) == NO_QUORUM and "quarantined" in second.message, 30, "it is asked again")
    assert first.validity_ms > 0 and old.get("r") is None and old.get(MARKER) != marker


def test_a_primary_that_its_former_one_follows_goes_on_to_vote(make_cluster, make_client):
    former, server = make_cluster(2).nodes
    bootstrapped([former.url])
    server.replica_of(former)
    promote(server, former)
    lock = make_client([server.url], **GUARDED).lock()
    assert lock.acquire(0) == NO_QUORUM and "quarantined" in lock.message, lock.message
    bootstrapped([server.url])
    marker = server.get(MARKER)
    follow_in_part(former, server)
    server.kill_clients()
    assert lock.acquire(5000) == OK and server.get(MARKER) == marker, lock.message
    assert bootstrap([former.url])[1][0][0] == "left_alone" and former.get(MARKER) == marker


@pytest.mark.parametrize("change", ["a first replica", "a replica that comes back", "no backlog", "redis-cli --rdb",
                                    "restart from RDB", "REPLICAOF"])
def test_only_a_replica_meanwhile_is_another_server(make_cluster, guarded, tmp_path, change):
    """A server is another one if it was a replica meanwhile; replicas of its own change nothing."""
    master, other = make_cluster(2, config={"repl-backlog-ttl": 1, "repl-timeout": 5}).nodes
    client = taken_once(guarded([master]))
    marker = master.get(MARKER)
    if change == "a first replica":
        other.replica_of(master)
    elif change == "a replica that comes back":
        other.replica_of(master)
        master.command("CLIENT", "KILL", "TYPE", "replica")
        eventually(lambda: partial_syncs(master) == 1, 30, "it goes on where it was")
    elif change == "no backlog":
        other.replica_of(master)
        other.replica_of(None)
        eventually(lambda: master.info("replication")["repl_backlog_active"] in (0, "0"), 30)
    elif change == "redis-cli --rdb":
        subprocess.run(["redis-cli", "-u", master.url, "--rdb", str(tmp_path / "dump.rdb")], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    elif change == "restart from RDB":
        master.command("SAVE")
        master.restart()
    else:
        master.command("REPLICAOF", "127.0.0.1", "1")
        master.command("REPLICAOF", "NO", "ONE")
    master.kill_clients()
    lock = client.lock()
    status = lock.acquire(3000)
    if change in ("REPLICAOF", "restart from RDB"):
        assert status == NO_QUORUM and "quarantined" in lock.message, lock.message
        assert master.get(MARKER) != marker
    else:
        assert status == OK and master.get(MARKER) == marker, lock.message

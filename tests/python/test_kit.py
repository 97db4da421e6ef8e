"""The cluster kit, as users of the package have it: its nodes grant locks at once, new ones do not."""

import os
import socket
import subprocess
import sys

import pytest

import libredlock
from libredlock.testing import Cluster, FakeServer
from patience import GENEROUS_TIMEOUTS

MARKER = "libredlock:m"


def granted(urls, **options):
    with libredlock.Client(urls, **GENEROUS_TIMEOUTS, **options) as client:
        return client.lock("r").acquire(timeout=0)


def refused(urls, why="quarantined", **options):
    with pytest.raises(libredlock.NoQuorum, match=why):
        granted(urls, **options)


@pytest.mark.parametrize(
    "how",
    [{}, {"unix": True}, {"password": "all"}, {"login": ("few", "p"), "users": ["user few on >p ~r &* +@all -keys"]}],
    ids=["ports", "unix", "password", "a user who has no right to the marker"],
)
def test_nodes_are_bootstrapped(make_cluster, how):
    cluster = make_cluster(3, **how)
    assert all(node.get(MARKER) for node in cluster)
    if "users" not in how:
        assert granted(cluster.urls)
    cluster.no_keys()


def test_nodes_stay_new_on_request_or_without_the_guard(make_cluster, monkeypatch):
    refused(make_cluster(3, bootstrapped=False).urls)
    monkeypatch.setenv("REDLOCK_GUARD", "off")
    cluster = make_cluster(3)
    assert [node.get(MARKER) for node in cluster] == [None] * 3 and granted(cluster.urls)
    assert all(node.get(MARKER) for node in make_cluster(3, bootstrapped=True))


def test_a_node_that_is_restarted_or_flushed_has_lost_its_keys(make_cluster):
    cluster = make_cluster(3)
    cluster[0].restart()
    cluster[1].flush()
    refused(cluster.urls)
    cluster.bootstrap()
    assert granted(cluster.urls)
    cluster[0].flush()
    cluster[1].kill()
    cluster.reset()
    assert granted(cluster.urls)


def test_nodes_are_bootstrapped_for_a_key_prefix(make_cluster):
    """Each prefix has a marker of its own."""
    cluster = make_cluster(3, key_prefix="app:")
    assert granted(cluster.urls, key_prefix="app:")
    refused(cluster.urls, key_prefix="other:")
    cluster.bootstrap(key_prefix="new:")
    assert granted(cluster.urls, key_prefix="new:")
    cluster.reset()
    assert granted(cluster.urls, key_prefix="app:")
    refused(cluster.urls, key_prefix="new:")


def test_nodes_are_bootstrapped_for_a_longest_ttl(make_cluster):
    cluster = make_cluster(3, max_ttl=1)
    with libredlock.Client(cluster.urls, max_ttl=1, ttl=1, connect_timeout=20) as client:
        assert client.lock("r").acquire(timeout=30)


def test_some_nodes_are_bootstrapped_for_clients_of_these_alone(make_cluster):
    cluster = make_cluster(3)
    cluster.bootstrap(nodes=cluster[:1])
    assert granted(cluster.urls[:1])
    cluster.reset()
    assert granted(cluster.urls)


def test_between_cases_keys_go_and_markers_stay(make_cluster):
    cluster = make_cluster(3)
    markers = [node.get(MARKER) for node in cluster]
    cluster[0].set("r", "token")
    other = cluster[1].connect()
    other.command("SELECT", 5)
    other.command("SET", MARKER, "of another database")
    cluster.reset()
    assert [node.get(MARKER) for node in cluster] == markers and cluster.keys() == {}
    assert other.command("GET", MARKER) is None
    other.close()
    cluster[0].set(MARKER, "somebody else's")
    cluster.reset()
    assert granted(cluster.urls)


def test_nodes_that_were_replicas_are_bootstrapped_again(make_cluster):
    cluster = make_cluster(3)
    for node in cluster:
        node.command("REPLICAOF", "127.0.0.1", 1)
    cluster.reset()
    assert granted(cluster.urls)


def test_nodes_that_are_refused_are_left_alone(make_cluster):
    cluster = make_cluster(3, config={"maxmemory-policy": "allkeys-lru", "maxmemory": "100mb"})
    assert [node.get(MARKER) for node in cluster] == [None] * 3


@pytest.mark.parametrize("flags, verdict", [([], "True"), (["--new"], "NoQuorum")])
def test_a_command_is_run_with_nodes(flags, verdict):
    job = (
        "import libredlock\n"
        "try: print(bool(libredlock.Client(node_timeout=2).lock('r').acquire(timeout=0)))\n"
        "except libredlock.RedlockError as error: print(type(error).__name__)"
    )
    kit = [sys.executable, "-m", "libredlock.testing", "-n", "3", *flags, "--exec", sys.executable, "-c", job]
    done = subprocess.run(kit, capture_output=True, text=True, env=dict(os.environ))
    assert done.stdout == f"{verdict}\n", done.stderr


def test_markers_are_no_keys_of_locks(make_cluster):
    cluster = make_cluster(3)
    assert cluster.keys() == {}
    cluster[0].set("r", "token")
    assert cluster.keys() == {b"r": [0]}
    with pytest.raises(AssertionError, match="keys are left"):
        cluster.no_keys(0.1)


def test_a_forked_child_leaves_its_parents_servers_alone():
    with Cluster(1) as cluster, FakeServer() as fake:
        child = os.fork()
        if child == 0:
            fake.close()
            cluster.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert os.path.isdir(cluster.folder) and cluster[0].command("PING") == b"PONG"
        socket.create_connection((fake.host, fake.port)).close()
    assert not os.path.exists(cluster.folder)

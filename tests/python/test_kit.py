"""The cluster kit, as users of the package have it: its nodes grant locks at once, new ones do not."""

import os
import subprocess
import sys

import pytest

import libredlock
from patience import CALM

MARKER = "libredlock:m"


@pytest.fixture(autouse=True)
def without_the_variable(monkeypatch):
    monkeypatch.delenv("REDLOCK_GUARD")


def granted(urls):
    with libredlock.Client(urls, **CALM) as client:
        return client.lock("r").acquire(timeout=0)


def refused(urls):
    with pytest.raises(libredlock.NoQuorum, match="quarantined"):
        granted(urls)


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


def test_new_nodes(make_cluster, monkeypatch):
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


def test_nodes_that_are_refused_are_left_alone(make_cluster):
    cluster = make_cluster(3, config={"maxmemory-policy": "allkeys-lru", "maxmemory": "100mb"})
    assert [node.get(MARKER) for node in cluster] == [None] * 3


@pytest.mark.parametrize("flags, verdict", [([], "True"), (["--new"], "NoQuorum")])
def test_a_command_with_nodes(flags, verdict):
    job = (
        "import libredlock\n"
        "try: print(libredlock.Client(node_timeout=2).lock('r').acquire(timeout=0))\n"
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

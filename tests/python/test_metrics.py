"""The figures of a client, as a scraper reads them."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import libredlock
from libredlock.testing import eventually
from patience import GENEROUS_TIMEOUTS, lapsing

prometheus_client = pytest.importorskip("prometheus_client", reason="prometheus_client is not installed")

from prometheus_client.openmetrics.parser import text_string_to_metric_families  # noqa: E402

from libredlock.prometheus import Collector  # noqa: E402


def figures(text):
    """Name and labels -> value."""
    return {(sample.name, *sorted(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(text) for sample in family.samples}


@pytest.fixture
def client(nodes):
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
        client.status("r")
        yield client


def test_acquisitions_waits_and_holds_are_counted(nodes, client):
    before = figures(client.metrics())
    assert before["redlock_acquisitions_total", "OK"] == 0 and before["redlock_wait_seconds_count",] == 0
    lock, quick, at_once = client.lock("r"), 0, 0
    for _ in range(3):
        begun_s = time.monotonic()
        hold = lock.acquire()
        lock.release()
        at_once += hold.attempts == 1
        quick += time.monotonic() - begun_s < 0.25
    with client.lock("s") as held:
        at_once += held.attempts == 1
        time.sleep(0.3)
        assert figures(client.metrics())["redlock_locks_held",] == 1
        assert not client.lock("s").acquire(blocking=False)
    after = figures(client.metrics())
    assert after["redlock_acquisitions_total", "OK"] == 4 and after["redlock_acquisitions_total", "BUSY"] == 1
    assert after["redlock_locks_held",] == 0
    for name in ("wait_seconds", "hold_seconds", "attempts_per_acquisition"):
        assert after["redlock_%s_count" % name,] == after["redlock_%s_bucket" % name, "+Inf"] == 4
    assert after["redlock_attempts_per_acquisition_bucket", "1.0"] == at_once
    assert 0.3 <= after["redlock_hold_seconds_sum",] < 60
    assert quick <= after["redlock_hold_seconds_bucket", "0.25"] <= 3
    assert 0 < after["redlock_wait_seconds_sum",] < 60
    assert after["redlock_attempts_total",] >= 5


def test_losses_are_counted_by_reason(nodes, client):
    lock = client.lock("r", ttl=8)
    lock.acquire()
    for node in nodes:
        node.flush()
    with pytest.raises(libredlock.RedlockError):
        lock.extend()
    assert figures(client.metrics())["redlock_losses_total", "gone"] == 1
    assert figures(client.metrics())["redlock_hold_seconds_count",] == 1


def test_nodes_have_labels_of_their_own(nodes, client):
    for _ in range(3):
        with client.lock("r"):
            eventually(lambda: nodes.keys().get(b"r") == [0, 1, 2, 3, 4], 20)
    nodes[0].kill()
    name, other = nodes[0].name, nodes[1].name
    eventually(lambda: figures(client.metrics())["redlock_node_ready", name] == 0 or client.check() and False, 20)
    eventually(lambda: client.check() and figures(client.metrics())["redlock_node_connects_total", name] > 3, 20)
    after = figures(client.metrics())
    assert after["redlock_node_votes_now", name] == 0 and after["redlock_node_votes_now", other] == 1
    for node in nodes:
        votes = [after["redlock_node_votes_total", node.name, vote] for vote in ("granted", "late", "busy", "other")]
        assert votes[0] + votes[1] == 3 and votes[2:] == [0, 0]
    assert sum(after["redlock_node_votes_total", node.name, "granted"] for node in nodes) >= 9  # majorities
    assert after["redlock_node_drops_total", name] == 1, "a node that is down does not flap"
    assert after["redlock_node_connects_total", other] == 1
    assert 0 < after["redlock_node_rtt_seconds", other] < 60


def test_busy_votes_are_counted_for_each_node(nodes, client):
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as other, other.lock("r"):
        eventually(lambda: nodes.keys().get(b"r") == [0, 1, 2, 3, 4], 20)
        assert not client.lock("r").acquire(blocking=False)
    after = figures(client.metrics())
    assert sum(after["redlock_node_votes_total", node.name, "busy"] for node in nodes) >= 3


def waiting(client):
    after = figures(client.metrics())
    return after["redlock_acquisitions_waiting",], after["redlock_longest_queue",]


@pytest.mark.parametrize("queue", [True, False])
def test_waiting_acquisitions_are_counted(nodes, client, queue):
    names = ["r", "r", "r", "s"]

    def take(name):
        with client.lock(name, queue=queue):
            pass

    def figures(described):
        return described["waiting"], described["longest_queue"]

    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as other:
        held = [other.lock(name, ttl=30) for name in ("r", "s")]
        assert all(lock.acquire() for lock in held)
        assert waiting(client) == (0, 0)
        with ThreadPoolExecutor(len(names)) as threads:
            taken = [threads.submit(take, name) for name in names]
            wanted = (4, 3 if queue else 0)  # without the queue they are not counted while they try
            eventually(lambda: waiting(client) == wanted, 30)
            eventually(lambda: figures(client.describe()) == wanted, 30)
            for lock in held:
                lock.release()
            assert [one.result(60) for one in taken] == [None] * 4
    assert waiting(client) == (0, 0)


def test_describe_has_the_same_figures(nodes, client):
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as other, other.lock("r"):
        eventually(lambda: nodes.keys().get(b"r") == [0, 1, 2, 3, 4], 20)
        assert not client.lock("r").acquire(blocking=False)
    lost = client.lock("s", **lapsing(0.4))
    assert lost.acquire()
    eventually(lambda: lost.lost, 20)
    client.status("r")
    told, after = client.describe(), figures(client.metrics())
    assert told["acquisitions"] == {"OK": 1, "BUSY": 1} and told["losses"] == {"expired": 1}
    for name, unit in (("wait", 1e6), ("hold", 1e6), ("attempts_per_acquisition", 1)):
        histogram = told[name if unit == 1 else f"{name}_us"]
        family = "redlock_" + (name if unit == 1 else f"{name}_seconds")
        assert histogram["count"] == histogram["le"]["+Inf"] == after[f"{family}_count",] == 1
        assert histogram["sum"] / unit == pytest.approx(after[f"{family}_sum",], abs=1e-6)
        for bound, count in histogram["le"].items():
            label = bound if bound == "+Inf" else str(int(bound) / unit)
            assert after[f"{family}_bucket", label] == count
    for node in told["nodes"]:
        for vote, count in node["answers"].items():
            assert after["redlock_node_votes_total", node["node"], vote] == count
    assert sum(node["answers"]["busy"] for node in told["nodes"]) >= 3


def test_a_registry_reads_them(nodes, client):
    registry = prometheus_client.CollectorRegistry()
    registry.register(Collector({"one": client}))
    with client.lock("r"):
        assert registry.get_sample_value("redlock_locks_held", {"client": "one"}) == 1
        page = prometheus_client.generate_latest(registry).decode()
    assert 'redlock_node_ready{client="one",node="%s"} 1.0' % nodes[0].name in page


def test_several_clients_share_a_registry(nodes, client):
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as other, other.lock("r"):
        registry = prometheus_client.CollectorRegistry()
        registry.register(Collector({"one": client, "two": other}))
        assert registry.get_sample_value("redlock_locks_held", {"client": "one"}) == 0
        assert registry.get_sample_value("redlock_locks_held", {"client": "two"}) == 1
    assert registry.get_sample_value("redlock_locks_held", {"client": "two"}) is None  # it is closed


def test_a_closed_client_has_none(nodes):
    client = libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    client.close()
    with pytest.raises(ValueError):
        client.metrics()
    registry = prometheus_client.CollectorRegistry()
    registry.register(Collector(client))
    assert "redlock" not in prometheus_client.generate_latest(registry).decode()


def test_a_client_may_be_closed_while_it_is_read(nodes, client):
    class Closing(libredlock.Client):
        def metrics(self):
            self.close()
            return super().metrics()

    registry = prometheus_client.CollectorRegistry()
    registry.register(Collector({"one": Closing(nodes.urls), "two": client}))
    assert 'redlock_locks_held{client="two"} 0.0' in prometheus_client.generate_latest(registry).decode()


IN_GERMAN = """
import locale, sys, libredlock
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
assert locale.localeconv()["decimal_point"] == ","
with libredlock.Client(drift_factor=0.02) as client:
    client.lock("r").take().release()
    client.check()
    sys.stdout.write(client.metrics())
"""


def test_figures_have_points_whatever_the_locale_says(nodes, tmp_path):
    subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", "--no-archive", tmp_path / "de_DE.UTF-8"], check=True)
    env = dict(os.environ, REDLOCK_NODES=nodes.nodes_env, LOCPATH=str(tmp_path))
    told = figures(subprocess.run([sys.executable, "-c", IN_GERMAN], env=env, check=True, stdout=subprocess.PIPE,
                                  text=True).stdout)
    assert 0 < told["redlock_wait_seconds_sum",] < 60 and told["redlock_wait_seconds_bucket", "+Inf"] == 1
    assert told["redlock_wait_seconds_bucket", "0.00025"] in (0, 1)
    assert told["redlock_attempts_per_acquisition_bucket", "50.0"] == 1
    assert all(0 < told["redlock_node_rtt_seconds", node.name] < 60 for node in nodes)
    assert all(told["redlock_node_max_ttl_seconds", node.name] == 30 for node in nodes)

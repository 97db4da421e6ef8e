"""redlock bench: cycles per second and their times."""
import json
import re
import signal
import time

import pytest

from command import REFUSED_CONFIG, UNAVAILABLE, USAGE, finish
from testing import eventually

TIMES = ["p50_us", "p90_us", "p99_us", "p999_us", "max_us"]


def bench(redlock, *args):
    done = redlock("bench", "--json", "--for", "1s", *args)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("args, threads, in_flight", [([], 1, 0), (["--threads", "3"], 3, 0),
                                                      (["--in-flight", "20"], 0, 20)])
def test_cycles_are_counted_and_timed(redlock, nodes, args, threads, in_flight):
    before = sum(node.calls("set") for node in nodes)
    report = bench(redlock, *args)
    cycles = report["cycles"]
    assert (report["threads"], report["in_flight"], report["resources"]) == (threads, in_flight, threads + in_flight)
    assert report["statuses"] == {"OK": cycles} and cycles > 0
    asked = sum(node.calls("set") for node in nodes) - before
    assert 3 * cycles <= asked <= 5 * (cycles + 50)  # some attempts end with the time, or are repeated
    assert cycles / report["seconds"] == pytest.approx(report["cycles_per_second"])
    for name in ("acquire", "release", "cycle"):
        times = [report[name][time] for time in TIMES]
        assert report[name]["count"] == cycles and times == sorted(times) and times[0] > 0
        assert report[name]["mean_us"] <= times[-1]
    assert abs(report["cycle"]["mean_us"] - report["acquire"]["mean_us"] - report["release"]["mean_us"]) <= 2
    eventually(lambda: not nodes.keys(), 20, "nothing is left")


@pytest.mark.parametrize("workers", [["--threads", "4"], ["--in-flight", "4"]])
def test_workers_wait_for_one_resource(redlock, nodes, workers):
    report = bench(redlock, *workers, "--resources", "1")
    assert report["resources"] == 1 and report["cycles"] > 0
    assert report["statuses"] == {"OK": report["cycles"]}
    assert report["acquire"]["p50_us"] > report["release"]["p50_us"], "no worker has waited"
    eventually(lambda: not nodes.keys(), 20, "nothing is left")


def test_what_is_busy_is_counted(redlock, nodes):
    report = bench(redlock, "--threads", "4", "--resources", "1", "--wait", "0")
    assert report["statuses"]["BUSY"] > 0 and report["statuses"]["OK"] == report["cycles"]


def test_the_table_has_every_cycle_in_a_bar(redlock, nodes):
    done = redlock("bench", "--for", "1s", "--threads", "2")
    lines = done.stdout.splitlines()
    first = re.match(r"(\d+) cycles of acquire and release in \d\.\d s: \d+ per second, 2 threads on 2 resources",
                     lines[0])
    assert first and done.stderr == ""
    assert [line.split()[0] for line in lines[2:6]] == ["us", "acquire", "release", "cycle"]
    bars = [re.match(r"  < +[\d.]+ (us|ms|s) +(\d+)  (#*)$", line) for line in lines[8:]]
    assert sum(int(bar[2]) for bar in bars) == int(first[1])
    assert max(len(bar[3]) for bar in bars) == 50


def test_progress_is_shown_on_a_terminal(terminal, nodes):
    program = terminal("bench", "--for", "2s")
    program.expect(r"\d s of 2 s, \d+ cycles/s")
    program.expect(r"\r\x1b\[K\d+ cycles of acquire")
    assert program.wait() == 0


@pytest.mark.parametrize("workers", [["--threads", "2"], ["--in-flight", "2"]])
def test_a_signal_ends_a_bench(redlock, nodes, workers):
    """Also those that wait for a lock that others hold."""
    running = redlock.start("bench", "--for", "1h", "--wait", "10m", "--resources", "1", *workers)
    eventually(lambda: nodes[0].calls("set") > 20, 60)
    key = "redlock-bench:%d:0" % running.pid
    for node in nodes:
        node.set(key, "of somebody else", 600000)
    running.send_signal(signal.SIGTERM)
    assert finish(running).returncode == -signal.SIGTERM
    assert [node.get(key) for node in nodes] == [b"of somebody else"] * 5
    assert list(nodes.keys()) == [key.encode()]


def test_a_signal_leaves_no_key_where_a_node_is_slow(redlock, nodes):
    """It lags by much more than the queue of one lock when the signal comes."""
    running = redlock.start("bench", "--for", "1h", "--in-flight", "500")
    eventually(lambda: nodes[0].calls("set") > 500, 60)
    nodes[0].stop()
    begun = time.monotonic()
    eventually(lambda: time.monotonic() - begun > 0.2, 20)
    running.send_signal(signal.SIGTERM)
    begun = time.monotonic()
    eventually(lambda: running.poll() is not None or time.monotonic() - begun > 1, 20)
    nodes[0].cont()
    assert finish(running).returncode == -signal.SIGTERM
    eventually(lambda: not nodes.keys(), 20, "nothing is left")


def test_without_nodes_no_lock_is_acquired(redlock, nodes):
    for node in nodes.nodes[:3]:
        node.kill()
    done = redlock("bench", "--for", "2s", "--outage-wait", "100ms")
    assert done.returncode == UNAVAILABLE and "no lock was acquired: " in done.stderr
    assert "connection refused" in done.stderr and done.stdout == ""
    done = redlock("bench", "--json", "--for", "2s", "--outage-wait", "100ms")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["status"]) == (UNAVAILABLE, "NO_QUORUM"), answer
    assert done.stderr == f"redlock: {answer['message']}\n" and "no lock was acquired: " in done.stderr


@pytest.mark.parametrize("workers", [["--threads", "2"], ["--in-flight", "2"]])
def test_a_bench_ends_before_an_acquisition_has_failed(redlock, nodes, workers):
    for node in nodes.nodes[:3]:
        node.kill()
    done = redlock("bench", "--for", "2s", "--outage-wait", "1m", *workers)
    assert done.returncode == UNAVAILABLE and "no lock was acquired: " in done.stderr and done.stdout == ""


def test_nodes_that_refuse_end_a_bench_in_words(redlock, make_cluster):
    servers = make_cluster(1, password="s3cret")
    redlock.env["REDLOCK_NODES"] = servers[0].url.replace("s3cret", "wr0ng")
    done = redlock("bench", "--for", "2s")
    assert done.returncode == REFUSED_CONFIG and "WRONGPASS" in done.stderr


@pytest.mark.parametrize("args, words", [
    (["--threads", "2", "--in-flight", "3"], "--threads and --in-flight are alternatives"),
    (["--threads", "0"], "--threads 0: not a number from 1 to 10000"),
    (["--resources", "10001"], "--resources 10001: not a number from 1 to 10000"),
    (["--in-flight", "x"], "--in-flight x: not a number from 1 to 10000"),
    (["--for", "0"], "--for 0: must be longer than 0"),
    (["--for", "soon"], "--for soon: not a duration"),
    (["orders:42"], "unexpected argument 'orders:42'"),
])
def test_wrong_arguments_are_refused(redlock, args, words):
    done = redlock("bench", *args)
    assert done.returncode == USAGE and words in done.stderr and done.stdout == ""

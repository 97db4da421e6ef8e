"""redlock run at its end: the lock is given back, or kept for a while."""
import json
import re
import subprocess

import pytest

from command import BUSY, GENEROUS_TIMEOUTS, LIMIT_S, LOST, UNAVAILABLE, finish, process_state, read_until
from testing import eventually

PATIENT = (*GENEROUS_TIMEOUTS, "--ttl", "30s")
LONGEST_S = 86400
LONGEST = ("--max-ttl", "24h")  # a lock that is kept for longer than the default
GATED = ("sh", "-c", "echo begun; read go")


def job(log, status=0):
    return "sh", "-c", "echo ran >>%s; exit %d" % (log, status)


def runs(log):
    return log.read_text().split().count("ran") if log.exists() else 0


def pttls(nodes, key="job"):
    return sorted(node.pttl(key) for node in nodes)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def begun_everywhere(running, nodes):
    """The job runs, and all nodes have the lock."""
    read_until(running.stdout, "begun")
    eventually(lambda: all(node.get("job") for node in nodes), LIMIT_S, "a vote of every node")


def test_hosts_that_start_at_once_run_the_job_once(redlock, nodes, log):
    hosts = [redlock.start("run", *PATIENT, "--wait", "5s", "--keep", "5m", *LONGEST, "job", "--", *job(log))
             for _ in range(4)]
    assert sorted(finish(host).returncode for host in hosts) == [0, BUSY, BUSY, BUSY]
    assert runs(log) == 1


def test_late_host_does_not_run_a_finished_job_again(redlock, nodes, log):
    keep = ("--keep", "5m", *LONGEST)
    assert redlock("run", *PATIENT, *keep, "job", "--", *job(log)).returncode == 0
    assert [redlock("run", *PATIENT, "-n", *keep, "job", "--", *job(log)).returncode for _ in range(2)] == [BUSY] * 2
    assert runs(log) == 1


def test_a_kept_lock_is_not_let_go_by_nodes_without_data(redlock, nodes, log):
    """Nothing puts it back there, and nobody else gets it."""
    keep = ("--keep", "5m", *LONGEST)
    nodes.bootstrap(max_ttl=LONGEST_S)
    assert redlock("run", *PATIENT, *keep, "--exit-drain", "10s", "job", "--", *job(log)).returncode == 0
    for node in list(nodes)[:3]:
        node.restart(empty=True)
    done = redlock("run", *PATIENT, "-n", *keep, "job", "--", *job(log))
    assert (done.returncode, runs(log)) == (UNAVAILABLE, 1) and "quarantined" in done.stderr, done.stderr
    assert [node.get("job") is None for node in nodes] == [True] * 3 + [False] * 2


def test_a_lock_is_kept_for_the_rest_of_the_time_on_all_nodes(redlock, nodes):
    nodes.bootstrap(max_ttl=LONGEST_S)
    done = redlock("run", *PATIENT, "--exit-drain", "10s", "--keep", "5m", *LONGEST, "job", "--", "true")
    assert (done.returncode, done.stderr) == (0, "")
    assert 200000 < pttls(nodes)[0] and pttls(nodes)[-1] <= 300000


def test_a_lock_is_kept_on_slower_nodes_too(redlock, nodes, proxy):
    """Two nodes have no connection yet when the others are a majority and the job is done."""
    nodes.bootstrap(max_ttl=LONGEST_S)
    slow = [proxy(nodes[i]) for i in (3, 4)]
    for way in slow:
        way.delay(up_ms=50, down_ms=50)
    env = dict(redlock.env, REDLOCK_NODES=",".join(nodes.urls[:3] + [way.url for way in slow]))
    done = redlock("run", *PATIENT, "--exit-drain", "20s", *LONGEST, "--keep", "5m", "job", "--", "true", env=env)
    assert (done.returncode, done.stderr) == (0, "") and 200000 < pttls(nodes)[0]


def test_a_lock_is_kept_for_less_than_the_lease(redlock, nodes):
    nodes.bootstrap(max_ttl=LONGEST_S)
    done = redlock("run", *GENEROUS_TIMEOUTS, "--ttl", "5m", "--exit-drain", "10s", *LONGEST, "--keep", "1m", "job",
                   "--",
                   "true")
    assert (done.returncode, done.stderr) == (0, "") and 40000 < pttls(nodes)[0] and pttls(nodes)[-1] <= 60000


def test_a_lock_is_kept_up_to_the_longest_hold(redlock, nodes):
    """The time-out is too long for what is missing, and the hold as long as it may be."""
    nodes.bootstrap(max_ttl=LONGEST_S)
    done = redlock("run", "--node-timeout", "20s", "--ttl", "5m", "--exit-drain", "10s", *LONGEST,
                   "--max-hold", "1m", "--keep", "1m", "job", "--", "true")
    assert (done.returncode, done.stderr) == (0, "") and 40000 < pttls(nodes)[0] and pttls(nodes)[-1] <= 60000


def test_host_takes_over_from_a_job_that_fails(redlock, nodes, log):
    keep = ("--keep", "5m", *LONGEST)
    assert redlock("run", *PATIENT, *keep, "job", "--", *job(log, 3)).returncode == 3
    assert redlock("run", *PATIENT, *keep, "job", "--", *job(log, 0)).returncode == 0
    assert runs(log) == 2


def test_job_that_outlasts_the_time_gives_the_lock_back(redlock, nodes):
    assert redlock("run", *PATIENT, "--keep", "1ms", "job", "--", "sleep", "0.1").returncode == 0
    nodes.no_keys()


def test_waiter_gives_up_before_the_kept_lock_is_free(redlock, nodes, log):
    """Also without --wait, whatever its default is."""
    keep = ("--keep", "16s")
    hosts = [redlock.start("run", *GENEROUS_TIMEOUTS, "--ttl", "20s", *keep, "job", "--", *job(log)) for _ in range(2)]
    assert sorted(finish(host).returncode for host in hosts) == [0, BUSY]


def test_lock_that_cannot_be_kept_is_reported(redlock, nodes):
    running = redlock.start("run", *PATIENT, "--keep", "5m", *LONGEST, "job", "--", *GATED,
                            stdin=subprocess.PIPE)
    begun_everywhere(running, nodes)
    for i in range(3):
        nodes[i].stop()
    done = finish(running, b"go\n")
    for i in range(3):
        nodes[i].cont()
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "could not be kept for as long as --keep asks; it ends in " in done.stderr
    assert all(nodes[i].name in done.stderr for i in range(3)) and min(pttls(nodes)) > 0


def test_a_signal_after_the_job_does_not_prevent_its_keep(redlock, nodes, tmp_path):
    running = redlock.start("run", *PATIENT, "--keep", "5m", *LONGEST, "job", "--", "sh", "-c",
                            "echo $$ >%s/pid; echo begun; read go" % tmp_path, stdin=subprocess.PIPE)
    begun_everywhere(running, nodes)
    for i in range(3):
        nodes[i].stop()
    running.stdin.write(b"go\n")
    running.stdin.flush()
    job_pid = int((tmp_path / "pid").read_text())
    eventually(lambda: process_state(job_pid) is None, LIMIT_S, "the job is over")
    running.terminate()
    done = finish(running)
    for i in range(3):
        nodes[i].cont()
    assert done.returncode == 0 and "could not be kept for as long as --keep asks" in done.stderr


def test_lock_that_was_lost_is_not_kept(redlock, nodes):
    running = redlock.start("run", *GENEROUS_TIMEOUTS, "--ttl", "30s", "--keep", "5m", *LONGEST, "job", "--", *GATED,
                            stdin=subprocess.PIPE)
    begun_everywhere(running, nodes)
    for node in nodes:
        node.flush()
    done = finish(running, b"go\n")
    assert done.returncode == LOST and "lost" in done.stderr
    nodes.no_keys()


def end_while_stopped(redlock, nodes, stopped, *options, script="read go; exit 4"):
    """A job that ends while these nodes hang."""
    running = redlock.start("run", *PATIENT, *options, "job", "--", "sh", "-c", "echo begun; " + script,
                            stdin=subprocess.PIPE)
    begun_everywhere(running, nodes)
    for i in stopped:
        nodes[i].stop()
    done = finish(running, b"go\n")
    for i in stopped:
        nodes[i].cont()
    return done


def test_failed_release_is_reported(redlock, nodes):
    done = end_while_stopped(redlock, nodes, [0, 2, 3])
    assert (done.returncode, done.stderr.count("\n")) == (4, 1), done.stderr
    assert done.stderr.startswith("redlock: the lock was not released on " + nodes[0].name)
    assert [node.name in done.stderr for node in nodes] == [True, False, True, True, False]
    assert re.search(r"; it expires there within 30s, at \d\d:\d\d:\d\d\n", done.stderr)


def test_lock_that_others_can_have_is_not_worth_a_word(redlock, nodes):
    done = end_while_stopped(redlock, nodes, [0, 2])
    assert (done.returncode, done.stderr) == (4, "")


def test_verbose_names_every_node_that_was_not_reached(redlock, nodes):
    done = end_while_stopped(redlock, nodes, [2], "-v")
    assert done.returncode == 4 and "not released on %s (" % nodes[2].name in done.stderr


def test_json_warns_of_a_lock_that_was_not_given_back(redlock, nodes):
    done = end_while_stopped(redlock, nodes, [0, 2, 3], "--json")
    report = json.loads(done.stderr)
    assert (done.returncode, report["exit"]) == (4, 4)
    assert report["warning"].startswith("the lock was not released on")

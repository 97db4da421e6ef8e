"""redlock lead"""
import json
import os
import re
import select
import signal
import subprocess

import pytest

from command import (
    GENEROUS_TIMEOUTS,
    LIMIT_S,
    NOT_FOUND,
    REFUSED_CONFIG,
    USAGE,
    Command,
    all_gone,
    begun_to_wait,
    end_process,
    finish,
    pid_in,
    read_until,
)
from common import evict, follow, lead
from testing import eventually

# A lease that a busy machine renews in time, and that is lost soon when no node answers.
SHORT = ("--ttl", "4s", "--node-timeout", "500ms")
LEADS = "echo term $REDLOCK_FENCE; exec sleep 1000"


def sh(script):
    return "sh", "-c", script


def term_of(candidate):
    """The term that it has begun."""
    return int(read_until(candidate.stdout, "\n").split()[1])


def lose(nodes):
    """The leader's keys go; the markers of the restart guard stay."""
    for node in nodes:
        node.delete_keys()


def free(nodes):
    """The number of the last term stays."""
    eventually(lambda: not any(node.get("scheduler") for node in nodes), LIMIT_S, "no node has a key")


def test_another_candidate_leads_after_the_leader_was_killed(redlock, nodes):
    first = redlock.start("lead", *SHORT, "scheduler", "--", *sh(LEADS))
    term = term_of(first)
    second = begun_to_wait(nodes, redlock.start, "lead", *SHORT, "scheduler", "--", *sh(LEADS))
    first.kill()
    later = term_of(second)
    assert later > term > 0
    second.send_signal(signal.SIGTERM)
    assert finish(second).returncode == -signal.SIGTERM
    free(nodes)


def test_a_command_that_ends_hands_over(redlock, nodes):
    first = redlock.start("lead", "scheduler", "--", *sh("echo term $REDLOCK_FENCE; read go; exit 7"),
                          stdin=subprocess.PIPE)
    term = term_of(first)
    second = begun_to_wait(nodes, redlock.start, "lead", "scheduler", "--", *sh("echo term $REDLOCK_FENCE"))
    done = finish(first, b"\n")
    assert (done.returncode, done.stderr) == (7, "")
    assert term_of(second) > term
    assert finish(second).returncode == 0
    free(nodes)


def test_a_loss_ends_the_command_and_it_stands_by_again(redlock, nodes, tmp_path):
    script = ("trap 'echo told; exit 3' TERM; sleep 1000 >/dev/null 2>&1 & echo $! >%s; "
              "echo term $REDLOCK_FENCE; wait; wait" % (tmp_path / "child"))
    leader = redlock.start("lead", *SHORT, "--kill-after", "500ms", "scheduler", "--", *sh(script))
    term = term_of(leader)
    child = pid_in(tmp_path / "child")
    try:
        lose(nodes)
        assert read_until(leader.stdout, "\n").startswith("told\n")
        later = term_of(leader)
        assert later > term
        all_gone([child])
        leader.send_signal(signal.SIGTERM)
        done = finish(leader)
        assert (done.returncode, done.stdout) == (3, "told\n")
        assert done.stderr.count("\n") == 1 and "while sh ran, the lock was lost: " in done.stderr
        free(nodes)
    finally:
        end_process(child)
        end_process(pid_in(tmp_path / "child"))


def test_hanging_command_is_killed_before_the_next_term(redlock, nodes, tmp_path):
    script = "trap '' TERM; echo $$ >>%s; echo term $REDLOCK_FENCE; while :; do sleep 0.1; done" % (tmp_path / "pids")
    leader = redlock.start("lead", *SHORT, "--kill-after", "300ms", "scheduler", "--", *sh(script))
    term = term_of(leader)
    lose(nodes)
    assert term_of(leader) > term
    pids = list(map(int, (tmp_path / "pids").read_text().split()))
    assert len(pids) == 2
    all_gone(pids[:1])
    leader.kill()
    all_gone(pids[1:])


def test_a_candidate_stands_by_through_an_outage(redlock, nodes):
    leader = redlock.start("lead", *SHORT, "scheduler", "--", *sh(LEADS))
    term = term_of(leader)
    for node in nodes:
        node.stop()
    read_until(leader.stderr, "the lock was lost")
    for node in nodes:
        node.cont()
    assert term_of(leader) > term
    leader.send_signal(signal.SIGTERM)
    assert finish(leader).returncode == -signal.SIGTERM


def test_a_signal_ends_a_candidate_in_the_middle_of_a_loss(redlock, nodes):
    leader = redlock.start("lead", *SHORT, "--kill-after", "2s", "scheduler", "--",
                           *sh("trap 'echo told' TERM; echo term $REDLOCK_FENCE; while :; do sleep 0.1; done"))
    term_of(leader)
    lose(nodes)
    read_until(leader.stdout, "told")
    leader.send_signal(signal.SIGTERM)
    assert finish(leader).returncode == -signal.SIGTERM
    free(nodes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_candidate(redlock, nodes, tmp_path, number):
    token = redlock.acquire("scheduler", "--ttl", "30s")
    waiting = begun_to_wait(nodes, redlock.start, "lead", "scheduler", "--", "touch", str(tmp_path / "ran"))
    waiting.send_signal(number)
    assert finish(waiting).returncode == -number
    assert not (tmp_path / "ran").exists()
    redlock("release", "scheduler", token)
    free(nodes)


def test_a_candidate_that_stands_by_again_hears_signals(redlock, nodes):
    """After its first term SIGCHLD and the like are no news of a job any more."""
    leader = redlock.start("lead", *SHORT, "--kill-after", "300ms", "scheduler", "--", *sh(LEADS))
    term_of(leader)
    for node in nodes:
        node.delete_keys()
        node.set("scheduler", "others", px=60000)
    read_until(leader.stderr, "the lock was lost")
    before = [node.calls("set") for node in nodes]
    eventually(lambda: [node.calls("set") for node in nodes] != before, LIMIT_S, "it contends again")
    os.kill(leader.pid, signal.SIGCHLD)
    os.kill(leader.pid, signal.SIGCONT)
    assert leader.poll() is None
    leader.send_signal(signal.SIGTERM)
    assert finish(leader).returncode == -signal.SIGTERM


def test_json_reports_each_term(redlock, nodes):
    leader = redlock.start("lead", *SHORT, "--json", "scheduler", "--",
                           *sh("echo term $REDLOCK_FENCE; [ -e %s ] || exec sleep 1000; exit 4" % "/nowhere"))
    term_of(leader)
    lose(nodes)
    term_of(leader)
    leader.send_signal(signal.SIGTERM)
    lost, last = map(json.loads, finish(leader).stderr.splitlines())
    assert (lost["status"], lost["reason"], "exit" in lost) == ("LOST", "gone", False)
    assert (last["status"], last["exit"]) == ("OK", 128 + signal.SIGTERM)


def test_a_command_that_cannot_be_run_ends_a_candidate(redlock, nodes):
    assert redlock("lead", "scheduler", "--", "no-such-program").returncode == NOT_FOUND
    free(nodes)


def test_refused_nodes_end_a_candidate(redlock, nodes):
    for node in nodes:
        evict(node)
    done = redlock("lead", "scheduler", "--", "true")
    assert done.returncode == REFUSED_CONFIG and "maxmemory-policy" in done.stderr


def user(*rules):
    return lambda node: node.command("ACL", "SETUSER", "few", "on", *rules)


def rotate(node):
    user("resetpass", ">new")(node)
    node.command("CLIENT", "KILL", "USER", "few")


@pytest.mark.parametrize("refuse, mend, words", [
    (follow, lead, "replica"),
    (evict, lambda node: node.config_set("maxmemory-policy", "noeviction"), "evicts"),
    (rotate, user(">p"), "WRONGPASS"),
    (user("-set"), user("+set"), "permissions"),
], ids=["replica", "evicts", "password", "set-denied"])
def test_candidates_outlast_what_voters_refuse_for(redlock, nodes, refuse, mend, words):
    """The leader's lease ends, for longer than which a majority refuses; both candidates stand by."""
    for node in nodes:
        user(">p", "~*", "&*", "+@all")(node)
    redlock.env["REDLOCK_NODES"] = ",".join(node.url_with("few", "p") for node in nodes)
    lead = "lead", "--ttl", "1s", "--node-timeout", "250ms", "scheduler", "--", *sh(LEADS)
    first = redlock.start(*lead)
    term = term_of(first)
    second = begun_to_wait(nodes, redlock.start, *lead)
    for node in nodes.nodes[:3]:
        refuse(node)
    if words == "permissions":
        lose(nodes)  # it holds the key as long as it can renew it
    read_until(first.stderr, words)
    assert first.poll() is None and second.poll() is None
    for node in nodes.nodes[:3]:
        mend(node)
    leader = select.select([first.stdout, second.stdout], [], [], LIMIT_S)[0][0]
    assert int(read_until(leader, "\n").split()[1]) > term
    for candidate in (first, second):
        candidate.send_signal(signal.SIGTERM)
        assert finish(candidate).returncode == -signal.SIGTERM


@pytest.mark.parametrize("words, expected", [
    (["scheduler"], "-- before CMD is missing"),
    (["scheduler", "ls", "-l"], "-- before CMD is missing; type: redlock lead scheduler -- ls -l"),
    (["--", "true"], "RESOURCE"),
    (["--wait", "5s", "scheduler", "--", "true"], "--wait"),
    (["--no-fence", "scheduler", "--", "true"], "--no-fence"),
    (["--keep", "5s", "scheduler", "--", "true"], "--keep"),
    (["--ttl", "5", "scheduler", "--", "true"], "--ttl 5"),
    (["--ttl", "1h", "scheduler", "--", "true"], "--ttl"),
    (["--listen"], "RESOURCE is missing"),
    (["--listen", "scheduler", "--", "true"], "--listen runs no CMD"),
])
def test_bad_input_is_refused(redlock, words, expected):
    done = redlock("lead", *words)
    assert done.returncode == USAGE
    assert expected in done.stderr, done.stderr


def test_who_listens_hears_of_each_leader(redlock, nodes):
    watch = redlock.start("lead", *GENEROUS_TIMEOUTS, "--listen", "scheduler")
    read_until(watch.stdout, " free: ")
    for name in "worker-7", "worker-8":
        leader = redlock.start("lead", *SHORT, "--client-name", name, "scheduler", "--", *sh(LEADS))
        words = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d held: by %s \(pid %d on \S+\) for \S+ m?s, [0-9a-f]{8} on "
        assert re.search(words % (name, leader.pid), read_until(watch.stdout, " left\n"), re.M)
        term_of(leader)
        leader.send_signal(signal.SIGTERM)
        finish(leader)
        read_until(watch.stdout, " free: ")
    for node in nodes.nodes[:3]:
        node.kill()
    read_until(watch.stdout, " unknown: ")
    watch.send_signal(signal.SIGTERM)
    assert finish(watch).returncode == -signal.SIGTERM


@pytest.mark.new_nodes
def test_who_listens_says_so_in_json_and_registers_no_node(make_cluster):
    cluster = make_cluster(1)
    redlock = Command(cluster.nodes_env)
    watch = redlock.start("lead", "--listen", "--json", "scheduler")
    assert json.loads(read_until(watch.stdout, "\n"))["verdict"] == "free"
    for token in "0" * 40, "1" * 40:
        cluster[0].set("scheduler", token)
        assert json.loads(read_until(watch.stdout, "\n"))["holder"] == token
    assert cluster[0].command("KEYS", "libredlock:*") == []
    redlock.end()

"""redlock run"""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from command import (
    BUSY,
    CANNOT_RUN,
    GENEROUS_TIMEOUTS,
    LIMIT_S,
    LOST,
    NOT_FOUND,
    REFUSED_CONFIG,
    TOKEN,
    UNAVAILABLE,
    all_gone,
    begun_to_wait,
    end_process,
    finish,
    is_gone,
    pid_in,
    process_state,
    read_until,
)
from common import follow, lead
from testing import eventually

# A lease that a busy machine renews in time, and that is lost soon when no node answers.
SHORT = ("--ttl", "4s", "--node-timeout", "500ms")


def sh(script):
    return "sh", "-c", script


def ready(redlock, *args, **popen):
    """`redlock run`, when its command has said that it is ready."""
    running = redlock.start("run", *args, **popen)
    read_until(running.stdout, "ready")
    return running


def held_everywhere(nodes):
    eventually(lambda: all(node.get("job") for node in nodes), LIMIT_S, "a vote of every node")


def busy(redlock, resource="job"):
    return redlock.once("acquire", resource).returncode == BUSY


def test_run_holds_the_lock_while_the_command_runs(redlock, nodes):
    running = redlock.start("run", "job", "--", *sh("echo begun; read go; echo done"), stdin=subprocess.PIPE)
    read_until(running.stdout, "begun")
    assert busy(redlock)
    done = finish(running, b"go\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    nodes.no_keys()


@pytest.mark.parametrize("delay_ms", [1, 3, 10, 30])
def test_short_job_leaves_no_key_on_slower_nodes(redlock, nodes, proxy, delay_ms):
    slow = [proxy(nodes[i]) for i in (3, 4)]
    for way in slow:
        way.delay(up_ms=delay_ms, down_ms=delay_ms)
    env = dict(redlock.env, REDLOCK_NODES=",".join(nodes.urls[:3] + [way.url for way in slow]))
    for _ in range(5):
        assert redlock("run", "--ttl", "30s", "--exit-drain", "5s", "job", "--", "true", env=env).returncode == 0
    nodes.no_keys()


@pytest.mark.parametrize("status", [0, 1, 3, 75, 76, 255])
def test_run_exits_with_the_status_of_the_command(redlock, nodes, status):
    assert redlock("run", "job", "--", *sh("exit %d" % status)).returncode == status
    nodes.no_keys()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGSEGV])
def test_run_ends_by_the_signal_that_ended_the_command(redlock, nodes, number):
    done = redlock("run", "job", "--", *sh("kill -%d $$" % number))
    assert (done.returncode, done.stderr) == (-number, "")
    nodes.no_keys()


def test_a_command_that_is_not_there_exits_with_127(redlock, nodes):
    done = redlock("run", "job", "--", "no-such-program")
    assert (done.returncode, done.stderr) == (NOT_FOUND, "redlock: no-such-program: No such file or directory\n")
    nodes.no_keys()


def test_a_command_that_cannot_be_run_exits_with_126(redlock, nodes, tmp_path):
    program = tmp_path / "program"
    program.write_text("not executable")
    done = redlock("run", "job", "--", str(program))
    assert (done.returncode, done.stderr) == (CANNOT_RUN, "redlock: %s: Permission denied\n" % program)
    nodes.no_keys()


def test_run_exports_resource_and_token(redlock, nodes):
    running = redlock.start("run", "my job", "--", *sh('echo "$REDLOCK_RESOURCE $REDLOCK_TOKEN"; read go'),
                            stdin=subprocess.PIPE)
    resource, _, token = read_until(running.stdout, "\n").strip().rpartition(" ")
    assert resource == "my job" and TOKEN.match(token)
    assert token.encode() in [node.get("my job") for node in nodes]
    finish(running, b"\n")


def test_standard_streams_pass_through(redlock):
    running = redlock.start("run", "job", "--", *sh("cat; echo error >&2"), stdin=subprocess.PIPE)
    given = os.urandom(1 << 20)
    out, err = running.communicate(given, timeout=30)
    assert (running.returncode, out == given, err) == (0, True, b"error\n")


def test_arguments_after_the_dashes_are_the_commands_own(redlock):
    done = redlock("run", "job", "--", "printf", "%s,", "--ttl", "--", "-x", "--help")
    assert (done.returncode, done.stdout) == (0, "--ttl,--,-x,--help,")


def test_a_resource_may_begin_with_a_dash(redlock):
    done = redlock("run", "--", "--ttl", "--", *sh("echo $REDLOCK_RESOURCE"))
    assert (done.returncode, done.stdout) == (0, "--ttl\n")


def test_command_has_a_process_group_of_its_own(redlock):
    done = redlock("run", "job", "--", sys.executable, "-c",
                   "import os; print(os.getpid() == os.getpgrp(), os.getpgid(os.getppid()) != os.getpgrp())")
    assert done.stdout == "True True\n"


def test_command_inherits_no_descriptor_and_no_blocked_signal(redlock):
    script = ("import os, signal; print(sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:-1],"
              "signal.pthread_sigmask(signal.SIG_BLOCK, []))")
    assert redlock("run", "job", "--", sys.executable, "-c", script).stdout == "[0, 1, 2] set()\n"


def test_command_inherits_what_redlock_was_started_with(redlock, tmp_path):
    """As with flock(1): a log, a lock file, the socket of a service manager."""
    (tmp_path / "log").write_text("inherited")
    with open(tmp_path / "log") as log:
        fd = log.fileno()
        script = "import os; print(os.read(%d, 100).decode())" % fd
        done = finish(redlock.start("run", "job", "--", sys.executable, "-c", script, pass_fds=[fd]))
    assert (done.returncode, done.stdout) == (0, "inherited\n")


def test_a_busy_lock_runs_nothing(redlock, nodes, tmp_path):
    redlock.acquire("job")
    done = redlock.once("run", "job", "--", "touch", str(tmp_path / "ran"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (BUSY, "", 1)
    assert all(node.name in done.stderr for node in nodes)
    assert redlock.once("run", "-E", "5", "job", "--", "touch", str(tmp_path / "ran")).returncode == 5
    assert not (tmp_path / "ran").exists()


def test_no_quorum_runs_nothing(redlock, nodes, tmp_path):
    for i in range(3):
        nodes[i].kill()
    done = redlock.once("run", "job", "--", "touch", str(tmp_path / "ran"))
    assert (done.returncode, done.stderr.count("\n"), (tmp_path / "ran").exists()) == (UNAVAILABLE, 1, False)


def test_jobs_that_contend_run_one_at_a_time(redlock, nodes, tmp_path):
    """Each appends begin and end; with the lock they never interleave."""
    log = tmp_path / "log"
    job = sh("echo begin >>%s; sleep 0.2; echo end >>%s" % (log, log))
    jobs = [redlock.start("run", "--wait", "forever", "job", "--", *job) for _ in range(4)]
    assert [finish(job).returncode for job in jobs] == [0] * 4
    assert log.read_text().split() == ["begin", "end"] * 4
    nodes.no_keys()


def test_max_hold_ends_the_command(redlock, nodes):
    done = redlock("run", *SHORT, "--max-hold", "5s", "job", "--", "sleep", "60")
    assert done.returncode == LOST and done.stderr.startswith("redlock: ")
    assert done.stderr.endswith(': the lease expired: --max-hold allowed no further renewal: "job"\n'), done.stderr
    assert not any(node.name in done.stderr for node in nodes), "none of them is the cause"
    nodes.no_keys()


FORWARDED = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
             signal.SIGALRM, signal.SIGXCPU, signal.SIGABRT, signal.SIGRTMIN + 3]


@pytest.mark.parametrize("number", FORWARDED)
def test_run_forwards_signals(redlock, nodes, number):
    script = ("import signal, sys; signal.signal(%d, lambda *_: sys.exit(42)); print('ready', flush=True);"
              "signal.pause()" % number)
    running = ready(redlock, "job", "--", sys.executable, "-c", script)
    running.send_signal(number)
    assert finish(running).returncode == 42
    nodes.no_keys()


def test_forwarded_signals_reach_the_whole_group(redlock, nodes, tmp_path):
    running = ready(redlock, "job", "--", *sh("sleep 60 & echo $! >%s; echo ready; wait" % (tmp_path / "pid")))
    running.send_signal(signal.SIGTERM)
    assert finish(running).returncode == -signal.SIGTERM
    all_gone([pid_in(tmp_path / "pid")])


def test_signals_that_were_ignored_stay_ignored(redlock):
    running = redlock.start_in_shell('exec env --ignore-signal=HUP "$0" "$@"', "run", "job", "--",
                                     *sh("echo ready; read go; kill -HUP $$; echo alive"), stdin=subprocess.PIPE)
    read_until(running.stdout, "ready")
    running.send_signal(signal.SIGHUP)
    done = finish(running, b"\n")
    assert (done.returncode, done.stdout) == (0, "alive\n")


def test_ignored_sigchld_does_not_hide_the_status(redlock):
    done = finish(redlock.start_in_shell('exec env --ignore-signal=CHLD "$0" "$@"', "run", "job", "--",
                                         *sh("exit 7")))
    assert done.returncode == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_while_waiting_leaves_no_key(redlock, nodes, tmp_path, number):
    token = redlock.acquire("job", "--ttl", "30s")
    ran = tmp_path / "ran"
    waiting = begun_to_wait(nodes, redlock.start, "run", "--wait", "forever", "job", "--", "touch", str(ran))
    waiting.send_signal(number)
    done = finish(waiting)
    assert (done.returncode, done.stderr) == (-number, "")
    assert set(node.get("job") for node in nodes) <= {token.encode(), None}
    redlock("release", "job", token)
    nodes.no_keys()
    assert not ran.exists()


# A command whose child ignores SIGTERM: both pids go into files.
STUBBORN = "trap '' TERM; sleep 1000 & echo $! >%s; echo $$ >%s; echo ready; wait"


@pytest.fixture
def family(tmp_path):
    """(script, pids): a command with a grandchild, and a function that gives both process ids."""
    files = tmp_path / "child", tmp_path / "self"
    yield STUBBORN % files, lambda: [pid_in(file) for file in files]
    for file in filter(Path.exists, files):
        end_process(pid_in(file))


def test_lost_lock_ends_the_whole_group(redlock, nodes, family):
    script, pids = family
    running = ready(redlock, *SHORT, "--kill-after", "300ms", "job", "--", *sh(script))
    assert [process_state(pid) is not None for pid in pids()] == [True, True]
    for node in nodes:
        node.stop()
    done = finish(running)
    assert done.returncode == LOST
    assert done.stderr.startswith("redlock: ") and "lost" in done.stderr and done.stderr.count("\n") == 1
    all_gone(pids())


def test_loss_names_the_nodes_that_went(redlock, nodes):
    running = ready(redlock, *SHORT, "job", "--", *sh("echo ready; exec sleep 60"))
    for i in (0, 1, 3):
        nodes[i].kill()
    done = finish(running)
    assert (done.returncode, done.stderr.count("\n")) == (LOST, 1)
    assert "the lease expired" in done.stderr and "connection refused" in done.stderr, done.stderr
    assert [node.name in done.stderr for node in nodes] == [True, True, False, True, False]


def test_loss_says_why_a_node_refused_to_renew(redlock, nodes):
    running = ready(redlock, *SHORT, "job", "--", *sh("echo ready; exec sleep 60"))
    for i in (0, 1, 3):
        nodes[i].command("ACL", "SETUSER", "default", "-evalsha")
    done = finish(running)
    assert done.returncode == LOST
    assert re.search(r"the lease expired: 2 of 5 .*: 3 nodes: error: NOPERM .*evalsha", done.stderr), done.stderr
    assert [node.name in done.stderr for node in nodes] == [True, True, False, True, False]


def test_lost_lock_sends_sigterm_first(redlock, nodes):
    running = ready(redlock, *SHORT, "--kill-after", "1h", "job", "--",
                    *sh("trap 'echo warned; exit 0' TERM; echo ready; while :; do sleep 0.1; done"))
    for node in nodes:
        node.stop()
    done = finish(running)
    assert (done.returncode, done.stdout) == (LOST, "warned\n")


def test_loss_is_reported_if_grandchildren_outlive_the_command(redlock, nodes, family):
    """The command obeys SIGTERM, its child does not: the child is killed all the same."""
    script, pids = family
    outer = "sh -c \"$0\" & trap 'exit 0' TERM; wait; wait"
    running = ready(redlock, *SHORT, "--kill-after", "500ms", "job", "--", "sh", "-c", outer, script)
    for node in nodes:
        node.stop()
    assert finish(running).returncode == LOST
    all_gone(pids())


def test_lock_deleted_on_the_nodes_is_lost(redlock, nodes):
    running = ready(redlock, *SHORT, "job", "--", *sh("echo ready; exec sleep 60"))
    held_everywhere(nodes)
    for node in nodes:
        node.flush()
    done = finish(running)
    assert (done.returncode, done.stderr.count("\n")) == (LOST, 1) and "expired" not in done.stderr
    assert re.search(r"while sh ran, the lock was lost: the token was gone on [345] of 5 nodes: .* "
                     "the token is gone: it restarted or lost keys", done.stderr), done.stderr


def test_lock_that_was_gone_at_the_end_is_lost(redlock, nodes):
    """Others may have worked at the same time, though no renewal was due that could have told."""
    running = ready(redlock, "--ttl", "30s", "job", "--", *sh("echo ready; read go"), stdin=subprocess.PIPE)
    held_everywhere(nodes)
    for node in nodes:
        node.flush()
    done = finish(running, b"go\n")
    assert (done.returncode, done.stderr.count("\n")) == (LOST, 1), done.stderr
    assert re.search(r"while sh ran, the lock was lost: the token was gone on [345] of 5 nodes: "
                     r"0 of 5 nodes deleted .*: [345] nodes: nothing to delete", done.stderr), done.stderr


@pytest.mark.parametrize("guard, words", [
    ("marker", "the token was gone on 3 of 5 nodes: "),
    ("off", "restarted since the lock was acquired: 3 of 5 nodes")])
def test_restarted_nodes_are_named(redlock, nodes, guard, words):
    running = ready(redlock, *SHORT, "--guard", guard, "--ttl", "20s", "job", "--", *sh("echo ready; exec sleep 60"))
    held_everywhere(nodes)
    for i in (1, 2, 4):
        nodes[i].kill()
    for i in (1, 2, 4):
        nodes[i].restart()
    done = finish(running)
    assert (done.returncode, done.stderr.count("\n")) == (LOST, 1) and "expired" not in done.stderr
    assert words in done.stderr and "3 nodes: the token is gone: it restarted or lost keys" in done.stderr, done.stderr
    assert [node.name in done.stderr for node in nodes] == [False, True, True, False, True], done.stderr


def test_stopped_redlock_finds_the_lock_lost(redlock, nodes, family):
    script, pids = family
    running = ready(redlock, *SHORT, "--kill-after", "100ms", "job", "--", *sh(script))
    running.send_signal(signal.SIGSTOP)
    token = redlock.acquire("job", "--wait", "20s", "--ttl", "30s")
    running.send_signal(signal.SIGCONT)
    assert finish(running).returncode == LOST
    all_gone(pids())
    assert token.encode() in [node.get("job") for node in nodes], "the new holder keeps its keys"


def test_stopped_command_without_a_terminal_keeps_its_lock(redlock, nodes):
    """Nobody would continue a stopped redlock there, and a command that goes on without it has no lock."""
    running = redlock.start("run", *SHORT, "job", "--", *sh("echo $$; kill -STOP $$; echo on"), start_new_session=True)
    pid = int(read_until(running.stdout, "\n"))
    eventually(lambda: process_state(pid) == "T", LIMIT_S)
    renewals = nodes[0].calls("evalsha")
    eventually(lambda: nodes[0].calls("evalsha") >= renewals + 3, within_s=LIMIT_S, what="renewals")
    assert process_state(running.pid) != "T" and busy(redlock)
    os.kill(pid, signal.SIGCONT)
    done = finish(running)
    assert (done.returncode, done.stdout) == (0, "on\n")


def test_stop_signal_to_redlock_without_a_terminal_is_passed_on(redlock, nodes):
    running = redlock.start("run", "job", "--", *sh("echo $$; exec sleep 60"), start_new_session=True)
    pid = int(read_until(running.stdout, "\n"))
    running.send_signal(signal.SIGTSTP)
    eventually(lambda: process_state(pid) == "T", LIMIT_S)
    running.send_signal(signal.SIGCONT)
    eventually(lambda: process_state(pid) == "S", LIMIT_S)
    running.send_signal(signal.SIGTERM)
    assert finish(running).returncode == -signal.SIGTERM


def test_killed_redlock_takes_its_command_along(redlock, nodes, family):
    script, pids = family
    running = ready(redlock, "--ttl", "2s", "job", "--", *sh(script))
    family_pids = pids()
    running.kill()
    assert finish(running).returncode == -signal.SIGKILL
    all_gone(family_pids)
    nodes.no_keys()


def children_of(pid):
    listed = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(pid)], stdout=subprocess.PIPE, text=True).stdout
    return {name: int(pid) for pid, name in (line.split() for line in listed.splitlines())}


def test_killed_redlock_ends_its_command_even_without_a_guard(redlock):
    running = redlock.start("run", "job", "--", *sh("echo $$; exec sleep 1000"))
    pid = int(read_until(running.stdout, "\n"))
    guard = eventually(lambda: children_of(running.pid).get("redlock-guard"), LIMIT_S)
    os.kill(guard, signal.SIGKILL)
    all_gone([guard])
    running.kill()
    finish(running)
    all_gone([pid])


def test_background_processes_of_a_finished_command_stay(redlock, tmp_path):
    done = redlock("run", "job", "--", *sh("sleep 60 >/dev/null 2>&1 & echo $! >%s" % (tmp_path / "pid")))
    assert done.returncode == 0
    pid = pid_in(tmp_path / "pid")
    assert not is_gone(pid)
    end_process(pid)


def test_no_process_stays(redlock):
    running = ready(redlock, "job", "--", *sh("echo ready; read go"), stdin=subprocess.PIPE)
    pids = list(children_of(running.pid).values())
    assert len(pids) == 2, "the command and the guard"
    assert finish(running, b"\n").returncode == 0
    assert [process_state(pid) for pid in pids] == [None, None]


@pytest.mark.parametrize("options, script, status, code", [
    ((), "exit 3", "OK", 3),
    ((), "kill -TERM $$", "OK", 128 + signal.SIGTERM),
])
def test_json_goes_to_standard_error(redlock, nodes, options, script, status, code):
    done = redlock("run", "--json", *options, "job", "--", *sh("echo out; " + script))
    report = json.loads(done.stderr)
    assert done.stdout == "out\n"
    assert (report["resource"], report["status"], report["exit"]) == ("job", status, code)
    assert TOKEN.match(report["token"]) and len(report["nodes"]) == len(nodes)


def test_json_reports_busy_and_the_exit_status(redlock):
    redlock.acquire("job")
    done = redlock.once("run", "--json", "job", "--", "true")
    report = json.loads(done.stderr)
    assert (done.returncode, report["status"], report["exit"]) == (BUSY, "BUSY", BUSY)


@pytest.mark.parametrize("wait", [("--wait", "2s"), ("--wait", "0")])
def test_json_when_busy_names_the_holder(redlock, wait):
    redlock.acquire("job", "--ttl", "30s", "--client-name", "worker-7")
    eventually(lambda: redlock.json("status", "job")[1].get("held_by"))
    done = redlock.busy(r"held by worker-7 \(pid ", "run", *GENEROUS_TIMEOUTS, *wait, "--json", "job", "--", "true")
    report = json.loads(done.stderr)
    assert report["held_by"]["client_name"] == "worker-7" and "held by worker-7 (pid " in report["message"]


def test_json_reports_a_loss_and_its_token(redlock, nodes):
    running = ready(redlock, "--json", *SHORT, "job", "--", *sh("echo ready; exec sleep 60"))
    for node in nodes:
        node.stop()
    done = finish(running)
    report = json.loads(done.stderr)
    assert (done.returncode, report["status"], report["exit"]) == (LOST, "LOST", LOST)
    assert TOKEN.match(report["token"]) and "lease" in report["message"] and report["reason"] == "expired"


@pytest.mark.parametrize("options, spoil, reason", [
    ((), lambda nodes: [node.flush() for node in nodes], "gone"),
    (("--max-hold", "5s"), lambda nodes: None, "limit"),
])
def test_json_reports_the_reason_of_a_loss(redlock, nodes, options, spoil, reason):
    running = ready(redlock, "--json", *SHORT, *options, "job", "--", *sh("echo ready; exec sleep 60"))
    spoil(nodes)
    assert json.loads(finish(running).stderr)["reason"] == reason


def test_a_wrong_password_ends_a_wait_at_once(redlock, nodes):
    """Nodes that have never voted for this command: no wait helps."""
    redlock.env["REDLOCK_NODES"] = ",".join(node.url_with("nobody", "wrong") for node in nodes)
    began = time.monotonic()
    done = redlock("run", "--outage-wait", "30s", "x", "--", "true")
    assert done.returncode == REFUSED_CONFIG and "WRONGPASS" in done.stderr
    assert time.monotonic() - began < 15


def test_a_job_that_begins_in_a_failover_runs(redlock, nodes):
    """A majority of the addresses leads to replicas for 1.5 s, and then to the servers that were promoted."""
    for node in nodes.nodes[:3]:
        follow(node)
    promotion = threading.Timer(1.5, lambda: [lead(node) for node in nodes.nodes[:3]])
    promotion.start()
    done = redlock("run", "x", "--", "echo", "done")
    promotion.join()
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


def test_replicas_that_stay_end_a_wait_as_an_outage_does(redlock, nodes):
    for node in nodes.nodes[:3]:
        follow(node)
    began = time.monotonic()
    done = redlock("run", "--wait", "forever", "--outage-wait", "1s", "x", "--", "true")
    assert done.returncode == REFUSED_CONFIG and "a replica" in done.stderr
    assert time.monotonic() - began >= 1

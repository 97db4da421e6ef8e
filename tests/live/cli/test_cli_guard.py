"""The command of `redlock run` and `lead` ends with the lease, whatever becomes of redlock and of its guard."""
import fcntl
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from command import BIN, LIMIT_S, LOST, all_gone, end_process, finish, is_gone, pid_in, process_state, read_until
from testing import eventually

SHORT = ("--ttl", "4s", "--node-timeout", "500ms")
LEADS = "echo term $REDLOCK_FENCE; echo $$ >>%s; trap '' TERM; while :; do sleep 0.1; done"


def sh(script):
    return "sh", "-c", script


@pytest.fixture
def family(tmp_path):
    """start(redlock, *options): `redlock run`, whose command only notes SIGTERM, and has a child; the pids of both."""
    files = tmp_path / "child", tmp_path / "self"
    script = "trap 'echo told >>%s' TERM; (trap '' TERM; exec sleep 1000) & echo $! >%s; echo $$ >%s; echo ready; " \
             "while :; do wait; done" % (tmp_path / "told", *files)

    def start(redlock, *options):
        running = redlock.start("run", *options, "job", "--", *sh(script), start_new_session=True)
        read_until(running.stdout, "ready")
        return running, [pid_in(file) for file in files]

    yield start
    for file in files:
        if file.exists():
            end_process(pid_in(file))


def guard_of(running):
    def found():
        listed = subprocess.check_output(["ps", "-o", "pid=,comm=", "--ppid", str(running.pid)], text=True)
        return re.search(r"(\d+) redlock-guard", listed)

    return int(eventually(found, LIMIT_S, "it has a guard")[1])


def stop(*pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    eventually(lambda: [process_state(pid) for pid in pids] == len(pids) * ["T"], LIMIT_S, "they are stopped")


def test_a_stopped_redlock_does_not_outlive_its_lease(redlock, family, tmp_path):
    """The command gets SIGTERM, and SIGKILL if it goes on; the next holder has the lock."""
    running, pids = family(redlock, *SHORT, "--kill-after", "500ms")
    stop(running.pid)
    all_gone(pids)
    assert process_state(running.pid) == "T" and (tmp_path / "told").read_text() == "told\n"
    assert redlock("run", "job", "--", "true").returncode == 0
    running.send_signal(signal.SIGCONT)
    done = finish(running)
    assert (done.returncode, done.stderr.count("\n")) == (LOST, 1)
    assert "while sh ran, the lock was lost: the lease expired" in done.stderr


def test_a_loss_ends_the_command_of_a_stopped_guard(redlock, nodes, family, tmp_path):
    running, pids = family(redlock, *SHORT, "--kill-after", "500ms")
    guard = guard_of(running)
    stop(guard)
    for node in nodes:
        node.delete_keys()
    assert finish(running).returncode == LOST
    all_gone([*pids, guard])
    assert (tmp_path / "told").read_text() == "told\n"


@pytest.mark.parametrize("first", ["redlock", "guard"])
def test_the_first_of_both_that_goes_on_ends_the_command(redlock, family, first):
    running, pids = family(redlock, *SHORT, "--kill-after", "500ms")
    guard = guard_of(running)
    stop(guard, running.pid)
    assert redlock("run", "job", "--", "true").returncode == 0, "the lease has ended"
    os.kill(guard if first == "guard" else running.pid, signal.SIGCONT)
    all_gone(pids)
    running.send_signal(signal.SIGCONT)
    assert finish(running).returncode == LOST


def pipe_to(guard):
    """The only pipe that a guard has open."""
    folder = "/proc/%d/fd/" % guard
    (name,) = [fd for fd in os.listdir(folder) if os.readlink(folder + fd).startswith("pipe:")]
    return folder + name


def test_a_guard_that_slept_goes_by_the_newest_lease(redlock, family):
    """Its pipe is full meanwhile: what it has not read is out of date."""
    running, pids = family(redlock, "--ttl", "1s", "--kill-after", "0")
    guard = guard_of(running)
    fd = os.open(pipe_to(guard), os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 4096)
        stop(guard)
        unread = bytearray(4)
        full = lambda: fcntl.ioctl(fd, 0x541B, unread) == 0 and int.from_bytes(unread, "little") > 4000  # noqa: E731
        eventually(full, LIMIT_S, "the pipe is full")
        token = redlock.json("status", "job")[1]["holder"]
        renewed = eventually(lambda: redlock.json("status", "job")[1]["holder_ttl_ms"] > 900, LIMIT_S, "a renewal")
        assert renewed and redlock("run", "-n", "job", "--", "true").returncode == 75
    finally:
        os.close(fd)
    os.kill(guard, signal.SIGCONT)
    eventually(lambda: process_state(guard) == "S", LIMIT_S, "the guard waits again")
    assert not any(map(is_gone, pids)) and redlock.json("status", "job")[1]["holder"] == token
    running.send_signal(signal.SIGKILL)
    all_gone(pids)


def test_a_renewal_that_wakes_only_its_thread_is_no_loss(redlock, tmp_path):
    """The thread that renews reads every answer first: redlock itself has nothing to read."""
    shim = Path(BIN).parent / "tests" / "live" / "deaf.so"
    env = dict(redlock.env, LD_PRELOAD=str(shim), DEAF=str(tmp_path / "deaf"))
    done = redlock("run", *SHORT, "job", "--", *sh(": >$DEAF; sleep 6; echo done"), env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def full_pipe():
    """(read end, write end) of a pipe that takes no further byte."""
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    try:
        while True:
            os.write(ends[1], b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(ends[1], True)
        return ends


def test_a_leader_whose_words_nobody_reads_ends_its_term(redlock, nodes, tmp_path):
    """The command is killed all the same, and the next term begins."""
    pids = tmp_path / "pids"
    unread, error = full_pipe()
    command = [BIN, "lead", *SHORT, "--kill-after", "500ms", "scheduler", "--", *sh(LEADS % pids)]
    leader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=error, env=redlock.env)
    try:
        term = int(read_until(leader.stdout, "\n").split()[1])
        for node in nodes:
            node.delete_keys()
        assert int(read_until(leader.stdout, "\n").split()[1]) > term
        all_gone([int(pids.read_text().split()[0])])
    finally:
        leader.kill()
        leader.communicate()
        os.close(unread)
        os.close(error)
    all_gone(map(int, pids.read_text().split()))


def test_a_command_that_left_its_group_is_ended(redlock, nodes, tmp_path):
    """For another group of the session, which job control would do."""
    script = ("import os, signal; os.setpgid(0, os.getpgid(os.getppid())); print('ready', os.getpid(), flush=True);"
              "signal.pause()")
    running = redlock.start("run", *SHORT, "job", "--", sys.executable, "-c", script, start_new_session=True)
    pid = int(read_until(running.stdout, "\n").split()[1])
    for node in nodes:
        node.delete_keys()
    done = finish(running)
    assert done.returncode == LOST
    all_gone([pid])

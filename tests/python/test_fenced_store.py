"""The example of docs/fencing.md: a store that refuses a holder who is late."""
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import libredlock
from libredlock.testing import eventually
from patience import said_in_time

EXAMPLE = Path(__file__).resolve().parents[2] / "docs/examples/fenced_store.py"


@pytest.fixture
def program(nodes, tmp_path):
    """program(balance, ttl): the example on one database."""
    running = []

    def start(balance, ttl=10):
        environment = dict(os.environ, REDLOCK_NODES=nodes.nodes_env)
        pipe = subprocess.PIPE
        command = [sys.executable, EXAMPLE, tmp_path / "accounts.db", "42", str(balance), str(ttl)]
        running.append(subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True))
        words = running[-1].stdout.readline().split()
        assert words[:3] == ["holds", "it", "with"], running[-1].stderr.read()
        return running[-1], int(words[3])

    yield start
    for one in running:
        one.kill()
        one.communicate()


def outcome(holder):
    """What it says when it goes on to write."""
    out, err = holder.communicate("\n", 60)
    return out, said_in_time(err)


def balance(tmp_path):
    return sqlite3.connect(tmp_path / "accounts.db").execute("SELECT balance FROM account WHERE id = 42").fetchone()


def test_one_after_the_other_may_write(program, tmp_path):
    for amount in (1, 2, 3):
        holder, _ = program(amount)
        assert outcome(holder) == ("written\n", "")
        assert holder.returncode == 0 and balance(tmp_path) == (amount,)


def test_a_holder_that_was_stopped_beyond_its_lease_is_refused(program, client, tmp_path):
    late, first = program(1, ttl=0.5)
    late.send_signal(signal.SIGSTOP)
    eventually(lambda: not client.lock("account:42").locked(), 20, "its lease has ended")
    holder, second = program(2)
    assert second > first
    assert outcome(holder) == ("written\n", "")
    late.send_signal(signal.SIGCONT)
    written, said = outcome(late)
    assert written == "" and said.endswith("refused: a later holder has written\n")
    assert late.returncode == 1 and balance(tmp_path) == (2,)


def test_without_arguments_the_example_says_what_it_takes():
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "usage: fenced_store.py FILE ACCOUNT BALANCE [TTL]\n")


def test_without_the_option_there_is_no_number(client):
    with client.lock("plain") as lock:
        assert lock.fence is None
    with client.lock("numbered", fence=True) as lock:
        assert lock.fence > 0
    assert isinstance(lock, libredlock.Hold)

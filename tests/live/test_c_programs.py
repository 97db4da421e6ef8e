"""C programs against five nodes: threads, forks, a late winner, calls that hang or are forbidden, memory that is out.

A sanitizer's build folder is chosen with REDLOCK_LIBRARY, as for all live tests; then the programs are those of it."""
import errno
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import rl

PROGRAMS = Path(rl.LIBRARY).resolve().parent / "tests" / "live"
SANITIZER = os.environ.get("REDLOCK_SANITIZER", "")


def run(nodes, program, *args, under=(), keys_end_s=5):
    env = dict(os.environ, REDLOCK_NODES=nodes.nodes_env)
    env.pop("LD_PRELOAD", None)  # the program has its own sanitizer
    done = subprocess.run([*under, str(PROGRAMS / program), *args], env=env, timeout=300, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-4000:]
    nodes.no_keys(keys_end_s)
    return done.stdout


def test_a_hundred_threads_share_a_client(nodes):
    assert run(nodes, "threads100").endswith("ok\n")


@pytest.mark.skipif(SANITIZER == "tsan", reason="TSan holds a signal back while its thread sleeps; other builds run it")
@pytest.mark.parametrize("how", ["lapsed", "short", "drained", "left", "leaving"])
def test_a_late_winner_does_not_return_a_lapsed_lock(nodes, how):
    assert run(nodes, "late_winner", how).endswith("ok\n")


@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS])
def test_locks_work_where_a_filter_forbids_short_waits(nodes, error):
    assert run(nodes, "forbidden_waits", "short", str(error)).endswith("ok\n")


def test_waiting_that_fails_does_not_spin(nodes):
    assert run(nodes, "forbidden_waits", "all", str(errno.EPERM)).endswith("ok\n")


def test_a_slow_look_up_of_a_name_runs_once(nodes):
    """A SET that was written with a set-up may have been executed although that took too long: it ends with its TTL."""
    assert run(nodes, "hanging_names", keys_end_s=40).endswith("ok\n")


@pytest.mark.parametrize("what", ["cancel", "sleep"])
def test_a_loop_turns_beside_a_blocking_call(nodes, what):
    assert run(nodes, "beside_driver", what).endswith("ok\n")


def test_a_forked_child_uses_an_inherited_client(nodes):
    """TSan does not support a child that starts a thread after a fork: there the children start none."""
    assert run(nodes, "forks", *["--no-threads"] * (SANITIZER == "tsan")).endswith("ok\n")


@pytest.mark.skipif(SANITIZER != "", reason="the sanitizer has an allocator of its own; the dev build runs it")
def test_every_allocation_fails_once(nodes):
    assert int(re.search(r"ok, (\d+) allocations", run(nodes, "alloc_fail"))[1]) > 20


@pytest.mark.skipif(SANITIZER != "", reason="valgrind and a sanitizer exclude each other; the dev build runs it")
def test_forks_leak_nothing_under_valgrind(nodes):
    assert shutil.which("valgrind"), "valgrind is needed for this test"
    run(nodes, "forks", under=["valgrind", "-q", "--error-exitcode=9", "--leak-check=full",
                               "--errors-for-leak-kinds=definite", "--fair-sched=yes"])

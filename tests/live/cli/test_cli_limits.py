"""The command where the system gives it too little."""
import os
import re
import signal
import subprocess

import pytest

from command import GENEROUS_TIMEOUTS, INTERNAL, LIMIT_S, USAGE, finish
from guarding import REPLACE, bootstrapped


@pytest.mark.parametrize("args", [("acquire", "--wait", "1s", "x"), ("status", "x"),
                                  ("run", "--wait", "1s", "x", "--", "true"), ("release", "x", "0" * 40)])
def test_too_few_descriptors_are_reported(redlock, nodes, args):
    """With a limit from hardly anything to enough: it works or says what is missing, and never waits for ever."""
    limits = [*range(5, 22), 40]
    running = [redlock.start_in_shell(f'ulimit -n {files}; exec "$0" "$@"', *args) for files in limits]
    done = [finish(process) for process in running]
    for files, one in zip(limits, done):
        if one.returncode == INTERNAL:
            assert "Too many open files" in one.stderr or "(ulimit -n is %d)" % files in one.stderr
            assert one.stdout == "" and one.stderr.count("\n") == 1
    assert INTERNAL in [one.returncode for one in done], "a limit that is too low"
    assert done[-1].returncode in (0, 75), "a limit that is enough"
    assert {one.returncode for one in done} <= {0, 75, 69, INTERNAL}


@pytest.mark.parametrize("args", [("doctor",), ("status", "x"), ("ls", "x"), ("release", "x", "0" * 40),
                                  ("release", "--force", "--yes", "x"), ("run", "x", "--", "true")])
def test_a_small_max_ttl_is_enough_for_the_default_ttl(redlock, nodes, args):
    bootstrapped(nodes.urls, REPLACE, max_ttl_ms=8000, ttl_ms=8000)
    redlock.env["REDLOCK_NODES"] += "?max_ttl=8s"
    done = redlock(*args)
    assert done.returncode == 0, done.stderr


def test_a_ttl_that_is_given_is_refused_above_it(redlock, nodes):
    redlock.env["REDLOCK_NODES"] += "?max_ttl=8s"
    done = redlock("run", "--ttl", "9s", "x", "--", "true")
    assert done.returncode == USAGE and "--ttl 9s is above --max-ttl, 8s" in done.stderr


@pytest.mark.parametrize("args", [("--help",), ("help", "run"), ("help", "acl"), ("run", "--help-all"), ("--version",),
                                  ("top", "--every", "10ms", "x"),
                                  ("status", "x"), ("status", "--metrics", "x"), ("ls", "x"), ("doctor",),
                                  ("bench", "--for", "200ms", *GENEROUS_TIMEOUTS), ("bootstrap",),
                                  ("release", "--json", "x", "0" * 40)])
def test_an_answer_that_cannot_be_written_is_a_failure(redlock, nodes, args):
    nodes[0].set("x:1", "0" * 40)
    for redirection in ">/dev/full", ">&-":
        done = finish(redlock.start_in_shell(f'exec "$0" "$@" {redirection}', *args))
        assert done.returncode == INTERNAL
        assert re.search(r"^redlock: the answer cannot be written: [A-Z].*$", done.stderr, re.M), done.stderr


@pytest.mark.parametrize("args", [("status", "x"), ("ls", "x"), ("doctor", "--watch"), ("help", "acl"),
                                  ("acquire", "x")])
def test_a_pipe_that_nobody_reads_ends_a_command_in_silence(redlock, nodes, args):
    nodes[0].set("x:1", "0" * 40)
    read, write = os.pipe()
    os.close(read)
    ends = redlock.start(*args, stdout=write)
    os.close(write)
    assert ends.stderr.read() == b""
    assert ends.wait(LIMIT_S) in (128 + signal.SIGPIPE, -signal.SIGPIPE)
    assert nodes[0].get("x") is None


SHIM = """#include <errno.h>
int timerfd_create(int clock, int flags)
{
  return clock + flags < 0 ? 0 : (errno = EPERM, -1);
}
"""


def test_refused_system_call_is_reported_as_such(redlock, nodes, tmp_path):
    """As a sandbox does that does not know the call."""
    source, shim = tmp_path / "shim.c", tmp_path / "shim.so"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source], check=True)
    done = redlock("acquire", "x", env=dict(redlock.env, LD_PRELOAD=str(shim)))
    assert (done.returncode, done.stdout) == (INTERNAL, "")
    assert done.stderr == "redlock: no descriptor: Operation not permitted\n"

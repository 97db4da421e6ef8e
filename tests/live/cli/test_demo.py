"""The demo says so when something is not as expected, and then leaves nothing behind either."""
import os
import signal
import subprocess
import sys

import pytest

from command import BIN, ROOT, end_process
from testing import eventually

DEMO = [sys.executable, str(ROOT / "tests" / "demo" / "demo.py")]


def start(tmp_path, **env):
    return subprocess.Popen(DEMO, env=dict(os.environ, TMPDIR=str(tmp_path), **env), stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def servers_in(folder):
    """Processes that work in `folder`, as the demo's nodes do."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/cwd" % pid).startswith(str(folder)):
                found.append(int(pid))
        except OSError:
            continue
    return found


@pytest.fixture
def nothing_left(tmp_path):
    yield
    left = servers_in(tmp_path)
    for pid in left:
        end_process(pid)
    assert left == [] and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("script, words", [
    ("exit 0", "bootstrap"),
    ('test "$1" != bootstrap || exec %s "$@"' % BIN, "acquire"),
    ('case "$*" in acquire*" --wait 0 "*) echo granted;; *) exec %s "$@";; esac' % BIN, "the second client is refused"),
])
def test_demo_finds_a_command_that_misbehaves(tmp_path, tmp_path_factory, nothing_left, script, words):
    broken = tmp_path_factory.mktemp("bin") / "redlock"
    broken.write_text("#!/bin/sh\n" + script + "\n")
    broken.chmod(0o755)
    demo = start(tmp_path, REDLOCK_BIN=str(broken))
    out = demo.communicate(timeout=300)[0]
    assert demo.returncode == 1 and "NOT AS EXPECTED: " + words in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_interrupted_leaves_nothing(tmp_path, nothing_left, number):
    demo = start(tmp_path)
    assert "Five nodes" in demo.stdout.readline()
    eventually(lambda: len(servers_in(tmp_path)) == 5, 60)
    demo.send_signal(number)
    demo.communicate(timeout=300)
    assert demo.returncode != 0

"""Fixtures of the command's tests."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from command import BIN, Command, Shell, Terminal  # noqa: E402


@pytest.fixture
def redlock(nodes):
    """The command with the session's five nodes."""
    command = Command(nodes.nodes_env)
    yield command
    command.end()


@pytest.fixture
def shell(redlock):
    """An interactive shell in a terminal, in which `redlock` is the command."""
    shell = Shell(redlock.env)
    shell.run("redlock() { %s \"$@\"; }" % BIN)
    yield shell
    shell.close()


@pytest.fixture
def terminal(redlock):
    """terminal(*args): redlock itself as the only program of a terminal."""
    started = []

    def start(*args):
        started.append(Terminal([BIN, *args], redlock.env))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()

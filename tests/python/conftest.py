"""The package as it is installed, on five real nodes."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

import libredlock
from libredlock import aio
from libredlock.testing import Late
from patience import GENEROUS_TIMEOUTS, connected, said_in_time

pytest_plugins = ["libredlock.testing.plugin"]


def pytest_configure(config):
    for kind in ("PytestUnhandledThreadExceptionWarning", "PytestUnraisableExceptionWarning"):
        config.addinivalue_line("filterwarnings", f"error::pytest.{kind}")


@pytest.fixture
def client(nodes):
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
        yield connected(client)


@pytest.fixture
def other(nodes):
    """A client of somebody else."""
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
        yield connected(client)


def _loops():
    yield pytest.param(asyncio.new_event_loop, id="asyncio")
    try:
        import uvloop
    except ImportError:
        yield pytest.param(None, id="uvloop", marks=pytest.mark.skip(reason="uvloop is not installed"))
    else:
        yield pytest.param(uvloop.new_event_loop, id="uvloop")


@pytest.fixture(params=_loops())
def run(request):
    """Runs a coroutine to its end on a new event loop, on asyncio and on uvloop."""

    def run(coroutine):
        loop = request.param()
        try:
            return loop.run_until_complete(asyncio.wait_for(coroutine, 300))
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    return run


@pytest.fixture
def on_client(nodes, run):
    """Runs body(client) with a client that is closed at the end."""

    def on_client(body, **options):
        async def main():
            async with aio.Client(nodes.urls, **{**GENEROUS_TIMEOUTS, **options}) as client:
                return await body(client)

        return run(main())

    return on_client


class Script:
    """A Python program of its own, with REDLOCK_NODES in its environment; what it prints is read line by line."""

    def __init__(self, nodes, source):
        environment = {**os.environ, "REDLOCK_NODES": nodes.nodes_env, "PYTHONUNBUFFERED": "1"}
        pipe = subprocess.PIPE
        command = [sys.executable, "-W", "error::UserWarning", "-c", source]
        self.child = subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True,
                                      start_new_session=True)

    def line(self):
        return self.child.stdout.readline().strip()

    def interrupt(self):
        self.child.send_signal(signal.SIGINT)

    def end(self, timeout=60):
        """The rest of what it says: status, standard output, standard error but for warnings of late nodes."""
        try:
            out, err = self.child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self._kill()
            out, err = self.child.communicate()
            raise Late(f"the program hangs; it said: {out} {err}") from None
        return self.child.returncode, out.strip(), said_in_time(err).strip()

    def close(self):
        if self.child.poll() is None:
            self._kill()
        self.child.communicate()

    def _kill(self):
        """With its children, which would keep the pipes open."""
        os.killpg(self.child.pid, signal.SIGKILL)


@pytest.fixture
def script(nodes):
    """Starts programs; those that still run at the end of the test are ended."""
    started = []

    def start(source):
        started.append(Script(nodes, source))
        return started[-1]

    yield start
    for one in started:
        one.close()

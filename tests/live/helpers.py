"""What several test files share."""
import itertools
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import rl
from common import FOREIGN, evict, follow, lead, now_ms, occupy  # noqa: F401
from testing import eventually
from testing.wait import in_time

HERE = Path(__file__).parent


def by_name(node):
    """A node's URL with a host name: looking it up takes long enough for a lock to be started meanwhile."""
    return "redis://localhost:%d" % node.port


def spin(client, condition, within_s=30, what=""):
    """Runs the client's started work until the condition is true: its value."""
    def look():
        select.select([client.fd], [], [], 0.001)
        client.process()
        return condition()

    return eventually(look, within_s, what)


def spin_until_deleted(client, nodes):
    """Runs the client until no node has a key. None has ended by its TTL: every one was deleted."""
    spin(client, lambda: not nodes.keys(), what="no node has a key")
    expired = [node.info("stats")["expired_keys"] for node in nodes]
    assert set(expired) == {"0"}, expired


def finish(lock, within_s=30):
    """Runs the operation in flight to its end: its status."""
    spin(lock.client, lambda: lock.status != rl.PENDING, within_s, "the operation ends")
    return lock.status


def held_everywhere(lock):
    """Waits until every node has granted the lock."""
    spin(lock.client, lambda: set(lock.votes) == {rl.OK}, what="all nodes granted")


def acquire_until(lock, condition):
    """Takes the lock, and looks for answers that come after the win, longer each time, until they are as expected."""
    patience_s = (0.2 * 2 ** n for n in itertools.count())

    def taken():
        assert lock.acquire(5000) == rl.OK, lock.message
        try:
            spin(lock.client, condition, next(patience_s))
        except AssertionError:
            assert lock.release() == rl.OK
            return False
        return True

    eventually(taken, 60, "the votes are as expected")


def lock_once(client):
    lock = client.lock()
    assert lock.acquire(20000) == rl.OK, lock.message
    assert lock.release() == rl.OK


def only_node(client):
    return client.describe()["nodes"][0]


def why(client):
    """Waits for the reason why its only node is not connected."""
    return spin(client, lambda: only_node(client)["why"], 20)


class Call(threading.Thread):
    """A blocking call in a thread of its own; join() gives its result."""

    def __init__(self, function, *args):
        super().__init__(daemon=True)
        self.function, self.args, self.result, self.error = function, args, None, None
        self.start()

    def run(self):
        try:
            self.result = self.function(*self.args)
        except BaseException as error:  # for the test's thread
            self.error = error

    def join(self, within_s=60):
        super().join(within_s)
        in_time(not self.is_alive(), "the call does not return")
        if self.error:
            raise self.error
        return self.result


class Pulse(threading.Thread):
    """Sees how late the threads of this process are, and the servers on these connections: late_s is the longest delay
    in its `with` block."""

    def __init__(self, *connections):
        super().__init__(daemon=True)
        self.late_s, self.is_over, self.connections = 0, threading.Event(), connections

    def run(self):
        before = time.monotonic()
        while not self.is_over.wait(0.01):
            for connection in self.connections:
                connection.command("PING")
            before, last = time.monotonic(), before
            self.late_s = max(self.late_s, before - last - 0.01)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.is_over.set()
        self.join()


def in_child(function, *args):
    """Runs it in a forked child, which has to end well within a bound."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.alarm(60)
            function(*args)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert status == 0, "the child failed"


def python(code, *args, **popen):
    """A Python process that has rl as its name space and ends with its code."""
    prologue = "import sys; sys.path[:0] = [%r]; import rl, os; from rl import *\n" % str(HERE)
    return subprocess.Popen([sys.executable, "-c", prologue + code, *map(str, args)], stdout=subprocess.PIPE,
                            text=True, **popen)


def run_python(code, *args, within_s=120):
    """Its output; it has to end with status 0."""
    process = python(code, *args)
    try:
        out, _ = process.communicate(timeout=within_s)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, out
    return out


def lapse(lock, within_s=40):
    """Waits, without running the client, until the lock is not held any more."""
    eventually(lambda: lock.state != rl.HELD, within_s, "the lease lapses")


def inspected(client, resource="r"):
    """A lock that has looked who holds it."""
    lock = client.lock(resource)
    assert lock.start(rl.INSPECT) == rl.OK
    finish(lock)
    return lock


def waits_told(client):
    """In its warnings."""
    return [event["detail"] for event in client.events()
            if event["event"] == "warning" and "waits: " in event.get("detail", "")]


def refused(lock, count):
    return sum(vote == rl.REFUSED_CONFIG for vote in lock.votes) >= count


def votes_no(lock, node, word):
    """The acquisition succeeds with the others; this node has answered with an error that is shown."""
    acquire_until(lock, lambda: lock.vote(node) not in (rl.OK, rl.PENDING) and word in lock.answer(node))
    assert word in lock.message

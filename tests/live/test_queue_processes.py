"""Waiters that are processes of their own, and are killed or stopped: they keep nobody from the lock."""
import os
import signal

import pytest

from helpers import python
from queueing import LONG, Turns, places, places_be
from rl import OK
from testing import eventually

WAITER = """
client = Client(sys.argv[1].split(","), **dict(GENEROUS_TIMEOUTS, ttl_ms=30000, wake=sys.argv[2]))
assert client.lock().acquire(120000) == OK
print("held", flush=True)
os._exit(0)
"""


@pytest.fixture
def waiter(nodes):
    """waiter(wake): a process that waits; it stands in the queue."""
    made = []

    def start(wake="auto"):
        before = len(places(nodes))
        made.append(python(WAITER, nodes.nodes_env, wake))
        places_be(nodes, before + 1)
        if wake != "poll":  # when it listens its place is odd
            eventually(lambda: int(places(nodes)[before][-1:]) % 2, 20, "it listens")
        return made[-1]

    yield start
    for process in made:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("wake", ["auto", "poll"])
def test_killed_waiters_delay_no_other(nodes, held, waiter, make_client, wake):
    gone = [waiter(wake) for _ in range(3)]
    turns = Turns(nodes)
    turns.wait("next", make_client(nodes.urls, wake=wake, **LONG).lock())
    places_be(nodes, 4)
    for process in gone:
        process.kill()
        process.wait()
    assert held.release() == OK
    assert turns.end(20) == ["next"]


@pytest.mark.parametrize("wake", ["auto", "poll"])
def test_stopped_waiter_delays_no_other_and_is_served_later(nodes, held, waiter, make_client, wake):
    late = waiter(wake)
    turns = Turns(nodes)
    turns.wait("next", make_client(nodes.urls, wake=wake, **LONG).lock())
    places_be(nodes, 2)
    os.kill(late.pid, signal.SIGSTOP)
    assert held.release() == OK
    assert turns.end(20) == ["next"]
    os.kill(late.pid, signal.SIGCONT)
    assert late.stdout.readline() == "held\n"

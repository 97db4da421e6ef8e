"""What the tests of waiting in order share: who stands in the queue on the nodes, and who is served when."""
import pytest

import rl
from common import occupy
from helpers import Call, spin
from rl import OK
from testing import eventually
from testing.wait import in_time
from waiters import (
    PROMISES,
    QUEUE,
    in_order,
    members,
    places,
    time_of,
)

LONG = {"ttl_ms": 30000}  # no test waits for a lease to end
BEFORE_LAPSE_S = 30  # whoever would wait for the end of a lease waits longer
GENEROUS_WAIT_MS = 120000


def home(nodes):
    """The node by which they go."""
    return eventually(lambda: next((node for node in in_order(nodes) if members(node)), None), 20, "somebody queues")


def places_be(nodes, count):
    eventually(lambda: len(places(nodes)) == count, 30, "%d wait" % count)


def promised_by(node, places):
    return [float(node.command("ZSCORE", PROMISES, place) or 0) for place in places]


def warnings(client):
    return [event for event in client.events() if event["event"] == "warning"]


def stand_before(node, promise_us, ago_us=1000000000, listens=False):
    """Places of three waiters that came ago_us earlier and have promised to ask again."""
    now = time_of(node)
    for number in range(3):
        place = "%016x:%d" % (0xabc000 + number, 3 if listens else 2)
        node.command("ZADD", QUEUE, now - ago_us, place)
        node.command("ZADD", PROMISES, now + promise_us, place)


class Turns:
    """Threads that wait for the same lock, and the order in which they were served."""

    def __init__(self, nodes):
        self.nodes, self.came, self.order, self.calls = nodes, [], [], []

    def wait(self, name, lock, while_held=lambda: None):
        self.came.append(name)
        self.calls.append(Call(self._turn, name, lock, while_held))

    def _turn(self, name, lock, while_held):
        assert lock.acquire(GENEROUS_WAIT_MS) == OK, lock.message
        self.order.append(name)
        while_held()
        assert lock.release() == OK, lock.message

    def end(self, within_s=BEFORE_LAPSE_S):
        """The order in which all were served."""
        for call in self.calls:
            call.join(within_s)
        return self.order

    def serve(self, held):
        """Releases the lock for which they wait: they are served in the order in which they came, if each asks when it
        is woken."""
        assert held.release() == OK
        in_time(self.end() == self.came, "%r instead of %r" % (self.order, self.came))


@pytest.fixture
def queued(nodes, make_client):
    """queued(count, **options): so many clients that wait in order of their numbers, as Turns, and their clients."""
    def queued(count, servers=nodes, urls=None, **options):
        turns, clients = Turns(servers), []
        for number in range(count):
            clients.append(make_client(urls or servers.urls, **dict(LONG, **options)))
            turns.wait(number, clients[-1].lock())
            places_be(servers, number + 1)
        return turns, clients

    return queued


@pytest.fixture
def held(hold):
    """A lock that another client holds."""
    return hold(client_name="worker-7", **LONG)


@pytest.fixture
def home_of_r(nodes, make_client):
    """The node on which those wait that want r."""
    occupy(nodes, ttl_ms=600000)
    client = make_client(nodes.urls)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    node = spin(client, lambda: next((node for node in in_order(nodes) if members(node)), None), 20)
    assert lock.cancel() == OK
    for one in nodes:
        spin(client, lambda: not members(one))
        one.delete_keys()
    return node


@pytest.fixture
def held_elsewhere(nodes, home_of_r, make_client):
    occupy([home_of_r], ttl_ms=600000)
    held = make_client(nodes.urls, **LONG).lock()
    assert held.acquire(GENEROUS_WAIT_MS) == OK
    home_of_r.command("DEL", "r")
    return held

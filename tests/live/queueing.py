"""What the tests of waiting in order share: who stands in the queue on the nodes, and who is served when."""
import threading

import pytest

import rl
from common import occupy
from helpers import Call, spin
from rl import OK
from testing import ReplyError, eventually

QUEUE, PROMISES = "libredlock:q:r", "libredlock:p:r"
LONG = {"ttl_ms": 30000}  # no test waits for a lease to end
OVERSLEPT_MS = 50  # of core/src/lock/queue.c: the second in line takes a lock that has been free for this long
SOON_S = 30  # whoever would wait for the end of a lease waits longer
PATIENT_MS = 120000


kit = threading.Lock()  # around the nodes' own connections, for threads that ask


def members(node, key=QUEUE):
    try:
        with kit:
            return node.command("ZRANGE", key, 0, -1)
    except ReplyError:  # somebody else's key
        return []


def places(nodes, key=QUEUE):
    """Who waits, in the order of the queue."""
    return [place for node in nodes if node.alive and not node.stopped for place in members(node, key)]


def home(nodes):
    """The node on which they wait."""
    return eventually(lambda: next((node for node in nodes if members(node)), None), 20, "somebody queues")


def places_be(nodes, count):
    eventually(lambda: len(places(nodes)) == count, 30, "%d wait" % count)


def warnings(client):
    return [event for event in client.events() if event["event"] == "warning"]


def subscribers(nodes):
    return [row for node in nodes for row in node.clients() if row.get("sub", "0") != "0"]


def time_of(node):
    """Its clock, in us."""
    seconds, micros = map(int, node.command("TIME"))
    return seconds * 1000000 + micros


def keep_places(nodes, resource="r"):
    """Those who wait now keep their places although they are not run: they promise to ask again much later."""
    for node in nodes:
        for place in members(node, "libredlock:q:" + resource):
            node.command("ZADD", "libredlock:p:" + resource, time_of(node) + 600000000, place)


def stand_before(node, promise_us, ago_us=1000000000):
    """Places of three waiters that came ago_us earlier and have promised to ask again."""
    now = time_of(node)
    for number in range(3):
        place = "%016x:2" % (0xabc000 + number)
        node.command("ZADD", QUEUE, now - ago_us, place)
        node.command("ZADD", PROMISES, now + promise_us, place)


class Turns:
    """Threads that wait for the same lock, and who was served when."""

    def __init__(self):
        self.order, self.calls = [], []

    def wait(self, name, lock, while_held=lambda: None):
        self.calls.append(Call(self._turn, name, lock, while_held))

    def _turn(self, name, lock, while_held):
        assert lock.acquire(PATIENT_MS) == OK, lock.message
        self.order.append(name)
        while_held()
        assert lock.release() == OK, lock.message

    def end(self, within_s=SOON_S):
        """The order in which all were served."""
        for call in self.calls:
            call.join(within_s)
        return self.order


@pytest.fixture
def queued(nodes, make_client):
    """queued(count, **options): so many clients that wait in order of their numbers, as Turns, and their clients."""
    def queued(count, servers=nodes, urls=None, **options):
        turns, clients = Turns(), []
        for number in range(count):
            clients.append(make_client(urls or servers.urls, **dict(LONG, **options)))
            turns.wait(number, clients[-1].lock())
            places_be(servers, number + 1)
        return turns, clients

    return queued


@pytest.fixture
def held(hold):
    """A lock that another client holds."""
    return hold(**LONG)


@pytest.fixture
def home_of_r(nodes, make_client):
    """The node on which those wait that want r."""
    occupy(nodes, ttl_ms=600000)
    client = make_client(nodes.urls)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, PATIENT_MS) == OK
    node = spin(client, lambda: next((node for node in nodes if members(node)), None), 20)
    assert lock.cancel() == OK
    for one in nodes:
        spin(client, lambda: not members(one))
        one.delete_keys()
    return node

"""What the tests of waiting in order share: who stands in the queue on the nodes, and who is served when."""
import pytest

import rl
from common import now_ms, occupy
from helpers import Call, spin
from rl import OK
from testing import eventually
from waiters import PROMISES, QUEUE, freeze_promises, make_waiters_recheck, members, time_of

LONG = {"ttl_ms": 30000}  # no test waits for a lease to end
OVERSLEPT_MS = 50  # of core/src/lock/queue.c: the second in line takes a lock that has been free for this long
BEFORE_LAPSE_S = 30  # whoever would wait for the end of a lease waits longer
GENEROUS_WAIT_MS = 120000


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


def stand_before(node, promise_us, ago_us=1000000000):
    """Places of three waiters that came ago_us earlier and have promised to ask again."""
    now = time_of(node)
    for number in range(3):
        place = "%016x:2" % (0xabc000 + number)
        node.command("ZADD", QUEUE, now - ago_us, place)
        node.command("ZADD", PROMISES, now + promise_us, place)


class Turns:
    """Threads that wait for the same lock, and who was served when."""

    def __init__(self, nodes):
        self.nodes, self.came, self.served, self.calls, self.freed_ms = nodes, [], [], [], None

    def wait(self, name, lock, while_held=lambda: None):
        self.came.append(name)
        self.calls.append(Call(self._turn, name, lock, while_held))

    def _turn(self, name, lock, while_held):
        assert lock.acquire(GENEROUS_WAIT_MS) == OK, lock.message
        self.served.append((name, now_ms(), self.freed_ms))
        while_held()
        if self.freed_ms:
            make_waiters_recheck(self.nodes)
            freeze_promises(self.nodes)
            self.freed_ms = now_ms()
        assert lock.release() == OK, lock.message

    @property
    def order(self):
        return [name for name, _, _ in self.served]

    def end(self, within_s=BEFORE_LAPSE_S):
        """The order in which all were served."""
        for call in self.calls:
            call.join(within_s)
        return self.order

    def end_in_order(self, freed_ms):
        """All are served in the order in which they came. Only one that is late for its turn, as on a busy machine, may
        see the next go ahead."""
        self.freed_ms = self.freed_ms or freed_ms
        self.end()
        waiting = list(self.came)
        for name, at_ms, later_freed_ms in self.served:
            free_ms = at_ms - (later_freed_ms or freed_ms)
            assert name == waiting[0] or free_ms > OVERSLEPT_MS - 1, (self.order, free_ms)
            waiting.remove(name)

    def serve(self, held):
        """Releases the lock for which they wait: they are served in order."""
        freeze_promises(self.nodes)
        self.freed_ms = now_ms()
        assert held.release() == OK
        self.end_in_order(self.freed_ms)


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
    node = spin(client, lambda: next((node for node in nodes if members(node)), None), 20)
    assert lock.cancel() == OK
    for one in nodes:
        spin(client, lambda: not members(one))
        one.delete_keys()
    return node

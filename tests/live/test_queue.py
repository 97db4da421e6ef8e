"""Waiting in order: who is served when, what stands on the nodes meanwhile, and that nothing that happens to the queue
keeps anybody from the lock."""
import itertools
import os
import signal
import threading
import time

import pytest

import rl
from common import now_ms, occupy
from helpers import Call, python, spin
from rl import BUSY, CALM, CANCELLED, NO_QUORUM, OK, PENDING, short
from testing import ReplyError, eventually

QUEUE, PROMISES = "libredlock:q:r", "libredlock:p:r"
LONG = {"ttl_ms": 60000}  # nobody waits for a lease to end
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


# ---- the order


def test_clients_are_served_in_the_order_of_arrival(nodes, held, queued):
    turns, _ = queued(5)
    assert len({place.split(b":")[0] for place in places(nodes)}) == 5
    assert sum(bool(members(node)) for node in nodes) == 1, "one node has the queue"
    assert held.release() == OK
    assert turns.end() == [0, 1, 2, 3, 4]
    eventually(lambda: not places(nodes))


def test_a_single_node(make_cluster, hold, queued):
    nodes = make_cluster(1)
    held = hold(nodes, **LONG)
    turns, _ = queued(4, nodes)
    assert held.release() == OK
    assert turns.end() == [0, 1, 2, 3]


def test_waiters_of_one_client_are_served_in_the_order_of_arrival(nodes, held, make_client):
    client = make_client(nodes.urls, **LONG)
    locks = [client.lock() for _ in range(12)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, PATIENT_MS) == OK
    spin(client, lambda: places(nodes))
    assert len(places(nodes)) == 1, "one place for all of them"
    assert held.release() == OK
    for number, lock in enumerate(locks):
        spin(client, lambda: any(one.status != rl.PENDING for one in locks[number:]), SOON_S)
        assert [one.status for one in locks[number:]] == [OK] + [rl.PENDING] * (11 - number)
        assert lock.release() == OK
    assert client.lock().acquire(0) == OK


def test_waiters_that_began_before_their_client_was_connected_are_served_in_that_order(nodes, held, make_client):
    client = make_client(nodes.urls, settle=False, **LONG)
    locks = [client.lock() for _ in range(40)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, PATIENT_MS) == OK
    spin(client, lambda: places(nodes))
    assert held.release() == OK
    for number, lock in enumerate(locks):
        spin(client, lambda: any(one.status != rl.PENDING for one in locks[number:]), SOON_S)
        assert lock.status == OK, number
        assert lock.release() == OK


def test_a_second_waiter_of_a_client_keeps_the_time_of_its_arrival(nodes, held, make_client):
    """It has no place of its own before the first one's turn has come; others who came later are behind it."""
    one, other = make_client(nodes.urls, **LONG), make_client(nodes.urls, **LONG)
    turns = Turns()

    def all_queue():
        """The holder has a place until it releases."""
        eventually(lambda: len(places(nodes)) == (1, 3, 3, 2, 2, 1)[len(turns.order)], 30)

    turns.wait("one", one.lock(), all_queue)
    places_be(nodes, 1)
    turns.wait("one", one.lock(), all_queue)
    turns.wait("one", one.lock(), all_queue)
    asked = home(nodes).calls("evalsha")
    eventually(lambda: home(nodes).calls("evalsha") > asked + 3, 20, "time has passed")
    turns.wait("other", other.lock(), all_queue)
    places_be(nodes, 2)
    turns.wait("other", other.lock(), all_queue)
    assert held.release() == OK
    assert turns.end() == ["one"] * 3 + ["other"] * 2


ROUNDS = 12


def take_turns(nodes, locks, while_held):
    """Everybody takes and releases again and again: who held when."""
    order = []

    def work(name, lock):
        for _ in range(ROUNDS):
            assert lock.acquire(PATIENT_MS) == OK, lock.message
            order.append(name)
            while_held(order)
            assert lock.release() == OK, lock.message

    calls = [Call(work, name, lock) for name, lock in enumerate(locks)]
    for call in calls:
        call.join(120)
    return order


def test_a_releaser_that_comes_again_goes_behind_those_who_wait(nodes, make_client):
    def others_wait(order):
        """And the holder has a place, but for the first."""
        waiting = sum(order.count(name) < ROUNDS for name in range(3) if name != order[-1])
        eventually(lambda: len(places(nodes)) >= waiting + (len(order) > 1), 20)

    order = take_turns(nodes, [make_client(nodes.urls, **LONG).lock() for _ in range(3)], others_wait)
    first = order[:3]
    assert sorted(first) == [0, 1, 2] and order == first * ROUNDS


def test_a_releaser_goes_behind_the_other_waiters_of_its_client(nodes, make_client):
    client = make_client(nodes.urls, **LONG)
    waiting = [client.lock() for _ in range(3)]
    assert waiting[0].acquire(PATIENT_MS) == OK
    for lock in waiting[1:]:
        assert lock.start(rl.ACQUIRE, PATIENT_MS) == OK
    for _ in range(3 * ROUNDS):
        holder = waiting.pop(0)
        assert holder.release() == OK
        assert holder.start(rl.ACQUIRE, PATIENT_MS) == OK
        waiting.append(holder)
        spin(client, lambda: any(lock.status != rl.PENDING for lock in waiting), SOON_S)
        assert [lock.status for lock in waiting] == [OK, rl.PENDING, rl.PENDING]


def test_without_the_queue_a_releaser_may_overtake(nodes, make_client):
    order = take_turns(nodes, [make_client(nodes.urls, queue="false").lock() for _ in range(3)], lambda order: None)
    assert order != order[:3] * ROUNDS
    assert places(nodes) == []


def time_of(node):
    """Its clock, in us."""
    seconds, micros = map(int, node.command("TIME"))
    return seconds * 1000000 + micros


def stand_before(node, promise_us):
    """Places of three others who came before everybody and have promised to ask again."""
    now = time_of(node)
    for number in range(3):
        place = "%016x:2" % (0xabc000 + number)
        node.command("ZADD", QUEUE, now - 1000000000, place)
        node.command("ZADD", PROMISES, now + promise_us, place)


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
        one.flush()
    return node


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_newcomer_that_finds_the_lock_free_goes_behind_those_who_wait(nodes, home_of_r, make_client, is_slow):
    """Also if the others make a majority before the home node has answered."""
    lock = make_client(nodes.urls).lock()
    others = [node for node in nodes if node is not home_of_r]
    for node in others[:2] if not is_slow else []:
        node.stop()
    for _ in range(3):
        stand_before(home_of_r, promise_us=2000000)
        asked = home_of_r.calls("zrank")
        assert lock.acquire(PATIENT_MS) == OK, lock.message
        assert home_of_r.calls("zrank") > asked, "it took a place before it took the lock"
        assert lock.release() == OK
        home_of_r.command("DEL", QUEUE, PROMISES)


def test_one_attempt_takes_a_free_lock_and_leaves_no_place(nodes, home_of_r, make_client):
    stand_before(home_of_r, promise_us=60000000)
    before = places(nodes)
    lock = make_client(nodes.urls).lock()
    assert lock.acquire(0) == OK, lock.message
    assert places(nodes) == before
    assert lock.release() == OK


def test_attempts_that_are_counted_do_not_queue(nodes, held, make_client):
    lock = make_client(nodes.urls, retry_count=3, retry_delay_ms=5).lock()
    assert lock.acquire(PATIENT_MS) == BUSY
    assert make_client(nodes.urls).lock().acquire(0) == BUSY
    assert places(nodes) == places(nodes, PROMISES) == []


def test_the_queue_has_the_prefix_of_the_key(nodes, make_client, hold):
    held = hold(key_prefix="app:", **LONG)
    waiting = Call(make_client(nodes.urls, key_prefix="app:").lock().acquire, PATIENT_MS)
    eventually(lambda: places(nodes, "app:" + QUEUE), 20)
    assert all(key.startswith(b"app:") for key in nodes.keys())
    assert held.release() == OK and waiting.join(SOON_S) == OK


def test_a_client_that_has_just_connected_tells_the_first_too(nodes, hold, queued, make_client):
    """As a process does that releases by a token, or a request of PHP."""
    held = hold(**LONG)
    token = held.token
    held.detach()
    turns, _ = queued(1)
    node = home(nodes)
    eventually(lambda: all(int(place[-1:]) % 2 for place in members(node)), 20, "it listens")
    before = node.calls("publish")
    lock = make_client(nodes.urls, settle=False, **LONG).lock()
    assert lock.adopt(token) == OK
    assert lock.release() == OK
    assert turns.end() == [0]
    eventually(lambda: node.calls("publish") > before, 5, "it was told")


# ---- leaving


def test_a_waiter_whose_time_is_over_leaves_the_queue(nodes, held, make_client):
    lock = make_client(nodes.urls).lock()
    waiting = Call(lock.acquire, 1500)
    places_be(nodes, 1)
    assert waiting.join() == BUSY
    eventually(lambda: not places(nodes), what="its place is given back")


def test_a_waiter_that_is_cancelled_leaves_the_queue(nodes, held, make_client):
    lock = make_client(nodes.urls).lock()
    waiting = Call(lock.acquire, PATIENT_MS)
    places_be(nodes, 1)
    assert lock.cancel() == OK
    assert waiting.join() == CANCELLED
    eventually(lambda: not places(nodes), what="its place is given back")


def test_a_client_that_is_freed_leaves_the_queue(nodes, held):
    client = rl.Client(nodes.urls, **CALM)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, PATIENT_MS) == OK
    spin(client, lambda: places(nodes), 20)
    client.free()
    eventually(lambda: not places(nodes), what="its place is given back")


def test_the_next_of_a_client_waits_on_when_the_first_gives_up(nodes, held, make_client):
    client = make_client(nodes.urls, **LONG)
    first, second = client.lock(), client.lock()
    waiting = Call(first.acquire, 1500)
    places_be(nodes, 1)
    turns = Turns()
    turns.wait("second", second)
    assert waiting.join() == BUSY
    places_be(nodes, 1)
    assert held.release() == OK
    assert turns.end() == ["second"]


def test_who_has_been_served_is_forgotten(nodes, make_client):
    """What the nodes keep of a resource that is never free does not grow."""
    def one_waits(order):
        if len(order) < 2 * ROUNDS - 1:
            eventually(lambda: places(nodes), 30)

    take_turns(nodes, [make_client(nodes.urls, **LONG).lock() for _ in range(2)], one_waits)
    assert len(places(nodes, PROMISES)) <= 4


# ---- waiters that are gone, or late

WAITER = """
client = Client(sys.argv[1].split(","), **dict(CALM, ttl_ms=60000, wake=sys.argv[2]))
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
def test_waiters_whose_process_was_killed_hold_nobody_up(nodes, held, waiter, make_client, wake):
    gone = [waiter(wake) for _ in range(3)]
    turns = Turns()
    turns.wait("next", make_client(nodes.urls, wake=wake, **LONG).lock())
    places_be(nodes, 4)
    for process in gone:
        process.kill()
        process.wait()
    assert held.release() == OK
    assert turns.end(20) == ["next"]


@pytest.mark.parametrize("wake", ["auto", "poll"])
def test_a_waiter_that_is_stopped_holds_nobody_up_and_is_served_later(nodes, held, waiter, make_client, wake):
    late = waiter(wake)
    turns = Turns()
    turns.wait("next", make_client(nodes.urls, wake=wake, **LONG).lock())
    places_be(nodes, 2)
    os.kill(late.pid, signal.SIGSTOP)
    assert held.release() == OK
    assert turns.end(20) == ["next"]
    os.kill(late.pid, signal.SIGCONT)
    assert late.stdout.readline() == "held\n"


def test_the_holder_dies(nodes, hold, queued):
    """Nobody is told when a lease ends."""
    lock = hold(**short(3000))
    lock.detach()
    turns, _ = queued(3)
    assert turns.end() == [0, 1, 2]


# ---- what may happen to the queue


def lose_queue(nodes, home):
    for node in nodes:
        node.command("DEL", QUEUE, PROMISES)


def lose_promises(nodes, home):
    home.command("DEL", PROMISES)


def flush_home(nodes, home):
    home.flush()


def flush_scripts(nodes, home):
    for node in nodes:
        node.command("SCRIPT", "FLUSH")


def stop_home(nodes, home):
    home.stop()


def kill_home(nodes, home):
    home.kill()


def restart_home(nodes, home):
    home.restart(empty=True)


def close_connections(nodes, home):
    home.kill_clients()


@pytest.mark.parametrize("happens", [lose_queue, lose_promises, flush_home, flush_scripts, stop_home, kill_home,
                                     restart_home, close_connections])
def test_whatever_happens_to_the_queue_everybody_is_served(nodes, held, queued, happens):
    turns, _ = queued(4, node_timeout_ms=500)
    happens(nodes, home(nodes))
    assert held.release() == OK
    assert sorted(turns.end(60)) == [0, 1, 2, 3]
    for node in nodes:
        if node.stopped:
            node.cont()


@pytest.mark.parametrize("happens", [lose_queue, flush_home, flush_scripts])
def test_the_queue_is_made_again_while_the_lock_is_held(nodes, held, queued, happens):
    turns, _ = queued(4)
    happens(nodes, home(nodes))
    places_be(nodes, 4)
    assert held.release() == OK
    assert turns.end() == [0, 1, 2, 3]


def test_home_comes_back_while_others_wait(nodes, held, queued):
    turns, _ = queued(4, node_timeout_ms=500)
    old = home(nodes)
    old.stop()
    eventually(lambda: len(places(nodes)) == 4, 60, "they wait on another node")
    old.cont()
    assert held.release() == OK
    assert sorted(turns.end(60)) == [0, 1, 2, 3]


@pytest.mark.parametrize("key", [QUEUE, PROMISES])
def test_a_key_of_another_type_in_its_place_is_told_once(nodes, held, make_client, key):
    occupy(nodes, key, ttl_ms=600000, token="somebody's")
    clients = [make_client(nodes.urls, **LONG) for _ in range(2)]
    turns = Turns()
    for number, client in enumerate(clients):
        lock = client.lock()
        turns.wait(number, lock)
        eventually(lambda: lock.votes.count(BUSY) >= 3, 20)
    assert held.release() == OK
    assert sorted(turns.end()) == [0, 1]
    assert [len(warnings(client)) for client in clients] == [1, 1]
    assert nodes[0].get(key) == b"somebody's"


@pytest.mark.parametrize("count, member", [
    (3, "%d"), (200, "%d"), (200, "%016x:2"), (200, "\0\xff%d:1"), (3, "%d" + "x" * 5000)],
    ids=["few", "many", "as ours", "bytes", "long"])
def test_members_that_are_none_of_ours_hold_nobody_up(nodes, held, queued, count, member):
    turns, _ = queued(2)
    names = [(member % number).encode("latin-1") for number in range(count)]
    home(nodes).command("ZADD", QUEUE, *itertools.chain(*((number, name) for number, name in enumerate(names))))
    assert held.release() == OK
    assert turns.end() == [0, 1]


@pytest.mark.parametrize("promise_us", [3600e6, float("inf")])
def test_promises_that_nobody_gives_hold_nobody_up(nodes, held, queued, promise_us):
    """A clock that was set back, or somebody's doing."""
    turns, _ = queued(2)
    stand_before(home(nodes), promise_us)
    assert held.release() == OK
    assert sorted(turns.end()) == [0, 1]


# ---- being told, and not


def test_by_asking_alone_they_are_served_in_order_too(nodes, held, queued):
    turns, _ = queued(4, wake="poll")
    assert subscribers(nodes) == []
    assert held.release() == OK
    assert turns.end() == [0, 1, 2, 3]
    assert subscribers(nodes) == []


@pytest.fixture
def allow(nodes):
    """allow(rule...) -> the URLs of the nodes for a user with all rights but for these rules."""
    def make(*rules):
        for node in nodes:
            node.command("ACL", "SETUSER", "few", "on", ">p", "~*", "&*", "+@all", *rules)
        return [node.url_with("few", "p") for node in nodes]

    return make


@pytest.mark.parametrize("rule", ["resetchannels", "-publish", "-subscribe"])
def test_who_may_not_publish_or_subscribe_is_served_in_order(allow, held, queued, rule):
    turns, clients = queued(3, urls=allow(rule))
    assert held.release() == OK
    assert turns.end() == [0, 1, 2]
    if rule != "-publish":
        assert [len(warnings(client)) for client in clients] == [1, 1, 1]


@pytest.mark.parametrize("rule", ["-zadd", "-zrange", "-zrank", "-zrem", "-zscore", "-time", "-exists"])
def test_who_may_not_queue_is_served(nodes, allow, held, make_client, rule):
    urls, turns, clients = allow(rule), Turns(), []
    for number in range(3):
        clients.append(make_client(urls, **LONG))
        lock = clients[-1].lock()
        turns.wait(number, lock)
        eventually(lambda: lock.votes.count(BUSY) >= 3, 20)
    assert held.release() == OK
    assert sorted(turns.end()) == [0, 1, 2]
    told = [len(warnings(client)) for client in clients]
    assert max(told) <= 1
    assert min(told) == 1 or rule in ("-zrem", "-zscore", "-exists"), "which not everybody needs"


def test_what_is_refused_is_told_once_not_every_ten_seconds(nodes, allow, held, make_client):
    client = make_client(allow("-zadd"), **LONG)
    assert client.lock().acquire(12000) == BUSY
    assert len(warnings(client)) == 1


def channel_of(node):
    return eventually(lambda: node.command("PUBSUB", "CHANNELS", "libredlock:w:*"), 20, "somebody listens")[0]


@pytest.mark.parametrize("words", [b"junk", b"", b"\0\r\n:1", b"x" * 100000, b"%s:99999999999999999999999", b"%s:",
                                   b"%s:77", b"%s:0"], ids=str)
def test_a_push_that_names_nobody_is_told_once(nodes, held, queued, words):
    turns, (client,) = queued(1)
    channel = channel_of(home(nodes))
    words = words.replace(b"%s", channel.rpartition(b":")[2])
    for _ in range(3):
        assert home(nodes).command("PUBLISH", channel, words) == 1
    told = []
    eventually(lambda: told.extend(warnings(client)) or told, 20)
    places_be(nodes, 1)
    assert held.release() == OK
    assert turns.end() == [0]
    assert len(told + warnings(client)) == 1
    assert client.lock().acquire(0) == OK


def test_a_push_before_its_time_changes_nothing(nodes, held, queued):
    turns, _ = queued(2)
    node = home(nodes)
    eventually(lambda: all(int(place[-1:]) % 2 for place in members(node)), 20, "both listen")
    for place in 5 * members(node):
        assert node.command("PUBLISH", b"libredlock:w:" + place.split(b":")[0], place) == 1
    assert held.release() == OK
    assert sorted(turns.end()) == [0, 1]


def test_a_client_listens_only_while_it_waits(nodes, make_client, hold):
    client = make_client(nodes.urls, **LONG)
    lock = client.lock()
    for _ in range(5):
        assert lock.acquire(5000) == OK and lock.release() == OK
    assert subscribers(nodes) == []
    held = hold(**LONG)
    waiting = Call(lock.acquire, PATIENT_MS)
    eventually(lambda: len(subscribers(nodes)) == 1, 20, "it listens where it waits")
    assert held.release() == OK and waiting.join(SOON_S) == OK
    assert lock.release() == OK
    spin(client, lambda: not subscribers(nodes), 40, "the connection is closed when nobody waits")
    assert lock.acquire(0) == OK, "and all others are there"


def test_one_connection_for_all_resources(nodes, make_client):
    client = make_client(nodes.urls, **LONG)
    names = ["r%d" % number for number in range(40)]
    for name in names:
        occupy(nodes, name, ttl_ms=600000)
        assert client.lock(name).start(rl.ACQUIRE, PATIENT_MS) == OK
    spin(client, lambda: subscribers(nodes), 20)
    spin(client, lambda: sum(len(members(node, "libredlock:q:" + name)) for node in nodes for name in names) == 40, 20)
    assert all(len(subscribers([node])) <= 1 for node in nodes)


# ---- a lock that is held, but not on the home node


@pytest.fixture
def held_elsewhere(nodes, home_of_r, make_client):
    occupy([home_of_r], ttl_ms=600000)
    held = make_client(nodes.urls, **LONG).lock()
    assert held.acquire(PATIENT_MS) == OK
    home_of_r.command("DEL", "r")
    return held


def test_who_releases_what_home_does_not_hold_tells_the_first_all_the_same(home_of_r, held_elsewhere, queued):
    turns, _ = queued(1)
    eventually(lambda: int(places([home_of_r])[0][-1:]) % 2, 20, "it listens")
    told = home_of_r.calls("publish")
    assert held_elsewhere.release() == OK
    assert turns.end() == [0]
    assert home_of_r.calls("publish") == told + 1


def test_those_behind_leave_it_to_the_first_to_try(held_elsewhere, queued):
    turns, clients = queued(8)

    def attempts(client):
        return client.describe()["attempts"]

    eventually(lambda: attempts(clients[0]) > 60, 60, "the first tries again and again")
    assert max(map(attempts, clients[3:])) <= 5
    assert held_elsewhere.release() == OK
    assert turns.end() == list(range(8))


# ---- what waiting costs, and those beside us


def commands(nodes):
    """How many commands clients have sent; what scripts call is counted, too."""
    ours = ("info", "zrange", "client")
    return sum(int(fields.split(",")[0].split("=")[1]) for node in nodes
               for name, fields in node.info("commandstats").items() if name.split("_")[1].split("|")[0] not in ours)


def test_a_thousand_waiters_of_a_client_cost_hardly_more_than_one(nodes, held, make_client):
    client = make_client(nodes.urls, **LONG)
    locks = [client.lock() for _ in range(1000)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, PATIENT_MS) == OK
    spin(client, lambda: places(nodes), 20)
    sent = []

    def all_have_tried():
        sent.append(commands(nodes))
        return client.describe()["attempts"] >= 1000 and len(sent) > 2 and sent[-3] == sent[-1]

    spin(client, all_have_tried, 20)
    before, began_ms = commands(nodes), now_ms()
    spin(client, lambda: now_ms() - began_ms > 3000)
    took_s = (now_ms() - began_ms) / 1000
    assert commands(nodes) - before < 0.5 * 1000 * took_s
    assert held.release() == OK
    for lock in locks:
        assert lock.wait(SOON_S * 1000) == OK
        assert lock.release() == OK


def test_a_client_without_the_queue_starves_nobody(nodes, make_client, queued, hold):
    """It takes the lock again the moment it has released it."""
    greedy, served = hold(queue="false", **LONG), threading.Event()

    def take_again():
        count = 0
        while not served.is_set():
            assert greedy.release() == OK
            assert greedy.acquire(PATIENT_MS) == OK
            count += 1
        assert greedy.release() == OK
        return count

    turns, _ = queued(2)
    taking = Call(take_again)
    try:
        assert turns.end(90) == [0, 1]
    finally:
        served.set()
    assert taking.join(60) > 0


def test_a_client_without_the_queue_is_served_beside_those_who_queue(nodes, held, make_client, queued):
    turns, _ = queued(3)
    turns.wait("alone", make_client(nodes.urls, queue="false", **LONG).lock())
    assert held.release() == OK
    order = turns.end(60)
    assert sorted(map(str, order)) == ["0", "1", "2", "alone"]
    order.remove("alone")
    assert order == [0, 1, 2]


def test_an_outage_ends_the_waits_of_a_client_together(nodes, make_client, held):
    """They stand one behind the other, but do not put up with the outage one after the other."""
    client = make_client(nodes.urls, outage_wait_ms=1500, **LONG)
    calls = [Call(client.lock().acquire, -1) for _ in range(12)]
    eventually(lambda: all(lock.status == PENDING for lock in client.locks), 20)
    for node in nodes.nodes[:3]:
        node.kill()
    end = time.monotonic() + 10  # one after the other they would need 18 s
    assert [call.join(max(end - time.monotonic(), 0)) for call in calls] == [NO_QUORUM] * 12

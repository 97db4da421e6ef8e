"""Nothing that happens to the queue, or to those who stand in it, keeps anybody from the lock."""
import itertools
import operator
import os
import signal

import pytest

import rl
from common import now_ms, occupy
from helpers import Call, Pulse, python, spin
from queueing import (
    LONG,
    OVERSLEPT_MS,
    PATIENT_MS,
    PROMISES,
    QUEUE,
    SOON_S,
    Turns,
    all_see_that_it_is_held,
    home,
    keep_places,
    members,
    places,
    places_be,
    stand_before,
    subscribers,
    time_of,
    warnings,
)
from rl import BUSY, LOST, OK, short
from testing import eventually


def promised_by(node, places):
    return [float(node.command("ZSCORE", PROMISES, place) or 0) for place in places]


# ---- waiters that are gone, or late

WAITER = """
client = Client(sys.argv[1].split(","), **dict(CALM, ttl_ms=30000, wake=sys.argv[2]))
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


def test_the_holder_dies(nodes, hold, queued):
    """The end of a lease wakes no waiter."""
    lock = hold(**short(3000))
    lock.detach()
    turns, _ = queued(3)
    ends_ms = now_ms() + min(node.pttl("r") for node in nodes)
    turns.end_in_order(ends_ms)


def serve_two(nodes, home, proxies, make_client):
    """The order in which two are served when the key of home ends and, 0.1 s later, those of the others, and whether
    the machine was quick enough for that: no thread was late, nor home, which would not be home any more. The first has
    tried in vain before, so it pauses for a second after it has done so again. The second leaves it the lock for 0.4 s,
    since it sees three more before it."""
    turns = Turns(nodes)
    first = make_client([proxy.url for proxy in proxies], retry_jitter=0, retry_delay_ms=2000, **LONG)
    for node in nodes:
        node.delete_keys()
    occupy(nodes)
    turns.wait("first", first.lock())
    places_be(nodes, 1)
    home.command("DEL", "r")
    eventually(lambda: first.describe()["attempts"] >= 5, 30, "it tries in vain")
    occupy([home])
    promised = promised_by(home, members(home))
    eventually(lambda: promised_by(home, members(home)) > promised or not members(home), 30, "it asks again")
    is_at_home = bool(members(home))
    stand_before(home, 20e6, ago_us=0)
    ends_ms = time_of(home) // 1000 + 1000
    for node in nodes:
        node.command("PEXPIREAT", "r", ends_ms if node is home else ends_ms + 100)
    with Pulse() as pulse:
        turns.wait("second", make_client(nodes.urls, **LONG).lock())
        order = turns.end()
    return order, is_at_home and pulse.late_s < 0.03


def test_order_holds_if_keys_of_the_dead_end_at_different_times(nodes, home_of_r, proxies, make_client):
    """A node that executed the last extension late keeps its key for longer than home."""
    for proxy in proxies:
        proxy.delay(down_ms=10)
    right = ["first", "second"]
    rounds = (serve_two(nodes, home_of_r, proxies, make_client) for _ in range(10))
    counted = (order for order, was_quick in rounds if was_quick or order == right)
    assert next(counted, "the machine was late each time") == right


def test_a_holder_whose_lease_has_ended_leaves_the_queue(nodes, held, make_client):
    """Its program may release the lock much later. Until then it would hear the wake-ups of those behind it."""
    client = make_client(nodes.urls, **short(2000))
    lock = client.lock()
    acquired = Call(lock.acquire, PATIENT_MS)
    places_be(nodes, 1)
    assert held.release() == OK
    assert acquired.join() == OK
    spin(client, lambda: not places(nodes), 20, "it has left the queue")
    assert lock.release() == LOST


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


@pytest.mark.parametrize("happens", [lose_queue, flush_home, flush_scripts, stop_home, kill_home, restart_home,
                                     close_connections])
def test_whatever_happens_to_the_queue_everybody_is_served(nodes, held, queued, happens):
    turns, _ = queued(4, node_timeout_ms=500)
    happens(nodes, home(nodes))
    assert held.release() == OK
    assert sorted(turns.end(60)) == [0, 1, 2, 3]
    for node in nodes:
        if node.stopped:
            node.cont()


def who(places):
    return [place.partition(b":")[0] for place in places]


@pytest.mark.parametrize("happens", [lose_queue, lose_promises, flush_home, flush_scripts])
def test_the_queue_is_made_again_while_the_lock_is_held(nodes, held, queued, happens):
    """In the order of arrival when each has asked once without delay; on another node if that one may not vote."""
    turns, _ = queued(4)
    eventually(lambda: all(int(place[-1:]) % 2 for place in places(nodes)), 20, "they listen: their places stay")
    before = places(nodes)
    assert held.extend() == OK  # for longer than the wait
    happens(nodes, home(nodes))
    eventually(lambda: any(who(members(node)) == who(before) and len(members(node, PROMISES)) == 4 for node in nodes),
               25, "all wait again")
    turns.serve(held)


def test_home_comes_back_while_others_wait(nodes, held, queued):
    turns, _ = queued(4, node_timeout_ms=500)
    old = home(nodes)
    old.stop()
    eventually(lambda: len(places(nodes)) == 4, 60, "they wait on another node")
    old.cont()
    assert held.release() == OK
    assert sorted(turns.end(60)) == [0, 1, 2, 3]


@pytest.mark.parametrize("key", [QUEUE, PROMISES])
def test_key_of_another_type_is_reported_once(nodes, held, make_client, key):
    occupy(nodes, key, ttl_ms=600000, token="somebody's")
    clients = [make_client(nodes.urls, **LONG) for _ in range(2)]
    turns = Turns(nodes)
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
def test_foreign_members_delay_no_waiter(nodes, held, queued, count, member):
    turns, _ = queued(2)
    names = [(member % number).encode("latin-1") for number in range(count)]
    home(nodes).command("ZADD", QUEUE, *itertools.chain(*((number, name) for number, name in enumerate(names))))
    turns.serve(held)


@pytest.mark.parametrize("promise_us", [3600e6, float("inf")])
def test_forged_promises_delay_no_waiter(nodes, held, queued, promise_us):
    """A clock that was set back, or somebody's doing."""
    turns, _ = queued(2)
    stand_before(home(nodes), promise_us)
    assert held.release() == OK
    assert sorted(turns.end()) == [0, 1]


# ---- being told, and not


def test_by_asking_alone_they_are_served_in_order_too(nodes, held, queued):
    turns, _ = queued(4, wake="poll")
    assert subscribers(nodes) == []
    turns.serve(held)
    assert subscribers(nodes) == []


def allow(nodes, *rules):
    """The URLs of the nodes for a user with all rights but for these rules."""
    for node in nodes:
        node.command("ACL", "SETUSER", "few", "on", ">p", "~*", "&*", "+@all", *rules)
    return [node.url_with("few", "p") for node in nodes]


def warned_once_a_node(client):
    """Of each node that was home, or that seemed to be while another was late."""
    told = [event["node"] for event in warnings(client)]
    assert len(set(told)) == len(told), told
    return bool(told)


def stand_in_one_queue(nodes):
    """Else the home node was late, and those who stand elsewhere do not keep the order of the others."""
    return sum(bool(places([node])) for node in nodes) == 1


def release_in_order(nodes, held, locks):
    """They win in order. Without wake-ups the first in line asks every 100 ms; the one behind it may take a lock that
    it finds free and that stays free for 50 ms."""
    keep_places(nodes)
    waiting, freed_ms, is_one_queue = list(range(len(locks))), now_ms(), stand_in_one_queue(nodes)
    assert held.release() == OK

    def run():
        for lock in locks:
            lock.client.process()

    def look():
        nonlocal freed_ms, is_one_queue
        run()
        for number, lock in enumerate(locks):
            if number in waiting and lock.status == OK:
                free_ms = now_ms() - freed_ms
                may_pass = free_ms > OVERSLEPT_MS - 1 or not is_one_queue
                assert number == waiting[0] or may_pass, (number, waiting, free_ms)
                waiting.remove(number)
                all_see_that_it_is_held(nodes, run)
                keep_places(nodes)
                is_one_queue = stand_in_one_queue(nodes)
                freed_ms = now_ms()
                assert lock.release() == OK, lock.message
        return not waiting

    eventually(look, SOON_S, "all are served")


@pytest.mark.parametrize("rule", ["resetchannels", "-publish", "-subscribe"])
def test_waiter_without_publish_and_subscribe_is_served_in_order(nodes, held, make_client, rule):
    urls, locks = allow(nodes, rule), []

    def stand_in_line():
        for lock in locks:
            lock.client.process()
        return len(places(nodes)) == len(locks)

    for number in range(3):
        locks.append(make_client(urls, **LONG).lock())
        assert locks[number].start(rl.ACQUIRE, PATIENT_MS) == OK
        eventually(stand_in_line, 20, "%d wait" % (number + 1))
    release_in_order(nodes, held, locks)
    for lock in locks if rule != "-publish" else []:
        assert warned_once_a_node(lock.client)


@pytest.mark.parametrize("rule", ["-zadd", "-zrange", "-zrank", "-zscore", "-time"])
def test_clients_that_may_not_queue_are_served(nodes, held, make_client, rule):
    guard = {"guard": "off"} if rule == "-time" else {}  # which needs TIME
    urls, turns, clients = allow(nodes, rule), Turns(nodes), []
    for number in range(3):
        clients.append(make_client(urls, **LONG, **guard))
        lock = clients[-1].lock()
        turns.wait(number, lock)
        eventually(lambda: lock.votes.count(BUSY) >= 3, 20)
    assert held.release() == OK
    assert sorted(turns.end()) == [0, 1, 2]
    for client in clients:
        assert warned_once_a_node(client) or rule == "-zscore", "which not everybody needs"


@pytest.mark.parametrize("rule", ["-publish", "-zrem", "-exists"])
def test_release_succeeds_when_publish_is_denied(make_cluster, make_client, rule):
    nodes = make_cluster(1)
    client, other = (make_client(allow(nodes, rule), wake="poll", **LONG) for _ in range(2))
    holder, waiting = client.lock(), other.lock()
    assert holder.acquire() == OK
    assert waiting.start(rl.ACQUIRE, PATIENT_MS) == OK
    spin(other, lambda: places(nodes), 20)
    assert holder.release() == OK and holder.answer(0) == "deleted"
    spin(other, lambda: waiting.status == OK, SOON_S)
    assert waiting.release() == OK and waiting.answer(0) == "deleted"


def test_refusal_is_reported_once_not_every_ten_seconds(nodes, held, make_client):
    """Of each node on which it would wait: another is home when the first one was late."""
    client = make_client(allow(nodes, "-zadd"), **LONG)
    assert client.lock().acquire(12000) == BUSY
    told = [warning["node"] for warning in warnings(client)]
    assert told and len(told) == len(set(told))


def channel_of(node):
    return eventually(lambda: node.command("PUBSUB", "CHANNELS", "libredlock:w:*"), 20, "somebody listens")[0]


@pytest.mark.parametrize("words", [b"junk", b"", b"\0\r\n:1", b"x" * 100000, b"%s:99999999999999999999999", b"%s:",
                                   b"%s:77", b"%s:0"], ids=str)
def test_wake_up_for_an_unknown_waiter_is_reported_once(nodes, held, queued, words):
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
    both = members(node)
    for place in 5 * both:
        assert node.command("PUBLISH", b"libredlock:w:" + place.split(b":")[0], place) == 1
    for _ in range(2):
        promised = promised_by(node, both)
        eventually(lambda: all(map(operator.gt, promised_by(node, both), promised)), 20, "both ask again")
    assert members(node) == both
    turns.serve(held)


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
    spin(client, lambda: not subscribers(nodes), 40, "the connection is closed without waiters")
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


@pytest.mark.parametrize("end", ["release", "free"])
def test_release_of_a_lock_home_did_not_grant_wakes_the_first(home_of_r, held_elsewhere, end):
    """The first is played here: a waiter may find the lock free before its wake-up."""
    place, channel = b"%016x:1" % 0xABC, b"libredlock:w:%016x" % 0xABC
    first = home_of_r.connect()
    first.command("SUBSCRIBE", channel)
    home_of_r.command("ZADD", PROMISES, time_of(home_of_r) + 600000000, place)
    home_of_r.command("ZADD", QUEUE, time_of(home_of_r), place)
    assert getattr(held_elsewhere, end)() in (OK, None)
    assert first.read() == [b"message", channel, place]


def test_those_behind_leave_it_to_the_first_to_try(held_elsewhere, queued):
    """The longer the less, but for the second, who now and then asks all nodes."""
    began_ms = now_ms()
    turns, clients = queued(8)

    def attempts(client):
        return client.describe()["attempts"]

    eventually(lambda: attempts(clients[0]) > 150, 60, "the first tries again and again")
    assert max(map(attempts, clients[1:])) <= 10 + 2 * (now_ms() - began_ms) / 1000
    assert held_elsewhere.release() == OK
    assert sorted(turns.end()) == list(range(8))  # who tries at that moment may be faster than the first

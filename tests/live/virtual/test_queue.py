"""Waiting in order: who is served when, what stands on the nodes meanwhile, and what it costs."""
import threading
import time

import pytest

import rl
from common import now_ms, occupy
from helpers import Call, spin
from queueing import BEFORE_LAPSE_S, GENEROUS_WAIT_MS, LONG, Turns, home, places_be, stand_before
from rl import BUSY, CANCELLED, GENEROUS_TIMEOUTS, LOST, NO_QUORUM, OK, PENDING
from testing import eventually
from testing.wait import in_time
from waiters import LONGEST_US, PROMISES, QUEUE, members, places, subscribers

# ---- the order


def test_clients_are_served_in_the_order_of_arrival(nodes, held, queued):
    turns, _ = queued(5)
    eventually(lambda: len({place.split(b":")[0] for place in places(nodes)}) == 5, 20, "each client has a place")
    eventually(lambda: sorted(len(members(node)) for node in nodes) == [0, 0, 0, 5, 5], 5, "on two nodes in the end")
    turns.serve(held)
    eventually(lambda: not places(nodes), 5, "their places are given back")


def test_who_waits_for_long_takes_a_second_place(nodes, held, make_client):
    client = make_client(nodes.urls, **LONG)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    began_ms = now_ms()
    spin(client, lambda: places(nodes), 20, "it has its first")
    count = sum(bool(members(node)) for node in nodes)
    in_time(now_ms() - began_ms < 100)
    assert count == 1
    spin(client, lambda: sum(bool(members(node)) for node in nodes) == 2, 20, "it has a second one")
    waited_ms = now_ms() - began_ms
    assert waited_ms >= 100
    in_time(waited_ms < 150)


def test_waiters_of_a_single_node_are_served_in_order(make_cluster, hold, queued):
    nodes = make_cluster(1)
    held = hold(nodes, **LONG)
    turns, _ = queued(4, nodes)
    turns.serve(held)


def test_waiters_of_one_client_are_served_in_order(nodes, held, make_client):
    client = make_client(nodes.urls, **LONG)
    locks = [client.lock() for _ in range(12)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes))
    assert len(places(nodes)) == 1, "one place for all of them"
    assert held.release() == OK
    for number, lock in enumerate(locks):
        spin(client, lambda: any(one.status != rl.PENDING for one in locks[number:]), BEFORE_LAPSE_S)
        assert [one.status for one in locks[number:]] == [OK] + [rl.PENDING] * (11 - number)
        assert lock.release() == OK
    assert client.lock().acquire(0) == OK


def test_a_promise_tells_how_many_wait_behind_the_place(nodes, held, make_client):
    """In its last three digits, for those who look."""
    def behind():
        found = [node.command("ZSCORE", PROMISES, place) for node in nodes for place in members(node)]
        return {int(promise) % 1000 for promise in found if promise}
    client = make_client(nodes.urls, **LONG)
    locks = [client.lock() for _ in range(12)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: behind() == {11}, 20)
    for lock in locks[:3]:
        lock.cancel()
    spin(client, lambda: behind() == {8}, 20)
    assert held.release() == OK
    spin(client, lambda: locks[3].status == OK, 20)


def test_short_holds_of_one_client_hand_on_without_the_queue(nodes, held, make_client):
    """Its waiters hear of a release by themselves: none of them takes a place while nobody else waits."""
    client = make_client(nodes.urls, **LONG)
    locks = [client.lock() for _ in range(4)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes), 20, "the first has a place behind another client")
    assert held.release() == OK
    queues = []
    for lock in locks:
        spin(client, lambda lock=lock: lock.status == OK, 20, "it is served")
        queues.append(len(places(nodes)))
        assert lock.release() == OK
    assert queues[0] == 1, "a holder keeps its place"
    in_time(queues[1:] == [0, 0, 0])


def test_a_client_takes_a_place_behind_a_long_hold_of_its_own(nodes, held, make_client):
    client = make_client(nodes.urls, **LONG)
    first, second = client.lock(), client.lock()
    for lock in first, second:
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes), 20, "the first has a place behind another client")
    assert held.release() == OK
    spin(client, lambda: first.status == OK, 20, "it is served")
    spin(client, lambda: len(places(nodes)) == 2, 20, "the second has one, too")
    assert first.release() == OK
    spin(client, lambda: second.status == OK, 20, "it is served")


def test_waiters_before_the_connection_keep_their_order(nodes, held, make_client):
    client = make_client(nodes.urls, settle=False, **LONG)
    locks = [client.lock() for _ in range(40)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes))
    assert held.release() == OK
    for number, lock in enumerate(locks):
        spin(client, lambda: any(one.status != rl.PENDING for one in locks[number:]), BEFORE_LAPSE_S)
        assert lock.status == OK, number
        assert lock.release() == OK


def test_queue_order_is_by_arrival_not_by_first_refusal(nodes, home_of_r, make_client):
    others = [node for node in nodes if node is not home_of_r]
    occupy([home_of_r, *others[:2]], ttl_ms=600000)
    client = make_client(nodes.urls, node_timeout_ms=5000, **LONG)
    first, second = client.lock(), client.lock()
    for node in others[:2]:
        node.stop()
    for lock in (first, second):
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes), 20)
    for node in others[:2]:
        node.cont()
    spin(client, lambda: first.votes.count(BUSY) == 3, 20)
    for node in nodes:
        node.command("DEL", "r")
    spin(client, lambda: OK in (first.status, second.status), BEFORE_LAPSE_S)
    assert (first.status, second.status) == (OK, PENDING)


ROUNDS = 12


def take_turns(nodes, locks, while_held):
    """Everybody takes and releases again and again: who held when."""
    order = []

    def work(name, lock):
        for _ in range(ROUNDS):
            assert lock.acquire(GENEROUS_WAIT_MS) == OK, lock.message
            order.append(name)
            while_held(order)
            assert lock.release() == OK, lock.message

    calls = [Call(work, name, lock) for name, lock in enumerate(locks)]
    for call in calls:
        call.join(120)
    return order


def others(nodes):
    """The places but for that of the holder's client: its promise may be broken, and then whoever asks removes it."""
    token = next(filter(None, (node.get("r") for node in nodes)))
    return [place for place in places(nodes) if place[:12] != token[:12]]


def test_releaser_that_comes_again_queues_last(nodes, make_client):
    def others_wait(order):
        waiting = sum(order.count(name) < ROUNDS for name in range(3) if name != order[-1])
        eventually(lambda: len(others(nodes)) >= waiting, 20)

    order = take_turns(nodes, [make_client(nodes.urls, **LONG).lock() for _ in range(3)], others_wait)
    line = list(dict.fromkeys(order))
    for name in order:
        assert name == line[0], order
        line.remove(name)
        line.append(name)


def test_a_releaser_goes_behind_the_other_waiters_of_its_client(nodes, make_client):
    client = make_client(nodes.urls, **LONG)
    waiting = [client.lock() for _ in range(3)]
    assert waiting[0].acquire(GENEROUS_WAIT_MS) == OK
    for lock in waiting[1:]:
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    for _ in range(3 * ROUNDS):
        holder = waiting.pop(0)
        assert holder.release() == OK
        assert holder.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
        waiting.append(holder)
        spin(client, lambda: any(lock.status != rl.PENDING for lock in waiting), BEFORE_LAPSE_S)
        assert [lock.status for lock in waiting] == [OK, rl.PENDING, rl.PENDING]


@pytest.mark.parametrize("once_more", range(4))
def test_lone_handle_lets_in_a_waiter_that_came_meanwhile(nodes, make_client, once_more):
    """The answer that no other waits is good for 20 ms."""
    clients = [make_client(nodes.urls, **LONG) for _ in range(2)]
    alone, newcomer = (client.lock() for client in clients)
    for _ in range(2):
        assert alone.acquire(0) == alone.release() == OK
    assert alone.acquire(0) == OK
    assert newcomer.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    began_ms = now_ms()
    spin(clients[1], lambda: places(nodes) and subscribers(nodes) and now_ms() - began_ms > 20)
    assert alone.release() == OK
    assert alone.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK

    def somebody_holds():
        clients[0].process()
        return OK in (alone.status, newcomer.status)

    spin(clients[1], somebody_holds, BEFORE_LAPSE_S)
    assert (newcomer.status, alone.status) == (OK, PENDING)


def test_a_handle_that_is_alone_asks_again(nodes, make_client):
    """Others may come between its brief holds: what it was told is good for 20 ms."""
    lock = make_client(nodes.urls, **LONG).lock()
    before = sum(node.calls("exists") for node in nodes)
    for _ in range(2000):
        assert lock.acquire(0) == lock.release() == OK
    assert sum(node.calls("exists") for node in nodes) - before > 5


def test_without_the_queue_a_releaser_may_overtake(nodes, make_client):
    order = take_turns(nodes, [make_client(nodes.urls, queue="false").lock() for _ in range(3)], lambda order: None)
    assert order != order[:3] * ROUNDS
    assert places(nodes) == []


def test_one_attempt_takes_a_free_lock_and_leaves_no_place(nodes, home_of_r, make_client):
    stand_before(home_of_r, promise_us=LONGEST_US)
    before = places(nodes)
    lock = make_client(nodes.urls).lock()
    assert lock.acquire(0) == OK, lock.message
    assert places(nodes) == before
    assert lock.release() == OK


def test_attempts_that_are_counted_do_not_queue(nodes, held, make_client):
    queued = [node.calls("zadd") for node in nodes]
    lock = make_client(nodes.urls, retry_count=3, retry_delay_ms=5).lock()
    assert lock.acquire(GENEROUS_WAIT_MS) == BUSY
    assert make_client(nodes.urls).lock().acquire(0) == BUSY
    assert [node.calls("zadd") for node in nodes] == queued


def test_the_queue_has_the_prefix_of_the_key(nodes, make_client, hold):
    held = hold(key_prefix="app:", **LONG)
    waiting = Call(make_client(nodes.urls, key_prefix="app:").lock().acquire, GENEROUS_WAIT_MS)
    eventually(lambda: places(nodes, "app:" + QUEUE), 20)
    assert all(key.startswith(b"app:") for key in nodes.keys())
    assert held.release() == OK and waiting.join(BEFORE_LAPSE_S) == OK


def is_told_by_one_who_has_just_connected(nodes, token, queued, make_client):
    """Who stands there alone takes the lock without being told if home is the last to hear of the release."""
    turns, _ = queued(1)
    node = home(nodes)
    eventually(lambda: all(int(place[-1:]) % 2 for place in members(node)), 20, "it listens")
    before = node.calls("publish")
    client = make_client(nodes.urls, settle=False, **LONG)
    lock = client.lock()
    assert lock.adopt(token) == OK
    assert lock.release() == OK
    assert turns.end() == [0]
    spin(client, lambda: not nodes.keys(), 20, "all have released, also on nodes to which it connects later")
    return node.calls("publish") > before


def test_release_of_a_new_client_wakes_the_first_waiter(nodes, hold, queued, make_client):
    """As a process does that releases by a token, or a request of PHP."""
    for _ in range(5):
        held = hold(**LONG)
        token = held.token
        held.detach()
        if is_told_by_one_who_has_just_connected(nodes, token, queued, make_client):
            return
    pytest.fail("no waiter was woken")


@pytest.mark.parametrize("end", ["free", "acquire", "release"])
def test_lost_lock_wakes_first_waiter_on_cleanup(nodes, home_of_r, hold, end):
    """The first may wait for the end of a lease that its holder has lost on other nodes."""
    lost = hold(**LONG)
    for node in [node for node in nodes if node is not home_of_r][:3]:
        node.delete_keys()
    assert lost.extend() == LOST
    stand_before(home_of_r, promise_us=LONGEST_US)
    told = home_of_r.calls("publish")
    {"free": lost.free, "acquire": lambda: lost.acquire(0), "release": lost.release}[end]()
    eventually(lambda: home_of_r.calls("publish") > told, 20, "the first is woken")


def test_a_question_that_was_slow_costs_no_place(nodes, held, queued):
    """It says how long its sender has waited, and home when it has come: by that it has come later."""
    turns, _ = queued(1)
    node = home(nodes)

    def asks_late():
        asked = node.calls("zrank")
        node.stop()
        began_ms = now_ms()
        eventually(lambda: now_ms() - began_ms > 150, 5, "the waiter has asked meanwhile")
        node.cont()
        eventually(lambda: node.calls("zrank") > asked, 20, "it was answered")

    eventually(lambda: int(places(nodes)[0][-1:]) % 2, 20, "it listens")  # and keeps the name of its place
    arrived = float(node.command("ZSCORE", QUEUE, members(node)[0]))
    for _ in range(3):
        asks_late()
    assert float(node.command("ZSCORE", QUEUE, members(node)[0])) <= arrived + 1000
    assert held.release() == OK
    assert turns.end() == [0]


# ---- leaving


def test_a_key_without_a_ttl_is_not_asked_about_forever(nodes, make_client):
    for node in nodes:
        node.command("SET", "r", "for ever")
    client = make_client(nodes.urls, **LONG)
    assert client.lock().acquire(2000) == rl.BUSY
    asked = sum(node.calls("evalsha") + node.calls("eval") for node in nodes)
    assert asked < 80, "%d scripts in 2 s" % asked


def test_a_waiter_whose_time_is_over_leaves_the_queue(nodes, held, make_client):
    lock = make_client(nodes.urls).lock()
    waiting = Call(lock.acquire, 1500)
    places_be(nodes, 1)
    assert waiting.join() == BUSY
    eventually(lambda: not places(nodes), 5, "its place is given back")


def test_a_waiter_that_is_cancelled_leaves_the_queue(nodes, held, make_client):
    lock = make_client(nodes.urls).lock()
    waiting = Call(lock.acquire, GENEROUS_WAIT_MS)
    places_be(nodes, 1)
    assert lock.cancel() == OK
    assert waiting.join() == CANCELLED
    eventually(lambda: not places(nodes), 5, "its place is given back")


def test_a_client_that_is_freed_leaves_the_queue(nodes, held):
    client = rl.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes), 20)
    client.free()
    eventually(lambda: not places(nodes), 5, "its place is given back")


def test_the_next_of_a_client_waits_on_when_the_first_gives_up(nodes, held, make_client):
    client = make_client(nodes.urls, **LONG)
    first, second = client.lock(), client.lock()
    waiting = Call(first.acquire, 1500)
    places_be(nodes, 1)
    turns = Turns(nodes)
    turns.wait("second", second)
    assert waiting.join() == BUSY
    places_be(nodes, 1)
    assert held.release() == OK
    assert turns.end() == ["second"]


def test_served_waiter_leaves_no_place(nodes, make_client):
    """What the nodes keep of a resource that is never free does not grow."""
    def one_waits(order):
        if len(order) < 2 * ROUNDS - 1:
            eventually(lambda: others(nodes), 30)

    take_turns(nodes, [make_client(nodes.urls, **LONG).lock() for _ in range(2)], one_waits)
    assert len(places(nodes, PROMISES)) <= 4


# ---- what waiting costs, and those beside us


def commands(nodes):
    """How many commands clients have sent; what scripts call is counted, too."""
    ours = ("info", "zrange", "client")
    return sum(int(fields.split(",")[0].split("=")[1]) for node in nodes
               for name, fields in node.info("commandstats").items() if name.split("_")[1].split("|")[0] not in ours)


def commands_of(nodes, client, ms):
    """How many it sends in that time."""
    before, began_ms = commands(nodes), now_ms()
    spin(client, lambda: now_ms() - began_ms > ms)
    return commands(nodes) - before


def test_thousand_waiters_cost_hardly_more_than_one(nodes, held, make_client):
    client = make_client(nodes.urls, **LONG)
    alone = client.lock()
    assert alone.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes), 20)
    of_one = commands_of(nodes, client, 2000)
    assert alone.cancel() == OK
    spin(client, lambda: not places(nodes), 20)
    locks = [client.lock() for _ in range(1000)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes), 20)
    sent = []

    def all_have_tried():
        sent.append(commands(nodes))
        return client.describe()["attempts"] >= 1000 and len(sent) > 2 and sent[-3] == sent[-1]

    spin(client, all_have_tried, 20)
    assert commands_of(nodes, client, 2000) < 3 * of_one + 100
    assert held.release() == OK
    for lock in locks:
        assert lock.wait(BEFORE_LAPSE_S * 1000) == OK
        assert lock.release() == OK


def test_client_without_the_queue_does_not_starve_waiters(nodes, make_client, queued, hold):
    """It takes the lock again the moment it has released it; those in line try beside each other then."""
    greedy, served = hold(queue="false", **LONG), threading.Event()

    def take_again():
        count = 0
        while not served.is_set():
            assert greedy.release() == OK
            assert greedy.acquire(GENEROUS_WAIT_MS) == OK
            count += 1
        assert greedy.release() == OK
        return count

    turns, _ = queued(2)
    taking = Call(take_again)
    try:
        assert sorted(turns.end(90)) == [0, 1]
    finally:
        served.set()
    assert taking.join(60) > 0


def test_client_without_the_queue_is_served_beside_waiters(nodes, held, make_client, queued):
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

"""Who stands in the queue and who does not: a waiter that cannot win, that asks on other terms, or that has died keeps
nobody from the lock."""
import pytest

import rl
from common import occupy
from helpers import Pulse, spin
from queueing import BEFORE_LAPSE_S, GENEROUS_WAIT_MS, LONG, Turns, home, places_be
from rl import BUSY, NO_QUORUM, OK, PENDING
from testing import eventually
from waiters import LONGEST_US, PROMISES, QUEUE, in_order, members, places, subscribers, time_of

FENCE = "libredlock:f:r"
FENCED = dict(LONG, fence="true", outage_wait_ms=GENEROUS_WAIT_MS)


def spoil_fence(nodes):
    """A client that wants a number gets an error; others notice nothing."""
    for node in nodes:
        node.command("SET", FENCE, "no number")


def mend_fence(nodes):
    for node in nodes:
        node.command("DEL", FENCE)


def attempts(client):
    return client.describe()["attempts"]


def tries_on(client, more=4):
    before = attempts(client)
    spin(client, lambda: attempts(client) >= before + more, 20, "it tries again and again")


# ---- those that cannot win


def test_a_waiter_that_cannot_win_takes_no_place(nodes, held, make_client, queued):
    spoil_fence(nodes)
    client = make_client(nodes.urls, **FENCED)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    tries_on(client)
    assert places(nodes) == []
    turns, _ = queued(2)
    tries_on(client)
    places_be(nodes, 2)
    turns.serve(held)
    mend_fence(nodes)
    spin(client, lambda: lock.status != PENDING, BEFORE_LAPSE_S)
    assert lock.status == OK, lock.message


def test_a_first_waiter_that_fails_makes_way_for_the_next(nodes, held, make_client, queued):
    """It stood there rightly, and finds out when its turn has come."""
    client = make_client(nodes.urls, **FENCED)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes) and subscribers(nodes), 20)
    mine = places(nodes)
    turns, (other,) = queued(1)
    spin(client, lambda: len(places(nodes)) == 2 and all(int(place[-1:]) % 2 for place in places(nodes)), 20)
    watch = home(nodes).connect(timeout_s=20)
    watch.command("SUBSCRIBE", b"libredlock:w:" + places(nodes)[1][:16])
    spoil_fence(nodes)
    assert held.release() == OK
    spin(client, lambda: turns.order, BEFORE_LAPSE_S)
    assert watch.read()[0] == b"message", "the next was told"
    watch.close()
    assert turns.end() == [0]
    tries_on(client)
    assert lock.status == PENDING and mine[0] not in places(nodes)


def test_a_waiter_that_made_way_joins_again_at_the_end(nodes, held, make_client, queued):
    client = make_client(nodes.urls, **FENCED)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes), 20)
    spoil_fence(nodes)
    assert held.release() == OK
    tries_on(client)
    assert places(nodes) == []
    held = make_client(nodes.urls, **LONG).lock()
    assert held.acquire(GENEROUS_WAIT_MS) == OK, held.message
    turns, _ = queued(2)
    mend_fence(nodes)
    spin(client, lambda: len(places(nodes)) == 3, 20, "it is in the queue again")
    last = places(nodes)[2]
    spin(client, lambda: attempts(client) and places(nodes)[2:] == [last])
    assert held.release() == OK
    spin(client, lambda: lock.status != PENDING, BEFORE_LAPSE_S)
    assert lock.status == OK, lock.message
    assert turns.end() == turns.came


def test_a_waiter_too_far_away_for_its_time_outs_takes_no_place(nodes, held, proxies, make_client, queued):
    """Its SETs are executed, but their answers come too late for it."""
    client = make_client([proxy.url for proxy in proxies], node_timeout_ms=20, outage_wait_ms=GENEROUS_WAIT_MS,
                         ttl_ms=30000)
    for proxy in proxies:
        proxy.delay(down_ms=100)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    tries_on(client)
    turns, _ = queued(2)
    tries_on(client)
    places_be(nodes, 2)
    spin(client, lambda: not any(node["owed"] for node in client.describe()["nodes"]), what="its SETs are answered")
    turns.serve(held)
    assert lock.cancel() == OK


# ---- those of one client that ask on different terms


@pytest.mark.parametrize("fenced_first", [True, False])
def test_a_handle_does_not_fail_for_what_another_one_lacks(nodes, make_client, fenced_first):
    spoil_fence(nodes)
    client = make_client(nodes.urls, outage_wait_ms=1500, **LONG)
    fenced, plain = client.lock(fence="true"), client.lock()
    locks = [fenced, plain] if fenced_first else [plain, fenced]
    held = make_client(nodes.urls, **LONG).lock()
    assert held.acquire(0) == OK
    for lock in locks:
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: fenced.status != PENDING, 20)
    assert (fenced.status, plain.status) == (NO_QUORUM, PENDING)
    assert held.release() == OK
    spin(client, lambda: plain.status != PENDING, BEFORE_LAPSE_S)
    assert plain.status == OK, plain.message


def test_handles_on_different_terms_each_have_a_place(nodes, held, make_client):
    client = make_client(nodes.urls, **LONG)
    terms = [{}, {"ttl_ms": 20000}, {"fence": "true"}, {"node_timeout_ms": 1500}, {"min_validity_ms": 700}]
    locks = [client.lock(**options) for options in terms + terms]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: len(places(nodes)) == len(terms), 20)
    assert held.release() == OK
    for _ in range(len(locks)):
        spin(client, lambda: any(lock.status != PENDING for lock in locks), BEFORE_LAPSE_S)
        done = [lock for lock in locks if lock.status != PENDING]
        assert [lock.status for lock in done] == [OK], done[0].message
        locks.remove(done[0])
        assert done[0].release() == OK
    spin(client, lambda: not places(nodes), 10, "all places are given back")


# ---- a home node that is slow


def asked_since(node, calls):
    return node.calls("zrank") > calls


def test_one_much_slower_than_the_others_is_not_home(nodes, home_of_r, proxies, held, queued):
    """Its answers would set the pace of the lock. Waiters stand there, too, for those to whom it is home."""
    proxies[nodes.nodes.index(home_of_r)].delay(down_ms=100)
    turns, _ = queued(3, urls=[proxy.url for proxy in proxies])
    _, second, third, *_ = in_order(nodes)
    calls = second.calls("zrank")
    eventually(lambda: asked_since(second, calls), 20, "the first asks the next node whose turn it is")
    assert members(home_of_r) and not members(third)
    turns.serve(held)  # although the holder is not aware of it


def test_one_that_finds_home_slow_stands_in_the_same_order(nodes, home_of_r, proxies, held, make_client):
    """Each hears later of a release than those behind it do."""
    for proxy in proxies:
        proxy.delay(down_ms=100 if nodes.nodes[proxies.index(proxy)] is home_of_r else 2)
    turns = Turns(nodes)
    for number, urls in enumerate([[proxy.url for proxy in proxies], nodes.urls, nodes.urls]):
        turns.wait(number, make_client(urls, **LONG).lock())
        places_be(nodes, number + 1)
    turns.serve(held)


def test_a_node_that_is_quick_again_is_home_again(nodes, home_of_r, proxies, held, queued):
    slow = proxies[nodes.nodes.index(home_of_r)]
    slow.delay(down_ms=100)
    turns, _ = queued(3, urls=[proxy.url for proxy in proxies])
    slow.delay()
    eventually(lambda: members(home_of_r), 30, "the first, which tries now and then, stands there")
    turns.serve(held)


def answer_slowly(nodes, home, slow, queued):
    """How often the other servers were asked meanwhile, and whether the machine was quick enough for that: a node that
    takes 0.3 s is home no more."""
    connection = home.connect(timeout_s=20)
    with Pulse(connection) as pulse:
        turns, _ = queued()
        eventually(lambda: members(home), 20)
        others = in_order(nodes)[2:]
        asked, asked_elsewhere = home.calls("zrank"), sum(node.calls("zrank") for node in others)
        slow.delay(down_ms=80)
        eventually(lambda: asked_since(home, asked + 1), 20, "one slow answer has come, for it has asked again")
        slow.delay()
        asked = home.calls("zrank")
        eventually(lambda: asked_since(home, asked + 2), 20)
        asked_elsewhere = sum(node.calls("zrank") for node in others) - asked_elsewhere
    connection.close()
    return turns, asked_elsewhere, pulse.late_s < 0.05


def test_a_few_slow_answers_move_no_queue(nodes, home_of_r, proxies, held, queued):
    slow = proxies[nodes.nodes.index(home_of_r)]
    for _ in range(10):
        turns, asked_elsewhere, was_quick = answer_slowly(
            nodes, home_of_r, slow, lambda: queued(1, urls=[proxy.url for proxy in proxies]))
        assert held.release() == OK
        assert turns.end() == [0]
        if was_quick or asked_elsewhere == 0:
            break
        assert held.acquire(GENEROUS_WAIT_MS) == OK
    assert asked_elsewhere == 0, "was quick" if was_quick else "the machine was late each time"


# ---- those that have died with the holder


DEAD = 20


def dead_wait(nodes, home, listened, promise_us=LONGEST_US):
    """Places of dead waiters, with promises that are as long as they may be."""
    now = time_of(home)
    for number in range(DEAD):
        place = "%016x:%d" % (0xdead00 + number, 3 if listened else 2)
        home.command("ZADD", QUEUE, now - 1000000000 + number, place)
        home.command("ZADD", PROMISES, now + promise_us, place)


@pytest.mark.parametrize("wake, listened", [("auto", True), ("poll", False)])
def test_the_first_that_lives_has_the_lock_soon_after_its_lease(nodes, home_of_r, make_client, wake, listened):
    """The pauses of one so far behind are as long as this wait."""
    client = make_client(nodes.urls, wake=wake)
    dead_wait(nodes, home_of_r, listened, promise_us=2000000)
    occupy(nodes, "r", ttl_ms=1000)
    assert client.lock().acquire(3900) == OK


def test_the_promise_of_a_waiter_that_polls_is_short(nodes, home_of_r, make_client):
    """Nobody notices its death before."""
    client = make_client(nodes.urls, wake="poll", **LONG)
    dead_wait(nodes, home_of_r, False)
    occupy(nodes, "r", ttl_ms=600000)
    assert client.lock().start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: len(members(home_of_r)) == DEAD + 1, 20)
    promised = float(home_of_r.command("ZSCORE", PROMISES, members(home_of_r)[-1])) - time_of(home_of_r)
    assert promised < 3500000


def test_free_lock_has_no_holder(nodes, home_of_r, make_client):
    dead_wait(nodes, home_of_r, False)
    lock = make_client(nodes.urls, wake="poll").lock()
    assert lock.acquire(100) == BUSY  # long before the promises of the dead are over
    assert lock.message.startswith("free, but others wait for it"), lock.message
    occupy(nodes, "r", ttl_ms=60000)
    assert lock.acquire(300) == BUSY
    assert lock.message.startswith("held by others"), lock.message


# ---- what stands in place of a key


def test_bad_queue_key_of_one_resource_affects_no_other(nodes, held, make_client):
    client = make_client(nodes.urls, **LONG)
    names = ["bad%d" % number for number in range(40)]
    for name in names:  # some have their queue on the node that has the queue of r
        occupy(nodes, name, ttl_ms=600000)
        occupy(nodes, "libredlock:q:" + name, ttl_ms=600000)
        assert client.lock(name).start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: all(node.calls("zrange") > 0 for node in nodes), 20)
    spin(client, lambda: [event for event in client.events() if event["event"] == "warning"], 20)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes), 20)
    assert lock.attempts < 5, "it has been in the queue since its first attempts"


def test_key_without_an_end_is_not_polled_all_the_time(nodes, make_client):
    for node in nodes:
        node.command("SET", "r", "longer than 292 years", "PX", 10 ** 13)
    client = make_client(nodes.urls, **LONG)
    assert client.lock().acquire(2000) == BUSY
    asked = sum(node.calls("evalsha") + node.calls("eval") for node in nodes)
    assert asked < 80, "%d scripts in 2 s" % asked


def is_told_when_the_first_leaves(nodes, held, make_client):
    """The first hears that its turn has come, and leaves instead."""
    client, turns = make_client(nodes.urls, **LONG), Turns(nodes)
    first = client.lock()
    assert first.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    node = spin(client, lambda: next((node for node in nodes if members(node)), None), 20)
    turns.wait("second", make_client(nodes.urls, **LONG).lock())
    spin(client, lambda: [int(place[-1:]) % 2 for place in members(node)] == [1, 1], 20, "both listen")
    watch = node.connect(timeout_s=2)
    watch.command("SUBSCRIBE", b"libredlock:w:" + members(node)[1][:16])
    assert held.release() == OK
    first.cancel()
    client.process()
    try:
        return watch.read()[0] == b"message"
    except TimeoutError:
        return False
    finally:
        watch.close()
        assert turns.end() == ["second"]


def test_waiter_that_leaves_in_its_turn_wakes_the_next(nodes, hold, make_client):
    """The next in line may be faster."""
    for _ in range(5):
        if is_told_when_the_first_leaves(nodes, hold(**LONG), make_client):
            return
    pytest.fail("no waiter was woken")


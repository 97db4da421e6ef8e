"""How soon locks are handed over, and what lasts only for a moment. The time is that of the virtual world: nothing else
takes any."""
import pytest

import rl
from common import now_ms, occupy
from helpers import spin
from queueing import GENEROUS_WAIT_MS, LONG, Turns, home, places_be, stand_before
from rl import BUSY, OK, PENDING
from testing import eventually
from waiters import PROMISES, QUEUE, in_order, members, places
from world import Call, time


def cycle_s(lock):
    begun_s = time.monotonic()
    assert lock.acquire(5000) == OK, lock.message
    won_s = time.monotonic()
    assert lock.release() == OK, lock.message
    return won_s - begun_s


@pytest.mark.parametrize("waits_elsewhere", [False, True])
def test_no_win_waits_for_a_home_that_is_further(nodes, make_client, proxy, waits_elsewhere):
    """Home says with the answers to releases that nobody waits, and these come after the next acquire has begun."""
    home = in_order(nodes)[0]
    path = proxy(home)
    path.delay(up_ms=1, down_ms=1)
    client = make_client([path.url if node is home else node.url for node in nodes])
    if waits_elsewhere:
        other = make_client(nodes.urls).lock("x", **LONG)
        assert other.acquire(5000) == OK
        waiter = Call(client.lock("x", **LONG).acquire, 60000)
        time.sleep(1)
    lock = client.lock(**LONG)
    for _ in range(50):
        cycle_s(lock)
    assert max(cycle_s(lock) for _ in range(500)) < 0.001
    if waits_elsewhere:
        assert other.release() == OK and waiter.join() == OK


def take_turns(lock, end_s, hold_s, waits_s):
    """Acquires and releases it until then, and notes how long each acquisition took."""
    while time.monotonic() < end_s:
        begun_s = time.monotonic()
        assert lock.acquire(60000) == OK, lock.message
        waits_s.append(time.monotonic() - begun_s)
        time.sleep(hold_s)
        assert lock.release() == OK


@pytest.mark.parametrize("others, wake", [("", "auto"), ("a", "auto"), ("ab", "auto"), ("", "poll")])
def test_locks_of_several_hand_over_at_once(nodes, make_client, others, wake):
    """Beside locks of one of their resources, too, they need not find out by asking that it is their turn."""
    end_s, waits_s = time.monotonic() + 3, []

    calls = [Call(take_turns, make_client(nodes.urls, wake=wake).lock("a", "b", **LONG), end_s, 0.005, waits_s)
             for _ in range(8)]
    calls += [Call(take_turns, make_client(nodes.urls).lock(resource, **LONG), end_s, 0.005, []) for resource in others]
    for call in calls:
        call.join()
    assert max(waits_s) < 0.2


def test_locks_of_several_take_turns_where_homes_are_far(nodes, make_client, proxies):
    """They win before the homes of their resources say that others wait, and know it from the release before."""
    homes, end_s = [in_order(nodes, resource)[0] for resource in (b"a", b"b")], time.monotonic() + 20
    waits_s = [[] for _ in range(8)]
    for far_ms, node in zip((80, 60, 20, 5, 1), dict.fromkeys(homes + in_order(nodes))):
        proxies[nodes.nodes.index(node)].delay(up_ms=far_ms, down_ms=far_ms)

    urls = [proxy.url for proxy in proxies]
    for call in [Call(take_turns, make_client(urls).lock("a", "b", **LONG), end_s, 0.02, own) for own in waits_s]:
        call.join()
    wins = [len(own) for own in waits_s]
    assert min(wins) > 0.7 * max(wins), wins


@pytest.mark.parametrize("permits", ["1", "2"])
@pytest.mark.parametrize("late_ms", [30, 300])
def test_a_home_that_becomes_slow_is_left_soon(nodes, home_of_r, make_client, proxies, late_ms, permits):
    slow, waits_s, end_s = proxies[nodes.nodes.index(home_of_r)], [], time.monotonic() + 5
    urls = [proxy.url for proxy in proxies]
    calls = [Call(take_turns, make_client(urls).lock(permits=permits), end_s, 0.002, waits_s) for _ in range(4)]
    time.sleep(1)
    slow.delay(down_ms=late_ms)
    time.sleep(3)
    before = len(waits_s)
    for call in calls:
        call.join()
    assert len(waits_s) - before > 400, "in the last second"


READERS = 30


def test_of_many_readers_that_wait_few_try(nodes, make_client):
    """Each could have the lock if home had the key of a holder that is gone."""
    writer = make_client(nodes.urls).lock(**LONG)
    assert writer.acquire(5000) == OK
    clients = [make_client(nodes.urls) for _ in range(READERS)]
    calls = [Call(client.lock(shared="true").acquire, 60000) for client in clients]
    places_be(nodes, READERS)
    before = sum(client.describe()["attempts"] for client in clients)
    time.sleep(5)
    assert sum(client.describe()["attempts"] for client in clients) - before < 80
    assert writer.release() == OK
    assert all(call.join() == OK for call in calls)


def test_readers_do_not_wait_for_the_end_of_a_leftover(nodes, home_of_r, make_client):
    """The key of a holder that is gone ends at home last."""
    for node in nodes:
        node.command("SET", "r", "left-behind", "PX", "60000" if node is home_of_r else "5000")
    calls = [Call(make_client(nodes.urls).lock(shared="true").acquire, 60000) for _ in range(READERS)]
    places_be(nodes, READERS)
    eventually(lambda: not nodes[0].command("EXISTS", "r") or not nodes[1].command("EXISTS", "r"), 20)
    begun_s = time.monotonic()
    assert all(call.join() == OK for call in calls)
    assert time.monotonic() - begun_s < 2


@pytest.mark.parametrize("happens, longest_s", [("kill", 0.3), ("kill_clients", 0.3), ("stop", 4.5)])
@pytest.mark.parametrize("resources", ["r", "rs"])
def test_who_is_far_back_does_not_sleep_on(nodes, home_of_r, make_client, resources, happens, longest_s):
    """Home wakes it, unless the connection breaks or home hangs. That shows by the connection, or else when it asks
    again, after 4 s at most."""
    end_s, waits_s = time.monotonic() + 7, []
    calls = [Call(take_turns, make_client(nodes.urls, node_timeout_ms="auto").lock(*resources, **LONG), end_s, 0.01,
                  waits_s) for _ in range(20)]
    time.sleep(1)
    getattr(home_of_r, happens)()
    for call in calls:
        call.join()
    assert max(waits_s) < longest_s


def lose_places(node):
    node.command("DEL", QUEUE, PROMISES)


def step_forward(node):
    """Beyond all promises: the places are cleared away."""
    node.step(2)


@pytest.mark.parametrize("happens", [lose_places, step_forward])
def test_locks_of_several_outlast_a_queue_that_loses_its_places(nodes, home_of_r, make_client, happens):
    """They hear of releases by the queues of their other resources alone."""
    end_s, waits_s = time.monotonic() + 5, []
    calls = [Call(take_turns, make_client(nodes.urls).lock(*"rs", **LONG), end_s, 0.01, waits_s) for _ in range(20)]
    time.sleep(1)
    happens(home_of_r)
    for call in calls:
        call.join()
    assert max(waits_s) < 0.4


def wins_s(locks, end_s, happens):
    """When they were acquired, seconds from now, by taking turns until then; after 2 s something happens."""
    begun_s, won_s = time.monotonic(), []

    def go_on(lock):
        while time.monotonic() < begun_s + end_s:
            assert lock.acquire(60000) == OK, lock.message
            won_s.append(time.monotonic() - begun_s)
            time.sleep(0.01)
            assert lock.release() == OK

    calls = [Call(go_on, lock) for lock in locks]
    time.sleep(2)
    happens()
    for call in calls:
        call.join()
    return won_s


def counted(won_s, first_s, end_s):
    return sum(first_s <= at_s < end_s for at_s in won_s)


@pytest.mark.parametrize("hung_s", [0.1, 0.2, 1])
def test_those_who_poll_find_their_pace_again(nodes, home_of_r, make_client, hung_s):
    """Each that sleeps on when its turn has come makes the others sleep for longer."""
    def hang():
        home_of_r.stop()
        time.sleep(hung_s)
        home_of_r.cont()

    won_s = wins_s([make_client(nodes.urls, wake="poll").lock(**LONG) for _ in range(20)], 7, hang)
    assert counted(won_s, 5, 7) > 0.9 * counted(won_s, 0, 2)


@pytest.mark.parametrize("resources, options", [("r", {}), ("rs", {}), ("r", {"permits": 3})])
def test_a_home_that_takes_writes_again_has_no_places_of_before(nodes, home_of_r, make_client, resources, options):
    """It could not remove them, and each would hold up the others until its promise is broken."""
    def refuse_writes():
        home_of_r.config_set("min-replicas-to-write", 1)
        time.sleep(1)
        home_of_r.config_set("min-replicas-to-write", 0)

    locks = [make_client(nodes.urls).lock(*resources, **options, **LONG) for _ in range(20)]
    won_s = wins_s(locks, 6, refuse_writes)
    assert counted(won_s, 3, 5) > 0.9 * counted(won_s, 0, 2)


@pytest.mark.parametrize("late_ms", [310, 350, 400])
def test_those_who_poll_go_on_while_home_is_late(nodes, make_client, proxies, late_ms):
    urls = [proxy.url for proxy in proxies]
    locks = [make_client(urls, wake="poll", node_timeout_ms="auto").lock(**LONG) for _ in range(4)]
    assert locks[0].acquire(5000) == OK

    def take(lock):
        assert lock.acquire(60000) == OK and lock.release() == OK

    calls = []
    for lock in locks[1:]:
        calls.append(Call(take, lock))
        time.sleep(0.1)
    time.sleep(2)
    proxies[nodes.nodes.index(in_order(nodes)[0])].delay(down_ms=late_ms)
    time.sleep(0.02)
    assert locks[0].release() == OK
    begun_s = time.monotonic()
    for call in calls:
        call.join()
    assert time.monotonic() - begun_s < 2


def test_second_waiter_of_a_client_keeps_its_arrival_time(nodes, held, make_client):
    """It has no place of its own before the first one's turn has come; later ones are behind it. The place of a holder
    lasts for a fourth of a second, in which others have to be seen."""
    one, other = make_client(nodes.urls, **LONG), make_client(nodes.urls, **LONG)
    turns = Turns(nodes)

    def all_queue():
        """Both clients, as long as one of their locks waits; and the holder has a place until it releases."""
        waiting = sum(turns.order.count(name) < turns.came.count(name) for name in ("one", "other"))
        eventually(lambda: len(places(nodes)) == 1 + waiting, 30)

    turns.wait("one", one.lock(), all_queue)
    places_be(nodes, 1)
    turns.wait("one", one.lock(), all_queue)
    turns.wait("one", one.lock(), all_queue)
    asked = home(nodes).calls("evalsha")
    eventually(lambda: home(nodes).calls("evalsha") > asked + 3, 20, "time has passed")
    turns.wait("other", other.lock(), all_queue)
    places_be(nodes, 2)
    turns.wait("other", other.lock(), all_queue)
    turns.serve(held)


def test_a_client_that_is_alone_asks_once_with_many_handles(nodes, make_client):
    """Home is asked behind the first SET and reports at the first release; what it says is good for 20 ms."""
    client = make_client(nodes.urls, **LONG)

    def asked():
        return sum(node.calls("exists") for node in nodes)

    def cycle():
        lock = client.lock()
        assert lock.acquire(0) == OK
        assert lock.release() == OK
        lock.free()

    cycle()
    before = asked()
    for _ in range(3):
        cycle()
    assert asked() == before


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


@pytest.mark.parametrize("later_ms", range(0, 100, 20))
def test_a_release_ends_the_pause_after_attempts_in_vain(nodes, make_client, proxy, later_ms):
    """Home has lost the holder's key, so the first waiter tries again and again, every 0.1 s in the end. It hears of
    the release from another node, asks home, and hears of it from home before that answers."""
    home = in_order(nodes)[0]
    path = proxy(home)
    path.delay(up_ms=7)
    holder = make_client([path.url if node is home else node.url for node in nodes]).lock(**LONG)
    assert holder.acquire(5000) == OK
    client = make_client(nodes.urls)
    waiting = Call(client.lock(**LONG).acquire, 60000)
    places_be(nodes, 1)
    home.command("DEL", "r")
    eventually(lambda: client.describe()["attempts"] >= 12, 30, "it tries in vain")
    attempts = client.describe()["attempts"]
    eventually(lambda: client.describe()["attempts"] > attempts, 30, "it tries once more")
    time.sleep(later_ms / 1000)
    released_s = time.monotonic()
    assert holder.release() == OK
    assert waiting.join() == OK and time.monotonic() - released_s < 0.02


def test_newcomer_that_finds_the_lock_free_queues_last(nodes, home_of_r, make_client):
    client = make_client(nodes.urls)
    others = [node for node in nodes if node is not home_of_r]
    for node in others[:2]:
        node.stop()
    for _ in range(3):
        lock = client.lock()
        began_ms = now_ms()
        spin(client, lambda began_ms=began_ms: now_ms() - began_ms > 20, what="what it knows of waiters is too old")
        stand_before(home_of_r, promise_us=2000000)
        asked = home_of_r.calls("zrank")
        assert lock.acquire(GENEROUS_WAIT_MS) == OK, lock.message
        assert home_of_r.calls("zrank") > asked, "it took a place before it took the lock"
        assert lock.release() == OK
        eventually(lambda: not home_of_r.command("EXISTS", "r"), 20, "home has released, too")
        home_of_r.command("DEL", QUEUE, PROMISES)


def test_newcomer_answered_last_by_home_queues_last(nodes, home_of_r, make_client):
    client = make_client(nodes.urls)
    lock = client.lock()
    stand_before(home_of_r, promise_us=2000000)
    for node in [node for node in nodes if node is not home_of_r][:2] + [home_of_r]:
        node.stop()
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    began_ms = now_ms()
    spin(client, lambda: now_ms() - began_ms > 30)
    home_of_r.cont()
    asked = home_of_r.calls("zrank")
    spin(client, lambda: lock.status != PENDING, 20)
    assert lock.status == OK, lock.message
    assert home_of_r.calls("zrank") > asked, "it took a place before it took the lock"


def test_newcomer_a_little_further_from_home_queues_last(nodes, home_of_r, proxies, make_client):
    """Home's word is awaited for 20 ms, however near the other nodes are."""
    proxies[nodes.nodes.index(home_of_r)].delay(down_ms=8)
    lock = make_client([proxy.url for proxy in proxies], **LONG).lock()
    assert lock.acquire(0) == lock.release() == OK
    stand_before(home_of_r, promise_us=2000000)
    began_ms = now_ms()
    spin(lock.client, lambda: now_ms() - began_ms > 50)  # that nobody waited is no news any more
    asked = home_of_r.calls("zrank")
    assert lock.acquire(GENEROUS_WAIT_MS) == OK, lock.message
    assert home_of_r.calls("zrank") > asked, "it took a place before it took the lock"


def test_a_full_home_lets_nobody_pass_those_who_wait(home_of_r, nodes, make_client):
    """It says that the lock is free at all times, so they try in vain. One that does not wait comes back at once."""
    home_of_r.config_set("maxmemory", 1)
    locks, served = [make_client(nodes.urls, **LONG).lock() for _ in range(3)], []

    def hold(lock, wait_ms):
        while len(served) < 100:
            if lock.acquire(wait_ms) == OK:
                served.append(lock)
                time.sleep(0.01)
                assert lock.release() == OK
            else:
                time.sleep(0.003)

    for call in [Call(hold, lock, 0 if lock is locks[0] else GENEROUS_WAIT_MS) for lock in locks]:
        call.join()
    assert min(map(served.count, locks[1:])) > 20


def test_one_that_tries_in_vain_keeps_its_place(nodes, home_of_r, make_client):
    """Home has not the key that others have. Whoever is woken promises to ask soon, and no attempt puts that off."""
    occupy([node for node in nodes if node is not home_of_r][:3], ttl_ms=60000)
    calls = [Call(make_client(nodes.urls).lock(**LONG).acquire, 4000)]
    eventually(lambda: members(home_of_r) and members(home_of_r)[0][-1] in b"13579", 2, "it listens")
    first = members(home_of_r)[0]
    calls.append(Call(make_client(nodes.urls).lock(**LONG).acquire, 4000))
    places_be(nodes, 2)
    for step in range(300):
        if step % 8 == 0:
            home_of_r.command("PUBLISH", b"libredlock:w:" + first[:16], first)  # as a release does
        time.sleep(0.01)
        assert members(home_of_r)[0] == first
    assert [call.join() for call in calls] == [BUSY, BUSY]


@pytest.mark.parametrize("resources, wait_ms, trip_ms", [("r", 100, 60), ("r", 200, 60), ("r", 50, 20), ("rs", 5, 0)])
def test_short_waits_do_not_keep_each_other_out(nodes, proxies, make_client, resources, wait_ms, trip_ms):
    """A wait may end before its turn in a queue comes, and many that come and go would leave the lock free for ever."""
    for path in proxies:
        path.delay(up_ms=trip_ms / 2, down_ms=trip_ms / 2)
    locks = [make_client([path.url for path in proxies]).lock(*resources) for _ in range(4)]
    end_s, won = time.monotonic() + 8, []

    def hold(lock):
        while time.monotonic() < end_s:
            if lock.acquire(wait_ms) == OK:
                won.append(time.monotonic() - end_s)
                time.sleep(0.002)
                assert lock.release() == OK
            else:
                time.sleep(0.003)

    for call in [Call(hold, lock) for lock in locks]:
        call.join()
    assert sum(at_s > -4 for at_s in won) > 20

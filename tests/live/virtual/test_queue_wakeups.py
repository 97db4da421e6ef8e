"""Who is woken, and by what; and what becomes of wake-ups that come to nobody."""
import operator

import pytest

import rl
from common import now_ms, occupy
from helpers import Call, spin
from queueing import BEFORE_LAPSE_S, GENEROUS_WAIT_MS, LONG, home, places_be, promised_by, warnings
from rl import OK
from testing import eventually
from testing.wait import in_time
from waiters import LONGEST_US, PROMISES, QUEUE, members, subscribers, time_of


def listeners(node):
    return {row["id"] for row in subscribers([node])}


def test_who_replaces_a_silent_connection_listens_anew(home_of_r, nodes, held, proxies, make_client):
    """A path that lost its connections lost the listener's, too, on which nothing is in flight by which that shows."""
    client = make_client([proxy.url for proxy in proxies], **LONG)
    lock, others = client.lock(), listeners(home_of_r)
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    first = spin(client, lambda: listeners(home_of_r) - others, 20, "it listens at home")
    proxies[nodes.nodes.index(home_of_r)].silence()
    spin(client, lambda: listeners(home_of_r) - others - first, 10, "it listens there on another connection")
    assert held.release() == OK
    spin(client, lambda: lock.status == OK, BEFORE_LAPSE_S)


def test_listeners_that_are_closed_hold_nobody_up(home_of_r, held, queued):
    """Those who wait hear of no release then, and ask sooner."""
    turns, _ = queued(10)
    eventually(lambda: all(place[-1] in b"13579" for place in members(home_of_r)), 20, "they are to be woken")
    for listener in listeners(home_of_r):
        home_of_r.command("CLIENT", "KILL", "ID", listener)
    begun_ms = now_ms()
    assert held.release() == OK
    assert sorted(turns.end()) == turns.came
    took_ms = now_ms() - begun_ms
    in_time(took_ms < 800, took_ms)


def test_by_asking_alone_they_are_served_in_order_too(nodes, held, queued):
    turns, _ = queued(4, wake="poll")
    assert subscribers(nodes) == []
    turns.serve(held)
    assert subscribers(nodes) == []


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


def other_name(place):
    """As it is called where its waiter does not listen, or does."""
    return place[:-1] + bytes([place[-1] ^ 1])


@pytest.mark.parametrize("named", [bytes, other_name])
def test_a_place_left_in_vain_is_given_back_when_it_is_woken(home_of_r, nodes, held, make_client, named):
    """A node that cannot remove it wakes it again with each answer: that must not go on and on."""
    client = make_client(nodes.urls, **LONG)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: [place for place in members(home_of_r) if place[-1] in b"13579"], 20, "it listens")
    [place] = members(home_of_r)
    home_of_r.command("ZREM", QUEUE, place)
    place = named(place)
    home_of_r.command("ZADD", QUEUE, time_of(home_of_r), place)
    home_of_r.command("ZADD", PROMISES, time_of(home_of_r) + 9e6, place)
    home_of_r.config_set("min-replicas-to-write", 1)
    assert lock.cancel() == OK
    held.release()
    spin(client, lambda: lock.status != rl.PENDING)

    def woken():
        assert home_of_r.command("PUBLISH", b"libredlock:w:" + place.split(b":")[0], place) == 1
        client.process()

    begun = home_of_r.calls("evalsha")
    for _ in range(50):
        woken()
    assert members(home_of_r) == [place] and home_of_r.calls("evalsha") - begun < 25
    home_of_r.config_set("min-replicas-to-write", 0)
    spin(client, lambda: woken() or not members(home_of_r), 5, "the place is gone")
    assert home_of_r.calls("evalsha") - begun < 50


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
    waiting = Call(lock.acquire, GENEROUS_WAIT_MS)
    eventually(lambda: len(subscribers(nodes)) == 2, 20, "it listens where it waits")
    assert held.release() == OK and waiting.join(BEFORE_LAPSE_S) == OK
    assert lock.release() == OK
    spin(client, lambda: not subscribers(nodes), 40, "the connection is closed without waiters")
    assert lock.acquire(0) == OK, "and all others are there"


def test_one_connection_serves_all_resources(nodes, make_client):
    client = make_client(nodes.urls, **LONG)
    names = ["r%d" % number for number in range(40)]
    for name in names:
        occupy(nodes, name, ttl_ms=600000)
        assert client.lock(name).start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: subscribers(nodes), 20)
    spin(client, lambda: sum(len(members(node, "libredlock:q:" + name)) for node in nodes for name in names) == 80, 20)
    assert all(len(subscribers([node])) <= 1 for node in nodes)


PLAYED = b"%016x:1" % 0xABC


def play_first(node):
    """A connection that hears what a waiter would be told there."""
    first = node.connect()
    first.command("SUBSCRIBE", b"libredlock:w:" + PLAYED[:16])
    node.command("ZADD", PROMISES, time_of(node) + LONGEST_US, PLAYED)
    node.command("ZADD", QUEUE, time_of(node), PLAYED)
    return first


def test_who_asks_does_not_tell_the_third_again(home_of_r, nodes, held, make_client):
    """Who was woken has its time from the first wake-up, and the third behind it is to ask when that is over."""
    first, behind = play_first(home_of_r), [b"%s:%d" % (PLAYED[:16], number) for number in (3, 5, 7)]
    for place in behind:
        home_of_r.command("ZADD", PROMISES, time_of(home_of_r) + LONGEST_US, place)
        home_of_r.command("ZADD", QUEUE, time_of(home_of_r), place)
    assert held.release() == OK
    client = make_client(nodes.urls, **LONG)
    assert client.lock().start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: len(members(home_of_r)) == 5, 20, "it has asked")
    home_of_r.command("PUBLISH", b"libredlock:w:" + PLAYED[:16], "end")
    heard = list(iter(lambda: first.read()[2], b"end"))
    assert heard[-1] == PLAYED + b"!"
    assert heard.count(behind[-1] + b"?") == heard.count(PLAYED), "what is released tells both"


@pytest.mark.parametrize("end", ["release", "free"])
def test_release_of_a_lock_home_did_not_grant_wakes_the_first(home_of_r, held_elsewhere, end):
    """The first is played here: a waiter may find the lock free before its wake-up."""
    first = play_first(home_of_r)
    assert getattr(held_elsewhere, end)() in (OK, None)
    assert first.read()[2] == PLAYED

"""Nothing that happens to the queue, or to those who stand in it, keeps anybody from the lock."""
import itertools
import operator

import pytest

import rl
from common import now_ms, occupy
from helpers import Call, Pulse, only_node, spin
from queueing import (
    BEFORE_LAPSE_S,
    GENEROUS_WAIT_MS,
    LONG,
    Turns,
    home,
    places,
    places_be,
    promised_by,
    stand_before,
    warnings,
)
from rl import BUSY, LOST, OK, lapsing
from testing import eventually
from testing.wait import in_time
from waiters import PROMISES, QUEUE, in_order, members, subscribers, time_of

# ---- waiters that are late, and holders that are gone


def test_waiters_are_served_in_order_when_the_holder_dies(nodes, hold, queued):
    """The end of a lease wakes no waiter."""
    lock = hold(**lapsing(3000))
    lock.detach()
    turns, _ = queued(3)
    assert turns.end() == turns.came


@pytest.mark.parametrize("hanging", [1, 3])
def test_those_who_hang_once_the_queue_has_moved_cost_little(nodes, hold, make_client, hanging):
    """The last one asked when many were before it, and would ask again seconds later."""
    holder = hold(**LONG)
    locks = [make_client(nodes.urls, **LONG).lock() for _ in range(10)]

    def stand(count):
        for lock in locks[:count]:  # they keep their promises
            lock.client.process()
        waiting = places(nodes)
        return len(waiting) == count and all(place[-1] in b"13579" for place in waiting)

    for count, lock in enumerate(locks, 1):
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
        spin(lock.client, lambda count=count: stand(count), what="it stands in the queue and listens")
    *quick, last = locks[:-1 - hanging] + locks[-1:]
    assert holder.release() == OK
    for lock in quick:
        spin(lock.client, lambda: lock.status == OK)
        assert lock.release() == OK
    spin(last.client, lambda: last.status == OK, 1, "the places of those who hang are passed over")


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
    client = make_client(nodes.urls, **lapsing(2000))
    lock = client.lock()
    acquired = Call(lock.acquire, GENEROUS_WAIT_MS)
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
    """In the order of arrival when each has asked its two nodes; on another node if that one may not vote."""
    turns, _ = queued(4)
    eventually(lambda: all(int(place[-1:]) % 2 for place in places(nodes)), 20, "they listen: their places stay")
    before = places(nodes)
    assert held.extend() == OK  # for longer than the wait
    happens(nodes, home(nodes))
    eventually(lambda: sum(who(members(node)) == who(before) and len(members(node, PROMISES)) == 4
                           and len(subscribers([node])) == 4 for node in nodes) == 2, 25, "all wait on two nodes again")
    turns.serve(held)


def test_home_comes_back_while_others_wait(nodes, held, queued):
    turns, _ = queued(4, node_timeout_ms=500)
    old = home(nodes)
    old.stop()
    eventually(lambda: len(places(nodes)) == 4, 60, "they wait on another node")
    old.cont()
    assert held.release() == OK
    assert sorted(turns.end(60)) == [0, 1, 2, 3]


@pytest.mark.parametrize("happens", [lambda old, new: old.replica_of(new),
                                     lambda old, new: old.config_set("min-replicas-to-write", 1)],
                         ids=["READONLY", "NOREPLICAS"])
def test_a_home_that_refuses_writes_costs_nobody_its_turn(nodes, held, queued, happens):
    """Another node is home: no reason to do without the queue."""
    turns, clients = queued(4)
    old, new = in_order(nodes)[:2]
    happens(old, new)
    eventually(lambda: len(members(new)) == 4, 5, "all stand on the next node")
    turns.serve(held)
    assert not any(map(warnings, clients))


def test_a_leftover_where_writes_are_refused_makes_nobody_hurry(nodes, home_of_r, held, make_client):
    """The script of a shared lock finds the key, so it does not try to write."""
    home_of_r.config_set("min-replicas-to-write", 1)
    client = make_client(nodes.urls, **LONG)
    lock = client.lock(shared="true")
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    other = in_order(nodes)[1]
    spin(client, lambda: members(other), 20, "it stands on the next node")
    promised = promised_by(other, members(other))
    spin(client, lambda: all(map(operator.gt, promised_by(other, members(other)), promised)), 20, "it asks again")
    assert lock.attempts < 4
    assert held.release() == OK
    spin(client, lambda: lock.status == OK, 20)


def test_a_dead_waiter_where_writes_are_refused_floods_nobody(nodes, home_of_r, held, queued):
    """Its place cannot be removed, so a release passes over it."""
    turns, _ = queued(2)
    stand_before(home_of_r, 5000000, listens=True)
    home_of_r.config_set("min-replicas-to-write", 1)
    watch, heard = home_of_r.connect(timeout_s=2), []
    watch.command("SUBSCRIBE", b"libredlock:w:" + members(home_of_r)[3][:16])
    assert held.release() == OK
    with pytest.raises(TimeoutError):
        while len(heard) < 100:
            heard.append(watch.read())
    watch.close()
    assert sorted(turns.end()) == [0, 1]
    assert 0 < len(heard) < 5


def test_a_full_home_costs_nobody_its_turn(nodes, home_of_r, held, queued):
    """It stores no key of a lock, but keeps the places."""
    home_of_r.config_set("maxmemory", 1)
    turns, clients = queued(4)
    both = members(home_of_r)[:2]
    for _ in range(2):
        promised = promised_by(home_of_r, both)
        eventually(lambda: all(map(operator.gt, promised_by(home_of_r, both), promised)), 20, "both ask again")
    turns.serve(held)
    assert not any(map(warnings, clients))


@pytest.mark.parametrize("option", [{}, {"shared": "true"}], ids=["alone", "shared"])
def test_who_cannot_reach_home_wakes_who_waits_there(home_of_r, nodes, proxies, make_client, option):
    """The key stays at home. Those who wait hear of the release from the second node."""
    proxy = proxies[nodes.nodes.index(home_of_r)]
    held = make_client([proxy.url for proxy in proxies], **LONG).lock()
    client = make_client(nodes.urls, **LONG)
    assert held.acquire(GENEROUS_WAIT_MS) == OK
    waiting = Call(client.lock(**option).acquire, GENEROUS_WAIT_MS)
    second = in_order(nodes)[1]
    eventually(lambda: any(place[-1] in b"13579" for place in members(second)), 20, "it listens on the second node")
    proxy.refuse()
    proxy.drop()
    attempts = client.describe()["attempts"]
    eventually(lambda: client.describe()["attempts"] > attempts, 20, "it has just tried all nodes")
    began_ms = now_ms()
    assert held.release() == OK
    assert waiting.join() == OK
    in_time(now_ms() - began_ms < 100)


def test_who_waits_returns_to_a_home_that_takes_writes_again(home_of_r, nodes, held, make_client):
    """Its own script finds the lock taken and writes nothing, so it shows nothing."""
    home_of_r.config_set("min-replicas-to-write", 1)
    client = make_client(nodes.urls, **LONG)
    lock = client.lock()
    lock.add("s")
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes), 20, "it waits on another node")
    home_of_r.config_set("min-replicas-to-write", 0)
    spin(client, lambda: members(home_of_r), 5, "it waits at home")


def test_a_script_that_ends_at_last_is_no_reason_to_warn(make_client, fake_server):
    """Until then the server refuses a place, and SUBSCRIBE."""
    busy = b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
    fake = fake_server({"SET": b"$-1\r\n", "EVALSHA": [busy, None], "SUBSCRIBE": [busy, None]})
    client = make_client([fake.url], **LONG)
    assert client.lock().start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: fake.count("SUBSCRIBE") == 2, 20, "it asks for wake-ups again")
    assert not warnings(client)
    assert fake.count("EVALSHA") > 1, "it waits in the queue"
    assert only_node(client)["connects"] == 1


@pytest.mark.parametrize("why", ["NOAUTH Authentication required.",
                                 "NOPERM this user has no permissions to run the 'subscribe' command"])
def test_a_node_that_wakes_nobody_is_told_with_its_reason(make_client, fake_server, why):
    fake = fake_server({"SET": b"$-1\r\n", "SUBSCRIBE": b"-%s\r\n" % why.encode()})
    client, told = make_client([fake.url], **LONG), []
    assert client.lock().start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: told.extend(warnings(client)) or told, 20)
    assert told[0]["detail"] == "no wake-ups from this node, waiters poll instead: " + why


def test_a_question_that_is_lost_is_asked_again_at_once(home_of_r, nodes, held, proxies, make_client):
    """Not only when its answer is late."""
    client = make_client([proxy.url for proxy in proxies], node_timeout_ms=7500, **LONG)
    lock, proxy = client.lock(), proxies[nodes.nodes.index(home_of_r)]
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: len(subscribers(nodes)) == 2, 20, "it waits, and listens")
    proxy.silence()
    spin(client, lambda: client.describe()["nodes"][nodes.nodes.index(home_of_r)]["why"], 20, "it has asked in vain")
    assert held.release() == OK
    spin(client, lambda: lock.status == OK, 5, "it has asked again")


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


@pytest.mark.parametrize("promise_us", [12e6, 55e6, 3600e6, float("inf")])
def test_forged_promises_delay_no_waiter(nodes, held, queued, promise_us):
    """A clock that was set back, or somebody's doing."""
    turns, _ = queued(2)
    stand_before(home(nodes), promise_us)
    assert held.release() == OK
    assert sorted(turns.end(5)) == [0, 1]


def test_a_waiter_with_long_time_outs_keeps_its_place(nodes, make_client):
    """It promises to ask as soon as others do."""
    turns, longest = Turns(nodes), dict(max_ttl_ms=120000, ttl_ms=120000)
    held = make_client(nodes.urls, **longest).lock()
    assert held.acquire(GENEROUS_WAIT_MS) == OK
    for number, node_timeout_ms in enumerate((30000, 30000, 100)):
        turns.wait(number, make_client(nodes.urls, node_timeout_ms=node_timeout_ms, **longest).lock())
        places_be(nodes, number + 1)
    both = members(home(nodes))[:2]
    for _ in range(2):
        promised = promised_by(home(nodes), both)
        eventually(lambda: all(map(operator.gt, promised_by(home(nodes), both), promised)), 20, "both ask again")
    turns.serve(held)


# ---- a lock that is held, but not on the home node


def test_a_release_leaves_the_queue_of_a_node_that_did_not_grant(nodes, make_client):
    """The second of those on which it stands has a leftover of somebody else."""
    second = in_order(nodes)[1]
    occupy([second], ttl_ms=600000)
    held = make_client(nodes.urls, **LONG).lock()
    assert held.acquire(GENEROUS_WAIT_MS) == OK
    client = make_client(nodes.urls, **LONG)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: members(second), 20, "it stands there, too")
    assert held.release() == OK
    spin(client, lambda: lock.status == OK, BEFORE_LAPSE_S)
    assert lock.release() == OK
    spin(client, lambda: not places(nodes), 20, "its places are given back")


def test_a_refused_waiter_holds_up_none_of_its_client(nodes, held, make_client):
    for node in nodes:
        node.command("SET", "libredlock:f:r", "no number")
    client = make_client(nodes.urls, outage_wait_ms=-1, **LONG)
    refused, one, other = client.lock(fence="true"), client.lock(), client.lock()
    for lock in refused, one, other:
        assert lock.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(client, lambda: places(nodes), 20)
    assert held.release() == OK
    spin(client, lambda: one.status == OK, 20, "one is served")
    began_ms = now_ms()
    assert one.release() == OK
    spin(client, lambda: other.status == OK, 20, "the other is served, too")
    in_time(now_ms() - began_ms < 60)
    assert refused.status == rl.PENDING


def test_a_lost_script_lets_a_waiter_leave_the_next_time(nodes, held, make_client):
    """Redis 7.4 forgets scripts that were not used for long: here the one that gives places back."""
    lock, other = (make_client(nodes.urls, **LONG).lock() for _ in range(2))
    assert lock.acquire(300) == BUSY
    spin(lock.client, lambda: not places(nodes), 20, "it has left")
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    another = other.client.lock("s")
    for _ in range(3):  # the scripts of releases, and then the one with which one waits, are sent in full
        assert another.acquire(0) == OK and another.release() == OK
    assert other.start(rl.ACQUIRE, GENEROUS_WAIT_MS) == OK
    spin(other.client, lambda: all(members(node) for node in in_order(nodes)[:2]), 20, "the other one waits")
    for _ in range(2):
        assert lock.acquire(300) == BUSY
    spin(lock.client, lambda: len(places(nodes)) == 2, 1, "it has left the second time, before its promise ends")

"""Permits, by the keys of real nodes."""
import pytest

import rl
from helpers import Call, finish, held_everywhere, spin
from queueing import GENEROUS_WAIT_MS, places_be
from rl import BUSY, HELD, INVALID, LOST, OK, PENDING, REFUSED_CONFIG
from testing import eventually

LONG = {"ttl_ms": 30000}


def permit(client, permits=3, resource="r", **options):
    return client.lock(resource, permits=str(permits), **{**LONG, **options})


def held(lock):
    assert lock.acquire(20000) == OK, lock.message
    held_everywhere(lock)
    return lock


def key(slot):
    return "libredlock:s:%d:r" % slot if slot else "r"


def slots(node, permits=3):
    return [slot for slot in range(permits) if node.command("EXISTS", key(slot))]


def is_free_again(nodes, slot):
    """Also on the nodes for which a release does not wait."""
    eventually(lambda: not any(node.command("EXISTS", key(slot)) for node in nodes), 20, "all have released")


def nothing_is_left(nodes):
    nodes.no_keys(20)


def test_as_many_hold_as_there_are_permits(nodes, make_client):
    clients = [make_client(nodes.urls) for _ in range(4)]
    locks = [held(permit(client)) for client in clients[:3]]
    assert sorted(lock.slot for lock in locks) == [0, 1, 2]
    for lock in locks:
        assert all(node.command("GET", key(lock.slot)).decode() == lock.token for node in nodes)
    late = permit(clients[3])
    assert late.acquire() == BUSY
    assert "no permit is free" in late.message and late.slot == -1
    given_back = locks[1].slot
    assert locks[1].release() == OK
    is_free_again(nodes, given_back)
    assert held(late).slot == given_back
    for lock in (locks[0], locks[2], late):
        assert lock.release() == OK
    nothing_is_left(nodes)


def test_slot_0_is_the_plain_lock(nodes, make_client):
    client = make_client(nodes.urls)
    plain = held(client.lock("r", **LONG))
    taken = [held(permit(make_client(nodes.urls))) for _ in range(2)]
    assert sorted(lock.slot for lock in taken) == [1, 2]
    assert permit(client).acquire() == BUSY
    assert plain.release() == OK
    assert held(permit(client)).slot == 0
    assert client.lock("r").acquire() == BUSY


def test_a_slot_can_be_chosen(nodes, make_client):
    client = make_client(nodes.urls)
    lock = held(permit(client, slot="2"))
    assert lock.slot == 2 and slots(nodes[0]) == [2]
    assert permit(make_client(nodes.urls), slot="2").acquire() == BUSY
    other = permit(client, slot="1")
    assert held(other).slot == 1
    assert lock.extend(20000) == OK
    token = other.token
    assert other.detach() == OK
    adopted = permit(make_client(nodes.urls), slot="1")
    assert adopted.adopt(token) == OK and adopted.slot == 1
    assert adopted.extend() == OK and adopted.state == HELD
    assert adopted.release() == OK and lock.release() == OK
    nothing_is_left(nodes)


def test_waiters_come_in_as_permits_are_given_back(nodes, make_client):
    locks = [held(permit(make_client(nodes.urls))) for _ in range(3)]
    waiters = [permit(make_client(nodes.urls)) for _ in range(2)]
    for waiter in waiters:
        assert waiter.start(rl.ACQUIRE, 60000) == OK
        spin(waiter.client, lambda: waiter.attempts > 0 and waiter.status == PENDING)
    assert locks[0].release() == OK
    assert locks[1].release() == OK
    for waiter in waiters:
        assert finish(waiter) == OK, waiter.message
    assert {waiter.slot for waiter in waiters} == {locks[0].slot, locks[1].slot}


def test_one_that_is_pinned_to_a_leftover_lets_others_pass(nodes, home_of_r, make_client):
    """Its slot is free at home, and a majority has a key there that nobody will delete."""
    for node in [node for node in nodes if node is not home_of_r][:3]:
        node.command("SET", key(2), "left-behind", "PX", "60000")
    pinned = permit(make_client(nodes.urls), slot="2")
    waiter = Call(pinned.acquire, GENEROUS_WAIT_MS)
    places_be(nodes, 1)
    for _ in range(3):
        lock = permit(make_client(nodes.urls))
        assert lock.acquire(10000) == OK, lock.message
        assert lock.slot != 2 and lock.release() == OK
    for node in nodes:
        node.command("DEL", key(2))
    assert waiter.join(30) == OK and pinned.slot == 2


@pytest.mark.parametrize("setting", ["maxmemory", "min-replicas-to-write"])
def test_a_home_that_takes_no_writes_does_not_slow_them_down(nodes, home_of_r, make_client, setting):
    """Where it refuses all writes, it keeps the keys of both, and says that none is free without trying to write."""
    both = [held(permit(make_client(nodes.urls), 2)) for _ in range(2)]
    home_of_r.config_set(setting, 1)
    for lock in both:
        assert lock.release() == OK
    client, attempts = make_client(nodes.urls), []
    for _ in range(5):
        lock = permit(client, 2)
        assert lock.acquire(5000) == OK and lock.release() == OK, lock.message
        attempts.append(lock.attempts)
    assert attempts[1:] == [1] * 4, "once it knows"


def test_a_node_that_lost_a_slot_gets_it_back(nodes, make_client):
    client = make_client(nodes.urls)
    lock = held(permit(client, ttl_ms=8000, renew="true"))
    nodes[0].command("DEL", key(lock.slot))
    spin(client, lambda: nodes[0].command("GET", key(lock.slot)) == lock.token.encode(), 20, "it is healed")
    assert lock.release() == OK
    nothing_is_left(nodes)


@pytest.mark.parametrize("options, words", (
    ({"permits": "2", "slot": "2"}, "slot is 2; allowed for permits 2: 0 to 1"),
    ({"slot": "1"}, "slot is 1; allowed for permits 1: 0 to 0"),
    ({"permits": "2", "shared": "true"}, "permits is 2; allowed for a lock that is shared: 1"),
    ({"permits": "2", "fence": "true"}, "fence is true; allowed for permits 2: false"),
))
def test_what_does_not_fit_is_refused(nodes, make_client, options, words):
    lock = make_client(nodes.urls).lock("r", **options)
    assert lock.check() == INVALID and words in lock.message
    assert lock.acquire() == INVALID and words in lock.message
    assert slots(nodes[0]) == []


def test_several_resources_or_no_slot_to_adopt_are_refused(nodes, make_client):
    client = make_client(nodes.urls)
    lock = client.lock("r", "s", permits="2")
    assert lock.acquire() == INVALID and "several resources" in lock.message
    lock = permit(client)
    assert lock.adopt("0" * 40) == INVALID and "slot is -1" in lock.message
    assert lock.start(rl.INSPECT) == INVALID and "slot is -1" in lock.message


def test_keys_that_are_too_long_together_are_refused(nodes, make_client):
    lock = make_client(nodes.urls).lock("r" * (3 << 20), permits="256")
    assert lock.check() == INVALID
    assert "permits is 256; allowed for a resource of 3145728 bytes: 1 to 170" in lock.message
    assert lock.set("permits", "170") == OK and lock.check() == OK


@pytest.mark.parametrize("there, wanted", ((3, 2), (2, 3), (256, 2), (16, 255)))
def test_another_number_of_permits_is_refused(nodes, make_client, there, wanted):
    """As long as one of them is held, however it came by its slot; then at once no more."""
    lock = held(permit(make_client(nodes.urls), there, slot="1"))
    other = permit(make_client(nodes.urls), wanted)
    assert held(other.client.lock("s")).release() == OK
    assert other.acquire(5000) == REFUSED_CONFIG
    assert "permits is %d; others that use the resource have %d" % (wanted, there) in other.message
    assert slots(nodes[0]) == [1]
    assert lock.release() == OK
    is_free_again(nodes, 1)
    assert held(other).release() == OK
    nothing_is_left(nodes)


def test_another_number_is_refused_by_whichever_node_is_asked(nodes, make_client):
    """The home of a resource may be down, or another one for others."""
    lock = held(permit(make_client(nodes.urls), 3, slot="0"))
    for order in (nodes.urls[2:] + nodes.urls[:2], list(reversed(nodes.urls))):
        other = permit(make_client(order), 2)
        assert held(other.client.lock("s")).release() == OK
        assert other.acquire(5000) == REFUSED_CONFIG, other.message
    assert lock.extend() == OK and lock.release() == OK
    nothing_is_left(nodes)


def test_tokens_that_end_like_those_of_permits_are_no_permits(nodes, make_client):
    """Another library's lock, of whatever text, is a slot that is taken."""
    for node in nodes:
        node.command("SET", key(0), "x" * 37 + "p05")
        node.command("SET", key(1), "a" * 36 + "p05")
    assert held(permit(make_client(nodes.urls))).slot == 2


@pytest.mark.parametrize("write", (("RPUSH", "x"), ("SADD", "x"), ("HSET", "x", "1"), ("ZADD", "5", "x"),
                                   ("XADD", "1-1", "a", "b"), ("SET", "x")))
def test_keys_of_others_are_taken_slots_and_are_left_alone(nodes, make_client, write):
    command, *rest = write
    for node in nodes:
        for slot in range(3):
            node.command(command, key(slot), *rest)
    before = [node.command("DUMP", key(slot)) for node in nodes for slot in range(3)]
    lock = permit(make_client(nodes.urls))
    assert lock.acquire() == BUSY and "no permit is free" in lock.message
    assert [node.command("DUMP", key(slot)) for node in nodes for slot in range(3)] == before
    for node in nodes:
        node.command("DEL", key(1))
    assert held(lock).slot == 1


def test_a_removal_takes_all_slots(nodes, make_client):
    locks = [held(permit(make_client(nodes.urls))) for _ in range(2)]
    remover = permit(make_client(nodes.urls))
    assert remover.start(rl.REMOVE) == OK
    assert finish(remover) == OK
    nothing_is_left(nodes)
    assert [lock.extend() for lock in locks] == [LOST] * 2

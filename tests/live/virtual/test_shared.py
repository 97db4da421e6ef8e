"""Locks that are held together, and locks of several resources, by the keys of real nodes."""
import mmap

import pytest

import rl
from helpers import finish, held_everywhere, spin
from queueing import places, places_be
from rl import ADOPTED, BUSY, HELD, INVALID, LOST, OK, PENDING, Verdict
from testing import eventually
from testing.wait import in_time

LONG = {"ttl_ms": 30000}
OTHERS = (("RPUSH", "k", "x"), ("SADD", "k", "x"), ("HSET", "k", "x", "1"), ("ZADD", "k", "5", "x"),
          ("ZADD", "k", "5", "0123456789abcdef0123456789abcdef01234567"), ("XADD", "k", "1-1", "a", "b"),
          ("SETBIT", "k", "7", "1"), ("SET", "k", "x"))


def reader(client, resource="r", **options):
    return client.lock(resource, shared="true", **{**LONG, **options})


def held(lock):
    assert lock.acquire(20000) == OK, lock.message
    held_everywhere(lock)
    return lock


def types(nodes, key="r"):
    return [node.command("TYPE", key).decode() for node in nodes]


def members(node, key="r"):
    return sorted(node.command("ZRANGE", key, 0, -1))


def inspected(client, resource="r"):
    lock = client.lock(resource)
    assert lock.start(rl.INSPECT) == OK
    finish(lock)
    return lock


# ---- shared

def test_readers_hold_together_and_a_writer_alone(nodes, make_client):
    one, two = held(reader(make_client(nodes.urls))), held(reader(make_client(nodes.urls)))
    assert types(nodes) == ["zset"] * 5
    assert members(nodes[0]) == sorted(b"rl:" + lock.token.encode() for lock in (one, two))
    writer = make_client(nodes.urls).lock("r", **LONG)
    assert writer.acquire() == BUSY
    assert one.release() == OK
    assert writer.acquire() == BUSY
    assert two.release() == OK
    eventually(lambda: types(nodes) == ["none"] * 5, 20, "no key is left")
    held(writer)
    assert reader(one.client).acquire() == BUSY
    assert types(nodes) == ["string"] * 5


def test_the_key_ends_with_the_longest_lease(nodes, make_client):
    client = make_client(nodes.urls)
    long, short = held(reader(client)), held(reader(client, ttl_ms=10000))
    assert all(20000 < node.command("PTTL", "r") <= 30000 for node in nodes)
    assert long.release() == OK
    eventually(lambda: all(len(members(node)) == 1 for node in nodes), 20, "one is left")
    assert all(0 < node.command("PTTL", "r") <= 10000 for node in nodes)
    assert short.release() == OK


def test_a_reader_is_extended_and_shortened_for_itself(nodes, make_client):
    client = make_client(nodes.urls)
    one, two = held(reader(client)), held(reader(client))
    assert one.expire(10000) == OK
    assert one.validity_ms <= 10000
    held_everywhere(one)
    assert all(node.command("PTTL", "r") > 20000 for node in nodes)
    assert two.expire(15000) == OK
    held_everywhere(two)
    assert all(10000 < node.command("PTTL", "r") <= 15000 for node in nodes)
    assert one.extend(20000) == OK
    held_everywhere(one)
    assert all(15000 < node.command("PTTL", "r") <= 20000 for node in nodes)


def test_a_reader_is_renewed_and_lapses_without(nodes, make_client):
    client = make_client(nodes.urls)
    renewed = reader(client, renew="true", **rl.lapsing(400))
    assert renewed.acquire() == OK
    lapsing = reader(client, **rl.lapsing(400))
    assert lapsing.acquire() == OK
    eventually(lambda: lapsing.state == rl.State.LOST, 20, "the lease is over")
    assert renewed.state == HELD
    assert renewed.release() == OK


def test_a_renewal_heals_a_node(nodes, make_client):
    lock = reader(make_client(nodes.urls), renew="true", node_timeout_ms=500, ttl_ms=2000)
    held(lock)
    nodes[1].command("DEL", "r")
    eventually(lambda: members(nodes[1]) == [b"rl:" + lock.token.encode()], 20, "it is there again")
    assert lock.release() == OK


def test_a_set_that_is_gone_is_a_loss(nodes, make_client):
    lock = held(reader(make_client(nodes.urls)))
    for node in nodes[:3]:
        node.command("DEL", "r")
    assert lock.extend() == LOST
    assert lock.loss == rl.Loss.GONE


@pytest.mark.parametrize("make", OTHERS, ids=lambda make: " ".join(make[:1] + make[2:])[:20])
@pytest.mark.parametrize("several", [False, True], ids=["shared", "several"])
def test_a_key_of_another_kind_is_busy_and_stays(nodes, make_client, make, several):
    for node in nodes:
        node.command(*make)
    before = [node.command("DUMP", "k") for node in nodes]
    client = make_client(nodes.urls)
    lock = client.lock("a", "k", **LONG) if several else reader(client, "k")
    assert lock.acquire() == BUSY, lock.message
    assert [node.command("DUMP", "k") for node in nodes] == before
    assert all(node.command("PTTL", "k") == -1 for node in nodes)
    assert "without a TTL" in lock.message
    assert types(nodes, "a") == ["none"] * 5
    lock.free()
    assert [node.command("DUMP", "k") for node in nodes] == before


def test_holders_of_a_shared_lock_are_counted(nodes, make_client):
    client = make_client(nodes.urls, holder_info="true")
    locks = [held(reader(client)) for _ in range(3)]
    look = inspected(make_client(nodes.urls, holder_info="true"))
    assert look.verdict == Verdict.SHARED
    assert look.holder in [lock.token for lock in locks]
    assert look.held_by["readers"] == 3
    assert look.held_by["client_name"] == "libredlock"
    assert 0 < look.holder_ttl_ms <= 30000
    assert "3 readers" in look.message
    writer = make_client(nodes.urls, holder_info="true").lock("r", **LONG)
    assert writer.acquire(2000) == BUSY and writer.who() == BUSY
    assert writer.message.startswith("held by 3 readers: 0 of 5 nodes granted"), writer.message
    assert writer.held_by["readers"] == 3
    assert writer.start(rl.ACQUIRE, 60000) == OK
    for lock in locks:
        assert lock.release() == OK
    assert finish(writer) == OK


def test_a_fence_is_refused_where_it_was_asked_for(nodes, make_client):
    client = make_client(nodes.urls, fence="true")
    lock = reader(client)
    assert (lock.check(), held(lock).fence) == (OK, 0)
    for lock in reader(client, "x", fence="true"), client.lock("y", "z", fence="true", **LONG):
        assert lock.check() == INVALID
        assert "fence is true" in lock.message
        assert lock.acquire() == INVALID
        assert "fence is true" in lock.message


def test_a_token_is_handed_over(nodes, make_client):
    one = held(reader(make_client(nodes.urls)))
    other = held(reader(make_client(nodes.urls)))
    assert one.settle() == OK
    assert one.detach() == OK
    heir = reader(make_client(nodes.urls))
    assert heir.adopt(one.token) == OK
    assert heir.extend() == OK
    assert heir.release() == OK
    eventually(lambda: all(members(node) == [b"rl:" + other.token.encode()] for node in nodes), 20, "one is left")


def test_a_reader_adopted_as_a_writer_is_released_as_a_reader(nodes, make_client):
    one = held(reader(make_client(nodes.urls)))
    assert one.settle() == OK
    assert one.detach() == OK
    heir = make_client(nodes.urls).lock("r", **LONG)
    assert heir.adopt(one.token) == OK
    assert heir.set("shared", "true") == OK
    assert heir.release() == OK
    eventually(lambda: types(nodes) == ["none"] * 5, 20, "no key is left")


def test_adopted_token_unfit_for_a_reader_is_refused(nodes, make_client):
    client = make_client(nodes.urls)
    lock = reader(client)
    assert lock.adopt("not-hex") == INVALID
    assert "shared is true" in lock.message
    lock = client.lock("r", **LONG)
    for node in nodes:
        node.set("r", "not-hex", px=30000)
    assert lock.adopt("not-hex") == OK
    assert lock.set("shared", "true") == OK
    assert lock.extend() == INVALID
    assert (lock.state, types(nodes)) == (ADOPTED, ["string"] * 5)


# ---- from a writer to a reader

def test_a_writer_goes_on_as_a_reader(nodes, make_client):
    lock = held(make_client(nodes.urls).lock("r", **LONG))
    other = reader(make_client(nodes.urls))
    assert other.acquire() == BUSY
    assert lock.set("shared", "true") == OK
    assert lock.extend(10000) == OK
    held_everywhere(lock)
    assert types(nodes) == ["zset"] * 5
    assert all(node.command("PTTL", "r") > 20000 for node in nodes)  # it forgets nothing of what it had
    held(other)
    assert (lock.release(), other.release()) == (OK, OK)
    eventually(lambda: types(nodes) == ["none"] * 5, 20, "no key is left")


def test_a_writer_with_a_number_keeps_it_as_a_reader(nodes, make_client):
    lock = held(make_client(nodes.urls).lock("r", fence="true", **LONG))
    number = lock.fence
    assert lock.set("shared", "true") == OK
    assert lock.extend() == OK
    assert lock.fence == number > 0
    assert lock.release() == OK


def test_a_reader_does_not_become_a_writer(nodes, make_client):
    lock = held(reader(make_client(nodes.urls)))
    assert lock.set("shared", "false") == OK
    assert lock.extend() == INVALID
    assert "shared is false" in lock.message
    assert (lock.state, lock.release()) == (HELD, OK)
    held(lock)
    assert types(nodes) == ["string"] * 5


def test_a_downgrade_lets_waiting_readers_in(nodes, make_client):
    lock = held(make_client(nodes.urls).lock("r", **LONG))
    other = reader(make_client(nodes.urls))
    assert other.start(rl.ACQUIRE, 60000) == OK
    spin(other.client, lambda: len(places(nodes)) == 1, 20, "it waits")
    assert lock.set("shared", "true") == OK
    assert lock.extend() == OK
    assert finish(other) == OK
    assert (lock.release(), other.release()) == (OK, OK)


# ---- waiting

def test_readers_enter_together_and_a_writer_after_them(nodes, make_client):
    clients = [make_client(nodes.urls) for _ in range(5)]
    first = held(clients[0].lock("r", **LONG))
    waiters = []

    def until(is_so, what):
        """Nobody is late for a turn meanwhile."""
        spin(clients[0], lambda: [client.process() for client in clients] and is_so(), 30, what)

    def ends(lock):
        until(lambda: lock.status != PENDING, "it ends")
        return lock.status

    for number, client in enumerate(clients[1:]):
        lock = client.lock("r", shared="false" if number == 2 else "true", **LONG)
        assert lock.start(rl.ACQUIRE, 120000) == OK
        until(lambda: len(places(nodes)) == number + 1, "it waits")
        waiters.append(lock)
    assert first.release() == OK
    one, two, writer, late = waiters
    assert (ends(one), ends(two)) == (OK, OK)
    in_time((writer.status, late.status) == (PENDING, PENDING), "the writer keeps its promise")
    assert (one.release(), two.release()) == (OK, OK)
    assert ends(writer) == OK
    in_time(late.status == PENDING, "the writer comes before the reader behind it")
    assert writer.release() == OK
    assert ends(late) == OK
    assert late.release() == OK
    places_be(nodes, 0)


# ---- several resources

def test_all_resources_are_held_or_none(nodes, make_client):
    client = make_client(nodes.urls)
    one = held(client.lock("a", "b", "c", **LONG))
    assert [types(nodes, key) for key in "abc"] == [["string"] * 5] * 3
    two = client.lock("d", "c", **LONG)
    assert two.acquire() == BUSY
    assert '"c" is busy' in two.message
    assert "and 1 more" in two.message
    assert types(nodes, "d") == ["none"] * 5
    assert client.lock("b", **LONG).acquire() == BUSY
    assert reader(client, "b").acquire() == BUSY
    assert one.extend(60000) == INVALID
    assert one.extend(30000) == OK
    assert one.release() == OK
    eventually(lambda: [types(nodes, key) for key in "abc"] == [["none"] * 5] * 3, 20, "no key is left")
    held(two)


def test_a_set_without_one_of_its_keys_is_lost(nodes, make_client):
    lock = held(make_client(nodes.urls).lock("a", "b", **LONG))
    for node in nodes[:3]:
        node.command("DEL", "b")
    assert lock.extend() == LOST
    assert lock.loss == rl.Loss.GONE


def test_a_set_is_renewed_and_healed(nodes, make_client):
    lock = held(make_client(nodes.urls).lock("a", "b", renew="true"))
    nodes[2].command("DEL", "b")
    eventually(lambda: types(nodes, "b") == ["string"] * 5, 20, "it is there again")
    assert lock.release() == OK
    eventually(lambda: types(nodes, "a") == types(nodes, "b") == ["none"] * 5, 20, "no key is left")


def test_sets_are_shared(nodes, make_client):
    client = make_client(nodes.urls)
    one, two = (client.lock("a", "b", shared="true", **LONG), client.lock("b", "c", shared="true", **LONG))
    held(one)
    held(two)
    assert client.lock("c", "d", **LONG).acquire() == BUSY
    assert len(members(nodes[0], "b")) == 2


def test_a_set_waits_for_one_of_its_keys(nodes, make_client):
    holder = held(make_client(nodes.urls).lock("b", **LONG))
    lock = make_client(nodes.urls).lock("a", "b", **LONG)
    assert lock.start(rl.ACQUIRE, 60000) == OK
    spin(lock.client, lambda: lock.attempts >= 1 and "is busy" in lock.message, 20, "it was refused")
    assert holder.release() == OK
    assert finish(lock) == OK


def test_what_cannot_be_added_is_refused(nodes, make_client):
    lock = make_client(nodes.urls).lock("a", **LONG)
    for resource, words in ((b"", "0 bytes"), (b"a", "each once"), (b"libredlock:x", "reserved")):
        assert lock.add(resource) == INVALID
        assert words in lock.message, lock.message
    assert rl.lib.redlock_lock_add(rl.ffi.NULL, b"x", 1) == INVALID
    assert rl.lib.redlock_lock_add(lock.handle, rl.ffi.NULL, 3) == INVALID
    with mmap.mmap(-1, 512 << 20) as large:  # as large as one may be by itself
        assert rl.lib.redlock_lock_add(lock.handle, rl.ffi.from_buffer(large), len(large)) == INVALID
    assert "resources have 536870" in lock.message and "together" in lock.message, lock.message
    for number in range(99):
        assert lock.add("more:%d" % number) == OK
    assert lock.add("one too many") == INVALID
    assert "101 resources" in lock.message
    held(lock)
    assert lock.add("b") == INVALID
    assert "holds a lock" in lock.message
    assert lock.release() == OK


def test_a_set_is_not_looked_at_as_a_whole(nodes, make_client):
    lock = make_client(nodes.urls).lock("a", "b", **LONG)
    assert lock.start(rl.INSPECT) == INVALID
    assert "each of them" in lock.message
    held(lock)
    assert make_client(nodes.urls).lock("a", "b").remove() == OK
    assert types(nodes, "a") == types(nodes, "b") == ["none"] * 5
    assert lock.extend() == LOST
    assert lock.release() == LOST


# ---- servers

def test_scripts_that_were_flushed_are_sent_again(nodes, make_client):
    lock = held(reader(make_client(nodes.urls)))
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    assert lock.extend() == OK
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    assert lock.release() == OK
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    held(lock)


def test_a_full_server_keeps_what_it_has(nodes, make_client):
    shared, writer = held(reader(make_client(nodes.urls))), held(make_client(nodes.urls).lock("w", "v", **LONG))
    for node in nodes:
        node.command("CONFIG", "SET", "maxmemory", "1")
    try:
        assert reader(shared.client, "new").acquire() == rl.NO_QUORUM
        assert shared.expire(10000) == OK and shared.validity_ms < 10000
        assert shared.extend(20000) == OK and shared.validity_ms > 15000
        assert writer.extend() == OK
        assert writer.set("shared", "true") == OK
        assert writer.start(rl.EXTEND) == OK
        spin(writer.client, lambda: "OOM" in writer.message, 20, "it is refused")
        writer.cancel()
        assert types(nodes, "w") == types(nodes, "v") == ["string"] * 5
        assert (shared.release(), writer.release()) == (OK, OK)
    finally:
        for node in nodes:
            node.command("CONFIG", "SET", "maxmemory", "0")
    eventually(lambda: types(nodes) == types(nodes, "w") == ["none"] * 5, 20, "no key is left")


def test_a_short_lease_outlasts_the_question_who_waits(make_cluster, make_client):
    """A node that is being connected to may have the queue."""
    nodes = make_cluster(3)
    nodes[2].stop()
    client = make_client(nodes.urls, settle=False, node_timeout_ms=50)
    lock = client.lock("r", shared="true", ttl_ms="200")
    assert lock.acquire(5000) == OK
    in_time(lock.attempts == 1)

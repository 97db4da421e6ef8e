"""Locks whose key is a hash, as home-made re-entrant locks have it, by the keys of real nodes."""
import pytest

import rl
from common import HASH_LOCK, HASH_UNLOCK
from helpers import finish, held_everywhere, spin
from queueing import places
from rl import BUSY, HELD, INVALID, LOST, OK, PENDING, Verdict
from testing import eventually

LONG = {"ttl_ms": 30000}


def hashed(client, *resources, **options):
    return client.lock(*(resources or ("r",)), layout="hash", **{**LONG, **options})


def held(lock):
    assert lock.acquire(20000) == OK, lock.message
    held_everywhere(lock)
    return lock


def fields(node, key="r"):
    pairs = node.command("HGETALL", key)
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def types(nodes, key="r"):
    return [node.command("TYPE", key).decode() for node in nodes]


def theirs(node, owner="them", seconds=60):
    """What a home-made lock does: None, or for how much longer another has it."""
    return node.command("EVAL", HASH_LOCK, 1, "r", owner, seconds)


def test_the_key_is_a_hash_of_the_token(nodes, make_client):
    lock = held(hashed(make_client(nodes.urls)))
    assert [fields(node) for node in nodes] == [{lock.token.encode(): b"1"}] * 5
    assert all(20000 < node.command("PTTL", "r") <= 30000 for node in nodes)
    assert lock.expire(10000) == OK
    held_everywhere(lock)
    assert all(0 < node.command("PTTL", "r") <= 10000 for node in nodes)
    assert lock.extend(20000) == OK
    held_everywhere(lock)
    assert lock.extend(12000) == OK
    held_everywhere(lock)
    assert all(12000 < node.command("PTTL", "r") <= 20000 for node in nodes)
    token = lock.token
    assert lock.release() == OK
    eventually(lambda: types(nodes) == ["none"] * 5, 20, "no key is left")
    assert held(lock).token != token


def test_a_home_made_lock_waits_for_it_and_is_waited_for(nodes, make_client):
    lock = held(hashed(make_client(nodes.urls)))
    assert all(0 < theirs(node) <= 30000 for node in nodes)
    assert [node.command("EVAL", HASH_UNLOCK, 1, "r", "them", 60) for node in nodes] == [0] * 5
    assert lock.extend() == OK and lock.release() == OK
    eventually(lambda: types(nodes) == ["none"] * 5, 20, "no key is left")
    assert [theirs(node) for node in nodes] == [None] * 5
    assert [theirs(node) for node in nodes] == [None] * 5
    assert lock.acquire() == BUSY
    assert lock.start(rl.ACQUIRE, 60000) == OK
    spin(lock.client, lambda: len(places(nodes)) == 1, 20, "it waits")
    assert [fields(node) for node in nodes] == [{b"them": b"2"}] * 5
    for node in nodes:
        assert [node.command("EVAL", HASH_UNLOCK, 1, "r", "them", 60) for _ in range(2)] == [1, 1]
    assert finish(lock) == OK, lock.message


def test_a_plain_lock_and_a_hash_exclude_each_other(nodes, make_client):
    client = make_client(nodes.urls, holder_info="true")
    for first, second in (({}, {"layout": "hash"}), ({"layout": "hash"}, {}),
                          ({"layout": "hash"}, {"shared": "true"}), ({"shared": "true"}, {"layout": "hash"}),
                          ({"layout": "hash"}, {"fence": "true"})):
        one, two = client.lock("r", **LONG, **first), client.lock("r", **LONG, **second)
        held(one)
        before = [node.command("DUMP", "r") for node in nodes]
        assert two.acquire() == BUSY, two.message
        assert [node.command("DUMP", "r") for node in nodes] == before
        assert two.start(rl.ACQUIRE, 60000) == OK
        spin(client, lambda: two.attempts > 0 and two.status == PENDING, 20, "it waits")
        assert one.release() == OK
        assert finish(two) == OK
        assert two.release() == OK
        eventually(lambda: types(nodes) == ["none"] * 5, 20, "no key is left")


@pytest.mark.parametrize("make", (("SET", "k", "x"), ("RPUSH", "k", "x"), ("SADD", "k", "x"), ("ZADD", "k", "5", "x"),
                                  ("HSET", "k", "owner", "2"), ("HSET", "k", "a", "1", "b", "1"),
                                  ("XADD", "k", "1-1", "a", "b")), ids=lambda make: " ".join(make[:1] + make[2:]))
def test_a_key_of_others_is_busy_and_stays(nodes, make_client, make):
    for node in nodes:
        node.command(*make)
    before = [node.command("DUMP", "k") for node in nodes]
    for names in ("k",), ("a", "k"):
        lock = hashed(make_client(nodes.urls), *names)
        assert lock.acquire() == BUSY
        assert "without a TTL" in lock.message
        lock.free()
    assert [node.command("DUMP", "k") for node in nodes] == before
    assert all(node.command("PTTL", "k") == -1 for node in nodes)
    assert types(nodes, "a") == ["none"] * 5


def test_several_resources_are_hashes_together(nodes, make_client):
    client = make_client(nodes.urls)
    lock = held(hashed(client, "a", "b"))
    assert [types(nodes, key) for key in "ab"] == [["hash"] * 5] * 2
    assert hashed(client, "b").acquire() == BUSY
    for node in nodes[:3]:
        node.command("DEL", "b")
    assert lock.extend() == LOST
    assert lock.loss == rl.Loss.GONE
    assert lock.release() == LOST
    eventually(lambda: types(nodes, "a") == types(nodes, "b") == ["none"] * 5, 20, "no key is left")


def test_a_field_of_another_stays_when_it_is_released(nodes, make_client):
    lock = held(hashed(make_client(nodes.urls)))
    nodes[0].command("HSET", "r", "other", "1")
    assert lock.release() == OK
    eventually(lambda: types(nodes) == ["hash"] + ["none"] * 4, 20, "its own field is gone")
    assert fields(nodes[0]) == {b"other": b"1"} and nodes[0].command("PTTL", "r") > 0


def test_it_is_renewed_and_healed(nodes, make_client):
    lock = held(hashed(make_client(nodes.urls), renew="true", ttl_ms=8000))
    nodes[2].command("DEL", "r")
    eventually(lambda: fields(nodes[2]) == {lock.token.encode(): b"1"}, 20, "it is there again")
    assert (lock.state, lock.release()) == (HELD, OK)
    eventually(lambda: types(nodes) == ["none"] * 5, 20, "no key is left")


def test_it_is_handed_over_and_removed(nodes, make_client):
    lock = held(hashed(make_client(nodes.urls)))
    assert lock.settle() == OK and lock.detach() == OK
    plain = make_client(nodes.urls).lock("r", **LONG)
    assert plain.adopt(lock.token) == OK
    assert plain.extend() == BUSY and plain.detach() == OK
    heir = hashed(make_client(nodes.urls))
    assert heir.adopt(lock.token) == OK
    assert heir.extend() == OK and heir.release() == OK
    eventually(lambda: types(nodes) == ["none"] * 5, 20, "no key is left")
    held(lock)
    assert plain.remove() == OK
    assert lock.extend() == LOST


def test_who_holds_it_is_shown(nodes, make_client):
    client = make_client(nodes.urls, holder_info="true")
    lock = held(hashed(client))

    def look():
        probe = make_client(nodes.urls, holder_info="true").lock("r")
        assert probe.start(rl.INSPECT) == OK
        finish(probe)
        return probe

    found = look()
    assert (found.verdict, found.holder) == (Verdict.HELD, lock.token)
    assert found.held_by["client_name"] == "libredlock" and 0 < found.holder_ttl_ms <= 30000
    waiter = make_client(nodes.urls, holder_info="true").lock("r", **LONG)
    assert waiter.acquire(2000) == BUSY and waiter.who() == BUSY
    assert "held by libredlock (pid" in waiter.message
    assert lock.release() == OK
    eventually(lambda: types(nodes) == ["none"] * 5, 20, "no key is left")
    for node in nodes:
        assert theirs(node, "host\n7") is None
    found = look()
    assert (found.verdict, found.holder, found.held_by) == (Verdict.HELD, "host\\x0a7", None), found.message
    for node in nodes:
        node.command("HSET", "r", "another", "1")
    found = look()
    assert (found.verdict, found.holder) == (Verdict.HELD, "")


@pytest.mark.parametrize("options, words", (
    ({"shared": "true"}, "shared is true; allowed for a lock whose layout is hash: false"),
    ({"permits": "2"}, "permits is 2; allowed for a lock whose layout is hash: 1"),
    ({"fence": "true"}, "fence is true; allowed for a lock whose layout is hash: false"),
))
def test_what_does_not_fit_is_refused(nodes, make_client, options, words):
    lock = hashed(make_client(nodes.urls), **options)
    assert lock.check() == INVALID and words in lock.message
    assert lock.acquire() == INVALID and words in lock.message
    assert types(nodes) == ["none"] * 5


def test_a_holder_does_not_go_on_as_a_reader(nodes, make_client):
    lock = held(hashed(make_client(nodes.urls)))
    assert lock.set("shared", "true") == OK
    for layout in "hash", "string":
        assert lock.set("layout", layout) == OK
        assert lock.extend() == INVALID
        assert "shared is true; allowed for a lock whose layout is hash: false; release it first" in lock.message
        assert types(nodes) == ["hash"] * 5
    assert (lock.state, lock.release()) == (HELD, OK)
    held(lock)
    assert types(nodes) == ["zset"] * 5


def test_a_full_server_still_extends_and_releases_it(nodes, make_client):
    lock = held(hashed(make_client(nodes.urls)))
    for node in nodes:
        node.config_set("maxmemory", 1000000)
    other = hashed(make_client(nodes.urls), "s", outage_wait_ms=0)
    assert other.acquire() != OK
    assert lock.extend() == OK and lock.release() == OK
    eventually(lambda: types(nodes) == ["none"] * 5, 20, "no key is left")

"""Locks that are shared, of several resources or hashes, and permits: what keeps them out, and what is refused."""
import pytest

from common import HASH_LOCK, HASH_UNLOCK
from driver import refusal
from steps import BEFORE_LAPSE_S, acquire_everywhere, error_name, option_name
from testing import eventually

TTL_MS = 25000
OTHERS = (("RPUSH", "x"), ("SADD", "x"), ("HSET", "owner", "1"), ("ZADD", "5", "x"), ("ZADD", "5", "__write__"),
          ("XADD", "1-1", "a", "b"), ("SET", "x"))  # a home-made lock's hash and the set of symfony/lock among them
LOCKS = {"shared": ([], {"shared": True}), "several": (["a"], {}), "several shared": (["a"], {"shared": True}),
         "hash": ([], {"layout": "hash"}), "several hashes": (["a"], {"layout": "hash"})}


# ---- keys of others

@pytest.mark.parametrize("lock", LOCKS)
def test_keys_of_other_kinds_are_busy_and_stay(make, nodes, lock):
    """Under the name or the last of the names; nothing is written, beside it neither."""
    before, options = LOCKS[lock]
    names = ["other:" + " ".join(value) for value in OTHERS]
    for node in nodes:
        for name, (command, *value) in zip(names, OTHERS, strict=True):
            node.command(command, name, *value)
    party = make()

    def there():
        return [(node.command("DUMP", name), node.command("PTTL", name)) for node in nodes for name in names]

    seen = there()
    for name in names:
        tried = party.lock([*before, name], **options).acquire(wait_ms=0)
        assert tried == "BUSY", (name, tried)
        assert "without a TTL" in tried.message and (not before or name in tried.message), tried.message
    assert there() == seen
    assert set(nodes.keys()) == {name.encode() for name in names}


def test_readers_with_a_stranger_among_them_are_not_joined(make, nodes):
    """Whose end is the last: it may be another program's set."""
    reader, other = (make(ttl_ms=TTL_MS).lock(shared=True) for _ in range(2))
    assert reader.acquire(wait_ms=20000) == "OK"
    for node in nodes:
        node.command("ZADD", "r", 9 * 10 ** 12, "stranger")
    before = [node.command("DUMP", "r") for node in nodes]
    tried = other.acquire(wait_ms=0)
    assert tried == "BUSY" and "busy" in tried.message, tried
    assert [node.command("DUMP", "r") for node in nodes] == before and set(nodes.keys()) == {b"r"}
    for node in nodes:
        node.command("ZREM", "r", "stranger")
    assert other.acquire(wait_ms=20000) == "OK"


def test_a_plain_lock_of_another_library_excludes_readers(make, nodes):
    lock = make(ttl_ms=TTL_MS).lock(shared=True)
    for node in nodes:
        assert node.command("SET", "r", "theirs", "NX", "PX", 60000) == b"OK"
    assert lock.acquire() == "BUSY"
    waiting = lock.waiting()
    eventually(lambda: sum(node.calls("zadd") for node in nodes) > 0, 30, "it waits")
    assert waiting.pending and [node.get("r") for node in nodes] == [b"theirs"] * 5
    for node in nodes:
        node.command("DEL", "r")
    assert waiting.result() == "OK"


def test_readers_exclude_a_plain_lock_of_another_library(make, nodes):
    one, two = (make(ttl_ms=TTL_MS).lock(shared=True) for _ in range(2))
    assert one.acquire(wait_ms=20000) == "OK"
    assert two.acquire(wait_ms=20000) == "OK"

    def theirs():
        """On how many nodes it could have the lock; a reader may have asked three of them only."""
        granted = [node for node in nodes if node.command("SET", "r", "theirs", "NX", "PX", 60000)]
        for node in granted:
            node.command("DEL", "r")
        return len(granted)

    assert theirs() < nodes.quorum
    assert one.release() == "OK"
    assert theirs() < nodes.quorum
    assert two.release() == "OK"
    eventually(lambda: theirs() == 5, BEFORE_LAPSE_S)


def home_made(node, script, owner, seconds=60):
    return node.command("EVAL", script, 1, "r", owner, seconds)


def test_a_home_made_hash_lock_waits_for_a_hash(make, nodes):
    lock = make(ttl_ms=TTL_MS).lock(layout="hash")
    acquire_everywhere(lock, nodes, lambda node, key, token: node.command("HEXISTS", key, token))
    assert all(node.command("HGETALL", "r") == [lock.token.encode(), b"1"] for node in nodes)
    assert all(0 < home_made(node, HASH_LOCK, "them") <= TTL_MS for node in nodes)
    assert [home_made(node, HASH_UNLOCK, "them") for node in nodes] == [0] * 5
    assert lock.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)
    assert [home_made(node, HASH_LOCK, "them") for node in nodes] == [None] * 5


def test_a_hash_waits_for_a_home_made_hash_lock(make, nodes):
    lock = make(ttl_ms=TTL_MS).lock(layout="hash")
    for node in nodes:
        assert [home_made(node, HASH_LOCK, "them") for _ in range(2)] == [None, None]
    assert lock.acquire(wait_ms=0) == "BUSY"
    waiting = lock.waiting()
    eventually(lambda: sum(node.calls("zadd") for node in nodes) > 0, 30, "it waits")
    for node in nodes:
        assert node.command("HGETALL", "r") == [b"them", b"2"]
        assert [home_made(node, HASH_UNLOCK, "them") for _ in range(2)] == [1, 1]
    assert waiting.result() == "OK"
    assert lock.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("extend", "adopt", "detach")
def test_a_hash_is_extended_and_handed_over(make, nodes):
    lock = make(ttl_ms=TTL_MS).lock(layout="hash")
    assert lock.acquire(wait_ms=20000) == "OK"
    assert lock.extend() == "OK"
    token = lock.detach().token
    other = make().adopt("r", token, layout="hash")
    eventually(lambda: other.extend(TTL_MS) == "OK", 20)
    assert other.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


# ---- what is refused

def refused(face, make, resource, **options):
    """The words, of a refusal that the face throws where it throws."""
    reply = refusal(make(check=False), resource=resource, **options)
    assert reply == "INVALID", reply
    assert reply.get("error") in (error_name(face, "INVALID"), None)
    return reply.message


@pytest.mark.parametrize("shared", [False, True], ids=["exclusive", "shared"])
def test_a_resource_twice_is_refused(face, make, nodes, shared):
    words = refused(face, make, ["a", "b", "a"], shared=shared)
    assert 'is "a"; allowed: each once' in words, words
    assert nodes.keys() == {}


@pytest.mark.parametrize("count", [0, 101])
def test_too_few_and_too_many_resources_are_refused(face, make, nodes, count):
    words = refused(face, make, ["r%d" % number for number in range(count)])
    assert "resource" in words.lower() and ("1 to 100" in words or count == 0), words
    assert nodes.keys() == {}


def test_a_hundred_resources_are_held_at_once(make, nodes):
    lock = make(ttl_ms=TTL_MS).lock(["r%d" % number for number in range(100)])
    assert lock.acquire(wait_ms=20000) == "OK"
    assert lock.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_fencing_number_is_refused(face, make, nodes, lock):
    """For the lock itself; a client that has them for all of its locks gives these none."""
    resources, options = LOCKS[lock]
    words = refused(face, make, [*resources, "b"], fence=True, **options)
    assert option_name(face, "fence").lstrip("-") in words, words
    assert nodes.keys() == {}


@pytest.mark.parametrize("option, value", [("shared", True), ("permits", 2)])
def test_a_hash_that_is_something_else_is_refused(face, make, nodes, option, value):
    words = refused(face, make, "r", layout="hash", **{option: value})
    assert option in words and "layout is hash" in words.replace("--", ""), words
    assert nodes.keys() == {}


def test_another_layout_is_refused(face, make, nodes):
    words = refused(face, make, "r", layout="list")
    assert "string or hash" in words, words
    assert nodes.keys() == {}


# ---- permits

def test_as_many_hold_as_there_are_permits(make, nodes):
    locks = [make(ttl_ms=TTL_MS).lock(permits=3) for _ in range(4)]
    for lock in locks[:3]:
        assert lock.acquire(wait_ms=20000) == "OK"
    assert sorted(lock.slot for lock in locks[:3]) == [0, 1, 2]
    assert locks[3].acquire(wait_ms=0) == "BUSY"
    given_back = locks[1].slot
    assert locks[1].release() == "OK"
    assert locks[3].acquire(wait_ms=20000) == "OK"
    assert locks[3].slot == given_back
    for lock in (locks[0], locks[2], locks[3]):
        assert lock.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


def test_the_only_permit_has_slot_0(make, nodes):
    """It is a plain lock for all others."""
    lock = make(ttl_ms=TTL_MS).lock(permits=1)
    assert lock.acquire(wait_ms=20000) == "OK" and lock.slot == 0
    assert {node.get("r") for node in nodes} <= {lock.token.encode(), None}
    assert make().lock().acquire(wait_ms=0) == "BUSY"
    assert lock.release() == "OK"


@pytest.mark.parametrize("value", OTHERS, ids=" ".join)
def test_keys_of_other_kinds_are_permits_that_are_taken(make, nodes, value):
    """Under the name, and under that of the second slot."""
    command, *rest = value
    names = ["r", "libredlock:s:1:r"]
    for node in nodes:
        for name in names:
            node.command(command, name, *rest)

    def there():
        return [(node.command("DUMP", name), node.command("PTTL", name)) for node in nodes for name in names]

    seen, party = there(), make(ttl_ms=TTL_MS)
    for options in ({}, {"slot": 0}, {"slot": 1}):
        tried = party.lock(permits=2, **options).acquire(wait_ms=0)
        assert tried == "BUSY" and "busy" in tried.message, tried
    assert there() == seen and set(nodes.keys()) == {name.encode() for name in names}
    for node in nodes:
        node.command("DEL", names[1])
    lock = party.lock(permits=2)
    assert lock.acquire(wait_ms=20000) == "OK" and lock.slot == 1


@pytest.mark.needs("extend", "adopt", "detach")
def test_a_slot_that_was_chosen_is_extended_and_handed_over(make, nodes):
    lock = make(ttl_ms=TTL_MS).lock(permits=3, slot=2)
    assert lock.acquire(wait_ms=20000) == "OK"
    assert lock.slot == 2 and lock.extend() == "OK"
    assert make().lock(permits=3, slot=2).acquire(wait_ms=0) == "BUSY"
    token = lock.detach().token
    other = make().adopt("r", token, permits=3, slot=2)
    eventually(lambda: other.extend(TTL_MS) == "OK", 20)
    assert other.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


def test_a_slot_that_there_is_not_is_refused(face, make, nodes):
    words = refused(face, make, "r", permits=2, slot=2)
    assert "slot is 2; allowed for" in words and "0 to 1" in words, words
    assert nodes.keys() == {}


@pytest.mark.parametrize("held, wanted", [(3, 2), (2, 3)])
def test_another_number_of_permits_is_refused(make, nodes, held, wanted):
    lock = make(ttl_ms=TTL_MS).lock(permits=held, slot=1)
    acquire_everywhere(lock, nodes)
    before = [(key, node.get(key)) for node in nodes for key in node.keys() if b":c:" not in key]
    refused = make(ttl_ms=TTL_MS).lock(permits=wanted).acquire(wait_ms=20000)
    assert refused == "REFUSED_CONFIG", refused
    assert "%d; others that use the resource have %d" % (wanted, held) in refused.message, refused
    assert [(key, node.get(key)) for node in nodes for key in node.keys() if b":c:" not in key] == before
    assert lock.release() == "OK"

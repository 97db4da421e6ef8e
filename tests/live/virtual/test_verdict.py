"""Who holds a resource: one verdict for all faces, by the keys of the nodes."""
import pytest

import rl
from helpers import finish
from rl import OK, Verdict


def inspect(client):
    lock = client.lock()
    assert lock.start(rl.INSPECT) == OK
    finish(lock)
    return lock


# The keys of five nodes: a letter is a token, . none, # a hash, ! a node that is down.
@pytest.mark.parametrize("keys, verdict, holder", [
    (".....", Verdict.FREE, ""),
    ("aaaaa", Verdict.HELD, "a"),
    ("aaa..", Verdict.HELD, "a"),
    ("aaabb", Verdict.HELD, "a"),
    ("bbaaa", Verdict.HELD, "a"),
    ("aa...", Verdict.FREE, ""),
    ("aabb.", Verdict.SPLIT, ""),
    ("abc..", Verdict.SPLIT, ""),
    ("aa!..", Verdict.SPLIT, ""),
    ("aaa!!", Verdict.HELD, "a"),
    ("...!!", Verdict.FREE, ""),
    ("aa.!!", Verdict.SPLIT, ""),
    ("aa!!!", Verdict.UNKNOWN, ""),
    ("!!!!!", Verdict.UNKNOWN, ""),
    ("###..", Verdict.HELD, "owner"),
    ("##a..", Verdict.SPLIT, ""),
    ("LLL..", Verdict.HELD, ""),
    ("LL#..", Verdict.SPLIT, ""),
])
def test_the_verdict_is_that_of_the_majority(nodes, make_client, keys, verdict, holder):
    for node, key in zip(nodes, keys):
        if key == "#":
            node.command("HSET", "r", "owner", "1")
        elif key == "L":
            node.command("RPUSH", "r", "x")
        elif key not in ".!":
            node.set("r", key, px=60000)
        elif key == "!":
            node.kill()
    lock = inspect(make_client(nodes.urls, outage_wait_ms=500))
    assert (lock.verdict, lock.holder) == (verdict, holder), lock.message


def test_the_holders_ttl_ends_with_its_majority(nodes, client):
    for node, px in zip(nodes, (20000, 30000, 40000, 50000, None)):
        node.set("r", "a", px=px)
    assert 35000 < inspect(client).holder_ttl_ms <= 40000  # until then three nodes have it
    for node in nodes:
        node.set("r", "a")
    assert inspect(client).holder_ttl_ms == -1
    for node in nodes:
        node.delete_keys()
    assert inspect(client).holder_ttl_ms == 0


def test_nothing_is_known_without_an_inspect(client):
    lock = client.lock()
    assert lock.verdict == Verdict.UNKNOWN and lock.holder == "" and lock.holder_ttl_ms == 0
    assert lock.acquire() == OK
    assert lock.verdict == Verdict.UNKNOWN
    assert lock.release() == OK

"""A list of locks: what is found on the nodes, who holds and who waits, and where the list ends."""
import json
import os
import time

import pytest

import rl
from helpers import finish, held_everywhere, spin
from queueing import LONG
from rl import CANCELLED, LIST, NO_QUORUM, OK, PENDING, REFUSED_CONFIG, TIMED_OUT
from testing import eventually
from testing.wait import in_time
from waiters import places

pytestmark = pytest.mark.holder_info

TOKEN = "0123456789abcdef" * 2 + "01234567"


def clock_us(node):
    seconds, us = node.command("TIME")
    return int(seconds) * 1000000 + int(us)


def listed(client, pattern="*", **options):
    lock = client.lock(pattern, **options)
    assert lock.list() == OK, lock.message
    return lock


def fill(nodes, count, name="job:", value=TOKEN):
    for node in nodes:
        node.command("EVAL", "for i=1,ARGV[1] do redis.call('SET',ARGV[2]..i,ARGV[3],'PX',60000) end", 0, count, name,
                     value)


def test_a_row_tells_holder_and_time(nodes, make_client):
    client = make_client(nodes.urls, client_name="worker-7", **LONG)
    held = client.lock("orders:42")
    assert held.acquire(5000) == OK and client.lock("invoices").acquire(5000) == OK
    [row] = listed(client, "orders:*").rows
    assert (row["resource"], row["kind"], row["verdict"], row["nodes"], row["holder"]) == \
        ("orders:42", "plain", "held", 5, held.token)
    assert (row["held_by"]["client_name"], row["held_by"]["pid"]) == ("worker-7", os.getpid())
    assert 0 < row["holder_ttl_ms"] and (row["waiting"], row["first"]) == (0, None)
    assert [row["resource"] for row in listed(client).rows] == ["invoices", "orders:42"]
    assert held.release() == OK
    assert listed(client, "orders:*").rows == []


@pytest.mark.parametrize("options, kind", [({"shared": "true"}, "shared"), ({"layout": "hash"}, "hash"),
                                           ({"permits": 3}, "permits")])
def test_a_row_names_the_kind(nodes, make_client, options, kind):
    client = make_client(nodes.urls, **LONG)
    locks = [client.lock("r", **options) for _ in range(1 if kind == "hash" else 2)]
    for lock in locks:
        assert lock.acquire(5000) == OK, lock.message
    rows = listed(client).rows
    assert {row["kind"] for row in rows} == {kind} and {row["nodes"] for row in rows} == {5}
    if kind == "permits":
        assert [(row["slot"], row["permits"], row["holder"]) for row in rows] == \
            [(lock.slot, 3, lock.token) for lock in sorted(locks, key=lambda lock: lock.slot)]
    elif kind == "shared":
        assert rows[0]["verdict"] == "shared" and rows[0]["held_by"]["readers"] == 2
    else:
        assert rows[0]["holder"] == locks[0].token


def test_a_row_tells_how_many_wait_and_who_is_first(nodes, make_client):
    held = make_client(nodes.urls, client_name="holder", **LONG).lock()
    assert held.acquire(5000) == OK
    crowds = []
    for name, count in ("first", 4), ("second", 2):
        client = make_client(nodes.urls, client_name=name, **LONG)
        locks = [client.lock() for _ in range(count)]
        for lock in locks:
            assert lock.start(rl.ACQUIRE, 60000) == OK
        spin(client, lambda locks=locks: len(places(nodes)) == len(crowds) + 1, 20)
        crowds.append((client, locks))

    def rows():
        for client, _ in crowds:
            client.process()
        return listed(held.client, "r").rows
    eventually(lambda: rows()[0]["waiting"] == 6, 20)
    [row] = rows()
    assert row["first"]["client_name"] == "first" and row["first"]["pid"] == os.getpid()
    assert 0 <= row["first"]["waited_ms"] < 60000 and row["held_by"]["client_name"] == "holder"
    assert held.release() == OK
    seen = []
    eventually(lambda: seen.append(rows()[0]["waiting"]) or seen[-1] == 5, 20)
    assert max(seen) <= 6, "the place of the holder stands until it releases, and is no waiter"
    assert rows()[0]["held_by"]["client_name"] == "first"


def test_a_name_is_looked_at_although_nobody_holds_it(nodes, client):
    [row] = listed(client, "a\\*b").rows
    assert (row["resource"], row["verdict"], row["kind"], row["nodes"]) == ("a*b", "free", "", 0)


def test_only_values_of_our_form_are_listed(nodes, client):
    for node in nodes:
        for name, value in ("text", "not a token"), ("long", TOKEN + "0"), ("upper", TOKEN.upper()), ("lock", TOKEN):
            node.command("SET", name, value)
        node.command("SET", "libredlock:own", TOKEN)
        node.command("RPUSH", "list", TOKEN)
        node.command("ZADD", "scores", 1, "not a token")
        node.command("HSET", "cart", TOKEN, 1, TOKEN[::-1], 1)
    [row] = listed(client).rows
    assert (row["resource"], row["holder_ttl_ms"], row["held_by"]) == ("lock", -1, None)


def test_names_of_any_bytes_are_listed(nodes, make_client):
    nodes.bootstrap(key_prefix="a*[b]")
    client = make_client(nodes.urls, key_prefix="a*[b]", **LONG)
    name = b"x\x00\x1b[31m\xff\n"
    assert client.lock(name).acquire(5000) == OK
    for node in nodes:
        node.command("SET", "axb", TOKEN)
    [row] = listed(client).rows
    assert row["name"].encode("utf-8", "surrogateescape") == name
    assert row["resource"] == r"x\x00\x1b[31m\xff\x0a" and row["nodes"] == 5


def test_more_names_than_one_question_has_are_listed(nodes, client):
    fill(nodes, 1500)
    rows = listed(client, "job:1*").rows
    assert len(rows) == 612 and {row["nodes"] for row in rows} == {5}


def test_a_list_is_cut_and_says_so(make_cluster, make_client):
    nodes = make_cluster(3)
    fill(nodes, 30000)
    lock = listed(make_client(nodes.urls))
    assert len(lock.rows) == 10000 and lock.has_more
    assert lock.keys_passed < 60000, "it looks for no more"


def test_a_list_passes_many_other_keys(make_cluster, make_client):
    """And tells how many so far."""
    nodes = make_cluster(3)
    fill(nodes, 50000, "session:", "not a token")
    for node in nodes:
        node.command("SET", "orders:1", TOKEN)
    client = make_client(nodes.urls)
    lock = client.lock("*")
    assert lock.start(LIST, -1) == OK
    spin(client, lambda: lock.keys_passed > 10000, 60)
    assert lock.status == PENDING and lock.rows == []
    assert finish(lock, 60) == OK
    assert [row["resource"] for row in lock.rows] == ["orders:1"] and not lock.has_more
    assert 145000 < lock.keys_passed < 170000


def test_a_list_ends_at_its_limit_or_when_it_is_cancelled(make_cluster, make_client):
    nodes = make_cluster(3)
    fill(nodes, 50000, "session:", "not a token")
    client = make_client(nodes.urls)
    lock = client.lock("*")
    begun_s = time.monotonic()
    assert lock.list(200) == TIMED_OUT and lock.has_more
    assert time.monotonic() - begun_s < 5
    assert lock.start(LIST, -1) == OK
    spin(client, lambda: lock.keys_passed > 0, 20)
    lock.cancel()
    assert lock.status == CANCELLED and lock.rows == []


def test_a_list_without_two_nodes_of_five_is_whole(nodes, make_client):
    client = make_client(nodes.urls, connect_timeout_ms=1000, **LONG)
    assert client.lock().acquire(5000) == OK
    nodes[0].kill()
    nodes[1].stop()
    lock = listed(make_client(nodes.urls, connect_timeout_ms=1000))
    assert [row["nodes"] for row in lock.rows] == [3]
    assert sorted(vote == OK for vote in lock.votes) == [False, False, True, True, True]
    nodes[2].kill()
    assert lock.list() == NO_QUORUM


@pytest.mark.parametrize("late, status", [(2, OK), (3, NO_QUORUM)])
def test_a_node_that_is_late_with_its_rows_has_not_told_all(nodes, proxies, make_client, late, status):
    """Though it has told all names."""
    fill(nodes, 1)
    for relay in proxies[:late]:
        for command in "EVAL", "EVALSHA":
            relay.at(command, "job:1", lambda relay=relay: relay.hold("down"))
    lock = make_client([relay.url for relay in proxies], connect_timeout_ms=1000).lock("*")
    begun_s = time.monotonic()
    assert lock.list() == status, lock.message
    in_time(time.monotonic() - begun_s < 5)
    assert [row["nodes"] for row in lock.rows] == [5 - late]
    assert [vote == OK for vote in lock.votes] == [False] * late + [True] * (5 - late)


def test_nodes_that_differ_are_listed_together(nodes, make_client):
    """With what each has, or most of them."""
    client = make_client(nodes.urls, client_name="worker-7", **LONG)
    held = client.lock("held")
    assert held.acquire(5000) == OK
    held_everywhere(held)
    other = TOKEN[::-1]
    for index, node in enumerate(nodes):
        node.command("SET", f"only-{index}", TOKEN, "PX", 60000)
        node.command("SET", "split", TOKEN if index % 2 else other, "PX", 60000 + index)
        node.command("SET", "shapes", TOKEN) if index < 2 else node.command("HSET", "shapes", TOKEN, 1)
    nodes[0].command("SET", "held", TOKEN)
    nodes[1].command("DEL", "held")
    rows = {row["resource"]: row for row in listed(client).rows}
    assert [(rows[f"only-{i}"]["verdict"], rows[f"only-{i}"]["nodes"]) for i in range(5)] == [("split", 1)] * 5
    assert (rows["split"]["verdict"], rows["split"]["nodes"], rows["split"]["holder"]) == ("held", 3, other)
    assert (rows["shapes"]["verdict"], rows["shapes"]["kind"], rows["shapes"]["nodes"]) == ("held", "hash", 3)
    assert (rows["held"]["verdict"], rows["held"]["nodes"], rows["held"]["holder"]) == ("held", 3, held.token)
    assert rows["held"]["held_by"]["client_name"] == "worker-7" and len(rows) == 8


FORGED = {
    "quotes and escapes": b'v1 7 ho"st \x1b[31m"}\xff, "x": "\n',
    "another form": b"v9 x",
    "nothing": b"",
    "a long one": b"v1 7 host " + b"x" * 100000,
    "no words": b"v1 ",
}


@pytest.mark.parametrize("entry", FORGED.values(), ids=FORGED.keys())
def test_a_forged_entry_harms_no_row(nodes, make_client, entry):
    """Neither that of a holder nor that of who waits; places are forged, too."""
    held = make_client(nodes.urls, **LONG).lock("job")
    assert held.acquire(5000) == OK
    held_everywhere(held)
    place = "f" * 16 + ":2"
    for node in nodes:
        now_us = clock_us(node)
        for client_number in held.token[:12], place[:12]:
            node.command("SET", "libredlock:c:" + client_number, entry)
        node.command("ZADD", "libredlock:q:job", now_us - 5000000, place, -1, "\n\x1b[2J")
        node.command("ZADD", "libredlock:p:job", now_us // 1000 * 1000 + 5000000, place, 1e300, "\n\x1b[2J")
        node.command("SET", "libredlock:q:other", "a string")
        node.command("SET", "other", TOKEN)
    rows = listed(make_client(nodes.urls)).rows
    assert [row["resource"] for row in rows] == ["job", "other"]
    assert rows[0]["holder"] == held.token and rows[0]["waiting"] == 1, rows[0]
    text = json.dumps(rows)
    assert "\\u001b" not in text and len(text) < 4000


def test_a_user_without_scan_is_refused(nodes, make_client):
    client = make_client(nodes.urls, **LONG)
    assert client.lock("orders:42").acquire(5000) == OK
    for node in nodes:
        node.command("ACL", "SETUSER", "few", "reset", "on", ">p", "~*", "&*", "+@all", "-scan")
    lock = make_client([node.url_with("few", "p") for node in nodes]).lock("*")
    assert lock.list() == REFUSED_CONFIG
    assert "scan" in lock.message.lower(), lock.message
    few = make_client([node.url_with("few", "p") for node in nodes]).lock("orders:42")
    assert few.list() == OK and few.rows[0]["verdict"] == "held", "a name needs none"

"""Options, node URLs and arguments: what is refused; messages name the thing, the value and what is allowed."""
import re

import pytest
import rl
from rl import INVALID, OK, ffi, lib
from test_values import option_table

TABLE = option_table()
NUMBERS = [row for row in TABLE if row["type"] in ("int", "float")]
NODE = "redis://127.0.0.1:1"


@pytest.fixture
def fresh():
    client = rl.Client(open=False)
    yield client
    client.free()


def bounds(row):
    low, high = re.search(r"(-?[\d.]+) to ([\d.]+)", row["range"]).groups()
    return (int(low), int(high)) if row["type"] == "int" else (float(low), float(high))


def refused(thing, name, value):
    row = next(row for row in TABLE if row["name"] == name)
    assert thing.set(name, value) == INVALID
    message = thing.message
    assert name in message and str(value) in message and row["range"] in message
    return message


@pytest.mark.parametrize("name", [row["name"] for row in NUMBERS])
def test_numbers_outside_of_the_range(fresh, name):
    low, high = bounds(next(row for row in TABLE if row["name"] == name))
    before = fresh.get(name)
    for value in (low - 1, high + 1, "", "ten", "1x", " 1", "1 ", "0x10", "nan", "inf", "99999999999999999999", "--1"):
        refused(fresh, name, value)
    assert fresh.get(name) == before
    for value in (low, high):
        assert fresh.set(name, value) == OK and float(fresh.get(name)) == value
    assert fresh.message == ""


@pytest.mark.parametrize("name", [row["name"] for row in TABLE if row["type"] == "bool"])
def test_truth(fresh, name):
    for value in ("true", "1", "YES", "on"):
        assert fresh.set(name, value) == OK and fresh.get(name) == "true"
    for value in ("false", "0", "No", "off"):
        assert fresh.set(name, value) == OK and fresh.get(name) == "false"
    for value in ("", "maybe", "2", "truex"):
        refused(fresh, name, value)


def test_texts_too_long_or_with_spaces(fresh):
    refused(fresh, "client_name", "two words")
    assert fresh.set("client_name", "n" * 64) == OK and fresh.set("client_name", "n" * 65) == INVALID
    assert fresh.set("key_prefix", "p" * 256) == OK and fresh.set("key_prefix", "p" * 257) == INVALID
    assert "key_prefix" in fresh.message and "256" in fresh.message


def test_unknown_option_names_the_nearest(fresh):
    assert fresh.set("tll_ms", 5) == INVALID
    assert "tll_ms" in fresh.message and "ttl_ms" in fresh.message
    with pytest.raises(ValueError):
        fresh.get("no_such")


def test_set_on_an_open_client(fresh):
    assert fresh.set("nodes", NODE) == OK and fresh.open() == OK
    assert fresh.set("ttl_ms", 1000) == INVALID and "ttl_ms" in fresh.message
    assert fresh.open() == INVALID and fresh.message


@pytest.mark.parametrize("name", [row["name"] for row in TABLE])
def test_scope_of_a_locks_options(client, name):
    row = next(row for row in TABLE if row["name"] == name)
    lock = client.lock()
    if row["scope"] == "both":
        assert lock.get(name) == client.get(name)
        assert lock.set(name, client.get(name)) == OK
    else:
        assert lock.set(name, "1") == INVALID and name in lock.message and "client" in lock.message


def test_a_locks_option_is_its_own(client):
    one, other = client.lock("a"), client.lock("b")
    assert one.get("client_name") == "libredlock"
    assert one.set("ttl_ms", 9000) == OK
    assert (one.get("ttl_ms"), other.get("ttl_ms"), client.get("ttl_ms")) == ("9000", "8000", "8000")
    refused(one, "retry_jitter", 2)
    assert one.acquire() == OK and one.validity_ms > 8000


# ---- options against each other --------------------------------------------------------------------------------


@pytest.mark.parametrize("options, words", [
    ({"ttl_ms": 40000, "max_ttl_ms": 30000}, ["ttl_ms", "40000", "max_ttl_ms", "30000"]),
    ({"ttl_ms": 1000, "node_timeout_ms": 251}, ["node_timeout_ms", "251", "1000", "250"]),
    ({"ttl_ms": 1000, "min_validity_ms": 990}, ["ttl_ms", "1000", "min_validity_ms", "990"]),
])
def test_options_that_contradict_each_other(fresh, options, words):
    for name, value in dict(options, nodes=NODE).items():
        assert fresh.set(name, value) == OK
    assert fresh.open() == INVALID
    for word in words:
        assert word in fresh.message


def test_ttl_of_a_lock_is_checked_at_the_call(client):
    lock = client.lock()
    assert lock.set("ttl_ms", 1000) == OK  # node_timeout_ms is 2000 here
    assert lock.acquire() == INVALID
    assert "node_timeout_ms" in lock.message and "2000" in lock.message and "1000" in lock.message
    assert client.lock(ttl_ms=86400000).acquire() == OK


def test_automatic_time_outs_follow_the_ttl(nodes, make_client):
    client = make_client(nodes.urls, node_timeout_ms="auto", min_validity_ms="auto")
    assert client.lock("long").acquire(5000) == OK
    assert client.lock("shortest", ttl_ms=20).set("node_timeout_ms", "auto") == OK
    assert client.get("node_timeout_ms") == "auto"


@pytest.mark.parametrize("wait_ms", [-3, -1000, 31536000001])
def test_wait_outside_of_the_range(client, wait_ms):
    lock = client.lock()
    assert lock.acquire(wait_ms) == INVALID
    assert "wait" in lock.message and str(wait_ms) in lock.message
    assert lock.start(rl.ACQUIRE, wait_ms) == INVALID


@pytest.mark.parametrize("ttl_ms", [-1, 19, 86400001, 7999])
def test_ttl_of_an_extension_outside_of_the_range(client, ttl_ms):
    lock = client.lock()
    assert lock.acquire() == OK
    # 7999 ms leave less than four times the node time-out of 2000
    assert lock.extend(ttl_ms) == INVALID
    assert str(ttl_ms) in lock.message
    assert lock.state == rl.HELD


def test_unknown_operation(client):
    lock = client.lock()
    for operation in (0, 7, -1):
        assert lock.start(operation) == INVALID and str(operation) in lock.message
    assert lock.start(rl.RELEASE, 7) in (INVALID, rl.NOT_HELD)


def test_resource_without_a_byte(client):
    lock = client.lock(b"")
    assert lock.state == rl.State.INVALID and lock.acquire() == INVALID and "resource" in lock.message
    assert lock.extend() == INVALID and lock.release() == INVALID and lock.start(rl.INSPECT) == INVALID
    handle = lib.redlock_lock_new(client.handle, ffi.NULL, 3)
    assert lib.redlock_lock_state(handle) == rl.State.INVALID
    lib.redlock_lock_free(handle)


def test_resource_above_the_limit(client):
    handle = lib.redlock_lock_new(client.handle, b"r", 512 * 1024 * 1024 + 1)
    assert lib.redlock_lock_state(handle) == rl.State.INVALID
    message = rl.text(lib.redlock_lock_message, handle)
    assert "512" in message or "536870912" in message
    lib.redlock_lock_free(handle)


def test_lock_of_a_client_that_is_not_open(fresh):
    lock = fresh.lock()
    assert lock.state == rl.State.INVALID and "open" in lock.message and lock.acquire() == INVALID
    assert fresh.open() == INVALID and "nodes" in fresh.message
    assert fresh.set("nodes", "") in (OK, INVALID) and fresh.open() == INVALID and "nodes" in fresh.message


@pytest.mark.parametrize("token", [b"", b"a" * 129])
def test_token_of_a_size_that_is_not_allowed(client, token):
    lock = client.lock()
    assert lock.adopt_bytes(token) == INVALID
    assert str(len(token)) in lock.message and "1 to 128" in lock.message
    assert lock.state == rl.FREE


# ---- URLs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url, shown", [
    ("redis://h", "redis://h:6379"),
    ("redis://127.0.0.1:7001", "redis://127.0.0.1:7001"),
    ("redis://h:7001/3", "redis://h:7001/3"),
    ("redis://:secret@h:1", "redis://:***@h:1"),
    ("redis://user:sec%40ret%2C@h:1", "redis://user:***@h:1"),
    ("redis://[::1]:7001", "redis://[::1]:7001"),
    ("unix:///run/r.sock", "unix:///run/r.sock"),
    ("unix://:pw@/run/r.sock?db=2", "unix://:***@/run/r.sock?db=2"),
])
def test_url_is_taken(fresh, url, shown):
    assert fresh.set("nodes", url) == OK, fresh.message
    assert fresh.get("nodes") == shown and fresh.node_count == 1
    for secret in ("secret", "sec%40ret", "pw@"):
        assert secret not in fresh.node_name(0)


@pytest.mark.parametrize("url, words", [
    ("rediss://h", "TLS"), ("http://h", "redis://"), ("127.0.0.1:7001", "redis://"), ("redis://", "host"),
    ("redis://h:0", "port"), ("redis://h:65536", "port"), ("redis://h:x", "port"), ("redis://h/x", "database"),
    ("redis://h/-1", "database"), ("redis://[::1", "bracket"), ("redis://u%zz:p@h", "%"),
    ("redis://user@h", "password"),
    ("unix://run/r.sock", "/"), ("unix:///" + "p" * 200, "107"), ("unix:///r.sock?x=1", "db"),
    ("redis://h,,redis://i", "nodes"), ("redis://h :1", "space"), ("redis://h:1,", "nodes"), (",", "nodes"),
])
def test_url_is_refused(fresh, url, words):
    assert fresh.set("nodes", url) == INVALID
    assert words in fresh.message and "nodes" in fresh.message and "redis://" in fresh.message


def test_refusals_never_show_a_password(fresh):
    assert fresh.set("nodes", "redis://u:hush@h:99999") == INVALID
    assert "hush" not in fresh.message


def test_number_of_nodes(fresh):
    def urls(n):
        return ",".join("redis://127.0.0.1:%d" % (1 + i) for i in range(n))

    assert fresh.set("nodes", urls(64)) == OK and fresh.node_count == 64
    status = fresh.set("nodes", urls(65))
    if status == OK:
        status = fresh.open()
    assert status == INVALID and "64" in fresh.message


@pytest.mark.parametrize("twice", [
    "redis://127.0.0.1:7001,redis://127.0.0.1:7001", "redis://h,redis://h:6379", "redis://h/1,redis://h/2",
    "redis://:a@h,redis://:b@h", "unix:///r.sock,unix:///r.sock", "redis://H,redis://h"])
def test_same_server_written_twice(fresh, twice):
    status = fresh.set("nodes", twice)
    if status == OK:
        status = fresh.open()
    assert status == INVALID
    assert any(name in fresh.message.lower() for name in ("h:6379", "127.0.0.1:7001", "/r.sock"))


def test_a_lock_s_options_are_checked_before_anything_is_sent(client):
    lock = client.lock()
    assert rl.lib.redlock_lock_check(lock.handle) == rl.OK
    assert lock.set("node_timeout_ms", 9000) == rl.OK
    assert rl.lib.redlock_lock_check(lock.handle) == rl.INVALID
    assert "node_timeout_ms is 9000" in lock.message
    assert lock.set("node_timeout_ms", "auto") == rl.OK
    assert rl.lib.redlock_lock_check(lock.handle) == rl.OK and lock.message == "no operation has been started yet"
    assert rl.lib.redlock_lock_check(rl.ffi.NULL) == rl.INVALID

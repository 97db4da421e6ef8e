"""Taking a lock: verdicts, messages, mutual exclusion, and what is left behind."""
import re

import pytest

import rl
from helpers import FOREIGN, finish, occupy, spin, spin_until_deleted
from rl import BUSY, HELD, LOST, NO_QUORUM, OK, REFUSED_CONFIG, TIMED_OUT, UNREACHABLE
from testing import HOLD, BlackHole, eventually
from testing.wait import in_time


def test_busy_names_every_node_and_its_answer(nodes, make_client):
    occupy(nodes.nodes[:3], "orders:42", ttl_ms=20000)
    nodes[3].kill()
    nodes[4].kill()
    lock = make_client(nodes.urls).lock("orders:42")
    assert lock.acquire() == BUSY
    assert lock.message.startswith('held by others: 0 of 5 nodes granted "orders:42", 3 needed: ')
    busy, down = ([re.escape(node.name) for node in some] for some in (nodes.nodes[:3], nodes.nodes[3:]))
    left = r"( \d+\.\d s left)?, "
    assert re.search(rf": 3 nodes: busy \({left.join(busy)}{left[:-2]}\); 2 nodes: connection refused "
                     rf"\({', '.join(down)}\)$", lock.message), lock.message
    assert lock.votes == [BUSY, BUSY, BUSY, UNREACHABLE, UNREACHABLE]
    assert nodes.keys() == {b"orders:42": [0, 1, 2]} and nodes[0].get("orders:42") == FOREIGN.encode()


@pytest.mark.parametrize("wait_ms", [0, 300])
def test_the_token_is_that_of_a_hold_never_of_an_attempt(nodes, make_client, hold, wait_ms):
    lock, other = hold(nodes), make_client(nodes.urls).lock()
    token = lock.token
    assert other.acquire(wait_ms) == BUSY and other.token == ""
    assert other.adopt(token) == OK and other.token == token and other.detach() == OK and other.token == token
    assert other.acquire(wait_ms) == BUSY and other.token == ""
    assert lock.release() == OK and lock.token == token
    assert other.acquire(5000) == OK and other.token not in ("", token)


def test_an_outage_is_not_blamed_on_the_nodes_that_answer(nodes, make_client):
    for node in nodes.nodes[:3]:
        node.kill()
    lock = make_client(nodes.urls).lock("r", outage_wait_ms=500)
    assert lock.acquire() == NO_QUORUM
    assert re.search(r": 3 nodes: connection refused .*; 2 nodes: not waited for \(", lock.message), lock.message


def test_busy_has_the_remaining_time(nodes, client):
    occupy(nodes, ttl_ms=20000)
    lock = client.lock()

    def told():
        assert lock.acquire(300) == BUSY
        return re.search(r" busy \(.*\d+\.\d s left", lock.message)

    eventually(told)  # the TTL is asked for after the refusal
    assert any(0 < int(lock.answer(i, rl.TTL_MS) or 0) <= 20000 for i in range(5))


def test_resource_in_a_message_is_escaped_and_cut(nodes, client):
    lock = client.lock(b"a\x00b\n\xff" + b"x" * 1000)
    occupy(nodes, b"a\x00b\n\xff" + b"x" * 1000)
    assert lock.acquire() == BUSY
    assert "\n" not in lock.message and "\x00" not in lock.message
    assert "x" * 65 not in lock.message and "a\\x00b" in lock.message


def test_time_outs_may_be_the_longest_or_automatic(nodes, make_client):
    assert make_client(nodes.urls, max_ttl_ms=86400000).lock("longest", ttl_ms=86400000).acquire(5000) == OK
    automatic = make_client(nodes.urls, node_timeout_ms="auto", min_validity_ms="auto")
    assert automatic.lock().acquire(5000) == OK


def test_attempts_are_counted(nodes, client):
    lock = client.lock("r", queue="false", retry_delay_ms=20)
    assert lock.attempts == 0
    occupy(nodes, "r", ttl_ms=20000)
    assert lock.acquire(0) == BUSY
    in_time(lock.attempts == 1)
    assert lock.acquire(1000) == BUSY and lock.attempts > 2
    for node in nodes:
        node.delete_keys()
    assert lock.acquire(5000) == OK
    in_time(lock.attempts == 1)
    assert rl.lib.redlock_lock_attempts(rl.ffi.NULL) == 0


# ---- known from other libraries ----------------------------------------------------------------------------------


def test_paused_client_does_not_believe_in_old_grants(nodes, make_client):
    """The replies are in the socket, but the client reads them after the TTL."""
    client = make_client(nodes.urls, **rl.lapsing(400))
    lock = client.lock()
    assert lock.acquire(5000) == OK and lock.release() == OK
    nodes.no_keys()
    before = sum(node.calls("set") for node in nodes)
    for node in nodes:
        node.stop()
    assert lock.start(rl.ACQUIRE, 0) == OK
    client.process()  # sends, and nothing more is done for longer than the TTL
    for node in nodes:
        node.cont()
    eventually(lambda: sum(node.calls("set") for node in nodes) >= before + 5)
    eventually(lambda: nodes.keys() == {})
    assert finish(lock) != OK and lock.state != HELD


def test_late_set_of_a_dropped_connection_expires_by_its_ttl(nodes, make_client, proxy):
    late = proxy(nodes[0])
    client = make_client([late.url, *nodes.urls[1:]])
    lock = client.lock()
    assert lock.acquire() == OK and lock.release() == OK
    nodes.no_keys()
    late.hold("up")
    assert lock.acquire() == OK
    late.drop(late=True)
    assert lock.release() == OK
    late.deliver()
    eventually(lambda: nodes[0].calls("set") >= 2)
    assert make_client(nodes.urls).lock().acquire() == OK  # one node's garbage does not prevent a lock
    assert nodes[0].pttl("r") <= 8000
    assert lock.acquire() == BUSY


def test_set_of_a_finished_attempt_is_never_sent(nodes, make_client, proxy):
    """A node that comes back after the attempt gets nothing of it."""
    away = proxy(nodes[0])
    away.refuse()
    client = make_client([away.url, *nodes.urls[1:]])
    lock = client.lock()
    for _ in range(3):
        assert lock.acquire() == OK and lock.release() == OK
    away.go()
    spin(client, lambda: away.connections == 1)
    assert nodes[0].calls("set") == 0 and nodes[0].keys() == []


def test_an_extension_that_finds_another_type_is_lost(nodes, hold):
    lock = hold()
    for node in nodes.nodes[:3]:
        node.command("DEL", "r")
        node.command("HSET", "r", "field", "1")
    assert lock.extend() == LOST
    assert lock.release() == LOST
    eventually(lambda: nodes.keys() == {b"r": [0, 1, 2]}, 5, "its own keys are deleted")


def test_a_lock_works_on_64_nodes(make_cluster, make_client):
    many = make_cluster(64)
    lock = make_client(many.urls).lock()
    assert lock.acquire(5000) == OK, lock.message
    assert lock.extend() == OK
    for node in many.nodes[:31]:
        node.kill()
    assert lock.extend() == OK, lock.message
    many[31].kill()
    assert lock.release() == OK
    other = make_client(many.urls).lock()
    assert other.acquire() == NO_QUORUM
    assert " of 64 nodes granted" in other.message and "33 needed" in other.message
    assert all(node.name in other.message for node in many)
    many.no_keys()


# ---- nodes that are down, hung or slow ----------------------------------------------------------------------------


def test_a_node_that_was_dead_votes_again(nodes, client):
    lock = client.lock()
    assert lock.acquire() == OK and lock.release() == OK
    nodes[1].kill()
    assert lock.acquire() == OK
    nodes[1].start()
    nodes.bootstrap()

    def votes_again():
        assert lock.release() == OK and lock.acquire() == OK
        return nodes[1].get("r") == lock.token.encode()

    eventually(votes_again, 30, "the node votes again")


def test_hung_majority_is_no_quorum(nodes, make_client):
    lock = make_client(nodes.urls, node_timeout_ms=1000).lock()
    assert lock.acquire(5000) == OK and lock.release() == OK
    for node in nodes.nodes[:3]:
        node.stop()
    assert lock.acquire() == NO_QUORUM
    assert lock.votes[:3] == [TIMED_OUT] * 3
    assert "2 of 5" in lock.message
    assert lock.acquire(1500) == NO_QUORUM  # a wait ends with the last verdict
    for node in nodes.nodes[:3]:
        node.cont()
    spin_until_deleted(lock.client, nodes)


def test_a_hung_node_gets_no_endless_queue(nodes, make_client):
    """What a hung node owes is bounded: it counts as down, and no more is sent."""
    client = make_client(nodes.urls, node_timeout_ms=50)
    lock = client.lock()
    assert lock.acquire() == OK and lock.release() == OK
    nodes[0].stop()
    for _ in range(3000):
        assert lock.acquire(10000) == OK, lock.message
        lock.release()
    executed = nodes[1].calls("set")
    nodes[0].cont()
    spin(client, lambda: nodes[0].keys() == [])
    assert executed > 2000 and nodes[0].calls("set") < 1500


def test_verdicts_are_distinct(nodes, make_client, make_cluster):
    """BUSY only if a majority answered; nodes that may never vote make it REFUSED_CONFIG."""
    busy_and_dead = make_client([*nodes.urls[:2], "redis://127.0.0.1:1"]).lock()
    occupy(nodes.nodes[:2])
    assert busy_and_dead.acquire() == BUSY
    one_busy_two_dead = make_client([nodes.urls[0], "redis://127.0.0.1:1", "redis://127.0.0.1:2"]).lock()
    assert one_busy_two_dead.acquire() == NO_QUORUM
    odd = make_cluster(2, cluster_enabled=True)
    refused = make_client([nodes.urls[0], *odd.urls]).lock()
    assert refused.acquire(60000) == REFUSED_CONFIG


def test_too_little_validity_is_a_failure(nodes, make_client, proxies):
    """A grant that comes so late that less than min_validity_ms is left is given back."""
    client = make_client([p.url for p in proxies], ttl_ms=2000, node_timeout_ms=500, min_validity_ms=1400)
    lock = client.lock()
    assert lock.acquire(5000) == OK and lock.release() == OK
    for p in proxies:
        p.delay(down_ms=650)
    assert lock.acquire() in (NO_QUORUM, TIMED_OUT, BUSY)
    assert lock.state == rl.FREE
    for p in proxies:
        p.go()
    nodes.no_keys()


def test_message_says_that_a_majority_granted_too_late(nodes, make_client):
    """The program looks after its client only when the keys have expired."""
    lock = make_client(nodes.urls, ttl_ms=500, node_timeout_ms="auto", min_validity_ms="auto").lock()
    eventually(lambda: lock.acquire(5000) == OK)
    assert lock.release() == OK
    assert lock.start(rl.ACQUIRE | rl.AT_ONCE, 0) == OK
    eventually(lambda: sum(node.get("r") is not None for node in nodes) >= 3)
    eventually(lambda: all(node.get("r") is None for node in nodes))
    assert finish(lock) == NO_QUORUM
    assert lock.message.startswith("granted too late: less than min_validity_ms of ttl_ms was left: ")


def test_hung_node_is_given_up_after_a_while_and_comes_back(nodes, make_client):
    """A connection that has not answered for 5 s is closed; the node is connected anew when it runs again."""
    client = make_client(nodes.urls, **rl.lapsing(1000))
    lock = client.lock()
    nodes[0].stop()
    assert lock.acquire(5000) == OK
    assert lock.release() == OK
    spin(client, lambda: client.describe()["nodes"][0]["state"] not in ("ready", "silent"), 20)
    assert "no answer for too long" in client.describe()["nodes"][0]["why"]
    assert lock.acquire(5000) == OK
    nodes[0].cont()
    spin(client, lambda: client.describe()["nodes"][0]["state"] == "ready", 20)
    assert lock.release() in (OK, rl.LOST)
    spin(client, lambda: not nodes.keys())


def test_a_connection_that_is_not_made_times_out(nodes, make_client):
    with BlackHole() as hole:
        client = make_client([hole.url, *nodes.urls[1:]], settle=False, connect_timeout_ms=200)
        spin(client, lambda: "timed out" in client.describe()["nodes"][0]["why"])
        assert client.lock().acquire(5000) == OK


def test_a_set_up_without_an_answer_times_out(nodes, make_client, fake_server):
    fake = fake_server({"INFO": HOLD})
    client = make_client([fake.url, *nodes.urls[1:]], settle=False, connect_timeout_ms=200)
    spin(client, lambda: "set-up" in client.describe()["nodes"][0]["why"])
    assert client.lock().acquire(5000) == OK


RESERVED = [("", "libredlock:"), ("", "libredlock:x"), ("", "libredlock:f:job"), ("app:", "libredlock:q:job"),
            ("libredlock:", "x"), ("lib", "redlock:x")]


@pytest.mark.parametrize("prefix, resource", RESERVED)
def test_names_of_the_librarys_own_keys_are_refused(nodes, make_client, prefix, resource):
    """They may be looked at, and removed by an operator."""
    lock = make_client(nodes.urls, key_prefix=prefix).lock(resource)
    for call in (lock.acquire, lambda: lock.start(rl.ACQUIRE), lock.extend, lock.release, lambda: lock.adopt("0" * 40)):
        assert call() == rl.INVALID
        assert lock.message == ('resource is "%s"; names and keys that begin with libredlock: are reserved for the '
                                "library's own keys" % resource)
    assert not any(node.get(prefix + resource) for node in nodes)
    occupy(nodes, prefix + resource)
    lock.start(rl.INSPECT)
    assert lock.wait() == BUSY
    assert lock.remove() == OK
    assert not any(node.get(prefix + resource) for node in nodes)


@pytest.mark.parametrize("prefix, resource", [("", "libredlock"), ("", "app:libredlock:x"), ("lib", "redlock"),
                                              ("app:", "redlock:x"), ("", "l")])
def test_names_that_only_resemble_them_are_locked(nodes, make_client, prefix, resource):
    lock = make_client(nodes.urls, key_prefix=prefix).lock(resource)
    assert lock.acquire(5000) == OK, lock.message
    assert lock.release() == OK

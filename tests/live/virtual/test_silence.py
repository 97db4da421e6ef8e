"""Connections that a network has forgotten: nothing comes on them, new ones work."""
import itertools

import pytest

import rl
from helpers import finish, now_ms, spin, spin_until_deleted
from rl import ACQUIRE, HELD, OK
from silencing import late_set, silence, taken_and_given_back
from testing import HOLD, eventually
from testing.wait import in_time


@pytest.fixture
def client(proxies, make_client):
    return make_client([p.url for p in proxies])


def states(client):
    client.process()
    return [node["state"] for node in client.describe()["nodes"]]


def now_s():
    return now_ms() / 1000


def told(client):
    return [(event["event"], event.get("node")) for event in client.events()]


@pytest.fixture
def lock(nodes, client):
    """A free lock whose client has used every connection."""
    lock = client.lock()
    taken_and_given_back(lock, nodes)
    return lock


# ---- a lock is taken all the same ------------------------------------------------------------------------------


def test_one_attempt_is_enough(nodes, client, lock, proxies):
    silence(proxies)
    assert lock.acquire(0) == OK, lock.message
    spin(client, lambda: all(node.get("r") == lock.token.encode() for node in nodes), what="all nodes have granted")
    assert lock.release() == OK
    nodes.no_keys()
    spin(client, lambda: states(client) == ["ready"] * 5)
    for node, row in zip(nodes, client.describe()["nodes"]):
        assert (row["connects"], row["drops"], row["votes"]) == (2, 1, True)
        assert len(node.clients()) == 1 and node.calls("client|kill") == 1  # the old one has been ended


def test_one_attempt_is_enough_with_default_options(nodes, proxies):
    for _ in range(3):
        taken = rl.Client([p.url for p in proxies])
        try:
            eventually(taken.settled, 60)
            lock = taken.lock()
            taken_and_given_back(lock, nodes)
            silence(proxies)
            assert lock.acquire(0) == OK, lock.message
        finally:
            taken.free()
        for p in proxies:
            p.go()


def test_explicit_timeout_is_extended_only_after_idle(nodes, proxies, make_client):
    """A late machine may need several attempts; without more time each of them fails."""
    lock = make_client([p.url for p in proxies], node_timeout_ms=100).lock()

    def is_granted_after_idle():
        taken_and_given_back(lock, nodes)
        idle_until = now_s() + 1.5
        eventually(lambda: now_s() > idle_until)
        silence(proxies)
        return lock.acquire(0) == OK and lock.release() == OK

    eventually(is_granted_after_idle, 60, "it is granted")


def test_renewed_lock_survives(nodes, client, proxies):
    lock = client.lock(ttl_ms=10000, renew="yes")
    assert lock.acquire() == OK
    spin(client, lambda: all(node.get("r") == lock.token.encode() for node in nodes))
    end_s = now_s() + lock.validity_ms / 1000
    silence(proxies)
    eventually(lambda: now_s() > end_s, 15, "the lease as it was has lapsed")
    assert lock.state == HELD, lock.message
    assert client.describe()["renewals"] > 0 and client.describe()["lost"] == 0
    assert lock.release() == OK
    spin(client, lambda: not nodes.keys())


def test_extension_and_release_get_through(nodes, client, proxies):
    lock = client.lock(ttl_ms=8000)
    assert lock.acquire() == OK
    silence(proxies)
    assert lock.extend(30000) == OK, lock.message
    assert lock.validity_ms > 8000
    silence(proxies)
    assert lock.release() == OK, lock.message
    spin_until_deleted(client, nodes)


def test_key_that_the_silent_connection_made_is_known_as_its_own(nodes, client, lock, proxies):
    """Only the answers are lost: the SET over the new connection meets the key of the one before."""
    silence(proxies, direction="down")
    assert lock.acquire(0) == OK, lock.message
    spin(client, lambda: lock.votes == [OK] * 5, what=lock.message)
    assert lock.validity_ms > 0 and nodes.keys() == {b"r": [0, 1, 2, 3, 4]}
    assert lock.release() == OK
    nodes.no_keys()


def test_a_key_of_another_is_not_taken_for_its_own(nodes, lock, proxies):
    for node in nodes:
        node.set("r", "other", px=60000)
    silence(proxies, direction="down")
    assert lock.acquire(0) == rl.BUSY, lock.message
    assert all(node.get("r") == b"other" for node in nodes)


# ---- who speaks first is kept ----------------------------------------------------------------------------------


@pytest.fixture
def mute(make_cluster):
    """A server that takes connections and says nothing."""
    server = make_cluster(1)[0]
    server.stop()
    return server


def test_old_connection_that_speaks_first_stays(nodes, client, lock, proxies, mute):
    client.events()
    silence(proxies)
    for p in proxies:
        p.lead_to(mute)  # the second connections never have an answer
    assert lock.start(ACQUIRE, 0) == OK
    spin(client, lambda: states(client) == ["silent"] * 5, what="all are silent")
    assert [node["votes"] for node in client.describe()["nodes"]] == [False] * 5
    assert all("no answer for" in node["why"] for node in client.describe()["nodes"])
    assert sorted(told(client)) == sorted(("node_silent", p.name) for p in proxies)
    spin(client, lambda: all(p.connections == 2 for p in proxies), what="a second connection beside each")
    for p in proxies:
        p.go()
    assert finish(lock) == OK, lock.message
    spin(client, lambda: states(client) == ["ready"] * 5)
    assert [(node["drops"], node["votes"], node["why"]) for node in client.describe()["nodes"]] == [(0, True, "")] * 5
    assert sorted(told(client)) == sorted(("node_up", p.name) for p in proxies)
    assert all(node.calls("client|kill") == 0 for node in nodes)
    assert lock.release() == OK
    nodes.no_keys()


def test_one_silent_node_costs_nothing(nodes, client, lock, proxies):
    for name, value in ("ttl_ms", 30000), ("node_timeout_ms", 7500):
        assert lock.set(name, value) == OK
    proxies[0].silence()
    proxies[0].refuse()
    begun_s = now_s()
    assert lock.acquire(0) == OK and lock.release() == OK
    in_time(now_s() - begun_s < 7)  # no wait for it: that would take the node time-out
    spin(client, lambda: "a new connection fails" in client.describe()["nodes"][0]["why"])
    assert states(client) == ["silent"] + ["ready"] * 4
    assert lock.acquire(0) == OK and lock.vote(0) == rl.UNREACHABLE
    assert lock.release() == OK
    proxies[0].go()
    spin(client, lambda: states(client) == ["ready"] * 5)
    nodes.no_keys()


def test_stopped_server_is_silent_and_comes_back(nodes, client, lock, proxies):
    client.events()
    nodes[0].stop()
    assert lock.acquire(0) == OK
    spin(client, lambda: states(client)[0] == "silent")
    nodes[0].cont()
    spin(client, lambda: states(client) == ["ready"] * 5)
    assert told(client)[0] == ("node_silent", proxies[0].name)
    assert lock.release() == OK
    nodes.no_keys()


# ---- what is late ----------------------------------------------------------------------------------------------


def test_late_set_is_fenced_off(nodes, client, proxies):
    late_set(client, nodes, proxies)
    for p in proxies:
        p.go()
    seen = [node.calls("set") for node in nodes]
    lock = client.lock("other")
    assert lock.acquire() == OK and lock.release() == OK
    spin(client, lambda: all(p.connections == 1 for p in proxies))
    assert [node.calls("set") for node in nodes] == [count + 1 for count in seen]
    assert not nodes.keys()


def test_client_id_of_an_earlier_server_run_kills_no_client(nodes, client, lock, proxies):
    """The numbers of connections begin anew with a server: the old one may be somebody else's by now."""
    for p in proxies:
        p.silence()
    for node in nodes:
        node.restart()
    nodes.bootstrap()
    assert lock.acquire(0) == OK, lock.message
    assert all(node.calls("client|kill") == 0 for node in nodes)
    assert lock.release() == OK


KILLS = [b":1\r\n", b"-NOPERM no\r\n", b"-ERR what\r\n"]
UNKNOWN = b"-ERR unknown command `HELLO`, with args beginning with: \r\n"


@pytest.mark.parametrize("hello, kill", list(itertools.product([True, False], KILLS)))
def test_the_new_connection_sends_the_kill_before_the_set(make_client, fake_server, hello, kill):
    def client_command(args):
        return {b"ID": b":77\r\n", b"KILL": kill}.get(args[1].upper())

    fakes = [fake_server(dict({"SET": [HOLD, b"+OK\r\n"], "CLIENT": client_command},
                              **({} if hello else {"HELLO": UNKNOWN}))) for _ in range(3)]
    lock = make_client([fake.url for fake in fakes]).lock()
    assert lock.acquire(0) == OK, lock.message
    spin(lock.client, lambda: all(fake.count("SET") == 2 for fake in fakes))
    for fake in fakes:
        commands = [args for args in fake.seen if args[0] in (b"SET", b"CLIENT") and args[1] != b"SETNAME"]
        number = b"1" if hello else b"77"
        after = commands[commands.index([b"CLIENT", b"KILL", b"ID", number]):]
        assert [args[0] for args in after[:2]] == [b"CLIENT", b"SET"]
        assert after[1][2] == lock.token.encode()

"""Renewal in the background: beyond the TTL, bounded, batched, and ended by release, free, loss and fork."""
import pytest

import rl
from helpers import Call, lapse, now_ms, spin
from rl import HELD, LIMIT, LOST, NOT_HELD, OK
from testing import HOLD, eventually


@pytest.fixture
def renewing(nodes, make_client):
    def make(resource="r", **options):
        client = make_client(nodes.urls, renew="true", **dict(rl.lapsing(1000), **options))
        lock = client.lock(resource)
        assert lock.acquire(5000) == OK
        return lock

    return make


def extensions(nodes):
    """How many extensions the node that executed most of them has seen."""
    return max(node.calls("pexpire") - node.calls("eval") for node in nodes)  # EVAL: the set-up tries it


def test_renew_may_be_for_one_lock_alone(nodes, make_client):
    client = make_client(nodes.urls, **rl.lapsing(3000))
    kept, left = client.lock("kept", renew="true"), client.lock("left")
    assert kept.acquire(5000) == OK and left.acquire(5000) == OK
    lapse(left)
    assert kept.state == HELD and left.state == rl.State.LOST


def test_the_last_renewal_fits_into_what_is_left(nodes, renewing):
    lock = renewing(ttl_ms=8000, node_timeout_ms=2000, max_hold_ms=10000)
    eventually(lambda: extensions(nodes) >= 1, 30)  # at 4 s: of 6 s, a quarter of which is less than the time-out
    assert lock.state == HELD
    assert all(node.command("PTTL", "r") < 7000 for node in nodes)


def test_max_hold_may_be_raised_during_the_last_renewal(nodes, renewing):
    lock = renewing(ttl_ms=4000, node_timeout_ms=300, max_hold_ms=5000)
    spin(lock.client, lambda: lock.validity_ms < 2500)
    for node in nodes:
        node.stop()
    spin(lock.client, lambda: lock.validity_ms < 1300)  # the renewal at half of the lease reaches to max_hold_ms
    assert lock.set("max_hold_ms", 60000) == OK
    for node in nodes:
        node.cont()
    eventually(lambda: extensions(nodes) >= 3, 30)
    assert lock.state == HELD


def test_renewal_goes_on_beside_a_dead_and_a_hung_node(nodes, renewing):
    lock = renewing(**rl.lapsing(2000))
    nodes[0].kill()
    nodes[1].stop()
    before = nodes[2].calls("pexpire")
    eventually(lambda: nodes[2].calls("pexpire") >= before + 4, 20)
    assert lock.state == HELD


def test_renewal_recovers_from_a_short_outage(nodes, renewing):
    lock = renewing(ttl_ms=4000, node_timeout_ms=200)
    for node in nodes:
        node.stop()
    spin(lock.client, lambda: lock.validity_ms < 1800)  # the first try, at half of the lease, got no answer
    for node in nodes:
        node.cont()
    eventually(lambda: lock.validity_ms > 2500, 30)
    assert lock.state == HELD


def test_a_node_that_lost_the_lock_gets_it_back(nodes, renewing):
    lock = renewing(ttl_ms=4000)
    spin(lock.client, lambda: all(node.get("r") for node in nodes))
    for node in nodes.nodes[:2]:
        node.command("DEL", "r")
    spin(lock.client, lambda: all(node.get("r") == lock.token.encode() for node in nodes), 20, "it is put back")
    for node in nodes.nodes[2:4]:
        node.command("DEL", "r")
    end_ms = now_ms() + lock.validity_ms
    spin(lock.client, lambda: now_ms() > end_ms and all(node.get("r") for node in nodes), 20, "the lease ends")
    assert lock.state == HELD and lock.release() == OK
    nodes.no_keys()


def test_an_extension_counts_on_what_is_put_back_meanwhile(make_cluster, make_client, proxy):
    """One node has lost the token and gets it back while another does not answer, which has lost it, too."""
    servers = make_cluster(3).nodes
    last = proxy(servers[2])
    lock = make_client([servers[0].url, servers[1].url, last.url], renew="true", **rl.lapsing(4000)).lock()
    assert lock.acquire(5000) == OK
    spin(lock.client, lambda: lock.votes == [OK] * 3)
    last.hold()
    servers[1].command("DEL", "r")
    assert lock.start(rl.EXTEND, 0) == OK
    spin(lock.client, lambda: lock.votes[:2] == [OK, rl.LOST] or servers[1].get("r"), 20)
    spin(lock.client, lambda: servers[1].get("r") == lock.token.encode(), 20, "it is put back")
    servers[2].command("DEL", "r")
    last.go()
    spin(lock.client, lambda: lock.status != rl.PENDING, 20)
    assert lock.status == OK and lock.state == HELD, lock.message


def test_a_renewed_lock_survives_a_rolling_restart(make_cluster, make_client):
    """None of the servers keeps its data."""
    servers = make_cluster(3).nodes
    lock = make_client([server.url for server in servers], guard="off", renew="true", **rl.lapsing(4000)).lock()
    assert lock.acquire(5000) == OK
    for server in servers * 2:
        server.restart(empty=True)
        spin(lock.client, lambda: server.get("r") == lock.token.encode(), 20, "it is put back")
    assert lock.state == HELD and lock.release() == OK


def test_what_others_hold_is_not_taken_back(nodes, renewing):
    lock = renewing(ttl_ms=2000)
    nodes[0].set("r", "somebody else", px=60000)
    renewals = lock.client.describe()["renewals"]
    spin(lock.client, lambda: lock.client.describe()["renewals"] > renewals + 2, 20)
    assert nodes[0].get("r") == b"somebody else" and lock.state == HELD
    assert lock.release() == OK and nodes[0].get("r") == b"somebody else"


def test_extensions_put_back_what_a_node_lost(nodes, make_client):
    lock = make_client(nodes.urls).lock()
    assert lock.acquire(5000) == OK
    spin(lock.client, lambda: all(node.get("r") for node in nodes))
    nodes[0].command("DEL", "r")
    spin(lock.client, lambda: lock.extend() == OK and nodes[0].get("r") == lock.token.encode(), 20, "it is put back")
    assert lock.release() == OK
    nodes.no_keys()


def test_an_extension_uses_nodes_that_were_away_at_first(nodes, make_client):
    for node in nodes.nodes[:2]:
        node.kill()
    lock = make_client(nodes.urls, guard="off", settle=False, ttl_ms=30000).lock()
    assert lock.acquire(5000) == OK
    for node in nodes.nodes[:2]:
        node.restart()
    spin(lock.client, lambda: lock.extend() == OK and nodes[0].get("r") and nodes[1].get("r"), 20, "they have it")
    for node in nodes.nodes[2:4]:
        node.kill()
    assert lock.extend() == OK, lock.message


def test_release_ends_the_renewal(nodes, renewing):
    lock = renewing(**rl.lapsing(2000))
    eventually(lambda: extensions(nodes) >= 1)
    assert lock.release() == OK
    nodes.no_keys()
    before = extensions(nodes)
    lock.set("renew", "false")
    assert lock.acquire(5000) == OK
    lapse(lock)  # a whole TTL later
    assert extensions(nodes) == before


def test_release_in_the_middle_of_a_renewal_leaves_no_key(nodes, make_client, proxies):
    client = make_client([p.url for p in proxies], renew="true", **rl.lapsing(1000))
    lock = client.lock()
    assert lock.acquire(5000) == OK
    for p in proxies:
        p.when("(?i)EVALSHA", p.hold)
    eventually(lambda: any(b"EVAL" in p.held_bytes("up") for p in proxies))
    releasing = Call(lock.release)
    eventually(lambda: lock.state != HELD)
    for p in proxies:
        p.go()
    assert releasing.join() in (OK, LOST)
    spin(client, lambda: not nodes.keys())


def test_free_ends_the_renewal(nodes, renewing):
    lock = renewing()
    client = lock.client
    lock.free()
    spin(client, lambda: not nodes.keys())


def test_free_of_the_client_ends_the_renewal(nodes, renewing):
    lock = renewing()
    lock.client.free_alone()
    nodes.no_keys()
    assert lock.state != HELD


def test_users_extend_runs_beside_the_renewal(nodes, renewing):
    """The keeper's work is not the handle's operation: never IN_FLIGHT."""
    lock = renewing()
    while extensions(nodes) < 60:
        assert lock.extend() == OK, lock.message
    assert lock.state == HELD


def test_many_leases_are_renewed_by_few_scripts(nodes, make_client):
    client = make_client(nodes.urls, renew="true", **rl.lapsing(4000))
    locks = [client.lock("m%d" % i) for i in range(500)]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, 20000) == OK
    spin(client, lambda: all(lock.status == OK for lock in locks), 30)
    first = locks[0].token
    eventually(lambda: min(node.calls("pexpire") for node in nodes) >= 1500, 30)  # each three times: 6 s
    assert all(lock.state == HELD for lock in locks) and locks[0].token == first
    # one script renews up to a hundred locks
    assert nodes[0].calls("evalsha") + nodes[0].calls("eval") < nodes[0].calls("pexpire") / 4
    assert client.drain(5000) == OK
    nodes.no_keys()


def test_adopted_and_detached_locks_are_left_alone(nodes, renewing):
    lock = renewing(**rl.lapsing(2000))
    assert lock.detach() == OK
    before = extensions(nodes)
    eventually(lambda: not nodes.keys(), 10)  # lapses with its TTL
    assert extensions(nodes) <= before + 1
    assert lock.extend() == NOT_HELD


def test_renewals_do_not_use_up_the_users_extensions(renewing):
    lock = renewing(max_extensions=1)
    eventually(lambda: lock.client.describe()["renewals"] >= 3, 30, "three renewals")
    assert lock.extend() == OK and lock.extend() == LIMIT
    assert lock.state == rl.HELD


def test_renewal_sends_scripts_again_after_a_flush(nodes, renewing):
    lock = renewing(**rl.lapsing(2000))
    for _ in range(3):
        for node in nodes:
            node.command("SCRIPT", "FLUSH")
        before = [node.calls("pexpire") for node in nodes]
        eventually(lambda: all(node.calls("pexpire") > n for node, n in zip(nodes, before)), 20)
    assert lock.state == HELD


def test_slow_nodes_noscript_is_repaired_at_once(nodes, make_client, proxy):
    """Its answer comes when the others have confirmed the renewal. The next one would be too late: its key lapses."""
    slow = proxy(nodes[0])
    client = make_client([slow.url, *nodes.urls[1:]], renew="true", **rl.lapsing(16000))
    lock = client.lock()
    assert lock.acquire() == OK
    eventually(lambda: all(node.get("r") for node in nodes))
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    slow.hold("down")
    eventually(lambda: all(node.calls("pexpire") == 1 for node in nodes.nodes[1:]), 20)
    slow.go()
    eventually(lambda: nodes[0].calls("pexpire") == 1, 3, "the repair, before node_timeout_ms is over")


@pytest.mark.parametrize("error", [b"-READONLY You can't write against a read only replica.\r\n",
                                   b"-BUSY Redis is busy running a script.\r\n", b"-NOPERM no\r\n", b"$3\r\nabc\r\n",
                                   b"*2\r\n:1\r\n:1\r\n"], ids=["READONLY", "BUSY", "NOPERM", "text", "two answers"])
def test_errors_to_renewals_confirm_nothing(make_client, fake_server, error):
    fakes = [fake_server({"EVALSHA": error, "EVAL": error}) for _ in range(3)]
    client = make_client([f.url for f in fakes], renew="true", **rl.lapsing(2000))
    lock = client.lock()
    assert lock.acquire(5000) == OK
    eventually(lambda: lock.state == rl.State.LOST, 30)
    assert sum(f.count("EVALSHA") for f in fakes) >= 3


def part(lock, how):
    assert {"detach": lock.detach, "release": lock.release, "free": lambda: OK}[how]() == OK
    if how == "free":
        lock.client.locks.remove(lock)
        lock.free()


@pytest.mark.parametrize("how", ["detach", "release", "free"])
def test_repair_of_a_renewal_is_for_those_that_are_held_still(make_client, fake_server, how):
    """The servers have lost the script, and one of the two locks is given away before they say so."""
    def no_script(args):
        return (HOLD, b"-NOSCRIPT No matching script. Please use EVAL.\r\n") if len(args) > 5 else None

    fakes = [fake_server({"EVALSHA": no_script}) for _ in range(3)]
    client = make_client([f.url for f in fakes], renew="true", **rl.lapsing(8000))
    locks = [client.lock("gone"), client.lock("kept")]
    for lock in locks:
        assert lock.acquire() == OK
    gone, kept = (lock.token.encode() for lock in locks)
    eventually(lambda: all(f.count("EVALSHA") >= 1 for f in fakes), 20, "the renewal")
    part(locks[0], how)
    for f in fakes:
        f.let_go()

    def extended(token):
        seen = (args for f in fakes for args in f.seen)
        return [args for args in seen if args[0] == b"EVAL" and b"PEXPIRE" in args[1] and token in args]

    eventually(lambda: extended(kept), what="the repair")
    assert not extended(gone)

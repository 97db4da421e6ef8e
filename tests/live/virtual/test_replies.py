"""What servers answer when they cannot. unit/test_meaning.c has what each reply means; here it comes from a server."""

import pytest

import rl
from helpers import spin, spin_until_deleted, votes_no
from rl import BUSY, HELD, NO_QUORUM, OK, REFUSED_CONFIG
from testing import eventually


def test_readonly_after_a_demotion_is_a_refusal(nodes, make_cluster, hold):
    lock = hold()
    assert lock.release() == OK
    master = make_cluster(1)[0]
    for node in nodes.nodes[:3]:
        node.replica_of(master)
    # known connections: the first answer is READONLY, and set-up anew tells that it is a replica
    assert lock.acquire(5000) in (NO_QUORUM, REFUSED_CONFIG)
    assert "READONLY" in lock.message or "replica" in lock.message

    def refused():
        return lock.acquire(0) == REFUSED_CONFIG

    eventually(refused, what=lock.message)
    for node in nodes.nodes[:3]:
        node.replica_of(None)
    nodes.bootstrap()
    # it is asked again when its connection is made anew
    eventually(lambda: lock.acquire(1000) == OK, 20, lock.message)


def test_out_of_memory_grants_nothing_new(nodes, hold):
    lock = hold()
    for node in nodes.nodes[:3]:
        node.config_set("maxmemory", 1)
    assert lock.extend() == OK, lock.message  # scripts without a shebang still work
    assert lock.client.lock("other").acquire() == NO_QUORUM
    assert lock.release() == OK
    spin_until_deleted(lock.client, nodes)
    assert lock.acquire() == NO_QUORUM
    assert lock.said("OOM") == 3


ERRORS = [b"-MOVED 3999 127.0.0.1:6381\r\n", b"-CLUSTERDOWN Hash slot not served\r\n", b"-ERR anything else\r\n"]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.split()[0].decode().strip("-"))
def test_an_error_to_a_set_is_a_vote_against(nodes, make_client, fake_server, error):
    fakes = [fake_server({"SET": error}) for _ in range(2)]
    lock = make_client([*(f.url for f in fakes), *nodes.urls[:3]]).lock()
    votes_no(lock, 0, error[1:].split()[0].decode() if not error.startswith(b"-ERR") else error[5:-2].decode()[:20])
    assert lock.release() == OK
    nodes.no_keys()
    three = make_client([fakes[0].url, fakes[1].url, nodes.urls[0]]).lock()
    assert three.acquire() == (NO_QUORUM if error.startswith(b"-ERR") else REFUSED_CONFIG), three.message


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.split()[0].decode().strip("-"))
def test_error_to_an_extension_keeps_the_old_lease(make_client, fake_server, error):
    fakes = [fake_server({"EVALSHA": error, "EVAL": error}) for _ in range(3)]
    lock = make_client([f.url for f in fakes]).lock()
    assert lock.acquire(5000) == OK, lock.message
    assert lock.extend() not in (OK, BUSY)
    assert lock.state == HELD and lock.validity_ms > 0
    assert lock.release() == OK


def test_only_ok_is_a_vote(make_client, fake_server):
    """Such a server may have made the key all the same: it is deleted, and the words tell what came."""
    fakes = [fake_server({"SET": b"+QUEUED\r\n"}) for _ in range(3)]
    lock = make_client([f.url for f in fakes]).lock()
    assert lock.acquire() == NO_QUORUM and lock.state == rl.FREE
    assert lock.said("an unexpected reply to SET") >= 2
    token = next(args[2] for fake in fakes for args in fake.seen if args[0] == b"SET")
    spin(lock.client, lambda: all(any(args[0] == b"EVALSHA" and token in args for args in f.seen) for f in fakes))


@pytest.mark.parametrize("reply", [b":1\r\n", b"*3\r\n$3\r\nabc\r\n:1\r\n$-1\r\n"], ids=["number", "mixed"])
def test_only_an_array_of_answers_confirms(make_client, fake_server, reply):
    fakes = [fake_server({"EVALSHA": lambda args: reply if len(args) == 6 else None}) for _ in range(3)]
    lock = make_client([f.url for f in fakes], outage_wait_ms=100).lock()
    assert lock.acquire() == OK
    assert lock.extend(60000) != OK
    assert lock.validity_ms <= 8000


def test_error_that_is_not_the_servers_leaves_it_open(nodes, make_client, fake_server):
    """Proxies that have passed the SET on and then lost their servers: the attempt has failed, its keys are deleted."""
    def proxy_to(node):
        def pass_on_and_fail(args):
            node.connect().command(*args)
            return b"-ERR upstream failure\r\n"

        def pass_on(args):
            return b":%d\r\n" % node.connect().command(*args)

        return fake_server({"SET": pass_on_and_fail, "EVAL": pass_on, "EVALSHA": b"-NOSCRIPT no\r\n"})

    proxies = [proxy_to(node) for node in nodes.nodes[:3]]
    lock = make_client([p.url for p in proxies], max_ttl_ms=60000, ttl_ms=60000).lock()
    assert lock.acquire() == NO_QUORUM, lock.message
    assert lock.said("upstream failure") >= 2
    spin_until_deleted(lock.client, nodes)
    assert sum(p.count("EVAL") for p in proxies) >= 2


def test_a_server_without_scripts_gets_their_text(make_client, fake_server):
    """A server that never has the script gets its text."""
    fakes = [fake_server({"EVALSHA": b"-NOSCRIPT No matching script. Please use EVAL.\r\n"}) for _ in range(3)]
    lock = make_client([f.url for f in fakes]).lock()
    assert lock.acquire(5000) == OK
    assert lock.extend() == OK, lock.message
    assert lock.release() == OK, lock.message
    spin(lock.client, lambda: all(f.count("EVAL") >= 1 for f in fakes))

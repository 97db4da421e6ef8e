"""What servers answer when they cannot. unit/test_meaning.c has what each reply means; here it comes from a server."""
import os
import threading

import pytest

import rl
from helpers import acquire_until, spin, spin_until_deleted
from rl import BUSY, HELD, NO_QUORUM, OK, REFUSED_CONFIG
from testing import ReplyError, RespConnection, eventually


def busy_script(node):
    """Makes the node run a script without end: the thread that waits for it."""
    node.config_set("busy-reply-threshold", 10)

    def run():
        connection = RespConnection(node.address)
        with pytest.raises((ReplyError, OSError)):
            connection.command("EVAL", "while true do end", 0)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def is_busy():
        try:
            node.get("x")
        except ReplyError as error:
            return str(error).startswith("BUSY")
        return False

    eventually(is_busy, what="the script runs")
    return thread


def fail_background_saves(node):
    """MISCONF: the server wants to save and cannot."""
    path = os.path.join(node.folder, "dump.rdb")
    if os.path.exists(path):
        os.unlink(path)
    os.mkdir(path)
    node.config_set("save", "3600 1")
    node.command("BGSAVE")
    eventually(lambda: node.info("persistence")["rdb_last_bgsave_status"] == "err")


@pytest.fixture
def mended(nodes):
    yield
    for node in nodes:
        path = os.path.join(node.folder, "dump.rdb")
        if os.path.isdir(path):
            os.rmdir(path)


def votes_no(lock, node, word):
    """The acquisition succeeds with the others; this node has answered with an error that is shown."""
    acquire_until(lock, lambda: lock.vote(node) not in (OK, rl.PENDING) and word in lock.answer(node))
    assert word in lock.message


def test_readonly_after_a_demotion(nodes, make_cluster, hold):
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


def test_out_of_memory(nodes, hold):
    lock = hold()
    for node in nodes.nodes[:3]:
        node.config_set("maxmemory", 1)
    assert lock.extend() == OK, lock.message  # scripts without a shebang still work
    assert lock.client.lock("other").acquire() == NO_QUORUM
    assert lock.release() == OK
    spin_until_deleted(lock.client, nodes)
    assert lock.acquire() == NO_QUORUM
    assert lock.said("OOM") == 3


def test_misconf(nodes, mended, hold):
    lock = hold(**rl.short(2000))
    fail_background_saves(nodes[0])
    assert lock.release() == OK  # the delete is refused there, too: the TTL ends that key
    eventually(lambda: nodes.keys() in ({b"r": [0]}, {}))
    votes_no(lock, 0, "MISCONF")
    assert lock.release() == OK
    spin(lock.client, lambda: not nodes.keys())


def test_misconf_ends_and_the_debt_is_paid(nodes, mended, hold):
    lock = hold(ttl_ms=30000)
    fail_background_saves(nodes[0])
    assert lock.release() == OK
    eventually(lambda: nodes.keys() == {b"r": [0]}, 20, "the others have deleted it")
    nodes[0].config_set("save", "")
    nodes[0].kill_clients()  # a debt is paid after the next set-up at the latest
    spin_until_deleted(lock.client, nodes)


def test_busy_script(nodes, hold):
    lock = hold()
    thread = busy_script(nodes[0])
    assert lock.extend() == OK and lock.release() == OK
    votes_no(lock, 0, "BUSY")
    assert lock.release() == OK
    nodes[0]._forget_connection()
    nodes[0].command("SCRIPT", "KILL")
    thread.join(10)
    nodes[0].kill_clients()
    spin(lock.client, lambda: not nodes.keys(), 20)


def test_busy_script_on_a_majority_is_no_quorum(nodes, make_client):
    """The server's word BUSY is not the status BUSY."""
    client = make_client(nodes.urls)
    lock = client.lock()
    assert lock.acquire() == OK and lock.release() == OK
    threads = [busy_script(node) for node in nodes.nodes[:3]]
    assert lock.acquire() == NO_QUORUM
    for node in nodes.nodes[:3]:
        node.command("SCRIPT", "KILL")
    for thread in threads:
        thread.join(10)


ERRORS = [b"-MOVED 3999 127.0.0.1:6381\r\n", b"-CLUSTERDOWN Hash slot not served\r\n", b"-ERR anything else\r\n"]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.split()[0].decode().strip("-"))
def test_error_to_a_set(nodes, make_client, fake_server, error):
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
    token = lock.token.encode()
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


def test_noscript_again_and_again(make_client, fake_server):
    """A server that never has the script gets its text."""
    fakes = [fake_server({"EVALSHA": b"-NOSCRIPT No matching script. Please use EVAL.\r\n"}) for _ in range(3)]
    lock = make_client([f.url for f in fakes]).lock()
    assert lock.acquire(5000) == OK
    assert lock.extend() == OK, lock.message
    assert lock.release() == OK, lock.message
    spin(lock.client, lambda: all(f.count("EVAL") >= 1 for f in fakes))

"""Every status as the face says it."""
import contextlib

import pytest

import faces
from driver import lapsing
from steps import BEFORE_LAPSE_S, FOREIGN, acquire_everywhere, error_name, occupy, own_ttl_ms
from testing import FakeServer, eventually

CLI_EXITS = {"BUSY": 75, "NO_QUORUM": 69, "TIMED_OUT": 69, "LOST": 76, "INVALID": 64, "REFUSED_CONFIG": 78}


def says(face, reply, status):
    """The status, and its name among exceptions or exit statuses."""
    assert reply == status, reply
    assert reply.get("error") == error_name(face, status)
    if face == "cli":
        assert reply.exit == CLI_EXITS[status]


def test_a_dead_majority_is_no_quorum(face, make, nodes):
    for node in nodes[:3]:
        node.kill()
    reply = make().lock().acquire()
    says(face, reply, "NO_QUORUM")
    assert reply.votes[:3] == ["connection refused"] * 3
    assert all(node.name in reply.message for node in nodes), "the message names every node"


def test_nodes_that_evict_are_refused_by_configuration(face, make, nodes):
    for node in nodes[1:4]:
        node.config_set("maxmemory", "100mb")
        node.config_set("maxmemory-policy", "allkeys-lru")
    reply = make().lock().acquire()
    says(face, reply, "REFUSED_CONFIG")
    assert "evict" in reply.message


def test_wrong_passwords_are_refused(face, make, nodes):
    says(face, make(urls=[node.url_with(user="nobody", password="x") for node in nodes]).lock().acquire(),
         "REFUSED_CONFIG")


@pytest.fixture
def repeating():
    """Servers that know neither HELLO nor AUTH, and say what they were sent."""
    def repeat(args):
        return b"-ERR unknown command '%s', with args beginning with: '%s'\r\n" % (args[0], b"' '".join(args[1:]))

    with contextlib.ExitStack() as made:
        yield [made.enter_context(FakeServer({"HELLO": repeat, "AUTH": repeat})) for _ in range(5)]


def test_what_a_server_answers_to_the_login_is_not_said(face, make, repeating):
    """In no text that the face has for people or programs."""
    party = make(urls=["redis://app:s3cret-Pa55@" + server.name for server in repeating], connect_timeout_ms=2000)
    reply = party.lock().acquire()
    says(face, reply, "REFUSED_CONFIG")
    assert "the login failed" in reply.message
    assert "Pa55" not in repr(dict(reply))
    if "describe" not in faces.LACKS[face]:
        assert "Pa55" not in repr(party.describe())


def test_a_wait_without_any_answer_times_out(face, make, nodes):
    """No node has said anything when the wait ends."""
    party = make(connect_timeout_ms=20000)
    for node in nodes:
        node.stop()
    reply = party.lock().acquire(wait_ms=200)
    says(face, reply, "TIMED_OUT")
    assert all(node.name in reply.message for node in nodes)


@pytest.mark.needs("start", "state")
def test_an_operation_beside_another_is_refused(face, make, nodes):
    """Where each acquisition is a hold of its own, one that waits is none yet."""
    occupy(nodes)
    lock = make().lock()
    assert lock.start("acquire", -1) == "OK"
    says(face, lock.extend(), "IN_FLIGHT" if face == "c" else "NOT_HELD")
    for node in nodes:
        node.command("DEL", "r")
    assert lock.wait() == "OK"


@pytest.mark.needs("state")
def test_a_lost_lock_stays_lost_until_it_is_acquired(face, make):
    """For good: no extension brings it back."""
    lock = make(**lapsing(400)).lock()
    assert lock.acquire(wait_ms=20000) == "OK"
    eventually(lambda: lock.state == "LOST", 30)
    says(face, lock.extend(), "LOST")
    assert lock.state == "LOST"
    says(face, lock.release(), "LOST")
    assert lock.acquire(wait_ms=20000) == "OK"


@pytest.mark.needs("extend")
def test_an_extension_finds_a_lock_lost_at_the_nodes(face, make, nodes):
    """Another has it on a majority: its keys are left alone, and the lock's own are deleted."""
    lock = make(max_ttl_ms=60000).lock(ttl_ms=30000)
    acquire_everywhere(lock, nodes)
    occupy(nodes[:3])
    says(face, lock.extend(60000), "LOST")
    if "state" in lock.party.can:
        assert (lock.state, lock.validity_ms) == ("LOST", 0)
    says(face, lock.extend(60000), "LOST")
    assert lock.release() == "LOST"
    eventually(lambda: nodes.keys() == {b"r": [0, 1, 2]}, BEFORE_LAPSE_S)
    assert all(node.get("r") == FOREIGN.encode() and node.pttl("r") <= 30000 for node in nodes[:3])


@pytest.mark.needs("state")
def test_a_free_lock_is_not_held(face, make):
    lock = make().lock()
    assert lock.state == "FREE"
    says(face, lock.release(), "NOT_HELD")
    says(face, lock.extend(), "NOT_HELD")


@pytest.mark.needs("renew")
def test_each_hold_has_its_limit_of_extensions(face, make):
    """It is counted for each hold."""
    lock = make(max_extensions=1).lock()
    for _ in range(2):
        assert lock.acquire() == "OK"
        assert lock.extend() == "OK"
        refused = lock.extend()
        says(face, refused, "LIMIT")
        assert refused.message == "no further extension: max_extensions is 1"
        assert lock.state == "HELD"
        assert lock.release() == "OK"


def test_a_ttl_above_max_ttl_is_invalid(face, make):
    party = make(max_ttl_ms=30000)
    lock = party.lock(ttl_ms=30000)
    reply = lock.made if lock.made != "OK" else lock.acquire()
    assert reply == "OK"
    lock = party.lock(ttl_ms=30001)
    reply = lock.made if lock.made != "OK" else lock.acquire()
    says(face, reply, "INVALID")


@pytest.mark.needs("body")
def test_a_busy_body_is_not_entered(face, make, nodes):
    occupy(nodes)
    says(face, make(wait_ms=0).lock().body(), "BUSY")


def test_a_lock_is_held_through_unix_sockets_and_passwords(make, make_cluster):
    with make_cluster(3, unix=True, password="p@ss,word/%") as cluster:
        party = make(urls=cluster.urls)
        lock = party.lock(ttl_ms=own_ttl_ms(party))
        assert lock.driver.call("acquire", lock=lock.name, wait_ms=0) == "OK"
        assert len(cluster.keys()[b"r"]) >= 2
        assert lock.release() == "OK"
        cluster.no_keys(BEFORE_LAPSE_S)


def test_a_user_of_an_acl_takes_a_lock(make, make_cluster):
    user = "user locker on >secret ~l:* +@all -@dangerous +info"
    with make_cluster(3, users=[user], key_prefix="l:") as cluster:
        urls = [node.url_with(user="locker", password="secret") for node in cluster]
        lock = make(urls=urls, key_prefix="l:", guard_variable="").lock()  # the cluster is bootstrapped
        assert lock.driver.call("acquire", lock=lock.name, wait_ms=0) == "OK"
        assert lock.release() == "OK"

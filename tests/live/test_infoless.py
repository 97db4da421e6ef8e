"""Servers that forbid INFO: known by their markers, and by a script that is gone where they were started anew."""
import hashlib
import re
from pathlib import Path

import pytest

import rl
from guarding import GUARDED, MARKER, granted_to_another
from helpers import finish, held_everywhere, spin
from rl import HELD, NO_QUORUM, OK
from testing import ReplyError, eventually

FEW = "user few on >p ~* &* +@all -info"
HELLO_OF_6 = (b"*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n6.2.0\r\n$5\r\nproto\r\n:2\r\n"
              b"$2\r\nid\r\n:7\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
              b"$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n")


@pytest.fixture
def servers(make_cluster):
    """Three servers, and on each a user who may not use INFO; the default user may, for the tests."""
    return make_cluster(3, users=[FEW], bootstrapped=False).nodes


@pytest.fixture
def server(make_cluster):
    return make_cluster(1, users=[FEW], bootstrapped=False).nodes[0]


@pytest.fixture
def blind(make_client):
    """blind(servers, **options): a client that may not use INFO; the first one says before that no lock is live."""
    begun = []

    def make(servers, **options):
        urls = [server.url_with("few", "p") for server in servers]
        if not begun:
            make_client(urls, **dict(GUARDED, guard="bootstrap"))
        begun.append(urls)
        return make_client(urls, **dict(GUARDED, **options))

    return make


@pytest.fixture
def first(server, blind):
    lock = blind([server]).lock()
    assert lock.acquire(0) == OK, lock.message
    return lock


def name_in_marker(server):
    return server.get(MARKER).split()[1].decode()


def has_lasted(server):
    text = "return '%s'" % name_in_marker(server)
    return server.command("SCRIPT", "EXISTS", hashlib.sha1(text.encode()).hexdigest()) == [1]


def test_servers_that_were_bootstrapped_vote_at_once(servers, blind):
    client = blind(servers)
    lock = client.lock()
    assert lock.acquire(0) == OK and lock.extend() == OK and lock.expire(2000) == OK, lock.message
    assert lock.release() == OK
    assert all(has_lasted(server) for server in servers)
    warnings = [event["detail"] for event in client.events() if event["event"] == "warning"]
    assert len(warnings) == 3 and all("it forbids INFO" in warning for warning in warnings)


def test_a_fencing_number_is_raised(servers, blind):
    """By a script that compares the marker first."""
    number = "libredlock:f:r"
    lock = blind(servers, fence="true").lock()
    assert lock.acquire(0) == OK and lock.release() == OK, lock.message
    ahead = lock.fence + 10**9
    servers[0].set(number, str(ahead), px=60000)
    servers[2].stop()
    assert lock.acquire(5000) == OK, lock.message
    assert lock.fence > ahead and all(int(server.get(number)) >= lock.fence for server in servers[:2])


def test_the_documented_permissions_suffice(servers, make_client):
    text = (Path(__file__).parents[2] / "docs/redlock.md").read_text()
    rules = re.search(r"^    user app on >s3cret (.*)$", text, re.MULTILINE)[1]
    for server in servers:
        server.command("ACL", "SETUSER", "few", "reset", "on", ">p", *rules.replace("+info", "+script|exists").split())
    urls = [server.url_with("few", "p") for server in servers]
    make_client(urls, **dict(GUARDED, guard="bootstrap", key_prefix="lock:"))
    lock = make_client(urls, **dict(GUARDED, key_prefix="lock:")).lock()
    assert lock.acquire(0) == OK and lock.extend() == OK and lock.release() == OK, lock.message


def test_new_servers_are_quarantined(servers, make_client):
    urls = [server.url_with("few", "p") for server in servers]
    lock = make_client(urls, **GUARDED).lock()
    assert lock.acquire(0) == NO_QUORUM and "quarantined for another" in lock.message, lock.message
    assert lock.acquire(30000) == OK, lock.message


def test_clients_with_and_without_info_know_a_server_by_one_name(servers, blind, make_client):
    urls = [server.url for server in servers]
    make_client(urls, **dict(GUARDED, guard="bootstrap"))
    lock = blind(servers).lock()
    assert lock.acquire(0) == OK, lock.message
    assert [name_in_marker(server) for server in servers] == [server.info("server")["run_id"] for server in servers]
    other = make_client(urls, **GUARDED).lock()
    assert other.acquire(0) == rl.BUSY and lock.release() == OK and other.acquire(0) == OK


def test_a_server_that_was_restarted_empty(server, first, blind):
    server.restart(empty=True)
    granted_to_another(blind([server]), first)


def test_a_server_that_came_back_with_old_data(server, blind):
    client = blind([server])
    server.command("SAVE")
    first = client.lock()
    assert first.acquire(0) == OK
    server.kill()
    server.start()
    assert server.get("r") is None and server.get(MARKER) and not has_lasted(server)
    granted_to_another(blind([server]), first)


def test_a_server_that_came_back_with_its_data(server, first, blind):
    """Nobody can tell that from old data."""
    server.restart()
    assert server.get("r")
    second = blind([server]).lock("s")
    assert second.acquire(0) == NO_QUORUM and "quarantined for another" in second.message, second.message


def test_flushall_under_a_connection(server, first, blind):
    second = blind([server])
    server.flush()
    granted_to_another(second, first)


def test_flushall_seen_by_a_new_client(server, first, blind):
    server.flush()
    granted_to_another(blind([server]), first)


def test_a_replica_that_was_promoted(make_cluster, proxy, make_client):
    master, replica = make_cluster(2, users=[FEW], bootstrapped=False).nodes
    relay = proxy(master)
    url = "redis://few:p@" + relay.url.split("://")[1]
    make_client([url], **dict(GUARDED, guard="bootstrap"))
    first = make_client([url], **GUARDED).lock()
    replica.replica_of(master)
    master.command("REPLICAOF", "NO", "ONE")
    replica.command("REPLICAOF", "NO", "ONE")  # it has the marker, and not what comes now
    assert first.acquire(0) == OK
    assert replica.get(MARKER) == master.get(MARKER) and replica.get("r") is None
    assert has_lasted(master) and not has_lasted(replica)
    relay.lead_to(replica)
    master.kill_clients()
    granted_to_another(make_client([url], **GUARDED), first)


def test_a_server_whose_scripts_are_flushed_gets_another_name(servers, blind):
    """For clients that connect then; a holder goes on, and no longer counts it under the old one."""
    client = blind(servers)
    lock = client.lock()
    assert lock.acquire(0) == OK
    held_everywhere(lock)
    before = name_in_marker(servers[0])
    servers[0].command("SCRIPT", "FLUSH")
    blind(servers)
    assert name_in_marker(servers[0]) != before and has_lasted(servers[0])
    assert lock.extend() == OK and lock.state == HELD
    spin(client, lambda: client.describe()["nodes"][0]["connects"] == 2 and client.settled(), what="connected again")
    servers[1].stop()
    assert lock.extend() == NO_QUORUM, lock.message
    assert "quarantined" in client.describe()["nodes"][0]["why"]
    servers[1].cont()


@pytest.mark.parametrize("extend", ["extend", "expire", "renew"])
def test_nothing_is_extended_under_a_name_that_is_gone(servers, blind, extend):
    client = blind(servers, ttl_ms=2000, node_timeout_ms=400)
    lock = client.lock(**({"renew": "true"} if extend == "renew" else {}))
    assert lock.acquire(0) == OK
    for server in servers:
        server.set(MARKER, server.get(MARKER).replace(b" 0 3 ", b" 1 3 "))  # as if somebody had registered it
    if extend == "extend":
        lock.extend()
    elif extend == "expire":
        lock.expire(1900)
    spin(client, lambda: all(node["connects"] >= 2 for node in client.describe()["nodes"]), 20, "connected again")
    events = [event["detail"] for event in client.events() if event["event"] == "node_down"]
    assert sum("MARKER has changed" in text for text in events) == 3, events


def test_a_server_behind_two_addresses_votes_once(server, proxy, make_client):
    relay = proxy(server)
    urls = [server.url_with("few", "p"), "redis://few:p@" + relay.url.split("://")[1]]
    make_client(urls, **dict(GUARDED, guard="bootstrap"))
    lock = make_client(urls, **GUARDED).lock()
    assert lock.acquire(0) != OK and "the same server as" in lock.message, lock.message


def test_a_server_that_becomes_a_replica_is_noticed(servers, make_cluster, blind):
    """It has the same marker, takes writes and stays connected: only its role gives it away."""
    masters = make_cluster(3).nodes
    client = blind(servers, ttl_ms=1000, node_timeout_ms=250)
    lock = client.lock()
    assert lock.acquire(0) == OK and lock.release() == OK
    for server, master in zip(servers, masters):
        master.set(MARKER, server.get(MARKER))
        server.config_set("replica-read-only", "no")
        server.replica_of(master)

    def refused():
        status = lock.acquire(0)
        if status == OK:
            lock.release()
        return status == rl.REFUSED_CONFIG

    spin(client, refused, 30, "the nodes are refused")
    assert lock.message.count("a replica") >= 2, lock.message


def test_a_replica_is_refused(make_cluster, make_client):
    master, replica = make_cluster(2, users=[FEW], bootstrapped=False).nodes
    replica.replica_of(master)
    lock = make_client([replica.url_with("few", "p")], **GUARDED).lock()
    assert lock.acquire(0) == rl.REFUSED_CONFIG and "a replica" in lock.message, lock.message


@pytest.mark.parametrize("guard", ["off", "uptime", "external"])
def test_without_the_marker_info_is_needed(server, make_client, guard):
    lock = make_client([server.url_with("few", "p")], **dict(GUARDED, guard=guard)).lock()
    assert lock.acquire(0) == rl.REFUSED_CONFIG and "'info'" in lock.message, lock.message


@pytest.mark.parametrize("rules, words", [
    (["-time"], "it forbids INFO and also the guard's marker"),
    (["resetkeys", "~r", "~libredlock:proof:*"], "it forbids INFO and also the guard's marker"),
    (["-get"], "(GET)"),  # the scripts need it, too
])
def test_where_info_and_the_marker_are_forbidden(server, make_client, rules, words):
    server.command("ACL", "SETUSER", "few", *rules)
    lock = make_client([server.url_with("few", "p")], **GUARDED).lock()
    assert lock.acquire(0) == rl.REFUSED_CONFIG, lock.message
    assert words in lock.message, lock.message
    assert server.get(MARKER) is None


@pytest.mark.parametrize("hello", [HELLO_OF_6, b"-ERR unknown command 'HELLO'\r\n"], ids=["6.2", "5"])
def test_before_version_7_info_is_needed(make_client, fake_server, hello):
    """There scripts that were loaded are on replicas and in the append-only file, too."""
    fake = fake_server({"HELLO": hello, "INFO": b"-NOPERM this user has no permissions to run the 'info' command\r\n"})
    lock = make_client([fake.url], **GUARDED).lock()
    assert lock.acquire(0) == rl.REFUSED_CONFIG
    assert "it forbids INFO, which is needed before version 7" in lock.message, lock.message
    assert fake.count("SET") == 0


def test_where_script_exists_is_forbidden(server, blind):
    blind([server])
    server.command("ACL", "SETUSER", "few", "-script|exists")
    lock = blind([server]).lock()
    assert lock.acquire(0) == rl.REFUSED_CONFIG and "script|exists" in lock.message, lock.message


def test_what_joins_the_set_up_is_granted_without_another_try(server, blind, proxy, make_client):
    """It is asked again, and finds its own key."""
    blind([server])
    before = server.calls("set")
    server.command("ACL", "SETUSER", "default", "-info")
    address = proxy(server, accepting=False)
    lock = make_client([address.url], settle=False, **GUARDED).lock()
    assert lock.start(rl.ACQUIRE, 0) == OK
    address.open()
    assert finish(lock) == OK, lock.message
    server.command("ACL", "SETUSER", "default", "+info")
    assert server.calls("set") == before + 2, "no SET joined the set-up"


def test_a_fenced_lock(servers, blind):
    client = blind(servers, fence="true")
    lock, numbers = client.lock(), []
    for _ in range(3):
        assert lock.acquire(0) == OK, lock.message
        numbers.append(lock.fence)
        assert lock.release() == OK
    assert numbers == sorted(set(numbers)) and numbers[0] > 0


def test_the_user_may_not_use_info(server):
    """Else the tests above would show nothing."""
    with pytest.raises(ReplyError, match="NOPERM"):
        connection = server.connect()
        connection.command("AUTH", "few", "p")
        connection.command("INFO")


def test_a_marker_that_is_raised_is_the_same_one(servers, make_client):
    urls = [server.url_with("few", "p") for server in servers]
    options = dict(GUARDED, max_ttl_ms="auto")
    make_client(urls, **dict(options, guard="bootstrap"))
    client = make_client(urls, **options)
    lock = client.lock(renew="true")
    assert lock.acquire(0) == OK
    longer = make_client(urls, **dict(options, ttl_ms=20000)).lock("s")
    assert longer.acquire(10000) == OK, longer.message
    assert lock.extend() == OK, lock.message
    assert [event for event in client.events() if event["event"] == "node_down"] == []
    eventually(lambda: all(b" 20000 20000" in server.get(MARKER) for server in servers), 10)

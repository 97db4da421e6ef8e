"""Servers that forbid what the library needs, and the words in which they say so."""
import re
from pathlib import Path

import pytest

import rl
from common import occupy
from helpers import Call, held_everywhere, spin
from rl import BUSY, HELD, OK, REFUSED_CONFIG
from testing import CLOSE, bulk, eventually
from testing.wait import in_time


@pytest.fixture
def allow(nodes):
    """allow(rule...) -> the URLs of the nodes for a user with all rights but for these rules."""
    def make(*rules):
        for node in nodes:
            node.command("ACL", "SETUSER", "few", "on", ">p", "~*", "+@all", *rules)
        return [node.url_with("few", "p") for node in nodes]

    return make


@pytest.mark.parametrize("command", ["get", "pttl", "pexpire", "del", "eval", "evalsha"])
def test_server_that_denies_scripts_is_refused_by_command(nodes, allow, make_client, command):
    lock = make_client(allow("-" + command)).lock()
    assert lock.acquire(5000) == REFUSED_CONFIG
    assert command in lock.message.lower()
    nodes.no_keys()


def documented(nodes, *kinds):
    """The URLs of the nodes for the user of docs/redlock.md, with what its table adds for these kinds of lock."""
    text = (Path(__file__).parents[2] / "docs/redlock.md").read_text()
    name, password, rules = re.search(r"^    user (\w+) on >(\w+) (.*)$", text, re.MULTILINE).groups()
    for kind in kinds:
        rules += " " + re.search(rf"^\| \[`?{kind}`?\]\(.*\) \| `(.*)` \|$", text, re.MULTILINE).group(1)
    for node in nodes:
        node.command("ACL", "SETUSER", name, "reset", "on", ">" + password, *rules.split())
        node.command("ACL", "LOG", "RESET")
    return [node.url_with(name, password) for node in nodes]


def test_the_documented_permissions_suffice(nodes, make_client):
    """The ACL log has no denial, whatever a client does."""
    urls = documented(nodes)
    client = make_client(urls, key_prefix="lock:", client_name="me", holder_info="true")
    for options in {}, {"fence": "true"}:
        lock = client.lock(**options)
        assert lock.acquire() == OK, lock.message
        assert lock.extend() == OK and lock.expire(8000) == OK
        assert lock.release() == OK
        lock.start(rl.INSPECT)
        assert lock.wait() == OK and lock.said("NOPERM") == 0
        assert lock.remove() == OK
    assert lock.acquire() == OK
    waiter = make_client(urls, key_prefix="lock:")
    waiting = Call(waiter.lock(fence="true").acquire, 60000)
    eventually(lambda: any(row.get("sub") == "1" for node in nodes for row in node.clients()), 20, "it listens")
    assert lock.release() == OK and waiting.join() == OK
    assert [event for event in waiter.events() + client.events() if event["event"] == "warning"] == []
    assert [node.command("ACL", "LOG") for node in nodes] == [[]] * 5


@pytest.mark.parametrize("kinds, resources", [
    (["--shared"], ["r"]), (["several resources"], ["a", "b"]), (["--shared", "several resources"], ["a", "b"]),
], ids=["shared", "several", "both"])
def test_the_documented_permissions_of_a_kind_suffice(nodes, make_client, kinds, resources):
    urls = documented(nodes, *kinds)
    client = make_client(urls, key_prefix="lock:", holder_info="true", ttl_ms=30000)
    lock = client.lock(*resources)
    assert lock.acquire() == OK, lock.message
    held_everywhere(lock)
    if "--shared" in kinds:  # the writer becomes a reader, and another comes in
        assert lock.set("shared", "true") == OK and lock.extend() == OK, lock.message
        held_everywhere(lock)
        other = client.lock(*resources, shared="true")
        assert other.acquire(20000) == OK and other.release() == OK, other.message
    assert lock.extend() == OK and lock.expire(8000) == OK, lock.message
    for resource in resources:
        look = client.lock(resource)
        look.start(rl.INSPECT)
        assert look.wait() == BUSY and look.said("NOPERM") == 0, look.message
    waiting = Call(make_client(urls, key_prefix="lock:").lock(*resources).acquire, 60000)
    eventually(lambda: any(row.get("sub") == "1" for node in nodes for row in node.clients()), 20, "it listens")
    assert lock.release() == OK and waiting.join() == OK
    assert lock.remove() == OK
    assert [event for event in client.events() if event["event"] == "warning"] == []
    assert [node.command("ACL", "LOG") for node in nodes] == [[]] * 5


def test_the_documented_permissions_of_permits_suffice(nodes, make_client):
    urls, permits = documented(nodes, "--permits"), {"permits": "2"}
    client = make_client(urls, key_prefix="lock:", holder_info="true", ttl_ms=30000)
    locks = [client.lock("r", **permits) for _ in range(2)]
    for lock in locks:
        assert lock.acquire(20000) == OK, lock.message
        held_everywhere(lock)
        assert lock.extend() == OK and lock.expire(8000) == OK, lock.message
    waiting = Call(make_client(urls, key_prefix="lock:").lock("r", **permits).acquire, 60000)
    eventually(lambda: any(row.get("sub") == "1" for node in nodes for row in node.clients()), 20, "it listens")
    assert locks[1].release() == OK and waiting.join() == OK
    assert locks[0].remove() == OK
    assert [event for event in client.events() if event["event"] == "warning"] == []
    assert [node.command("ACL", "LOG") for node in nodes] == [[]] * 5


def test_the_documented_permissions_of_a_hash_suffice(nodes, make_client):
    urls = documented(nodes, "--layout hash")
    client = make_client(urls, key_prefix="lock:", holder_info="true", ttl_ms=30000, layout="hash")
    lock = client.lock("r")
    assert lock.acquire(20000) == OK, lock.message
    held_everywhere(lock)
    assert lock.extend() == OK and lock.expire(8000) == OK, lock.message
    look = client.lock("r")
    look.start(rl.INSPECT)
    assert look.wait() == BUSY and (look.holder, look.said("NOPERM")) == (lock.token, 0), look.message
    waiting = Call(make_client(urls, key_prefix="lock:", layout="hash").lock("r").acquire, 60000)
    eventually(lambda: any(row.get("sub") == "1" for node in nodes for row in node.clients()), 20, "it listens")
    assert lock.release() == OK and waiting.join() == OK
    assert lock.remove() == OK
    assert [event for event in client.events() if event["event"] == "warning"] == []
    assert [node.command("ACL", "LOG") for node in nodes] == [[]] * 5


def test_scripts_are_proved_on_no_key_of_the_user(nodes, allow, make_client):
    urls = allow("resetkeys", "~app:*", "~libredlock:m")
    assert make_client(urls).lock("app:r").acquire() == OK
    assert make_client(urls, key_prefix="app:").lock("q").acquire() == OK


def test_an_error_in_a_script_is_an_error(nodes, allow, make_client):
    """Not 'nothing to delete' and 'the token is gone'; and the deletes are sent again once they are allowed."""
    lock = make_client(allow(), ttl_ms=30000).lock()
    assert lock.acquire() == OK
    held_everywhere(lock)
    allow("-pttl", "-del")  # of the scripts alone: the guard does without

    def refusals():
        return lock.said("can't run this command") + lock.said("ACL failure in script")  # Redis, Valkey

    in_time(lock.extend() == REFUSED_CONFIG, lock.message)
    assert lock.state == HELD and refusals() >= 3
    assert lock.release() == OK  # it was held until now; the message says what is left
    spin(lock.client, lambda: refusals() >= 3, what="the nodes' words")
    assert nodes.keys() == {b"r": [0, 1, 2, 3, 4]}
    allow("+pttl", "+del")
    spin(lock.client, lambda: not nodes.keys(), 20, "the deletes are sent again")


def test_status_of_a_node_that_forbids_pttl_says_so(nodes, allow, make_client):
    lock = make_client(allow()).lock()
    occupy(nodes)
    allow("-pttl")
    lock.start(rl.INSPECT)
    assert lock.wait() == REFUSED_CONFIG
    assert "pttl" in lock.answer(0) and "in time" not in lock.message


def test_error_sent_before_the_server_closes_is_reported(make_client, fake_server):
    """As protected mode and a server with too many clients do."""
    words = b"-DENIED Redis is running in protected mode because no password is set\r\n"
    fakes = [fake_server({"HELLO": (words, CLOSE)}) for _ in range(3)]
    lock = make_client([fake.url for fake in fakes], settle=False, outage_wait_ms=500).lock()
    assert lock.acquire(10000) != OK
    assert lock.said("DENIED") >= 2 and "protected-mode no" in lock.message, lock.message  # a majority is enough


def test_server_with_too_many_clients_is_reported(nodes, make_client):
    for node in nodes:
        node.config_set("maxclients", "2")
    first = rl.Client(nodes.urls, **rl.GENEROUS_TIMEOUTS)
    second = make_client(nodes.urls, settle=False, outage_wait_ms=500)
    try:
        assert first.lock().acquire(5000) == OK
        assert second.lock("q").acquire(0) != OK or second.lock("p").acquire(0) != OK
        lock = second.lock("s")
        assert lock.acquire(10000) != OK
        assert lock.said("max number of clients reached") >= 3, lock.message
    finally:
        first.free()
        for node in nodes:
            node.config_set("maxclients", "10000")


@pytest.mark.parametrize("size", [131, 132])
def test_an_error_is_cut_late_and_marked(make_client, fake_server, size):
    text = b"OOM " + b"x" * (size - 5) + b"y"
    fakes = [fake_server({"SET": b"-" + text + b"\r\n"}) for _ in range(3)]
    lock = make_client([fake.url for fake in fakes]).lock()
    lock.acquire(0)
    assert lock.settle() == OK
    answer = lock.answer(0)
    if size < 132:
        assert answer == "error: " + text.decode()
    else:
        assert answer == "error: " + text[:128].decode() + "..."


def test_a_fault_that_may_pass_does_not_end_a_wait(make_client, fake_server):
    def info_later(fake):
        fake.replies["INFO"] = [b"-ERR upstream failure\r\n"] * 3 + [lambda args: bulk(fake.info())]
        return fake.url

    lock = make_client([info_later(fake_server()) for _ in range(3)], settle=False).lock()
    assert lock.acquire(20000) == OK, lock.message


def test_a_key_that_outlives_every_clock_has_no_ttl(nodes, client):
    occupy(nodes, ttl_ms=9000000000000000)
    lock = client.lock()
    assert lock.acquire(0) == BUSY
    assert lock.said("busy (without a TTL)") >= 3


def test_a_node_that_does_not_answer_is_not_asked_without_end(nodes, make_client):
    client = make_client(nodes.urls[:3], node_timeout_ms=20, ttl_ms=30000)
    nodes[0].stop()
    lock = client.lock()

    def overloaded():
        for _ in range(100):
            lock.start(rl.INSPECT)
            lock.cancel()
            client.process()
        return "too many answers outstanding" in lock.answer(0) or "silent" in lock.answer(0)

    try:
        eventually(overloaded, 30)
    finally:
        nodes[0].cont()


def evict(node):
    node.config_set("maxmemory-policy", "allkeys-lru")
    node.config_set("maxmemory", "100mb")


def follow(node):
    """A replica that takes writes: no answer but INFO tells it."""
    node.config_set("replica-read-only", "no")
    node.command("REPLICAOF", "127.0.0.1", 1)


def test_a_memory_that_becomes_full_is_noticed(nodes, make_client):
    """Of nodes that stay connected. The others vote as before."""
    nodes[0].config_set("maxmemory", "20mb")
    client = make_client(nodes.urls, ttl_ms=1000, node_timeout_ms=250)
    lock = client.lock()

    def reasons():
        assert lock.acquire() == OK and lock.release() == OK
        return [row["why"] for row in client.describe()["nodes"]]

    assert reasons() == [""] * 5
    nodes[0].command("SETBIT", "large", 30 * 8 * 1024 * 1024, 1)
    spin(client, lambda: reasons()[0].startswith("its memory is full"), 30)
    assert reasons()[1:] == [""] * 4 and client.describe()["voting"] == 4
    nodes[0].command("DEL", "large")
    spin(client, lambda: reasons()[0] == "", 30)


@pytest.mark.parametrize("change, word", [(evict, "allkeys-lru"), (follow, "replica")])
def test_a_policy_or_role_that_changes_is_noticed(nodes, make_client, change, word):
    """Of nodes that stay connected; they are asked now and then."""
    client = make_client(nodes.urls, ttl_ms=1000, node_timeout_ms=250)
    lock = client.lock()
    assert lock.acquire() == OK and lock.release() == OK
    for node in nodes.nodes[:3]:
        change(node)

    def refused():
        status = lock.acquire(0)
        if status == OK:
            lock.release()
        return status == REFUSED_CONFIG

    spin(client, refused, 30, "the nodes are refused")
    assert lock.said(word) == 3


@pytest.mark.parametrize("count", [1, 3])
def test_a_release_needs_no_right_to_the_keys_of_the_queue(nodes, allow, make_client, count):
    """Each deletes its keys everywhere although its client is not run again: waiting is all that the queue is for."""
    client = make_client(allow("resetkeys", "~job:*", "~libredlock:m")[:count], ttl_ms=30000)
    lock = client.lock("job:a")
    for _ in range(3):
        assert lock.acquire(5000) == OK, lock.message
        held_everywhere(lock)
        assert lock.release() == OK
        eventually(lambda: b"job:a" not in nodes.keys(), 20, "all keys are deleted")
    assert any(event["event"] == "warning" for event in client.events())


@pytest.mark.parametrize("slow", range(3))
@pytest.mark.parametrize("reads", [False, True], ids=["at-first", "after-a-reader"])
def test_a_release_waits_for_the_first_answer_of_the_queue(nodes, proxies, allow, make_client, slow, reads):
    """Whichever node has it: one that denies its keys deletes by another request, which nobody may send later. A reader
    is released without the queue, which proves nothing of that."""
    allow("resetkeys", "~job:*", "~libredlock:m")
    client = make_client([p.url.replace("//", "//few:p@") for p in proxies[:3]], ttl_ms=30000, node_timeout_ms=7500)
    reader, lock = client.lock("job:a", shared="true"), client.lock("job:a")
    if reads:
        assert reader.acquire(5000) == OK, reader.message
        held_everywhere(reader)
        assert (reader.release(), reader.settle()) == (OK, OK)
    assert lock.acquire(5000) == OK, lock.message
    held_everywhere(lock)
    proxies[slow].hold("down")
    releasing = Call(lock.release)
    eventually(proxies[slow].held_bytes, what="the slow node has answered")
    eventually(lambda: len(nodes.keys().get(b"job:a", [])) <= 1, 20, "the others have deleted")
    proxies[slow].go()
    assert releasing.join() == OK
    eventually(lambda: b"job:a" not in nodes.keys(), 20, "all keys are deleted")


@pytest.mark.parametrize("count", [1, 3])
def test_leaving_client_needs_no_access_to_queue_keys(nodes, allow, make_client, count):
    client = make_client(allow("resetkeys", "~job:*", "~libredlock:m")[:count], ttl_ms=30000)
    locks = [client.lock("job:%d" % i) for i in range(3)]
    for lock in locks:
        assert lock.acquire(5000) == OK, lock.message
        held_everywhere(lock)
    assert client.drain(10000) == OK
    assert not any(key.startswith(b"job:") for key in nodes.keys())

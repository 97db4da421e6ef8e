"""The marker of the restart guard: what stands in it, and what a program does where it names something else."""
import pytest

import rl
from guarding import (
    GUARDED,
    MARKER,
    REPLACE,
    bootstrap,
    bootstrapped,
    clock_ms,
    granted_to_another,
    history_of,
    marker_of,
)
from helpers import finish, spin
from rl import NO_QUORUM, OK
from testing import eventually

pytestmark = pytest.mark.new_nodes


@pytest.mark.parametrize("marker, words", [
    ("something else", "libredlock:m is not a marker of this library"),
    ("v2 {run_id} 0 5 0 00 4000 -", "its marker names 5 nodes"),
    ("v2 {run_id} 0 1 0 00 4000 b", "its marker names cluster b"),
    ("v2 {run_id} 0 1 0 00 31536000000 -",
     "allows leases of 8760 h, and max_ttl_ms is 4 s here: give this program the same"),
    ("v2 {run_id} 0 1 0 00 0 -", "is not a marker"),
    ("v2 {run_id} 0 1 0 00", "is not a marker"),
    ("v2 {run_id} 0 1 0 00 4000 - 0000000", "is not a marker"),
    ("v2 {run_id} 0 1 0 00 4000 - 00000000000000000", "is not a marker"),
    ("v2 {run_id} 0 1 0 00 4000 - " + "x" * 100000, "is not a marker"),
], ids=["foreign", "nodes", "cluster", "a year", "0", "cut", "cut in the last field", "last field too long",
        "huge"])
@pytest.mark.parametrize("who", ["acquire", "bootstrap"])
def test_a_marker_that_is_not_ours_is_never_overwritten(server, make_client, marker, words, who):
    marker = marker.format(run_id=server.info("server")["run_id"])
    server.set(MARKER, marker)
    if who == "acquire":
        lock = make_client([server.url], **GUARDED).lock()
        assert lock.acquire(0) == rl.REFUSED_CONFIG and words in lock.message
        assert lock.message.count("correct this program's list") <= 1, lock.message
    else:
        status, nodes = bootstrap([server.url])
        assert status == rl.REFUSED_CONFIG and nodes[0][:2] == ("left_alone", False)
    assert server.get(MARKER) == marker.encode() and server.get("r") is None


def test_fields_of_a_later_version_are_tolerated(server, make_client):
    server.set(MARKER, marker_of(server, history=history_of(server)) + " later 7")
    assert make_client([server.url], **GUARDED).lock().acquire(0) == OK


def test_a_smaller_number_lets_shorter_leases_through(make_cluster, make_client):
    servers = make_cluster(3).nodes
    bootstrapped([server.url for server in servers])
    client = make_client([server.url for server in servers], **dict(GUARDED, max_ttl_ms=8000))
    lock = client.lock()
    assert lock.acquire(0) == OK and lock.release() == OK
    longer = client.lock("s", ttl_ms=8000)
    assert longer.acquire(10000) == rl.REFUSED_CONFIG
    words = "allows 4 s: redlock bootstrap --replace, when all programs have max_ttl_ms = 8000"
    assert longer.said(words) == 3
    assert [server.get("s") for server in servers] == 3 * [None]
    assert lock.acquire(0) == OK and lock.extend(8000) == OK and 0 < lock.validity_ms <= 4000
    assert all(0 < server.command("PTTL", "r") <= 4000 for server in servers)


def test_longer_lease_sent_with_the_set_up_does_not_count(server, make_client, proxy):
    bootstrapped([server.url])
    address = proxy(server, accepting=False)
    client = make_client([address.url], settle=False, **dict(GUARDED, max_ttl_ms=8000, connect_timeout_ms=25000))
    lock = client.lock(ttl_ms=8000)
    assert lock.start(rl.ACQUIRE, 0) == OK
    address.open()
    assert finish(lock) != OK and server.calls("set"), "no SET joined the set-up"
    spin(client, lambda: client.settled() and client.describe()["nodes"][0]["state"] == "ready", 20)
    assert lock.acquire(5000) == rl.REFUSED_CONFIG


def test_lease_of_allowed_length_sent_with_the_set_up_counts(server, make_client, proxy):
    bootstrapped([server.url])
    address = proxy(server, accepting=False)
    client = make_client([address.url], settle=False, **dict(GUARDED, max_ttl_ms=8000, connect_timeout_ms=25000))
    lock, before = client.lock(ttl_ms=4000), server.calls("set")
    assert lock.start(rl.ACQUIRE, 0) == OK
    address.open()
    assert finish(lock) == OK, lock.message
    assert server.calls("set") == before + 1 and server.pttl("r") > 0


def test_a_longer_ttl_is_refused_before_anything_is_sent(server, guarded):
    client = guarded([server])
    lock, before = client.lock(), server.calls("set")
    assert lock.set("ttl_ms", "3600000") == OK
    assert lock.acquire(0) == rl.INVALID
    assert lock.message == ("ttl_ms 3600000 is above max_ttl_ms, 4000: renew a shorter lock, or give all programs of "
                            "these nodes a max_ttl_ms of 3600000 (a node that loses its keys is out for as long)")
    assert server.calls("set") == before


def test_a_program_learns_of_a_raise_while_it_runs(server, make_client):
    bootstrapped([server.url])
    client = make_client([server.url], **dict(GUARDED, max_ttl_ms=8000))
    lock = client.lock()
    assert lock.acquire(0) == OK
    bootstrapped([server.url], REPLACE, max_ttl_ms=8000)
    assert lock.extend(8000) == OK, lock.message
    assert client.describe()["nodes"][0]["connects"] == 1


def test_lowered_number_is_noticed_on_an_open_connection(server, make_client):
    """A lease that is renewed every few milliseconds might end before another connection is ready."""
    bootstrapped([server.url], max_ttl_ms=8000)
    client = make_client([server.url], **dict(GUARDED, max_ttl_ms=8000))
    short, longer = client.lock("short"), client.lock("longer", ttl_ms=8000)
    assert short.acquire(0) == OK and longer.acquire(0) == OK and longer.release() == OK
    bootstrapped([server.url], REPLACE)
    assert longer.acquire(0) == rl.REFUSED_CONFIG and "allows 4 s" in longer.message
    eventually(lambda: server.get("longer") is None, what="its key is deleted")
    assert short.extend() == OK
    assert client.describe()["nodes"][0]["connects"] == 1


def test_the_first_longer_lock_of_an_idle_program_sees_the_raise(make_cluster, make_client):
    urls = make_cluster(3).urls
    bootstrapped(urls)
    idle = make_client(urls, **dict(GUARDED, max_ttl_ms=8000))
    short = idle.lock("short")
    assert short.acquire(0) == OK, short.message
    bootstrapped(urls, REPLACE, max_ttl_ms=8000)
    longer = idle.lock("longer", ttl_ms=8000)
    assert longer.acquire(0) == OK, longer.message


def test_an_extension_is_capped_by_the_number_of_each_node(make_cluster, make_client):
    """A node that loses its keys is kept out for as long as its marker says, and not for longer."""
    servers = make_cluster(3).nodes
    urls = [server.url for server in servers]
    bootstrapped(urls)
    servers[0].set(MARKER, marker_of(servers[0], nodes=3, max_ttl_ms=8000))
    lock = make_client(urls, **dict(GUARDED, max_ttl_ms=8000)).lock()
    assert lock.acquire(0) == OK and lock.extend(8000) == OK, lock.message
    spin(lock.client, lambda: servers[0].pttl("r") > 4000)
    assert all(0 < server.pttl("r") <= 4000 for server in servers[1:])
    assert 0 < lock.validity_ms <= 4000


def test_renewals_are_confirmed_under_a_smaller_number(make_cluster, guarded):
    servers = make_cluster(3).nodes
    client = guarded(servers)
    lock = client.lock(renew="true")
    assert lock.acquire(0) == OK
    bootstrapped([server.url for server in servers], REPLACE, max_ttl_ms=2000)
    before = client.describe()["renewals"]
    spin(client, lambda: client.describe()["renewals"] >= before + 8, 60)
    assert lock.state == rl.HELD and lock.validity_ms < 2000
    assert "at_risk" not in [event["event"] for event in client.events()]


def test_a_lease_goes_on_while_a_larger_number_is_written(make_cluster, make_client):
    """The holder's program was left out when the number was raised: it keeps what it has, and gets nothing new."""
    servers = make_cluster(3).nodes
    urls = [server.url for server in servers]
    bootstrapped(urls)
    client = make_client(urls, **GUARDED)
    lock, other = client.lock(), client.lock("s")
    assert lock.acquire(0) == OK
    bootstrapped(urls, REPLACE, max_ttl_ms=8000)
    assert other.acquire(0) == rl.REFUSED_CONFIG
    eventually(lambda: servers[0].get("s") is None, what="its key is deleted")
    assert lock.extend() == OK and lock.validity_ms > 3000, lock.message
    for server in servers:
        server.kill_clients()
    spin(client, lambda: all(node["state"] == "refused" for node in client.describe()["nodes"]))
    assert lock.extend() == OK and lock.validity_ms > 3000, lock.message


def test_a_program_that_was_left_out_of_a_raise_is_refused(server, make_client):
    bootstrapped([server.url])
    client = make_client([server.url], **GUARDED)
    lock = client.lock()
    assert lock.acquire(0) == OK and lock.release() == OK
    bootstrapped([server.url], REPLACE, max_ttl_ms=8000)
    assert lock.acquire(0) != OK
    spin(client, lambda: client.describe()["nodes"][0]["state"] == "refused")
    assert lock.acquire(5000) == rl.REFUSED_CONFIG
    assert "allows leases of 8 s, and max_ttl_ms is 4 s here: give this program the same" in lock.message


def test_two_numbers_at_once_count_no_longer_lease(make_cluster, make_client):
    """During a roll-out: whoever registers a server writes its own, and nobody counts a lease that is longer."""
    servers = make_cluster(3).nodes
    urls = [server.url for server in servers]
    bootstrapped(urls)
    new, old = make_client(urls, **dict(GUARDED, max_ttl_ms=8000)), make_client(urls, **GUARDED)
    servers[0].flush()
    eventually(lambda: new.lock().acquire(0) != OK or servers[0].get(MARKER), 20)
    spin(new, lambda: servers[0].get(MARKER), 20, "it is registered")
    assert marker_number(servers[0]) == 8000
    lock = old.lock("s")
    assert lock.acquire(5000) == OK, lock.message  # two of three are as they were
    spin(old, lambda: "allows leases of 8 s" in old.describe()["nodes"][0]["why"], 20, "it is refused there")


def marker_number(server):
    return int(server.get(MARKER).split()[6])


def test_another_database_is_another_server(make_cluster, make_client):
    """SWAPDB: both databases have markers."""
    server = make_cluster(1).nodes[0]
    urls = [server.url_with(db=0)], [server.url_with(db=1)]
    for url in urls:
        bootstrapped(url)
    first = make_client(urls[0], **GUARDED).lock()
    assert first.acquire(0) == OK
    server.command("SWAPDB", "0", "1")
    granted_to_another(make_client(urls[0], **GUARDED), first)


def test_marker_from_the_future_is_rewritten(server, make_client):
    """Its clock was 2 h ahead when it booted, and was set right since."""
    now_ms = clock_ms(server)
    server.set(MARKER, marker_of(server, since=now_ms + 7200000))
    lock = make_client([server.url], **GUARDED).lock()
    assert lock.acquire(0) == NO_QUORUM and "quarantined" in lock.message
    since = int(server.get(MARKER).split()[2])
    assert now_ms <= since <= clock_ms(server)
    assert lock.acquire(30000) == OK, lock.message


without_a_text = pytest.mark.parametrize(
    "key", [("LPUSH", MARKER, "x"), ("HSET", MARKER, "a", "b"), ("SET", MARKER, "")], ids=["list", "hash", "empty"])


@without_a_text
@pytest.mark.parametrize("who", ["acquire", "bootstrap"])
def test_a_key_without_a_text_is_no_marker(server, make_client, key, who):
    server.command(*key)
    before = server.command("DUMP", MARKER)
    if who == "acquire":
        lock = make_client([server.url], **GUARDED).lock()
        assert lock.acquire(0) == rl.REFUSED_CONFIG and "libredlock:m is not a marker of this library" in lock.message
    else:
        assert bootstrap([server.url], REPLACE)[0] == rl.REFUSED_CONFIG
    assert server.command("DUMP", MARKER) == before and server.get("r") is None


@without_a_text
def test_a_key_that_somebody_writes_before_the_marker_stays(server, proxy, make_client, key):
    """It was not there when it was read, and is when the script that writes it comes."""
    relay, written = proxy(server), []

    def write():
        server.command(*key)
        written.append(server.command("DUMP", MARKER))

    relay.at("EVAL", MARKER, write, byte=1)
    client = make_client([relay.url], settle=False, **GUARDED)
    words = "libredlock:m is not a marker of this library"
    spin(client, lambda: words in client.describe()["nodes"][0]["why"], 20)
    assert [server.command("DUMP", MARKER)] == written


@pytest.mark.parametrize("who", ["acquire", "bootstrap"])
def test_a_marker_that_somebody_writes_first_stands(make_cluster, proxy, make_client, who):
    """Two register a server at once: both go by the marker that was first."""
    server = make_cluster(1, bootstrapped=False).nodes[0]
    relay, first = proxy(server), marker_of(server, nonce="ffff")
    relay.at("EVAL", MARKER, lambda: server.set(MARKER, first), byte=1)
    if who == "acquire":
        lock = make_client([relay.url], settle=False, **GUARDED).lock()
        assert lock.acquire(5000) == OK, lock.message
    else:
        assert bootstrap([relay.url]) == (OK, [("nothing", True, 4000, "votes")])
    assert server.get(MARKER) == first.encode()


def test_another_key_in_place_of_the_marker_is_refused(server, guarded):
    client = guarded([server])
    server.command("DEL", MARKER)
    server.command("HSET", MARKER, "a", "b")
    before = server.command("DUMP", MARKER)
    lock = client.lock()
    assert lock.acquire(0) == NO_QUORUM and "may have lost keys" in lock.message
    spin(client, lambda: client.describe()["nodes"][0]["state"] == "refused")
    assert lock.acquire(5000) == rl.REFUSED_CONFIG and "libredlock:m is not a marker of this library" in lock.message
    assert server.command("DUMP", MARKER) == before

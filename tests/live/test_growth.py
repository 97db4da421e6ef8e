"""max_ttl_ms = auto: the nodes keep the longest TTL that was used, and agree on a longer one before it is used."""
import pytest

import rl
from guarding import MARKER
from helpers import spin
from queueing import QUEUE
from rl import BUSY, HELD, NO_QUORUM, OK
from testing import eventually

FLOOR_MS = 10000  # what a node that has lost its keys is kept from voting for, at least
HOUR_MS = 3600000
HALF_MS = HOUR_MS // 2
AUTO = dict(guard="marker", ttl_ms=FLOOR_MS, node_timeout_ms="auto", min_validity_ms="auto")


def marker_of(server):
    """(quarantine, max_ttl, agreed) in ms."""
    words = server.get(MARKER).decode().split(" ")
    assert words[0] == "v1" and words[1] == server.info("server")["run_id"] and words[5] == "auto", words
    return tuple(map(int, words[6:]))


def markers(servers):
    return [marker_of(server) for server in servers]


def bootstrap(servers, make_client):
    make_client([server.url for server in servers], guard="bootstrap")


def client_of(servers, make_client, **options):
    return make_client([server.url for server in servers], **dict(AUTO, **options))


@pytest.fixture
def three(make_cluster, make_client):
    servers = make_cluster(3).nodes
    bootstrap(servers, make_client)
    assert markers(servers) == 3 * [(FLOOR_MS, FLOOR_MS, FLOOR_MS)]
    return servers


@pytest.mark.parametrize("count", [1, 3])
def test_new_servers_vote_by_themselves_within_the_default_wait(make_cluster, make_client, count):
    servers = make_cluster(count).nodes
    client = client_of(servers, make_client)
    lock = client.lock()
    lock.start(rl.ACQUIRE, 15000)
    spin(client, lambda: "quarantined for another" in lock.message, what="it says why it waits")
    assert "redlock bootstrap ends it if no lock is live" in lock.message
    assert lock.wait(20000) == OK, lock.message
    assert markers(servers) == count * [(FLOOR_MS, FLOOR_MS, FLOOR_MS)]


def test_an_hour_just_works(three, make_client):
    lock = client_of(three, make_client).lock(ttl_ms=HOUR_MS)
    assert lock.acquire(0) == OK, lock.message
    assert lock.validity_ms > HOUR_MS * 9 // 10
    eventually(lambda: markers(three) == 3 * [(FLOOR_MS, HOUR_MS, HOUR_MS)])
    assert lock.release() == OK
    other = client_of(three, make_client, ttl_ms=HOUR_MS)
    assert other.lock().acquire(0) == OK, "another client reads what was agreed"


def test_an_extension_by_half_an_hour_just_works(three, make_client):
    lock = client_of(three, make_client).lock()
    assert lock.acquire(0) == OK
    assert lock.extend(HALF_MS) == OK, lock.message
    assert lock.validity_ms > HALF_MS * 9 // 10


def test_the_quarantine_is_that_of_the_longest_lease(three, make_client):
    """A client that has never heard of the hour registers the server that has lost it."""
    first = client_of(three, make_client).lock(ttl_ms=HOUR_MS)
    assert first.acquire(0) == OK
    eventually(lambda: markers(three) == 3 * [(FLOOR_MS, HOUR_MS, HOUR_MS)])
    for server in three[:2]:
        server.restart(empty=True)
    second = client_of(three, make_client).lock()
    assert second.acquire(FLOOR_MS + 3000) in (BUSY, NO_QUORUM)
    assert second.message.count("quarantined for another 3") == 2, second.message  # 36xx s
    assert markers(three) == 2 * [(HOUR_MS, HOUR_MS, HOUR_MS)] + [(FLOOR_MS, HOUR_MS, HOUR_MS)]


def test_a_client_that_knew_the_old_marker_notices(three, make_client):
    """Its connections are open; the marker is raised by somebody else, and keys are lost then."""
    old, new = client_of(three, make_client), client_of(three, make_client)
    lock = old.lock("other")
    assert lock.acquire(0) == OK and lock.release() == OK
    first = new.lock(ttl_ms=HOUR_MS)
    assert first.acquire(0) == OK
    for server in three[:2]:
        server.flush()
    second = old.lock()
    assert second.acquire(FLOOR_MS + 3000) in (BUSY, NO_QUORUM)
    assert second.message.count("quarantined for another 3") == 2, second.message


def test_what_was_read_before_the_keys_were_lost_does_not_count(three, make_client):
    """The old client registers two servers and knows the marker of the third from before it was raised."""
    old, new = client_of(three, make_client), client_of(three, make_client)
    assert new.lock(ttl_ms=HOUR_MS).acquire(0) == OK
    eventually(lambda: markers(three) == 3 * [(FLOOR_MS, HOUR_MS, HOUR_MS)])
    new.free()
    for server in three[:2]:
        server.restart(empty=True)
    spin(old, lambda: all(server.get(MARKER) and marker_of(server)[0] for server in three))
    assert markers(three) == 2 * [(HOUR_MS, HOUR_MS, HOUR_MS)] + [(FLOOR_MS, HOUR_MS, HOUR_MS)]


def test_a_longer_ttl_needs_all_nodes_once(three, make_client):
    client = client_of(three, make_client)
    three[2].kill()
    short, long = client.lock(), client.lock("long", ttl_ms=HOUR_MS)
    eventually(lambda: short.acquire(0) == OK)
    assert long.acquire(0) == NO_QUORUM
    assert "a ttl_ms of 3600000 has to be written to all nodes first" in long.message
    assert "these cannot be asked: %s" % three[2].name in long.message
    assert not any(server.get("long") for server in three[:2]), "nothing was set"
    three[2].start()
    assert long.acquire(30000) == OK, long.message


def test_an_extension_that_needs_all_nodes_leaves_the_lease_as_it_was(three, make_client):
    lock = client_of(three, make_client).lock()
    assert lock.acquire(0) == OK
    three[2].kill()
    eventually(lambda: lock.extend(HALF_MS) == NO_QUORUM)
    assert lock.state == HELD and lock.validity_ms < FLOOR_MS
    assert all(0 < server.pttl("r") <= FLOOR_MS for server in three[:2])
    assert lock.extend() == OK


def test_a_release_tells_who_waits_whatever_ttl_its_client_asks_for(three, make_client):
    held = client_of(three, make_client).lock()
    assert held.acquire(0) == OK
    token = held.token
    held.detach()
    waiter = client_of(three, make_client)
    waiting = waiter.lock()
    assert waiting.start(rl.ACQUIRE, 60000) == OK
    home = spin(waiter, lambda: next((node for node in three if node.command("EXISTS", QUEUE)), None))
    told = home.calls("publish")
    releaser = client_of(three, make_client, ttl_ms=HOUR_MS).lock()
    assert releaser.adopt(token) == OK
    assert releaser.release() == OK
    assert waiting.wait(20000) == OK, waiting.message
    assert home.calls("publish") == told + 1


def test_new_servers_wait_for_all_of_them(make_cluster, make_client):
    """Whether the third has kept a marker, nobody knows."""
    servers = make_cluster(3).nodes
    servers[2].kill()
    lock = client_of(servers, make_client).lock()
    assert lock.acquire(0) == NO_QUORUM
    assert "it is new or has lost its keys; the markers of the others are needed: %s" % servers[2].name in lock.message
    assert markers(servers[:2]) == 2 * [(0, 0, 0)]
    servers[2].start()
    assert lock.acquire(30000) == OK, lock.message
    assert markers(servers) == 3 * [(FLOOR_MS, FLOOR_MS, FLOOR_MS)]


def test_one_complete_marker_is_enough(three, make_client):
    first = client_of(three, make_client).lock(ttl_ms=HOUR_MS)
    assert first.acquire(0) == OK and first.release() == OK
    eventually(lambda: markers(three) == 3 * [(FLOOR_MS, HOUR_MS, HOUR_MS)])
    three[1].kill()
    three[0].restart(empty=True)
    spin(client_of(three, make_client), lambda: marker_of(three[0]) == (HOUR_MS, HOUR_MS, HOUR_MS))


def test_clients_that_come_at_once_agree_on_the_longest(three, make_client):
    ttls = [20000, 40000, 30000, HOUR_MS, 50000]
    locks = [client_of(three, make_client).lock("r%d" % ttl, ttl_ms=ttl) for ttl in ttls]
    for lock in locks:
        assert lock.start(rl.ACQUIRE, 15000) == OK
    assert [lock.wait(20000) for lock in locks] == [OK] * len(ttls), [lock.message for lock in locks]
    eventually(lambda: markers(three) == 3 * [(FLOOR_MS, HOUR_MS, HOUR_MS)])


def test_bootstrap_makes_the_longest_ttl_forgotten(three, make_client):
    lock = client_of(three, make_client).lock(ttl_ms=HOUR_MS)
    assert lock.acquire(0) == OK and lock.release() == OK
    bootstrap(three, make_client)
    assert markers(three) == 3 * [(FLOOR_MS, FLOOR_MS, FLOOR_MS)]
    assert client_of(three, make_client).lock().acquire(0) == OK

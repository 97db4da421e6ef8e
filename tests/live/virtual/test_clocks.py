"""Keys end by the server's clock: what a step of that clock means with the restart guard."""
import re

import pytest

from guarding import GUARDED, MAX_TTL_MS, bootstrapped, granted_to_another
from helpers import held_everywhere, spin
from rl import BUSY, HELD, NO_QUORUM, OK, Loss

pytestmark = pytest.mark.new_nodes


@pytest.fixture
def server(make_clocked):
    return make_clocked(1)[0]


def taken_once(client):
    lock = client.lock("other")
    assert lock.acquire(0) == OK, lock.message
    assert lock.release() == OK
    return client


def test_step_forward_ends_leases_without_granting_others(server, guarded):
    first, second = guarded([server]).lock(), taken_once(guarded([server]))
    assert first.acquire(0) == OK
    server.step(5)
    assert server.get("r") is None, "its key has expired"
    granted_to_another(second, first)


def test_a_step_is_seen_when_a_connection_is_made_again(server, guarded):
    first, second = guarded([server]).lock(), taken_once(guarded([server]))
    assert first.acquire(0) == OK
    server.step(5)
    server.kill_clients()
    spin(second, lambda: second.describe()["nodes"][0]["connects"] == 2 and second.settled(), what="connected again")
    granted_to_another(second, first)


def test_the_words_name_the_step(server, guarded):
    client = taken_once(guarded([server]))
    server.step(5)
    lock = client.lock()
    assert lock.acquire(0) == NO_QUORUM
    assert re.search(r"its clock was stepped forward by [5-9]\.\d s", lock.message), lock.message  # till it is seen
    assert "stepped forward" in client.describe()["nodes"][0]["why"] and not client.describe()["nodes"][0]["votes"]
    assert any("stepped forward" in event["detail"] for event in client.events() if event["event"] == "warning")


def test_a_wait_for_clocks_advises_no_bootstrap(make_clocked, guarded):
    """It would end nothing: no marker says that a clock was stepped."""
    servers = make_clocked(3)
    client = taken_once(guarded(servers))
    for server in servers[:2]:
        server.step(5)
    lock = client.lock()
    assert lock.acquire(15000) == OK, lock.message
    (told,) = [event["detail"] for event in client.events() if event["event"] == "warning" and "resource" in event]
    assert re.fullmatch(r"waits: 2 of 3 nodes are quarantined because of clocks, and do not vote for another "
                        r"\d\.\d s", told), told


@pytest.mark.parametrize("seconds", [-60, 0.02])
def test_a_step_that_ends_no_lease_changes_nothing(server, guarded, seconds):
    client = taken_once(guarded([server]))
    server.step(seconds)
    lock = client.lock()
    assert lock.acquire(0) == OK and lock.release() == OK
    assert client.describe()["nodes"][0]["votes"]


def test_a_client_with_long_leases_notices_a_short_step(server, make_client):
    """What ended early is another client's lease, which may be short."""
    bootstrapped([server.url], max_ttl_ms=600000)
    client = taken_once(make_client([server.url], **dict(GUARDED, max_ttl_ms=600000, ttl_ms=300000)))
    server.step(2)
    lock = client.lock()
    assert lock.acquire(0) == NO_QUORUM
    assert re.search(r"its clock was stepped forward by [2-4]\.\d s", lock.message), lock.message


def test_a_pause_of_this_machine_quarantines_no_node(make_clocked, guarded):
    """Its clock stood still, so all servers seem to be stepped by one amount."""
    servers = make_clocked(3)
    client = taken_once(guarded(servers))
    for server in servers:
        server.step(0.4)
    lock = client.lock()
    assert lock.acquire(2000) == OK, lock.message
    spin(client, lambda: all(node["votes"] for node in client.describe()["nodes"]), 2)
    assert any("this machine may have stood still" in event["detail"] for event in client.events())


@pytest.mark.parametrize("steps", [(0.4, 0.4, 0), (0.4, 0.9, 0.4), (1.4, 1.4, 1.4)],
                         ids=["one did not", "one did by more", "by more than 1 s"])
def test_nodes_that_are_stepped_otherwise_are_quarantined(make_clocked, guarded, steps):
    servers = make_clocked(3)
    client = guarded(servers)
    lock = client.lock()
    assert lock.acquire(0) == OK
    held_everywhere(lock)
    assert lock.release() == OK
    for server, seconds in zip(servers, steps):
        server.step(seconds)
    assert lock.acquire(0) == NO_QUORUM, lock.message
    spin(client, lambda: sum(not node["votes"] for node in client.describe()["nodes"]) == sum(s > 0 for s in steps), 2)
    assert not any("this machine" in event["detail"] for event in client.events())


def test_a_holder_whose_leases_have_ended_has_lost_its_lock(make_clocked, guarded):
    servers = make_clocked(3)
    client = taken_once(guarded(servers))
    held = client.lock()
    assert held.acquire(0) == OK
    held_everywhere(held)
    for server in servers[:2]:
        server.step(5)
    assert client.lock("other").acquire(0) == NO_QUORUM
    assert held.state != HELD and held.loss == Loss.CLOCK and held.validity_ms == 0
    assert "the clock was stepped forward on 2 of 3 nodes" in held.message
    told = [event for event in client.events() if event["event"] == "lost"]
    assert [event["reason"] for event in told] == ["clock"]


def test_leases_that_a_step_has_left_count_for_what_is_left(make_clocked, guarded):
    servers = make_clocked(3)
    client = taken_once(guarded(servers))
    held = client.lock()
    assert held.acquire(0) == OK
    held_everywhere(held)
    for server in servers:
        server.step(2)
    client.lock("other").acquire(0)
    assert held.state == HELD and 0 < held.validity_ms < MAX_TTL_MS - 2000
    assert held.extend() == OK and held.extend() == OK
    assert held.validity_ms > MAX_TTL_MS - 2000, "an extension counts from then on"


def test_a_node_that_is_ahead_is_not_granted_to_a_new_client(make_clocked, guarded):
    """It has no earlier time to compare with, but the other nodes'."""
    servers = make_clocked(3)
    first = guarded(servers).lock()
    servers[2].stop()
    assert first.acquire(0) == OK
    servers[2].cont()
    servers[2].flush()
    servers[0].step(60)
    assert servers[0].get("r") is None and servers[1].get("r")
    client = guarded(servers)
    second = client.lock()
    assert second.acquire(0) in (BUSY, NO_QUORUM) and first.validity_ms > 0
    ahead = client.describe()["nodes"][0]
    assert not ahead["votes"] and "its clock is more than 1 s ahead of the other nodes'" in ahead["why"]


def test_the_rest_grants_without_a_node_that_is_ahead(make_clocked, guarded):
    servers = make_clocked(3)
    servers[0].step(60)
    client = guarded(servers)
    lock = client.lock()
    assert lock.acquire(0) == OK, lock.message
    assert [server.get("r") is None for server in servers] == [True, False, False]
    spin(client, lambda: client.describe()["nodes"][0]["votes"], 30, "every lease that it may have granted is over")
    again = client.lock("again")
    assert again.acquire(0) == OK
    spin(client, lambda: servers[0].get("again"))


def test_clock_corrected_after_boot_costs_one_quarantine(make_clocked, make_client):
    """Two hours ahead, as a hardware clock in local time is: the first client writes the marker, NTP sets it right."""
    servers = make_clocked(3, bootstrapped=False)
    urls = [server.url for server in servers]
    for server in servers:
        server.step(7200)
    first = make_client(urls, **GUARDED).lock()
    assert first.acquire(30000) == OK and first.release() == OK, first.message
    for server in servers:
        server.step(-7200)
    late = make_client(urls, **GUARDED).lock()
    assert late.acquire(0) == NO_QUORUM
    assert re.search(r"quarantined.*for another [34]\.\d s", late.message), late.message
    assert late.acquire(30000) == OK and late.release() == OK, late.message
    assert first.acquire(30000) == OK, first.message


def test_what_a_program_saw_outweighs_a_marker_that_is_too_old(server, guarded, proxy):
    """The server has lost its keys, and had a clock that was behind when another program registered it."""
    path = proxy(server)
    first, second = guarded([path]).lock(), taken_once(guarded([path]))
    assert first.acquire(0) == OK
    path.refuse()
    path.drop()
    server.step(-600)
    server.restart(empty=True)
    assert guarded([server]).lock("other").acquire(0) == NO_QUORUM
    server.step(600)
    path.go()
    granted_to_another(second, first)

"""Which programs use the nodes: when a client tells it, for hours, and what it knows of the nodes by then.

The hours are those of the virtual world: a sleep moves its clock, and nobody waits.
"""
import pytest

from helpers import held_everywhere, inspected, lock_once
from rl import OK
from testing import eventually
from world import time

pytestmark = pytest.mark.holder_info

KEY = "libredlock:c:programs"
AGAIN_S, HOUR_S = 600, 3600


def told(node):
    """When it was told last, and what; None: it never was."""
    found = node.command("HGETALL", KEY)
    return (int(found[1].split()[1]), found[0].decode(), found[1].decode().split()[2:]) if found else None


def times_seen(client, node, duration_s, every_s):
    """When it was told, while the client takes a lock that often."""
    times, end_s = [], time.monotonic() + duration_s
    while time.monotonic() < end_s:
        lock_once(client)
        eventually(lambda: told(node))
        times += [told(node)[0]] if told(node)[0] not in times else []
        time.sleep(every_s)
    return times


def test_a_client_tells_it_every_ten_minutes_at_most(nodes, make_client):
    times = times_seen(make_client(nodes.urls), nodes[0], 2 * HOUR_S, 7)
    pauses = [later - earlier for earlier, later in zip(times, times[1:])]
    assert 8 <= len(times) <= 12 and AGAIN_S <= min(pauses) and max(pauses) < AGAIN_S + 120, pauses


def test_a_lock_that_is_renewed_for_hours_tells_it_again(nodes, make_client):
    """Nodes forget after an hour."""
    lock = make_client(nodes.urls, renew="true").lock()
    assert lock.acquire(5000) == OK
    held_everywhere(lock)
    times = []
    for _ in range(4 * 60):
        time.sleep(60)
        times += [told(nodes[0])[0]] if told(nodes[0])[0] not in times else []
    pauses = [later - earlier for earlier, later in zip(times, times[1:])]
    assert len(times) > 4 and AGAIN_S <= min(pauses) and max(pauses) < HOUR_S, pauses


def test_a_client_that_only_looks_tells_nothing(nodes, make_client):
    client = make_client(nodes.urls)
    for _ in range(3):
        inspected(client)
        time.sleep(AGAIN_S)
    assert [told(node) for node in nodes] == [None] * 5


def test_a_client_without_holder_info_tells_nothing_for_hours(nodes, make_client):
    client = make_client(nodes.urls, holder_info="false")
    for _ in range(60):
        lock_once(client)
        time.sleep(180)
    assert [told(node) for node in nodes] == [None] * 5


def test_a_list_has_one_field_whatever_is_down(nodes, make_client):
    nodes[4].kill()
    first = make_client(nodes.urls, client_name="worker")
    lock_once(first)
    eventually(lambda: told(nodes[0]))
    _, field, words = told(nodes[0])
    assert words[3:][-2:] == ["-", nodes[4].name]
    nodes[4].restart()
    nodes.bootstrap()
    second = make_client(nodes.urls, client_name="worker")
    held = second.lock()
    assert held.acquire(5000) == OK
    held_everywhere(held)
    eventually(lambda: told(nodes[4]))
    assert {told(node)[1] for node in nodes} == {field}


def named(client):
    """The others of which the client knows, with what their lists have and lack."""
    return {program["program"]: program.get("differs") for program in client.describe()["programs"]}


def test_a_client_names_who_has_another_list(make_cluster, make_client):
    """The newcomer at once, and who was there before within ten minutes; the same list is no difference."""
    cluster = make_cluster(4, bootstrapped=False)
    a, b, c, d = cluster.nodes
    lists = {"old": [a, b, c], "new": [b, c, d], "twin": [c, b, a]}
    clients = {}
    for name, servers in lists.items():
        cluster.bootstrap(nodes=servers)
        clients[name] = make_client([server.url for server in servers], client_name=name, guard="marker",
                                    max_ttl_ms=45000 if name == "twin" else 30000)
        held = clients[name].lock()
        assert held.acquire(5000) == OK, held.message
        held_everywhere(held)
        assert held.release() == OK
    eventually(lambda: named(clients["new"]) == {"old": {"has": [a.name], "lacks": [d.name]}})
    eventually(lambda: named(clients["twin"]) == {"old": None, "new": {"has": [d.name], "lacks": [a.name]}})
    assert named(clients["old"]) == {}
    time.sleep(AGAIN_S)
    lock_once(clients["old"])
    eventually(lambda: named(clients["old"]) == {"new": {"has": [d.name], "lacks": [a.name]}, "twin": None})
    others = {program["program"]: program for program in clients["old"].describe()["programs"]}
    assert (others["twin"]["max_ttl_ms"], others["twin"]["nodes"]) == (45000, [c.name, b.name, a.name])
    assert AGAIN_S <= others["twin"]["seen_s_ago"] < AGAIN_S + 60

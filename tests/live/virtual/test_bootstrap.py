"""redlock_client_bootstrap: an operator says that no lock is live, or that all programs have another number."""

import re
import time

import pytest

import rl
from guarding import (
    DRY,
    GUARDED,
    MARKER,
    NEW,
    REPLACE,
    YES,
    bootstrap,
    bootstrapped,
    clock_ms,
    did_name,
    history_of,
    marker_of,
)
from helpers import Call, lock_once
from rl import HELD, NO_QUORUM, OK
from testing import eventually

pytestmark = pytest.mark.new_nodes


def test_bootstrap_is_idempotent(make_cluster):
    servers = make_cluster(3, bootstrapped=False).nodes
    urls = [server.url for server in servers]
    for mode in (NEW, YES):
        for server in servers:
            server.flush()
        assert bootstrap(urls, mode | DRY) == (OK, 3 * [("registered", False, 0, "is new or may have lost keys")])
        assert [server.get(MARKER) for server in servers] == 3 * [None]
        assert bootstrap(urls, mode) == (OK, 3 * [("registered", True, 4000, "votes")])
        before = [server.get(MARKER) for server in servers]
        for again in (NEW, YES, REPLACE):
            assert bootstrap(urls, again) == (OK, 3 * [("nothing", True, 4000, "votes")])
        assert [server.get(MARKER) for server in servers] == before


def test_new_is_for_new_deployments_only(make_cluster):
    servers = make_cluster(3, bootstrapped=False).nodes
    urls = [server.url for server in servers]
    servers[2].kill()
    status, nodes = bootstrap(urls, NEW)
    assert status == OK and [node[0] for node in nodes] == ["left_alone", "left_alone", "no_answer"]
    assert [server.get(MARKER) for server in servers[:2]] == [None, None]
    servers[2].start()
    bootstrapped(urls, NEW)
    servers[1].flush()
    status, nodes = bootstrap(urls, NEW)
    assert status == OK and [node[0] for node in nodes] == ["nothing", "left_alone", "nothing"]
    assert servers[1].get(MARKER) is None
    assert [node[0] for node in bootstrap(urls)[1]] == ["nothing", "registered", "nothing"]


def test_new_registers_nothing_beside_a_refused_node(make_cluster):
    servers = make_cluster(3, bootstrapped=False).nodes
    servers[2].replica_of(servers[0])
    status, nodes = bootstrap([server.url for server in servers], NEW)
    assert status == OK and [node[0] for node in nodes] == 3 * ["left_alone"] and "a replica" in nodes[2][3]
    assert [server.get(MARKER) for server in servers] == 3 * [None]


def new_status(urls, **options):
    started = time.monotonic()
    status, nodes = bootstrap(urls, NEW, **options)
    return status, [node[3] for node in nodes], time.monotonic() - started


def test_new_is_content_with_a_majority(make_cluster):
    """That votes, or will: a deployment script does not fail on the day of a replacement."""
    servers = make_cluster(3, bootstrapped=False).nodes
    urls = [server.url for server in servers]
    bootstrapped(urls, max_ttl_ms=60000)
    servers[0].kill()
    assert new_status(urls, max_ttl_ms=60000)[0] == OK
    servers[1].kill()
    status, words, _ = new_status(urls, max_ttl_ms=60000)
    assert status == NO_QUORUM and words[2] == "votes"
    for server in servers[:2]:
        server.start()
    for server in servers:
        server.set(MARKER, marker_of(server, since=clock_ms(server) - 20000, nodes=3, max_ttl_ms=60000))
    status, words, _ = new_status(urls, max_ttl_ms=60000)
    left_s = [int(re.fullmatch(r"votes in (\d+) s", text)[1]) for text in words]
    assert status == OK and all(10 < left <= 41 for left in left_s)
    status, words, _ = new_status(urls, max_ttl_ms=30000)
    assert status == rl.REFUSED_CONFIG and words[0].startswith("allows 1 min and is quarantined for another ")
    servers[0].set(MARKER, "mine")
    servers[1].set(MARKER, marker_of(servers[1], nodes=5, max_ttl_ms=60000))
    status, words, _ = new_status(urls, max_ttl_ms=60000)
    assert status == rl.REFUSED_CONFIG and words[1] == "is registered for 5 nodes"


def test_new_waits_for_another_one_at_work(make_cluster):
    servers = make_cluster(3, bootstrapped=False).nodes
    urls = [server.url for server in servers]
    servers[0].set(MARKER, marker_of(servers[0], nodes=3))
    call = Call(new_status, urls)
    eventually(lambda: all(server.calls("get") for server in servers), what="the first look")
    for server in servers[1:]:
        server.set(MARKER, marker_of(server, nodes=3))
    status, words, _ = call.join()
    assert status == OK and words == 3 * ["votes"]
    servers[1].flush()  # nobody is at work: nothing is written
    status, words, took_s = new_status(urls)
    assert status == OK and words == ["votes", "is new or may have lost keys", "votes"] and 1.9 < took_s < 15
    bootstrap(urls, REPLACE)
    looks = servers[1].calls("hello")
    assert bootstrap(urls, REPLACE)[1][1][0] == "left_alone" and servers[1].calls("hello") == looks + 1
    assert servers[1].get(MARKER) is None


def test_a_quarantined_node_is_registered(server, make_client):
    make_client([server.url], **dict(GUARDED, max_ttl_ms=60000)).lock().acquire(0)
    status, nodes = bootstrap([server.url], NEW, max_ttl_ms=60000)
    assert status == OK and re.fullmatch(r"votes in (\d+ s|1 min)", nodes[0][3])
    status, nodes = bootstrap([server.url], YES | DRY, max_ttl_ms=60000)
    assert status == OK and re.fullmatch(r"is quarantined for another (\d+ s|1 min)", nodes[0][3])
    assert bootstrap([server.url], max_ttl_ms=60000)[1][0][:3] == ("registered", True, 60000)


def test_the_ttl_of_leases_may_be_above_the_number(server):
    """It takes none; a script that names a small number need not name a TTL."""
    assert bootstrap([server.url], max_ttl_ms=3000, ttl_ms=9000) == (OK, [("registered", True, 3000, "votes")])


@pytest.mark.parametrize("marker, words", [
    (dict(max_ttl_ms=1000), "allows 1 s"),
    (dict(max_ttl_ms=3600000), "allows 1 h"),
    (dict(nodes=5), "is registered for 5 nodes"),
    (dict(cluster="b"), "is registered for cluster b"),
])
def test_replace_is_needed_for_a_marker_that_differs(server, make_client, marker, words):
    server.set(MARKER, marker_of(server, **marker))
    before = server.get(MARKER)
    status, nodes = bootstrap([server.url])
    assert status == rl.REFUSED_CONFIG and nodes[0][0] == "left_alone" and nodes[0][3] == words
    assert server.get(MARKER) == before
    assert bootstrap([server.url], REPLACE | DRY)[1][0][0] == "replaced" and server.get(MARKER) == before
    assert bootstrap([server.url], REPLACE) == (OK, [("replaced", True, 4000, "votes")])
    assert make_client([server.url], **GUARDED).lock().acquire(0) == OK


def test_replace_of_the_number_leaves_the_rest_of_the_marker(server):
    """So no client that knows it takes it for a loss; and its number does not depend on the time of the first look."""
    since = clock_ms(server) - 60000
    server.set(MARKER, marker_of(server, since=since, max_ttl_ms=1000))
    assert bootstrap([server.url], REPLACE)[0] == OK
    assert server.get(MARKER).decode() == marker_of(server, since=since, history=history_of(server))


QUARANTINED = [  # what its marker says, the number now; what --replace leaves of it
    (dict(max_ttl_ms=60000), 60000, "is quarantined for another", None),
    (dict(max_ttl_ms=60000), 90000, "allows 1 min and is quarantined for another", 90000),
    (dict(max_ttl_ms=60000), 30000, "allows 1 min and is quarantined for another", None),
    (dict(max_ttl_ms=60000, nodes=5), 60000, "is registered for 5 nodes and is quarantined for another", 60000),
    (dict(max_ttl_ms=60000, cluster="b"), 90000, "is registered for cluster b and is quarantined for another", 90000),
    (dict(max_ttl_ms=60000, nodes=5), 30000, "is registered for 5 nodes and is quarantined for another", None),
]


@pytest.mark.parametrize("marker, max_ttl_ms, words, then", QUARANTINED)
def test_replace_ends_no_quarantine(server, make_client, marker, max_ttl_ms, words, then):
    since = clock_ms(server) - 10000
    server.set(MARKER, marker_of(server, since=since, **marker))
    before = server.get(MARKER)
    status, nodes = bootstrap([server.url], NEW, max_ttl_ms=max_ttl_ms)
    assert server.get(MARKER) == before
    status, nodes = bootstrap([server.url], REPLACE | DRY, max_ttl_ms=max_ttl_ms)
    assert nodes[0][0] == ("replaced" if then else "left_alone") and nodes[0][3].startswith(words)
    status, nodes = bootstrap([server.url], REPLACE, max_ttl_ms=max_ttl_ms)
    differs = max_ttl_ms != 60000 and not then
    assert status == (rl.REFUSED_CONFIG if differs else OK) and not nodes[0][1]
    after = marker_of(server, since=since, max_ttl_ms=then, history=history_of(server)).encode() if then else before
    assert server.get(MARKER) == after


def test_replace_adds_the_history_that_a_marker_lacks(server):
    since = clock_ms(server) - 60000
    server.set(MARKER, marker_of(server, since=since))
    before = server.get(MARKER)
    assert bootstrap([server.url], YES) == (OK, [("nothing", True, 4000, "votes")]) and server.get(MARKER) == before
    assert bootstrap([server.url], REPLACE) == (OK, [("replaced", True, 4000, "votes")])
    assert server.get(MARKER).decode() == marker_of(server, since=since, history=history_of(server))
    assert bootstrap([server.url], REPLACE) == (OK, [("nothing", True, 4000, "votes")])


@pytest.mark.parametrize("max_ttl_ms", [60000, 90000, 30000])
def test_yes_ends_a_quarantine_and_touches_no_number(server, max_ttl_ms):
    server.set(MARKER, marker_of(server, since=clock_ms(server) - 10000, max_ttl_ms=60000))
    status, nodes = bootstrap([server.url], YES, max_ttl_ms=max_ttl_ms)
    assert status == OK and nodes[0][0] == "registered"
    assert server.get(MARKER).decode() == marker_of(server, max_ttl_ms=60000)
    server.set(MARKER, marker_of(server, since=clock_ms(server) - 10000, max_ttl_ms=60000, nodes=5))
    before = server.get(MARKER)
    assert bootstrap([server.url], YES, max_ttl_ms=max_ttl_ms)[0] == rl.REFUSED_CONFIG
    assert server.get(MARKER) == before


@pytest.mark.parametrize("mode, max_ttl_ms", [(REPLACE, 60000), (REPLACE, 20000)])
def test_a_change_of_the_number_lets_no_second_holder_in(make_cluster, make_client, mode, max_ttl_ms):
    """Two of three nodes have just lost the holder's keys."""
    servers = make_cluster(3).nodes
    urls = [server.url for server in servers]
    guarded = dict(GUARDED, max_ttl_ms=30000, ttl_ms=18000)
    bootstrapped(urls, max_ttl_ms=30000)
    holder = make_client(urls, **guarded).lock()
    assert holder.acquire(0) == OK
    for server in servers[:2]:
        server.restart(empty=True)
    assert make_client(urls, **guarded).lock().acquire(0) != OK  # and are registered
    bootstrap(urls, mode, max_ttl_ms=max_ttl_ms)
    second = make_client(urls, **dict(guarded, max_ttl_ms=max_ttl_ms)).lock()
    assert second.acquire(0) != OK and holder.validity_ms > 0


class Planner:
    """A client that shows a plan before it carries that out."""

    def __init__(self, urls, **options):
        self.client = rl.Client(urls, open=False, **dict(GUARDED, **options))

    def __call__(self, mode):
        status = rl.Status(rl.lib.redlock_client_bootstrap(self.client.handle, mode))
        count = rl.lib.redlock_client_node_count(self.client.handle)
        return status, [did_name(rl.lib.redlock_client_bootstrapped(self.client.handle, node, 0))
                        for node in range(count)]


def test_a_call_carries_out_the_plan_that_was_shown(make_cluster):
    servers = make_cluster(4, bootstrapped=False).nodes
    urls = [server.url for server in servers]
    bootstrapped(urls)
    for server in servers[2:]:
        server.flush()
    plan = Planner(urls)
    assert plan(YES | DRY) == (OK, ["nothing", "nothing", "registered", "registered"])
    servers[0].flush()  # shown as voting
    servers[3].restart(empty=True)  # another server than the one that was shown
    assert plan(YES) == (rl.REFUSED_CONFIG, ["left_alone", "nothing", "registered", "left_alone"])
    assert [bool(server.get(MARKER)) for server in servers] == [False, True, True, False]
    assert plan(YES) == (OK, ["registered", "nothing", "nothing", "registered"])  # a plan is carried out once


def test_a_plan_that_no_longer_fits_is_left(make_cluster):
    servers = make_cluster(2, bootstrapped=False).nodes
    urls = [server.url for server in servers]
    plan = Planner(urls)
    servers[1].kill()
    assert plan(YES | DRY) == (NO_QUORUM, ["registered", "no_answer"])
    servers[1].start()
    servers[0].set(MARKER, marker_of(servers[0], since=clock_ms(servers[0]), nodes=2))  # by a program
    assert plan(YES) == (rl.REFUSED_CONFIG, ["left_alone", "left_alone"])
    assert servers[1].get(MARKER) is None


def test_a_plan_is_of_its_mode_and_its_options(server):
    plan = Planner([server.url])
    assert plan(YES | DRY)[1] == plan(NEW | DRY)[1] == ["registered"]
    assert plan(REPLACE) == (OK, ["left_alone"]) and server.get(MARKER) is None
    assert plan(YES | DRY)[1] == ["registered"]
    server.restart(empty=True)
    assert plan.client.set("max_ttl_ms", "5000") == OK  # what was shown is of other options
    assert plan(YES) == (OK, ["registered"])
    assert bootstrap([server.url], YES, max_ttl_ms=5000)[1][0][0] == "nothing"


def test_a_dry_call_shows_what_one_question_asks(make_cluster):
    servers = make_cluster(3, bootstrapped=False).nodes
    for server, number, nodes in zip(servers, (2000, 8000, 4000), (3, 3, 5)):
        server.set(MARKER, marker_of(server, nodes=nodes, max_ttl_ms=number))
    plan = Planner([server.url for server in servers])
    replaced = []
    for _ in servers:
        replaced.append(plan(REPLACE | DRY)[1].index("replaced"))
        assert plan(REPLACE)[1].count("replaced") == 1
    assert replaced == [0, 1, 2] and plan(REPLACE) == (OK, 3 * ["nothing"])


def test_replace_works_while_a_node_is_away(make_cluster, make_client):
    servers = make_cluster(3).nodes
    urls = [server.url for server in servers]
    bootstrapped(urls)
    servers[2].stop()
    status, nodes = bootstrap(urls, REPLACE, max_ttl_ms=8000, connect_timeout_ms=3000)
    assert status == NO_QUORUM and [node[0] for node in nodes] == ["replaced", "replaced", "no_answer"]
    servers[2].cont()
    lock = make_client(urls, **dict(GUARDED, max_ttl_ms=8000, ttl_ms=8000)).lock()
    assert lock.acquire(0) == OK and "allows 4 s" in lock.message  # a majority is enough
    assert [node[0] for node in bootstrap(urls, REPLACE, max_ttl_ms=8000)[1]] == ["nothing", "nothing", "replaced"]


def test_bootstraps_at_once_agree(make_cluster, make_client):
    servers = make_cluster(5, bootstrapped=False).nodes
    urls = [server.url for server in servers]
    calls = [Call(bootstrap, urls) for _ in range(4)]
    results = [call.join() for call in calls]
    assert all(status == OK and all(node[1] for node in nodes) for status, nodes in results), results
    assert make_client(urls, **GUARDED).lock().acquire(0) == OK


def test_many_new_at_once_agree(make_cluster):
    """A script on each host."""
    servers = make_cluster(3, bootstrapped=False).nodes
    urls = [server.url for server in servers]
    for _ in range(5):
        for server in servers:
            server.flush()
        calls = [Call(bootstrap, urls, NEW) for _ in range(8)]
        results = [call.join() for call in calls]
        assert all(status == OK and all(node[1] for node in nodes) for status, nodes in results), results


def test_bootstrap_leaves_a_replica_alone(make_cluster):
    master, replica = make_cluster(2).nodes
    replica.replica_of(master)
    status, nodes = bootstrap([replica.url], REPLACE)
    assert status == rl.REFUSED_CONFIG and nodes[0][:2] == ("left_alone", False) and "a replica" in nodes[0][3]


def test_bootstrap_takes_only_its_modes(server):
    for mode in (0, 4, 15, 32, 16, -1):
        assert bootstrap_status(server, mode) == rl.INVALID


def bootstrap_status(server, mode):
    client = rl.Client([server.url], open=False, **GUARDED)
    status = rl.lib.redlock_client_bootstrap(client.handle, mode)
    assert "allowed: 1 to 3" in client.message
    assert rl.lib.redlock_client_bootstrapped(client.handle, 0, 0) == -rl.INVALID
    return status


def test_an_open_client_goes_on_beside_its_bootstrap(server, guarded):
    client = guarded([server])
    lock = client.lock()
    assert lock.acquire(0) == OK
    assert rl.lib.redlock_client_bootstrap(client.handle, YES) == OK
    assert lock.state == HELD and lock.extend() == OK and client.describe()["nodes"][0]["connects"] == 1


def test_inspecting_client_registers_nothing(make_cluster):
    server = make_cluster(1, bootstrapped=False).nodes[0]
    client = rl.Client([server.url], open=False, **GUARDED)
    assert rl.lib.redlock_client_open_to_look(client.handle) == OK
    eventually(client.settled, 20)
    node = client.describe()["nodes"][0]
    assert not node["votes"] and node["quarantine_reason"] == "not_registered" and server.get(MARKER) is None
    client.free()


def test_bootstrap_covers_a_restart_seen_later(server, make_client):
    minute = dict(max_ttl_ms=60000)
    bootstrapped([server.url], **minute)
    client = make_client([server.url], **dict(GUARDED, **minute))
    lock_once(client)
    server.restart(empty=True)
    bootstrapped([server.url], **minute)
    lock_once(client)
    assert client.describe()["nodes"][0]["connects"] > 1

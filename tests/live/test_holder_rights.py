"""Servers that forbid the entries in which clients tell who they are: nothing else depends on them."""
import time

import pytest

import rl
from helpers import held_everywhere, inspected, spin
from queueing import LONG, warnings
from rl import BUSY, OK
from testing import eventually
from testing.wait import in_time

pytestmark = pytest.mark.holder_info


def few(nodes, *rules):
    """The URLs of a user who may do with the entries only what these rules say."""
    for node in nodes:
        node.command("ACL", "SETUSER", "few", "reset", "on", ">p", "%RW~r", "%RW~libredlock:m", "%RW~libredlock:q:*",
                     "%RW~libredlock:p:*", "%RW~libredlock:proof:*", "&*", "+@all", *rules)
    return [node.url_with("few", "p") for node in nodes]


def refusals(nodes):
    """How often each has said NOPERM."""
    return [int(node.info("errorstats").get("errorstat_NOPERM", "count=0").split("=")[1]) for node in nodes]


def assert_told_once(nodes, client):
    told = []
    spin(client, lambda: told.extend(warnings(client)) or len(told) >= len(nodes), 20)
    assert sorted(event["node"] for event in told) == sorted(node.name for node in nodes)
    for event in told:
        words = "cannot tell who holds a lock on this node; allow libredlock:c:*: NOPERM"
        assert event["detail"].startswith(words), event


def test_where_it_is_forbidden_locks_work(nodes, make_client):
    urls = few(nodes)
    one, other = make_client(urls, **LONG).lock(), make_client(urls).lock()
    assert one.acquire(5000) == OK, one.message
    assert other.acquire(1200) == BUSY, other.message
    assert other.held_by is None
    assert inspected(other.client).held_by is None
    assert one.release() == OK


def test_the_warning_names_the_keys_behind_the_prefix(nodes, make_client):
    for node in nodes:
        node.command("ACL", "SETUSER", "few", "reset", "on", ">p", "~app:[^l]*", "~app:libredlock:[^c]*", "&*", "+@all")
    client = make_client([node.url_with("few", "p") for node in nodes], key_prefix="app:")
    assert client.lock().acquire(5000) == OK
    told = []
    spin(client, lambda: told.extend(warnings(client)) or told, 20)
    assert "; allow app:libredlock:c:*: NOPERM" in told[0]["detail"], told


def test_a_single_attempt_that_may_not_look_is_refused_at_once(nodes, held, make_client):
    lock = make_client(few(nodes, "-getrange")).lock()
    assert lock.acquire(0) == BUSY and lock.attempts == 1


@pytest.mark.parametrize("rules", [[], ["%R~libredlock:c:*"]])
def test_denied_entry_is_tried_once_per_connection(nodes, make_client, rules):
    """... and the field of the program once per client."""
    client = make_client(few(nodes, *rules), max_hold_ms=-1, max_ttl_ms=3600000)
    lock = client.lock()
    before = refusals(nodes)

    def entry_is_tried(times):
        assert lock.acquire(5000) == OK, lock.message
        held_everywhere(lock)
        assert lock.extend() == OK and lock.settle() == OK  # then what came before is answered, too
        assert lock.extend(3600000) == OK, "a longer lease would renew it"
        assert lock.release() == OK
        spin(client, lambda: refusals(nodes) == [count + times + 1 for count in before])

    entry_is_tried(1)
    assert_told_once(nodes, client)
    for node in nodes:
        node.kill_clients()
    eventually(lambda: client.settled() and all(row["connects"] == 2 for row in client.describe()["nodes"]), 30)
    entry_is_tried(2)
    assert warnings(client) == []


def test_denied_reading_of_entries_is_reported_once(nodes, held, make_client):
    """And does not wait for them."""
    client = make_client(few(nodes, "%W~libredlock:c:*"), node_timeout_ms=7500, **LONG)
    begun_s = time.monotonic()
    lock = inspected(client)
    assert lock.held_by is None and lock.verdict == rl.Verdict.HELD
    in_time(time.monotonic() - begun_s < 10)
    assert_told_once(nodes, client)
    inspected(client)
    assert warnings(client) == []

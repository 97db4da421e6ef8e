"""Servers that forbid the restart guard what it needs: they are refused, with the rule to add to the ACL."""
import pytest

import rl
from guarding import GUARDED, bootstrap, bootstrapped
from rl import OK
from testing import eventually

pytestmark = pytest.mark.new_nodes


def few(servers, *rules):
    """The URLs for a user with all rights but for these rules."""
    for server in servers:
        server.command("ACL", "SETUSER", "few", "reset", "on", ">p", "~*", "&*", "+@all", *rules)
    return [server.url_with("few", "p") for server in servers]


FORBIDDEN = {
    "info": (("-info",), "it forbids INFO: add +info to the ACL of its user"),
    "time": (("-time",), "it forbids TIME: add +time to the ACL of its user"),
    "get": (("-get",), "it forbids the guard's commands: add +get +set +time +eval to the ACL of its user"),
    "key": (("resetkeys", "~r", "~libredlock:proof:*"),
            "it forbids the key libredlock:m: add ~libredlock:* to the ACL of its user"),
    "read-only": (("resetkeys", "~r", "~libredlock:proof:*", "%R~libredlock:m"),
                  "it forbids the key libredlock:m: add ~libredlock:* to the ACL of its user"),
}


NEWER = {"read-only": pytest.mark.acl_of_redis_7}


@pytest.mark.parametrize("rules, words", [pytest.param(*FORBIDDEN[name], id=name, marks=NEWER.get(name, ()))
                                          for name in FORBIDDEN])
def test_what_a_server_forbids_is_named_with_the_rule_to_add(make_cluster, make_client, rules, words):
    servers = make_cluster(3, bootstrapped=False).nodes
    urls = few(servers, *rules)
    lock = make_client(urls, **GUARDED).lock()
    assert lock.acquire(10000) == rl.REFUSED_CONFIG
    assert lock.said(words) == 3 and "quarantine" not in lock.message
    assert bootstrap(urls)[0] == rl.REFUSED_CONFIG
    urls = few(servers)
    bootstrapped(urls)
    assert make_client(urls, **GUARDED).lock().acquire(0) == OK


def test_a_marker_that_is_forbidden_for_a_time_votes_again(make_cluster, make_client):
    servers = make_cluster(3).nodes
    urls = few(servers)
    bootstrapped(urls)
    client = make_client(urls, **GUARDED)
    lock = client.lock()
    assert lock.acquire(0) == OK and lock.release() == OK
    few(servers, *FORBIDDEN["key"][0])
    assert eventually(lambda: lock.acquire(5000) == rl.REFUSED_CONFIG, 20) and "it forbids the key" in lock.message
    few(servers)
    assert eventually(lambda: lock.acquire(30000) == OK, 20), lock.message
    assert lock.release() == OK

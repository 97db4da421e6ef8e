"""Which programs use the nodes: each of them keeps one field per program on every node, and nothing depends on it."""
import os
import socket
import time

import pytest

from helpers import held_everywhere
from queueing import warnings
from rl import OK
from testing import eventually

pytestmark = pytest.mark.holder_info

KEY = "libredlock:c:programs"
HOUR_S = 3600


def programs(node, key=KEY):
    found = node.command("HGETALL", key)
    return dict(zip(found[::2], found[1::2]))


def once_used(client, nodes, key=KEY):
    """The fields of the first node, once a lock of the client was held on all."""
    lock = client.lock()
    assert lock.acquire(5000) == OK, lock.message
    held_everywhere(lock)
    assert lock.release() == OK
    eventually(lambda: all(programs(node, key) for node in nodes))
    return programs(nodes[0], key)


def put(node, fields):
    """Fields and their values, of which many."""
    flat = [word for pair in fields.items() for word in pair]
    for at in range(0, len(flat), 20000):
        node.command("HSET", KEY, *flat[at:at + 20000])


def clock_s(node):
    return int(node.command("TIME")[0])


def test_a_program_leaves_one_field_on_each_node(nodes, make_client):
    before_s = int(time.time())
    found = once_used(make_client(nodes.urls, client_name="worker-7", max_ttl_ms=45000), nodes)
    (field, value), = found.items()
    digest, host, name = field.decode().split()
    assert (len(digest), host, name) == (16, socket.gethostname(), "worker-7")
    form, seen_s, pid, version, max_ttl_ms, *pairs = value.decode().split()
    assert (form, int(pid), max_ttl_ms) == ("v1", os.getpid(), "45000") and version.count(".") == 2
    assert abs(int(seen_s) - before_s) < 600
    assert pairs[1::2] == [node.name for node in nodes]
    for nonce, node in zip(pairs[::2], nodes):
        assert nonce in ("-", node.command("GET", "libredlock:m").decode().split()[5])
    assert 0 < nodes[0].command("PTTL", KEY) <= HOUR_S * 1000


def test_many_clients_of_one_program_share_its_field(nodes, make_client):
    for _ in range(3):
        assert len(once_used(make_client(nodes.urls, client_name="worker-7"), nodes)) == 1
    assert len(once_used(make_client(nodes.urls, client_name="worker-8"), nodes)) == 2
    assert len(once_used(make_client(nodes.urls[::-1], client_name="worker-8"), nodes)) == 3


def test_a_client_writes_its_field_once_in_ten_minutes(nodes, make_client):
    client = make_client(nodes.urls)
    once_used(client, nodes)
    nodes[0].command("DEL", KEY)
    nodes[0].kill_clients()
    once_used(client, nodes[1:])
    assert programs(nodes[0]) == {}


def test_a_client_without_holder_info_leaves_no_field(nodes, make_client):
    client = make_client(nodes.urls, holder_info="false")
    lock = client.lock()
    assert lock.acquire(5000) == OK and lock.settle() == OK and lock.release() == OK
    assert [programs(node) for node in nodes] == [{}] * len(nodes)


def test_fields_are_gone_an_hour_after_the_last_use(nodes, make_client):
    now_s = clock_s(nodes[0])
    put(nodes[0], {"old": f"v1 {now_s - HOUR_S - 60} 1", "future": f"v1 {now_s + HOUR_S + 60} 1",
                   "used": f"v1 {now_s - HOUR_S + 60} 1"})
    assert len(found := once_used(make_client(nodes.urls), nodes)) == 2 and b"used" in found


def test_fields_end_where_the_user_may_not_read_them(nodes, make_client):
    for node in nodes:
        node.command("ACL", "SETUSER", "few", "on", ">p", "~*", "&*", "+@all", "-hgetall")
    once_used(make_client([node.url_with("few", "p") for node in nodes]), nodes)
    assert all(0 < node.pttl(KEY) <= HOUR_S * 1000 for node in nodes)


def test_of_a_thousand_programs_the_oldest_makes_room(nodes, make_client):
    now_s = clock_s(nodes[0])
    put(nodes[0], {f"web {i}": f"v1 {now_s - 1000 + i} 1" for i in range(1000)})
    found = once_used(make_client(nodes.urls), nodes)
    assert len(found) == 1000 and b"web 0" not in found and b"web 1" in found


def test_what_a_neighbour_forged_goes(nodes, make_client):
    put(nodes[0], {b"\xff\n\x00": b"\x00" * 10, "huge": b"x" * 30000000, "v1": "v1 1e3 1", "": ""})
    now_s = clock_s(nodes[1])
    put(nodes[1], {f"web {i}": f"v1 {now_s} 1" for i in range(100000)})
    nodes[2].command("SET", KEY, "by hand")
    client = make_client(nodes.urls)
    lock = client.lock()
    assert lock.acquire(5000) == OK
    held_everywhere(lock)
    eventually(lambda: len(programs(nodes[0])) == len(programs(nodes[1])) == 1)
    assert lock.release() == OK and nodes[2].command("GET", KEY) == b"by hand"
    assert warnings(client) == []


def test_a_newcomer_names_who_has_another_list(make_cluster, make_client):
    """By markers: a name and an address of one server are no difference."""
    cluster = make_cluster(4, bootstrapped=False)
    a, b, c, d = cluster.nodes
    clients = {}
    for name, servers in {"old": [a, b, c], "new": [b, c, d]}.items():
        cluster.bootstrap(nodes=servers)
        clients[name] = make_client([node.url for node in servers], client_name=name, guard="marker")
        once_used(clients[name], servers)
    urls = [node.url.replace("127.0.0.1", "localhost") for node in (c, b, a)]
    once_used(by_name := make_client(urls, client_name="by-name", guard="marker"), [b, c])

    def named(client):
        return {program["program"]: program.get("differs") for program in client.describe()["programs"]}

    eventually(lambda: named(clients["new"]) == {"old": {"has": [a.name], "lacks": [d.name]}})
    eventually(lambda: set(named(by_name)) == {"old", "new"})
    assert named(by_name)["old"] is None and named(by_name)["new"] is not None
    assert named(clients["old"]) == {}, "it has not written its field again since"


ALL_KEYS = ["~*"]
ENTRIES_ONLY = ["%RW~r", "%RW~libredlock:[mqp]*", "%RW~libredlock:c:[0-9a-f]*"]


@pytest.mark.parametrize("rules", [ENTRIES_ONLY, [*ALL_KEYS, "-hset"], [*ALL_KEYS, "-hgetall"]])
def test_a_server_that_forbids_the_field_costs_nothing(nodes, make_client, rules):
    for node in nodes:
        node.command("ACL", "SETUSER", "few", "reset", "on", ">p", "&*", "+@all", *rules)
        node.command("CONFIG", "RESETSTAT")
    client = make_client([node.url_with("few", "p") for node in nodes])
    for _ in range(3):
        lock = client.lock()
        assert lock.acquire(5000) == OK, lock.message
        held_everywhere(lock)
        assert lock.release() == OK
        for node in nodes:
            node.kill_clients()
    assert warnings(client) == []
    for node in nodes:
        assert node.info("stats")["total_error_replies"] == "1"

"""What makes a node eligible to vote, and the ways to reach it."""
import socket
import time

import pytest

import rl
from helpers import finish, spin, spin_until_deleted
from rl import OK, REFUSED_CONFIG
from testing import HOLD, bulk, eventually


def others_grant(lock, nodes, odd=0):
    """All nodes but `odd` have granted, sooner or later."""
    def settled():
        lock.client.process()
        return all(vote == OK for i, vote in enumerate(lock.votes) if i != odd)

    eventually(settled, 20, "%s" % lock.votes)


def refuses(lock, odd, *words):
    """Node `odd` is ineligible to vote, for the reason in words, and the message names it."""
    def refused():
        if lock.vote(odd) == REFUSED_CONFIG:
            return True
        lock.release()
        return lock.acquire(5000) != OK  # not yet connected at the last attempt

    eventually(refused, 30, "node %d is refused" % odd)
    answer = lock.answer(odd)
    for word in words:
        assert word in answer
    assert lock.client.node_name(odd) in lock.message and answer in lock.message


@pytest.fixture
def one_odd(nodes, make_client):
    """make(url) -> a lock on the session's nodes with node 0 replaced."""
    def make(url, **options):
        return make_client([url, *nodes.urls[1:]], settle=False, **options).lock()

    return make


def test_writable_replica_does_not_vote(nodes, make_client, make_cluster):
    master = make_cluster(1)[0]
    for i in range(3):
        nodes[i].replica_of(master)
        nodes[i].config_set("replica-read-only", "no")
    lock = make_client(nodes.urls).lock()
    assert lock.acquire(5000) == REFUSED_CONFIG
    assert lock.said("replica") == 3
    nodes.no_keys(within_s=40)  # a SET that was written with a set-up may have been executed: it ends with its TTL


@pytest.mark.parametrize("option, value", [("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")])
def test_neither_a_memory_limit_nor_a_policy_alone_evicts(nodes, make_client, option, value):
    for node in nodes:
        node.config_set(option, value)
    lock = make_client(nodes.urls).lock()
    assert lock.acquire() == OK
    others_grant(lock, nodes, odd=None)


def test_a_refused_node_stays_described_while_tried_again(nodes, make_client, make_cluster, proxy):
    """It is connected to anew again and again; here the server answers no more."""
    nodes[0].replica_of(make_cluster(1)[0])
    relay = proxy(nodes[0])
    client = make_client([relay.url, *nodes.urls[1:]], settle=False)
    node = lambda: client.describe()["nodes"][0]  # noqa: E731
    spin(client, lambda: node()["state"] == "refused")
    relay.hold("down")
    roles, began = set(), time.monotonic()
    spin(client, lambda: roles.add(node()["role"]) or time.monotonic() - began > 1)
    assert roles == {"slave"}


# ---- one server under several addresses ------------------------------------------------------------------------


def test_one_server_listed_twice_has_one_vote(nodes, make_client, proxy):
    second_name = proxy(nodes[1])
    lock = make_client([nodes[0].url, nodes[1].url, second_name.url]).lock()
    assert lock.acquire() == OK  # two servers of three nodes are a majority

    def one_of_two_refused():
        lock.client.process()
        return sorted([lock.vote(1), lock.vote(2)]) == [OK, REFUSED_CONFIG]

    eventually(one_of_two_refused, 30, lock.message)
    duplicate = 1 if lock.vote(1) == REFUSED_CONFIG else 2
    assert lock.client.node_name(3 - duplicate) in lock.answer(duplicate)
    assert lock.extend() == OK and lock.release() == OK
    nodes.no_keys()


def test_two_names_of_one_server_never_delete_a_counted_vote(nodes, make_client, proxy):
    for _ in range(10):
        aliases = [proxy(nodes[0]).url]
        client = make_client([nodes[0].url, *aliases, nodes[1].url], settle=False)
        lock = client.lock()
        assert lock.acquire() == OK
        for _ in range(20):
            client.process()
        assert nodes[0].get("r") == nodes[1].get("r") == lock.token.encode()
        assert lock.release() == OK
        nodes.no_keys()  # a majority is enough for the release, and the next one has a single attempt


def test_one_server_listed_three_times_is_no_majority(nodes, make_client, proxy):
    names = [nodes[0].url, proxy(nodes[0]).url, proxy(nodes[0]).url]
    lock = make_client(names).lock()
    assert lock.acquire(5000) == REFUSED_CONFIG
    nodes.no_keys()


@pytest.mark.parametrize("successor", [False, True])
def test_server_that_changed_its_address_never_counts_twice(nodes, make_client, proxy, successor):
    """An extension reaches one server alone; then the address of another node leads to that same server, which confirms
    the token again. The first address is not connected at that time, or leads to another server, but its lease
    counts."""
    first, moved, third = proxies = [proxy(node) for node in nodes.nodes[:3]]
    client = make_client([p.url for p in proxies], ttl_ms=20000, max_ttl_ms=60000, outage_wait_ms=100)
    lock = client.lock()
    assert lock.acquire() == OK
    spin(client, lambda: all(node.get("r") for node in nodes.nodes[:3]))
    for p in (moved, third):
        p.refuse()
        p.drop()
    assert lock.extend(60000) == rl.NO_QUORUM
    eventually(lambda: nodes[0].pttl("r") > 20000)
    if successor:
        first.lead_to(nodes[3])
    else:
        first.refuse()
    first.drop()
    spin(client, lambda: client.describe()["nodes"][0]["state"] == ("refused" if successor else "down"))
    client.events()
    moved.lead_to(nodes[0])
    moved.go()
    spin(client, lambda: client.describe()["nodes"][1]["state"] in ("ready", "refused"))
    assert lock.extend(60000) != OK, lock.message
    assert 0 < lock.validity_ms <= 20000
    told = client.describe()["nodes"][1]
    assert told["state"] == "refused" and not told["votes"]
    assert told["why"] == "the same server as %s, which is not connected but whose leases still count" % first.name
    assert any(event["event"] == "node_refused" and event["detail"] == told["why"] for event in client.events())
    first.lead_to(nodes[0])
    first.drop()
    moved.lead_to(nodes[1])
    moved.drop()  # else it may vote for the first server, or delete there what is on its own
    lock.release()
    for p in proxies:
        p.go()
    spin(client, lambda: [node["state"] for node in client.describe()["nodes"]] == ["ready"] * 3)
    spin_until_deleted(client, nodes)


@pytest.fixture
def two_names(nodes, make_client, proxy, fake_server):
    """two_names(third): a client; the name of a server that votes, to which all bytes are lost from now on; the other
    name of that server, and its number."""
    def make(third):
        names = [proxy(nodes[0]), proxy(nodes[0])]
        client = make_client([*(name.url for name in names), third.url], max_ttl_ms=60000, ttl_ms=60000,
                             node_timeout_ms=15000, connect_timeout_ms=25000)
        states = [node["state"] for node in client.describe()["nodes"]]
        assert states.count("ready") == 2 and states[2] == "ready", states
        voter = states.index("ready")
        names[voter].black_hole()
        return client, names[voter], names[1 - voter], 1 - voter

    return make


def test_second_url_of_a_server_votes_if_the_first_is_gone(nodes, proxy, two_names):
    third = proxy(nodes[1])
    client, voter, _, _ = two_names(third)
    third.hold()
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, 0) == OK
    spin(client, lambda: third.held_bytes("up"))
    voter.drop()
    spin(client, lambda: nodes[0].get("r"), what="the server is asked under its other name")
    third.go()
    assert finish(lock) == OK, lock.message


def test_key_that_was_set_under_the_other_name_counts_as_its_own(nodes, proxy, make_client):
    """The SET rode with the set-up that showed the second name of a server; then the one that votes is gone."""
    voter, other, third = proxy(nodes[0]), proxy(nodes[0], accepting=False), proxy(nodes[1])
    client = make_client([voter.url, other.url, third.url], settle=False, node_timeout_ms=7500, ttl_ms=30000)
    spin(client, lambda: [node["state"] for node in client.describe()["nodes"]] == ["ready", "connecting", "ready"])
    voter.black_hole()
    third.hold()
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, 0) == OK
    other.open()
    spin(client, lambda: client.describe()["nodes"][1]["state"] == "refused")
    key = nodes[0].get("r")
    voter.drop()
    third.go()
    assert finish(lock) == OK and lock.token.encode() == key, lock.message


def node_of(client, index):
    return client.describe()["nodes"][index]


def test_refusal_that_has_passed_does_not_end_a_wait(fake_server, two_names):
    """One of three nodes refuses the SET, one is not connected, and one was the other name of that one's server."""
    third = fake_server({"SET": (HOLD, b"-NOPERM no\r\n")})
    client, voter, other, index = two_names(third)
    other.hold("down")
    lock = client.lock()
    assert lock.start(rl.ACQUIRE, 60000) == OK
    spin(client, lambda: third.count("SET"))
    voter.refuse()
    voter.drop()
    spin(client, lambda: node_of(client, 1 - index)["state"] != "ready", what="the one that votes is gone")
    spin(client, lambda: node_of(client, index)["owed"], what="the set-up of the other one has begun")
    third.let_go()
    spin(client, lambda: "NOPERM" in lock.answer(2))
    third.replies = {}
    other.go()
    assert finish(lock) == OK, lock.message


def test_a_refusal_may_pass_while_its_node_is_looked_at_again(fake_server, two_names):
    """The same, and that other name was being set up again when the one that votes went; that one takes connections."""
    third = fake_server({"SET": (HOLD, b"-NOPERM no\r\n")})
    client, voter, other, index = two_names(third)
    begun = node_of(client, index)["connects"]
    other.refuse()
    spin(client, lambda: node_of(client, index)["connects"] > begun)
    for _ in range(5):
        spin(client, lambda: True, what="that attempt has failed, the next one is some time ahead")
    lock = client.lock(outage_wait_ms=60000)
    assert lock.start(rl.ACQUIRE, 60000) == OK
    assert lock.vote(index) == REFUSED_CONFIG
    other.go()
    other.hold("down")
    spin(client, lambda: node_of(client, index)["owed"], what="it is being set up again")
    spin(client, lambda: third.count("SET"))
    voter.drop()
    spin(client, lambda: node_of(client, 1 - index)["connects"] == 2, what="the one that votes went")
    third.let_go()
    spin(client, lambda: "NOPERM" in lock.answer(2))
    third.replies = {}
    other.go()
    assert finish(lock) == OK, lock.message


# ---- credentials -----------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(make_cluster):
    return make_cluster(5, password="p@ss, w:/rd")


def test_a_wrong_password_on_one_node_costs_its_vote(guarded, make_client):
    lock = make_client([guarded[0].url_with(password="wrong"), *guarded.urls[1:]]).lock()
    assert lock.acquire() == OK
    refuses(lock, 0, "WRONGPASS")
    assert "wrong" not in lock.message and "p@ss" not in lock.message
    assert lock.release() == OK
    guarded.no_keys()


def test_a_wrong_password_on_a_majority_ends_a_wait_at_once(guarded, make_client):
    urls = [guarded[0].url_with(password="wrong"), "redis://127.0.0.1:%d" % guarded[1].port,
            guarded[2].url_with(user="nobody", password="x"), *guarded.urls[3:]]
    lock = make_client(urls).lock()
    assert lock.acquire(60000) == REFUSED_CONFIG  # at once: waiting would not help
    assert "WRONGPASS" in lock.message and "NOAUTH" in lock.message
    guarded.no_keys()


# ---- addresses -------------------------------------------------------------------------------------------------


def test_the_database_of_the_url_has_the_keys(nodes, make_client):
    client = make_client([n.url_with(db=3) for n in nodes])
    lock = client.lock()
    assert lock.acquire() == OK
    others_grant(lock, nodes, odd=None)
    for node in nodes:
        assert node.get("r") is None
        assert node.info("keyspace")["db3"].startswith("keys=2,") and node.keys() == [], "the marker's and the lock's"
    assert lock.release() == OK
    eventually(lambda: all(node.info("keyspace")["db3"].startswith("keys=1,") for node in nodes))


def test_a_database_that_does_not_exist_is_refused(nodes, one_odd):
    lock = one_odd(nodes[0].url_with(db=99))
    assert lock.acquire() == OK
    refuses(lock, 0, "DB index")
    assert nodes[0].keys() == []  # nothing went to database 0


# ---- servers that know less ------------------------------------------------------------------------------------


UNKNOWN = b"-ERR unknown command `%s`, with args beginning with: \r\n"


def test_a_server_without_hello_gets_auth_and_setname(make_client, fake_server):
    old = [fake_server({"HELLO": UNKNOWN % b"HELLO"}) for _ in range(3)]
    lock = make_client(["redis://:pw@" + server.name for server in old], client_name="old").lock()
    assert lock.acquire(5000) == OK
    assert [b"AUTH", b"pw"] in old[0].seen and [b"CLIENT", b"SETNAME", b"old"] in old[0].seen
    assert make_client(["redis://u:pw@" + server.name for server in old]).lock().acquire(5000) == OK
    assert [b"AUTH", b"u", b"pw"] in old[0].seen


def test_a_server_without_hello_keeps_its_connection(make_client, fake_server):
    """Its set-up stands; what HELLO would have done is asked behind it."""
    old = [fake_server({"HELLO": UNKNOWN % b"HELLO"}) for _ in range(3)]
    client = make_client([server.url for server in old], client_name="old")
    lock = client.lock()
    assert lock.acquire(5000) == OK and lock.release() == OK
    spin(client, lambda: all([b"CLIENT", b"ID"] in server.seen for server in old), what="the id is asked for")
    assert all([b"CLIENT", b"SETNAME", b"old"] in server.seen and server.count("HELLO") == 1 for server in old)
    assert [node["connects"] for node in client.describe()["nodes"]] == [1, 1, 1]


def become_old(fake):
    """As if its address led to a server before 6.0, which wants a password: nothing but AUTH works before AUTH."""
    def before_auth(args):
        return None if any(seen[0] == b"AUTH" for seen in fake.seen) else b"-NOAUTH Authentication required.\r\n"

    fake.replies = {name: before_auth for name in ("INFO", "SCRIPT", "PROVE", "SET", "PTTL")}
    fake.replies["HELLO"] = UNKNOWN % b"HELLO"
    for connection in fake.connections:
        connection.shutdown(socket.SHUT_RDWR)


def test_a_server_that_turns_out_to_be_old_grants_at_once(make_client, fake_server):
    """A SET that joined the set-up came before the login that is sent again. That is no refusal."""
    fakes = [fake_server() for _ in range(3)]
    lock = make_client(["redis://:pw@" + fake.name for fake in fakes]).lock()
    assert lock.acquire() == OK and lock.release() == OK
    for fake in fakes:
        become_old(fake)
    assert lock.acquire(0) == OK, lock.message


@pytest.mark.parametrize("command, reply, words", [
    ("INFO", b"-NOPERM this user has no permissions to run the 'info' command\r\n", "it forbids INFO"),
    ("HELLO", b"-ERR Protocol version is not an integer or out of range\r\n", "the login failed"),
    ("SELECT", b"-ERR DB index is out of range\r\n", "DB index"),
])
def test_error_in_set_up_voids_the_vote(one_odd, fake_server, command, reply, words):
    server = fake_server({command: reply})
    lock = one_odd(server.url + "/1")
    assert lock.acquire() == OK
    refuses(lock, 0, words)


def test_role_and_mode_are_read_not_inferred(one_odd, fake_server):
    for field, value, words in (("role", "slave", "replica"), ("redis_mode", "cluster", "cluster"),
                                ("redis_mode", "sentinel", "sentinel")):
        server = fake_server({"HELLO": UNKNOWN % b"HELLO"})
        server.replies["INFO"] = bulk(server.info(**{field: value}))
        lock = one_odd(server.url)
        assert lock.acquire() == OK
        refuses(lock, 0, words)
        lock.release()


# ---- the set-up's write ---------------------------------------------------------------------------------------------


def test_first_set_rides_with_the_set_up(nodes, make_client, proxy):
    """Not one answer has come yet, and the nodes have executed the SET already."""
    proxies = [proxy(node, accepting=False) for node in nodes]
    client = make_client([p.url for p in proxies], settle=False)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE) == OK
    for p in proxies:
        p.hold("down")
        p.open()
    spin(client, lambda: all(node.get("r") for node in nodes), what="every node has the key")
    assert [node["state"] for node in client.describe()["nodes"]] == ["setup"] * 5
    for p in proxies:
        p.go()
    assert finish(lock) == OK
    assert all(node.get("r") == lock.token.encode() for node in nodes)
    assert lock.release() == OK


@pytest.fixture
def ride(nodes, make_client, proxy):
    """ride(odd, has_set): a lock held on two good nodes, the SET of which rode with the set-up of the node `odd`, which
    showed that it is ineligible to vote."""
    def make(odd, has_set):
        good = [proxy(node) for node in nodes.nodes[1:3]]
        client = make_client([odd.url, *(p.url for p in good)], settle=False)
        spin(client, lambda: [node["state"] for node in client.describe()["nodes"]] == ["connecting", "ready", "ready"])
        for p in good:
            p.hold("down")
        lock = client.lock()
        assert lock.start(rl.ACQUIRE, 0) == OK
        odd.open()
        spin(client, lambda: has_set(lock), what="the SET arrives")
        spin(client, lambda: client.describe()["nodes"][0]["state"] == "refused")
        for p in good:
            p.go()
        assert finish(lock) == OK, lock.message
        return lock

    return make


def test_key_on_a_node_that_may_not_vote_is_taken_back(nodes, proxy, ride):
    """Its SET rode with the set-up that showed that it evicts. Nothing is deleted as long as the lock is held: a delete
    that comes late must never find a token that counts."""
    nodes[0].config_set("maxmemory-policy", "volatile-lru")
    nodes[0].config_set("maxmemory", "100mb")
    lock = ride(proxy(nodes[0], accepting=False), lambda lock: nodes[0].get("r"))
    refuses(lock, 0, "evict")
    connects = lock.client.describe()["nodes"][0]["connects"]
    spin(lock.client, lambda: lock.client.describe()["nodes"][0]["connects"] > connects + 1)
    assert nodes[0].get("r") == lock.token.encode()
    assert lock.release() == OK
    spin(lock.client, lambda: nodes[0].keys() == [])


def test_detached_token_is_not_deleted_on_ineligible_nodes(fake_server, ride):
    """Its SET rode with the set-up and is answered after the hand-over."""
    fake = fake_server({"SET": (HOLD, b"+OK\r\n")}, accepting=False)
    fake.replies["INFO"] = bulk(fake.info(maxmemory=1 << 20, maxmemory_policy="allkeys-lru"))
    lock = ride(fake, lambda lock: fake.count("SET"))
    assert lock.detach() == OK
    fake.let_go()
    spin(lock.client, lambda: fake.accepted > 1)  # all has been answered on the first connection
    assert not [args for args in fake.seen if args[0] == b"EVALSHA" and lock.token.encode() in args]


@pytest.mark.parametrize("parts", [{"db": 3}, {"password": "any"}], ids=["database", "password"])
def test_first_set_waits_where_the_set_up_could_redirect_it(nodes, servers, make_client, proxies, parts):
    """SELECT or AUTH may fail, and then the SET would go to another database or as another user."""
    urls = [node.url_with(**parts).replace(node.name, p.name) for node, p in zip(nodes, proxies)]
    servers.bootstrap_for(urls, {})
    for node, p in zip(nodes, proxies):
        node.command("CONFIG", "RESETSTAT")
        p.hold("down")
    client = make_client(urls, settle=False)
    lock = client.lock()
    assert lock.start(rl.ACQUIRE) == OK
    spin(client, lambda: all(p.held_bytes("down") for p in proxies))
    assert all(node.calls("hello") == 1 and node.calls("set") == 0 for node in nodes)
    for p in proxies:
        p.go()
    assert finish(lock) == OK
    spin(client, lambda: sum(node.calls("set") for node in nodes) >= 3)


# ---- the first lock ---------------------------------------------------------------------------------------------


def test_the_first_lock_after_closed_connections_is_granted(nodes, client):
    for _ in range(10):
        lock = client.lock()
        assert lock.acquire(0) == OK, lock.message
        assert lock.release() == OK
        for node in nodes:
            node.kill_clients()


def test_a_lock_is_granted_after_a_restart_of_every_node(nodes, client):
    lock = client.lock()
    assert lock.acquire(0) == OK and lock.release() == OK
    for node in nodes:
        node.restart()
    nodes.bootstrap()
    assert lock.acquire(5000) == OK, lock.message

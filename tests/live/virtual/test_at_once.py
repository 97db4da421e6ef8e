"""Single attempts at the same moment: one of them wins, and the others are told what is true by then."""
import pytest

import world
from common import now_ms
from helpers import FOREIGN, Call, occupy
from rl import BUSY, OK
from testing import eventually
from testing.wait import in_time

LONG = {"ttl_ms": 30000}
ROUNDS = 10
HOSTS = pytest.mark.parametrize("hosts", (2, 3, 5, 8))
SIZES = pytest.mark.parametrize("size", (3, 5))


class Hosts:
    """Clients that try at the same moment, each with one node near it. The others are a round trip of so long away."""

    def __init__(self, cluster, make_client, proxy, count, far_ms=0):
        self.cluster, self.clients = cluster, []
        for host in range(count):
            urls = cluster.urls
            if far_ms:
                ways = [proxy(node) for node in cluster]
                for number, way in enumerate(ways):
                    if number != host % len(ways):
                        way.delay(far_ms / 2 + number * 0.1, far_ms / 2)
                urls = [way.url for way in ways]
            self.clients.append(make_client(urls, guard="off"))

    def try_at_once(self, lock_of):
        """The locks of those who won. The others have heard that others hold it."""
        locks = [lock_of(client) for client in self.clients]
        results = [call.join() for call in [Call(lock.acquire, 0) for lock in locks]]
        assert set(results) <= {OK, BUSY}, [lock.message for lock in locks]
        return [lock for lock, result in zip(locks, results) if result == OK]

    def one_wins(self, lock_of, winners=1):
        for number in range(ROUNDS):
            won = self.try_at_once(lock_of)
            # threads of a busy machine may use up the time of their tries
            is_wrong = len(won) != winners if world.LIBRARY else len(won) > winners
            assert not is_wrong, "%d won in round %d" % (len(won), number)
            for lock in won:
                assert lock.release() == OK
            eventually(lambda: set(self.cluster.keys()) <= {b"libredlock:f:r"}, 60)


def plain(client):
    return client.lock("r", **LONG)


def ended(nodes, how):
    """A node goes on no more: it is not there, or does not answer."""
    getattr(nodes[-1], how)()


@HOSTS
@SIZES
@pytest.mark.parametrize("far_ms", (0, 20, 40))
def test_one_of_those_who_try_at_once_wins(make_cluster, make_client, proxy, hosts, size, far_ms):
    Hosts(make_cluster(size), make_client, proxy, hosts, far_ms).one_wins(plain)


@HOSTS
@SIZES
@pytest.mark.parametrize("far_ms", (0, 40))
@pytest.mark.parametrize("how", ("kill", "stop"))
def test_one_wins_beside_a_node_that_does_not_answer(make_cluster, make_client, proxy, hosts, size, far_ms, how):
    cluster = make_cluster(size)
    contest = Hosts(cluster, make_client, proxy, hosts, far_ms)
    ended(cluster, how)
    contest.one_wins(plain)


@HOSTS
@pytest.mark.parametrize("kind", (
    {"fence": "true"}, {"layout": "hash"}, {"retry_count": "0"}, {"permits": "2", "slot": "1"},
), ids=("fenced", "hash", "one attempt", "a permit"))
def test_one_wins_of_other_locks_that_exclude_each_other(make_cluster, make_client, proxy, hosts, kind):
    Hosts(make_cluster(3), make_client, proxy, hosts).one_wins(lambda client: client.lock("r", **LONG, **kind))


@HOSTS
def test_one_wins_of_locks_of_several_resources(make_cluster, make_client, proxy, hosts):
    cluster = make_cluster(3)
    contest = Hosts(cluster, make_client, proxy, hosts)
    contest.one_wins(lambda client: client.lock("q", "r", **LONG))
    names = iter(("r", "s") if number % 2 else ("q", "r") for number in range(hosts * ROUNDS))
    contest.one_wins(lambda client: client.lock(*next(names), **LONG))


@HOSTS
@SIZES
def test_as_many_win_at_once_as_there_are_permits(make_cluster, make_client, proxy, hosts, size):
    contest = Hosts(make_cluster(size), make_client, proxy, hosts)
    contest.one_wins(lambda client: client.lock("r", **LONG, permits="2"), winners=2)


@HOSTS
def test_readers_win_together_or_a_writer(make_cluster, make_client, proxy, hosts):
    contest = Hosts(make_cluster(3), make_client, proxy, hosts)
    contest.one_wins(lambda client: client.lock("r", **LONG, shared="true"), winners=hosts)
    for _ in range(ROUNDS):
        kinds = iter("true" if number % 2 else "false" for number in range(hosts))
        won = contest.try_at_once(lambda client: client.lock("r", **LONG, shared=next(kinds)))
        assert len(won) == (1 if won[0].get("shared") == "false" else hosts // 2)
        for lock in won:
            assert lock.release() == OK
        contest.cluster.no_keys()


@pytest.mark.parametrize("how", ("kill", "stop"))
def test_a_holder_on_a_majority_is_seen_in_one_round_trip(make_cluster, make_client, proxy, how):
    cluster = make_cluster(3)
    ways = [proxy(node) for node in cluster]
    for way in ways:
        way.delay(20, 20)
    client = make_client([way.url for way in ways], guard="off")
    occupy(cluster, "r", ttl_ms=30000)
    ended(cluster, how)
    lock, began_ms = plain(client), now_ms()
    assert lock.acquire(0) == BUSY
    in_time(lock.attempts == 1)
    in_time(now_ms() - began_ms < 1000)


@pytest.mark.parametrize("kind", ({"shared": "true"}, {"layout": "hash"}), ids=("readers", "a hash"))
def test_holders_without_a_string_are_seen_at_once(nodes, make_client, kind):
    holder = make_client(nodes.urls).lock("r", **LONG, **kind)
    assert holder.acquire(20000) == OK
    lock = make_client(nodes.urls).lock("r", **LONG, layout=kind.get("layout", "string"))
    assert lock.acquire(0) == BUSY
    in_time(lock.attempts == 1)


def test_a_key_that_nobody_knows_of_on_one_node_is_no_holder(nodes, make_client):
    """Whoever has left it, and whatever it is."""
    client = make_client(nodes.urls)
    for number, node in enumerate(nodes):
        node.command(*(("RPUSH", "r", "x") if number % 2 else ("SET", "r", FOREIGN)))
        lock = plain(client)
        assert lock.acquire(0) == OK
        assert lock.release() == OK
        node.command("DEL", "r")


def test_keys_of_the_past_on_one_node_hide_no_permit(nodes, make_client):
    client = make_client(nodes.urls)
    for node in nodes:
        for slot in ("r", "libredlock:s:1:r", "libredlock:s:2:r"):
            node.command("SET", slot, FOREIGN, "PX", "60000")
        locks = [client.lock("r", **LONG, permits="3") for _ in range(4)]
        assert [lock.acquire(0) for lock in locks] == [OK, OK, OK, BUSY]
        assert sorted(lock.slot for lock in locks[:3]) == [0, 1, 2]
        for lock in locks[:3]:
            assert lock.release() == OK
        node.delete_keys()
        nodes.no_keys()


def test_tokens_without_a_majority_end_a_single_attempt_soon(nodes, make_client):
    """Its tries go on for 0.2 s, and the last pause is no longer than that."""
    client = make_client(nodes.urls)
    for number, node in enumerate(nodes):
        occupy([node], token="%040d" % number, ttl_ms=600000)
    for _ in range(20):
        lock, began_ms = plain(client), now_ms()
        assert lock.acquire(0) == BUSY
        in_time(now_ms() - began_ms < 450)

"""Fencing numbers: every holder has a larger one than those before, and a store can refuse who is late."""
import time

import pytest

import rl
from helpers import spin
from rl import BUSY, HELD, NO_QUORUM, OK, PENDING
from testing import eventually
from testing.wait import in_time

KEY = "libredlock:f:r"
FENCED = dict(fence="true")


def numbers(nodes):
    return [int(node.get(KEY) or 0) for node in nodes]


def raises(nodes):
    """How many scripts were sent in full: those that raise a number are."""
    return sum(node.calls("eval") for node in nodes)


@pytest.fixture
def fenced(nodes, make_client):
    """fenced(**options): a lock of a client of its own that has been connected."""
    return lambda servers=nodes, **options: make_client([n.url for n in servers], **dict(FENCED, **options)).lock()


def held_once(lock):
    assert lock.acquire(5000) == OK, lock.message
    number = lock.fence
    assert lock.release() == OK
    return number


def now_us():
    return time.time_ns() // 1000


DAY_US = 86400 * 10**6


def test_every_hold_has_a_larger_number(nodes, fenced):
    locks = [fenced() for _ in range(3)]
    drawn = [held_once(lock) for _ in range(20) for lock in locks]
    assert drawn == sorted(set(drawn)) and 0 < drawn[0] and drawn[-1] < 2**53


def test_a_majority_stores_it(nodes, fenced):
    lock = fenced()
    assert lock.acquire(0) == OK
    spin(lock.client, lambda: sum(number >= lock.fence for number in numbers(nodes)) >= 3)
    assert 0 < nodes[0].pttl(KEY) <= 86401000  # a proposal is at most 1 s ahead


def test_it_costs_no_round_trip_more(nodes, fenced):
    lock = fenced()
    held_once(lock)
    spin(lock.client, lambda: all(number for number in numbers(nodes)))
    before = raises(nodes)
    for _ in range(20):
        held_once(lock)
    assert raises(nodes) == before


def test_node_that_lags_gets_the_number(nodes, home_of_r, fenced):
    """One node alone knows of a larger number; without the others it would be forgotten with that node. Nor does a home
    that hangs cost a further attempt."""
    up = [node for node in nodes if node is not home_of_r][:3]
    hung = [node for node in nodes if node not in up]
    lock = fenced()
    held_once(lock)
    spin(lock.client, lambda: all(numbers(nodes)))
    ahead = max(numbers(nodes)) + 10**9
    for node in up:
        node.set(KEY, str(ahead if node is up[0] else ahead - 5 * 10**8), px=60000)
    began_s = time.monotonic()
    spin(lock.client, lambda: time.monotonic() - began_s > 0.05)  # that nobody waited is no news any more
    for node in hung:
        node.stop()
    attempts = lock.client.describe()["attempts"]
    assert lock.acquire(5000) == OK, lock.message
    in_time(lock.client.describe()["attempts"] == attempts + 1, "to tell it needs no further attempt")
    assert lock.fence > ahead and all(number >= lock.fence for number in numbers(up))
    first = lock.fence
    assert lock.release() == OK
    up[0].stop()
    for node in hung:
        node.cont()
    assert held_once(fenced()) > first


def test_a_number_that_few_store_is_no_lock(nodes, fenced, proxies):
    """The others never hear of it."""
    lock = fenced(proxies)
    held_once(lock)
    spin(lock.client, lambda: all(numbers(nodes)))
    nodes[0].set(KEY, str(max(numbers(nodes)) + 10**9), px=60000)
    for proxy in proxies[1:3]:
        proxy.when(r"n<tonumber", proxy.hold)
    for node in nodes.nodes[3:]:
        node.stop()
    assert lock.acquire(0) == NO_QUORUM, lock.message
    assert lock.fence == 0 and lock.state != HELD
    for node in nodes.nodes[3:]:
        node.cont()
    for proxy in proxies:
        proxy.go()
    eventually(lambda: not any(node.get("r") for node in nodes), 5, "the attempt is cleaned up")


def test_late_votes_do_not_settle_an_old_number(nodes, fenced, proxies):
    """Two leases with which the number was settled end while it is raised, somebody else comes and goes with a larger
    one, and only then do the last nodes grant (rule D.2)."""
    quick = dict(ttl_ms=12000, node_timeout_ms=3000, min_validity_ms=1, queue="false")
    for proxy in proxies[2:]:
        proxy.hold()
    for proxy in proxies[:2]:
        proxy.when(r"n<tonumber", proxy.hold)
    late = fenced(proxies, settle=False, connect_timeout_ms=60000, **quick)
    spin(late.client, lambda: all(proxy.held_bytes() for proxy in proxies[2:]), what="the set-ups are sent")
    assert late.start(rl.ACQUIRE, 0) == OK
    spin(late.client, lambda: late.votes[:2] == [OK, OK])
    nodes[2].set(KEY, str(max(numbers(nodes)) + 6 * 10**6), px=60000)  # larger, but less than that of the next holder
    spin(late.client, lambda: 0 < nodes[0].pttl("r") < 1500, 20)
    proxies[2].go()
    spin(late.client, lambda: all(b"n<tonumber" in proxy.held_bytes() for proxy in proxies[:2]))
    number = nodes[2].get(KEY)
    rival = fenced(**quick)
    assert rival.acquire(5000) == OK, rival.message
    assert rival.fence > int(number) and rival.release() == OK
    assert late.status == rl.PENDING
    for proxy in proxies[3:]:
        proxy.go()
    spin(late.client, lambda: late.status != rl.PENDING)
    assert (late.status, late.fence) == (NO_QUORUM, 0), late.message


def test_without_the_option_there_is_none(nodes, make_client):
    lock = make_client(nodes.urls).lock()
    assert lock.acquire(0) == OK and lock.fence == 0
    assert numbers(nodes) == [0] * 5


def test_locks_with_and_without_exclude_each_other(nodes, fenced, make_client):
    plain, numbered = make_client(nodes.urls).lock(), fenced()
    assert plain.acquire(0) == OK and numbered.acquire(0) == BUSY
    assert plain.release() == OK and numbered.acquire(0) == OK
    assert plain.acquire(0) == BUSY


def test_waiter_gets_a_larger_number(nodes, fenced):
    first, second = fenced(), fenced()
    assert first.acquire(0) == OK
    assert second.start(rl.ACQUIRE, 20000) == OK
    spin(second.client, lambda: second.status == rl.PENDING)
    assert first.release() == OK
    spin(second.client, lambda: second.status == OK, 20)
    assert second.fence > first.fence > 0


def test_number_stays_with_an_extension_and_after_release(nodes, fenced):
    lock = fenced()
    assert lock.acquire(0) == OK
    number = lock.fence
    assert lock.extend() == OK and lock.fence == number
    assert lock.release() == OK and lock.fence == number
    lock.adopt("0" * 40)
    assert lock.fence == 0


def test_scripts_that_were_flushed_are_sent_again(nodes, fenced):
    lock = fenced()
    held_once(lock)
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    assert lock.acquire(0) == OK, lock.message


def test_scripts_are_sent_again_after_the_win_too(nodes, fenced, proxies):
    lock = fenced(proxies)
    held_once(lock)
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    proxies[4].hold()
    assert lock.acquire(5000) == OK and lock.settle(0) == PENDING
    proxies[4].go()
    assert lock.settle() == OK and lock.votes == [OK] * 5
    assert [node.get("r") for node in nodes] == [lock.token.encode()] * 5
    assert min(numbers(nodes)) >= lock.fence
    assert lock.release() == OK


@pytest.mark.parametrize("value", ["mine", "1.5", "-1", "1e300", "nan"])
def test_a_key_that_is_no_number_is_never_overwritten(make_cluster, fenced, value):
    server = make_cluster(1)[0]
    server.set(KEY, value)
    lock = fenced([server])
    assert lock.acquire(0) == NO_QUORUM and "libredlock:f:r is not a fencing number" in lock.message
    assert server.get(KEY) == value.encode() and server.get("r") is None


def test_a_key_of_another_type_is_never_overwritten(make_cluster, fenced):
    server = make_cluster(1)[0]
    server.command("LPUSH", KEY, "x")
    lock = fenced([server])
    assert lock.acquire(0) == NO_QUORUM and "is not a fencing number" in lock.message
    assert server.command("LRANGE", KEY, 0, -1) == [b"x"] and server.get("r") is None


def test_a_server_that_lost_the_number_draws_a_larger_one(make_cluster, guarded):
    """It begins at its clock, and every number was drawn from one; the guard keeps it from voting meanwhile."""
    servers = make_cluster(3, bootstrapped=False)
    first = guarded(servers.nodes, **FENCED).lock()
    assert first.acquire(0) == OK and first.state == HELD
    number = first.fence
    assert first.release() == OK
    for server in servers.nodes:
        eventually(lambda: server.get("r") is None, 5, "the key is deleted")
        server.restart(empty=True)
    second = guarded(servers.nodes, **FENCED).lock()
    assert second.acquire(60000) == OK, second.message
    assert second.fence > number


def test_a_second_set_of_the_same_token_finds_its_number(nodes, fenced, proxies):
    """The answers to the first were lost with the connections."""
    lock = fenced(proxies)
    held_once(lock)
    for proxy in proxies:
        proxy.silence(direction="down")
    assert lock.acquire(0) == OK, lock.message
    spin(lock.client, lambda: lock.votes == [OK] * 5, what=lock.message)
    assert lock.fence == max(numbers(nodes)) and nodes.keys()[b"r"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("number", ["in a month", 2**53 - 2])
def test_number_of_one_node_alone_is_an_error_of_that_node(nodes, fenced, number):
    """It lies, or its clock was far ahead. The others never hear of that number, whoever answers first."""
    spoilt = now_us() + 30 * DAY_US if number == "in a month" else number
    nodes[0].set(KEY, str(spoilt))
    lock = fenced()
    drawn = [held_once(lock) for _ in range(10)]
    assert drawn == sorted(set(drawn)) and drawn[-1] < now_us() + DAY_US
    for node in nodes.nodes[3:]:
        node.stop()
    assert lock.acquire(0) == NO_QUORUM, "its vote would be one of three"
    assert "more than a day ahead of the clocks" in lock.message or "is not a fencing number" in lock.message
    for node in nodes.nodes[3:]:
        node.cont()
    assert held_once(lock) > drawn[-1]
    assert max(numbers(nodes.nodes[1:])) < now_us() + DAY_US


@pytest.mark.parametrize("ahead_s", [7200, 10 * 86400])
def test_clocks_that_are_set_back_do_not_end_the_numbers(make_clocked, fenced, ahead_s):
    """Of all nodes: the numbers that a majority has reached are taken, however far ahead of the clocks they are."""
    servers = make_clocked(3)
    for server in servers:
        server.step(ahead_s)
    before = fenced(servers)
    drawn = [held_once(before) for _ in range(5)]
    assert drawn[0] > now_us() + (ahead_s - 60) * 10**6
    eventually(lambda: all(server.get("r") is None for server in servers), 10)
    for server in servers:
        server.step(-ahead_s)
    after = fenced(servers)
    drawn += [held_once(lock) for _ in range(5) for lock in (after, before)]
    assert after.acquire(5000) == OK
    drawn.append(after.fence)
    spin(after.client, lambda: min(numbers(servers)) >= after.fence - 1000, 20, "the slowest gets it, too (rule D.3)")
    assert after.release() == OK
    servers[0].stop()
    drawn += [held_once(lock) for _ in range(5) for lock in (after, before)]
    servers[0].cont()
    assert drawn == sorted(set(drawn))


def test_one_clock_that_is_ahead_gives_no_first_number(make_clocked, fenced):
    """With that node or without it the numbers grow; and its own clock is no number when it is set right."""
    servers = make_clocked(3)
    servers[0].step(10 * 86400)
    lock = fenced(servers, guard="off")  # which would keep that node from voting
    drawn = [held_once(lock) for _ in range(3)]
    assert drawn[0] < now_us() + 60 * 10**6
    assert max(numbers(servers)) < now_us() + 60 * 10**6
    servers[1].stop()
    drawn += [held_once(lock) for _ in range(3)]
    servers[1].cont()
    servers[0].step(-10 * 86400)
    servers[0].stop()
    drawn += [held_once(lock) for _ in range(3)]
    servers[0].cont()
    assert drawn == sorted(set(drawn))


def test_all_clocks_that_are_ahead_of_ours_give_the_first_number(make_clocked, fenced):
    servers = make_clocked(3)
    for server in servers:
        server.step(7200)
    lock = fenced(servers)
    drawn = [held_once(lock) for _ in range(3)]
    assert now_us() + 7100 * 10**6 < drawn[0] < now_us() + 7300 * 10**6
    assert drawn == sorted(set(drawn))


def test_the_key_of_a_number_outlives_it(nodes, fenced):
    """Whatever the clocks were when it was drawn: a smaller one must not follow."""
    lock = fenced()
    held_once(lock)
    spin(lock.client, lambda: all(numbers(nodes)))
    for node in nodes.nodes[:4]:
        node.set(KEY, str(now_us() + 20 * DAY_US))
    assert lock.acquire(5000) == OK, lock.message  # the fifth may grant late
    spin(lock.client, lambda: all(node.pttl(KEY) > 20 * 86400000 for node in nodes), 20, "drawn on four, told to one")
    assert lock.release() == OK

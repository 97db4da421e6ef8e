"""How long a lock takes for which nobody waits. The time is that of the virtual world: nothing else takes any."""
import pytest

from rl import OK
from waiters import in_order
from world import Call, time

LONG = {"ttl_ms": 30000}


def cycle_s(lock):
    begun_s = time.monotonic()
    assert lock.acquire(5000) == OK, lock.message
    won_s = time.monotonic()
    assert lock.release() == OK, lock.message
    return won_s - begun_s


@pytest.mark.parametrize("waits_elsewhere", [False, True])
def test_no_win_waits_for_a_home_that_is_further(nodes, make_client, proxy, waits_elsewhere):
    """Home says with the answers to releases that nobody waits, and these come after the next acquire has begun."""
    home = in_order(nodes)[0]
    path = proxy(home)
    path.delay(up_ms=1, down_ms=1)
    client = make_client([path.url if node is home else node.url for node in nodes])
    if waits_elsewhere:
        other = make_client(nodes.urls).lock("x", **LONG)
        assert other.acquire(5000) == OK
        waiter = Call(client.lock("x", **LONG).acquire, 60000)
        time.sleep(1)
    lock = client.lock(**LONG)
    for _ in range(50):
        cycle_s(lock)
    assert max(cycle_s(lock) for _ in range(500)) < 0.001
    if waits_elsewhere:
        assert other.release() == OK and waiter.join() == OK


@pytest.mark.parametrize("others, wake", [("", "auto"), ("a", "auto"), ("ab", "auto"), ("", "poll")])
def test_locks_of_several_hand_over_at_once(nodes, make_client, others, wake):
    """Beside locks of one of their resources, too, they need not find out by asking that it is their turn."""
    end_s, waits_s = time.monotonic() + 3, []

    def repeat(lock, longest_s):
        while time.monotonic() < end_s:
            begun_s = time.monotonic()
            assert lock.acquire(60000) == OK, lock.message
            longest_s.append(time.monotonic() - begun_s)
            time.sleep(0.005)
            assert lock.release() == OK

    calls = [Call(repeat, make_client(nodes.urls, wake=wake).lock("a", "b", **LONG), waits_s) for _ in range(4)]
    calls += [Call(repeat, make_client(nodes.urls).lock(resource, **LONG), []) for resource in others]
    for call in calls:
        call.join()
    assert max(waits_s) < 0.2

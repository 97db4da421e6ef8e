"""Extensions: own token only, never shortening, partial ones, limits, sticky loss; NOSCRIPT is mended."""
import pytest
import rl
from helpers import FOREIGN, held_everywhere, lapse, spin
from rl import BUSY, HELD, LIMIT, LOST, NO_QUORUM, NOT_HELD, OK
from testing import eventually


@pytest.fixture
def held(nodes, client):
    """A lock that all five nodes have granted."""
    lock = client.lock()
    assert lock.acquire() == OK
    held_everywhere(lock, nodes)
    return lock


def test_extend_prolongs_on_all_nodes(nodes, held):
    for node in nodes:
        node.command("PEXPIRE", "r", 8000)
    assert held.extend(20000) == OK
    assert 10000 < held.validity_ms <= 20000 - 200 - 2
    spin(held.client, lambda: all(node.pttl("r") > 10000 for node in nodes))
    assert held.status == OK and "5" in held.message


def test_default_is_the_ttl_of_the_lock(nodes, held):
    assert held.extend() == OK
    assert held.validity_ms <= 8000 and all(node.pttl("r") <= 8000 for node in nodes)


def test_extension_never_shortens(nodes, make_client):
    client = make_client(nodes.urls, ttl_ms=20000)
    lock = client.lock()
    assert lock.acquire() == OK
    held_everywhere(lock, nodes)
    before = lock.validity_ms
    assert lock.extend(8000) == OK
    assert lock.validity_ms > 10000 and lock.validity_ms <= before
    assert all(node.pttl("r") > 10000 for node in nodes)


def test_never_taken(client):
    lock = client.lock()
    assert lock.extend() == NOT_HELD and lock.release() == NOT_HELD and lock.detach() == NOT_HELD
    assert lock.start(rl.EXTEND) == NOT_HELD and lock.start(rl.RELEASE) == NOT_HELD
    assert lock.message


def test_foreign_owner_at_extend(nodes, held):
    """Another token on a majority: lost, and the other's keys are not touched, neither now nor at the release."""
    for node in nodes.nodes[:3]:
        node.set("r", FOREIGN, px=20000)
    assert held.extend() == LOST
    assert held.state == rl.State.LOST and held.validity_ms == 0
    assert held.votes[:3] == [LOST] * 3
    assert held.extend() == LOST
    assert held.release() == LOST
    spin(held.client, lambda: nodes.keys() == {b"r": [0, 1, 2]})
    assert all(node.get("r") == FOREIGN.encode() and 0 < node.pttl("r") <= 20000 for node in nodes.nodes[:3])


def test_foreign_owner_on_a_minority(nodes, held):
    for node in nodes.nodes[:2]:
        node.set("r", FOREIGN, px=20000)
    assert held.extend() == OK and held.state == HELD
    assert held.release() == OK
    spin(held.client, lambda: nodes.keys() == {b"r": [0, 1]})


def test_key_gone_at_extend(nodes, held):
    for node in nodes.nodes[:3]:
        node.flush()
    assert held.extend() == LOST
    assert nodes.keys().get(b"r", []) in ([3, 4], [3], [4], [])  # never made again
    assert held.state == rl.State.LOST


def test_key_gone_on_a_minority(nodes, held):
    for node in nodes.nodes[:2]:
        node.flush()
    eventually(lambda: held.extend() == OK and held.votes[:2] == [LOST, LOST])
    assert nodes.keys() == {b"r": [2, 3, 4]}
    nodes[2].flush()
    assert held.extend() == LOST


def test_partial_extension(nodes, make_client):
    client = make_client(nodes.urls, node_timeout_ms=2000)
    lock = client.lock()
    assert lock.acquire(5000) == OK
    held_everywhere(lock, nodes)
    for node in nodes.nodes[:2]:
        node.stop()
    assert lock.extend(20000) == OK and lock.validity_ms > 10000
    nodes[2].stop()
    before = lock.validity_ms
    assert lock.extend(30000) == NO_QUORUM  # two nodes of five
    assert lock.state == HELD and 0 < lock.validity_ms <= before
    assert "2 of 5" in lock.message and nodes[2].name in lock.message
    for node in nodes.nodes[:3]:
        node.cont()
    assert lock.extend(30000) == OK and lock.validity_ms > 20000


def test_old_leases_count_beside_partial_extensions(nodes, make_client):
    """valid_until is the third largest end: two long extensions and one old lease hold the lock for the old lease."""
    client = make_client(nodes.urls, ttl_ms=8000, node_timeout_ms=1000)
    lock = client.lock()
    assert lock.acquire(5000) == OK
    held_everywhere(lock, nodes)
    for node in nodes.nodes[:3]:
        node.stop()
    assert lock.extend(20000) == NO_QUORUM
    assert 0 < lock.validity_ms <= 8000
    for node in nodes.nodes[:3]:
        node.cont()


def test_max_extensions(nodes, make_client):
    lock = make_client(nodes.urls, max_extensions=2).lock()
    assert lock.acquire() == OK
    assert (lock.extend(), lock.extend(), lock.extend()) == (OK, OK, LIMIT)
    assert "max_extensions" in lock.message
    assert lock.state == HELD
    assert lock.start(rl.EXTEND) == LIMIT
    assert lock.release() == OK
    assert lock.acquire() == OK and lock.extend() == OK  # counted per hold


def test_no_extensions_at_all(nodes, make_client):
    lock = make_client(nodes.urls, max_extensions=0).lock()
    assert lock.acquire() == OK and lock.extend() == LIMIT


def test_max_hold(nodes, make_client):
    lock = make_client(nodes.urls, ttl_ms=4000, node_timeout_ms=1000, max_hold_ms=5000).lock()
    assert lock.acquire(5000) == OK
    eventually(lambda: lock.validity_ms < 2500)
    assert lock.extend() == LIMIT
    assert "max_hold_ms" in lock.message and "5000" in lock.message
    lapse(lock)
    assert lock.extend() == LOST


def test_loss_is_sticky(nodes, make_client):
    """A lapsed lock stays lost although a majority still has its keys: another may have held it in between."""
    client = make_client(nodes.urls, **rl.short(2000))
    lock = client.lock()
    assert lock.acquire(5000) == OK
    token = lock.token
    held_everywhere(lock, nodes)
    assert [node.command("PEXPIRE", "r", 30000) for node in nodes] == [1] * 5  # as if these clocks were slow
    lapse(lock)
    assert {node.get("r") for node in nodes} == {token.encode()}
    assert lock.state == rl.State.LOST
    assert lock.extend() == LOST
    assert lock.state == rl.State.LOST and lock.validity_ms == 0
    for node in nodes:
        node.flush()
    assert lock.acquire(10000) == OK and lock.token != token


def test_extension_that_succeeds_too_late_revives_nothing(nodes, make_client, proxy):
    """It was executed in time, its replies come after the lease has lapsed."""
    proxies = [proxy(node) for node in nodes]
    client = make_client([p.url for p in proxies], **rl.short(4000))
    lock = client.lock()
    assert lock.acquire(5000) == OK
    held_everywhere(lock, nodes)
    for p in proxies:
        p.hold("down")
    assert lock.start(rl.EXTEND, 20000) == OK
    spin(client, lambda: all(node.pttl("r") > 10000 for node in nodes))
    lapse(lock)
    for p in proxies:
        p.go()
    spin(client, lambda: lock.status != rl.PENDING)
    assert lock.status in (LOST, NO_QUORUM) and lock.state == rl.State.LOST
    assert lock.release() == LOST
    spin(client, lambda: not nodes.keys())  # the long keys do not stay for their 20 s


def test_script_cache_flushed(nodes, held):
    for _ in range(3):
        for node in nodes:
            node.command("SCRIPT", "FLUSH")
        assert held.extend() == OK, held.message
    for node in nodes:
        node.command("SCRIPT", "FLUSH")
    assert held.release() == OK, held.message
    spin(held.client, lambda: not nodes.keys())  # the slower nodes' NOSCRIPT is repaired when it is read


def test_node_restarted_empty(nodes, held):
    """Without its data a node counts for nothing; with three of them the lock is lost."""
    for node in nodes.nodes[:2]:
        node.restart(empty=True)
    assert held.extend() == OK, held.message
    nodes[2].restart(empty=True)
    assert held.extend() in (LOST, NO_QUORUM)  # it may be connecting still
    spin(held.client, lambda: held.state == rl.State.LOST)
    assert held.extend() == LOST, held.message


def test_restart_of_a_majority_is_noticed_by_run_id(nodes, held):
    """No extension is needed: once the client is connected again it knows that these keys are gone."""
    for node in nodes.nodes[:3]:
        node.restart(empty=True)
    spin(held.client, lambda: held.state == rl.State.LOST)
    assert held.validity_ms == 0


def test_node_restarted_empty_lets_others_in_but_never_two(nodes, held, make_client):
    for node in nodes.nodes[:2]:
        node.restart(empty=True)
    other = make_client(nodes.urls).lock()
    assert other.acquire() == BUSY
    spin(other.client, lambda: nodes.keys() == {b"r": [2, 3, 4]})
    assert held.extend() == OK


def test_extension_of_a_dead_minority(nodes, held):
    nodes[0].kill()
    nodes[1].kill()
    for _ in range(5):
        assert held.extend() == OK, held.message
    nodes[2].kill()
    assert held.extend() == NO_QUORUM and held.state == HELD
    assert held.message.count("refused") == 3 or "connection" in held.message
    assert held.release() == OK
    eventually(lambda: nodes[3].keys() == nodes[4].keys() == [])

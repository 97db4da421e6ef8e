"""The bugs that are known from other libraries."""
import time

import pytest

from driver import lapsing, refusal
from steps import (
    BEFORE_LAPSE_S,
    COMMANDS,
    FOREIGN,
    acquire_everywhere,
    assert_others_suffice,
    error_name,
    occupy,
    operate,
    other_name,
    own_ttl_ms,
    values,
)
from testing import DOWN, UP, eventually
from testing.wait import in_time


def urls(proxied):
    return [proxy.url for proxy in proxied]


def test_zero_nodes_are_refused(make):
    refused = refusal(make(urls=[], check=False))
    assert refused == "INVALID" and "node" in refused.message


def test_an_even_split_is_busy_and_leaves_nothing(make, nodes):
    occupy(nodes[:2])
    party = make(urls=nodes.urls[:4])
    assert party.lock(ttl_ms=own_ttl_ms(party)).acquire() == "BUSY"
    eventually(lambda: nodes.keys() == {b"r": [0, 1]}, BEFORE_LAPSE_S, "nothing is left of the loser")


def test_one_of_as_many_contenders_as_nodes_wins(make, nodes):
    parties = [make() for _ in nodes]
    waiting = [party.lock(ttl_ms=own_ttl_ms(party)).waiting() for party in parties]
    while waiting:
        ended = eventually(lambda: [one for one in waiting if not one.pending], 30, "one of them has it")
        assert len(ended) == 1
        assert ended[0].result() == "OK"
        assert ended[0].lock.release() == "OK"
        waiting.remove(ended[0])
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.parametrize("lost", [1, 3])
def test_a_set_whose_reply_is_lost_meets_its_own_key(make, nodes, proxied, lost):
    """The SET that is sent again meets its own key."""
    for proxy in proxied[:lost]:
        proxy.at("SET", "r", proxy.drop, byte=0, direction=DOWN)
    lock = make(urls=urls(proxied), ttl_ms=9000).lock()
    took = lock.acquire(wait_ms=20000)
    assert took == "OK" and values(nodes, "r") == {took.token.encode()}
    assert lock.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.parametrize("lost", [2, 3])
@pytest.mark.parametrize("direction", [UP, DOWN], ids=["requests", "replies"])
def test_a_late_set_leaves_no_key(make, nodes, proxied, direction, lost):
    """The deletes go on the connections of the SETs and follow them; a run of the command has connections of its own,
    there the TTL ends what comes late."""
    party = make(urls=urls(proxied))
    lock = party.lock(ttl_ms=own_ttl_ms(party))
    acquire_everywhere(lock, nodes)
    assert lock.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)
    for proxy in proxied[:lost]:
        proxy.at("SET", "r", lambda proxy=proxy: proxy.hold(direction), byte=0, direction=direction)
    before = [node.calls("set") for node in nodes]
    assert lock.acquire() == ("OK" if lost == 2 else "NO_QUORUM")
    if lost == 2:
        assert lock.release() == "OK"
    assert "state" not in party.can or lock.state == "FREE"
    assert direction == DOWN or [node.calls("set") for node in nodes[:lost]] == before[:lost]
    for proxy in proxied:
        proxy.go()
    if "state" in party.can:
        eventually(lambda: all(node.calls("set") > n for node, n in zip(nodes, before)), what="they are executed")
    nodes.no_keys(BEFORE_LAPSE_S)
    assert lock.acquire(wait_ms=20000) == "OK", "late replies belong to the attempt of old"


@pytest.mark.needs("cancel")
@pytest.mark.parametrize("direction", [UP, DOWN], ids=["requests", "replies"])
def test_a_cancel_in_mid_acquire_leaves_no_key(make, nodes, proxied, direction):
    for proxy in proxied:
        proxy.at("SET", "r", lambda proxy=proxy: proxy.hold(direction), byte=0, direction=direction)
    waiting = make(urls=urls(proxied), ttl_ms=30000).lock().waiting()
    eventually(lambda: sum(b"SET" in proxy.held_bytes(UP) for proxy in proxied) >= 3 if direction == UP else
               len(nodes.keys().get(b"r", [])) >= 3, what="a majority has granted, or is asked")
    waiting.cancel()
    assert waiting.result() == "CANCELLED"
    for proxy in proxied:
        proxy.go()
    eventually(lambda: sum(node.calls("set") for node in nodes) >= 3, what="what was sent is executed")
    nodes.no_keys(BEFORE_LAPSE_S)
    assert waiting.lock.acquire(wait_ms=20000) == "OK"


@pytest.mark.needs("cancel")
def test_a_cancelled_waiter_leaves_no_key(make, nodes):
    occupy(nodes)
    party = make()
    waiting = party.lock(ttl_ms=own_ttl_ms(party)).waiting()
    eventually(lambda: sum(node.calls("set") for node in nodes) > 8, 30, "it waits")
    waiting.cancel()
    assert waiting.result() == "CANCELLED"
    assert "state" not in waiting.lock.party.can or waiting.lock.state == "FREE"
    eventually(lambda: {node.get("r") for node in nodes} == {FOREIGN.encode()}, BEFORE_LAPSE_S)


@pytest.mark.needs("extend")
def test_an_extension_never_makes_a_key_again(make, nodes):
    lock = make(max_ttl_ms=60000).lock()
    acquire_everywhere(lock, nodes)
    for node in nodes:
        node.command("DEL", "r")
    assert lock.extend(60000) == "LOST"
    nodes.no_keys(BEFORE_LAPSE_S)  # it is never made again: that would stay for a minute


def test_a_release_leaves_a_foreign_owner_its_keys(make, nodes):
    party = make()
    lock = party.lock(ttl_ms=own_ttl_ms(party))
    acquire_everywhere(lock, nodes)
    occupy(nodes[:4])
    gave = lock.release()  # of a token that was taken over one node is enough to have held it
    assert gave == "LOST" or gave == "OK" and "state" not in lock.party.can
    eventually(lambda: nodes.keys() == {b"r": [0, 1, 2, 3]}, BEFORE_LAPSE_S, "its own on the fifth is deleted")
    assert [node.get("r") for node in nodes[:4]] == [FOREIGN.encode()] * 4


def test_a_reply_after_the_ttl_is_no_grant(make, nodes, proxied):
    lock = make(urls=urls(proxied)).lock(**lapsing(400))
    for proxy in proxied:
        proxy.at("SET", "r", lambda proxy=proxy: proxy.delay(down_ms=600), byte=0, direction=DOWN)
    refused = lock.acquire()
    assert refused.status in ("NO_QUORUM", "TIMED_OUT") and refused.validity_ms == 0
    assert "state" not in lock.party.can or lock.state == "FREE"
    nodes.no_keys(BEFORE_LAPSE_S)
    assert make().lock().acquire(wait_ms=20000) == "OK"


@pytest.mark.needs("extend")
@pytest.mark.parametrize("how", ["dead", "hung", "holed", "dead and hung", "misconfigured"])
def test_no_operation_waits_for_a_minority_that_is_away(face, make, nodes, black_hole, how):
    """No operation waits for it, however long it may take to answer."""
    patient = {} if face == "cli" else {"ttl_ms": 240000, "max_ttl_ms": 240000, "node_timeout_ms": 60000,
                                         "connect_timeout_ms": 60000}
    make(**patient)  # has the nodes bootstrapped, while all are there
    addresses = nodes.urls
    if how == "holed":
        addresses[0] = black_hole.url
    if "hung" in how:
        nodes[0].stop()
    if "dead" in how:
        nodes[1].kill()
    if how == "dead":
        nodes[2].kill()
    if how == "misconfigured":
        nodes[0].config_set("maxmemory", "100mb")
        nodes[0].config_set("maxmemory-policy", "allkeys-lru")
    lock = make(urls=addresses, **patient).lock()
    for _ in range(2):
        for operation in (lock.acquire, lock.extend, lock.release):
            begun_s = time.monotonic()
            assert operation() == "OK"
            in_time(time.monotonic() - begun_s < 45)
    if how == "misconfigured":
        counts_for_nothing(nodes, lock)


def counts_for_nothing(nodes, lock):
    """nodes[0]: a SET may have gone to it with a set-up, before the answer that it evicts keys. The client deletes its
    key there when it is used next."""
    eventually(lambda: lock.party.status("r") and not nodes.keys(), what="the key is deleted")
    for node in nodes[1:3]:
        node.kill()
    assert lock.acquire().status in ("NO_QUORUM", "REFUSED_CONFIG")


@pytest.mark.needs("extend")
@pytest.mark.parametrize("lost", ["request", "reply"])
@pytest.mark.parametrize("operation", COMMANDS)
def test_a_node_black_holed_in_mid_operation_fails_nothing(make, nodes, proxied, operation, lost):
    """Its connection stays, and nothing comes through any more: the cycle goes on with the others, and so does the
    next one."""
    hole, direction = proxied[0], {"request": UP, "reply": DOWN}[lost]
    lock = make(urls=[hole.url] + nodes.urls[1:]).lock()
    assert_others_suffice(operate(
        lock, operation, lambda what: hole.at(COMMANDS[what], "r", hole.black_hole, byte=0, direction=direction)))
    assert_others_suffice(operate(lock))


@pytest.mark.parametrize("how", ["dead", "hung"])
def test_no_lock_is_granted_while_a_majority_is_away(make, nodes, how):
    for node in nodes[:3]:
        node.kill() if how == "dead" else node.stop()
    assert make(connect_timeout_ms=1000).lock().acquire().status in ("NO_QUORUM", "TIMED_OUT")


@pytest.mark.needs("state")
def test_a_release_does_not_fail_because_of_nodes(make, nodes):
    lock = make().lock()
    assert lock.acquire() == "OK"
    for node in nodes:
        node.kill()
    assert lock.release() == "OK"
    assert lock.state == "FREE"


@pytest.mark.needs("fork", "state")
def test_a_forked_child_holds_no_lock_of_its_parent(face, make, nodes):
    party = make(ttl_ms=25000)
    lock = party.lock()
    token = lock.acquire().token
    replies = party.fork(("state", lock), ("validity", lock), ("extend", lock), ("release", lock), ("detach", lock))
    assert (replies[0].state, replies[1].validity_ms) == ("FREE", 0)
    assert [(reply.status, reply.get("error")) for reply in replies[2:]] == [("FORKED", error_name(face, "FORKED"))] * 3
    assert lock.state == "HELD"
    assert lock.extend() == "OK"
    assert values(nodes, "r") == {token.encode()}
    assert lock.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("fork")
def test_a_forked_child_contends_as_everybody(make, nodes):
    party = make(ttl_ms=25000)
    lock = party.lock()
    assert lock.acquire() == "OK"
    replies = party.fork(("lock", None, dict(lock="child", resource="r", options={})),
                         ("acquire", None, dict(lock="child", wait_ms=0)),
                         ("lock", None, dict(lock="other", resource="child's", options={})),
                         ("acquire", None, dict(lock="other", wait_ms=5000)),
                         ("release", None, dict(lock="other")))
    assert [reply.status for reply in replies] == ["OK", "BUSY", "OK", "OK", "OK"]
    assert lock.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("exit")
@pytest.mark.parametrize("mode", ["normal", "hard"])
def test_only_a_normal_exit_releases_what_is_held(make, nodes, mode):
    party = make(ttl_ms=25000)
    assert party.lock().acquire() == "OK"
    party.exit(mode)
    if mode == "hard":
        assert list(nodes.keys()) == [b"r"]
    else:
        nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("exit", "start")
def test_an_exit_while_waiting_leaves_no_key(make, nodes):
    occupy(nodes)
    party = make(ttl_ms=25000)
    assert party.lock().start() == "OK"
    eventually(lambda: sum(node.calls("set") for node in nodes) > 8, 30, "it waits")
    party.exit("normal")
    eventually(lambda: {node.get("r") for node in nodes} == {FOREIGN.encode()}, BEFORE_LAPSE_S)


@pytest.mark.needs("exit", "start")
def test_an_exit_in_mid_acquire_leaves_no_key(make, nodes, proxied):
    """The nodes have granted, but the replies are not read yet; the TTL is longer than the waits here."""
    for proxy in proxied:
        proxy.at("SET", "r", lambda proxy=proxy: proxy.hold(DOWN), byte=0, direction=DOWN)
    party = make(urls=urls(proxied), ttl_ms=25000)
    assert party.lock().start() == "OK"
    eventually(lambda: len(nodes.keys().get(b"r", [])) >= 3, what="a majority has granted")
    party.exit("normal")
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("exception")
def test_an_uncaught_error_releases_what_is_held(make, nodes):
    party = make(ttl_ms=25000)
    assert party.lock().acquire() == "OK"
    assert party.exit("exception") != 0
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("exception", "body")
def test_an_uncaught_error_in_a_body_releases_its_lock(make, nodes):
    party = make(ttl_ms=25000)
    lock = party.lock()
    assert lock.body() == "OK"
    assert party.exit("exception") != 0
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("extend")
def test_a_lock_is_lost_if_nodes_restart_without_their_data(make, nodes):
    lock = make().lock()
    acquire_everywhere(lock, nodes)  # a node that is asked late would be granted after its restart
    for node in nodes[:3]:
        node.restart(empty=True)
    assert lock.extend().status in ("LOST", "NO_QUORUM")
    eventually(lambda: lock.extend() == "LOST", what="it is known to be lost")


def test_the_same_server_twice_is_refused(make, nodes):
    refused = refusal(make(urls=[nodes[0].url, nodes[1].url, nodes[0].url], check=False))
    assert refused == "INVALID" and nodes[0].name in refused.message


def test_a_server_under_two_names_has_one_vote(make, nodes):
    occupy([nodes[1]])
    alias = other_name(nodes[0])
    assert make(urls=[nodes[0].url, alias, nodes[1].url]).lock().acquire().status in ("BUSY", "NO_QUORUM")


@pytest.mark.needs("extend")
def test_a_key_of_another_type_is_a_vote_against(make, nodes):
    """A vote against, like any other key; it is left as it is."""
    lock = make().lock()
    for node in nodes[:2]:
        node.command("HSET", "r", "field", "value")
    assert lock.acquire(wait_ms=20000) == "OK"
    assert lock.extend() == "OK"
    assert lock.release() == "OK"
    nodes[2].command("LPUSH", "r", "element")
    assert lock.acquire() == "BUSY"
    eventually(lambda: nodes.keys() == {b"r": [0, 1, 2]}, BEFORE_LAPSE_S)
    assert nodes[0].command("HGET", "r", "field") == b"value"

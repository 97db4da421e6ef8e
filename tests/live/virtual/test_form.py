"""A token that is used as that of a lock of another kind."""
import pytest

from rl import ADOPTED, BUSY, FREE, INVALID, LOST, NO_QUORUM, OK
from testing import eventually

SHARED, HASH, PERMIT, SET, PLAIN = (
    {"shared": True}, {"layout": "hash"}, {"permits": 4, "slot": 2}, {"more": ["b"]}, {})
HELD_AS = [(SHARED, PLAIN, "shared; give shared"), (SHARED, HASH, "shared; give shared"),
           (SHARED, SET, "shared; give shared"), (HASH, PLAIN, "hash; give layout hash"),
           (HASH, SHARED, "hash; give layout hash"), (PLAIN, HASH, "plain; give layout string"),
           (PLAIN, PERMIT, "plain; give permits 1"), (PLAIN, SET, "on fewer resources; give those alone"),
           (PERMIT, PLAIN, "permit 2 of 4; give permits 4 and slot 2"),
           (PERMIT, {"permits": 4, "slot": 1}, "permit 2 of 4; give permits 4 and slot 2")]

FEWER = [(kind, {**kind, **SET}, "on fewer resources; give those alone") for kind in (SHARED, HASH)]


DEFAULTS = {"shared": False, "layout": "string", "permits": 1, "slot": -1}


def of(client, kind):
    return client.lock("r", *kind.get("more", ()), **{name: kind[name] for name in kind if name != "more"})


def kept(nodes):
    """What the nodes have of locks."""
    return {key: on for key, on in nodes.keys().items() if b":c:" not in key}


@pytest.fixture
def handed(nodes, make_client):
    """Takes a lock of that kind on every node, and detaches it: its token."""
    def make(kind):
        lock = of(make_client(nodes.urls, ttl_ms=30000), kind)
        assert lock.acquire(20000) == OK and lock.settle() == OK
        eventually(lambda: set(map(len, kept(nodes).values())) == {5}, 20)
        token = lock.token
        assert lock.detach() == OK
        return token
    return make


@pytest.mark.parametrize("operation", ["extend", "expire"])
@pytest.mark.parametrize("held, used, words", HELD_AS + FEWER)
def test_an_extension_says_the_form(nodes, client, handed, held, used, words, operation):
    token, lock = handed(held), of(client, used)
    before = kept(nodes)
    assert lock.adopt(token) == OK
    assert getattr(lock, operation)() == BUSY
    assert lock.message == "held in another form: " + words
    assert lock.votes.count(BUSY) >= 3 and lock.said("held in another form") >= 3
    assert lock.state == ADOPTED and kept(nodes) == before
    lock.free()
    right = of(client, held)
    assert right.adopt(token) == OK and right.extend() == OK and right.release() == OK
    nodes.no_keys()


@pytest.mark.parametrize("operation", ["extend", "expire", "release"])
@pytest.mark.parametrize("held, used", [(held, used) for held, used, _ in HELD_AS if "more" not in used])
def test_the_options_that_are_set_then_are_used(nodes, client, handed, held, used, operation):
    lock = of(client, used)
    assert lock.adopt(handed(held)) == OK and lock.extend() == BUSY
    for name, value in {**DEFAULTS, **held}.items():
        lock.set(name, value)
    assert getattr(lock, operation)() == OK, lock.message
    assert "slot" not in held or lock.slot == held["slot"]
    lock.release()
    nodes.no_keys()


def test_a_missing_slot_is_named_and_what_was_adopted_stays(nodes, client, handed):
    lock = client.lock("r")
    assert lock.adopt(handed(PERMIT)) == OK
    lock.set("permits", 4)
    assert lock.extend() == INVALID and lock.message.startswith("slot is -1; allowed here for permits 4")
    assert lock.state == ADOPTED
    lock.set("slot", 2)
    assert lock.extend() == OK and lock.release() == OK
    nodes.no_keys()


@pytest.mark.parametrize("held, used, words", [one for one in HELD_AS if one[0] is not PLAIN])
def test_a_release_says_the_form(nodes, client, handed, held, used, words):
    token, lock = handed(held), of(client, used)
    before = kept(nodes)
    assert lock.adopt(token) == OK
    assert lock.release() == BUSY and lock.message == "held in another form: " + words
    assert lock.state == FREE and kept(nodes) == before


@pytest.mark.parametrize("more", [{}, {"shared": True}, {"layout": "hash"}], ids=str)
def test_a_release_takes_what_is_on_the_resources_it_names(nodes, client, handed, more):
    token, lock = handed(more), client.lock("r", "b", **more)
    assert lock.adopt(token) == OK
    assert lock.release() == OK, lock.message
    nodes.no_keys()
    assert lock.adopt(token) == OK and lock.release() == LOST


def test_a_release_leaves_the_resources_it_does_not_name(nodes, client, handed):
    token, lock = handed(SET), client.lock("r")
    assert lock.adopt(token) == OK and lock.release() == OK
    assert set(kept(nodes)) == {b"b"}
    rest = of(client, SET)
    assert rest.adopt(token) == OK and rest.release() == OK
    nodes.no_keys()


@pytest.mark.parametrize("is_confirmed", [False, True])
def test_a_set_that_lost_one_of_its_resources_is_lost(nodes, client, handed, is_confirmed):
    lock = of(client, SET)
    if is_confirmed:
        assert lock.adopt(handed(SET)) == OK and lock.extend(30000) == OK
    else:
        assert lock.acquire(20000) == OK and lock.settle() == OK
    for node in nodes:
        node.command("DEL", "b")
    assert lock.release() == LOST
    nodes.no_keys()


def test_what_readers_may_have_does_not_become_exclusive(nodes, client, handed):
    """A late request of a reader would turn the string into a set, which others could join."""
    token, lock = handed(PLAIN), client.lock("r", shared=True, outage_wait_ms=200)
    for node in nodes.nodes[:3]:
        node.stop()
    assert lock.adopt(token) == OK
    assert lock.extend() == NO_QUORUM
    lock.set("shared", False)
    for node in nodes.nodes[:3]:
        node.cont()
    assert lock.extend() == INVALID and "does not become exclusive" in lock.message


def test_a_minority_that_has_another_form_is_a_leftover(nodes, client, handed):
    token, lock = handed(SHARED), client.lock()
    for node in nodes.nodes[:3]:
        node.command("DEL", "r")
    assert lock.adopt(token) == OK and lock.extend() == LOST
    assert "nobody holds it with this token" in lock.message


def test_a_reader_whose_lease_is_over_holds_nothing(nodes, client, handed):
    token, lock = handed(SHARED), client.lock()
    for node in nodes:
        node.command("ZADD", "r", "XX", "1", "rl:" + token)
    assert lock.adopt(token) == OK and lock.release() == LOST


@pytest.mark.parametrize("operation", ["extend", "release"])
def test_a_node_that_hangs_does_not_hold_the_answer_back(nodes, client, handed, operation):
    token, lock = handed(SHARED), client.lock()
    lock.set("node_timeout_ms", 200)
    lock.set("outage_wait_ms", 1000)
    nodes.nodes[4].stop()
    assert lock.adopt(token) == OK and getattr(lock, operation)() == BUSY
    nodes.nodes[4].cont()

"""The guard that a program gets without asking for one, and REDLOCK_GUARD, which changes that."""
import pytest

from driver import refusal

MARKER = "libredlock:m"


@pytest.fixture
def new(nodes):
    """The nodes before their first use."""
    for node in nodes:
        node.flush()
    return nodes


def granted(party):
    reply = party.lock().acquire()
    assert reply == "OK", reply.message


def not_granted(party):
    reply = party.lock().acquire()
    assert reply == "NO_QUORUM" and "quarantined" in reply.message, reply


def test_nodes_that_lost_their_keys_do_not_vote(make, nodes):
    granted(make())
    for node in nodes[:3]:
        node.restart(empty=True)
    not_granted(make())


@pytest.mark.parametrize("value", [None, "", "marker"])
def test_new_nodes_do_not_vote(make, new, value):
    not_granted(make(guard_variable=value))


def test_the_variable_turns_it_off(make, new):
    granted(make(guard_variable="off"))
    assert [node.get(MARKER) for node in new] == [None] * 5


@pytest.mark.parametrize("value", ["on", "OFF", " off", "off,marker"])
def test_a_wrong_variable_is_refused(make, value):
    refused = refusal(make(check=False, guard_variable=value))
    assert refused == "INVALID", refused
    for said in "REDLOCK_GUARD", ' is "%s"; allowed: marker, external or off' % value:
        assert said in refused.message, refused.message


@pytest.mark.parametrize("value", ["marker", "on"])
def test_the_option_goes_before_the_variable(make, new, value):
    granted(make(guard_variable=value, guard="off"))


def test_the_option_turns_it_on_where_the_variable_does_not(make, new):
    not_granted(make(guard_variable="off", guard="marker"))

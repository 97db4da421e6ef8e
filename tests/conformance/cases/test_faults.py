"""A node is killed, hung, restarted or turned into a replica at each step of an operation."""
import pytest

from steps import COMMANDS, assert_others_suffice, operate
from testing import DOWN, UP

PLACES = {"before it": (UP, 0), "within it": (UP, 12), "after it": (UP, None), "before its reply": (DOWN, 0)}


def restart(node):
    """By way of a crash, without its data: a replica has kept those of its master, perhaps of a later version."""
    node.restart(empty=True)


def demote(node, other):
    connection = node.connect()
    connection.command("CONFIG", "SET", "masterauth", other.password or "")
    connection.command("REPLICAOF", other.host, other.port)
    connection.close()


FAULTS = {"killed": lambda node, _: node.kill(), "hung": lambda node, _: node.stop(),
          "restarted": lambda node, _: restart(node),
          "demoted": demote}


@pytest.mark.needs("extend")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", COMMANDS)
def test_a_fault_of_one_node_fails_no_operation(make, nodes, proxied, operation, fault, place):
    """The others are a majority: nothing fails."""
    direction, byte = PLACES[place]
    urls = [proxied[0].url] + nodes.urls[1:]

    def arm(what):
        proxied[0].at(COMMANDS[what], "r", lambda: FAULTS[fault](nodes[0], nodes[1]), byte=byte, direction=direction)

    assert_others_suffice(operate(make(urls=urls).lock(), operation, arm))


@pytest.mark.needs("extend")
@pytest.mark.parametrize("operation", COMMANDS)
def test_a_majority_that_hangs_grants_and_extends_nothing(make, nodes, proxied, operation):
    """An acquisition fails, an extension leaves the lock held, a release gives it up."""

    def arm(what):
        for node, proxy in zip(nodes[:3], proxied):
            proxy.at(COMMANDS[what], "r", node.stop, byte=0)

    lock = make(urls=[proxy.url for proxy in proxied]).lock()
    if operation == "acquire":
        arm("acquire")
        assert lock.acquire().status in ("NO_QUORUM", "TIMED_OUT")
        return
    assert lock.acquire() == "OK"
    arm(operation)
    if operation == "extend":
        assert lock.extend() == "NO_QUORUM"
    else:
        assert lock.release().status in ("OK", "NO_QUORUM")

"""A node is killed, hung, restarted or turned into a replica at each step of an operation."""
import pytest
from testing import DOWN, UP, RespConnection

COMMANDS = {"acquire": "SET", "extend": "EVALSHA", "release": "EVALSHA"}
PLACES = {"before it": (UP, 0), "within it": (UP, 12), "after it": (UP, None), "before its reply": (DOWN, 0)}


def restart(node):
    """By way of a crash, without its data."""
    node.kill()
    node.start()


def demote(node, other):
    connection = RespConnection(node.address)
    connection.command("REPLICAOF", other.host, other.port)
    connection.close()


FAULTS = {"killed": lambda node, _: node.kill(), "hung": lambda node, _: node.stop(),
          "restarted": lambda node, _: restart(node),
          "demoted": demote}


def operate(lock, operation, arm):
    """Acquires, extends and releases, with a fault armed for one of them: the results."""
    results = {}
    for what in COMMANDS:
        if what == operation:
            arm(what)
        results[what] = lock.acquire(wait_ms=20000) if what == "acquire" else getattr(lock, what)()
        if what == "acquire":
            results["others"] = sum(node.get("r") is not None for node in lock.party.cluster.nodes[1:])
    return results


@pytest.mark.needs("extend")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", COMMANDS)
def test_one_node(make, nodes, proxied, operation, fault, place):
    """The others are a majority: nothing fails. (An early win may have asked for three votes only, this node's too; and
    a command that has just started does not wait for nodes that it is still connecting to.)"""
    direction, byte = PLACES[place]
    urls = [proxied[0].url] + nodes.urls[1:]

    def arm(what):
        proxied[0].at(COMMANDS[what], "r", lambda: FAULTS[fault](nodes[0], nodes[1]), byte=byte, direction=direction)

    results = operate(make(urls=urls).lock(), operation, arm)
    assert results["acquire"] == "OK", results
    for what in ("extend", "release"):
        few = results["others"] < 3 or "connecting" in results[what].votes
        assert results[what] == "OK" or few and results[what] == "NO_QUORUM", results


@pytest.mark.needs("extend")
@pytest.mark.parametrize("operation", COMMANDS)
def test_a_majority_that_hangs(make, nodes, proxied, operation):
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

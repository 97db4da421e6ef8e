"""Events: the descriptor that tells of them."""
import os
import select

import pytest

import rl
from testing import eventually


def readable(fd):
    return bool(select.select([fd], [], [], 0)[0])


def test_the_descriptor_is_readable_as_long_as_there_are_events(client, nodes):
    fd = rl.lib.redlock_client_event_fd(client.handle)
    assert fd >= 0 and rl.lib.redlock_client_event_fd(client.handle) == fd
    client.events()
    assert not readable(fd)
    nodes[0].kill()
    eventually(lambda: client.process() == rl.OK and readable(fd), 30, "the end of the node is reported")
    assert "node_down" in [event["event"] for event in client.events()]
    assert not readable(fd)


def test_events_from_before_the_first_call_count(client):
    eventually(lambda: client.describe()["nodes"][0]["state"] == "ready", 30)
    fd = rl.lib.redlock_client_event_fd(client.handle)
    assert readable(fd) == bool(client.events())


def test_a_child_has_events_of_its_own(client, nodes):
    fd = rl.lib.redlock_client_event_fd(client.handle)
    nodes[0].kill()
    eventually(lambda: client.process() == rl.OK and readable(fd), 30, "the end of the node is reported")
    pid = os.fork()
    if pid == 0:
        os._exit(0 if client.events() == [] and not readable(fd) and
                 rl.lib.redlock_client_event_fd(client.handle) == fd else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert readable(fd) and client.events()


def test_a_client_that_leaves_takes_no_node_for_down(client, nodes):
    eventually(lambda: all(node["state"] == "ready" for node in client.describe()["nodes"]), 30)
    assert rl.Lock(client, "x").acquire() == rl.OK
    client.events()
    nodes[0].stop()  # this one's connection is closed when the drain ends, the others' by the nodes
    assert client.drain(300) == rl.TIMED_OUT
    assert client.events() == []


@pytest.mark.parametrize("handle", [rl.ffi.NULL, None])
def test_without_an_open_client_there_is_no_descriptor(handle):
    client = rl.Client(open=False)
    try:
        handle = client.handle if handle is None else handle
        assert rl.lib.redlock_client_event_fd(handle) == -rl.INVALID
    finally:
        client.free()

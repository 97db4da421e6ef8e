"""The virtual world itself: what ends a case, and that the same case is the same world."""
import pytest

import world
from common import now_ms
from rl import BUSY, OK, State, lapsing
from world import Broken, Call, select, time
from world_paths import Proxy


def test_an_unknown_command_ends_the_case_with_its_name(nodes):
    with pytest.raises(Broken, match="does not know: OBJECT ENCODING r"):
        nodes[0].command("OBJECT", "ENCODING", "r")


def test_a_script_that_calls_one_ends_the_case_as_well(nodes):
    with pytest.raises(Broken, match="does not know: SPOP r"):
        nodes[0].command("EVAL", "return redis.pcall('SPOP',KEYS[1])", 1, "r")


def test_a_script_without_end_ends_the_case(nodes):
    with pytest.raises(Broken, match="a script does not end"):
        nodes[0].command("EVAL", "while true do end", 0)


def test_what_the_world_lacks_ends_the_case(nodes, make_cluster, proxy):
    relay = proxy(nodes[0])
    with pytest.raises(Broken, match="has proxies before nodes only"):
        Proxy(relay)
    with pytest.raises(Broken, match="looks at no replies"):
        relay.at("SET", "r", relay.hold, direction="down")
    with pytest.raises(Broken, match="has no servers with unix"):
        make_cluster(1, unix=True)
    with pytest.raises(Broken, match="does not know: CONFIG SET timeout 1"):
        nodes[0].config_set("timeout", 1)


def test_a_world_that_is_broken_stays_so(nodes, client):
    lock = client.lock()
    with pytest.raises(Broken):
        nodes[0].command("OBJECT", "ENCODING", "r")
    with pytest.raises(Broken, match="OBJECT"):
        lock.acquire(0)


def test_a_call_that_waits_for_ever_ends_the_case(nodes, client):
    for node in nodes:
        node.set("r", "for ever")
    with pytest.raises(Broken, match="redlock_lock_acquire waits for ever"):
        client.lock().acquire(-1)
    assert "node 0" in world.events()


def test_a_thread_that_waits_for_ever_is_not_alive_for_ever(nodes, client):
    for node in nodes:
        node.set("r", "for ever")
    call = Call(client.lock().acquire, -1)
    with pytest.raises(AssertionError, match="does not return"):
        call.join(5)


def test_time_passes_only_where_a_case_waits(nodes, client):
    began_ms = now_ms()
    for _ in range(100):
        client.describe()
    assert now_ms() - began_ms < 5
    time.sleep(3600)
    assert 3600000 <= now_ms() - began_ms < 3600005
    assert client.lock().acquire(0) == OK


def test_one_name_gives_one_world():
    def course():
        world.start("one name")
        node, other = world.Node(), world.Node()
        for server in node, other:
            server.set("r", "x", px=5000)
        time.sleep(4)
        return node.pttl("r"), other.pttl("r"), world.events()

    assert course() == course()
    assert course()[:2] == (1000, 1000)


def test_a_key_ends_by_the_clock_of_its_server(make_cluster, make_client):
    nodes = make_cluster(3)
    client = make_client(nodes.urls)
    for node in nodes:
        node.set("r", "x", px=5000)
    assert client.lock().acquire(0) == BUSY
    for node in nodes.nodes[:2]:
        node.step(5)
    assert [node.get("r") for node in nodes] == [None, None, b"x"]


def test_a_test_hears_what_is_published(nodes):
    listener = nodes[0].connect(timeout_s=5)
    listener.command("SUBSCRIBE", "news")
    assert nodes[0].command("PUBSUB", "CHANNELS", "ne*") == [b"news"]
    assert nodes[0].command("PUBLISH", "news", b"\0\r\n") == 1
    assert listener.read() == [b"message", b"news", b"\0\r\n"]
    listener.close()
    assert nodes[0].command("PUBLISH", "news", "again") == 0
    with pytest.raises(TimeoutError):
        listener.read()


def test_a_descriptor_is_readable_when_something_is_due(nodes, make_client):
    client = make_client(nodes.urls, **lapsing(2000))

    lock = client.lock()
    assert lock.acquire(5000) == OK
    ends_ms = now_ms() + lock.validity_ms
    while lock.state != State.LOST:
        assert select.select([client.fd], [], [], 5)[0] == [client.fd]
        client.process()
    assert 0 <= now_ms() - ends_ms < 5
    while client.process() == OK and client.next() is not None:
        pass
    client.events()
    assert select.select([client.fd], [], [], 0.01)[0] == []

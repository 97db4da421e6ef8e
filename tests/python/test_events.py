"""What is told without being asked for: records of the logger "libredlock", and on_lost."""

import asyncio
import logging
import threading

import pytest

import libredlock
from libredlock import aio
from libredlock.testing import eventually
from patience import CALM, outlived, short


@pytest.fixture
def records(caplog):
    """The records with a given event."""
    caplog.set_level("DEBUG", "libredlock")

    def records(event):
        return [record for record in caplog.records if getattr(record, "redlock_event", None) == event]

    return records


def one(records, event):
    return eventually(lambda: records(event), 30, event)[0]


def test_a_loss_is_logged_though_nobody_asks(client, records, nodes):
    lock = client.lock("orders:42", **short(2), renew=True)
    lock.acquire()
    eventually(lambda: outlived(nodes), 30)
    for node in nodes:
        node.stop()
    record = one(records, "lost")
    assert (record.name, record.levelno) == ("libredlock", logging.WARNING)
    assert record.getMessage() == "lost orders:42: the lease expired"
    assert record.redlock_resource == "orders:42" and record.redlock_reason == "expired" and record.redlock_at_ms > 0
    assert one(records, "at_risk").levelno == logging.WARNING
    with pytest.raises(libredlock.Lost):
        lock.release()


def test_nodes_are_logged(records, nodes):
    with libredlock.Client(nodes.urls, **CALM) as client:
        client.status("r")
        up = eventually(lambda: len(records("node_up")) == 5 and records("node_up"), 30)
        assert {record.redlock_node for record in up} == {node.name for node in nodes}
        assert {record.levelno for record in up} == {logging.INFO}
        nodes[0].kill()
        with client.lock("r"):
            record = one(records, "node_down")
    assert record.levelno == logging.WARNING and record.redlock_node == nodes[0].name
    assert nodes[0].name in record.getMessage()


def test_events_are_kept_and_logged_once(client, records):
    lock = client.lock("gone", **short(0.4))
    lock.acquire()
    one(records, "lost")
    losses = [event for event in client.events() if event["event"] == "lost"]
    assert [event["resource"] for event in losses] == ["gone"]
    assert losses == [event for event in client.events() if event["event"] == "lost"]
    assert len(records("lost")) == 1


def test_asyncio_logs_by_itself(nodes, run, records):
    async def main():
        async with aio.Client(nodes.urls, **CALM) as client:
            lock = client.lock("r", **short(0.4))
            await lock.acquire()
            while not records("lost"):
                await asyncio.sleep(0.01)

    run(main())
    assert records("lost")[0].redlock_resource == "r" and records("node_up")


def test_on_lost_is_called_once_at_the_loss(client, nodes):
    lost = []
    lock = client.lock("r", **short(0.4), on_lost=lost.append)
    other = client.lock("other", ttl=20, on_lost=lost.append)
    other.acquire()
    for count in (1, 2):
        lock.acquire()
        eventually(lambda: len(lost) == count, 30)
        with pytest.raises(libredlock.Lost):
            lock.release()
    assert lost == [lock, lock]
    other.release()
    nodes.no_keys()


def test_on_lost_of_a_with_block_that_hangs(client, nodes):
    """The block itself asks nobody."""
    lost = threading.Event()
    with pytest.raises(libredlock.Lost):
        with client.lock("r", **short(2), on_lost=lambda lock: lost.set()):
            for node in nodes:
                node.stop()
            assert lost.wait(60)


def test_on_lost_of_an_adopted_lock(client, other):
    lock = client.lock("r", ttl=10)
    lock.acquire()
    client.status("r")
    lost = threading.Event()
    adopted = other.adopt("r", lock.detach(), **short(0.4), on_lost=lambda lock: lost.set())
    adopted.extend()
    adopted.extend(0.5)
    assert lost.wait(60) and adopted.lost


def test_an_error_in_on_lost_is_logged(client, caplog):
    def fails(lock):
        raise KeyError("mine")

    lock = client.lock("r", **short(0.4), on_lost=fails)
    lock.acquire()
    record = eventually(lambda: [r for r in caplog.records if "on_lost" in r.getMessage()], 30)[0]
    assert record.exc_info[0] is KeyError and "'r'" in record.getMessage()


def test_on_lost_in_asyncio_is_called_by_the_loop(nodes, run):
    async def main():
        async with aio.Client(nodes.urls, **CALM) as client:
            lost = asyncio.get_running_loop().create_future()
            lock = client.lock("r", **short(0.4), on_lost=lost.set_result)
            await lock.acquire()
            assert await lost is lock
            with pytest.raises(libredlock.Lost):
                await lock.release()

    run(main())


@pytest.mark.parametrize("module", [libredlock, aio])
def test_on_lost_is_a_function(module):
    client = module.Client("redis://127.0.0.1:1")
    with pytest.raises(TypeError, match="on_lost=5"):
        client.lock("r", on_lost=5)


def test_a_forked_child_logs_too(script, nodes):
    source = f"""
import logging, os, sys
logging.basicConfig(level="INFO", stream=sys.stdout, format="%(levelname)s %(redlock_event)s %(redlock_resource)s")
logging.getLogger("libredlock").addFilter(lambda record: record.redlock_event == "lost")
import libredlock
client = libredlock.Client(**{CALM})
client.lock("warm", **{short(0.4)}).acquire(); client.status("warm")
pid = os.fork()
if pid == 0:
    import time
    lock = client.lock("child", **{short(0.4)})
    lock.acquire()
    for _ in range(3000):
        if any(event["event"] == "lost" for event in client.events()): break
        time.sleep(0.01)
    os._exit(0)
os.waitpid(pid, 0)
"""
    status, out, err = script(source).end()
    assert status == 0 and "WARNING lost child" in out.splitlines(), out + err

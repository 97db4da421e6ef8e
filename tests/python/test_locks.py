"""client.locks(): which locks there are, who holds and who waits for them."""
import asyncio
import os
import threading

import pytest

import libredlock
import libredlock.aio
from libredlock.testing import AsyncMemoryClient, MemoryClient, eventually


@pytest.fixture
def client(nodes):
    with libredlock.Client(nodes.urls, client_name="worker-7", ttl=20) as client:
        yield client


def test_locks_tells_who_holds_them(client):
    with client.lock("orders:42") as hold, client.lock(b"orders:\xff"), client.lock("invoices"):
        first, second = client.locks("orders:*")
        assert (first.resource, first.kind, first.verdict, first.token) == ("orders:42", "plain", "held", hold.token)
        assert (first.held_by.client_name, first.held_by.pid) == ("worker-7", os.getpid())
        assert 0 < first.remaining <= 20 and (first.waiting, first.first, first.slot) == (0, None, None)
        assert second.resource == b"orders:\xff"
        assert [one.resource for one in client.locks()] == ["invoices", "orders:42", b"orders:\xff"]
        assert not client.locks().more
    assert client.locks() == ()


def test_locks_tells_who_waits(client, nodes):
    def turn():
        with other.lock("orders:42"):
            pass

    with libredlock.Client(nodes.urls, client_name="other", ttl=20) as other:
        waiters = [threading.Thread(target=turn) for _ in range(3)]
        with client.lock("orders:42"):
            for waiter in waiters:
                waiter.start()
            eventually(lambda: client.locks("orders:42")[0].waiting == 3, 20)
            [row] = client.locks("orders:42")
            assert row.first.client_name == "other" and 0 <= row.first.waited < 60
        for waiter in waiters:
            waiter.join()


def test_locks_ends_at_its_timeout(client, nodes):
    for node in nodes:
        node.command("EVAL", "for i=1,20000 do redis.call('SET','x'..i,i) end", 0)
    found = client.locks(timeout=0.05)
    assert found == () and found.more
    with pytest.raises(libredlock.InvalidOption):
        client.locks(timeout=-1)


def test_locks_raises_if_too_few_nodes_tell_all(nodes):
    for node in list(nodes)[:3]:
        node.kill()
    with libredlock.Client(nodes.urls) as client, pytest.raises(libredlock.NoQuorum):
        client.locks()


def test_tasks_list_locks_too(nodes):
    async def main():
        async with libredlock.aio.Client(nodes.urls) as client, client.semaphore("gpu", 2) as one:
            [row] = await client.locks("g*")
            assert (row.kind, row.slot, row.permits, row.token) == ("permits", one.slot, 2, one.token)
            task = asyncio.create_task(client.locks())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(await client.locks()) == 1
    asyncio.run(main())


def test_memory_has_a_list_too():
    with MemoryClient(key_prefix="app:", ttl=10) as client:
        with client.lock("orders:42") as hold, client.lock("readers", shared=True), client.lock("readers", shared=True):
            first, second = client.locks()
            assert (first.resource, first.token, first.waiting) == ("orders:42", hold.token, 0)
            assert (second.kind, second.verdict, second.held_by.readers) == ("shared", "shared", 2)
            assert [row.resource for row in client.locks("o*")] == ["orders:42"]
        client.set_reachable(False)
        with pytest.raises(libredlock.NoQuorum):
            client.locks()

    async def main():
        async with AsyncMemoryClient() as client, client.lock("a"):
            assert [row.resource for row in await client.locks()] == ["a"]
    asyncio.run(main())

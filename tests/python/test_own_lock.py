"""A lock is not re-entrant: whoever waits for what it holds itself is warned."""

import asyncio
import threading

import pytest

from libredlock.testing import MemoryClient


@pytest.mark.parametrize("ways", ["one object", "two objects"])
def test_thread_that_waits_for_its_own_lock_is_warned_once(script, ways):
    source = f"""
import libredlock
client = libredlock.Client(ttl=4, node_timeout=1, client_name="me")
lock = client.lock("r")
lock.acquire()
again = lock if {ways == "one object"} else client.lock("r")
print(bool(again.acquire()))  # when the lease has ended
again.release()
"""
    status, out, err = script(source).end()
    assert (status, out) == (0, "True") and err.count("which it holds itself: a Lock is not re-entrant") == 1, err


def test_thread_that_waits_for_another_thread_is_not_warned(client, caplog):
    lock = client.lock("r", ttl=4, node_timeout=1)
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    assert lock.acquire()  # when the lease has ended
    assert "not re-entrant" not in caplog.text
    lock.release()


def test_a_thread_is_warned_in_memory_too(caplog):
    client = MemoryClient(ttl=30)
    hold = client.lock("r").take()
    another = threading.Thread(target=client.lock("r").acquire, kwargs={"timeout": 2})
    another.start()
    another.join()
    assert "not re-entrant" not in caplog.text
    assert client.lock("r").acquire(timeout=2) is False and hold.owned()
    assert caplog.text.count("this thread waits for 'r', which it holds itself: a Lock is not") == 1


@pytest.mark.parametrize("ways", ["one object", "two objects", "two objects, str and bytes"])
def test_task_that_waits_for_its_own_lock_is_warned_once(on_client, caplog, ways):
    async def body(client):
        lock = client.lock("r", ttl=4, node_timeout=1)
        again = lock if ways == "one object" else client.lock("r" if ways == "two objects" else b"r", node_timeout=1)
        await lock.acquire()
        assert await again.acquire()  # when the lease has ended
        await again.release()

    on_client(body)
    words = f"this task waits for {'r' if 'bytes' not in ways else b'r'!r}, which it holds itself: a Lock is not"
    assert caplog.text.count(words) == caplog.text.count("not re-entrant") == 1


def test_task_that_waits_for_another_task_is_not_warned(on_client, caplog):
    async def body(client):
        await asyncio.gather(client.lock("r", ttl=4, node_timeout=1).acquire(), client.lock("other").acquire())
        assert await client.lock("r", node_timeout=1).acquire()  # when the lease of the ended task has ended

    on_client(body)
    assert "not re-entrant" not in caplog.text

"""Shared locks, and locks of several resources."""
import pytest

import libredlock
from libredlock.testing.memory import MemoryClient


def test_readers_and_a_writer(client):
    with client.lock("report", shared=True) as one, client.lock("report", shared=True):
        report = client.status("report")
        assert (report.verdict, report.held) == ("shared", True)
        assert report.held_by.readers == 2
        with pytest.raises(libredlock.Busy):
            client.lock("report", wait=0).__enter__()
        one.extend(20)
    with client.lock("report", wait=10):
        assert client.lock("report", shared=True).acquire(blocking=False) is False


def test_several_resources(client):
    with client.lock(["a", "b"]) as both:
        assert both.resource == ("a", "b")
        assert client.status("b").token == both.token
        with pytest.raises(libredlock.Busy) as failure:
            client.lock(("c", b"b"), wait=0).__enter__()
        assert failure.value.resource == ("c", b"b")
        assert client.status("c").verdict == "free"
    with client.lock(["a"]):
        assert client.status("a").held


def test_a_text_is_one_resource(client):
    with client.lock("abc"):
        assert client.status("abc").held
        assert client.status("a").verdict == "free"


@pytest.mark.parametrize("resource, kind, words", [
    ([], libredlock.InvalidOption, "1 to 100 resources"),
    (["a", "a"], libredlock.InvalidOption, "each once"),
    (["r%d" % number for number in range(101)], libredlock.InvalidOption, "101 resources"),
    (["a", ""], libredlock.InvalidOption, "0 bytes"),
    (["a", 7], TypeError, "takes str or bytes"),
    ({"a", "b"}, TypeError, "list or tuple"),
    (7, TypeError, "list or tuple"),
])
def test_resources_that_are_refused(client, resource, kind, words):
    with pytest.raises(kind, match=words):
        client.lock(resource)


@pytest.mark.parametrize("resource, options", [(["a", "b"], {}), ("a", {"shared": True})])
def test_a_fence_is_refused_with_them(client, resource, options):
    with pytest.raises(libredlock.InvalidOption, match="fence"):
        client.lock(resource, fence=True, **options)


def test_asyncio(on_client):
    async def body(client):
        async with client.lock("report", shared=True), client.lock("report", shared=True):
            assert (await client.status("report")).held_by.readers == 2
        async with client.lock(["a", "b"], wait=10) as both:
            assert (await client.status("a")).token == both.token

    on_client(body)


def test_a_client_in_memory_has_none_of_them():
    with MemoryClient() as client:
        with pytest.raises(TypeError, match="takes str or bytes"):
            client.lock(["a", "b"])
        with pytest.raises(libredlock.InvalidOption, match="shared"):
            client.lock("a", shared=True)

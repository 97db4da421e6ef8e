"""Shared locks, and locks of several resources."""
import pytest

import libredlock
from libredlock import aio
from libredlock.testing import eventually
from patience import GENEROUS_TIMEOUTS, busy, busy_in_task


def test_readers_share_a_lock_and_a_writer_has_it_alone(client):
    with client.lock("report", shared=True) as one, client.lock("report", shared=True):
        report = client.status("report")
        assert (report.verdict, report.held) == ("shared", True)
        assert report.held_by.readers == 2
        with pytest.raises(libredlock.Busy):
            client.lock("report", wait=0).__enter__()
        one.extend(20)
    with client.lock("report", wait=10):
        assert client.lock("report", shared=True).acquire(blocking=False) is False


def test_a_holder_goes_on_as_a_reader(client, other):
    lock = client.lock("report", ttl=8)
    with lock as writer:
        token = writer.token
        assert 8 < writer.downgrade(20) <= 20
        assert (client.status("report").verdict, writer.token) == ("shared", token)
        with other.lock("report", shared=True):
            assert client.status("report").held_by.readers == 2
        assert other.lock("report").acquire(blocking=False) is False
        assert writer.downgrade() > 0 and writer.owned()
    with lock:  # alone again
        assert client.status("report").verdict == "held"
        assert other.lock("report", shared=True).acquire(blocking=False) is False


def test_a_reader_is_downgraded_to_what_it_is(client):
    lock = client.lock("report", shared=True)
    with lock as reader:
        assert reader.downgrade() > 0
    with lock:
        assert client.status("report").verdict == "shared"


def test_a_downgrade_of_what_is_not_held_is_refused(client, nodes):
    lock = client.lock("report")
    with pytest.raises(libredlock.NotHeld):
        lock.downgrade()
    assert lock.acquire()
    with pytest.raises(ValueError, match="ttl"):
        lock.downgrade(0)
    adopted = client.adopt("report", lock.detach())
    with pytest.raises(libredlock.NotHeld, match="extend"):
        adopted.downgrade()
    assert client.status("report").verdict == "held"
    adopted.extend()
    eventually(lambda: nodes.keys().get(b"report") == [0, 1, 2, 3, 4], 20)
    for node in nodes:
        node.flush()
    with pytest.raises(libredlock.Lost):
        adopted.downgrade()


def test_a_downgrade_inside_of_an_outer_section_is_refused(client):
    tree = client.rlock("tree")
    with tree:
        with tree:
            with pytest.raises(libredlock.InvalidOption, match=r"downgrade\(\): 'tree' was acquired 2 times"):
                tree.downgrade()
        tree.downgrade()
        assert client.status("tree").verdict == "shared"
        with tree:
            assert tree.owned()
    assert client.status("tree").verdict == "free"


def test_busy_names_who_holds_one_of_several(client, nodes):
    with libredlock.Client(nodes.urls, client_name="reporter", **GENEROUS_TIMEOUTS) as reporter, reporter.lock("c"):
        for resources in (["a", "c"], ["c", "a"]):
            assert busy(client.lock(resources, wait=0).__enter__).held_by.client_name == "reporter"


def test_several_resources_are_held_together_or_not_at_all(client):
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
def test_wrong_resources_are_refused(client, resource, kind, words):
    with pytest.raises(kind, match=words):
        client.lock(resource)


@pytest.mark.parametrize("resource, options", [(["a", "b"], {}), ("a", {"shared": True})])
def test_a_fence_is_refused_with_them(client, resource, options):
    with pytest.raises(libredlock.InvalidOption, match="fence"):
        client.lock(resource, fence=True, **options)


def test_readers_and_several_resources_work_in_asyncio(on_client, nodes):
    async def body(client):
        async with client.lock("report", shared=True), client.lock("report", shared=True):
            assert (await client.status("report")).held_by.readers == 2
        async with client.lock(["a", "b"], wait=10) as both:
            assert (await client.status("a")).token == both.token

        async with aio.Client(nodes.urls, client_name="reporter", **GENEROUS_TIMEOUTS) as reporter, reporter.lock("c"):
            failure = await busy_in_task(client.lock(["a", "c"], wait=0).__aenter__)
            assert failure.held_by.client_name == "reporter"

    on_client(body)


def test_asyncio_downgrades(on_client):
    async def body(client):
        lock = client.lock("report")
        async with lock as writer:
            await writer.downgrade()
            async with client.lock("report", shared=True):
                assert (await client.status("report")).held_by.readers == 2
        async with lock:
            assert (await client.status("report")).verdict == "held"
        tree = client.rlock("tree")
        async with tree, tree:
            with pytest.raises(libredlock.InvalidOption, match="acquired 2 times"):
                await tree.downgrade()

    on_client(body)

"""Permits: client.semaphore()."""
import pytest

import libredlock


def test_as_many_hold_it_as_there_are_permits(client):
    with client.semaphore("gpu", 2) as one, client.semaphore("gpu", 2) as two:
        assert {one.slot, two.slot} == {0, 1}
        assert client.semaphore("gpu", 2).acquire(blocking=False) is False
        one.extend(20)
    with client.lock("gpu", permits=2, slot=1) as chosen:
        assert chosen.slot == 1
    with client.lock("gpu") as plain:
        assert plain.slot is None


@pytest.mark.parametrize("resource, permits, options, words", [
    ("gpu", 0, {}, "permits"),
    ("gpu", 257, {}, "permits"),
    ("gpu", 2, {"slot": 2}, "slot"),
    ("gpu", 2, {"shared": True}, "shared"),
    ("gpu", 2, {"fence": True}, "fence"),
    (["a", "b"], 2, {}, "several resources"),
])
def test_permits_that_do_not_fit_are_refused(client, resource, permits, options, words):
    with pytest.raises(libredlock.InvalidOption, match=words):
        client.semaphore(resource, permits, **options)


def test_how_many_may_be_an_option(client):
    with client.semaphore("gpu", permits=2), client.semaphore("gpu", 2):
        assert client.semaphore("gpu", permits=2).acquire(blocking=False) is False
    for arguments, options in ((), {}), ((2,), {"permits": 2}):
        with pytest.raises(TypeError, match="permits"):
            client.semaphore("gpu", *arguments, **options)


def test_tasks_hold_permits_of_their_own(on_client):
    async def body(client):
        async with client.semaphore("gpu", 2) as one, client.semaphore("gpu", 2) as two:
            assert {one.slot, two.slot} == {0, 1}

    on_client(body)

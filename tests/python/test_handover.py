"""detach, adopt, status."""

import pytest

import libredlock
from patience import lapsing


def take(client, resource, **options):
    """A held lock whose requests have all been answered, so that a release by another client meets all keys.

    A status asks every node behind those requests. Without it a late SET could leave a key until its TTL.
    """
    lock = client.lock(resource, **options)
    lock.acquire()
    client.status(resource)
    return lock


def test_a_detached_lock_lives_on_in_another_client(client, other, nodes):
    lock = take(client, "r", ttl=10)
    token = lock.detach()
    assert len(token) == 40
    assert not lock.locked() and not lock.owned()
    del lock
    adopted = other.adopt("r", token, ttl=8)
    assert adopted.locked() and not adopted.owned() and adopted.remaining == 0
    with pytest.raises(libredlock.NotHeld, match="extend"):
        adopted.check()
    adopted.extend()
    assert adopted.owned() and adopted.token == token
    adopted.release()
    nodes.no_keys()


def test_with_confirms_an_adopted_lock_and_releases_it(client, other, nodes):
    lock = take(client, "r")
    with other.adopt("r", lock.detach(), ttl=8) as adopted:
        assert adopted.owned()
    nodes.no_keys()


def test_with_around_an_adopted_lock_that_is_gone_is_not_entered(client):
    with pytest.raises(libredlock.Lost):
        with client.adopt("r", "0" * 40):
            pytest.fail("entered")


def test_release_of_an_adopted_lock_that_is_gone_says_so(client):
    adopted = client.adopt("r", "0" * 40)
    with pytest.raises(libredlock.Lost, match="no longer had its token") as caught:
        adopted.release()
    assert caught.value.reason == adopted.loss == "gone"


def test_release_of_an_adopted_lock_ignores_failing_nodes(client, nodes):
    for node in nodes:
        node.kill()
    client.adopt("r", "0" * 40).release()


def test_detach_of_nothing_is_refused(client):
    with pytest.raises(libredlock.NotHeld):
        client.lock("r").detach()


def test_detach_lets_the_next_thread_in(client):
    lock = client.lock("r", **lapsing(0.4))
    lock.acquire()
    lock.detach()
    assert lock.acquire(timeout=30)
    lock.release()


def test_status_names_the_holder(client, other, nodes):
    assert client.status("r").verdict == "free"
    with other.lock("r", ttl=25, renew=False) as lock:
        report = client.status("r")
        assert (report.resource, report.verdict, report.token) == ("r", "held", lock.token)
        assert 10 < report.remaining <= 25
        assert set(report.votes) == {node.name for node in nodes}
    assert client.status("r").verdict == "free"
    assert client.status("r").remaining is None


def test_status_of_split_votes_is_split(client, nodes):
    for node in nodes.nodes[:2]:
        node.set("r", "one")
    for node in nodes.nodes[2:4]:
        node.set("r", "two", px=30000)
    report = client.status("r")
    assert report.verdict == "split" and report.token is None


def test_a_token_of_another_kind_says_which(client, other, nodes):
    """It is not gone: the lock stays, and the error says what to give."""
    token = take(client, "r", shared=True, ttl=20).detach()
    adopted = other.adopt("r", token)
    with pytest.raises(libredlock.Busy, match="^held in another form: shared; give shared$"):
        adopted.extend()
    assert adopted.locked()
    with pytest.raises(libredlock.Busy, match="^held in another form: shared; give shared$"):
        adopted.release()
    reader = other.adopt("r", token, shared=True)
    reader.extend()
    reader.release()
    nodes.no_keys()

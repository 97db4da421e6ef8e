"""Client.election(): one candidate leads at a time."""

import asyncio
import contextlib
import signal
import threading

import pytest

import libredlock
from common import follow, lead
from libredlock import aio
from libredlock._thread_lock import Seat
from libredlock.testing import eventually
from patience import GENEROUS_TIMEOUTS, lapsing, until


def lose(nodes):
    for node in nodes:
        node.delete_keys()


def in_thread(call):
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def rotate(node):
    node.command("ACL", "SETUSER", "few", "resetpass", ">new")
    node.command("CLIENT", "KILL", "USER", "few")


def rotate_back(node):
    node.command("ACL", "SETUSER", "few", "resetpass", ">p")


REFUSALS = pytest.mark.parametrize("refuse, mend", [(follow, lead), (rotate, rotate_back)],
                                   ids=["replica", "password"])
# A server that was promoted is in quarantine for max_ttl; other locks than elections give up after outage_wait.
STANDS_BY = {**GENEROUS_TIMEOUTS, **lapsing(4), "max_ttl": 4, "outage_wait": 1}


@pytest.fixture
def three(make_cluster):
    cluster = make_cluster(3, max_ttl=4)
    for node in cluster:
        node.command("ACL", "SETUSER", "few", "on", ">p", "~*", "&*", "+@all")
    return cluster


def urls(nodes, password):
    return [node.url_with("few", password) for node in nodes]


@contextlib.contextmanager
def refused_for_a_time(nodes, refuse, mend):
    """These nodes refuse for 3 s; the event says that the first is about to be mended."""
    mended = threading.Event()

    def mend_all():
        mended.set()
        for node in nodes:
            mend(node)

    for node in nodes:
        refuse(node)
    timer = threading.Timer(3, mend_all)
    timer.start()
    try:
        yield mended
    finally:
        timer.cancel()
        timer.join()


def test_terms_follow_each_other(client, other, nodes):
    terms = []

    def stand(candidate):
        election = candidate.election("scheduler")
        for term in election:
            with term:
                assert term.owned() and term.remaining > 0 and term.resource == "scheduler"
                terms.append(term.fence)
            if len(terms) >= 4:
                election.stop()

    threads = [in_thread(lambda c=candidate: stand(c)) for candidate in (client, other)]
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len(terms) >= 4 and terms == sorted(set(terms))
    eventually(lambda: not any(node.get("scheduler") for node in nodes), 5, "the key is deleted")


def test_a_loss_ends_the_term_and_it_stands_by_again(client, nodes):
    election = client.election("scheduler", **lapsing(4))
    terms = []
    for term in election:
        with term:
            terms.append(term.fence)
            if len(terms) == 2:
                break
            lose(nodes)
            eventually(lambda: term.lost)
            term.check()
            pytest.fail("it goes on after the loss")
        assert term.lost and not term.owned() and term.remaining == 0
    assert not term.lost
    with pytest.raises(libredlock.NotHeld):
        term.check()
    assert terms[1] > terms[0]
    assert not client.lock("scheduler").locked()


def test_a_block_that_ends_well_after_a_loss_is_followed(client, nodes):
    election = client.election("scheduler", **lapsing(4))
    terms = []
    for term in election:
        with term:
            terms.append(term.fence)
            if len(terms) == 1:
                lose(nodes)
                eventually(lambda: term.lost)
        if len(terms) == 2:
            election.stop()
    assert len(terms) == 2


def test_the_error_of_the_block_leaves_and_the_seat_is_free(client, other):
    with pytest.raises(KeyError):
        for term in client.election("scheduler"):
            with term:
                raise KeyError("mine")
    assert other.lock("scheduler").acquire(timeout=20)


def test_stop_ends_a_wait(client, other):
    with other.lock("scheduler"):
        election = client.election("scheduler")
        waiting = in_thread(lambda: list(election))
        eventually(lambda: client.describe()["waiting"])
        election.stop()
        waiting.join(60)
        assert not waiting.is_alive()
        assert list(election) == []


def test_stop_before_the_wait_has_begun_ends_it(client, other, monkeypatch):
    election = client.election("scheduler")
    election.stop()
    assert list(election) == []
    late = client.election("scheduler")
    acquire = Seat._acquire
    monkeypatch.setattr(Seat, "_acquire", lambda *arguments: (late.stop(), acquire(*arguments))[1])
    with other.lock("scheduler"):
        waiting = in_thread(lambda: list(late))
        waiting.join(60)
        assert not waiting.is_alive()


def test_stop_in_a_signal_handler_ends_the_wait(client, other):
    election = client.election("scheduler")
    before = signal.signal(signal.SIGUSR1, lambda *_: election.stop())
    try:
        with other.lock("scheduler"):
            in_thread(lambda: (eventually(lambda: client.describe()["waiting"]),
                               signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)))
            assert list(election) == []
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_close_ends_a_wait(nodes, other):
    closing = libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    election = closing.election("scheduler")
    with other.lock("scheduler"):
        waiting = in_thread(lambda: list(election))
        eventually(lambda: closing.describe()["waiting"])
        closing.close()
        waiting.join(60)
        assert not waiting.is_alive()


def test_on_lost_is_called_for_a_term(client, nodes):
    told = threading.Event()
    election = client.election("scheduler", on_lost=lambda lock: told.set(), **lapsing(4))
    for term in election:
        with term:
            lose(nodes)
            assert told.wait(60)
        election.stop()


@REFUSALS
def test_it_stands_by_through_refusals_that_pass(three, refuse, mend):
    with libredlock.Client(urls(three, "p"), **STANDS_BY) as client:
        assert client.check()["voting"] == 3
        election = client.election("scheduler")
        with refused_for_a_time(three[:2], refuse, mend) as mended:
            for term in election:
                with term:
                    assert mended.is_set()
                election.stop()


def test_a_refusal_that_is_final_ends_the_loop(three):
    """Nodes that have never voted for this client: no wait helps."""
    with libredlock.Client(urls(three, "wrong"), **STANDS_BY) as client:
        election = client.election("scheduler")
        waits_on = threading.Timer(20, election.stop)
        waits_on.start()
        with pytest.raises(libredlock.RefusedConfig, match="WRONGPASS"):
            list(election)
        waits_on.cancel()


@pytest.mark.parametrize("keyword, value", [("wait", 5), ("fence", False), ("renew", False), ("retry_count", 1),
                                            ("permits", 2), ("shared", True), ("layout", "hash")])
def test_what_an_election_is_about_is_no_option(client, keyword, value):
    with pytest.raises(TypeError, match=rf"election\(\) takes no {keyword}=: "):
        client.election("scheduler", **{keyword: value})


def test_other_options_are_refused_as_those_of_locks(client):
    with pytest.raises(TypeError, match="did you mean ttl"):
        client.election("scheduler", tll=5)
    with pytest.raises(TypeError, match="rlock"):
        client.election("scheduler", reentrant=True)
    with pytest.raises(libredlock.InvalidOption):
        client.election("scheduler", ttl=0)
    with pytest.raises(libredlock.InvalidOption, match=r"^election\(ttl=3, min_validity=5\): "):
        client.election("scheduler", ttl=3, min_validity=5)
    with pytest.raises(TypeError, match=r"^election\(\['a', 'b'\]\): takes one resource"):
        client.election(["a", "b"])


@pytest.mark.parametrize("default", [{"shared": True}, {"permits": 3}, {"layout": "hash"}], ids=str)
def test_it_has_one_leader_whatever_the_locks_of_its_client_are(nodes, other, default):
    with libredlock.Client(nodes.urls, **default) as client:
        for term in client.election("scheduler"):
            assert term.fence > 0
            assert not other.lock("scheduler").acquire(blocking=False)
            break


def test_it_shows_itself(client):
    election = client.election("scheduler")
    assert repr(election) == "<libredlock.Election 'scheduler'>"
    for term in election:
        with term:
            assert repr(term).startswith(f"<libredlock.Term {term.fence} of ")
        election.stop()


# ---- asyncio ---------------------------------------------------------------------------------------------------------


def test_a_loss_cancels_the_block_and_it_stands_by_again(on_client, nodes):
    async def body(client):
        election = client.election("scheduler", **lapsing(4))
        terms = []
        async for term in election:
            async with term:
                terms.append(term.fence)
                if len(terms) == 2:
                    election.stop()
                    continue
                lose(nodes)
                await asyncio.sleep(60)
                pytest.fail("it goes on after the loss")
        assert len(terms) == 2 and terms[1] > terms[0]
        if hasattr(asyncio.current_task(), "cancelling"):
            assert asyncio.current_task().cancelling() == 0

    on_client(body)


def test_tasks_stand_by(on_client, nodes):
    async def body(client):
        first, second = client.election("scheduler"), client.election("scheduler")
        led = asyncio.Event()

        async def stand():
            return [term.fence async for term in second if not led.is_set()]

        async for term in first:
            async with term:
                waiting = asyncio.create_task(stand())
                await until(lambda: client.describe()["waiting"])
                assert not waiting.done()
                second.stop()
                assert await waiting == []
            first.stop()

    on_client(body)


def test_cancelling_the_task_leaves_no_seat(on_client, nodes):
    async def body(client):
        async def stand():
            async for term in client.election("scheduler"):
                async with term:
                    await asyncio.sleep(60)

        task = asyncio.create_task(stand())
        await until(lambda: any(node.get("scheduler") for node in nodes))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not any(node.get("scheduler") for node in nodes))

    on_client(body)


@REFUSALS
def test_a_task_stands_by_through_refusals_that_pass(run, three, refuse, mend):
    async def body():
        async with aio.Client(urls(three, "p"), **STANDS_BY) as client:
            assert (await client.check())["voting"] == 3
            election = client.election("scheduler")
            with refused_for_a_time(three[:2], refuse, mend) as mended:
                async for term in election:
                    async with term:
                        assert mended.is_set()
                    election.stop()

    run(body())


def test_a_refusal_that_is_final_ends_the_loop_of_a_task(run, three):
    async def body():
        async with aio.Client(urls(three, "wrong"), **STANDS_BY) as client:
            election = client.election("scheduler")
            asyncio.get_running_loop().call_later(20, election.stop)
            with pytest.raises(libredlock.RefusedConfig, match="WRONGPASS"):
                assert not [term async for term in election]

    run(body())


def test_close_ends_the_loop(run, nodes, other):
    async def body():
        client = aio.Client(nodes.urls, **GENEROUS_TIMEOUTS)
        election = client.election("scheduler")

        async def stand():
            return [term async for term in election]

        with other.lock("scheduler"):
            task = asyncio.create_task(stand())
            await until(lambda: client.describe()["waiting"])
            await client.close()
            assert await task == []

    run(body())


def test_a_term_that_was_handed_over_ends_in_silence(client, other, caplog):
    for term in client.election("r", ttl=20):
        with pytest.raises(KeyError), term:
            token = term.detach()
            raise KeyError("mine")
        break
    assert "left the block" not in caplog.text
    other.adopt("r", token).release()

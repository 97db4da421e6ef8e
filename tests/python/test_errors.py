"""Exceptions are those of the core's status list."""

import logging
import pickle
import traceback

import pytest

import libredlock
from libredlock import _errors
from libredlock._core import ffi, lib
from libredlock.testing import FakeServer, eventually


def name(status):
    return ffi.string(lib.redlock_status_name(status)).decode()


def core_statuses():
    return {n: getattr(lib, n) for n in dir(lib) if n.startswith("REDLOCK_") and name_is_status(n)}


def name_is_status(constant):
    value = getattr(lib, constant)
    return isinstance(value, int) and "REDLOCK_" + name(value) == constant


def test_status_is_the_core_s_list():
    assert {f"REDLOCK_{s.name}": int(s) for s in libredlock.Status} == core_statuses()


def test_every_error_has_an_exception_named_after_it():
    special = {"INVALID": "InvalidOption"}
    of_votes = libredlock.Status.UNREACHABLE, libredlock.Status.QUARANTINED
    for status in libredlock.Status:
        if lib.redlock_status_is(status, lib.REDLOCK_IS_ERROR) and status not in of_votes:
            camel = special.get(status.name, status.name.title().replace("_", ""))
            kind = getattr(libredlock, camel)
            assert kind.status is status
            failure = _errors.error(status, "words", "r", {})
            assert type(failure) is kind and str(failure) == "words" and failure.resource == "r"
            assert camel in libredlock.__all__


def test_without_words_the_status_s_sentence_is_said():
    assert str(_errors.error(lib.REDLOCK_BUSY, "")) == ffi.string(lib.redlock_status_text(lib.REDLOCK_BUSY)).decode()


@pytest.mark.parametrize(
    "kind, also",
    [("TimedOut", TimeoutError), ("NotHeld", RuntimeError), ("InvalidOption", ValueError), ("NoMemory", MemoryError)],
)
def test_they_are_what_python_programs_expect(kind, also):
    assert issubclass(getattr(libredlock, kind), also)


def test_a_subclass_may_have_another_base_with_keywords():
    class Tagged:
        def __init_subclass__(cls, tag=None, **others):
            super().__init_subclass__(**others)
            cls.tag = tag

    class OurLost(libredlock.Lost, Tagged, tag="billing"):
        pass

    assert (OurLost.tag, OurLost.status) == ("billing", libredlock.Status.LOST)


def test_they_can_be_pickled():
    vote = libredlock.Vote(libredlock.Status.BUSY, "busy", 1.0, "")
    for status in libredlock.Status:
        if status > 1:
            failure = _errors.error(status, "words", b"r", {"n": vote})
            copy = pickle.loads(pickle.dumps(failure))
            assert type(copy) is type(failure) and str(copy) == "words"
            assert copy.resource == b"r" and copy.votes == {"n": vote}


def repeat(args):
    """The answer of a server that knows neither HELLO nor AUTH."""
    return b"-ERR unknown command '%s', with args beginning with: '%s'\r\n" % (args[0], b"' '".join(args[1:]))


def test_a_password_that_a_server_repeats_is_shown_nowhere(caplog):
    caplog.set_level(logging.DEBUG)
    with FakeServer({"HELLO": repeat, "AUTH": repeat}) as server:
        url = f"redis://app:s3cret-Pa55@{server.name}"
        with libredlock.Client([url], connect_timeout=2, outage_wait=0.2) as client:
            lock = client.lock("r")
            with pytest.raises(libredlock.RefusedConfig, match="the login failed") as caught:
                lock.acquire(blocking=False)
            with pytest.raises(libredlock.RefusedConfig, match="the login failed"):
                client.status("r")
            failure = caught.value
            told = traceback.format_exception(type(failure), failure, failure.__traceback__)
            shown = [str(failure), repr(failure), repr(vars(failure)), repr(client), repr(lock), "".join(told)]
            eventually(lambda: "the login failed" in caplog.text)
            shown += [repr(client.describe()), caplog.text]
    assert all("Pa55" not in text for text in shown)


@pytest.mark.parametrize("nodes", ["redis://u:s3cret,Pa55@a", "redis://u:Pa55/a", "redis://a?password=Pa55", "Pa55@a"])
def test_a_list_that_is_refused_is_shown_nowhere(nodes):
    for given in nodes, [nodes]:
        with pytest.raises(libredlock.InvalidOption) as caught:
            libredlock.Client(given)
        assert "Pa55" not in str(caught.value) + repr(caught.value) + repr(vars(caught.value))

"""Keywords: derived from the core's table, judged before anything is sent."""

import math
import socket
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import get_type_hints

import pytest

import libredlock
from libredlock import _options, aio, types
from patience import GENEROUS_TIMEOUTS

URL = "redis://127.0.0.1:1"


def test_the_hints_name_exactly_the_options_of_the_table():
    assert set(get_type_hints(types.LockOptions)) == _options.LOCK_KEYWORDS
    assert set(get_type_hints(types.ClientOptions)) == _options.CLIENT_KEYWORDS


def test_keywords_drop_the_unit_and_take_seconds():
    for keyword, option in _options.OPTIONS.items():
        assert keyword + ("_ms" if option.is_ms else "") == option.name
    assert _options.OPTIONS["ttl"].is_ms and not _options.OPTIONS["retry_count"].is_ms


def test_options_arrive_in_the_core():
    client = libredlock.Client(
        URL, ttl=1.5, wait=None, retry_jitter=0.5, renew=True, retry_count=3, client_name="me", node_timeout="auto",
        max_hold=timedelta(hours=1), key_prefix="app:",
    )
    with client:
        said = client.describe()["options"]
        shown = {name: str(value).lower() for name, value in said.items()}
        assert shown["ttl_ms"] == "1500" and shown["wait_ms"] == "-1" and shown["retry_count"] == "3"
        assert float(shown["retry_jitter"]) == 0.5 and shown["renew"] in ("true", "1")
        assert shown["max_hold_ms"] == "3600000" and said["client_name"] == "me" and said["key_prefix"] == "app:"


class Whole(Integral):
    """Like those of numpy, which are no int, and of which the small ones have small products."""

    def __int__(self):
        return 3

    __index__ = __int__

    def __str__(self):
        return "3"

    def __float__(self):
        return 3.0

    def __hash__(self):
        return 3

    def __mul__(self, other):
        return int(self) * other % 2**8


Whole.__abstractmethods__ = frozenset()


def test_other_numbers_than_pythons_are_numbers():
    with libredlock.Client(URL, ttl=Fraction(3, 2), wait=Decimal("0.25"), retry_jitter=Fraction(1, 2)) as client:
        said = {name: str(value) for name, value in client.describe()["options"].items()}
        assert (said["ttl_ms"], said["wait_ms"], float(said["retry_jitter"])) == ("1500", "250", 0.5)
        client.lock("r", retry_count=Whole())
        assert _options.milliseconds("ttl", Whole(), "") == 3000
        for options in ({"ttl": 1j}, {"retry_count": Fraction(3)}, {"retry_jitter": "1"}):
            with pytest.raises(TypeError):
                client.lock("r", **options)


def test_wait_is_for_ever_by_default():
    with libredlock.Client(URL) as client:
        assert str(client.describe()["options"]["wait_ms"]) == "-1"


REFUSED = [
    ({"ttl": 0}, ValueError, ["ttl=0", "0.02 s to 86400 s"]),
    ({"ttl": math.nan}, ValueError, ["ttl=nan", "0.02 s to 86400 s"]),
    ({"ttl": math.inf}, ValueError, ["ttl=inf", "0.02 s to 86400 s"]),
    ({"ttl": 1e308}, ValueError, ["ttl=1e+308", "0.02 s to 86400 s"]),
    ({"ttl": Decimal("sNaN")}, ValueError, ["ttl=Decimal('sNaN')", "0.02 s to 86400 s"]),
    ({"ttl": "10"}, TypeError, ["ttl='10'", "0.02 s to 86400 s"]),
    ({"ttl": True}, TypeError, ["ttl=True"]),
    ({"ttl": None}, TypeError, ["ttl=None"]),
    ({"ttl": timedelta(seconds=-1)}, ValueError, ["ttl=", "0.02 s to 86400 s"]),
    ({"ttl": 31, "max_ttl": 30}, ValueError, ["ttl 31 s is above max_ttl, 30 s: renew", "a max_ttl of 31 s"]),
    ({"node_timeout": 9, "ttl": 10}, ValueError, ["node_timeout is 9 s", "ttl 10 s"]),
    ({"wait": -1}, ValueError, ["wait=-1", "0 to 31536000 s", "None"]),
    ({"retry_count": 1.5}, TypeError, ["retry_count=1.5", "an int"]),
    ({"retry_count": True}, TypeError, ["retry_count=True"]),
    ({"retry_count": -1}, ValueError, ["retry_count=-1", "0 to", "None: without limit"]),
    ({"slot": -1, "permits": 3}, ValueError, ["slot=-1", "0 to 255", "None: any"]),
    ({"renew": 1}, TypeError, ["renew=1", "True or False"]),
    ({"renew": "true"}, TypeError, ["renew='true'"]),
    ({"client_name": b"x"}, TypeError, ["client_name=b'x'", "a str"]),
    ({"key_prefix": "a\0b"}, ValueError, ["key_prefix", "NUL"]),
    ({"key_prefix": "\ud800"}, ValueError, ["key_prefix", "UTF-8"]),
    ({"ttll": 1}, TypeError, ["ttll=", "did you mean ttl="]),
    ({"ttl_ms": 1}, TypeError, ["ttl_ms=", "use ttl= in seconds"]),
    ({"max_hold_ms": 1}, TypeError, ["max_hold_ms=", "use max_hold= in seconds"]),
    ({"nodez": 1}, TypeError, ["nodez="]),
    ({"on_lost": print}, TypeError, ["on_lost=", "locks take it"]),
]


@pytest.mark.parametrize("options, error, words", REFUSED, ids=[str(row[0]) for row in REFUSED])
def test_refused_options_name_themselves_the_value_and_the_range(options, error, words):
    with pytest.raises(error) as caught:
        libredlock.Client(URL, **options)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_of_a_lock_are_refused_in_the_same_words():
    with libredlock.Client(URL) as client:
        for options, error, words in REFUSED:
            if set(options) <= _options.LOCK_KEYWORDS - {"on_lost"}:
                for make in (lambda: client.lock("r", **options), lambda: client.with_lock("r", **options)):
                    with pytest.raises(error) as caught:
                        make()
                    assert all(word in str(caught.value) for word in words), (options, str(caught.value))
        with pytest.raises(TypeError, match="option of the client"):
            client.lock("r", key_prefix="x")
        with pytest.raises(TypeError, match="did you mean retry_delay="):
            client.lock("r", retry_dely=1)


def test_options_that_contradict_the_client_are_refused_at_once():
    with libredlock.Client(URL, max_ttl=30, node_timeout=2) as client:
        for make in (client.lock, client.rlock):
            name = make.__name__
            with pytest.raises(ValueError) as caught:
                make("r", ttl=60)
            said = str(caught.value)
            assert f"{name}(ttl=60): ttl 60 s is above max_ttl, 30 s: renew" in said and "a max_ttl of 60 s" in said
            with pytest.raises(ValueError, match=rf"{name}\(ttl=1, renew=True\): node_timeout is 2 s; allowed for"):
                make("r", ttl=1, renew=True)
        with pytest.raises(ValueError, match="ttl 60 s is above max_ttl"):
            client.adopt("r", "0" * 40, ttl=60)


def test_a_max_ttl_that_is_given_twice_is_not_to_be_raised():
    with pytest.raises(ValueError, match="and the list of nodes ends in max_ttl=7000ms: give it once$"):
        libredlock.Client("redis://127.0.0.1?max_ttl=7s", max_ttl=30)


def test_an_extension_above_the_limit_is_refused_in_seconds(nodes):
    nodes.bootstrap(max_ttl=30)
    with libredlock.Client(nodes.urls, **{**GENEROUS_TIMEOUTS, "max_ttl": 30}) as client:
        with client.lock("r") as lock:
            with pytest.raises(ValueError, match="ttl 60 s is above max_ttl, 30 s: renew a shorter lock"):
                lock.extend(60)


def test_refusals_speak_of_seconds():
    for option in _options.OPTIONS.values():
        if option.is_ms:
            assert "_ms" not in option.allowed and " s" in option.allowed, option


def test_words_name_options_and_values_as_they_are_given(client):
    """Also an advice of the core: that of a server that accepts connections and says nothing."""
    with pytest.raises(ValueError, match="slot=-2: allowed: 0 to 255, below permits, None: any that is free"):
        client.semaphore("gpu", 3, slot=-2)
    with pytest.raises(ValueError, match="0 to 2, or None for any$"):
        client.semaphore("gpu", 3, slot=3)
    with pytest.raises(ValueError, match="slot is None; allowed here for permits 3: 0 to 2"):
        client.adopt("gpu", "token", permits=3)
    with pytest.raises(ValueError, match="retry_count=-7: allowed: 0 to 1000000000, None: without limit"):
        client.lock("r", retry_count=-7)
    with pytest.raises(TypeError, match="did you mean reentrant="):
        client.with_lock("r", reentrnt=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"redis://127.0.0.1:{server.getsockname()[1]}"
        with libredlock.Client(url, connect_timeout=0.05, outage_wait=0.2) as silent:
            with pytest.raises(libredlock.NoQuorum, match="or raise connect_timeout$"):
                silent.lock("max_ttl_ms").take()
            with pytest.raises(libredlock.NoQuorum, match="or raise connect_timeout$"):
                silent.status("r")


FOREIGN = [
    ("timeout", ["ttl=", "wait="]),
    ("blocking_timeout", ["wait="]),
    ("blocking", ["wait=0"]),
    ("sleep", ["retry_delay="]),
    ("auto_release_time", ["ttl="]),
    ("expire", ["ttl="]),
    ("lock_timeout", ["ttl="]),
    ("auto_renewal", ["renew="]),
    ("id", ["adopt("]),
    ("token", ["adopt("]),
    ("retries", ["retry_count="]),
    ("max_retries", ["retry_count="]),
    ("tries", ["retry_count="]),
    ("timeout_ms", ["ttl=", "seconds"]),
    ("lease_time", ["ttl="]),
    ("expires", ["ttl="]),
    ("lock_ttl", ["ttl="]),
    ("auto_release", ["ttl="]),
    ("count", ["permits="]),
    ("owner", ["adopt("]),
    ("keep", ["with_lock(", "expire("]),
    ("hold", ["client.with_lock() takes it"]),
    ("on_busy", ["client.with_lock() takes it"]),
    ("reentrant", ["rlock(", "with_lock("]),
    ("raise_on_release_error", ["Lost"]),
    ("thread_local", ["threads"]),
    ("num_extensions", ["max_extensions="]),
    ("namespace", ["key_prefix="]),
    ("masters", ["redis://"]),
    ("url", ["redis://"]),
    ("ssl", ["rediss://"]),
]


@pytest.mark.parametrize("keyword, words", FOREIGN, ids=[row[0] for row in FOREIGN])
@pytest.mark.parametrize("module", [libredlock, aio])
def test_names_of_other_libraries_get_the_way_here(module, keyword, words):
    client = module.Client(URL)
    for make in (client.lock, client.rlock):
        with pytest.raises(TypeError) as caught:
            make("r", **{keyword: 5})
        said = str(caught.value)
        assert f"{make.__name__}() takes no {keyword}=" in said and "did you mean" not in said
        assert all(word in said for word in words), said


def test_what_asyncio_has_alone_is_sent_there():
    with libredlock.Client(URL) as client:
        for make in (client.lock, client.rlock, client.election, client.with_lock):
            with pytest.raises(TypeError, match="takes no cancel_on_lost=: locks of libredlock.aio take it"):
                make("r", cancel_on_lost=True)


@pytest.mark.parametrize("made", [libredlock.Client, aio.Client])
def test_a_second_argument_is_refused_by_client(made):
    with pytest.raises(TypeError, match=r"__init__\(\) takes from 1 to 2 positional"):
        made(URL, URL)


def test_no_foreign_name_is_one_of_ours():
    assert not set(_options.FOREIGN) & set(_options.OPTIONS)


def test_numbers_beyond_floats_are_refused_by_name():
    with libredlock.Client(URL) as client:
        for name, value in ("ttl", 10**400), ("wait", Fraction(10**400)), ("retry_jitter", 10**400):
            with pytest.raises(libredlock.InvalidOption, match=f"^{name}=.*; allowed: |^{name}=.*: allowed: 0 to 1"):
                client.lock("r", **{name: value})


@pytest.mark.parametrize("ttl", [0, -1, 1e12, math.nan, "1", True])
def test_extend_judges_its_ttl(client, ttl):
    with client.lock("r") as lock:
        with pytest.raises((ValueError, TypeError), match="ttl"):
            lock.extend(ttl)
        lock.check()


@pytest.mark.parametrize(
    "resource, error", [("", ValueError), (b"", ValueError), (5, TypeError), (None, TypeError), ("\ud800", ValueError)]
)
def test_wrong_resources_are_refused(client, resource, error):
    with pytest.raises(error, match="resource"):
        client.lock(resource)
    with pytest.raises(error, match="resource"):
        client.status(resource)


@pytest.mark.parametrize("token", ["", "0" * 129, "\u00e9" * 65, "\ud800"])
def test_wrong_tokens_are_refused(client, token):
    with pytest.raises(ValueError, match="token"):
        client.adopt("r", token)


def test_a_token_of_another_library_can_be_adopted(client, nodes):
    for token in ("x", "0" * 41, "\u00e9" * 40, "a1" * 64):
        resource = "foreign"
        for node in nodes:
            node.set(resource, token.encode(), px=30_000)
        lock = client.adopt(resource, token)
        assert lock.token == token
        lock.extend()
        lock.release()
        assert nodes.keys() == {}


def test_a_token_is_a_str(client):
    with pytest.raises(TypeError, match="token"):
        client.adopt("r", b"0" * 40)


@pytest.mark.parametrize(
    "nodes, error",
    [
        ("", ValueError),
        ([], ValueError),
        (b"redis://h", TypeError),
        (5, TypeError),
        ([5], TypeError),
        ("redis://a\0b", ValueError),
    ],
)
def test_wrong_nodes_are_refused(nodes, error):
    with pytest.raises(error):
        libredlock.Client(nodes)


def test_without_nodes_it_says_how_to_name_them(monkeypatch):
    monkeypatch.delenv("REDLOCK_NODES", raising=False)
    with pytest.raises(libredlock.InvalidOption, match="REDLOCK_NODES"):
        libredlock.Client()


def test_nodes_come_from_a_text_a_list_or_the_environment(monkeypatch, nodes):
    monkeypatch.setenv("REDLOCK_NODES", nodes.nodes_env)
    for given in (None, nodes.nodes_env, nodes.urls, tuple(nodes.urls), iter(nodes.urls)):
        with libredlock.Client(given) as client:
            assert client.lock("r").acquire()


def test_passwords_are_in_no_message():
    for url in ("redis://u:sesame@h:99999", "rediss://u:sesame@h:0", "redis://u:sesame@h/x", "redis://u:s@h:1/1/1"):
        with pytest.raises(ValueError) as caught:
            libredlock.Client(url)
        assert "sesame" not in str(caught.value)
    with libredlock.Client("redis://u:sesame@127.0.0.1:1") as client:
        assert "sesame" not in str(client.describe()) + repr(client)
        with pytest.raises(libredlock.RedlockError) as caught:
            client.lock("r").acquire(timeout=0.05)
        assert "sesame" not in str(caught.value)


def test_no_extra_argument_slips_through():
    with pytest.raises(TypeError):
        libredlock.Client(URL, 5)
    with libredlock.Client(URL) as client:
        with pytest.raises(TypeError):
            client.lock("r", 5)

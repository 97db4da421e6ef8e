"""Keywords: derived from the core's table, judged before anything is sent."""

import math
import re
from datetime import timedelta

import pytest

import libredlock
from libredlock import _options

URL = "redis://127.0.0.1:1"


def source_keywords(name):
    """The keywords of a TypedDict that exists for type checkers only."""
    source = open(_options.__file__).read()
    body = re.search(rf"class {name}\(.*?\):\n(.*?)(?=\n    class |\n\n\n)", source, re.S).group(1)
    return set(re.findall(r"^        (\w+): ", body, re.M))


def test_the_hints_name_exactly_the_options_of_the_table():
    assert source_keywords("LockOptions") == _options.LOCK_KEYWORDS
    assert source_keywords("LockOptions") | source_keywords("ClientOptions") == _options.CLIENT_KEYWORDS


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


def test_wait_is_for_ever_by_default():
    with libredlock.Client(URL) as client:
        assert str(client.describe()["options"]["wait_ms"]) == "-1"


REFUSED = [
    ({"ttl": 0}, ValueError, ["ttl=0", "20 to"]),
    ({"ttl": -1}, ValueError, ["ttl=-1", "20 to"]),
    ({"ttl": 1e9}, ValueError, ["ttl=1000000000.0", "20 to"]),
    ({"ttl": math.nan}, ValueError, ["ttl=nan", "20 to"]),
    ({"ttl": math.inf}, ValueError, ["ttl=inf", "20 to"]),
    ({"ttl": "10"}, TypeError, ["ttl='10'", "20 to"]),
    ({"ttl": True}, TypeError, ["ttl=True"]),
    ({"ttl": None}, TypeError, ["ttl=None"]),
    ({"ttl": timedelta(seconds=-1)}, ValueError, ["ttl=", "20 to"]),
    ({"ttl": 31}, ValueError, ["31000", "max_ttl_ms"]),
    ({"wait": -1}, ValueError, ["wait=-1", "None"]),
    ({"retry_count": -2}, ValueError, ["retry_count=-2", "-1 to"]),
    ({"retry_count": 1.5}, TypeError, ["retry_count=1.5", "an int"]),
    ({"retry_count": True}, TypeError, ["retry_count=True"]),
    ({"retry_jitter": 2}, ValueError, ["retry_jitter=2", "0 to 1"]),
    ({"renew": 1}, TypeError, ["renew=1", "True or False"]),
    ({"renew": "true"}, TypeError, ["renew='true'"]),
    ({"node_timeout": 9, "ttl": 10}, ValueError, ["node_timeout"]),
    ({"client_name": "a b"}, ValueError, ["client_name='a b'"]),
    ({"client_name": b"x"}, TypeError, ["client_name=b'x'", "a str"]),
    ({"key_prefix": "a\0b"}, ValueError, ["key_prefix", "NUL"]),
    ({"ttll": 1}, TypeError, ["ttll=", "did you mean ttl="]),
    ({"ttl_ms": 1}, TypeError, ["ttl_ms=", "use ttl= in seconds"]),
    ({"max_hold_ms": 1}, TypeError, ["max_hold_ms=", "use max_hold= in seconds"]),
    ({"nodez": 1}, TypeError, ["nodez="]),
]


@pytest.mark.parametrize("options, error, words", REFUSED, ids=[str(row[0]) for row in REFUSED])
def test_refused_options_name_themselves_the_value_and_the_range(options, error, words):
    with pytest.raises(error) as caught:
        libredlock.Client(URL, **options)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_refused_options_of_a_lock():
    with libredlock.Client(URL) as client:
        for options, error, words in REFUSED:
            if set(options) <= _options.LOCK_KEYWORDS:
                with pytest.raises(error) as caught:
                    client.lock("r", **options).acquire(blocking=False)
                assert all(word in str(caught.value) for word in words), (options, str(caught.value))
        with pytest.raises(TypeError, match="option of the client"):
            client.lock("r", key_prefix="x")
        with pytest.raises(TypeError, match="did you mean retry_delay="):
            client.lock("r", retry_dely=1)


@pytest.mark.parametrize("ttl", [0, -1, 1e12, math.nan, "1", True])
def test_extend_judges_its_ttl(client, ttl):
    with client.lock("r") as lock:
        with pytest.raises((ValueError, TypeError), match="ttl"):
            lock.extend(ttl)
        lock.check()


@pytest.mark.parametrize(
    "resource, error", [("", ValueError), (b"", ValueError), (5, TypeError), (None, TypeError), ("\ud800", ValueError)]
)
def test_refused_resources(client, resource, error):
    with pytest.raises(error, match="resource"):
        client.lock(resource)
    with pytest.raises(error, match="resource"):
        client.status(resource)


@pytest.mark.parametrize("token", ["", "x" * 40, "A" * 40, "0" * 39, "0" * 41, "\u00e9" * 40])
def test_refused_tokens(client, token):
    with pytest.raises(ValueError):
        client.adopt("r", token)


def test_a_token_is_a_str(client):
    with pytest.raises(TypeError, match="token"):
        client.adopt("r", b"0" * 40)


@pytest.mark.parametrize(
    "nodes, error",
    [
        ("", ValueError),
        ([], ValueError),
        ("http://h", ValueError),
        ([URL, URL], ValueError),
        (["redis://h:99999"], ValueError),
        (b"redis://h", TypeError),
        (5, TypeError),
        ([5], TypeError),
        ([f"redis://127.0.0.1:{port}" for port in range(1, 67)], ValueError),
        ("redis://a\0b", ValueError),
    ],
)
def test_refused_nodes(nodes, error):
    with pytest.raises(error):
        libredlock.Client(nodes)


def test_without_nodes_it_says_how_to_name_them(monkeypatch):
    monkeypatch.delenv("REDLOCK_NODES", raising=False)
    with pytest.raises(libredlock.InvalidOption, match="REDLOCK_NODES"):
        libredlock.Client()


def test_nodes_from_the_environment_a_text_or_several(monkeypatch, nodes):
    monkeypatch.setenv("REDLOCK_NODES", nodes.nodes_env)
    for given in (None, nodes.nodes_env, nodes.urls, tuple(nodes.urls), iter(nodes.urls)):
        with libredlock.Client(given) as client:
            assert client.lock("r").acquire()


def test_passwords_are_in_no_message():
    for url in ("redis://u:sesame@h:99999", "rediss://u:sesame@h", "redis://u:sesame@h/x", "redis://u:sesame@h:1/1/1"):
        with pytest.raises(ValueError) as caught:
            libredlock.Client(url)
        assert "sesame" not in str(caught.value)
    with libredlock.Client("redis://u:sesame@127.0.0.1:1") as client:
        assert "sesame" not in str(client.describe()) + repr(client)
        with pytest.raises(libredlock.RedlockError) as caught:
            client.lock("r").acquire(timeout=0.05)
        assert "sesame" not in str(caught.value)


def test_wrong_password_is_a_matter_of_configuration(nodes):
    urls = [url.replace("redis://", "redis://u:wrong@") for url in nodes.urls]
    with libredlock.Client(urls) as client:
        with pytest.raises(libredlock.RefusedConfig) as caught:
            client.lock("r").acquire(timeout=30)
        assert "wrong" not in str(caught.value).replace("WRONGPASS", "")


def test_no_extra_argument_slips_through():
    with pytest.raises(TypeError):
        libredlock.Client(URL, 5)
    with libredlock.Client(URL) as client:
        with pytest.raises(TypeError):
            client.lock("r", 5)

"""Options: one table, names by the rule, the same ranges and the same words in every face."""
import re
from pathlib import Path

import pytest

from driver import refusal
from steps import BEFORE_LAPSE_S, occupy, option_name
from testing import eventually

PAGE = Path(__file__).resolve().parents[3] / "docs/options.md"
ROW = re.compile(r'^\| <a id="(\w+)"></a>[^|]*\|[^|]*\|[^|]*\|[^|]*\| ([^|]*) \|', re.M)
TABLE = dict(ROW.findall(PAGE.read_text()))
REFUSED = [("ttl_ms", "0"), ("ttl_ms", "19"), ("ttl_ms", "86400001"),
           ("max_ttl_ms", "5"), ("retry_count", "-2"), ("retry_delay_ms", "0"), ("retry_jitter", "2"),
           ("drift_factor", "0.5"), ("node_timeout_ms", "0"), ("connect_timeout_ms", "0"), ("min_validity_ms", "0"),
           ("wake", "pull"), ("guard", "on"), ("client_name", "two words"), ("exit_drain_ms", "60001")]


@pytest.mark.parametrize("option, value", REFUSED, ids=["%s %s" % pair for pair in REFUSED])
def test_a_value_out_of_range_is_refused(face, make, option, value):
    refused = refusal(make(check=False, **{option: value}))
    assert refused == "INVALID", refused
    assert option_name(face, option) in refused.message
    allowed = re.split(", not above|, or", TABLE[option])[0]
    if option.endswith("_ms"):
        allowed = re.sub(r"\d+", lambda ms: time_of(face, int(ms.group())), allowed)
    if face in ("python", "aio"):
        allowed = allowed.replace("-1 to ", "0 to ")  # None stands for -1 there
    assert allowed in refused.message, refused.message


def time_of(face, ms):
    """Milliseconds as the face's users write them."""
    if face in ("python", "aio"):
        return "%g s" % (ms / 1000)
    if face != "cli":
        return str(ms)
    units = ("h", 3600000), ("m", 60000), ("s", 1000), ("ms", 1)
    unit, unit_ms = next((unit, size) for unit, size in units if ms % size == 0)
    return "%d%s" % (ms // unit_ms, unit) if ms else "0"


@pytest.mark.parametrize("value", ["-5", "soon"])
def test_what_is_no_duration_is_refused(face, make, value):
    refused = refusal(make(check=False, ttl_ms=value))
    assert refused == "INVALID" and option_name(face, "ttl_ms") in refused.message


def test_an_unknown_option_is_refused(face, make):
    refused = refusal(make(check=False, retry_dely_ms=5))
    assert refused == "INVALID"
    wrong, nearest = (option_name(face, name).lstrip("-") for name in ("retry_dely_ms", "retry_delay_ms"))
    assert wrong in refused.message and nearest in refused.message, refused.message


@pytest.mark.parametrize("url", ["rediss://127.0.0.1:0", "http://127.0.0.1", "redis://127.0.0.1:0", "redis://"])
def test_a_wrong_url_is_refused(make, url):
    assert refusal(make(urls=[url], check=False)) == "INVALID"


def test_a_ttl_above_max_ttl_is_refused(make):
    refused = refusal(make(check=False, max_ttl_ms=30000), ttl_ms=40000)
    assert refused == "INVALID" and "max_ttl" in refused.message.replace("-", "_").replace("maxTtl", "max_ttl")


def test_a_node_timeout_too_long_for_the_ttl_is_refused(make):
    refused = refusal(make(check=False), ttl_ms=1000, node_timeout_ms=500)
    assert refused == "INVALID"


def test_an_empty_resource_is_refused(make):
    refused = refusal(make(), resource="")
    assert refused == "INVALID"


def test_drift_is_kept_off_the_validity(make):
    assert make(drift_factor=0.1).lock().acquire().validity_ms <= 8000 * 0.9


def test_a_lease_with_too_little_left_is_none(make, nodes):
    """8000 ms less 1 % of drift cannot be worth 7990."""
    refused = refusal(make(min_validity_ms=7990, check=False))
    assert refused.status in ("INVALID", "NO_QUORUM"), refused
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("state")
def test_connections_have_a_name(make, nodes):
    assert make(client_name="warehouse").lock().acquire() == "OK"
    named = [node for node in nodes if "warehouse" in [row["name"] for row in node.clients()]]
    assert len(named) >= 3


@pytest.mark.needs("state")
def test_a_strict_release_goes_to_every_node(make, nodes):
    """Also to one that has refused; by another way it came to have the key after all."""
    occupy(nodes[:1])
    lock = make(strict_release=True).lock()

    def is_refused_by_the_first():
        reply = lock.acquire(wait_ms=5000)
        assert reply == "OK"
        if "connect" not in reply.votes[0]:
            return True
        assert lock.release() == "OK"
        return False

    eventually(is_refused_by_the_first, BEFORE_LAPSE_S)
    nodes[0].set("r", lock.token, px=60000)
    assert lock.release() == "OK"
    nodes.no_keys(BEFORE_LAPSE_S)


@pytest.mark.needs("describe")
def test_every_option_has_a_good_value(face, make, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("default")
    good = {"retry_count": 3, "retry_delay_ms": 50, "retry_jitter": 0.3, "drift_factor": 0.02,
            "min_validity_ms": "auto", "renew": True, "reentrant": True, "max_extensions": -1, "max_hold_ms": 60000,
            "strict_release": True, "client_name": "me", "holder_info": False, "exit_drain_ms": 200,
            "max_ttl_ms": 20000, "wait_ms": 1000, "outage_wait_ms": 2000, "key_prefix": "p:", "queue": False,
            "wake": "poll", "guard": "external", "cluster": "-", "fence": True, "shared": True,
            "permits": 1, "slot": -1, "layout": "string", "user_file": str(secret), "password_file": str(secret)}
    good.update({"tls_%s" % name: str(secret) for name in ("ca_file", "ca_path", "cert_file", "key_file")})
    good.update({"tls_server_name": "redis.example", "tls_verify": True})  # of no meaning to nodes without TLS
    assert set(TABLE) == set(good) | {"nodes", "ttl_ms", "node_timeout_ms", "connect_timeout_ms"}
    if face in ("python", "aio"):
        del good["reentrant"]  # not an option there: a Lock may be shared
    lock = make(**good).lock()
    assert lock.acquire() == "OK"
    assert lock.release() == "OK"

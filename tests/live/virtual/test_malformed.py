"""No bytes from a server, however malformed, crash or hang the client: the node is dropped, with a message. Most stand
in unit/test_node.c; here are those that are long or never end, and a few to see that it is so at a client."""
import pytest

import rl
from helpers import spin, spin_until_deleted, why
from rl import NO_QUORUM, OK
from testing import CLOSE, HOLD, RESET

NASTY = {
    "never finished": (b"$100\r\nabc", HOLD),
    "garbage": bytes(range(256)) * 8,
    "endless line": (b"+" + b"x" * 200000, HOLD),
    "more replies than asked": b"+OK\r\n" * 50,
    "reply of 2 MB": b"$2000000\r\n" + b"z" * 2000000 + b"\r\n",
    "beginning of a reply of 200 MB": (b"$200000000\r\n" + b"z" * 3000000, HOLD),
    "error of 100 kB": b"-ERR " + b"y" * 100000 + b"\r\n",
    "refusal with control bytes": b"-NOAUTH \x1b[31m\x07\r\n",
    "closed": CLOSE,
    "reset": RESET,
}
HASTY = {"connect_timeout_ms": 300, "settle": False}


@pytest.mark.parametrize("place", ["CONNECT", "HELLO", "INFO", "SCRIPT", "SET"])
@pytest.mark.parametrize("bytes_", NASTY.values(), ids=NASTY.keys())
def test_malformed_replies_do_no_harm(nodes, make_client, fake_server, place, bytes_):
    """One such server beside four real ones does no harm; two beside one real one are no lock."""
    fakes = [fake_server({place: bytes_}) for _ in range(2)]
    client = make_client([fakes[0].url, *nodes.urls[:4]], **HASTY)
    spin(client, lambda: all(node["state"] == "ready" for node in client.describe()["nodes"][1:]), 30)
    lock = client.lock()
    for _ in range(2):
        assert lock.acquire(5000) == OK, lock.message
        assert lock.extend() == OK
        assert lock.release() == OK
    answer = lock.answer(0)
    assert "\x1b" not in answer and "\n" not in lock.message and len(answer) < 1000
    spin_until_deleted(client, nodes)
    if place == "SET":
        few = make_client([f.url for f in fakes] + nodes.urls[:1], node_timeout_ms=200, **HASTY).lock()
        status = few.acquire(0)
        if not bytes_[:3] == b"+OK":  # what comes behind a proper grant takes nothing back
            assert status != OK and few.state == rl.FREE, few.message
        assert all(few.client.node_name(i) in few.message for i in range(3))
        few.release()
        spin_until_deleted(few.client, nodes)


def test_control_bytes_in_a_reason_are_escaped_once(make_client, fake_server):
    client = make_client([fake_server({"SCRIPT": b"-ERR \x1b[31m\r\n"}).url], **HASTY)
    assert why(client) == r"ERR \x1b[31m"
    assert r"ERR \x1b[31m" in [event["detail"] for event in client.events()]


@pytest.mark.parametrize("bytes_", NASTY.values(), ids=NASTY.keys())
def test_a_malformed_reply_to_a_script_confirms_nothing(make_client, fake_server, bytes_):
    """An extension that was answered with rubbish by a majority confirms nothing; the old lease runs on."""
    good = fake_server()
    fakes = [fake_server({"EVALSHA": bytes_, "EVAL": bytes_}) for _ in range(2)]
    lock = make_client([good.url, *(f.url for f in fakes)], node_timeout_ms=200, **HASTY).lock()
    assert lock.acquire(5000) == OK, lock.message
    status = lock.extend(30000)
    assert status != OK, (status, lock.message)
    assert lock.validity_ms <= 8000
    lock.release()


def test_node_that_sent_rubbish_is_reconnected(make_client, nodes, fake_server):
    fake = fake_server({"SET": [b"?\r\n", b"+OK\r\n"]})
    lock = make_client([fake.url, nodes.urls[0]]).lock()  # both are needed
    assert lock.acquire() == NO_QUORUM
    assert lock.acquire(5000) == OK and fake.accepted >= 2

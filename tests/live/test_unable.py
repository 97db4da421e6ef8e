"""Servers that run a script without end, or cannot save: what they answer then."""
import os
import threading

import pytest

import rl
from helpers import spin, spin_until_deleted, votes_no
from rl import NO_QUORUM, OK
from testing import ReplyError, RespConnection, eventually


def busy_script(node):
    """Makes the node run a script without end: the thread that waits for it."""
    node.config_set("busy-reply-threshold", 10)

    def run():
        connection = RespConnection(node.address)
        with pytest.raises((ReplyError, OSError)):
            connection.command("EVAL", "while true do end", 0)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def is_busy():
        try:
            node.get("x")
        except ReplyError as error:
            return str(error).startswith("BUSY")
        return False

    eventually(is_busy, what="the script runs")
    return thread


def fail_background_saves(node):
    """MISCONF: the server wants to save and cannot."""
    path = os.path.join(node.folder, "dump.rdb")
    if os.path.exists(path):
        os.unlink(path)
    os.mkdir(path)
    node.config_set("save", "3600 1")
    node.command("BGSAVE")
    eventually(lambda: node.info("persistence")["rdb_last_bgsave_status"] == "err")


@pytest.fixture
def mended(nodes):
    yield
    for node in nodes:
        path = os.path.join(node.folder, "dump.rdb")
        if os.path.isdir(path):
            os.rmdir(path)


def test_misconf_is_a_vote_against(nodes, mended, hold):
    lock = hold(**rl.lapsing(2000))
    fail_background_saves(nodes[0])
    assert lock.release() == OK  # the delete is refused there, too: the TTL ends that key
    eventually(lambda: nodes.keys() in ({b"r": [0]}, {}))
    votes_no(lock, 0, "MISCONF")
    assert lock.release() == OK
    spin(lock.client, lambda: not nodes.keys())


def test_misconf_ends_and_the_debt_is_paid(nodes, mended, hold):
    lock = hold(ttl_ms=30000)
    fail_background_saves(nodes[0])
    assert lock.release() == OK
    eventually(lambda: nodes.keys() == {b"r": [0]}, 20, "the others have deleted it")
    nodes[0].config_set("save", "")
    nodes[0].kill_clients()  # a debt is paid after the next set-up at the latest
    spin_until_deleted(lock.client, nodes)


def test_a_busy_script_is_a_vote_against(nodes, hold):
    lock = hold()
    thread = busy_script(nodes[0])
    assert lock.extend() == OK and lock.release() == OK
    votes_no(lock, 0, "BUSY")
    assert lock.release() == OK
    nodes[0]._forget_connection()
    nodes[0].command("SCRIPT", "KILL")
    thread.join(10)
    nodes[0].kill_clients()
    spin(lock.client, lambda: not nodes.keys(), 20)


def test_busy_script_on_a_majority_is_no_quorum(nodes, make_client):
    """The server's word BUSY is not the status BUSY."""
    client = make_client(nodes.urls)
    lock = client.lock()
    assert lock.acquire() == OK and lock.release() == OK
    threads = [busy_script(node) for node in nodes.nodes[:3]]
    assert lock.acquire() == NO_QUORUM
    for node in nodes.nodes[:3]:
        node.command("SCRIPT", "KILL")
    for thread in threads:
        thread.join(10)

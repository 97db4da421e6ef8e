"""redlock lock"""
import json
import signal

import pytest

from command import BUSY, INTERNAL, LIMIT_S, LOST, TOKEN, finish
from testing import eventually

TTL_MS = 2000


@pytest.fixture
def held(redlock, nodes):
    """held(option...): the process that holds the lock "job", as soon as it says so."""
    def start(*options):
        process = redlock.start("lock", "--ttl", f"{TTL_MS}ms", *options, "job")
        eventually(lambda: sum(node.get("job") is not None for node in nodes) >= nodes.quorum, LIMIT_S, "it is held")
        return process

    return start


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_lock_is_held_until_a_signal_comes(held, nodes, number):
    process = held()
    first = max(node.pttl("job") for node in nodes)
    eventually(lambda: max(node.pttl("job") for node in nodes) < first - TTL_MS // 4, LIMIT_S, "time passes")
    eventually(lambda: max(node.pttl("job") for node in nodes) > first - TTL_MS // 8, LIMIT_S, "it is renewed")
    process.send_signal(number)
    done = finish(process)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "redlock: held until Ctrl-C or SIGTERM\n")
    assert [node.get("job") for node in nodes] == [None] * 5, "released, and not left to its TTL"


def test_a_lost_lock_ends_the_wait_for_a_signal(held, nodes):
    process = held()
    for node in nodes:
        node.command("DEL", "job")
    done = finish(process)
    assert done.returncode == LOST and "redlock: the lock was lost: " in done.stderr


def test_a_lock_that_others_hold_is_not_waited_for_with_n(held, redlock):
    process = held("--json")
    done = redlock("lock", "-n", "-q", "job")
    assert (done.returncode, done.stdout, done.stderr) == (BUSY, "", "")
    process.terminate()
    assert TOKEN.match(json.loads(finish(process).stdout)["token"])


def test_a_lock_whose_token_nobody_gets_is_not_held(redlock, nodes):
    with open("/dev/full", "w") as full:
        running = redlock.start("lock", "--json", "job", stdout=full)
        _, said = running.communicate(timeout=LIMIT_S)
    assert running.returncode == INTERNAL and b"cannot be written" in said
    nodes.no_keys()

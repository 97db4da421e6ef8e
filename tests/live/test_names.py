"""Host names. One with several addresses: connections stay with the one that was used, and redlock doctor looks at
each."""
import json
import os
import re
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import rl
from cli.command import REFUSED_CONFIG, UNAVAILABLE, Command
from helpers import by_name
from rl import OK, UNREACHABLE
from testing import RespConnection, eventually

SHIM = os.path.join(os.path.dirname(os.path.realpath(rl.LIBRARY)), "tests", "live", "names.so")
FIRST, SECOND = "127.0.0.1", "127.0.0.2"


def answers(port):
    with suppress(OSError):
        return RespConnection((SECOND, port)).command("PING") == b"PONG"


@pytest.fixture
def first(make_cluster):
    """A server at the first address ..."""
    return make_cluster(1)[0]


@pytest.fixture
def second(first, tmp_path):
    """... and another one at the second, with the same port."""
    server = subprocess.Popen(["redis-server", "--bind", SECOND, "--port", str(first.port), "--save", "", "--dir",
                               str(tmp_path)], stdout=subprocess.DEVNULL)
    eventually(lambda: answers(first.port), 20, "the second server answers")
    yield RespConnection((SECOND, first.port))
    server.kill()
    server.wait()


@pytest.fixture
def names(tmp_path, monkeypatch):
    """names(address...): what lock.test resolves to from now on, in programs that are started with it."""
    path = tmp_path / "names"
    monkeypatch.setenv("LD_PRELOAD", " ".join([os.environ.get("LD_PRELOAD", ""), SHIM]))  # a sanitizer comes first
    monkeypatch.setenv("NAMES", str(path))

    def resolve(*addresses):
        path.with_suffix(".new").write_text(" ".join(addresses))
        path.with_suffix(".new").rename(path)

    resolve()
    return resolve


def doctor(port, *words):
    command = Command("redis://lock.test:%d" % port)
    return command("doctor", "--connect-timeout", "5s", *words)


MANY = ["127.0.0.%d" % i for i in range(3, 43)]


def test_doctor_finds_two_servers_under_one_name(first, second, names):
    names(FIRST, SECOND)
    done = doctor(first.port)
    assert done.returncode == REFUSED_CONFIG and "its name has 2 addresses and leads to 2 servers" in done.stdout
    assert "give each server a name of its own" in done.stdout
    node = json.loads(doctor(first.port, "--json").stdout)["nodes"][0]
    assert (node["addresses"], node["servers"], node["votes"]) == (2, 2, True)


def test_doctor_logs_in_at_each_address(first, second, names):
    for server in first, second:
        server.command("CONFIG", "SET", "requirepass", "s3@ret")
    names(FIRST, SECOND)
    command = Command("redis://:s3%%40ret@lock.test:%d/1?max_ttl=30s" % first.port)
    done = command("doctor", "--connect-timeout", "5s")
    assert done.returncode == REFUSED_CONFIG and "its name has 2 addresses and leads to 2 servers" in done.stdout


@pytest.mark.parametrize("addresses, code", [
    ([], UNAVAILABLE), ([FIRST], 0), ([FIRST, FIRST], 0), ([FIRST, "::1"], 0), ([FIRST, *MANY], 0)],
    ids=["none", "one", "one twice", "one of each family", "forty of which one answers"])
def test_a_name_that_leads_to_one_server_is_no_mistake(first, names, addresses, code):
    names(*addresses)
    done = doctor(first.port)
    assert (done.returncode, "servers" in done.stdout) == (code, False), done.stdout


PROGRAM = """
import sys
sys.path.extend(%r)
import rl
client = rl.Client(["redis://lock.test:%d"], ttl_ms=1000, max_ttl_ms=30000, node_timeout_ms=250)
for line in sys.stdin:
    lock = client.lock()
    status = lock.acquire(20000)
    node = client.describe()["nodes"][0]
    told = sum("addresses" in event.get("detail", "") for event in client.events())
    print(status, node["run_id"], node["connects"], told, flush=True)
    lock.release()
"""


@pytest.fixture
def program(first, names):
    """program(): one lock of a client that goes on living; its status, the server, connections so far, warnings."""
    path = [str(Path(__file__).parent), *sys.path]
    started = []

    def lock():
        if not started:
            started.append(subprocess.Popen([sys.executable, "-c", PROGRAM % (path, first.port)], text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        started[0].stdin.write("\n")
        started[0].stdin.flush()
        status, run_id, connects, told = started[0].stdout.readline().split()
        return int(status), run_id, int(connects), int(told)

    yield lock
    for process in started:
        process.stdin.close()
        process.wait(30)


@pytest.mark.parametrize("later", [[SECOND, FIRST], [SECOND, *MANY, FIRST]], ids=["two", "forty"])
def test_connections_stay_with_the_address_that_was_used(first, second, names, program, later):
    names(FIRST, SECOND)
    status, run_id, _, told = program()
    assert (status, run_id, told) == (rl.OK, first.info("server")["run_id"], 1)
    names(*later)
    first.kill_clients()
    status, again, connects, told = program()
    assert (status, again, told) == (rl.OK, run_id, 0) and connects >= 2


def test_an_address_that_is_no_longer_named_is_left(first, second, names, program):
    names(FIRST, SECOND)
    assert program()[0] == rl.OK
    names(SECOND)
    first.kill_clients()
    other = re.search(r"run_id:(\w+)", second.command("INFO", "server").decode()).group(1)
    eventually(lambda: program()[1] == other, 30, "the client is connected to the other server")


def test_an_address_whose_server_was_refused_is_not_preferred(first, second, names, program):
    names(FIRST, SECOND)
    assert program()[0] == rl.OK
    first.config_set("maxmemory", "100mb")
    first.config_set("maxmemory-policy", "allkeys-lru")
    names(SECOND, FIRST)
    first.kill_clients()
    other = re.search(r"run_id:(\w+)", second.command("INFO", "server").decode()).group(1)
    eventually(lambda: program()[1] == other, 40, "the client is connected to the other server")


def test_own_key_under_the_other_name_is_no_other_lock(nodes, make_client):
    """The SET over the name that is refused comes first, half of the time. One attempt has to do."""
    for i in range(40):
        two_names = [by_name(nodes[0]), nodes[0].url] if i % 2 else [nodes[0].url, by_name(nodes[0])]
        lock = make_client([*two_names, nodes[1].url], settle=False).lock()
        assert lock.acquire(0) == OK, lock.message
        assert lock.release() == OK, lock.message
        nodes.no_keys()


def test_locks_work_over_ipv6(nodes, make_client):
    with socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
    lock = make_client([n.url_with(host="[::1]") for n in nodes]).lock()
    assert lock.acquire() == OK


def test_a_host_name_that_does_not_exist_costs_its_vote(nodes, make_client):
    lock = make_client(["redis://no-such-host.invalid:7001", *nodes.urls[1:]], settle=False).lock()
    assert lock.acquire() == OK

    def unknown():
        lock.client.process()
        lock.release()
        assert lock.acquire() == OK
        return "no-such-host.invalid" in lock.message or lock.vote(0) == UNREACHABLE

    eventually(unknown, 30)

"""An operator's word that lets new nodes vote at once: Client.bootstrap, and the same from the shell."""

import json
import os
import re
import subprocess
import sys

import pytest

import libredlock
from libredlock import aio
from patience import GENEROUS_TIMEOUTS, said_in_time

GUARDED = {**GENEROUS_TIMEOUTS, "guard": "marker"}


@pytest.fixture(autouse=True)
def default_max_ttl(monkeypatch):
    monkeypatch.delenv("REDLOCK_MAX_TTL_MS", raising=False)


@pytest.fixture
def new(make_cluster):
    """Nodes as new servers are."""
    return make_cluster(3, bootstrapped=False)


def shell(*arguments, nodes=None, said=""):
    environment = {**os.environ, "REDLOCK_GUARD": "", "REDLOCK_NODES": nodes.nodes_env if nodes else ""}
    command = [sys.executable, "-m", "libredlock", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, input=said, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_new_nodes_grant_locks_after_it(new):
    with libredlock.Client(new.urls, **GUARDED) as client:
        planned = client.bootstrap(new=True, dry=True)
        assert {node["did"] for node in planned} == {"registered"} and not any(node["votes"] for node in planned)
        assert not any(node.get("libredlock:m") for node in new)
        told = client.bootstrap(new=True)
        assert [node["node"] for node in told] == [node.name for node in new]
        assert all(node["did"] == "registered" and node["votes"] and node["max_ttl_ms"] == 30_000 for node in told)
        assert client.lock("r").acquire(timeout=20)
        assert {node["did"] for node in client.bootstrap(new=True)} == {"nothing"}


def test_the_client_of_asyncio_bootstraps_too(new, run):
    async def main():
        async with aio.Client(new.urls, **GUARDED) as client:
            assert {node["did"] for node in await client.bootstrap(yes=True)} == {"registered"}
            assert await client.lock("r").acquire(timeout=20)

    run(main())


def test_a_child_forked_during_a_bootstrap_bootstraps_too(script, nodes):
    source = """
import os, signal, threading
import libredlock
client = libredlock.Client(connect_timeout=1)
dry = {"new": True, "dry": True}
threading.Thread(target=client.bootstrap, kwargs=dry).start()
while not client._bootstrapping.locked():
    pass
child = os.fork()
if child == 0:
    signal.alarm(30)
    os._exit(len(client.bootstrap(**dry)))
print(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
"""
    nodes[0].stop()  # it takes a while
    try:
        assert script(source).end() == (0, "5", "")
    finally:
        nodes[0].cont()


def test_bootstrap_names_the_nodes_that_failed(new):
    with libredlock.Client(new.urls, **GUARDED) as client:
        client.bootstrap(new=True)
    new[0].kill()
    with libredlock.Client(new.urls, max_ttl=20, **GUARDED) as client:
        away, *others = client.bootstrap(yes=True)
        assert (away["did"], away["votes"], away["max_ttl_ms"]) == ("no_answer", False, None)
        assert {(node["did"], node["found"]) for node in others} == {("left_alone", "allows 30 s")}
        others = client.bootstrap(replace=True)[1:]
        assert {(node["did"], node["max_ttl_ms"]) for node in others} == {("replaced", 20_000)}


@pytest.mark.parametrize("module", [libredlock, aio])
@pytest.mark.parametrize(
    "given, words",
    [
        ({}, "was given nothing; allowed: one of new=True, yes=True and replace=True"),
        ({"new": True, "yes": True}, "was given new=True and yes=True"),
        ({"new": 1}, "new=1: takes True or False"),
        ({"yes": True, "dry": "no"}, "dry='no': takes True or False"),
    ],
)
def test_bad_arguments_are_refused(module, given, words, run):
    async def main():
        return await client.bootstrap(**given)

    client = module.Client("redis://127.0.0.1:1")
    with pytest.raises(TypeError, match=words):
        run(main()) if module is aio else client.bootstrap(**given)


def test_the_shell_command_says_what_it_did(new):
    status, out, err = shell("bootstrap", nodes=new)
    assert (status, out) == (64, "") and "there is no terminal: use --new for new nodes, or --yes" in err
    status, out, err = shell("bootstrap", "--new", "--json", nodes=new)
    assert (status, err) == (0, "") and {node["did"] for node in json.loads(out)["nodes"]} == {"registered"}
    status, out, err = shell("bootstrap", nodes=new)
    assert (status, err) == (0, "") and out == "".join(f"{node.name}: votes already\n" for node in new)
    status, out, err = shell("bootstrap", "--yes", "--max-ttl", "20s", nodes=new)
    assert (status, err) == (78, "") and f"{new[0].name}: left alone: allows 30 s" in out
    status, out, err = shell("bootstrap", "--replace", "--yes", "--max-ttl", "20s", nodes=new)
    assert (status, err) == (0, "") and f"{new[0].name}: its marker was replaced" in out
    new[0].kill()
    status, out, err = shell("bootstrap", "--yes", "--max-ttl", "20s", nodes=new)
    assert status == 69 and f"{new[0].name}: no answer" in out
    assert shell("bootstrap")[0] == 64 and shell("bootstrap", "--new", "--yes", nodes=new)[0] == 64


BLOCKING = """
import libredlock
with libredlock.Client(node_timeout=2) as client, client.lock("orders:42", ttl=10):
    print("held")
"""

ASYNCIO = """
import asyncio
from libredlock import aio
async def main():
    async with aio.Client(node_timeout=2) as client, client.lock("orders:42", ttl=10):
        print("held")
asyncio.run(main())
"""


@pytest.mark.parametrize("source", [BLOCKING, ASYNCIO])
def test_a_wait_for_new_nodes_says_why_at_once_in_one_line(new, source):
    environment = {**os.environ, "REDLOCK_NODES": new.nodes_env, "REDLOCK_GUARD": ""}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as program:
        said = next(line for line in program.stderr if said_in_time(line))
        assert re.fullmatch(
            r"warning orders:42: waits: \d of 3 nodes are new or may have lost keys, and do not vote for another "
            r"\d\d\.\d s; redlock bootstrap ends that if no lock is live\n", said)
        assert shell("bootstrap", "--yes", nodes=new)[0] == 0
        out, err = program.communicate(timeout=60)
        assert (out, said_in_time(err)) == ("held\n", "")


def test_max_ttl_and_cluster_are_options(new):
    with libredlock.Client(new.urls, max_ttl=60, ttl=40, cluster="orders", **GUARDED) as client:
        assert client.bootstrap(new=True)[0]["max_ttl_ms"] == 60_000
        with client.lock("r"):
            pass
        with pytest.raises(libredlock.InvalidOption, match="ttl 61 s is above max_ttl, 60 s"):
            client.lock("r", ttl=61)
    with libredlock.Client(new.urls, max_ttl=60, cluster="stock", **GUARDED) as client:
        with pytest.raises(libredlock.RefusedConfig, match="orders"):
            client.lock("r").acquire(timeout=20)
    for wrong in ({"cluster": 5}, {"cluster": "a b"}, {"max_ttl": "auto"}, {"max_ttl": 0}):
        (keyword,) = wrong
        with pytest.raises((TypeError, ValueError), match=f"{keyword}="):
            libredlock.Client(new.urls, **wrong)

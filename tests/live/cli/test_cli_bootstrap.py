"""redlock bootstrap: an operator says that no lock is live."""
import json
import re
import subprocess

import pytest

from command import UNAVAILABLE, USAGE, finish
from testing import eventually

DECLINED = 1
GUARDED = ["--guard", "marker", "--max-ttl", "1m"]


def markers(nodes):
    return [node.get("libredlock:m") for node in nodes]


@pytest.mark.parametrize("verbose", [False, True])
def test_the_first_lock_on_new_nodes_says_why_it_waits(redlock, nodes, verbose):
    done = redlock("run", *(["-v"] if verbose else []), "--guard", "marker", "orders:42", "--", "echo", "done")
    assert (done.returncode, done.stdout) == (0, "done\n")
    said = done.stderr.splitlines()
    if verbose:
        assert said.pop(0) == "redlock: held by nobody; waiting for up to 15s"
        assert re.fullmatch(r"redlock: acquired the lock after 1\d\.\d s", said.pop())
    (why,) = said
    assert re.match(r"redlock: waiting: 0 of 5 nodes granted orders:42, 3 needed: .* quarantined for another \d+\.\d s"
                    r": .*redlock bootstrap ends it if no lock is live", why), why
    assert all(marker.split()[5] == b"auto" for marker in markers(nodes))


def test_slow_answers_are_no_reason_to_say_why(redlock, nodes, proxy):
    """No node has said that it does not vote."""
    proxies = [proxy(node) for node in nodes]
    for p in proxies:
        p.at("SET", "orders:42", lambda p=p: p.hold("down"))
    redlock.env["REDLOCK_NODES"] = ",".join(p.url for p in proxies)
    acquiring = redlock.start("acquire", "--node-timeout", "20s", "--ttl", "90s", "orders:42")
    eventually(lambda: all(node.get("orders:42") for node in nodes), 20, "the nodes have been asked")
    with pytest.raises(subprocess.TimeoutExpired):
        acquiring.wait(2)  # it would be told after a second
    for p in proxies:
        p.go()
    done = finish(acquiring)
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 41, "")


def test_new_nodes_grant_a_lock_at_once(redlock, nodes):
    waiting = redlock("acquire", *GUARDED, "-n", "orders:42")
    assert waiting.returncode == UNAVAILABLE and "quarantined for another" in waiting.stderr
    done = redlock("bootstrap", "--yes", "--max-ttl", "1m")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join("%s: bootstrapped\n" % node.name for node in nodes)
    assert all(marker.split()[2:4] + marker.split()[5:] == [b"0", b"5"] + 4 * [b"60000"] for marker in markers(nodes))
    assert redlock("acquire", *GUARDED, "-n", "orders:42").returncode == 0


def test_asks_first(terminal, nodes):
    program = terminal("bootstrap", "--max-ttl", "1m")
    program.expect(r"Are you sure that no lock is live\? \[y/N\] ")
    assert markers(nodes) == [None] * 5
    program.type("y\n")
    assert program.wait() == 0 and program.seen.count("bootstrapped") == 5
    assert None not in markers(nodes)


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"])
def test_writes_nothing_when_the_user_does_not_agree(terminal, nodes, answer):
    program = terminal("bootstrap")
    program.expect(r"\[y/N\] ")
    program.type(answer)
    assert program.wait() == DECLINED and "Nothing was written." in program.seen
    assert markers(nodes) == [None] * 5


def test_nobody_to_ask(redlock, nodes):
    done = redlock("bootstrap")
    assert (done.returncode, done.stdout) == (USAGE, "") and "--yes" in done.stderr
    assert markers(nodes) == [None] * 5


def test_a_node_that_is_down(redlock, make_cluster):
    cluster = make_cluster(3)
    cluster[2].kill()
    redlock.env["REDLOCK_NODES"] = cluster.nodes_env
    done = redlock("bootstrap", "--yes", "--connect-timeout", "1s")
    assert done.returncode == UNAVAILABLE
    told = done.stdout.splitlines()
    assert told[:2] == ["%s: bootstrapped" % node.name for node in cluster.nodes[:2]]
    assert told[2].startswith(cluster[2].name) and "refused" in told[2]


def test_a_key_that_is_no_marker_is_left_alone(redlock, nodes):
    nodes[0].set("libredlock:m", "mine")
    done = redlock("bootstrap", "--yes")
    assert done.returncode == UNAVAILABLE and "is not a marker of this library" in done.stdout
    assert nodes[0].get("libredlock:m") == b"mine" and None not in markers(nodes)


def test_in_json(redlock, nodes):
    done = redlock("bootstrap", "--yes", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0 and len(report["nodes"]) == 5


def test_what_it_does_not_take(redlock):
    for words in (["orders:42"], ["--guard", "off"], ["--ttl", "1s"]):
        done = redlock("bootstrap", "--yes", *words)
        assert done.returncode == USAGE and done.stdout == ""


def test_who_grants_nothing_needs_no_guard(redlock, nodes):
    """Whatever the guard and the longest TTL of those who lock."""
    del redlock.env["REDLOCK_GUARD"]
    assert redlock("status", "orders:42").returncode == 0
    assert redlock("release", "orders:42", "t" * 40).returncode == 0
    assert markers(nodes) == [None] * 5
    assert redlock("bootstrap", "--yes", "--max-ttl", "1m").returncode == 0
    token = redlock("acquire", *GUARDED, "orders:42").stdout.strip()
    assert "held" in redlock("status", "orders:42").stdout
    assert redlock("release", "orders:42", token).returncode == 0
    nodes.no_keys()

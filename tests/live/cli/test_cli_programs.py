"""redlock doctor: which programs use the nodes, and which of them have another list."""
import json
import re
import socket

import pytest

from testing import eventually

KEY = "libredlock:c:programs"
HOST = socket.gethostname()
PATIENT = ("--connect-timeout", "20s")


def clock_s(node):
    return int(node.command("TIME")[0])


def nonce(node):
    return node.command("GET", "libredlock:m").decode().split()[5]


@pytest.fixture
def lists(redlock, make_cluster):
    """Four nodes; the command with some of them, as a program of that name."""
    cluster = make_cluster(4, bootstrapped=False)

    def use(name, servers):
        redlock.env.update(REDLOCK_NODES=",".join(server.url for server in servers), REDLOCK_CLIENT_NAME=name,
                           REDLOCK_GUARD="marker")
        return redlock

    def has_seen_all(name, servers):
        done = use(name, servers)("run", *PATIENT, "job", "--", "true")
        assert done.returncode == 0, done.stderr
        values = [server.command("HGETALL", KEY) for server in servers]
        return all(b" - " not in b"".join(value) for value in values if value)

    def run(name, servers):
        """Until it has written its field with the markers of all, whichever connects last."""
        assert use(name, servers)("bootstrap", "--yes").returncode == 0
        eventually(lambda: has_seen_all(name, servers))

    use.nodes, use.run = cluster.nodes, run
    return use


def differing(done):
    assert done.returncode == 0, done.stdout
    return [line for line in done.stdout.splitlines() if "another list" in line]


def test_two_lists_that_overlap_are_named(lists):
    a, b, c, d = lists.nodes
    lists.run("old", [a, b, c])
    lists.run("new", [b, c, d])
    assert differing(lists("new", [b, c, d])("doctor", *PATIENT)) == [
        f"old on {HOST} (seen now) has another list of nodes: with {a.name}, without {d.name}"]
    assert differing(lists("old", [a, b, c])("doctor", *PATIENT)) == [
        f"new on {HOST} (seen now) has another list of nodes: with {d.name}, without {a.name}"]


def test_the_same_list_is_no_finding_by_names_or_addresses(lists):
    a, b, c, _ = lists.nodes
    lists.run("one", [a, b, c])
    by_name = [server.url.replace("127.0.0.1", "localhost") for server in (c, a, b)]
    redlock = lists("two", [a, b, c])
    redlock.env["REDLOCK_NODES"] = ",".join(by_name)
    assert redlock("run", *PATIENT, "job", "--", "true").returncode == 0
    assert differing(redlock("doctor", *PATIENT)) == []
    report = json.loads(redlock("doctor", *PATIENT, "--json").stdout)
    assert sorted(program["program"] for program in report["programs"]) == ["one", "two"]


@pytest.mark.parametrize("theirs", ["localhost:1", "127.0.0.1:1"])
def test_a_node_that_is_down_is_no_finding(redlock, nodes, theirs):
    """... neither for a program that has not reached one, nor for doctor."""
    pairs = [f"{nonce(node)} {node.name}" for node in nodes.nodes[:4]]
    nodes[0].command("HSET", KEY, "0123456789abcdef web-3 worker",
                     f"v1 {clock_s(nodes[0])} 7 0.1.0 30000 {' '.join(pairs)} - {theirs}")
    done = redlock("doctor", *PATIENT)
    assert "another list" not in done.stdout
    nodes[4].kill()
    assert "another list" not in redlock("doctor", *PATIENT).stdout


def test_a_node_replaced_under_its_name_is_no_finding(redlock, nodes):
    pairs = [f"{nonce(node)} {node.name}" for node in nodes.nodes[:4]]
    nodes[0].command("HSET", KEY, "0123456789abcdef web-3 worker",
                     f"v1 {clock_s(nodes[0])} 7 0.1.0 30000 {' '.join(pairs)} 00000000ffffffff {nodes[4].name}")
    assert "another list" not in redlock("doctor", *PATIENT).stdout


@pytest.mark.parametrize("host", ["web-3", "wéb-3", "orders-7d4b9c6f5-x2x7q.eu-west-1"])
def test_the_table_shows_who_has_which_number(redlock, nodes, host):
    pairs = " ".join(f"{nonce(node)} {node.name}" for node in nodes)
    nodes[0].command("HSET", KEY, f"0123456789abcdef {host} worker",
                     f"v1 {clock_s(nodes[0]) - 300} 7 0.1.0 45000 {pairs}")
    lines = redlock("doctor", *PATIENT, "--programs").stdout.splitlines()
    (line,) = [line for line in lines if line.startswith(host)]
    assert line.split()[:4] == [host, "worker", "0.1.0", "45s"] and re.search(r" 5 min \d+ s ago ", line)
    assert any([head.find(word) for word in ("PROGRAM", "VERSION")] == [line.find(word) for word in ("worker", "0.1.0")]
               for head in lines if head.startswith("HOST "))
    assert all(node.name in line for node in nodes)
    assert not any(line.startswith(host) for line in redlock("doctor", *PATIENT).stdout.splitlines())


@pytest.mark.parametrize("ago_s, is_shown", [(3500, True), (3700, False), (-3700, False)])
def test_who_was_not_seen_for_an_hour_is_left_out(redlock, nodes, ago_s, is_shown):
    """Nodes keep it until a new program comes."""
    nodes[0].command("HSET", KEY, "0123456789abcdef web-3 worker",
                     f"v1 {clock_s(nodes[0]) - ago_s} 7 0.1.0 45000 0123456789abcdef a:1 0123456789abcdee b:1")
    done = redlock("doctor", *PATIENT)
    assert ("worker on web-3" in done.stdout) is is_shown, done.stdout


def test_what_a_neighbour_forged_is_left_out(redlock, nodes):
    now_s = clock_s(nodes[0])
    good = f"v1 {now_s} 7 0.1.0 45000 0123456789abcdef a:1"
    forged = [(b"\xff\x00 \x1b[2J x", good), (b"d h \x1b[2J\np1", good), ("d h p", f"v2 {now_s}"),
              ("d h p", b"\x00" * 9000000), ("d", good), ("d h p2", good[:-5] + "z a:1"), ("", ""),
              ("d h p3", good.rsplit(" ", 2)[0])]
    for field, value in forged:
        nodes[0].command("HSET", KEY, field, value)
    for at in range(0, 100000, 5000):
        nodes[1].command("HSET", KEY, *(word for i in range(at, at + 5000) for word in (f"d h{i} p", good)))
    nodes[2].command("SET", KEY, "by hand")
    done = redlock("doctor", *PATIENT, "--programs")
    assert (done.returncode, done.stderr) == (0, "") and "\x1b" not in done.stdout and "p2" not in done.stdout
    assert r"h                 \x1b[2J\x0ap1" in done.stdout
    assert re.search(r"^h +p3 +0\.1\.0 +45s ", done.stdout, re.M), "a number that the next field follows at once"
    assert len(done.stdout.splitlines()) < 1100
    words = "programs have another list of nodes; --programs shows all"
    eventually(lambda: words in redlock("doctor", *PATIENT).stdout, 60, "all of a full node is read in time")

"""redlock bootstrap: an operator says that no lock is live."""
import json
import re
import subprocess

import pytest

from command import BUSY, REFUSED_CONFIG, UNAVAILABLE, USAGE, finish
from common import occupy
from testing import eventually

DECLINED = 1
GUARDED = ["--guard", "marker", "--max-ttl", "1m"]

pytestmark = pytest.mark.new_nodes


@pytest.fixture(autouse=True)
def new(nodes):
    """The nodes before their first use."""
    for node in nodes:
        node.flush()



def markers(nodes):
    return [node.get("libredlock:m") for node in nodes]


@pytest.mark.parametrize("verbose", [False, True])
def test_the_first_lock_on_new_nodes_says_why_it_waits(redlock, nodes, verbose):
    done = redlock("run", *(["-v"] if verbose else []), *GUARDED, "--ttl", "6s", "--max-ttl", "6s", "orders:42", "--",
                   "echo", "done")
    assert (done.returncode, done.stdout) == (0, "done\n")
    said = done.stderr.splitlines()
    if verbose:
        assert re.fullmatch(r"redlock: acquired the lock after \d+\.\d s", said.pop())
        assert said.pop() == "redlock: held by nobody; waiting for up to 40s"
    (why,) = said
    assert re.fullmatch(r'redlock: "orders:42" waits: [345] of 5 nodes are new or may have lost keys, and do not vote '
                        r"for another [1-6]\.\d s; redlock bootstrap ends that if no lock is live", why), why
    assert all(marker.split()[6] == b"6000" for marker in markers(nodes))


@pytest.mark.parametrize("workers", ["--threads", "--in-flight"])
def test_a_bench_on_new_nodes_says_once_why_it_waits(redlock, nodes, workers):
    done = redlock("bench", *GUARDED, "--for", "2s", workers, "3")
    waits, nothing = done.stderr.splitlines()
    assert re.match(r'redlock: "redlock-bench:\d+:\d" waits: [345] of 5 nodes are new or may', waits), waits
    assert done.returncode != 0 and nothing.startswith("redlock: no lock was acquired: "), nothing


def test_slow_answers_are_no_reason_to_say_why(redlock, nodes, proxy):
    """No node has said that it does not vote."""
    assert redlock("bootstrap", "--new", "--max-ttl", "90s").returncode == 0
    proxies = [proxy(node) for node in nodes]
    for p in proxies:
        p.at("SET", "orders:42", lambda p=p: p.hold("down"))
    redlock.env["REDLOCK_NODES"] = ",".join(p.url for p in proxies)
    acquiring = redlock.start("acquire", "--node-timeout", "20s", "--ttl", "90s", "--max-ttl", "90s",
                            "orders:42")
    eventually(lambda: all(node.get("orders:42") for node in nodes), 20, "the nodes have been asked")
    with pytest.raises(subprocess.TimeoutExpired):
        acquiring.wait(2)  # it would be told after a second
    for p in proxies:
        p.go()
    done = finish(acquiring)
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 41, "")


def test_new_nodes_grant_a_lock_at_once(redlock, nodes):
    waiting = redlock("acquire", *GUARDED, "-n", "orders:42")
    assert waiting.returncode == UNAVAILABLE and "quarantined" in waiting.stderr
    done = redlock("bootstrap", "--yes", "--max-ttl", "1m")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join("%s: registered; it votes\n" % node.name for node in nodes)
    assert all(marker.split()[2:5] + marker.split()[6:] == [b"0", b"5", b"0", b"60000", b"-", b"0" * 16]
               for marker in markers(nodes))
    assert redlock("acquire", *GUARDED, "-n", "orders:42").returncode == 0


@pytest.mark.parametrize("how", [["--new"], ["--yes"], ["--replace", "--yes"], []])
def test_nothing_is_done_or_asked_where_all_vote(redlock, nodes, how):
    assert redlock("bootstrap", "--new").returncode == 0
    before = markers(nodes)
    done = redlock("bootstrap", *how)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join("%s: votes already\n" % node.name for node in nodes) and markers(nodes) == before


def test_bootstrap_asks_first_and_names_what_was_found(terminal, nodes):
    program = terminal("bootstrap", "--max-ttl", "1m")
    program.expect(r"%s is new or may have lost keys, .*: is no lock live\? \[y/N\] " % re.escape(nodes[0].name))
    assert markers(nodes) == [None] * 5
    program.type("y\n")
    assert program.wait() == 0 and program.seen.count("registered") == 5
    assert None not in markers(nodes)


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"])
def test_bootstrap_writes_nothing_when_the_user_does_not_agree(terminal, nodes, answer):
    program = terminal("bootstrap")
    program.expect(r"\[y/N\] ")
    program.type(answer)
    assert program.wait() == DECLINED and "Nothing was written." in program.seen
    assert markers(nodes) == [None] * 5


def test_bootstrap_is_refused_without_a_terminal_to_confirm(redlock, nodes):
    done = redlock("bootstrap")
    assert (done.returncode, done.stdout) == (USAGE, "") and "--new" in done.stderr and "--yes" in done.stderr
    assert markers(nodes) == [None] * 5


def set_fields(node, **fields):
    """Of its marker: since, nodes, number."""
    changed = node.get("libredlock:m").split()
    for name, value in fields.items():
        changed[{"since": 2, "nodes": 3, "number": 6}[name]] = b"%d" % value
    node.set("libredlock:m", b" ".join(changed).decode())


def fields_of(nodes):
    return [[int(marker.split()[place]) for place in (2, 3, 6)] if marker else None for marker in markers(nodes)]


def now_ms(node):
    return int(node.command("TIME")[0]) * 1000


def test_bootstrap_asks_before_the_number_is_raised(redlock, terminal, nodes):
    """A node that waits for its vote is no part of it."""
    assert redlock("bootstrap", "--new").returncode == 0
    nodes[0].flush()
    set_fields(nodes[1], since=now_ms(nodes[1]))
    since = fields_of(nodes)[1][0]
    program = terminal("bootstrap", "--replace", "--max-ttl", "1h")
    program.expect(r"%s allows 30 s and is quarantined for another \d+ s, %s allows 30 s, %s allows 30 s, "
                   r"%s allows 30 s: have all programs had max_ttl_ms = 1h for 1h\? \[y/N\] "
                   % tuple(re.escape(node.name) for node in nodes[1:]))
    program.type("y\n")
    assert program.wait() == 0 and "[y/N]" not in program.seen
    assert "%s: left alone: is new or may have lost keys" % nodes[0].name in program.seen
    assert "%s: its marker was replaced; it is quarantined for another " % nodes[1].name in program.seen
    assert fields_of(nodes) == [None, [since, 5, 3600000]] + 3 * [[0, 5, 3600000]]


def test_bootstrap_asks_before_the_number_is_lowered(redlock, terminal, nodes):
    assert redlock("bootstrap", "--new", "--max-ttl", "1h").returncode == 0
    assert redlock("bootstrap", "--yes").returncode == REFUSED_CONFIG
    set_fields(nodes[4], since=now_ms(nodes[4]))
    before = markers(nodes)[4]
    program = terminal("bootstrap", "--replace")
    program.expect(r"allows 1 h: has no program asked for more than 30s for 1h\? \[y/N\] ")
    program.type("y\n")
    assert program.wait() == REFUSED_CONFIG and program.seen.count("its marker was replaced") == 4
    assert re.search(r"%s: left alone: allows 1 h and is quarantined for another " % re.escape(nodes[4].name),
                     program.seen)
    assert markers(nodes)[4] == before


def test_bootstrap_asks_about_another_list(redlock, terminal, nodes):
    assert redlock("bootstrap", "--new", "--max-ttl", "2m").returncode == 0
    for node in nodes[:3]:
        set_fields(node, nodes=3)
    for node in nodes[3:]:
        node.flush()
    program = terminal("bootstrap", "--replace", "--max-ttl", "2m")
    program.expect(r"%s is registered for 3 nodes: have all its programs been stopped for 2m\? \[y/N\] "
                   % re.escape(nodes[2].name))
    program.type("y\n")
    assert program.wait() == 0
    program = terminal("bootstrap", "--max-ttl", "2m")
    program.expect(r"\d is new or may have lost keys: is no lock live\? \[y/N\] ")
    program.type("y\n")
    assert program.wait() == 0 and fields_of(nodes) == 5 * [[0, 5, 120000]]


def subjects(redlock, nodes):
    """A smaller number, a larger one and another list."""
    assert redlock("bootstrap", "--new", "--max-ttl", "1m").returncode == 0
    set_fields(nodes[0], number=30000)
    set_fields(nodes[1], number=120000)
    set_fields(nodes[2], nodes=3)


def tell(node, name, number_ms):
    """As a program does that has this number."""
    at_s = now_ms(node) // 1000 - 300
    node.command("HSET", "libredlock:c:programs", f"0123456789abcdef web-3 {name}",
                 f"v1 {at_s} 7 0.1.0 {number_ms} - {node.name}")


@pytest.mark.parametrize("former, wanted, named", [("30s", "1h", ["low", "old"]), ("2h", "1h", ["high"])])
def test_the_question_names_programs_with_another_number(redlock, terminal, nodes, former, wanted, named):
    assert redlock("bootstrap", "--new", "--max-ttl", former).returncode == 0
    for name, number_ms in ("low", 30000), ("old", 60000), ("right", 3600000), ("high", 7200000):
        tell(nodes[1], name, number_ms)
    program = terminal("bootstrap", "--replace", "--max-ttl", wanted)
    asked = program.expect(r"(?s)^.*\? \[y/N\] ")[0]
    program.type("n\n")
    assert program.wait() == 1
    found = re.findall(r"(\w+) on web-3 \(seen 5 min \d+ s ago\) has max_ttl_ms = \w+", asked)
    assert sorted(found) == sorted(named)


def test_the_question_about_a_list_names_all_programs(redlock, terminal, nodes):
    assert redlock("bootstrap", "--new").returncode == 0
    set_fields(nodes[2], nodes=3)
    tell(nodes[1], "worker", 30000)
    program = terminal("bootstrap", "--replace")
    program.expect(r"worker on web-3 \(seen 5 min \d+ s ago\) has max_ttl_ms = 30s\s+.* stopped for 30s\? \[y/N\] ")
    program.type("n\n")
    assert program.wait() == 1


ASKED = [r"\d allows 30 s: have all programs had max_ttl_ms = 1m for 1m\? ",
         r"\d allows 2 min: has no program asked for more than 1m for 2m\? ",
         r"\d is registered for 3 nodes: have all its programs been stopped for 1m\? "]


@pytest.mark.parametrize("answers", range(4))
def test_each_answer_acts_alone(redlock, terminal, nodes, answers):
    subjects(redlock, nodes)
    before = fields_of(nodes)
    program = terminal("bootstrap", "--replace", "--max-ttl", "1m")
    for number in range(answers):
        program.expect(ASKED[number])
        assert fields_of(nodes) == number * [[0, 5, 60000]] + before[number:]
        program.type("y\n")
    if answers < len(ASKED):
        program.expect(ASKED[answers])
        program.type("n\n")
        assert program.wait() == DECLINED
        assert ("Nothing else was written." if answers else "Nothing was written.") in program.seen
    else:
        assert program.wait() == 0
    assert fields_of(nodes) == answers * [[0, 5, 60000]] + before[answers:]


BAD = ["\n", "n\n", "no\n", "ny\n", " y\n", "0\n", "?\n", "\x04", "n" * 40 + "y\n", "n" * 15 + "y\n"]


@pytest.mark.parametrize("question", range(4))
def test_any_other_answer_is_no(redlock, terminal, nodes, question):
    if question < 3:
        subjects(redlock, nodes)
        for other in range(question):
            set_fields(nodes[other], number=60000, nodes=5)
    before = markers(nodes)
    for bad in BAD:
        program = terminal("bootstrap", *(["--replace"] if question < 3 else []), "--max-ttl", "1m")
        program.expect(ASKED[question] if question < 3 else r"is no lock live\? ")
        program.type(bad)
        assert program.wait() == DECLINED and "?" not in program.seen.replace(bad.strip(), ""), bad
    assert markers(nodes) == before


def test_a_long_yes_answers_one_question(redlock, terminal, nodes):
    subjects(redlock, nodes)
    program = terminal("bootstrap", "--replace", "--max-ttl", "1m")
    program.expect(ASKED[0])
    program.type("y" * 100 + "\n")
    program.expect(ASKED[1])
    program.type("\n")
    assert program.wait() == DECLINED
    assert fields_of(nodes)[0][2] == 60000 and fields_of(nodes)[1][2] == 120000


def test_a_node_that_loses_its_keys_meanwhile_is_left_alone(redlock, terminal, make_cluster):
    """Nobody was asked about it; the holder has it and the second node."""
    cluster = make_cluster(3)
    redlock.env["REDLOCK_NODES"] = cluster.nodes_env
    assert redlock("bootstrap", "--new", "--max-ttl", "1m").returncode == 0
    cluster[2].flush()
    program = terminal("bootstrap", "--max-ttl", "1m")
    program.expect(r"%s is new or may have lost keys: is no lock live\? " % re.escape(cluster[2].name))
    cluster[0].flush()
    program.type("y\n")
    assert program.wait() == REFUSED_CONFIG
    assert "%s: left alone: is new or may have lost keys" % cluster[0].name in program.seen
    assert "%s: registered; it votes" % cluster[2].name in program.seen
    assert cluster[0].get("libredlock:m") is None


@pytest.mark.parametrize("cut", range(3))
@pytest.mark.parametrize("flags, prepare, done", [
    (["--yes"], lambda node: node.flush(), [0, 3, 60000]),
    (["--new"], lambda node: node.flush(), [0, 3, 60000]),
    (["--replace", "--yes"], lambda node: set_fields(node, number=30000), [0, 3, 60000]),
    (["--replace", "--yes"], lambda node: set_fields(node, since=now_ms(node), number=20000), [None, 3, 60000]),
    (["--replace", "--yes"], lambda node: set_fields(node, number=90000), [0, 3, 60000]),
], ids=["yes", "new", "raise", "raise-quarantined", "lower"])
def test_a_plan_that_is_cut_off_is_ended_by_the_next_call(redlock, make_cluster, proxy, cut, flags, prepare, done):
    """At any of its writes, by kill -9: each marker is as it was or as it was planned, and the next call ends it."""
    cluster = make_cluster(3)
    redlock.env["REDLOCK_NODES"] = cluster.nodes_env
    assert redlock("bootstrap", "--replace", "--yes", "--max-ttl", "1m").returncode == 0
    assert redlock("bootstrap", "--yes", "--max-ttl", "1m").returncode == 0
    for node in cluster:
        prepare(node)
    before = fields_of(cluster)
    planned = [[done[0] if done[0] is not None else marker[0], *done[1:]] for marker in before]
    proxies = [proxy(node) for node in cluster]
    for number, p in enumerate(proxies):
        if number >= cut:
            p.at("EVAL", "libredlock:m", lambda p=p: p.hold("up"), byte=0)
    redlock.env["REDLOCK_NODES"] = ",".join(p.url for p in proxies)
    program = redlock.start("bootstrap", *flags, "--max-ttl", "1m")
    eventually(lambda: fields_of(cluster)[:cut] == planned[:cut], 20, "the first ones are written")
    program.kill()
    program.wait()
    for p in proxies:
        p.close()
    assert fields_of(cluster) == planned[:cut] + before[cut:]
    redlock.env["REDLOCK_NODES"] = cluster.nodes_env
    again = redlock("bootstrap", *flags, "--max-ttl", "1m")
    assert again.returncode == 0, again.stdout + again.stderr
    if flags == ["--new"] and cut:  # the others may have lost their keys
        assert fields_of(cluster) == planned[:cut] + before[cut:]
        assert "used before" not in again.stderr
    else:
        assert fields_of(cluster) == planned


def test_a_node_that_is_down_is_named(redlock, make_cluster):
    cluster = make_cluster(3)
    cluster[2].kill()
    redlock.env["REDLOCK_NODES"] = cluster.nodes_env
    for node in cluster.nodes[:2]:
        node.flush()
    done = redlock("bootstrap", "--yes", "--connect-timeout", "5s")
    assert done.returncode == UNAVAILABLE
    told = done.stdout.splitlines()
    assert told[:2] == ["%s: registered; it votes" % node.name for node in cluster.nodes[:2]]
    assert told[2].startswith("%s: no answer: " % cluster[2].name) and "refused" in told[2]


def test_a_key_that_is_no_marker_is_left_alone(redlock, nodes):
    nodes[0].set("libredlock:m", "mine")
    done = redlock("bootstrap", "--yes")
    assert done.returncode == REFUSED_CONFIG
    assert redlock("bootstrap", "--yes", "--replace").stdout.splitlines()[0] == done.stdout.splitlines()[0]
    assert done.stdout.splitlines()[0].endswith("left alone: the key libredlock:m is not a marker of this library")
    assert nodes[0].get("libredlock:m") == b"mine" and None not in markers(nodes)


def test_json_says_what_was_found_and_done(redlock, nodes):
    nodes[0].set("libredlock:m", "mine")
    done = redlock("bootstrap", "--yes", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == REFUSED_CONFIG
    assert list(report) == ["status", "nodes"] and report["status"] == "REFUSED_CONFIG"
    assert report["nodes"][0] == {"node": nodes[0].name, "did": "left_alone", "votes": False, "max_ttl_ms": None,
                                  "found": "the key libredlock:m is not a marker of this library"}
    assert report["nodes"][1] == {"node": nodes[1].name, "did": "registered", "votes": True, "max_ttl_ms": 30000,
                                  "found": "votes"}


def test_new_leaves_nodes_alone_that_were_restarted(redlock, make_cluster):
    """Up again with their files, as those of a compose file: nothing is registered, and it says who may."""
    cluster = make_cluster(3)
    redlock.env["REDLOCK_NODES"] = cluster.nodes_env
    assert redlock("bootstrap", "--new").returncode == 0
    before = markers(cluster)
    for node in cluster:
        node.restart()
    done = redlock("bootstrap", "--new")
    assert done.returncode == 0 and done.stdout.count(": left alone: is new or may have lost keys") == 3
    assert "`redlock bootstrap`, which asks" in done.stderr and markers(cluster) == before


def test_new_leaves_nodes_alone_where_a_program_was_first(redlock, nodes):
    def all_are_registered():
        assert redlock("acquire", *GUARDED, "-n", "orders:42").returncode == UNAVAILABLE
        return None not in markers(nodes)

    eventually(all_are_registered, 30, "a majority has answered at once, and the rest another time")
    done = redlock("bootstrap", "--new", "--max-ttl", "1m")
    assert done.returncode == 0 and "used before" not in done.stderr
    assert re.fullmatch(r"(.*: left alone: votes in (\d+ s|1 min)\n){5}", done.stdout)
    assert "`redlock bootstrap`, which asks whether a lock is live, lets these nodes vote at once" in done.stderr


def test_new_registers_the_node_that_was_replaced(redlock, nodes):
    assert redlock("bootstrap", "--new").returncode == 0
    nodes[0].flush()
    done = redlock("bootstrap", "--new")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("votes already") == 4


def test_new_is_refused_with_what_contradicts_it(redlock, nodes):
    for flag in ("--yes", "--replace"):
        done = redlock("bootstrap", "--new", flag)
        assert done.returncode == USAGE and "--new" in done.stderr
    assert markers(nodes) == [None] * 5


def test_the_number_may_stand_at_the_end_of_the_list(redlock, nodes):
    redlock.env["REDLOCK_NODES"] += "?max_ttl=5m"
    assert redlock("bootstrap", "--new").returncode == 0
    assert [marker.split()[6] for marker in markers(nodes)] == 5 * [b"300000"]
    done = redlock("acquire", "--guard", "marker", "--ttl", "4m", "orders:42")
    assert done.returncode == 0, done.stderr
    done = redlock("acquire", "--guard", "marker", "--max-ttl", "1m", "orders:42")
    assert done.returncode == USAGE and "--max-ttl is 1m, and the list of nodes ends in max_ttl=" in done.stderr


def test_a_ttl_above_the_number_is_refused_with_advice(redlock, nodes):
    done = redlock("acquire", "--ttl", "1h", "orders:42")
    assert done.returncode == USAGE
    assert done.stderr == ("redlock: --ttl 1h is above --max-ttl, 30s: renew a shorter lock, or give all programs of "
                           "these nodes a --max-ttl of 1h (a node that loses its keys is out for as long)\n")


def test_the_number_may_come_from_the_environment(redlock, nodes):
    redlock.env["REDLOCK_MAX_TTL_MS"] = "3600000"
    assert redlock("bootstrap", "--new").returncode == 0
    assert redlock("acquire", "--guard", "marker", "--ttl", "1h", "orders:42").returncode == 0
    redlock.env["REDLOCK_MAX_TTL_MS"] = "1h"
    done = redlock("bootstrap", "--new")
    assert done.returncode == USAGE and "REDLOCK_MAX_TTL_MS" in done.stderr


def test_flags_that_bootstrap_does_not_take_are_refused(redlock):
    for words in (["orders:42"], ["--guard", "off"], ["--ttl", "1s"], ["--ne"]):
        done = redlock("bootstrap", "--yes", *words)
        assert done.returncode == USAGE and done.stdout == ""


def test_commands_that_grant_nothing_run_without_the_guard(redlock, nodes):
    """Whatever the guard and the longest TTL of those who lock."""
    assert redlock("status", "orders:42").returncode == 0
    assert redlock("release", "orders:42", "t" * 40).returncode == 0
    assert markers(nodes) == [None] * 5
    assert redlock("bootstrap", "--yes", "--max-ttl", "1m").returncode == 0
    token = redlock("acquire", *GUARDED, "orders:42").stdout.strip()
    assert "held" in redlock("status", "orders:42").stdout
    assert redlock("release", "orders:42", token).returncode == 0
    nodes.no_keys()


def test_keep_shortens_the_wait_for_others_only(redlock, nodes):
    """Half of it is less than the quarantine of new nodes, which has to be outlived."""
    keep = ["--max-ttl", "8s", "--ttl", "8s", "--keep", "8s"]
    done = redlock("run", "--guard", "marker", *keep, "job", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    occupy(nodes, "other", ttl_ms=15000)  # less than the wait for anything else
    done = redlock("run", *keep, "other", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (BUSY, "") and "held by others" in done.stderr, done.stderr

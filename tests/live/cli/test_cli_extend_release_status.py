"""redlock extend, release, status"""
import re
import signal
import time

import pytest

from command import BUSY, CLIENT, LOST, REFUSED_CONFIG, UNAVAILABLE, USAGE, finish, process_state
from testing import eventually
from testing.wait import in_time

OTHER = "0123456789abcdef" * 2 + "01234567"


def pttls(nodes, key):
    return sorted(node.pttl(key) for node in nodes)


def acquired(redlock, nodes, resource="orders:42", ttl="10s"):
    token = redlock.acquire(resource, "--ttl", ttl, "--max-ttl", "24h")
    eventually(lambda: all(node.get(resource) for node in nodes))
    return token


def held_s(line):
    return float(re.fullmatch(r"redlock: held for (\d+\.\d+) s.*\n", line).group(1))


def test_extend_prolongs_the_lease_in_silence(redlock, nodes):
    token = acquired(redlock, nodes)
    done = redlock.once("extend", "--ttl", "20s", "orders:42", token)
    assert (done.returncode, done.stdout) == (0, "") and 10 < held_s(done.stderr) < 20
    assert sum(pttl > 10000 for pttl in pttls(nodes, "orders:42")) >= nodes.quorum


def test_quiet_says_nothing_of_a_success(redlock, nodes):
    token = acquired(redlock, nodes)
    for command in ("extend", "expire", "release", "release"):
        done = redlock.once(command, "-q", "orders:42", token)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = redlock.once("extend", "-q", "orders:42", token)
    assert done.returncode == LOST and done.stderr.startswith("redlock: ")


def test_extend_says_what_the_nodes_keep(redlock, nodes):
    """It never shortens a lease."""
    token = acquired(redlock, nodes, ttl="30s")
    words = re.compile(r"redlock: held for (\S+) s; the nodes keep it for (\S+) s: extend never shortens a lease, "
                       r"expire does\n")

    def says():
        """The nodes are asked for 500 ms at most, so a late machine may need several attempts."""
        done = redlock.once("extend", "--ttl", "9s", "orders:42", token)
        assert done.returncode == 0
        return words.fullmatch(done.stderr)

    validity, kept = eventually(says, 15, words.pattern).groups()
    assert float(validity) < 9 and 9 < float(kept) <= 30
    answer = eventually(lambda: kept_ms(redlock.json("extend", "--ttl", "9s", "orders:42", token)[1]), 15, "the answer")
    assert answer["validity_ms"] < 9000 < answer["holder_ttl_ms"] <= 30000


def kept_ms(answer):
    return answer if answer["holder_ttl_ms"] > 0 else None


@pytest.mark.parametrize("ttl, seconds", [("9s", 9), ("30s", 30)])
def test_expire_sets_the_lease(redlock, nodes, ttl, seconds):
    token = acquired(redlock, nodes, ttl="20s")
    done = redlock.once("expire", "--ttl", ttl, "orders:42", token)
    assert (done.returncode, done.stdout) == (0, "") and 0 < held_s(done.stderr) < seconds
    assert sum(0 < pttl <= seconds * 1000 for pttl in pttls(nodes, "orders:42")) >= nodes.quorum
    if seconds > 20:
        assert sum(pttl > 20000 for pttl in pttls(nodes, "orders:42")) >= nodes.quorum


@pytest.mark.parametrize("command", ["extend", "expire"])
def test_a_signal_while_it_looks_at_the_keys_ends_it(redlock, nodes, proxy, command):
    token = acquired(redlock, nodes, "r")
    between = [proxy(node) for node in nodes]
    redlock.env["REDLOCK_NODES"] = ",".join(p.url for p in between)
    for p in between:
        p.at("GETRANGE", "r", p.hold)
    running = redlock.start(command, "--exit-drain", "0", "r", token)
    eventually(lambda: any(p.held_bytes() for p in between), what="it looks")
    running.send_signal(signal.SIGTERM)
    assert finish(running).returncode == -signal.SIGTERM


def test_expire_needs_the_token(redlock, nodes):
    acquired(redlock, nodes)
    assert redlock.once("expire", "orders:42", OTHER).returncode == LOST
    assert "TOKEN is missing" in redlock("expire", "orders:42").stderr


def test_lease_of_another_reader_is_not_what_is_kept(redlock, nodes):
    redlock.acquire("r", "--shared", "--ttl", "30s")
    token = redlock.acquire("r", "--shared", "--ttl", "9s")
    for command in ("extend", "expire"):
        done, answer = redlock.json(command, "--shared", "--ttl", "9s", "r", token)
        assert done.returncode == 0 and answer["holder_ttl_ms"] <= 9000
        assert held_s(redlock.once(command, "--shared", "--ttl", "9s", "r", token).stderr) < 9
    answer = eventually(lambda: kept_ms(redlock.json("extend", "--shared", "--ttl", "30s", "r", token)[1]), 15, "it")
    assert 9000 < answer["holder_ttl_ms"] <= 30000


def test_extend_in_json_has_token_and_validity(redlock, nodes):
    token = acquired(redlock, nodes)
    done, answer = redlock.json("extend", "--ttl", "20s", "orders:42", token)
    assert (done.returncode, answer["status"], answer["token"]) == (0, "OK", token)
    assert 10000 < answer["validity_ms"] < 90000 and len(answer["nodes"]) == len(nodes)


def test_extend_does_not_say_that_a_token_held_the_lock_once(redlock):
    done = redlock.once("extend", "orders:42", OTHER)
    assert "nobody holds it with this token" in done.stderr and "held once" not in done.stderr


def test_release_does_not_say_that_a_token_held_the_lock_once(redlock):
    done, answer = redlock.json("release", "orders:42", OTHER)
    assert "nobody holds it with this token" in answer["message"] and "held once" not in answer["message"]
    assert "nobody holds it with this token" in redlock.once("release", "orders:42", OTHER).stderr


def test_failed_extend_deletes_nothing(redlock, nodes):
    token = acquired(redlock, nodes, ttl="30s")
    for i in range(3):
        nodes[i].stop()
    assert redlock.once("extend", "orders:42", token).returncode == UNAVAILABLE
    for i in range(3):
        nodes[i].cont()
    assert all(node.get("orders:42") for node in nodes)


def test_release_deletes_every_key(redlock, nodes):
    token = acquired(redlock, nodes)
    done = redlock.once("release", "orders:42", token)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "redlock: released\n")
    nodes.no_keys()


def test_slower_nodes_are_not_left_out(redlock, nodes, proxy):
    """Two nodes have no connection yet when the others are a majority already."""
    slow = [proxy(nodes[i]) for i in (3, 4)]
    for way in slow:
        way.delay(up_ms=30, down_ms=30)
    env = dict(redlock.env, REDLOCK_NODES=",".join(nodes.urls[:3] + [way.url for way in slow]))
    options = ("--exit-drain", "10s", "--node-timeout", "2s")
    token = redlock("acquire", *options, "--ttl", "20s", "orders:42", env=env).stdout.strip()
    assert [node.get("orders:42") for node in nodes] == [token.encode()] * 5
    assert redlock("extend", *options, "--ttl", "30s", "orders:42", token, env=env).returncode == 0
    assert pttls(nodes, "orders:42")[0] > 20000
    assert redlock("release", *options[:2], "orders:42", token, env=env).returncode == 0
    assert [node.get("orders:42") for node in nodes] == [None] * 5


def test_slower_nodes_are_awaited_once(redlock, nodes):
    """A node that hangs costs no more than --exit-drain."""
    token = acquired(redlock, nodes, ttl="30s")
    nodes[4].stop()
    begun = time.monotonic()
    done = redlock("release", "--exit-drain", "10s", "--connect-timeout", "1m", "orders:42", token)
    took_s = time.monotonic() - begun
    nodes[4].cont()
    assert (done.returncode, done.stderr) == (0, "redlock: released\n")
    in_time(took_s < 19)


def test_a_signal_while_slower_nodes_are_awaited_does_not_spin(redlock, nodes):
    token = acquired(redlock, nodes, ttl="30s")
    nodes[4].stop()
    releasing = redlock.start("release", "--exit-drain", "1m", "--connect-timeout", "1m", "orders:42", token)
    eventually(lambda: not any(node.get("orders:42") for node in nodes.nodes[:4]))
    eventually(lambda: process_state(releasing.pid) == "S", what="it has read the answers of the others")
    releasing.send_signal(signal.SIGTERM)
    try:
        eventually(lambda: process_state(releasing.pid) in ("S", "Z"), 10, "it sleeps")
    finally:
        nodes[4].cont()
    assert finish(releasing).stderr in ("redlock: released\n", "")


def test_release_twice_is_no_error(redlock, nodes):
    token = acquired(redlock, nodes)
    redlock.once("release", "orders:42", token)
    done = redlock.once("release", "orders:42", token)
    assert (done.returncode, done.stdout) == (0, "") and "already gone" in done.stderr
    _, answer = redlock.json("release", "orders:42", token)
    assert answer["status"] == "LOST" and answer["token"] == token


def test_release_takes_what_is_on_the_resources_it_names(redlock, nodes):
    token = acquired(redlock, nodes)
    done = redlock.once("release", "orders:41", "orders:42", token)
    assert (done.returncode, done.stderr) == (0, "redlock: released\n")
    nodes.no_keys()


def test_release_without_quorum_ends(redlock, nodes):
    token = acquired(redlock, nodes, ttl="20s")
    for i in range(3):
        nodes[i].kill()
    done = redlock.once("release", "orders:42", token)
    assert (done.returncode, done.stdout) in ((UNAVAILABLE, ""), (0, ""))


@pytest.mark.parametrize("token", ["", "x" * 129])
def test_a_token_of_wrong_length_is_refused(redlock, token):
    for command in ("extend", "release"):
        done = redlock(command, "orders:42", token)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (USAGE, "", 1)
        assert "token has %d bytes" % len(token) in done.stderr and "1 to 128" in done.stderr


FOREIGN = [b"qXyZ+/09qXyZ+/09qXyZ+w==", b"0123456789abcdef0123456789abcdef", b"AbCdEfGhIjKlMnOpQrStUv",
           b"f81d4fae-7dec-11d0-a765-00a0c91e6bf6", b"\xff\x01 raw \x80 bytes", b"-begins-with-a-dash", b"x" * 128]


@pytest.mark.parametrize("token", FOREIGN)
def test_a_token_of_another_library_is_taken(redlock, nodes, token):
    for node in nodes:
        node.set("orders:42", token, px=10000)
    done, answer = redlock.json("extend", "--exit-drain", "10s", "--ttl", "30s", "--", "orders:42", token)
    assert (done.returncode, answer["status"]) == (0, "OK") and pttls(nodes, "orders:42")[0] > 10000
    assert answer.get("token", "").encode() == token or answer["token_hex"] == token.hex()
    done = redlock.once("release", "--", "orders:42", token)
    assert (done.returncode, done.stderr) == (0, "redlock: released\n")
    nodes.no_keys()


def table(done):
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["NODE", "STATE", "TOKEN", "PTTL"]
    return [line.split() for line in lines[1:-1]], lines[-1]


def test_status_of_a_free_resource_is_free(redlock, nodes):
    done = redlock.once("status", "orders:42")
    rows, verdict = table(done)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row[:4] for row in rows] == [[node.name, "free", "-", "-"] for node in nodes]
    assert verdict == "free: 5 of 5 nodes answered, 5 have no key"
    nodes.no_keys()


@pytest.mark.parametrize("ttl_s, words", [(119, r"11[78]\.\d s"), (3599, r"59 min 5\d s"), (87300, r"24 h 14 min")])
def test_long_times_are_said_as_people_say_them(redlock, nodes, ttl_s, words):
    for node in nodes:
        node.command("SET", "orders:42", OTHER, "PX", ttl_s * 1000)
    rows, verdict = table(redlock.once("status", "orders:42"))
    assert re.fullmatch(words, " ".join(rows[0][3:])) and re.search(r", %s left$" % words, verdict)


def test_status_of_a_held_resource_names_its_holder(redlock, nodes):
    token = acquired(redlock, nodes)
    done = redlock.once("status", "orders:42")
    rows, verdict = table(done)
    assert done.returncode == 0
    assert re.fullmatch(r"held: by %s, %s on 5 of 5 nodes, \d+\.\d s left" % (CLIENT, token[-8:]), verdict)
    assert "free" not in verdict
    assert [row[:3] for row in rows] == [[node.name, "held", token[-8:]] for node in nodes]
    assert all(0 < float(row[3]) <= 10 and row[4] == "s" for row in rows)
    assert token not in done.stdout
    assert sum(node.pttl("orders:42") > 0 for node in nodes) == 5


def test_status_says_why_a_node_is_missing(redlock, nodes):
    acquired(redlock, nodes)
    nodes[0].kill()
    nodes[1].stop()
    rows, verdict = table(redlock.once("status", "orders:42"))
    assert rows[0][:2] == [nodes[0].name, "unreachable"] and "refused" in " ".join(rows[0])
    assert rows[1][0] == nodes[1].name and "held" not in rows[1] and "free" not in rows[1]
    assert verdict.startswith("held: ")


def test_status_without_quorum_is_unknown(redlock, nodes):
    for i in range(3):
        nodes[i].kill()
    done = redlock.once("status", "orders:42")
    rows, verdict = table(done)
    assert done.returncode == UNAVAILABLE and len(rows) == 5
    assert verdict == "unknown: 2 of 5 nodes answered, 2 have no key"


def test_status_goes_by_the_keys_alone(redlock, make_cluster):
    """Nobody gets a lock that is free from nodes in quarantine: doctor says so, and the help says where to look."""
    redlock.env["REDLOCK_NODES"] = make_cluster(3, bootstrapped=False).nodes_env
    done = redlock.once("acquire", "--guard", "marker", "orders:42")
    assert done.returncode == UNAVAILABLE and "quarantined" in done.stderr
    assert table(redlock.once("status", "orders:42"))[1] == "free: 3 of 3 nodes answered, 3 have no key"
    assert "`redlock doctor`" in redlock("status", "--help").stdout


def test_status_in_json_has_holder_and_time_left(redlock, nodes):
    token = acquired(redlock, nodes)
    nodes[2].kill()
    done, answer = redlock.json("status", "orders:42")
    assert (done.returncode, answer["resource"], answer["verdict"]) == (0, "orders:42", "held")
    assert answer["holder"] == token and 0 < answer["holder_ttl_ms"] <= 10000
    for i, node in enumerate(answer["nodes"]):
        held = (node["vote"], node.get("token")) == ("BUSY", token) and 0 < node["ttl_ms"] <= 10000
        assert held if i != 2 else (node["vote"], node["ttl_ms"]) == ("UNREACHABLE", None)


def test_status_shows_a_key_that_never_ends(redlock, nodes):
    for node in nodes:
        node.set("orders:42", "by hand")
    done, answer = redlock.json("status", "orders:42")
    assert (answer["verdict"], {node["ttl_ms"] for node in answer["nodes"]}) == ("held", {-1})
    rows, verdict = table(redlock.once("status", "orders:42"))
    assert "no TTL" in " ".join(rows[0]) and verdict == "held: by by hand on 5 of 5 nodes, no TTL"


def test_a_token_is_cut_between_two_characters(redlock, nodes):
    for node in nodes:
        node.set("orders:42", "größeré-worker")
    rows, verdict = table(redlock.once("status", "orders:42"))
    assert {row[2] for row in rows} == {"größeré-"} and verdict == "held: by größeré- on 5 of 5 nodes, no TTL"


def test_keys_that_no_majority_has_are_split(redlock, nodes):
    for i, node in enumerate(nodes):
        node.set("orders:42", "by hand %d" % (i // 2), px=60000)
    _, verdict = table(redlock.once("status", "orders:42"))
    assert verdict == "split: 5 of 5 nodes answered, 5 have a key, no majority has the same one"
    done, answer = redlock.json("status", "orders:42")
    assert (done.returncode, answer["verdict"]) == (0, "split") and "holder" not in answer


def test_keys_that_are_no_lock_are_held_without_a_token(redlock, nodes):
    for node in nodes:
        node.command("RPUSH", "orders:42", "list")
        node.set("orders:43", "")
    for resource in "orders:42", "orders:43":
        _, verdict = table(redlock.once("status", resource))
        assert verdict == "held: by a key without a token on 5 of 5 nodes, no TTL"


def test_status_has_the_time_until_the_majority_ends(redlock, nodes):
    for i, node in enumerate(nodes):
        node.set("orders:42", "by hand", px=30000 * (i + 1))
    _, verdict = table(redlock.once("status", "orders:42"))
    left_s = float(re.fullmatch(r"held: by by hand on 5 of 5 nodes, (\d+\.\d) s left", verdict).group(1))
    assert 70 < left_s <= 90, "with the third longest of five"


def test_replicas_give_no_verdict(redlock, nodes, make_cluster):
    master = make_cluster(1)[0]
    for i in range(3):
        nodes[i].replica_of(master)
    done = redlock.once("status", "orders:42")
    rows, verdict = table(done)
    assert done.returncode == REFUSED_CONFIG and verdict.startswith("unknown: ")
    assert [row[1] for row in rows[:3]] == ["ineligible"] * 3


def test_quiet_status_is_an_exit_status(redlock, nodes):
    def quiet():
        done = redlock.once("status", "-q", "orders:42")
        assert (done.stdout, done.stderr) == ("", "")
        return done.returncode

    assert quiet() == 0
    acquired(redlock, nodes)
    assert quiet() == BUSY
    for node in nodes.nodes[:3]:
        node.kill()
    assert quiet() == UNAVAILABLE


def test_a_single_node_is_spoken_of_in_the_singular(redlock, make_cluster):
    server = make_cluster(1)[0]
    redlock.env["REDLOCK_NODES"] = server.url

    def last(*args):
        return redlock.once(*args).stdout.splitlines()[-1]

    assert last("status", "x") == "free: the node has no key"
    assert redlock("doctor").stdout.endswith("\nthe node may vote\n")
    server.kill()
    assert last("status", "x") == "unknown: the node has not said whether it has a key"
    assert redlock("doctor").stdout.endswith("\nthe node may not vote: no lock is granted\n")

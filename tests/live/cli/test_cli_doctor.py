"""redlock doctor: may every node vote, and if not, why, and what can be done about it."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from clocks import Clocks
from command import LIMIT_S, REFUSED_CONFIG, UNAVAILABLE, USAGE
from common import occupy
from testing import ReplyError, eventually

MARKER = "libredlock:m"
PAGE = Path(__file__).parents[3] / "docs/troubleshooting.md"
PATIENT = ("--connect-timeout", "20s")  # the machine may be busy


def rows(text):
    """Node -> the words of its line and what is said below it."""
    found, name = {}, None
    for line in text.splitlines()[1:-1]:
        if line.startswith("    "):
            found[name].append(line.strip())
        else:
            name = line.split()[0]
            found[name] = [line]
    return found


def test_all_nodes_may_vote(redlock, nodes):
    assert redlock("bootstrap", "--yes").returncode == 0
    done = redlock("doctor", "-v", "--guard", "marker")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.splitlines()[-1] == "all 5 nodes may vote"
    found = rows(done.stdout)
    assert list(found) == [node.name for node in nodes]
    info = nodes[0].info("server")
    version = info.get("valkey_version", info["redis_version"])
    for (line, *more) in found.values():
        assert more == []
        assert re.search(r" yes +ready +\d+\.\d\d ms  \w+ %s +- +master +no aof +noeviction +yes +marker +\w+"
                         r" +[+-]\d+ ms +\d+$" % re.escape(version), line), line


def test_doctor_shows_what_the_guard_goes_by(redlock, nodes):
    assert redlock("bootstrap", "--yes").returncode == 0
    nodes[0].command("DEL", MARKER)

    def guards(*options):
        done = redlock("doctor", *options, "--json")
        report = json.loads(done.stdout)
        assert {node["scripts"] for node in report["nodes"]} == {True}
        return [(node["guard"], node["votes"]) for node in report["nodes"]]

    assert guards("--guard", "marker") == [("quarantine", False)] + 4 * [("marker", True)]
    assert guards("--guard", "off") == 5 * [("off", True)] and guards("--guard", "external") == 5 * [("external", True)]


def test_a_clock_that_is_ahead_is_reported(redlock, make_cluster, tmp_path):
    clocks = Clocks(tmp_path)
    servers = make_cluster(3, server=clocks.servers(3)).nodes
    redlock.env["REDLOCK_NODES"] = ",".join(server.url for server in servers)
    assert redlock("bootstrap", "--yes").returncode == 0
    clocks.step(servers[0], 5)

    def found():
        """An answer that was late makes an offset wrong by half of the time that it took."""
        nodes = json.loads(redlock("doctor", *PATIENT, "--guard", "marker", "--json").stdout)["nodes"]
        offsets = [node["clock_offset_ms"] for node in nodes]
        is_exact = 4900 < offsets[0] < 5100 and all(abs(offset) < 100 for offset in offsets[1:])
        return nodes if is_exact else print(offsets)

    ahead = eventually(found, LIMIT_S, "the clocks as they are")[0]
    assert not ahead["votes"] and "its clock is more than 1 s ahead" in ahead["why"] and "NTP" in ahead["advice"]


def replica(nodes):
    nodes[1].command("REPLICAOF", "127.0.0.1", "1")


def evicting(nodes):
    nodes[1].config_set("maxmemory", "100mb")
    nodes[1].config_set("maxmemory-policy", "allkeys-lru")


def no_login(nodes):
    nodes[1].command("CONFIG", "SET", "requirepass", "s3cret")
    nodes[1].password = "s3cret"


def few_rights(nodes):
    nodes[1].command("ACL", "SETUSER", "default", "-evalsha")


def marker_of_others(nodes):
    nodes[1].set(MARKER, b"v2 %s 0 3 0 00 86400000 -" % nodes[1].info("server")["run_id"].encode())


def no_loading(nodes):
    nodes[1].command("ACL", "SETUSER", "default", "-script")


def no_marker(nodes):
    nodes[1].set(MARKER, "mine")


def test_a_node_whose_memory_is_full_has_no_vote(redlock, nodes):
    """Its role and policy allow it to vote, but there is no room for a key."""
    nodes[1].config_set("maxmemory", "500kb")
    done = redlock("doctor", "--no-write")
    line, why, advice = rows(done.stdout)[nodes[1].name]
    assert re.search(r" no +ready ", line)
    assert re.fullmatch(r"its memory is full \(used_memory \d{6,}, maxmemory 512000\): it grants no lock until it has "
                        "room", why), why
    assert advice == "advice: raise maxmemory, or delete keys that are not needed any more"
    assert done.returncode == UNAVAILABLE
    assert done.stdout.endswith("\n4 of 5 nodes may vote and 3 are needed: 1 more may fail\n")
    nodes[1].config_set("maxmemory", "500mb")
    assert rows(redlock("doctor").stdout)[nodes[1].name][1:] == []


def test_a_new_node_that_cannot_be_registered_says_why(redlock, make_cluster):
    """Programs write it no marker as long as it is full."""
    servers = make_cluster(3, bootstrapped=False, config={"maxmemory": "500kb"})
    redlock.env["REDLOCK_NODES"] = ",".join(servers.urls)
    assert redlock.once("acquire", "orders:42").returncode == UNAVAILABLE
    for line, why, *advice in rows(redlock("doctor").stdout).values():
        assert re.search(r" no +ready .* quarantine ", line) and why.startswith("its memory is full"), why
        assert advice == ["advice: raise maxmemory, or delete keys that are not needed any more"]


FULL_DISK = """#!/bin/sh
trap '' XFSZ
ulimit -f 64
exec ${REDLOCK_SERVER:-redis-server} "$@"
"""


@pytest.fixture
def full_disks(make_cluster, tmp_path):
    """Three nodes whose append-only files can grow no more."""
    server = tmp_path / "server"
    server.write_text(FULL_DISK)
    server.chmod(0o755)
    servers = make_cluster(3, server=str(server), config={"appendonly": "yes", "appendfsync": "everysec"})
    for node in servers:
        for _ in range(20):
            try:
                node.set("filler", "x" * 10000)
            except ReplyError:
                break
        eventually(lambda node=node: node.info("persistence")["aof_last_write_status"] == "err", 20)
    return servers


AOF = "it cannot write its append-only file (aof_last_write_status err): it grants no lock"


@pytest.mark.parametrize("option, why", [([], "it refuses to store a key: MISCONF Errors writing to the AOF file: "),
                                         (["--no-write"], AOF)])
def test_nodes_whose_disk_is_full_have_no_vote(redlock, full_disks, option, why):
    redlock.env["REDLOCK_NODES"] = ",".join(full_disks.urls)
    assert redlock.once("acquire", "orders:42").returncode == UNAVAILABLE
    done = redlock("doctor", *option)
    assert done.returncode == UNAVAILABLE, done.stdout
    assert done.stdout.endswith("\n0 of 3 nodes may vote and 2 are needed: no lock is granted\n")
    for line, said, advice in rows(done.stdout).values():
        assert re.search(r" no +ready ", line) and said.startswith(why), said
        assert advice == "advice: free space on its disk, or see its log"
    metrics = redlock("doctor", *option, "--metrics").stdout
    assert metrics.count("\nredlock_node_votes_now{") == 3 and not re.search(r"votes_now\{.*\} 1\n", metrics)


def failed_snapshot(node):
    os.mkdir(os.path.join(node.folder, "dump.rdb"))
    node.config_set("save", "3600 1")
    node.command("BGSAVE")
    eventually(lambda: node.info("persistence")["rdb_last_bgsave_status"] == "err", 20)


def mend_snapshot(node):
    os.rmdir(os.path.join(node.folder, "dump.rdb"))


@pytest.mark.parametrize("option, words", [
    ([], "it refuses to store a key: MISCONF "),
    (["--no-write"], "its last snapshot failed (rdb_last_bgsave_status err)")])
def test_a_node_whose_snapshots_fail_has_no_vote(redlock, nodes, option, words):
    try:
        failed_snapshot(nodes[0])
        done = redlock("doctor", *option)
        assert done.returncode == UNAVAILABLE and done.stdout.splitlines()[-1].startswith("4 of 5 nodes may vote")
        assert rows(done.stdout)[nodes[0].name][1].startswith(words)
        nodes[0].config_set("stop-writes-on-bgsave-error", "no")
        assert redlock("doctor").returncode == 0, "it stores keys all the same"
    finally:
        mend_snapshot(nodes[0])
        nodes[0].config_set("save", "")
        nodes[0].restart(empty=True)


def too_few_replicas(node):
    node.config_set("min-replicas-to-write", "1")


def no_right_to_set(node):
    node.command("ACL", "SETUSER", "default", "-set")


@pytest.mark.parametrize("harm, code, why, advice", [
    (too_few_replicas, UNAVAILABLE, "NOREPLICAS ", "start the replicas, or lower min-replicas-to-write"),
    (no_right_to_set, REFUSED_CONFIG, "NOPERM ", "give the user the permissions that `redlock help acl` prints"),
])
def test_doctor_finds_what_only_a_write_shows(redlock, nodes, harm, code, why, advice):
    harm(nodes[3])
    done = redlock("doctor")
    line, said, advised = rows(done.stdout)[nodes[3].name]
    assert done.returncode == code and done.stdout.splitlines()[-1].startswith("4 of 5 nodes may vote")
    assert re.search(r" no +ready ", line) and said.startswith("it refuses to store a key: " + why)
    assert advised == "advice: " + advice


def test_a_user_of_some_keys_only_is_no_fault(redlock, nodes):
    """What the probe's name is refused for says nothing of the locks' names."""
    nodes[2].command("ACL", "SETUSER", "default", "resetkeys", "~orders:*", "~libredlock:m")
    done = redlock("doctor")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("option, sets", [([], 1), (["--no-write"], 0)])
def test_doctor_stores_one_key_for_a_second_or_none(redlock, nodes, option, sets):
    nodes.bootstrap(key_prefix="app:")
    monitors = [node.connect() for node in nodes]
    for monitor in monitors:
        monitor.command("MONITOR")
    assert redlock("doctor", "--key-prefix", "app:", *option).returncode == 0
    for node, monitor in zip(nodes, monitors):
        node.command("ECHO", "over")
        seen = []
        while not seen or '"ECHO"' not in seen[-1]:
            seen.append(monitor.read().decode())
        stored = [line for line in seen if '"SET"' in line]
        assert len(stored) == sets and all('"app:libredlock:probe:' in line for line in stored)
        assert all(re.search(r'"NX" "PX" "1000"$', line) for line in stored), stored
        monitor.close()
    nodes.no_keys()


@pytest.mark.parametrize("harm, words, advice", [
    (replica, "a replica", "make it a master"),
    (evicting, "evicts keys (maxmemory-policy allkeys-lru)", "CONFIG SET maxmemory-policy noeviction"),
    (no_login, "NOAUTH: no password was given", "put a user and a password in the URL"),
    (few_rights, "evalsha", "`redlock help acl`"),
    (no_loading, "script", "`redlock help acl`"),
    (marker_of_others, "its marker names 3 nodes", "correct this program's list of nodes"),
    (no_marker, "is not a marker of this library", "use a key_prefix of your own"),
])
def test_a_node_that_its_configuration_rules_out_is_refused(redlock, nodes, harm, words, advice):
    assert redlock("bootstrap", "--yes", *PATIENT).returncode == 0
    shown = {replica: "slave  no aof  noeviction   yes", evicting: "master  no aof  allkeys-lru  yes",
             few_rights: "master  no aof  noeviction  no", no_loading: "master  no aof  noeviction  no"}

    def looked():
        """Unless that node was just being connected to anew, and its session had told nothing yet."""
        done = redlock("doctor", "-v", "--guard", "marker", *PATIENT)
        line = rows(done.stdout)[nodes[1].name][0]
        return done if re.sub(" +", " ", shown.get(harm, "")) in re.sub(" +", " ", line) else None

    try:
        harm(nodes)
        done = eventually(looked, LIMIT_S, "the server's role and configuration")
    finally:
        nodes[1].command("ACL", "SETUSER", "default", "+evalsha", "+script")
        nodes[1].command("CONFIG", "SET", "requirepass", "")
        nodes[1].password = None
    assert done.returncode == REFUSED_CONFIG, done.stdout
    line, why, advised, *_ = rows(done.stdout)[nodes[1].name]
    assert re.search(r" no +refused ", line) and words in why and advised.startswith("advice: ") and advice in advised
    assert done.stdout.splitlines()[-1] == "4 of 5 nodes may vote and 3 are needed: 1 more may fail"


def test_a_node_of_a_cluster_is_refused(redlock, make_cluster):
    """Its slots are not served, which is its first message."""
    server = make_cluster(1, cluster_enabled=True, bootstrapped=False)[0]
    redlock.env["REDLOCK_NODES"] = server.url
    for guard in ("off", "marker"):
        done = redlock("doctor", "-v", "--guard", guard)
        line, why, advised = rows(done.stdout)[server.name]
        assert done.returncode == REFUSED_CONFIG and " master, cluster " in line
        assert advised == "advice: use servers with cluster-enabled no", why


def test_nodes_that_are_down_are_counted_out(redlock, nodes):
    assert redlock("bootstrap", "--yes").returncode == 0
    for node in nodes.nodes[:2]:
        node.kill()
    done = redlock("doctor", "--guard", "marker")
    assert done.returncode == UNAVAILABLE
    assert rows(done.stdout)[nodes[0].name][1:] == ["connection refused",
                                                    "advice: start the server, or correct the address"]
    assert done.stdout.splitlines()[-1] == "3 of 5 nodes may vote and 3 are needed: no further node may fail"
    nodes[2].kill()
    done = redlock("doctor", "--guard", "marker")
    assert done.stdout.splitlines()[-1] == "2 of 5 nodes may vote and 3 are needed: no lock is granted"


def test_a_node_that_hangs_is_explained_by_a_page(redlock, nodes):
    nodes[0].stop()
    done = redlock("doctor", "--connect-timeout", "3s")
    nodes[0].cont()
    assert done.returncode == UNAVAILABLE
    why, advised, page = rows(done.stdout)[nodes[0].name][1:]
    assert "in time" in why and "see whether the server hangs" in advised
    (topic,) = re.findall(r"^`redlock help ([a-z-]+)` says more$", page)
    assert f'<a id="{topic}">' in PAGE.read_text()
    said = redlock("help", topic).stdout
    assert said.startswith(f"{topic}: ") and advised.removeprefix("advice: ") in re.sub(r"\s+", " ", said)


def test_one_server_under_two_addresses_is_found(redlock, nodes, proxy):
    relay = proxy(nodes[0])
    redlock.env["REDLOCK_NODES"] = ",".join([nodes[0].url, relay.url, nodes[1].url])
    nodes.bootstrap(nodes=nodes.nodes[:3])
    done = redlock("doctor")
    assert done.returncode == REFUSED_CONFIG
    told = [more for line, *more in rows(done.stdout).values() if more]
    assert len(told) == 1 and told[0][0].startswith("the same server as 127.0.0.1:")
    assert told[0][1] == "advice: give every URL a server of its own"


def test_doctor_without_a_write_writes_nothing(redlock, nodes):
    """Not even a marker: with wrong options it would lock out those with right ones."""
    for node in nodes:
        node.flush()
    done = redlock("doctor", "--no-write", "--guard", "marker", "--max-ttl", "1m")
    assert done.returncode == UNAVAILABLE
    assert done.stdout.count("new or may have lost keys") == 5 and done.stdout.count("`redlock bootstrap`") == 5
    nodes.no_keys()
    assert [node.calls("set") + node.calls("eval") for node in nodes] == [node.calls("eval") for node in nodes]
    assert all(node.get(MARKER) is None for node in nodes)


def test_json_is_what_a_client_returns(redlock, nodes):
    nodes[4].kill()
    done = redlock("doctor", "--json")
    assert done.returncode == UNAVAILABLE and done.stdout.count("\n") == 1
    report = json.loads(done.stdout)
    assert (report["voting"], report["quorum"], len(report["nodes"])) == (4, 3, 5)
    down = report["nodes"][4]
    assert (down["votes"], down["why"], down["advice"][:16]) == (False, "connection refused", "start the server")
    assert [type(node["clock_offset_ms"]) for node in report["nodes"]] == 4 * [int] + [type(None)]


def test_no_password_is_printed(redlock, nodes, make_cluster):
    servers = make_cluster(1, password="s3cret")
    for url in (servers[0].url, servers[0].url.replace("s3cret", "wr0ng")):
        redlock.env["REDLOCK_NODES"] = url
        for form in ([], ["--json"]):
            done = redlock("doctor", *form)
            assert "s3cret" not in done.stdout + done.stderr and "wr0ng" not in done.stdout + done.stderr
    assert done.returncode == REFUSED_CONFIG and "WRONGPASS" in done.stdout


def test_metrics_show_which_nodes_vote(redlock, nodes):
    nodes[0].kill()
    done = redlock("doctor", "--metrics")
    lines = done.stdout.splitlines()
    assert [line.split()[-1] for line in lines if line.startswith("redlock_node_votes_now{")] == ["0"] + 4 * ["1"]


@pytest.mark.parametrize("resource, label", [("orders:42", "orders:42"), ('a"b\\c\nd', r'a\"b\\c\nd'),
                                             ("\u20ac", "\u20ac"), (b"a\xff", r"a\\xff")])
def test_metrics_show_verdict_and_end_of_a_resource(redlock, nodes, resource, label):
    def verdict_and_remaining():
        lines = redlock("status", "--metrics", resource).stdout.splitlines()
        values = dict(line.rsplit(" ", 1) for line in lines)
        verdicts = {name: values['redlock_resource_verdict{resource="%s",verdict="%s"}' % (label, name)]
                    for name in ("unknown", "free", "held", "split")}
        assert sorted(verdicts.values()) == ["0", "0", "0", "1"]
        remaining = values.get('redlock_resource_remaining_seconds{resource="%s"}' % label)
        return next(name for name, value in verdicts.items() if value == "1"), remaining

    assert verdict_and_remaining() == ("free", None)
    occupy(nodes, resource, ttl_ms=60000)
    verdict, remaining = verdict_and_remaining()
    assert verdict == "held" and 20 < float(remaining) <= 60
    for node in nodes:
        node.command("PERSIST", resource)
    assert verdict_and_remaining() == ("held", "+Inf")


def test_operands_are_refused(redlock):
    done = redlock("doctor", "orders:42")
    assert done.returncode == USAGE and "unexpected argument 'orders:42'" in done.stderr


def test_output_that_cannot_be_written_is_an_error(redlock):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*redlock.start("--version").args[:1], "doctor"], env=redlock.env,
                              stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 70 and "cannot be written" in done.stderr


def test_a_quarantined_node_has_a_vote_of_its_own(redlock, make_cluster):
    """It has answered: it is not unreachable."""
    servers = make_cluster(3, bootstrapped=False)
    redlock.env["REDLOCK_NODES"] = ",".join(servers.urls)
    done, answer = redlock.json("acquire", "--guard", "marker", "orders:42")
    votes = [node["vote"] for node in answer["nodes"]]
    assert done.returncode == UNAVAILABLE and votes.count("QUARANTINED") >= servers.quorum, answer
    assert "UNREACHABLE" not in votes


def test_the_table_fits_80_columns(redlock, nodes):
    done = redlock("doctor")
    assert done.stdout.splitlines()[0].split() == "NODE VOTES STATE RTT SERVER GUARD MAX TTL CLOCK".split()
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert len(redlock("doctor", "-v").stdout.splitlines()[0].split()) == 15


@pytest.mark.parametrize("command, head, word", [("doctor", "VOTES", "no"), ("status r", "STATE", "unreachable")])
def test_nodes_named_in_other_alphabets_are_in_line(redlock, tmp_path, command, head, word):
    redlock.env["REDLOCK_NODES"] = f"redis://127.0.0.1:1,unix://{tmp_path}/замок.sock"
    lines = redlock(*command.split()).stdout.splitlines()
    rows = [line for line in lines if line.startswith(("127.0.0.1:1 ", "unix:"))]
    assert [row.index(f"  {word} ") + 2 for row in rows] == [lines[0].index(head)] * 2, "\n".join(lines)


@pytest.mark.parametrize("environment, coloured", [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True),
                                                   ({"TERM": "dumb"}, False)])
def test_a_terminal_shows_colours_unless_it_has_none(terminal, redlock, nodes, environment, coloured):
    redlock.env.update({"TERM": "xterm", **environment})
    nodes[0].kill()
    program = terminal("doctor")
    program.wait()
    assert ("\x1b[31mno   \x1b[0m" in program.seen, "\x1b[32myes  \x1b[0m" in program.seen) == (coloured, coloured)
    assert coloured or "\x1b" not in program.seen


def test_a_file_has_no_colours(redlock, nodes):
    redlock.env["TERM"] = "xterm"
    assert "\x1b" not in redlock("doctor").stdout


def test_doctor_shows_the_number_of_each_node(redlock, make_cluster):
    """One was away when it was changed."""
    servers = make_cluster(3, bootstrapped=False)
    redlock.env.update(REDLOCK_NODES=",".join(servers.urls), REDLOCK_MAX_TTL_MS="20000", REDLOCK_GUARD="marker")
    assert redlock("bootstrap", "--new").returncode == 0
    servers[2].stop()
    redlock.env["REDLOCK_MAX_TTL_MS"] = "60000"
    assert redlock("bootstrap", "--replace", "--yes", "--connect-timeout", "3s").returncode == UNAVAILABLE
    servers[2].cont()
    done = redlock("doctor", "-v")
    found = rows(done.stdout)
    assert done.returncode == 0, done.stdout
    assert found[servers[2].name][1:] == [
        "it allows leases of 20s, and max_ttl_ms is 1m here",
        "advice: run `redlock bootstrap --replace` when all programs have max_ttl_ms = 60000"]
    assert found[servers[0].name][1:] == [] and re.search(r" marker +1m ", found[servers[0].name][0])
    figures = redlock("doctor", "--metrics").stdout
    numbers = re.findall(r"^redlock_node_max_ttl_seconds\{.*\} (.*)$", figures, re.M)
    assert numbers == ["60", "60", "20"]
    report = json.loads(redlock("doctor", "--json").stdout)
    assert [node["max_ttl_ms"] for node in report["nodes"]] == [60000, 60000, 20000]


def test_a_marker_of_an_earlier_version_is_named(redlock, make_cluster):
    (server,) = make_cluster(1, bootstrapped=False).nodes
    redlock.env.update(REDLOCK_NODES=server.url, REDLOCK_GUARD="marker")
    assert redlock("bootstrap", "--new").returncode == 0
    assert rows(redlock("doctor").stdout)[server.name][1:] == []
    server.set("libredlock:m", " ".join(server.get("libredlock:m").decode().split(" ")[:8]))
    done = redlock("doctor")
    assert done.returncode == 0 and rows(done.stdout)[server.name][1:] == [
        "its marker is of an earlier version, and does not name the server's master_replid2",
        "advice: run `redlock bootstrap --replace`, which adds it"]


def test_a_program_with_a_smaller_number_is_refused_in_words(redlock, make_cluster):
    servers = make_cluster(3, bootstrapped=False)
    redlock.env.update(REDLOCK_NODES=",".join(servers.urls), REDLOCK_MAX_TTL_MS="60000", REDLOCK_GUARD="marker")
    assert redlock("bootstrap", "--new").returncode == 0
    done = redlock("doctor", env=dict(redlock.env, REDLOCK_MAX_TTL_MS="30000"))
    assert done.returncode == REFUSED_CONFIG and done.stdout.count("allows leases of") == 3, done.stdout
    assert done.stdout.count("advice: give all programs of these nodes the same max_ttl_ms") == 3


def test_a_quarantine_is_shown_with_reason_and_end(redlock, make_cluster):
    servers = make_cluster(3, bootstrapped=False)
    redlock.env.update(REDLOCK_NODES=",".join(servers.urls), REDLOCK_MAX_TTL_MS="30000", REDLOCK_GUARD="marker")
    assert redlock("bootstrap", "--new").returncode == 0
    servers[0].flush()
    redlock.once("acquire", "x")  # registers it
    done = redlock("doctor")
    line, why, advice = rows(done.stdout)[servers[0].name]
    assert done.returncode == UNAVAILABLE and re.search(r" no +ready .* quarantine +30s ", line), line
    assert re.match(r"quarantined for another \d+(\.\d)? s: ", why) and advice.startswith("advice: ")
    row = json.loads(redlock("doctor", "--json").stdout)["nodes"][0]
    assert row["quarantined"] and row["quarantine_reason"] and 0 < row["quarantine_left_ms"] <= 31000
    figures = redlock("doctor", "--metrics").stdout
    samples = re.findall(r'^redlock_node_quarantine_seconds\{node="[^"]*",reason="(\w*)"\} (.*)$', figures, re.M)
    left, *others = samples
    assert left[0] == row["quarantine_reason"] and 0 < float(left[1]) <= 31 and others == 2 * [("", "0")]

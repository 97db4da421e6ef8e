"""Shared locks, and locks of several resources, and permits, from the shell."""
import re

from command import BIN, BUSY, CLIENT, GENEROUS_TIMEOUTS, UNAVAILABLE, USAGE
from testing import eventually

LONG = ("--ttl", "20s")


def types(nodes, key):
    return {node.command("TYPE", key).decode() for node in nodes}


def members(node, key):
    return {member.decode()[3:] for member in node.command("ZRANGE", key, 0, -1)}


def test_readers_run_together_and_a_writer_alone(redlock, nodes):
    one, two = (redlock.acquire("report", "--shared", *LONG) for _ in range(2))
    eventually(lambda: all(members(node, "report") == {one, two} for node in nodes), 20)
    done = redlock.once("run", "--shared", "report", "--", "echo", "read")
    assert (done.returncode, done.stdout) == (0, "read\n")
    done = redlock.once("run", "-n", "report", "--", "echo", "written")
    assert (done.returncode, done.stdout) == (BUSY, "")
    done = redlock.once("status", "report")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("shared: by 2 readers, with the longest lease "), done.stdout
    assert redlock.once("status", "-q", "report").returncode == BUSY
    done, answer = redlock.json("status", "report")
    assert (answer["verdict"], answer["held_by"]["readers"]) == ("shared", 2)
    assert answer["holder"] in (one, two)
    done = redlock.once("extend", "--shared", "--ttl", "30s", "report", one)
    assert done.returncode == 0, done.stderr
    for token in one, two:
        assert redlock.once("release", "--shared", "report", token).returncode == 0
    eventually(lambda: types(nodes, "report") == {"none"}, 20)


def test_a_reader_is_not_released_as_a_writer(redlock, nodes):
    token = redlock.acquire("report", "--shared", *LONG)
    for command in "release", "extend", "expire":
        done = redlock.once(command, "report", token)
        assert done.returncode == BUSY and "held in another form: shared; give --shared" in done.stderr, done.stderr
        assert redlock.once(command, "--quiet", "report", token).stderr == done.stderr, "it is quiet if it succeeds"
    assert types(nodes, "report") == {"zset"}


def test_all_resources_are_held_or_none(redlock, nodes):
    done = redlock.once("run", "a", "b", "--", "sh", "-c", 'echo "$REDLOCK_RESOURCE"')
    assert (done.returncode, done.stdout) == (0, "a\nb\n")
    token = redlock.acquire("a", "b", *LONG)
    assert redlock.once("acquire", "-n", "b").returncode == BUSY
    done = redlock.once("acquire", "-n", "c", "b")
    assert done.returncode == BUSY and '"b" is busy' in done.stderr, done.stderr
    assert types(nodes, "c") == {"none"}
    assert redlock.once("extend", "--ttl", "30s", "a", "b", token).returncode == 0
    done = redlock.once("status", "a", "c")
    assert done.stdout.startswith("a\n") and "\nheld: " in done.stdout and "\n\nc\n" in done.stdout
    done, answer = redlock.json("release", "a", "b", token)
    assert (answer["resource"], answer["resources"]) == ("a", ["a", "b"]) and "resources_hex" not in answer
    eventually(lambda: types(nodes, "a") == types(nodes, "b") == {"none"}, 20)


def test_names_of_bytes_are_all_in_hexadecimal(redlock, nodes):
    done, answer = redlock.json("acquire", "a", b"\xff", "b")
    assert done.returncode == 0 and answer["resources_hex"] == ["61", "ff", "62"] and "resources" not in answer


def test_what_cannot_be_combined_is_refused(redlock):
    for args, words in ((("acquire", "a", "a"), "each once"),
                        (("acquire", "--fence", "a", "b"), "fence"),
                        (("run", "--shared", "--fence", "a", "--", "true"), "--fence"),
                        (("acquire", *("r%d" % number for number in range(101))), "101 resources")):
        done = redlock.once(*args)
        assert done.returncode == USAGE and words in done.stderr, (args, done.stderr)


# ---- permits

TWO = ("--permits", "2")


def test_each_job_has_a_permit_of_its_own(redlock, nodes):
    token, slot = redlock.once("acquire", *TWO, "--slot", "1", *LONG, "gpu").stdout.split()
    assert slot == "1"
    done = redlock.once("run", *TWO, "gpu", "--", "sh", "-c", 'echo "$REDLOCK_SLOT"')
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert redlock.once("acquire", "-n", *TWO, "--slot", "1", "gpu").returncode == BUSY
    done, answer = redlock.json("status", *TWO, "--slot", "1", "gpu")
    assert (answer["verdict"], answer["holder"]) == ("held", token)
    done = redlock.once("release", *TWO, "--slot", "1", "gpu", token)
    assert done.returncode == 0, done.stderr
    eventually(lambda: types(nodes, "libredlock:s:1:gpu") == {"none"}, 20)


def test_status_shows_the_permits_one_by_one(redlock, nodes):
    token = redlock.once("acquire", *TWO, "--slot", "1", *LONG, "--client-name", "w1", "gpu").stdout.split()[0]
    done = redlock.once("status", *TWO, "gpu")
    head, first, second, verdict = done.stdout.splitlines()
    assert (done.returncode, head, verdict) == (0, "SLOT", "free: 1 of 2 permits held")
    assert first == "   0  free: 5 of 5 nodes answered, 5 have no key"
    assert re.fullmatch(r"   1  held: by w1 \(pid \d+ on \S+\) for \S+ m?s, %s on 5 of 5 nodes, [\d.]+ s left"
                        % token[-11:-3], second), second
    done, answer = redlock.json("status", *TWO, "gpu")
    assert (answer["verdict"], answer["permits"], answer["held"]) == ("free", 2, 1)
    assert [(slot["slot"], slot["verdict"], slot.get("holder")) for slot in answer["slots"]] == \
        [(0, "free", None), (1, "held", token)]
    assert redlock.once("status", "-q", *TWO, "gpu").returncode == 0
    assert redlock.once("acquire", *TWO, *LONG, "gpu").returncode == 0
    assert redlock.once("status", "-q", *TWO, "gpu").returncode == BUSY
    figures = redlock.once("status", "--metrics", *TWO, "gpu").stdout
    assert 'redlock_resource_permits_held{resource="gpu"} 2\n' in figures
    assert 'redlock_resource_verdict{resource="gpu",verdict="held"} 1\n' in figures
    done = redlock.once("acquire", "-v", "-w", "1", *TWO, "gpu")
    assert done.returncode == BUSY and "redlock: 2 of 2 permits held; waiting for up to 1s\n" in done.stderr


def test_status_warns_of_another_number_of_permits(redlock, nodes):
    assert redlock.once("acquire", "--permits", "4", "--slot", "1", *LONG, "gpu").returncode == 0
    done = redlock.once("status", *TWO, "gpu")
    assert (done.returncode, done.stderr) == (0, "redlock: --permits is 2; the holder of permit 1 has 4\n")
    assert redlock.once("status", "--permits", "4", "gpu").stderr == ""


def test_status_of_permits_needs_a_majority(redlock, nodes):
    for node in list(nodes)[:3]:
        node.kill()
    done = redlock.once("status", *TWO, "gpu")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (UNAVAILABLE, "unknown: 0 of 2 permits held, 2 not known")
    assert redlock.once("status", "-q", *TWO, "gpu").returncode == UNAVAILABLE


def test_ls_has_the_permits_under_their_resource(redlock, nodes, tmp_path):
    for slot in "0", "1":
        assert redlock.once("acquire", *TWO, "--slot", slot, *LONG, "orders:gpu").returncode == 0
    redlock.acquire("orders:1", *LONG)
    for node in nodes:  # keys that are none of a permit's
        for key in "libredlock:s:1:", "libredlock:s:x:orders:2", "libredlock:s:300:orders:2", "libredlock:p:orders:2":
            node.command("SET", key, "0" * 40)
        node.command("SET", "libredlock:s:1:other", "0" * 40)
    (tmp_path / "conf").write_text("permits = 2\n")  # as the programs have it
    done = redlock.once("ls", *GENEROUS_TIMEOUTS, "--config", str(tmp_path / "conf"), "orders:")
    assert (done.returncode, done.stderr) == (0, "")
    assert [re.split("  +", line)[:2] for line in done.stdout.splitlines()] == [
        ["NAME", "KIND"], ["orders:1", "plain"], ["orders:gpu", "permit 0 of 2"], ["orders:gpu", "permit 1 of 2"]]
    done, answer = redlock.json("ls", *GENEROUS_TIMEOUTS, "orders:")
    assert [(lock["resource"], lock.get("slot"), lock.get("permits")) for lock in answer["locks"]] == [
        ("orders:1", None, None), ("orders:gpu", 0, 2), ("orders:gpu", 1, 2)]


def test_an_operator_deletes_one_permit_or_all(redlock, terminal, nodes):
    def acquire():
        for slot in "0", "1":
            assert redlock.once("acquire", *TWO, "--slot", slot, *LONG, "gpu").returncode == 0

    acquire()
    done = redlock.once("release", "--force", "--yes", *TWO, "--slot", "1", "gpu")
    assert (done.returncode, done.stderr) == (0, "redlock: deleted on 5 of 5 nodes\n")
    assert types(nodes, "libredlock:s:1:gpu") == {"none"} and types(nodes, "gpu") == {"string"}
    assert redlock.once("release", "--force", "--yes", *TWO, "--slot", "0", "gpu").returncode == 0
    acquire()
    program = terminal("release", "--force", *GENEROUS_TIMEOUTS, *TWO, "gpu")
    program.expect(r"Permit 0 is held by %s, .*\.\s+Permit 1 is held by .*\.\s+"
                   r"Their holders are not stopped\. Delete all permits\? \[y/N\] " % CLIENT)
    program.type("y\n")
    assert program.wait() == 0 and "deleted on 5 of 5 nodes" in program.seen
    nodes.no_keys()


def test_a_job_without_permits_has_no_slot(redlock):
    done = redlock.once("run", *TWO, "gpu", "--", BIN, "run", "x", "--", "sh", "-c",
                        'echo "${REDLOCK_SLOT-none}"')
    assert (done.returncode, done.stdout) == (0, "none\n"), done.stderr


def test_the_only_permit_of_a_job_has_slot_0(redlock):
    done = redlock.once("run", "--permits", "1", "gpu", "--", "sh", "-c", 'echo "${REDLOCK_SLOT-none}"')
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_a_permit_that_is_none_is_refused(redlock):
    done = redlock.once("run", *TWO, "--slot", "2", "gpu", "--", "true")
    assert done.returncode == USAGE
    assert "--slot is 2; allowed for --permits 2: 0 to 1" in done.stderr


# ---- hashes

HASH = ("--layout", "hash")


def test_a_hash_is_extended_shown_and_released(redlock, nodes):
    token = redlock.acquire("import", *HASH, *LONG)
    eventually(lambda: types(nodes, "import") == {"hash"}, 20)
    assert all(node.command("HGETALL", "import") == [token.encode(), b"1"] for node in nodes)
    done, answer = redlock.json("status", "import")
    assert (answer["verdict"], answer["holder"]) == ("held", token)
    assert redlock.once("run", "-n", "import", "--", "true").returncode == BUSY
    done = redlock.once("extend", "import", token)
    assert done.returncode == BUSY and "held in another form: hash; give --layout hash" in done.stderr, done.stderr
    for command in ("extend", "--ttl", "30s"), ("expire", "--ttl", "10s"), ("release",):
        done = redlock.once(*command, *HASH, "import", token)
        assert done.returncode == 0, done.stderr
    eventually(lambda: types(nodes, "import") == {"none"}, 20)


def test_the_owner_of_a_home_made_lock_is_shown(redlock, nodes):
    for node in nodes:
        node.command("HSET", "import", "web-3:7", "2")
        node.command("PEXPIRE", "import", 60000)
    done = redlock.once("status", "import")
    assert "web-3:7 on 5 of 5 nodes" in done.stdout, done.stdout
    done = redlock.once("run", "-n", *HASH, "import", "--", "true")
    assert done.returncode == BUSY
    assert all(node.command("HGETALL", "import") == [b"web-3:7", b"2"] for node in nodes)


def test_a_hash_that_is_shared_is_refused(redlock):
    done = redlock.once("run", *HASH, "--shared", "import", "--", "true")
    assert done.returncode == USAGE
    assert "--shared is true; allowed for a lock whose --layout is hash: false" in done.stderr

"""Shared locks, and locks of several resources, from the shell."""
from command import BIN, BUSY, LOST, USAGE
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
    done = redlock.once("release", "report", token)
    assert "already gone" in done.stderr
    assert redlock.once("extend", "report", token).returncode == LOST
    assert types(nodes, "report") == {"zset"}


def test_all_resources_or_none(redlock, nodes):
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
    assert (answer["resource"], answer["resources"]) == ("a", ["a", "b"])
    eventually(lambda: types(nodes, "a") == types(nodes, "b") == {"none"}, 20)


def test_what_cannot_be_combined(redlock):
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


def test_a_job_without_permits_has_no_slot(redlock):
    done = redlock.once("run", *TWO, "gpu", "--", BIN, "run", "x", "--", "sh", "-c",
                        'echo "${REDLOCK_SLOT-none}"')
    assert (done.returncode, done.stdout) == (0, "none\n"), done.stderr


def test_a_permit_that_is_none_is_refused(redlock):
    done = redlock.once("run", *TWO, "--slot", "2", "gpu", "--", "true")
    assert done.returncode == USAGE
    assert "--slot is 2; allowed for --permits 2: 0 to 1" in done.stderr

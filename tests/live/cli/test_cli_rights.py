"""redlock doctor --kinds: which rights do the locks in use need, and are they enough?"""
import json
import re
from pathlib import Path

import pytest

from command import BUSY, REFUSED_CONFIG, USAGE

PAGE = (Path(__file__).parents[3] / "docs/redlock.md").read_text()
LOCKS = {"shared": ("--shared", "a"), "several": ("a", "b"), "permits": ("--permits", "3", "a"),
         "hash": ("--layout", "hash", "a")}


def acl(redlock, *args):
    """The rights that doctor names."""
    return re.search("^ACL: (.*)$", redlock("doctor", *args).stdout, re.M)[1].split()


@pytest.fixture
def user(redlock, nodes):
    """user(rights): the command has a user with these, besides the marker of the guard."""
    for node in nodes:
        node.command("ACL", "SETUSER", "app", "on", ">s3cret")
    everybody = redlock.env["REDLOCK_NODES"]

    def become(rights):
        for node in nodes:
            node.command("ACL", "SETUSER", "app", "reset", "on", ">s3cret", *rights)
        redlock.env["REDLOCK_NODES"] = everybody.replace("redis://", "redis://app:s3cret@")

    yield become
    redlock.env["REDLOCK_NODES"] = everybody
    for node in nodes:
        node.command("ACL", "DELUSER", "app")


@pytest.mark.parametrize("kind", LOCKS)
def test_the_rights_that_doctor_names_are_enough_and_needed(redlock, nodes, user, kind):
    fuller = acl(redlock, "--kinds", kind)
    plain = fuller[:fuller.index("+subscribe") + 1]
    user(plain)
    assert redlock.once("run", "a", "--", "true").returncode == 0, "a plain lock needs no more"
    refused = redlock.once("run", *LOCKS[kind], "--", "true")
    assert refused.returncode == REFUSED_CONFIG and "give the user the permissions" in refused.stderr
    assert not [node.name for node in nodes if node.command("EXISTS", "a", "b")], "what is refused leaves no key"
    done = redlock("doctor", "--kinds", kind)
    assert done.returncode == REFUSED_CONFIG and done.stdout.endswith("all 5 nodes may vote\n")
    assert done.stdout.count("    %s: the user may not run " % kind) == 5, done.stdout
    assert done.stdout.count("    advice: add +") == 5
    assert acl(redlock, "--kinds", kind) == fuller
    assert set(re.search(r"advice: add (.*) to the ACL", done.stdout)[1].split()) == set(fuller) - set(plain)
    user(fuller)
    assert redlock("doctor", "--kinds", kind).returncode == 0
    first = redlock.once("acquire", "--ttl", "20s", *(("--slot", "1") if kind == "permits" else ()), *LOCKS[kind])
    assert first.returncode == 0, first.stderr
    token, *slot = first.stdout.split()
    slot = ("--slot", *slot) if slot else ()
    second = redlock.once("acquire", "-n", "--ttl", "20s", *LOCKS[kind])
    assert second.returncode == (BUSY if kind in ("several", "hash") else 0), second.stderr
    assert redlock.once("extend", "--ttl", "25s", *slot, *LOCKS[kind], token).returncode == 0
    if kind != "several":
        other = redlock.once("release", "a", token)
        assert other.returncode == BUSY and "held in another form: " in other.stderr, other.stderr
    done = redlock.once("release", *slot, *LOCKS[kind], token)
    assert (done.returncode, done.stderr) == (0, "redlock: released\n")


def test_a_downgrade_that_is_forbidden_leaves_the_key_as_it_was(redlock, nodes, user):
    token = redlock.acquire("a")
    user([right for right in acl(redlock, "--kinds", "shared") if right != "+pexpireat"])
    assert redlock.once("extend", "--shared", "a", token).returncode == REFUSED_CONFIG
    assert [(node.get("a").decode(), node.pttl("a") > 0) for node in nodes] == [(token, True)] * 5


def test_the_page_has_the_same_rights(redlock, nodes):
    line = re.search(r"^    user app on >s3cret (~lock:.*\+subscribe)$", PAGE, re.M)[1].split()
    nodes.bootstrap(key_prefix="lock:")
    more = {re.search("[a-z]+", kind.replace("--layout", ""))[0]: rights.split() for kind, rights in
            re.findall(r"^\| \[(.*?)\]\(kinds.md#.*?\) \| `(\+.*)` \|$", PAGE, re.M)}
    for kind in LOCKS:
        named = acl(redlock, "--key-prefix", "lock:", "--kinds", kind)
        assert named[:len(line)] == line and set(named[len(line):]) == set(more[kind]), kind
    assert set(acl(redlock, "--kinds", "shared,permits")) >= {"+mget", "+zcount"}


def test_the_operator_of_the_page_sees_and_deletes_each_kind(redlock, nodes, user):
    line = re.search(r"^    user operator on >s3cret ~lock:\* (.*)$", PAGE, re.M)[1].split()
    held = [(("--shared",), "shared: by 1 reader, "), (("--layout", "hash"), "held: by libredlock "),
            (("--permits", "3", "--slot", "1"), "held: by libredlock "), ((), "held: by libredlock ")]
    for number, (kind, _) in enumerate(held):
        assert redlock.once("acquire", "--ttl", "30s", *kind, f"r{number}").returncode == 0
    user(("~*", *line))
    assert re.findall(r"^(r\d) ", redlock("ls", "r").stdout, re.M) == ["r0", "r1", "r2", "r3"]
    for number, (kind, words) in enumerate(held):
        permits = kind if "--permits" in kind else ()
        assert f"\n{words}" in redlock("status", *permits, f"r{number}").stdout
        assert redlock("release", "--force", "--yes", *permits, f"r{number}").returncode == 0
    assert redlock("ls", "r").stdout == ""


def test_doctor_without_kinds_names_the_narrow_line_if_need_be(redlock, nodes):
    assert "ACL" not in redlock("doctor").stdout
    nodes[2].command("ACL", "SETUSER", "default", "-mget")
    assert "ACL" not in redlock("doctor").stdout, "no kind that needs it is in use"
    nodes[2].command("ACL", "SETUSER", "default", "-set")
    done = redlock("doctor")
    assert done.returncode == REFUSED_CONFIG and re.search(r"^ACL: ~\* .* \+subscribe$", done.stdout, re.M)


def test_json_has_the_missing_rights_by_kind(redlock, nodes):
    nodes[2].command("ACL", "SETUSER", "default", "-mget", "-zcount")
    nodes[4].kill()
    done = redlock("doctor", "--json", "--kinds", "permits,shared")
    report = json.loads(done.stdout)
    assert done.returncode == REFUSED_CONFIG and report["acl"].startswith("~* resetchannels ")
    kinds = [node["kinds"] for node in report["nodes"]]
    assert kinds == [{"shared": [], "permits": []}] * 2 + [{"shared": ["mget", "zcount"], "permits": ["mget"]}] + \
        [{"shared": [], "permits": []}] + [None]
    assert {key for node in nodes.nodes[:4] for key in node.command("KEYS", "*")} == {b"libredlock:m"}


def test_a_user_of_some_keys_only_lacks_just_commands(redlock, nodes):
    """The key that doctor tries is refused, which says nothing of the commands."""
    nodes[2].command("ACL", "SETUSER", "default", "resetkeys", "~orders:*", "~libredlock:m", "-mget")
    done = redlock("doctor", "--kinds", "shared,permits")
    assert done.returncode == REFUSED_CONFIG
    assert re.findall("^    (.*): the user may not run (.*)$", done.stdout, re.M) == \
        [("shared", "mget"), ("permits", "mget")]


def test_a_user_of_prefixed_keys_is_told_of_key_prefix(redlock, user):
    user(("~app:*", "resetchannels", "&app:*", "+@all"))
    done = redlock("doctor")
    assert done.returncode == REFUSED_CONFIG and "the user needs; keys with a prefix need key_prefix\n" in done.stdout
    done = redlock("status", "r")
    assert done.returncode == REFUSED_CONFIG
    assert done.stdout.endswith("\nunknown: none of the 5 nodes has said whether it has a key\n")
    redlock.env["REDLOCK_KEY_PREFIX"] = "app:"
    assert redlock("status", "r").stdout.endswith("\nfree: 5 of 5 nodes answered, 5 have no key\n")


@pytest.mark.parametrize("args, words", [
    (("--kinds", "rw"), "--kinds rw: allowed are shared, several, permits and hash, separated by commas"),
    (("--kinds", "shared,"), "--kinds shared,: allowed are"), (("--kinds", ""), "--kinds : allowed are"),
    (("--kinds", "shared", "--no-write"), "--kinds tries commands on a key: not allowed with --no-write"),
])
def test_wrong_kinds_are_refused(redlock, args, words):
    done = redlock("doctor", *args)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (USAGE, "", 1) and words in done.stderr

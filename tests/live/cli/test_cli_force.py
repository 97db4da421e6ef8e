"""redlock release --force: for an operator who knows that the holder is gone."""
import json
import signal

import pytest

from command import CLIENT, GENEROUS_TIMEOUTS, UNAVAILABLE, USAGE

DECLINED = 1


@pytest.fixture
def held(redlock, nodes):
    """The token of orders:42, held on all nodes."""
    return redlock.acquire("orders:42", "--ttl", "30s")


def still_held(nodes, token):
    return [node.get("orders:42") for node in nodes] == [token.encode()] * 5


def test_force_deletes_whatever_is_there_when_the_user_agrees(terminal, nodes, held):
    program = terminal("release", "--force", *GENEROUS_TIMEOUTS, "orders:42")
    program.expect(r"The lock is held by %s, %s on 5 of 5 nodes, [^,]+ left\.\s+Its holder .* \[y/N\] " % (
        CLIENT, held[-8:]))
    assert still_held(nodes, held)
    program.type("y\n")
    assert program.wait() == 0 and "deleted on 5 of 5 nodes" in program.seen
    nodes.no_keys()


@pytest.mark.parametrize("answer", ["n\n", "\n", "why?\n", "\x04", "a very long answer, yes\n"])
def test_force_deletes_nothing_when_the_user_does_not_agree(terminal, nodes, held, answer):
    program = terminal("release", "--force", *GENEROUS_TIMEOUTS, "orders:42")
    program.expect(r"\[y/N\] ")
    program.type(answer)
    assert program.wait() == DECLINED and "Nothing was deleted." in program.seen
    assert still_held(nodes, held)


def test_an_interrupt_at_the_question_deletes_nothing(terminal, nodes, held):
    program = terminal("release", "--force", "orders:42")
    program.expect(r"\[y/N\] ")
    program.type("\x03")
    assert program.wait() == -signal.SIGINT and still_held(nodes, held)


def test_force_is_refused_without_a_terminal_to_confirm(redlock, nodes, held):
    done = redlock("release", "--force", "orders:42")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (USAGE, "", 1) and "--yes" in done.stderr
    assert still_held(nodes, held)


@pytest.mark.parametrize("flag", ["--yes", "-y"])
def test_yes_deletes_without_a_question(redlock, nodes, held, flag):
    done = redlock.once("release", "--force", flag, "orders:42")
    assert (done.returncode, done.stdout) == (0, "") and done.stderr.startswith("redlock: deleted on ")
    nodes.no_keys()


def test_json_has_every_node_and_no_token(redlock, nodes, held):
    done = redlock.once("release", "--force", "--yes", "--json", "orders:42")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["status"], len(answer["nodes"])) == (0, "OK", 5) and "token" not in answer
    nodes.no_keys()


def test_json_tells_what_the_nodes_said_of_a_free_lock(redlock, nodes):
    done = redlock.once("release", "--force", "--yes", "--json", "orders:42")
    answer = json.loads(done.stdout)
    assert answer["message"].startswith('"orders:42" is held on 0 and free on 5 of 5 nodes')
    assert [node["answer"] for node in answer["nodes"]] == ["free"] * 5


def test_keys_of_any_kind_are_deleted(redlock, nodes):
    for i, node in enumerate(nodes):
        node.command(*[("SET", "orders:42", b"\0raw"), ("RPUSH", "orders:42", "list")][i % 2])
    done = redlock("release", "--exit-drain", "10s", "--force", "--yes", "orders:42")
    assert (done.returncode, done.stderr) == (0, "redlock: deleted on 5 of 5 nodes\n")
    nodes.no_keys()


def test_a_key_of_the_library_itself_can_be_deleted(redlock, nodes):
    """It cannot be locked by mistake, but an operator may remove it."""
    for node in nodes:
        node.set("libredlock:f:orders", "5")
    done = redlock("acquire", "libredlock:f:orders")
    assert done.returncode == 64 and "reserved" in done.stderr
    assert redlock("run", "libredlock:f:orders", "--", "true").returncode == 64
    done = redlock("release", "--exit-drain", "10s", "--force", "--yes", "libredlock:f:orders")
    assert (done.returncode, done.stderr) == (0, "redlock: deleted on 5 of 5 nodes\n")
    assert not any(node.get("libredlock:f:orders") for node in nodes)


def test_other_keys_stay(redlock, nodes, held):
    other = redlock.acquire("orders:43", "--ttl", "30s")
    assert redlock.once("release", "--force", "--yes", "orders:42").returncode == 0
    assert [node.get("orders:43") for node in nodes] == [other.encode()] * 5


def test_nothing_is_asked_about_a_free_lock(redlock, terminal, nodes):
    done = redlock.once("release", "--force", "--yes", "orders:42")
    assert (done.returncode, done.stderr) == (0, "redlock: nobody held it\n")
    program = terminal("release", "--force", "orders:42")
    assert program.wait() == 0 and "nobody held it" in program.seen, "there is nothing to ask"


def test_node_that_is_away_is_mentioned(terminal, nodes, held):
    nodes[3].kill()
    program = terminal("release", "--force", "orders:42")
    program.expect(r"on 4 of 5 nodes, [^,]+ left\.\s+1 of 5 nodes did not say\.")
    program.type("y\n")
    assert program.wait() == 0 and "deleted on 4 of 5 nodes" in program.seen


def test_a_free_lock_of_which_a_node_said_nothing(redlock, terminal, nodes):
    """That node may have the key: neither the question nor the result says that nobody holds the lock."""
    nodes[3].kill()
    program = terminal("release", "--force", "orders:42")
    program.expect(r"The lock is held by nobody on 4 of 5 nodes\.\s+1 of 5 nodes did not say\.")
    program.type("y\n")
    assert program.wait() == 0 and "redlock: nobody held it on 4 of 5 nodes" in program.seen


def test_too_few_nodes_fail_a_force_and_are_named(redlock, nodes, held):
    for i in range(3):
        nodes[i].kill()
    done = redlock.once("release", "--force", "--yes", "orders:42")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (UNAVAILABLE, "", 1)
    assert all(nodes[i].name in done.stderr for i in range(3))


@pytest.mark.parametrize("args, words", [
    (("release", "--force", "--yes", "orders:42", "0" * 40), "unexpected argument"),
    (("release", "--yes", "orders:42", "0" * 40), "--force"),
    (("release", "orders:42"), "TOKEN is missing"),
    (("extend", "--force", "orders:42", "0" * 40), "no option --force"),
])
def test_wrong_arguments_are_refused_in_one_line(redlock, nodes, held, args, words):
    done = redlock(*args)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (USAGE, "", 1) and words in done.stderr
    assert still_held(nodes, held)

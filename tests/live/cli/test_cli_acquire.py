"""redlock acquire"""
import json
import re
import signal
import socket
import subprocess

import pytest

from command import BUSY, CLIENT, GENEROUS_TIMEOUTS, INTERNAL, TOKEN, UNAVAILABLE, begun_to_wait, finish, read_until
from common import occupy
from testing import eventually


def holders(nodes, key):
    return [value for value in (node.get(key) for node in nodes) if value is not None]


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def test_acquire_prints_the_token_and_leaves_the_lock(redlock, nodes):
    done = redlock("acquire", "--ttl", "20s", "orders:42")
    assert (done.returncode, done.stderr) == (0, "")
    token = done.stdout.strip()
    assert TOKEN.match(token) and done.stdout == token + "\n"
    eventually(lambda: len(holders(nodes, "orders:42")) >= nodes.quorum)
    assert {text(value) for value in holders(nodes, "orders:42")} == {token}
    assert all(10000 < node.pttl("orders:42") <= 20000 for node in nodes if node.get("orders:42"))


def test_json_has_the_token_and_every_vote(redlock, nodes):
    done, answer = redlock.json("acquire", "--ttl", "10s", "orders:42")
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert answer["resource"] == "orders:42" and answer["status"] == "OK" and TOKEN.match(answer["token"])
    assert 5000 < answer["validity_ms"] < 10000
    assert [node["node"] for node in answer["nodes"]] == [node.name for node in nodes]
    assert sum(node["vote"] == "OK" for node in answer["nodes"]) >= nodes.quorum
    assert all(node["answer"] for node in answer["nodes"])


def test_busy_names_every_node(redlock, nodes):
    occupy(nodes, "orders:42")
    done = redlock.once("acquire", "orders:42")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (BUSY, "", 1)
    assert done.stderr.startswith("redlock: ") and "orders:42" in done.stderr
    assert all(node.name in done.stderr for node in nodes)
    assert done.stderr.count(" s left") >= nodes.quorum and done.stderr.count("held by others") == 1


@pytest.mark.parametrize("wait", [("-n",), ("--no-wait",), ("-w", "0")])
def test_short_forms_of_one_attempt_do_not_wait(redlock, wait):
    redlock.acquire("orders:42", "--ttl", "30s")
    assert redlock("acquire", *GENEROUS_TIMEOUTS, "--ttl", "20s", *wait, "orders:42").returncode == BUSY


@pytest.mark.parametrize("seconds", ["0.5", "1", "500ms", "1s"])
def test_short_form_of_wait_ends(redlock, seconds):
    """Long before the lease is over."""
    redlock.acquire("orders:42", "--ttl", "30s")
    assert redlock("acquire", *GENEROUS_TIMEOUTS, "--ttl", "20s", "-w", seconds,
                   "orders:42").returncode in (BUSY, UNAVAILABLE)


def test_short_form_of_wait_waits(redlock):
    redlock.acquire("orders:42", "--ttl", "1s")
    assert redlock("acquire", *GENEROUS_TIMEOUTS, "-w", "60", "orders:42").returncode == 0


@pytest.mark.parametrize("wait", ["-n", "-w2"])
def test_busy_says_which_client_holds_it(redlock, wait):
    holder = redlock.start("run", *GENEROUS_TIMEOUTS, "--client-name", "worker-7", "orders:42", "--", "cat",
                           stdin=subprocess.PIPE)
    eventually(lambda: redlock.json("status", "orders:42")[1].get("held_by"))
    client = r"worker-7 \(pid %d on %s\) for \d+(\.\d)? m?s" % (holder.pid, re.escape(socket.gethostname()))
    words = "held by %s: 0 of 5 nodes granted" % client
    assert re.match("redlock: " + words, redlock.busy(words, "acquire", *GENEROUS_TIMEOUTS, wait, "orders:42").stderr)
    held_by = json.loads(redlock.busy(words, "acquire", *GENEROUS_TIMEOUTS, "--json", wait,
                                      "orders:42").stdout)["held_by"]
    assert (held_by["client_name"], held_by["pid"], held_by["host"]) == ("worker-7", holder.pid, socket.gethostname())
    assert finish(holder).returncode == 0
    assert "held_by" not in redlock.json("status", "orders:42")[1]


def test_no_holder_info_hides_the_holder(redlock):
    redlock.acquire("orders:42", "--no-holder-info")
    done, answer = redlock.json("acquire", "orders:42")
    assert done.returncode == BUSY and "held by others" in answer["message"] and "held_by" not in answer


@pytest.mark.parametrize("flag", ["-q", "--quiet"])
def test_quiet_says_nothing_of_a_busy_lock(redlock, flag):
    redlock.acquire("orders:42")
    done = redlock.once("acquire", flag, "orders:42")
    assert (done.returncode, done.stdout, done.stderr) == (BUSY, "", "")


def test_quiet_says_what_else_is_wrong(redlock, nodes):
    for i in range(3):
        nodes[i].kill()
    done = redlock.once("acquire", "-q", "orders:42")
    assert (done.returncode, done.stderr.count("\n")) == (UNAVAILABLE, 1)


def test_verbose_names_the_holder(redlock):
    token = redlock.acquire("orders:42", "--ttl", "30s")
    done = redlock.busy("held by %s: " % CLIENT, "acquire", *GENEROUS_TIMEOUTS, "--wait", "0", "-v", "orders:42")
    who = "%s, %s" % (CLIENT, token[-8:])
    assert re.search(r"held by %s on 5 of 5 nodes, \d+\.\d s left; waited \d" % who, done.stderr), done.stderr
    assert token not in done.stderr


def test_verbose_says_what_it_waits_for(redlock):
    token = redlock.acquire("orders:42", "--ttl", "20s")
    waiting = redlock.start("acquire", *GENEROUS_TIMEOUTS, "--verbose", "--wait", "60s", "orders:42")
    line = read_until(waiting.stderr, "\n")
    who = "%s, %s" % (CLIENT, token[-8:])
    assert re.match(r"redlock: held by %s on 5 of 5 nodes, \d+\.\d s left; waiting for up to 1m\n" % who, line)
    assert redlock("release", "orders:42", token).returncode == 0
    done = finish(waiting)
    assert done.returncode == 0 and re.fullmatch(r"redlock: acquired the lock after \d.*\n", done.stderr)


def test_busy_in_json_has_every_vote_and_no_token(redlock, nodes):
    redlock.acquire("orders:42")
    done, answer = redlock.json("acquire", "orders:42")
    assert (done.returncode, answer["status"], answer["validity_ms"]) == (BUSY, "BUSY", 0)
    assert "token" not in answer and answer["message"] in done.stderr
    busy = [node for node in answer["nodes"] if node["vote"] == "BUSY"]
    assert len(busy) >= nodes.quorum and any(node["ttl_ms"] is not None for node in busy)


@pytest.mark.parametrize("flag", ["-E", "--busy-exit"])
def test_exit_status_for_busy_can_be_chosen(redlock, flag):
    redlock.acquire("orders:42")
    assert redlock.once("acquire", flag, "3", "orders:42").returncode == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signal_ends_the_wait(redlock, nodes, number):
    token = redlock.acquire("orders:42", "--ttl", "30s")
    waiting = begun_to_wait(nodes, redlock.start, "acquire", "--wait", "forever", "orders:42")
    waiting.send_signal(number)
    done = finish(waiting)
    assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")
    assert {text(value) for value in holders(nodes, "orders:42")} == {token}
    redlock.once("release", "orders:42", token)
    nodes.no_keys()


def test_signal_that_was_ignored_does_not_end_the_wait(redlock, nodes):
    token = redlock.acquire("orders:42", "--ttl", "30s")
    waiting = begun_to_wait(nodes, redlock.start_in_shell, 'exec env --ignore-signal=HUP "$0" "$@"',
                            "acquire", "--wait", "forever", "orders:42")
    waiting.send_signal(signal.SIGHUP)
    redlock("release", "orders:42", token)
    assert finish(waiting).returncode == 0


def test_unreadable_token_is_released(redlock, nodes):
    with open("/dev/full", "w") as full:
        process = subprocess.Popen([redlock.start("--version").args[0], "acquire", "orders:42"], env=redlock.env,
                                   stdout=full, stderr=subprocess.PIPE)
        error = process.communicate(timeout=30)[1].decode()
    assert process.returncode == INTERNAL and error.startswith("redlock: the answer cannot be written")
    nodes.no_keys()


def test_closed_standard_output_is_no_success(redlock, nodes):
    done = finish(redlock.start_in_shell('exec "$0" "$@" >&-', "acquire", "orders:42"))
    assert done.returncode == INTERNAL
    nodes.no_keys()


def test_resource_is_bytes(redlock, nodes):
    resource = b"\xff \"\n\x01"
    done, answer = redlock.json("acquire", resource)
    assert done.returncode == 0 and answer["resource_hex"] == resource.hex() and "resource" not in answer
    assert any(node.command("EXISTS", resource) == 1 for node in nodes)


def test_a_resource_may_have_letters_of_any_language(redlock, nodes):
    _, answer = redlock.json("acquire", "Straße ☃")
    assert answer["resource"] == "Straße ☃"
    assert any(node.command("EXISTS", "Straße ☃".encode()) == 1 for node in nodes)


def test_nodes_from_flags_go_before_the_environment(redlock, nodes):
    flags = [word for node in nodes for word in ("--node", node.url)]
    env = dict(redlock.env, REDLOCK_NODES="redis://127.0.0.1:1")
    done = redlock("acquire", "--json", *flags, "orders:42", env=env)
    assert [node["node"] for node in json.loads(done.stdout)["nodes"]] == [node.name for node in nodes]


@pytest.mark.parametrize("resource, shown", [
    ("orders\u202e42", "orders\\xe2\\x80\\xae42"),   # writes what follows from right to left
    ("orders\u009b2J", "orders\\xc2\\x9b2J"),        # a control of terminals
    ("\U000e0041", "\\xf3\\xa0\\x81\\x81"),        # a tag
    ("caf\u00e9\u20ac\U0001f512", "caf\u00e9\u20ac\U0001f512"),
])
def test_characters_that_are_not_shown_are_escaped(redlock, nodes, resource, shown):
    occupy(nodes, resource)
    done = redlock.once("acquire", resource)
    assert done.returncode == BUSY and (' granted "%s", 3 needed' % shown) in done.stderr, done.stderr


def test_an_error_in_a_script_is_said_without_the_script(redlock, nodes):
    """Redis 7 and Valkey add where it happened, Redis 6 begins with that."""
    for node in nodes:
        node.config_set("maxmemory", "500kb")
    try:
        done = redlock.once("acquire", "--fence", "r")
    finally:
        for node in nodes:
            node.config_set("maxmemory", "0")
    assert done.returncode == UNAVAILABLE
    assert " nodes: error: OOM command not allowed when used memory > 'maxmemory'. (" in done.stderr, done.stderr


def test_fencing_number_follows_the_token(redlock, nodes):
    token, fence = redlock("acquire", "--fence", "orders:42").stdout.split(" ")
    assert TOKEN.match(token) and int(fence) > 0
    assert redlock("acquire", "x").stdout.count(" ") == 0

"""redlock doctor --watch: the table again and again."""
import json
import re
import signal
import time

from command import finish, read_until
from testing import eventually


def test_watch_tries_the_nodes_less_often_than_it_asks_them(redlock, nodes):
    """With --watch the nodes are asked each second, and tried every ten. What it stores is deleted at once."""
    stored, begun_s = [node.calls("set") for node in nodes], time.monotonic()
    watching = redlock.start("doctor", "--watch")
    read_until(watching.stdout, "all 5 nodes may vote\n\n")
    asked = nodes[0].calls("pttl")
    eventually(lambda: nodes[0].calls("pttl") >= asked + 4, 60, "it asks again and again")
    watching.send_signal(signal.SIGTERM)
    assert finish(watching).returncode == -signal.SIGTERM
    tries = 2 + (time.monotonic() - begun_s) // 10
    assert all(1 <= node.calls("set") - before <= tries for node, before in zip(nodes, stored))
    nodes.no_keys()


def test_watch_asks_again_until_a_signal_comes(redlock, nodes):
    watching = redlock.start("doctor", "--watch")
    read_until(watching.stdout, "all 5 nodes may vote\n\n")
    nodes[0].kill()
    read_until(watching.stdout, "4 of 5 nodes may vote")
    watching.send_signal(signal.SIGTERM)
    assert finish(watching).returncode == -signal.SIGTERM


def test_watch_shows_each_table_at_the_top(terminal, nodes):
    program = terminal("doctor", "--watch")
    program.expect(r"all 5 nodes may vote\r\n")
    program.expect("(?s)\x1b\\[H\x1b\\[JNODE .*all 5 nodes may vote")
    program.type("\x03")
    assert program.wait() == -signal.SIGINT


def test_watch_writes_json_as_lines(redlock, nodes):
    """A line each time, for programs that read them."""
    watching = redlock.start("doctor", "--watch", "--json")
    lines = read_until(watching.stdout, "}\n{").splitlines()
    watching.send_signal(signal.SIGTERM)
    assert finish(watching).returncode == -signal.SIGTERM
    assert json.loads(lines[0])["voting"] == 5


def test_watch_into_a_file_says_when(redlock, nodes):
    watching = redlock.start("doctor", "--watch")
    text = read_until(watching.stdout, "all 5 nodes may vote\n\n20")
    watching.send_signal(signal.SIGTERM)
    finish(watching)
    assert re.match(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\nNODE", text)

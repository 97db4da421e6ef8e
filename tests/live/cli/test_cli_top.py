"""redlock top: the list of locks, renewed."""
import json
import re
import signal
import sys

from command import BIN, GENEROUS_TIMEOUTS, LIMIT_S, REFUSED_CONFIG, UNAVAILABLE, USAGE, Terminal, read_until
from testing import eventually


def test_top_prints_tables_where_there_is_no_terminal(redlock, nodes):
    redlock.acquire("orders:1", "--ttl", "20s", "--client-name", "worker-7")
    redlock.acquire("orders:2", "--ttl", "20s")
    waiter = redlock.start("run", "--wait", "60s", "orders:2", "--", "true")
    try:
        done = redlock("top", *GENEROUS_TIMEOUTS, "--every", "500ms", "--rounds", "8", "orders:")
        assert (done.returncode, done.stderr) == (0, "")
        tables = done.stdout.rstrip("\n").split("\n\n")
        assert len(tables) == 8
        head, about_nodes, columns, *rows = tables[-1].splitlines()
        assert re.fullmatch(r"\d\d:\d\d:\d\d  2 locks, 1 waiting, names \d s old", head)
        assert about_nodes.startswith("nodes: ") and about_nodes.count(" ready") == 5
        assert columns.split() == ["NAME", "KIND", "HOLDER", "HELD", "LEFT", "WAITING", "TOKEN"]
        assert [row.split()[0] for row in rows] == ["orders:2", "orders:1"], "most waiters first"
        assert re.search(r"worker-7 \(pid \d+ on \S+\)", rows[1])
    finally:
        waiter.terminate()


def test_top_prints_an_object_each_round_with_json(redlock, nodes):
    redlock.acquire("orders:1", "--ttl", "20s", "--client-name", "worker-7")
    done = redlock("top", *GENEROUS_TIMEOUTS, "--json", "--every", "100ms", "--rounds", "3", "orders:")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr, len(told)) == (0, "", 3)
    assert {one["status"] for one in told} == {"OK"}
    assert all(one["locks"][0]["resource"] == "orders:1" and one["truncated"] is False for one in told)
    assert told[-1]["locks"][0]["held_by"]["client_name"] == "worker-7"


def test_top_shows_what_was_released_no_more(redlock, nodes):
    token = redlock.acquire("orders:1", "--ttl", "30s")
    top = redlock.start("top", *GENEROUS_TIMEOUTS, "--every", "100ms", "--rounds", "200", "orders:")
    try:
        for line in iter(top.stdout.readline, b""):
            if line.startswith((b"orders:1", "orders:1")[isinstance(line, str)]):
                break
        assert redlock("release", "orders:1", token).returncode == 0
        for line in iter(top.stdout.readline, b""):
            text = line if isinstance(line, str) else line.decode()
            if re.search("  0 locks, 0 waiting, ", text):
                break
        else:
            raise AssertionError("it is shown to the end")
    finally:
        top.terminate()


def test_top_goes_on_to_list_what_no_node_tells_of(redlock, nodes):
    token, slot = redlock.acquire("orders:1", "--ttl", "30s", "--permits", "2").split()
    top = redlock.start("top", "--every", "100ms", "orders:")
    read_until(top.stdout, token)
    for node in nodes:
        node.stop()
    read_until(top.stdout, "\norders:1  permit %s of 2  no majority: 0 nodes " % slot)
    for node in nodes:
        node.cont()
    read_until(top.stdout, token)


def test_top_asks_before_it_goes_through_all_keys(redlock):
    assert redlock("top").returncode == USAGE


def test_keys_order_and_filter_on_a_screen(shell, redlock):
    redlock.acquire("orders:1", "--ttl", "30s")
    redlock.acquire("invoices", "--ttl", "30s")
    shell.run("stty cols 60 rows 12")
    shell.type("redlock top --every 300ms ''\n")
    shell.expect("invoices.*\n.*orders:1")
    shell.type("/ord\n")
    shell.expect("filter: ord")
    shell.type("q")
    shell.expect(r"ready\$ ")
    assert shell.status() == 0


def put(nodes, name):
    """Of a lock that is held for ever."""
    for node in nodes:
        node.set(name, "0123456789abcdef" * 2 + "01234567")


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(shell, nodes):
    put(nodes, "orders:1")
    before = shell.run("stty -a")
    for _ in range(2):
        shell.type("%1\n" if "top" in shell.run("jobs") else "redlock top --every 60s orders:\n")
        shell.expect("orders:1 .*plain")
        shell.type("\x1a")
        shell.expect("Stopped")
        shell.expect(r"ready\$ ")
        assert shell.run("stty -a") == before
    shell.type("fg\n")
    shell.expect("orders:1 .*plain")
    shell.type("n")  # keys are read one by one, and not shown
    shell.expect("orders:1 .*plain")
    shell.type("q")
    shell.expect(r"ready\$ ")
    assert shell.status() == 0 and shell.run("stty -a") == before


STOPPABLE = """
import os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
tty = os.open("/dev/tty", os.O_RDWR)
before, pid = termios.tcgetattr(tty), os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(tty, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
os.waitpid(pid, os.WUNTRACED)
print("stopped", termios.tcgetattr(tty) == before)
os.kill(pid, signal.SIGCONT)
print("ended", os.waitpid(pid, 0)[1], termios.tcgetattr(tty) == before)
"""


def test_the_terminal_is_as_before_while_top_is_stopped(redlock, nodes):
    """Whatever the shell does for it."""
    put(nodes, "orders:1")
    terminal = Terminal([sys.executable, "-uc", STOPPABLE, BIN, "top", "--every", "60s", "orders:"], redlock.env)
    try:
        terminal.expect("orders:1 .*plain")
        terminal.type("\x1a")
        terminal.expect("stopped True")
        terminal.expect("orders:1 .*plain")
        terminal.type("q")
        terminal.expect("ended 0 True")
    finally:
        terminal.close()


def test_lines_of_a_narrow_screen_are_cut(shell, nodes):
    put(nodes, "orders:" + "4" * 60)
    shell.run("stty cols 40 rows 12")
    shell.type("redlock top --every 60s orders:\n")
    screen = shell.expect(r"(?s)\x1b\[H(.*)\x1b\[J").group(1)
    shell.type("q")
    shell.expect(r"ready\$ ")
    lines = [line.strip("\r\n") for line in screen.split("\x1b[K")]
    assert "orders:" + "4" * 33 in lines and max(map(len, lines)) == 40, lines
    assert len(lines) <= 12


def test_names_and_a_node_that_is_down_in_one_line_each(redlock, nodes):
    put(nodes, b"orders:\x1b[31m\n1")
    nodes[0].kill()

    def told():
        done = redlock("top", "--connect-timeout", "1s", "--rounds", "1", "orders:")
        _, about_nodes, _, row = done.stdout.rstrip("\n").splitlines()
        assert (done.returncode, done.stderr) == (0, "") and row.startswith(r"orders:\x1b[31m\x0a1  plain"), row
        return f"{nodes[0].name} down" in about_nodes and about_nodes.count(" ready") == 4

    eventually(told, 60, "a table that does not fall into a new attempt to connect")
    for node in nodes.nodes[1:3]:
        node.kill()
    done = redlock("top", "--connect-timeout", "1s", "--rounds", "1", "orders:")
    assert re.match(r"\S+  1 lock, 0 waiting, names \d s old, of too few nodes\n", done.stdout), done.stdout
    assert done.returncode == UNAVAILABLE and "2 of 5 nodes were scanned, 3 are needed" in done.stderr, done.stderr


def test_a_node_that_refuses_the_scan_is_not_just_ready(redlock, nodes):
    nodes[0].command("ACL", "SETUSER", "default", "-scan")
    done = redlock("top", *GENEROUS_TIMEOUTS, "--rounds", "1", "orders:")
    about_nodes = done.stdout.splitlines()[1]
    assert re.search(re.escape(nodes[0].name) + r" error: .*(SCAN|scan)", about_nodes), about_nodes
    assert about_nodes.count(" ready") == 4 and done.returncode == 0, done.stderr


def test_top_that_may_not_scan_says_so_in_an_object(redlock, nodes):
    for node in nodes:
        node.command("ACL", "SETUSER", "default", "-scan")
    done = redlock("top", *GENEROUS_TIMEOUTS, "--json", "orders:")
    assert json.loads(done.stdout) == {"status": "REFUSED_CONFIG", "locks": [], "truncated": False}
    assert done.returncode == REFUSED_CONFIG and "0 of 5 nodes were scanned" in done.stderr, done.stderr


def test_top_ends_when_nobody_reads_it(redlock, nodes):
    top = redlock.start("top", *GENEROUS_TIMEOUTS, "--every", "100ms", "orders:")
    top.stdout.readline()
    top.stdout.close()
    top.stdout = None
    assert top.wait(LIMIT_S) == 128 + signal.SIGPIPE and top.stderr.read() == b""

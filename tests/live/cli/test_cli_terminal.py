"""redlock run in a terminal: who reads from it, Ctrl-C, Ctrl-Z, fg and bg of a real shell."""
import os
import re
import signal
import sys

import pytest

from command import LIMIT_S, LOST, begun_to_wait, end_process, pid_in, process_state
from testing import eventually

# Says "ready", then answers each line; Ctrl-C makes it exit with 5.
TALKER = """sh -c 'trap "echo caught; exit 5" INT; echo begun; while read line; do echo "got $line"; done; echo end'"""


def test_command_reads_from_the_terminal(shell):
    shell.type("redlock run job -- %s\n" % TALKER)
    shell.expect("begun")
    shell.type("one\n")
    shell.expect("got one")
    shell.type("\x04")
    shell.expect("end")
    shell.expect(r"ready\$ ")
    assert shell.status() == 0


@pytest.mark.parametrize("rest, owns", [("", True), (" | cat", False), (" &", False)])
def test_the_command_has_the_terminal(shell, rest, owns):
    script = 'import os; print("owns", os.tcgetpgrp(os.open("/dev/tty", os.O_RDWR)) == os.getpgrp())'
    shell.type("redlock run job -- %s -c '%s'%s\n" % (sys.executable, script, rest))
    assert shell.expect(r"owns (True|False)").group(1) == str(owns)


def test_shell_has_the_terminal_back(shell):
    shell.run("redlock run job -- sh -c 'exit 3'")
    assert shell.status() == 3
    shell.type("echo asks; read word </dev/tty\n")
    shell.expect("asks")
    shell.type("back\n")
    shell.expect(r"ready\$ ")
    assert shell.run("echo $word") == "back\n"


def test_ctrl_c_goes_to_the_command(shell, nodes):
    shell.type("redlock run job -- %s\n" % TALKER)
    shell.expect("begun")
    shell.type("\x03")
    shell.expect("caught")
    shell.expect(r"ready\$ ")
    assert shell.status() == 5
    nodes.no_keys()


def test_ctrl_c_that_ends_the_command_is_the_status(shell, nodes):
    shell.type("redlock run job -- sh -c 'echo begun; exec sleep 60'\n")
    shell.expect("begun")
    shell.type("\x03")
    shell.expect(r"ready\$ ")
    assert shell.status() == 128 + signal.SIGINT
    nodes.no_keys()


def test_ctrl_c_ends_the_wait(shell, redlock, nodes):
    redlock.acquire("job", "--ttl", "30s")
    begun_to_wait(nodes, shell.type, "redlock run --wait forever job -- echo ran\n")
    shell.type("\x03")
    shell.expect(r"ready\$ ")
    assert shell.status() == 128 + signal.SIGINT


def test_ctrl_z_stops_and_fg_resumes(shell):
    shell.type("redlock run --ttl 30s job -- %s\n" % TALKER)
    shell.expect("begun")
    shell.type("\x1a")
    shell.expect(r"Stopped")
    shell.expect(r"ready\$ ")
    assert re.search(r"Stopped.*redlock", shell.run("jobs"))
    shell.type("fg\n")
    shell.type("two\n")
    shell.expect("got two")
    shell.type("\x1a")
    shell.expect(r"Stopped")
    shell.expect(r"ready\$ ")
    shell.type("fg\n")
    shell.expect("redlock")
    shell.type("three\n")
    shell.expect("got three")
    shell.type("\x04")
    shell.expect("end")
    shell.expect(r"ready\$ ")
    assert shell.status() == 0


def test_fg_resumes_what_stops_after_bg(shell):
    shell.type("redlock run --ttl 30s job -- %s\n" % TALKER)
    shell.expect("begun")
    shell.type("\x1a")
    shell.expect("Stopped")
    shell.expect(r"ready\$ ")
    shell.run("bg")
    eventually(lambda: "Stopped" in shell.run("jobs"), LIMIT_S, "a stop for terminal input")
    shell.type("fg\n")
    shell.expect("redlock")
    shell.type("three\n")
    shell.expect("got three")
    shell.type("\x04")
    shell.expect("end")
    shell.expect(r"ready\$ ")
    assert shell.status() == 0


def test_a_background_job_reads_after_fg(shell):
    shell.run("redlock run --ttl 30s job -- sh -c 'read line; echo got $line' &")
    eventually(lambda: "Stopped" in shell.run("jobs"), LIMIT_S, "a stop for terminal input")
    shell.type("fg\n")
    shell.type("four\n")
    shell.expect("got four")
    shell.expect(r"ready\$ ")
    assert shell.status() == 0


def test_a_lock_that_lapsed_during_a_stop_is_lost(shell, redlock, nodes, tmp_path):
    """The command stays stopped until then, so that it can clean up when the user comes back."""
    script = "trap 'echo warned; exit 0' TERM; echo \\$\\$ >%s; echo begun; read line; echo went on" % \
        (tmp_path / "pid")
    shell.type('redlock run --ttl 3s job -- sh -c "%s"\n' % script)
    shell.expect("begun")
    shell.type("\x1a")
    shell.expect("Stopped")
    shell.expect(r"ready\$ ")
    token = redlock.acquire("job", "--wait", "20s", "--ttl", "30s")
    eventually(lambda: any(0 < node.pttl("job") < 29_000 for node in nodes), LIMIT_S, "a second has passed")
    assert process_state(pid_in(tmp_path / "pid")) == "T"
    shell.type("fg\n")
    output = shell.expect(r"(?s)^(.*?)ready\$ ").group(1)
    assert "warned" in output and "lost" in output and "went on" not in output
    assert shell.status() == LOST
    assert token.encode() in [node.get("job") for node in nodes]


def test_grandchildren_stop_too(shell, tmp_path):
    """While redlock is stopped the lock is not renewed, so no process of the group may work."""
    pid_file = tmp_path / "pid"
    shell.type("redlock run --ttl 30s job -- sh -c 'sleep 60 & echo $! >%s; kill -STOP $$; wait'\n" % pid_file)
    shell.expect("Stopped")
    shell.expect(r"ready\$ ")
    pid = pid_in(pid_file)
    eventually(lambda: process_state(pid) == "T", LIMIT_S, "a stopped grandchild")
    shell.type("fg\n")
    eventually(lambda: process_state(pid) == "S", LIMIT_S, "a grandchild that goes on")
    end_process(pid)
    shell.expect(r"ready\$ ")
    assert shell.status() == 0


def test_a_command_in_a_pipeline_gets_the_terminal(shell):
    """The others of a pipeline keep the terminal; the command gets it when it asks."""
    shell.type("redlock run --ttl 30s job -- sh -c 'echo data; read line </dev/tty; echo got $line' | cat\n")
    shell.expect("data")
    shell.type("five\n")
    shell.expect("got five")
    shell.expect(r"ready\$ ")
    assert shell.status() == 0


def test_ctrl_c_ends_a_whole_script(shell, tmp_path):
    """A script's shell sees that its command was interrupted and ends as well."""
    script = tmp_path / "script"
    script.write_text("redlock run job -- sh -c 'echo begun; exec sleep 60'\necho not reached\n")
    shell.run("export -f redlock")
    shell.type("bash %s; echo over\n" % script)
    shell.expect("begun")
    shell.type("\x03")
    output = shell.expect(r"(?s)^(.*?)ready\$ ").group(1)
    assert "not reached" not in output


def test_ctrl_z_stops_nothing_in_an_orphaned_process_group(terminal):
    """As the first program of a terminal (a container's): the kernel would not stop it either."""
    program = terminal("run", "--ttl", "30s", "job", "--", "sh", "-c",
                       "echo begun; while read line; do echo got $line; done")
    program.expect("begun")
    program.type("\x1a")
    program.type("six\n")
    program.expect("got six")
    program.type("\x04")
    assert program.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_the_lock_goes_with_the_terminals_program(terminal, nodes, number):
    program = terminal("run", "job", "--", "sh", "-c", "echo begun; exec sleep 60")
    program.expect("begun")
    os.kill(program.pid, number)
    assert program.wait() == -number
    nodes.no_keys()


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_help_fits_the_terminal(shell, columns):
    shell.run(f"stty cols {columns}")
    for name in "run", "lead", "bootstrap":
        for form in "--help", "--help-all":
            usage, *lines = shell.run(f"redlock {name} {form}").splitlines()
            assert usage.startswith("Usage: ") and "Options:" in lines
            words = [line for line in lines if not re.match(" +--?[a-z-]+(, --[a-z-]+)?$", line)]  # flags stay whole
            assert [line for line in words if len(line) > columns] == []

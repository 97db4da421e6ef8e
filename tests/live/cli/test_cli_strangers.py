"""What answers at the address is no server that may vote: what the command says of it."""
import re
import subprocess

import pytest

from command import REFUSED_CONFIG, Command
from testing import bulk, eventually
from testing.nodes import free_port
from testing.process import Child
from testing.resp import RespConnection


def answers(port):
    try:
        return RespConnection(("127.0.0.1", port)).command("PING") == b"PONG"
    except OSError:
        return False


@pytest.fixture
def sentinel(tmp_path):
    """The URL of a Sentinel that watches a primary."""
    port = free_port()
    config = tmp_path / "sentinel.conf"
    config.write_text("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor one 127.0.0.1 1 1\n" % (port, tmp_path))
    child = Child(["redis-server", str(config), "--sentinel"], stdout=subprocess.DEVNULL)
    eventually(lambda: answers(port), 20, "the Sentinel answers")
    yield "redis://127.0.0.1:%d" % port
    child.end()


@pytest.fixture
def cluster_node(make_cluster):
    """The URL of a node of a Cluster that has no slots: each command with a key is refused."""
    return make_cluster(1, cluster_enabled=True, bootstrapped=False)[0].url


def unknown(args):
    return b"-ERR unknown command '%s', with args beginning with: \r\n" % args[0]


@pytest.fixture
def proxy_of_commands(fake_server):
    """The URL of a proxy that knows only commands with a key."""
    return fake_server({name: unknown for name in ("HELLO", "INFO", "TIME", "SCRIPT", "SELECT", "CLIENT")}).url


@pytest.fixture
def service(fake_server):
    """The URL of a service whose INFO tells neither a run id nor a role."""
    return fake_server({"HELLO": unknown, "TIME": unknown, "CLIENT": unknown, "INFO": bulk(
        "# Server\r\nredis_version:6.2.6\r\nredis_mode:standalone\r\nuptime_in_seconds:100\r\n"
        "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n")}).url


@pytest.mark.parametrize("stranger, words, advice", [
    ("sentinel", "runs in mode sentinel; nodes must be independent masters", "use the address of the server itself"),
    ("cluster_node", "a cluster node; nodes must be independent masters", "use servers with cluster-enabled no"),
    ("proxy_of_commands", "it does not know INFO: it is a proxy or no such server, or INFO was renamed",
     "see what listens at the address"),
    ("service", "INFO names no run_id or no role", "see what listens at the address")])
def test_what_is_no_voting_server_is_named(request, stranger, words, advice):
    command = Command(request.getfixturevalue(stranger))
    done = command("doctor")
    assert done.returncode == REFUSED_CONFIG
    assert "    %s\n    advice: %s" % (words, advice) in done.stdout and "ACL" not in done.stdout, done.stdout
    for wait in "0", "forever":
        done = command("acquire", "--wait", wait, "r")
        assert done.returncode == REFUSED_CONFIG
        assert " %s; %s" % (words, advice) in done.stderr and "ACL" not in done.stderr, done.stderr


@pytest.fixture
def jester(fake_server):
    """The URL of a service whose INFO has commands for terminals."""
    return fake_server({"HELLO": unknown, "CLIENT": unknown, "INFO": bulk(
        "# Server\r\nredis_version:7\x1b[1m\r\nredis_mode:a\x1b[31m\x07\u009b2J\r\nrun_id:%s\r\n"
        "uptime_in_seconds:100\r\n# Memory\r\nmaxmemory_policy:no\x1b[34m\r\n"
        "# Replication\r\nrole:master\r\n" % ("a" * 40))}).url


@pytest.mark.parametrize("args", [("status", "x"), ("doctor", "-v"), ("acquire", "-n", "x"), ("ls", "x"),
                                  ("bootstrap", "--new")])
def test_what_a_stranger_says_moves_no_cursor(jester, args):
    done = Command(jester)(*args)
    assert not re.search("[\x1b\x07\u009b]", done.stdout + done.stderr), (done.stdout, done.stderr)
    assert args[0] == "ls" or "[31m" in done.stdout + done.stderr, (done.stdout, done.stderr)

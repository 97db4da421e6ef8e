"""The cluster kit itself: a fault that does not happen would make other tests pass for nothing."""
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import rl
from guarding import clock_ms, marker_of
from testing import (
    CLOSE,
    HOLD,
    BlackHole,
    Cluster,
    FakeServer,
    Node,
    Proxy,
    ReplyError,
    RespConnection,
    encode,
    eventually,
    process,
)
from testing.bootstrap import bootstrap_nodes

KIT = Path(__file__).resolve().parents[1] / "kit"


def test_reset_brings_everything_back(nodes):
    nodes[0].set("k", "v")
    nodes[1].kill()
    nodes[2].stop()
    nodes[3].config_set("maxmemory", 1000000)
    nodes[4].replica_of(nodes[0])
    nodes[3].command("ACL", "SETUSER", "someone", "on")
    nodes.reset()
    assert nodes.keys() == {} and all(node.alive for node in nodes)
    assert nodes[2].command("PING") == b"PONG"
    assert nodes[3].command("CONFIG", "GET", "maxmemory")[1] == b"0"
    assert nodes[4].info("replication")["role"] == "master"
    assert nodes[3].command("ACL", "USERS") == [b"default"]


def test_restart_keeps_the_data_unless_empty(nodes):
    nodes[0].set("k", "v")
    port, run_id = nodes[0].port, nodes[0].info("server")["run_id"]
    nodes[0].restart()
    assert (nodes[0].get("k"), nodes[0].port) == (b"v", port)
    assert nodes[0].info("server")["run_id"] != run_id
    nodes[0].restart(empty=True)
    assert nodes[0].get("k") is None


def test_port_of_a_dead_node_stays_reserved(make_cluster):
    node = make_cluster(1)[0]
    node.kill()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((node.host, node.port))
    node.start()
    assert node.command("PING") == b"PONG"


def test_port_that_others_took_is_replaced(make_cluster, tmp_path):
    taken = make_cluster(1)[0]
    node = Node(str(tmp_path), taken.server, {})
    node.port = taken.port
    try:
        node.start()
        assert node.port != taken.port and node.command("PING") == b"PONG"
    finally:
        node.close()


def test_nodes_end_with_their_owner(tmp_path):
    """The owner is killed, not asked."""
    owner = subprocess.Popen([sys.executable, "-m", "testing", "-n", "2"], cwd=tmp_path, stdout=subprocess.PIPE,
                             text=True, env=dict(os.environ, PYTHONPATH=str(KIT), TMPDIR=str(tmp_path)))
    line = owner.stdout.readline()
    assert line.startswith("export REDLOCK_NODES=redis://127.0.0.1:")
    ports = [int(url.rsplit(":", 1)[1]) for url in line.strip().split("=")[1].split(",")]
    assert RespConnection(("127.0.0.1", ports[0])).command("PING") == b"PONG"
    owner.send_signal(signal.SIGKILL)
    owner.wait()

    def refused():
        for port in ports:
            try:
                RespConnection(("127.0.0.1", port)).close()
                return False
            except ConnectionError:
                pass
        return True

    eventually(refused, 30)


def test_a_child_does_nothing_if_its_parent_has_died_before():
    begin = process.begin_with(os.getpid())
    assert subprocess.check_output([*begin, "echo", "one"]) == b"one\n"
    done = subprocess.run([*process.begin_with(os.getppid()), "echo", "two"], stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (1, b"")


def test_servers_start_where_setpriv_knows_no_such_signal(monkeypatch, tmp_path):
    setpriv = tmp_path / "setpriv"
    setpriv.write_text("#!/bin/sh\nexit 1\n")
    setpriv.chmod(0o755)
    monkeypatch.setenv("PATH", "%s:%s" % (tmp_path, os.environ["PATH"]))
    process.begin_with.cache_clear()
    try:
        with Cluster(1) as cluster:
            assert cluster[0].command("PING") == b"PONG"
    finally:
        process.begin_with.cache_clear()


def test_command_runs_with_nodes_and_leaves_nothing(tmp_path):
    job = ["sh", "-c", "echo $REDLOCK_NODES; exit 3"]
    done = subprocess.run([sys.executable, "-m", "testing", "-n", "1", "--exec", *job], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(KIT), TMPDIR=str(tmp_path)))
    assert done.returncode == 3 and done.stdout.startswith("redis://127.0.0.1:")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("server", ["no-such-server", "redis-server,no-such-server"])
def test_unknown_server_is_named(server):
    with pytest.raises(RuntimeError, match="'no-such-server' is not installed"):
        Cluster(1, server=server)


def test_servers_take_turns(make_cluster, tmp_path):
    other = tmp_path / "other-server"
    other.symlink_to(shutil.which("redis-server"))
    cluster = make_cluster(3, server="redis-server,%s" % other)
    assert [os.path.basename(node.server) for node in cluster] == ["redis-server", "other-server", "redis-server"]


@pytest.mark.parametrize("unix", [False, True])
def test_urls_of_the_kit_have_the_user_and_the_kit_all_rights(make_cluster, proxy, unix):
    """The kit has all rights; the URLs, a proxy's too, are those of a user who has few."""
    node = make_cluster(1, unix=unix, password="all@", login=("few", "p/%,"), users=["user few on >p/%, ~* +get"])[0]
    node.reset()
    assert node.command("CONFIG", "GET", "port")
    for url in (node.url, proxy(node).url):
        assert "//few:p%2F%25%2C@" in url
    stranger = RespConnection(node.address)
    with pytest.raises(ReplyError, match="NOAUTH"):
        stranger.command("GET", "k")
    stranger.command("AUTH", *node.login)
    assert stranger.command("GET", "k") is None
    with pytest.raises(ReplyError, match="NOPERM"):
        stranger.command("SET", "k", "v")
    stranger.close()


def test_proxy_holds_from_a_pattern_on(nodes):
    with Proxy(nodes[0]) as proxy:
        connection = RespConnection((proxy.host, proxy.port))
        proxy.when("SET", proxy.hold)
        assert connection.command("GET", "k") is None
        connection.sock.sendall(encode("SET", "k", "v"))
        eventually(lambda: b"SET" in proxy.held_bytes("up"))
        assert nodes[0].get("k") is None
        proxy.go()
        assert connection.read() == b"OK"
        connection.close()
        eventually(lambda: proxy.connections == 0)


def test_proxy_swallows_refuses_and_drops(nodes):
    with Proxy(nodes[0]) as proxy:
        connection = RespConnection((proxy.host, proxy.port), timeout_s=0.2)
        proxy.black_hole()
        with pytest.raises(OSError):
            connection.command("SET", "k", "v")
        assert nodes[0].get("k") is None
        proxy.go()
        proxy.refuse()
        with pytest.raises(OSError):
            RespConnection((proxy.host, proxy.port)).command("PING")
        proxy.go()
        other = RespConnection((proxy.host, proxy.port))
        assert other.command("PING") == b"PONG"
        proxy.drop()
        with pytest.raises(OSError):
            other.command("PING")


def test_black_hole_answers_nothing():
    with BlackHole() as hole, pytest.raises(OSError, match="timed out"):
        RespConnection((hole.host, hole.port), timeout_s=0.2)


def test_fake_server_follows_its_script():
    with FakeServer({"SET": [b"+OK\r\n", (b"-ER", b"R x\r\n")], "GET": (HOLD, b"$1\r\nv\r\n"), "QUIT": CLOSE}) as fake:
        connection = RespConnection((fake.host, fake.port))
        assert connection.command("SET", "k", "v") == b"OK"
        for _ in range(2):
            with pytest.raises(ReplyError, match="ERR x"):
                connection.command("SET", "k", "v")
        fake.let_go()
        assert connection.command("GET", "k") == b"v"
        with pytest.raises(OSError):
            connection.command("QUIT")
        assert fake.count("set") == 3 and fake.seen[0] == [b"SET", b"k", b"v"]


def test_bootstrap_ends_a_quarantine_that_begins_meanwhile(make_cluster, proxy):
    """As that of a waiter whose nodes restart: it registers a node after bootstrap has seen no marker there."""
    node = make_cluster(1, bootstrapped=False)[0]
    way = proxy(node)
    marker = marker_of(node, since=clock_ms(node), max_ttl_ms=30000)
    way.when("v2 ", lambda: node.set("libredlock:m", marker))
    bootstrap_nodes([way.url])
    with rl.opened([node.url]) as client:
        lock = client.lock()
        assert lock.acquire(0) == rl.OK, lock.message


def test_bootstrap_takes_a_quarantine_that_is_over_as_it_is(make_cluster):
    cluster = make_cluster(1, max_ttl=1)
    node = cluster[0]
    node.set("libredlock:m", marker_of(node, since=clock_ms(node) - 2000, max_ttl_ms=1000))
    cluster.bootstrap()
    assert node.has_marker

"""The proxy of the kit: bytes keep their order, cuts are exact, and no fault is in the way of another connection."""
import contextlib
import os
import random
import select
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from testing import BOTH, DOWN, UP, Proxy, RespConnection, encode, eventually

KIT = Path(__file__).resolve().parents[1] / "kit"
SET = encode("SET", "k", "v" * 50)
GET = encode("GET", "k")


def read(sock, size=None):
    """So many bytes, or all up to the end."""
    data = b""
    while size is None or len(data) < size:
        more = sock.recv(65536 if size is None else size - len(data))
        if not more:
            break
        data += more
    return data


@pytest.fixture
def pair(proxy):
    """A proxy whose server is the test, and what connects to it: (the client's socket, the server's)."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        one = proxy(listener.getsockname())
        listener.settimeout(30)

        def connect():
            client = stack.enter_context(socket.create_connection((one.host, one.port), 30))
            server = stack.enter_context(listener.accept()[0])
            server.settimeout(30)
            return client, server

        yield one, connect


@pytest.mark.parametrize("seed", range(5))
def test_order_is_kept_and_nothing_doubled(nodes, proxy, seed):
    """Pieces of commands are sent while faults come and go; the answers are those to what was sent."""
    chance = random.Random(seed)
    one = proxy(nodes[0])
    faults = [one.go, lambda: one.hold(chance.choice([UP, DOWN, BOTH])),
              lambda: one.delay(chance.uniform(0, 20), chance.uniform(0, 20)),
              lambda: one.at("ECHO", None, lambda: one.hold(chance.choice([UP, DOWN])), chance.randint(1, 3),
                             chance.choice([0, 1, 9, 20, None]), chance.choice([UP, DOWN]))]
    words = [[b"%d of %d" % (i, client) + b"\r\n" * chance.randint(0, 9) for i in range(40)] for client in range(3)]
    streams = [b"".join(encode("ECHO", word) for word in own) for own in words]
    clients = [RespConnection((one.host, one.port)) for _ in words]
    while any(streams):
        chance.choice(faults)()
        i = chance.randrange(len(streams))
        size = chance.randint(1, 150)
        clients[i].sock.sendall(streams[i][:size])
        streams[i] = streams[i][size:]
    one.go()
    assert [[client.read() for _ in own] for client, own in zip(clients, words)] == words
    assert one.held_bytes() == b""
    for client in clients:
        client.sock.shutdown(socket.SHUT_WR)
        assert client.file.read() == b""
        client.close()


@pytest.mark.parametrize("byte", [0, 1, 17, None])
def test_a_cut_in_a_command_falls_at_its_byte(pair, byte):
    one, connect = pair
    client, server = connect()
    other = encode("SET", "other", "v")
    one.at("set", "k", lambda: one.hold(UP), nth=2, byte=byte)
    client.sendall(SET + other + SET + GET)
    front = SET + other + SET[:byte]
    assert read(server, len(front)) == front
    rest = (SET + GET)[len(SET[:byte]):]
    eventually(lambda: one.held_bytes(UP) == rest)
    one.go()
    assert read(server, len(rest)) == rest


@pytest.mark.parametrize("byte", [0, 2, None])
def test_a_cut_in_a_reply_falls_at_its_byte(pair, byte):
    """Replies that were owed before the cut was set are not it."""
    one, connect = pair
    client, server = connect()
    client.sendall(SET + SET[:9])
    assert read(server, len(SET) + 9) == SET + SET[:9]
    one.at("GET", "k", lambda: one.hold(DOWN), byte=byte, direction=DOWN)
    client.sendall(SET[9:] + GET)
    assert read(server, len(SET + GET) - 9) == SET[9:] + GET
    server.sendall(b"+OK\r\n-NO\r\n$3\r\nv\r\n\r\n:1\r\n")
    reply = b"$3\r\nv\r\n\r\n"
    front = b"+OK\r\n-NO\r\n" + reply[:byte]
    assert read(client, len(front)) == front
    rest = (reply + b":1\r\n")[len(reply[:byte]):]
    eventually(lambda: one.held_bytes(DOWN) == rest)
    one.go()
    assert read(client, len(rest)) == rest


def test_two_cuts_in_one_command_both_fall(pair):
    one, connect = pair
    client, server = connect()
    seen = []
    one.at("SET", "k", lambda: seen.append(one.held_bytes()), byte=5)
    one.at("SET", "k", one.hold, byte=2)
    client.sendall(SET)
    eventually(lambda: seen == [SET[2:]])
    assert read(server, 2) == SET[:2]


@pytest.mark.parametrize("byte", [0, 17, None])
def test_late_bytes_keep_their_order(pair, byte):
    """What is behind the cut, in the same packet and in later ones, follows what is in front of it."""
    one, connect = pair
    client, server = connect()

    def drop():
        client.sendall(GET * 3)  # in the kernel at the time of the cut
        one.drop(late=True)

    one.at("SET", "k", drop, byte=byte)
    client.sendall(SET + GET + GET[:5])
    assert read(client) == b""
    assert one.connections == 0
    front = SET[:byte]
    assert read(server, len(front)) == front
    rest = (SET + GET + GET[:5] + GET * 3)[len(front):]
    assert one.held_bytes(UP) == rest
    one.go()
    assert select.select([server], [], [], 0)[0] == []
    one.deliver()
    assert read(server) == rest


def test_drop_takes_all_who_have_connected(pair):
    one, _ = pair
    for _ in range(20):
        with socket.create_connection((one.host, one.port), 30) as client:
            client.sendall(GET)
            one.drop()
            with contextlib.suppress(ConnectionResetError):
                assert read(client) == b""
    assert one.connections == 0 and one.held_bytes() == b""


def test_each_direction_has_its_end(pair):
    one, connect = pair
    client, server = connect()
    one.at("GET", "k", one.hold)  # commands are waited for to their end
    client.sendall(SET[:9])
    eventually(lambda: one.held_bytes() == SET[:9])
    client.shutdown(socket.SHUT_WR)
    assert read(server) == SET[:9]
    server.sendall(b"+OK\r\n")
    assert read(client, 5) == b"+OK\r\n" and one.connections == 1
    server.close()
    assert read(client) == b""
    eventually(lambda: one.connections == 0)


def test_client_that_is_gone_is_delivered(pair):
    one, connect = pair
    client, server = connect()
    one.hold()
    client.sendall(SET)
    eventually(lambda: one.held_bytes() == SET)
    server.sendall(b"+OK\r\n")
    client.close()
    one.go()
    assert read(server) == SET


def test_full_server_does_not_block_others(pair):
    one, connect = pair
    client, server = connect()
    client.setblocking(False)
    sent = 0
    while select.select([], [client], [], 0.2)[1] or not one.held_bytes(UP):
        with contextlib.suppress(BlockingIOError):
            sent += client.send(SET * 1000)
    other_client, other_server = connect()
    other_client.sendall(GET)
    assert read(other_server, len(GET)) == GET
    assert one.connections == 2 and one.held_bytes(UP)
    client.close()
    assert read(server) == (SET * (sent // len(SET) + 1))[:sent]


def test_stopped_node_does_not_block_others(nodes, proxy):
    one = proxy(nodes[0])
    client = RespConnection((one.host, one.port))
    nodes[0].stop()
    client.sock.setblocking(False)
    while select.select([], [client.sock], [], 0.2)[1]:
        client.sock.send(SET * 1000)
    other = RespConnection((one.host, one.port))
    one.hold(UP)
    other.sock.sendall(GET)
    eventually(lambda: GET in one.held_bytes(UP), 120)  # megabytes may stand before it
    one.drop()
    with pytest.raises(OSError):
        other.read()


def test_failing_action_is_reported(nodes):
    one = Proxy(nodes[0])
    one.when("SET", lambda: 1 / 0)
    connection = RespConnection((one.host, one.port))
    assert connection.command("SET", "k", "v") == b"OK"
    with pytest.raises(ZeroDivisionError):
        one.close()
    one.close()


def test_close_leaves_nothing(nodes, tmp_path):
    """With connections in all states; warnings about what was left open would stand on stderr."""
    script = """
        import logging, os, socket, sys, threading
        from testing import Proxy, RespConnection, encode
        slow = "Executing "  # how long a callback of the loop took is the machine's affair
        logging.getLogger("asyncio").addFilter(lambda record: not record.getMessage().startswith(slow))
        host, port = sys.argv[1], int(sys.argv[2])

        def use():
            clients = []
            with Proxy((host, port)) as one:
                for late in (False, True, None):
                    news = [RespConnection((one.host, one.port)) for _ in range(5)]
                    clients += news
                    for client in news[2:]:
                        client.command("PING")
                    news[2].close()
                    news[3].sock.shutdown(socket.SHUT_WR)
                    one.delay(100000, 100000)
                    news[4].sock.sendall(encode("PING"))
                    if late is not None:
                        one.drop(late)
                        one.go()
                one.hold()
                clients.append(RespConnection((one.host, one.port)))
            for client in clients:
                client.close()

        use()
        files, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
        use()
        print(len(os.listdir("/proc/self/fd")) - files, threads)
    """
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "always", "-c", textwrap.dedent(script), nodes[0].host,
                           str(nodes[0].port)], capture_output=True, text=True, cwd=tmp_path,
                          env=dict(os.environ, PYTHONPATH=str(KIT)))
    assert (done.stdout, done.stderr) == ("0 1\n", "")


def test_a_unix_node_may_come_and_go(make_cluster, proxy):
    node = make_cluster(1, unix=True)[0]
    one = proxy(node)
    assert RespConnection((one.host, one.port)).command("PING") == b"PONG"
    node.kill()
    with pytest.raises(OSError):
        RespConnection((one.host, one.port)).command("PING")
    node.start()
    assert RespConnection((one.host, one.port)).command("PING") == b"PONG"

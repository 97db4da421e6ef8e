"""rediss:// when bytes come in pieces, do not leave, or are wrong; and servers that misbehave."""
import ctypes
import fcntl
import os
import select
import socket
import ssl
import struct
import termios
import threading
import time
from contextlib import suppress

import pytest

import rl
from helpers import Call, lock_once, only_node, spin, why
from rl import OK, PENDING
from testing import FakeServer, eventually
from testing.wait import in_time
from tls import TLS_1_2, Peer, Rekeyer, renegotiate, update_keys

RECORD = 16384
READS = 16  # of an event, by the library


@pytest.fixture
def node(make_cluster, certificate):
    return make_cluster(1, tls=certificate).nodes[0]


@pytest.fixture
def open_patient(open_tls):
    """open_patient(node, url, **options): a client at this URL of the node that outlasts what a sanitizer slows down;
    the node allows leases of that length."""
    def make(node, url, **options):
        longest = {"max_ttl_ms": 80000}
        open_tls(node.url, **longest)
        return open_tls(url, node_timeout_ms=20000, ttl_ms=80000, **longest, **options)

    return make


@pytest.fixture
def serve():
    """Things with a close() that are closed at the end."""
    made = []

    def keep(server):
        made.append(server)
        return server

    yield keep
    for server in made:
        server.close()


# ---- more than a socket takes, or than one read gives ------------------------------------------------------------


class Gate:
    """A forwarder of one connection with small buffers; it reads what comes from the client only while it is open,
    `free` chunks more, and passes on pieces of `size` bytes to it. Others get no answer: the client may try one when
    the first is silent, and that would hide that it was stuck."""

    def __init__(self, node, free=0, size=4096):
        self.node, self.is_open, self.free, self.size = node, threading.Event(), free, size
        self.is_open.set()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.url = "rediss://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with suppress(OSError):
            client = self.listener.accept()[0]
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.create_connection(self.node.address)
            threading.Thread(target=self.forward, args=(client, server, True, 4096), daemon=True).start()
            threading.Thread(target=self.forward, args=(server, client, False, self.size), daemon=True).start()

    def forward(self, source, target, gated, size):
        with suppress(OSError):
            while data := source.recv(size):
                if gated and self.free > 0:
                    self.free -= 1
                elif gated:
                    self.is_open.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self):
        self.is_open.set()
        self.listener.close()


def connected_to(url):
    """Copies of the descriptors of this process that are connected there."""
    address, found = ("127.0.0.1", int(url.rpartition(":")[2])), []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink("/proc/self/fd/" + name).startswith("socket:"):
                one = socket.socket(fileno=os.dup(int(name)))
                if one.getpeername() == address:
                    found.append(one)
    return found


def with_small_buffers(url):
    """The client's sockets there, which keep little of what is sent."""
    found = connected_to(url)
    for one in found:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return found


def is_full(sockets):
    return not select.select([], sockets, [], 0)[1]


def unread(one):
    return struct.unpack("i", fcntl.ioctl(one, termios.FIONREAD, bytes(4)))[0]


@pytest.mark.parametrize("count, size", [(1, 15000), (1, 30000), (1, 45000), (1, 60000), (1000, 15000)])
def test_more_bytes_than_the_socket_takes_are_all_sent(node, open_patient, serve, count, size):
    """A part may be encrypted and not sent, also the last of a request that nothing follows."""
    gate = serve(Gate(node))
    client = open_patient(node, gate.url, queue="false")
    lock_once(client)
    sockets = with_small_buffers(gate.url)
    locks = [client.lock("%04d%s" % (number, "r" * size)) for number in range(count)]
    gate.is_open.clear()
    for lock in locks:
        assert lock.start(rl.ACQUIRE, 60000) == OK
        client.process()
    spin(client, lambda: is_full(sockets), 20, "the socket is full")
    gate.is_open.set()
    assert [lock.wait(10000) for lock in locks] == count * [OK]
    assert len(node.keys()) == count


def test_release_in_the_socket_is_sent_before_a_client_leaves(node, open_patient, serve):
    gate = serve(Gate(node))
    client = open_patient(node, gate.url)
    lock = client.lock("r" * 15000)
    assert lock.acquire(20000) == OK, lock.message
    sockets = with_small_buffers(gate.url)
    gate.is_open.clear()
    leaving = Call(client.drain, 20000)
    eventually(lambda: is_full(sockets), 20, "the socket is full")
    gate.is_open.set()
    assert leaving.join() == OK
    eventually(lambda: not node.keys(), 20)


def test_close_notify_is_sent_to_the_server(open_tls, certificate, serve):
    """So it may answer all, and close: rule A.5."""
    backing = serve(FakeServer())
    relay = serve(Rekeyer(certificate, (backing.host, backing.port), lambda stream: None))
    client = open_tls(relay.url, max_ttl_ms=30000, ttl_ms=30000)
    lock = client.lock()
    assert lock.acquire(20000) == OK, lock.message
    begun = time.monotonic()
    assert client.drain(20000) == OK
    in_time(time.monotonic() - begun < 15)


def test_a_handshake_may_be_larger_than_the_socket(make_mutual, authority, certificate, open_tls, serve):
    node, = make_mutual(1, certificate, config={"tls-protocols": "TLSv1.2"})
    shown = authority.issue(*("worker-%04d.example" % number for number in range(1000)))
    gate = serve(Gate(node, free=1))
    gate.is_open.clear()
    client = open_tls(gate.url, tls_cert_file=shown.cert_file, tls_key_file=shown.key_file,
                         connect_timeout_ms=20000)
    sockets = with_small_buffers(gate.url)
    spin(client, lambda: is_full(sockets), 20, "the socket is full")
    gate.is_open.set()
    lock_once(client)
    assert only_node(client)["tls"] == "TLSv1.2"


@pytest.mark.parametrize("size", [1, 7])
def test_replies_may_come_in_pieces(node, open_patient, serve, size):
    """What others leave in the thread's queue of errors, of which OpenSSL has one, is no verdict on a piece."""
    crypto = ctypes.CDLL("libcrypto.so.3")
    gate = serve(Gate(node, size=size))
    client = open_patient(node, gate.url, connect_timeout_ms=20000)
    lock = client.lock("r" * 1000)
    for operation, wait_ms in ((rl.ACQUIRE, 20000), (rl.RELEASE, 0)) * 3:
        assert lock.start(operation, wait_ms) == OK
        while lock.status == PENDING:
            crypto.ERR_new()
            crypto.ERR_set_error(6, 100, None)
            client.process()
        assert lock.status == OK, lock.message
    crypto.ERR_clear_error()
    assert only_node(client)["drops"] == 0


def test_the_rest_of_a_record_is_read_without_an_event(open_tls, authority, certificate, serve):
    """No event tells of it: the socket is empty."""
    reply = b"x" * (READS * RECORD + 100)
    reply = b"$%d\r\n%s\r\n" % (len(reply) - 11 - 5, reply[:len(reply) - 11 - 5]) + b":10\r\n"
    assert len(reply) == READS * RECORD + 100
    asked, wanted, sent = threading.Event(), threading.Event(), threading.Event()
    backing = serve(FakeServer())

    def relay(client):
        if asked.is_set():
            stalls(client)
        server = socket.create_connection((backing.host, backing.port))
        while True:
            ready = [client] if client.pending() else select.select([client, server], [], [])[0]
            if server in ready:
                client.sendall(server.recv(65536))
            if client in ready:
                data = client.recv(65536)
                if not data:
                    return
                if b"GETRANGE" in data:
                    asked.set()
                    wanted.wait(20)
                    client.sendall(reply[:100])
                    client.sendall(reply[100:])
                    sent.set()
                else:
                    server.sendall(data)

    peer = serve(Peer(relay, certificate))
    client = open_tls(peer.url, node_timeout_ms=7500, max_ttl_ms=30000, ttl_ms=30000)
    lock_once(client)
    sockets = connected_to(peer.url)
    for one in sockets:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    lock = client.lock()
    assert lock.start(rl.INSPECT, 0) == OK
    client.process()
    assert asked.wait(20)
    wanted.set()
    assert sent.wait(20)
    eventually(lambda: max(map(unread, sockets)) > len(reply), 20, "all of it has come")
    assert lock.wait(5000) == rl.BUSY, lock.message


# ---- new keys --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask, version", [(update_keys, 0), (renegotiate, TLS_1_2)])
def test_new_keys_under_load_drop_nothing(make_cluster, open_patient, certificate, serve, ask, version):
    node = make_cluster(1).nodes[0]
    relay = serve(Rekeyer(certificate, node.address, ask, every=3, version=version))
    client = open_patient(node, relay.url, queue="false")
    for _ in range(3):
        locks = [client.lock("%d" % number) for number in range(100)]
        for lock in locks:
            assert lock.start(rl.ACQUIRE, 20000) == OK
            client.process()
        assert [lock.wait(20000) for lock in locks] == 100 * [OK]
        assert len(node.keys()) == 100
        ended = [(lock.release(), lock.message) for lock in locks]
        assert [status for status, _ in ended] == 100 * [OK], ended
    assert relay.asked > 20 and only_node(client)["drops"] == 0


def test_a_server_that_stops_negotiating_is_awaited_asleep(make_cluster, open_patient, certificate, serve):
    """What is to be written waits for it, and the client sleeps."""
    node = make_cluster(1).nodes[0]
    stopped = threading.Event()

    def ask(stream):
        renegotiate(stream)
        relay.goes_on.clear()
        stopped.set()

    relay = serve(Rekeyer(certificate, node.address, lambda stream: None, version=TLS_1_2))
    client = open_patient(node, relay.url)
    lock_once(client)
    relay.ask = ask
    lock = client.lock("first")
    assert lock.start(rl.ACQUIRE, 20000) == OK
    spin(client, stopped.is_set, 20)
    others = [client.lock("%d" % number) for number in range(10)]
    assert all(other.start(rl.ACQUIRE, 20000) == OK for other in others)
    turns, end = 0, time.monotonic() + 1
    while time.monotonic() < end:
        select.select([client.fd], [], [], 0.1)
        client.process()
        client.next()
        turns += 1
    assert turns < 100
    relay.ask = lambda stream: None
    relay.goes_on.set()
    assert [one.wait(20000) for one in [lock, *others]] == 11 * [OK]


# ---- servers that misbehave ------------------------------------------------------------------------------------


def stalls(connection):
    connection.recv(1)
    threading.Event().wait(60)


def stalls_in_the_middle(connection):
    connection.recv(1)
    connection.sendall(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc")
    threading.Event().wait(60)


def drips(connection):
    connection.recv(1)
    connection.sendall(b"\x16\x03\x03\x40\x00")
    while True:
        connection.sendall(b"\x02")
        time.sleep(0.02)


def babbles(connection):
    connection.sendall(bytes(range(256)) * 256)
    stalls(connection)


def speaks_http(connection):
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    stalls(connection)


def warns(connection):
    connection.recv(1)
    while True:
        connection.sendall(b"\x15\x03\x03\x00\x02\x01\x5a" * 100)


def hangs_up(connection):
    connection.recv(65536)
    connection.close()


def resets(connection):
    connection.recv(1)
    connection.close()


@pytest.mark.parametrize("serving, words", [
    (stalls, "no answer to the TLS handshake in time; it may do without TLS (redis://)"),
    (stalls_in_the_middle, "no answer to the TLS handshake in time"),
    (drips, "no answer to the TLS handshake in time"),
    (babbles, "TLS: the server does not speak it there"),
    (speaks_http, "TLS: the server does not speak it there"),
    (warns, "TLS: too many warn alerts"),
    (hangs_up, "TLS: the server closed the connection in the handshake"),
    (resets, "TLS: the server closed the connection in the handshake")])
def test_a_handshake_that_fails_costs_the_others_nothing(make_cluster, certificate, open_tls, serve, serving, words):
    """Is told within connect_timeout_ms, and costs the other nodes nothing."""
    others = make_cluster(2, tls=certificate)
    peer = serve(Peer(serving))
    begun = time.monotonic()
    client = open_tls(*others.urls, peer.url, connect_timeout_ms=1000)
    spin(client, lambda: client.describe()["nodes"][2]["why"], 20)
    in_time(time.monotonic() - begun < 10)
    assert client.describe()["nodes"][2]["why"] == words
    used = time.thread_time()
    for _ in range(20):
        lock_once(client)
    end = time.monotonic() + 1
    spin(client, lambda: time.monotonic() > end, 20)
    assert time.thread_time() - used < 1.5, "it does not sleep"
    assert client.describe()["nodes"][2]["why"] == words and peer.connections < 60


def sends_garbage(connection):
    connection.recv(1)
    plain = socket.socket(fileno=connection.detach())
    plain.sendall(b"\x15\x03\x03\x00\x20" + bytes(32))
    kept.append(plain)


def sends_text(connection):
    connection.recv(1)
    plain = socket.socket(fileno=connection.detach())
    plain.sendall(b"-ERR not in TLS any more\r\n")
    kept.append(plain)


def ends(connection):
    """Without a farewell."""
    connection.recv(1)
    plain = socket.socket(fileno=connection.detach())
    plain.shutdown(socket.SHUT_WR)
    kept.append(plain)


def answers_nonsense(connection):
    connection.recv(1)
    connection.sendall(bytes(20000))
    stalls(connection)


def says_farewell(connection):
    """With an incomplete answer, and without closing the connection itself."""
    connection.recv(1)
    plain = socket.socket(fileno=os.dup(connection.fileno()))
    kept.append(plain)
    connection.setblocking(False)
    connection.sendall(b"+OK")
    with suppress(ssl.SSLError):
        connection.unwrap()


kept = []


@pytest.mark.parametrize("serving, version, words", [
    (sends_garbage, None, "TLS: bad record type"),
    (sends_garbage, ssl.TLSVersion.TLSv1_2, "TLS: decryption failed or bad record mac"),
    (sends_text, None, "TLS: wrong version number"),
    (ends, None, "the server closed the connection"),
    (ends, ssl.TLSVersion.TLSv1_2, "the server closed the connection"),
    (answers_nonsense, None, "Protocol error, got "),
    (says_farewell, None, "the server closed the connection"),
    (says_farewell, ssl.TLSVersion.TLSv1_2, "the server closed the connection")])
def test_nonsense_after_the_handshake_is_told_at_once(open_tls, certificate, serve, serving, version, words):
    """Is told at once, though the connection stays open."""
    peer = serve(Peer(serving, certificate, version))
    begun = time.monotonic()
    client = open_tls(peer.url, connect_timeout_ms=40000)
    said = why(client)
    for plain in kept:
        plain.close()
    kept.clear()
    assert said.startswith(words)
    in_time(time.monotonic() - begun < 15)

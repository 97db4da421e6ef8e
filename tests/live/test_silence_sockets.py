"""Connections that a network has forgotten: what sockets notice, and a server that lets nobody end them."""
import contextlib
import os
import socket

import rl
from silencing import late_set
from testing import eventually

OPTIONS = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE), (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
           (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL), (socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
           (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)]
SLOW = "user slow on >pw ~* &* +@all -client|kill"  # may not do what fences a connection



def test_sockets_notice_a_dead_peer(proxies, make_client):
    make_client([p.url for p in proxies])
    ports = {p.port for p in proxies}
    found = []
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as copy:
            if copy.family == socket.AF_INET and copy.getpeername()[1] in ports:
                found.append([copy.getsockopt(level, name) for level, name in OPTIONS])
    assert found == [[1, 10, 5, 3, 20000]] * 5


def test_late_set_without_the_fence_is_not_counted(make_cluster, make_client, proxy):
    """A server that does not let the client end its old connection executes the SET when it arrives, as after any
    broken connection. The token of that attempt is given up: no client holds a lock by it, and its key expires."""
    nodes = make_cluster(3, users=[SLOW])
    proxies = [proxy(node) for node in nodes]
    client = make_client(["redis://slow:pw@" + p.name for p in proxies])
    lock, token = late_set(client, nodes, proxies)
    for p in proxies:
        p.go()
    eventually(lambda: all(node.get("r") == token.encode() for node in nodes), what="the late SETs")
    assert lock.state == rl.FREE and lock.validity_ms == 0
    assert lock.acquire(0) == rl.BUSY and lock.token != token
    assert lock.extend() == rl.NOT_HELD

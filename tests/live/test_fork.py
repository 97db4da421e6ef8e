"""A forked child holds none of the parent's locks, sends nothing of the parent's, and its own locks work."""
import os
import select

import rl
from helpers import Call, in_child, inspected, occupy, spin
from rl import BUSY, HELD, OK
from testing import eventually


def test_inherited_handle_takes_a_lock_of_its_own(nodes, client):
    lock = client.lock()
    assert lock.acquire() == OK
    token = lock.token
    assert lock.detach() == OK
    assert lock.adopt(token) == OK and lock.extend() == OK

    def child():
        assert lock.state == rl.State.FORKED
        assert lock.acquire(0) == BUSY
        other = client.lock("free")
        assert other.acquire(5000) == OK and other.token != token
        other.release()

    in_child(child)
    assert lock.release() == OK

    def child_takes_over():
        assert lock.acquire(5000) == OK and lock.token != token
        assert lock.release() == OK

    in_child(child_takes_over)
    nodes.no_keys()


def test_tokens_of_parent_and_child_differ(client):
    read, write = os.pipe()

    def child():
        lock = client.lock("c")
        assert lock.acquire(5000) == OK
        os.write(write, lock.token.encode())
        lock.release()

    lock = client.lock("p")
    assert lock.acquire() == OK and lock.release() == OK
    in_child(child)
    in_child(child)
    assert lock.acquire() == OK
    tokens = os.read(read, 200).decode()
    assert len({tokens[:40], tokens[40:], lock.token}) == 3


def test_descriptor_keeps_its_number_and_works_in_both(nodes, client):
    fd = client.fd
    lock = client.lock()
    assert lock.start(rl.ACQUIRE) == OK
    spin(client, lambda: lock.status == OK)

    def child():
        assert client.fd == fd
        own = client.lock("own")
        own.set_tag(3)
        assert own.start(rl.ACQUIRE, 5000) == OK
        assert select.select([fd], [], [], 10)[0]
        spin(client, lambda: own.status != rl.PENDING)
        assert own.status == OK and client.next() == 3
        assert own.release() == OK

    in_child(child)
    assert lock.start(rl.RELEASE) == OK
    assert select.select([fd], [], [], 10)[0]
    spin(client, lambda: lock.status == OK)
    nodes.no_keys()


def test_a_child_has_no_operation_of_its_parent(nodes, make_client, proxies):
    """What the parent has started is the parent's alone."""
    client = make_client([p.url for p in proxies])
    lock = client.lock()
    assert lock.acquire() == OK and lock.release() == OK
    nodes.no_keys()
    for p in proxies:
        p.hold("up")
    assert lock.start(rl.ACQUIRE, 20000) == OK
    client.process()

    def child():
        assert lock.status != rl.PENDING and lock.state != HELD
        client.process()
        lock.free()
        client.free()

    in_child(child)
    for p in proxies:
        p.go()
    spin(client, lambda: lock.status == OK)
    spin(client, lambda: sum(node.calls("set") for node in nodes) >= 10)
    assert lock.release() == OK
    nodes.no_keys()
    assert sum(node.calls("set") for node in nodes) == 10


def test_a_child_forked_while_a_thread_waits_takes_locks(nodes, client):
    occupy(nodes)
    waiter = client.lock()
    waiting = Call(waiter.acquire, -1)
    eventually(lambda: waiter.status == rl.PENDING)

    def child():
        own = client.lock("own")
        assert own.acquire(5000) == OK, own.message
        assert own.release() == OK

    for _ in range(5):
        in_child(child)
    waiter.cancel()
    assert waiting.join() == rl.CANCELLED


def test_a_child_renews_its_own_locks_alone(nodes, make_client):
    """The child's keeper renews the child's locks and none of the parent's."""
    client = make_client(nodes.urls, renew="true", **rl.lapsing(6000))
    lock = client.lock()
    assert lock.acquire(5000) == OK

    def child():
        own = client.lock("own")
        assert own.acquire(5000) == OK
        token = own.token
        before = nodes[4].calls("pexpire")
        eventually(lambda: nodes[4].calls("pexpire") >= before + 4, 30)
        assert own.state == HELD and own.token == token
        assert own.release() == OK

    for node in nodes:
        node._forget_connection()  # the child talks to the nodes on connections of its own
    in_child(child)
    assert lock.state == HELD
    in_child(os._exit, 0)
    assert lock.extend() == OK


def test_a_grandchild_takes_a_lock_of_its_own(nodes, client):
    lock = client.lock()
    assert lock.acquire() == OK

    def grandchild():
        assert lock.state == rl.State.FORKED
        own = client.lock("own")
        assert own.acquire(5000) == OK and own.release() == OK

    def child():
        own = client.lock("mine")
        assert own.acquire(5000) == OK
        in_child(grandchild)
        assert own.state == HELD and own.release() == OK

    in_child(child)
    assert lock.release() == OK
    nodes.no_keys()


def test_a_forked_child_is_another_client(nodes, make_client):
    client = make_client(nodes.urls, holder_info="true")
    lock = client.lock()
    assert lock.acquire(5000) == OK
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            child = client.lock("c")
            assert child.acquire(5000) == OK and child.detach() == OK
            os.write(write, b"ok")
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 2) == b"ok"
    seen = inspected(client, "c")
    assert seen.held_by["pid"] == pid and seen.holder[:12] != lock.token[:12]
    assert inspected(client).held_by["pid"] == os.getpid()

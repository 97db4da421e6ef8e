"""What the tests of silent connections share."""
from helpers import spin
from rl import OK


def silence(proxies, **how):
    for p in proxies:
        p.silence(**how)


def taken_and_given_back(lock, nodes):
    """Every connection has been used, and owes nothing."""
    assert lock.acquire(20000) == OK, lock.message
    spin(lock.client, lambda: all(node.get("r") for node in nodes), what="all nodes have granted")
    assert lock.release() == OK
    spin(lock.client, lambda: not any(node["owed"] for node in lock.client.describe()["nodes"]))


def late_set(client, nodes, proxies):
    """A lock whose first SETs are kept in the network while the second ones are executed; it is given back."""
    lock = client.lock(ttl_ms=20000)
    taken_and_given_back(lock, nodes)
    silence(proxies)
    assert lock.acquire(0) == OK, lock.message
    spin(client, lambda: all(node.get("r") == lock.token.encode() for node in nodes), what="all nodes have granted")
    token = lock.token
    assert all(token.encode() in p.held_bytes("up") for p in proxies)
    assert lock.release() == OK
    nodes.no_keys()
    return lock, token

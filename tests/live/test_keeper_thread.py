"""Renewal in the background: the thread that does it, and the process that is stopped meanwhile."""
import os
import signal

import rl
from helpers import python
from rl import OK
from testing import eventually

HOLDER = """
import signal
client = Client(sys.argv[1].split(","), renew="true", **lapsing(4000))
assert client.lock().acquire(20000) == OK
print("held", flush=True)
signal.pause()
"""


def left_when_renewed(nodes):
    """What is left of a lease of 4 s when it is renewed, if its process is stopped until the renewal is due."""
    holder = python(HOLDER, nodes.nodes_env)
    left = [4000]
    try:
        assert holder.stdout.readline() == "held\n"
        eventually(lambda: nodes[0].pttl("r") < 3400, 30, "the keeper sleeps until the renewal")
        os.kill(holder.pid, signal.SIGSTOP)
        eventually(lambda: nodes[0].pttl("r") < 1900, 30)
        os.kill(holder.pid, signal.SIGCONT)
        eventually(lambda: left.append(nodes[0].pttl("r")) or left[-1] > 2000, 30, "it is renewed")
    finally:
        holder.kill()
        holder.communicate()
        for node in nodes:
            node.delete_keys()
    return min(left)


def test_time_that_the_process_is_stopped_delays_no_renewal(nodes):
    """Else about half a second would be left; once of five times the machine should be quick enough."""
    assert any(left_when_renewed(nodes) > 1000 for _ in range(5))


def test_one_thread_renews_for_all(nodes, make_client):
    clients = [make_client(nodes.urls, renew="true") for _ in range(3)]
    before = set(os.listdir("/proc/self/task"))
    locks = [client.lock("m%d" % i) for i, client in enumerate(clients) for _ in range(1)]
    for lock in locks:
        assert lock.acquire() == OK
    assert len(set(os.listdir("/proc/self/task")) - before) <= 1


def test_clients_are_opened_beside_the_renewal_thread(nodes, make_client):
    """The thread goes through all clients of the process, those that are just being opened, too."""
    renewing = make_client(nodes.urls, renew="true", ttl_ms=1500, node_timeout_ms=100, min_validity_ms=1)
    locks = [renewing.lock("r%d" % i) for i in range(100)]
    for _ in range(300):
        if locks and locks[-1].acquire() == OK:
            locks.pop()
        with rl.opened(nodes.urls):
            pass

"""Fencing numbers on servers that forbid something to their clients."""
import pytest

import rl
from helpers import finish, lock_once, occupy
from rl import BUSY, HELD, OK, REFUSED_CONFIG
from testing import eventually


@pytest.mark.acl_of_redis_7
def test_no_lock_is_won_without_a_number(make_cluster, make_client, proxy):
    """A SET that was thought lost is executed behind the second one, before anybody asks whose key that met."""
    server = make_cluster(1, users=["user few on >pw ~* &* +@all -client|kill"], login=("few", "pw"))[0]
    between = proxy(server)
    lock = make_client([between.url], fence="true").lock()
    lock_once(lock.client)
    occupy([server], ttl_ms=60000)

    def execute_the_first():
        server.command("DEL", "r")
        between.go()
        eventually(lambda: server.get("r"))

    between.silence()
    between.when(rb"\$1\r\nr\r\n\$4\r\n8000", execute_the_first)  # an extension
    assert lock.start(rl.ACQUIRE, 4000) == OK
    assert finish(lock) in (OK, BUSY)
    assert (lock.fence > 0) == (lock.state == HELD), lock.message


def test_a_server_that_keeps_the_key_from_us_refuses(make_cluster, make_client):
    server = make_cluster(1, users=["user few on >pw ~r ~libredlock:m ~libredlock:proof:* ~libredlock:q:* &* +@all"],
                          login=("few", "pw"))[0]
    lock = make_client([server.url], fence="true").lock()
    assert lock.acquire(0) == REFUSED_CONFIG and "NOPERM" in lock.message, lock.message
    assert server.get("r") is None

"""What the tests of the restart guard share."""
import re

import pytest

import rl
from rl import HELD, NO_QUORUM, OK

MAX_TTL_MS = 4000
GUARDED = dict(guard="marker", max_ttl_ms=MAX_TTL_MS, ttl_ms=MAX_TTL_MS, node_timeout_ms=1000, min_validity_ms="auto")
MARKER = "libredlock:m"


NEW, YES, REPLACE = rl.lib.REDLOCK_BOOTSTRAP_NEW, rl.lib.REDLOCK_BOOTSTRAP_YES, rl.lib.REDLOCK_BOOTSTRAP_REPLACE
DRY = rl.lib.REDLOCK_BOOTSTRAP_DRY


def bootstrap(urls, mode=YES, **options):
    """What an operator does: the status, and of each node what was done, whether it votes, its number and words."""
    client = rl.Client(urls, open=False, **dict(GUARDED, **options))
    status = rl.Status(rl.lib.redlock_client_bootstrap(client.handle, mode))
    nodes = [[rl.lib.redlock_client_bootstrapped(client.handle, node, field) for field in range(3)] +
             [rl.text(rl.lib.redlock_client_bootstrap_words, client.handle, node)] for node in range(len(urls))]
    return status, [(did_name(did), bool(votes), max_ttl_ms, words) for did, votes, max_ttl_ms, words in nodes]


def did_name(did):
    return rl.ffi.string(rl.lib.redlock_bootstrap_did_name(did)).decode()


def bootstrapped(urls, mode=YES, **options):
    status, nodes = bootstrap(urls, mode, **options)
    assert status == OK, nodes


def clock_ms(server):
    seconds, micros = server.command("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


def marker_of(server, since=0, nodes=1, database=0, nonce="0a1b", max_ttl_ms=MAX_TTL_MS, cluster="-", run_id=None,
              history=None):
    run_id = run_id or server.info("server")["run_id"]
    text = "v2 %s %d %d %d %s %d %s" % (run_id, since, nodes, database, nonce, max_ttl_ms, cluster)
    return text if history is None else text + " " + history


def history_of(server):
    """The field of its marker that says whether it has been a replica."""
    return server.info("replication")["master_replid2"][:16]


@pytest.fixture
def server(make_cluster):
    """One node."""
    return make_cluster(1).nodes[0]


@pytest.fixture
def guarded(make_client):
    """guarded(servers, **options): a client with the guard; the first one says before that no lock is live."""
    begun = []

    def make(servers, **options):
        urls = [server.url for server in servers]
        if not begun:
            bootstrapped(urls)
        begun.append(urls)
        return make_client(urls, **dict(GUARDED, **options))

    return make


def granted_to_another(client, first):
    """Waits until the client gets the lock of the first one; it must be free then."""
    second = client.lock()
    assert second.acquire(0) == NO_QUORUM, second.message
    assert re.search(r"quarantined.*for another \d+\.\d s", second.message) or "may have lost keys" in second.message
    assert first.validity_ms > 0, "the first lease is over, so this shows nothing"
    assert second.acquire(60000) == OK, second.message
    assert first.validity_ms == 0 and first.state != HELD
    return second


def taken_once(client, resource="other"):
    lock = client.lock(resource)
    assert lock.acquire(5000) == OK, lock.message
    assert lock.release() == OK
    return client

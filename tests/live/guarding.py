"""What the tests of the restart guard share."""
import re

import pytest

from rl import HELD, NO_QUORUM, OK

MAX_TTL_MS = 4000
GUARDED = dict(guard="marker", max_ttl_ms=MAX_TTL_MS, ttl_ms=MAX_TTL_MS, node_timeout_ms="auto", min_validity_ms="auto")
MARKER = "libredlock:m"


@pytest.fixture
def guarded(make_client):
    """guarded(servers, **options): a client with the guard; the first one says before that no lock is live."""
    begun = []

    def make(servers, **options):
        urls = [server.url for server in servers]
        if not begun:
            make_client(urls, **dict(GUARDED, guard="bootstrap"))
        begun.append(urls)
        return make_client(urls, **dict(GUARDED, **options))

    return make


def granted_to_another(client, first):
    """Waits until the client gets what the first one holds; nobody may hold it then."""
    second = client.lock()
    assert second.acquire(0) == NO_QUORUM, second.message
    assert re.search(r"quarantined for another \d+\.\d s", second.message) or "may have lost keys" in second.message
    assert first.validity_ms > 0, "the first lease is over, so this shows nothing"
    assert second.acquire(60000) == OK, second.message
    assert first.validity_ms == 0 and first.state != HELD
    return second

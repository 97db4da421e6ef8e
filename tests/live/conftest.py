"""Fixtures of the live tests: real nodes, and clients that are freed whatever happens."""
import contextlib
import functools
import sys
import time
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2] / "python" / "libredlock")]

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

import rl  # noqa: E402
from clocks import Clocks  # noqa: E402
from guarding import guarded, server  # noqa: E402, F401
from helpers import held_everywhere  # noqa: E402
from queueing import held, held_elsewhere, home_of_r, queued  # noqa: E402, F401
from servers import Servers  # noqa: E402
from testing import Cluster, FakeServer, Proxy, eventually  # noqa: E402
from testing.plugin import redlock_cluster, redlock_variant  # noqa: E402, F401
from waiters import time_of  # noqa: E402


@pytest.fixture
def are_new(request):
    """Whether the servers of the test were never used: nothing is bootstrapped for its clients."""
    return request.node.get_closest_marker("new_nodes") is not None


@pytest.fixture
def servers():
    """All servers of the test."""
    return Servers()


@pytest.fixture
def nodes(redlock_cluster, servers):  # noqa: F811
    """The session's five nodes, alive, without keys and as configured at the start."""
    redlock_cluster.reset()
    return servers.add_cluster(redlock_cluster)


@pytest.fixture
def make_cluster(servers, are_new):
    """Cluster(...) that is closed at the end of the test."""
    default = {"bootstrapped": False} if are_new else {}
    with contextlib.ExitStack() as made:
        yield lambda *args, **how: servers.add_cluster(made.enter_context(Cluster(*args, **{**default, **how})))


@pytest.fixture
def proxy(servers):
    """Proxy(...) that is closed at the end of the test."""
    with contextlib.ExitStack() as made:
        yield lambda target, *args, **how: servers.add_proxy(made.enter_context(Proxy(target, *args, **how)), target)


@pytest.fixture
def fake_server(servers):
    """FakeServer(...) that is closed at the end of the test."""
    with contextlib.ExitStack() as made:
        yield lambda *args, **how: servers.add_fake(made.enter_context(FakeServer(*args, **how)))


@pytest.fixture
def make_client(request, servers, are_new):
    """rl.Client with generous time-outs, and without holder_info unless the test has that mark, since many tests count
    what is sent; options override that. Its nodes are bootstrapped for it unless it names a guard, and it is connected
    to all that can be unless settle=False."""
    made = []
    tells = request.node.get_closest_marker("holder_info") is not None
    default = {**rl.GENEROUS_TIMEOUTS, "holder_info": "true" if tells else "false"}

    def make(nodes=None, settle=True, **options):
        if nodes is not None and not are_new and "guard" not in options:
            servers.bootstrap_for(nodes.split(",") if isinstance(nodes, str) else nodes, options)
        client = rl.Client(nodes, **{**default, **options})
        made.append(client)
        if settle:
            eventually(client.settled, 60, "all nodes are connected or known to be unusable")
        return client

    yield make
    for client in made:
        client.free()


@pytest.fixture
def client(nodes, make_client):
    """A client of the session's five nodes."""
    return make_client(nodes.urls)


@pytest.fixture
def proxies(nodes, proxy):
    """One before each of the session's five nodes."""
    return [proxy(node) for node in nodes]


@pytest.fixture
def make_clocked(make_cluster, tmp_path):
    """make_clocked(n, **cluster): servers; each has step(seconds) for its clock."""
    clocks = Clocks(tmp_path)

    def ahead_s(node):
        return time_of(node) / 1e6 - time.time()

    def step(node, seconds):
        """Until the server says so: Valkey 9 looks at the clock from time to time."""
        is_asked = seconds and node.alive and not node.stopped
        wanted_s = ahead_s(node) + seconds if is_asked else 0
        clocks.step(node, seconds)
        if is_asked:
            eventually(lambda: abs(ahead_s(node) - wanted_s) < abs(seconds) / 2, 20, "its clock is stepped")

    def make(count, **cluster):
        made = make_cluster(count, server=clocks.servers(count), **cluster).nodes
        for node in made:
            node.step = functools.partial(step, node)
        return made

    return make


@pytest.fixture
def hold(nodes, make_client):
    """hold(servers, **options): a lock of a client of its own that all of them have granted; else the five nodes."""
    def hold(servers=nodes, **options):
        lock = make_client([server.url for server in servers], **options).lock()
        assert lock.acquire(5000) == rl.OK, lock.message
        held_everywhere(lock)
        return lock

    return hold


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """It issues certificates for rediss://."""
    from tls import Authority  # not for all: it loads OpenSSL

    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def certificate(authority):
    """Of a server on loopback."""
    return authority.issue()


@pytest.fixture
def make_mutual(make_cluster):
    """make_mutual(n, certificate, ...): bootstrapped nodes, which want a certificate of every client from then on."""
    def make(count, certificate, **how):
        cluster = make_cluster(count, tls=certificate, **how)
        for node in cluster:
            node.config_set("tls-auth-clients", "yes")
        return cluster

    return make


@pytest.fixture
def open_tls(make_client, authority):
    """open_tls(*urls, **options): a client that trusts the authority, perhaps not connected yet."""
    def make(*urls, **options):
        return make_client(list(urls), settle=False,
                           **{"tls_ca_file": authority.ca_file, "connect_timeout_ms": 2000, **options})

    return make

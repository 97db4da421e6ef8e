"""Which servers a test has, and for which clients they are bootstrapped.

A marker is of one list of nodes, one max_ttl_ms and one key_prefix. The kit bootstraps a cluster for clients of all its
nodes with the defaults; make_client() has this done for other clients once, before the first of them."""
from urllib.parse import urlsplit

import rl
from testing.resp import url_of


def place(url):
    """Where a URL leads, and its database: a port of this machine or the path of a socket."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path, 0
    return parts.port, int(parts.path.strip("/") or 0)


class Servers:
    def __init__(self):
        self.nodes, self.fakes, self.ready = {}, {}, {}

    def add_cluster(self, cluster):
        for node in cluster:
            self.nodes[node.path or node.port] = node
            if cluster.bootstrapped:
                self.ready[node, 0, ""] = len(cluster), None
        return cluster

    def add_proxy(self, proxy, target):
        if target in self.nodes.values():
            self.nodes[proxy.port] = target
        return proxy

    def add_fake(self, fake):
        self.fakes[fake.port] = fake
        return fake

    def bootstrap_for(self, urls, options):
        """The nodes at these URLs vote for clients of all these nodes, with these options."""
        wanted = len(urls), options.get("max_ttl_ms")
        direct = [self._direct(url, wanted, options.get("key_prefix", "")) for url in urls]
        if any(direct):  # the others stand for themselves: at addresses without a server
            _bootstrap([url or "redis://127.0.0.1:%d" % port for port, url in enumerate(direct, 1)], options)

    def _direct(self, url, wanted, prefix):
        """The URL past proxies, if that node is to be bootstrapped; else None."""
        where, database = place(url)
        if where in self.fakes:
            self.fakes[where].bootstrap(wanted[0], database, wanted[1])
        node = self.nodes.get(where)
        if node is None or not node.alive or node.stopped or self.ready.get((node, database, prefix)) == wanted:
            return None
        self.ready[node, database, prefix] = wanted
        return url_of(node.address, None, node.password, database, node.tls)


def _bootstrap(urls, options):
    passed = {name: value for name, value in options.items() if name in ("key_prefix", "max_ttl_ms") or "tls_" in name}
    if "max_ttl_ms" in passed:
        passed["ttl_ms"] = passed["max_ttl_ms"]
    client = rl.Client(urls, open=False, connect_timeout_ms=20000, **passed)
    for mode in rl.lib.REDLOCK_BOOTSTRAP_REPLACE, rl.lib.REDLOCK_BOOTSTRAP_YES:
        rl.lib.redlock_client_bootstrap(client.handle, mode)
    client.free()

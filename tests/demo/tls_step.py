"""The step of the demo that shows TLS: nodes that speak nothing else, from the shell, C, Python and PHP."""
import os
import subprocess

from php_step import php
from steps import BIN, KEYS_END_S, LIMIT_S, PYTHON, expect, run
from testing import Cluster, Tls

# A majority is enough: a node whose connection is still being made has no version yet.
WITH = """
import asyncio, libredlock
from libredlock import aio
with libredlock.Client(node_timeout=2) as client, client.lock("orders:61") as lock:
    print(f"held for {lock.remaining:.1f} s over", max(node["tls"] for node in client.describe()["nodes"]))
async def main():
    async with aio.Client(node_timeout=2) as client, client.lock("orders:61") as lock:
        print(f"held for {lock.remaining:.1f} s by asyncio")
asyncio.run(main())
"""

RUN = """
$client = Redlock\\Client::connect(nodeTimeoutMs: 2000);
$client->lock('orders:61')->run(function (Redlock\\Hold $hold) use ($client) {
    $tls = max(array_column($client->describe()['nodes'], 'tls'));
    echo "held for {$hold->remainingMs()} ms over $tls\\n";
});
"""


def step(demo):
    """Nodes that speak TLS only: refused without an authority, then used from the shell, C, Python and PHP"""
    tls = certificate(demo.folder)
    server = os.environ.get("REDLOCK_TLS_SERVER")  # where that of the other steps has no TLS
    with Cluster(3, tls=tls, bootstrapped=False, server=server) as cluster:
        refused = subprocess.run([BIN, "doctor"], env=dict(os.environ, REDLOCK_NODES=cluster.nodes_env),
                                 capture_output=True, text=True, timeout=LIMIT_S).stdout
        print("    $ redlock doctor", "...", *refused.splitlines()[-4:], sep="\n    ")
        expect(refused.count("certificate is refused") == 3, "nobody is trusted without a reason")
        print("  the authority is named with --tls-ca-file, tls_ca_file=, tlsCaFile:, or for all by the system:")
        print("    $ export SSL_CERT_FILE=cert.pem")
        trusting = {"SSL_CERT_FILE": tls.ca_file}
        run(cluster, [BIN, "bootstrap", "--yes"], "redlock bootstrap --yes", trusting)
        out = run(cluster, [BIN, "doctor", "-v"], "redlock doctor -v", trusting)
        expect(out.count(" TLSv1.3, ") == 3 and "all 3 nodes may vote" in out, "doctor")
        run(cluster, [BIN, "run", "--node-timeout", "2s", "orders:61", "--", "echo", "the job runs"],
            "redlock run --node-timeout 2s orders:61 -- echo the job runs", trusting)
        run(cluster, [str(demo.compile("docs/examples/lock.c")), "from C"], './lock "from C"', trusting)
        out = run(cluster, [PYTHON, "-c", WITH], "python  # a with block, and asyncio", trusting)
        expect("over TLSv1.3" in out and "by asyncio" in out, "Python")
        expect("over TLSv1.3" in php(cluster, "run() around a function", RUN, trusting), "PHP")
        cluster.no_keys(KEYS_END_S)


def certificate(folder):
    """For 127.0.0.1; it is its own authority."""
    print("    $ openssl req -x509 -newkey ec ... -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=demo", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, stderr=subprocess.DEVNULL)
    return Tls(cert, cert, key)

"""What the nodes are: which server, on ports or unix sockets, and what they want of a client."""
import atexit
import shutil
import subprocess
import tempfile
from pathlib import Path

from testing import Tls

HERE = Path(__file__).resolve().parent
# What a client shows the nodes; with users the kit keeps the default user, and its password, to itself.
ACCESS = {
    "none": {},
    "password": {"password": "p@ss,word/%"},
    "acl": {"password": "the kit's own", "login": ("locker", "l@ck,er/%"),
            "users": ["user locker on >l@ck,er/% ~* +@all -@dangerous +info"]},
}


class NoServer(Exception):
    """The server that was asked for cannot be had."""


def add_options(add):
    """Adds the switches to argparse or pytest, by their functions of one signature."""
    add("--nodes", choices=["tcp", "unix", "tls"], default="tcp", help="ports, unix sockets, or ports with TLS (tcp)")
    add("--auth", choices=list(ACCESS), default="none", help="what the nodes want of a client (none)")
    add("--server", choices=["redis", "valkey", "mixed"], help="the nodes' servers ($REDLOCK_SERVER, else redis)")


def cluster_options(auth, nodes):
    return dict(ACCESS[auth], unix=nodes == "unix", tls=certificate() if nodes == "tls" else None)


def certificate():
    """For 127.0.0.1, of an unknown authority."""
    import trustme  # which only those tests need

    folder = Path(tempfile.mkdtemp(prefix="redlock-tls-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    files = [str(folder / name) for name in ("ca.pem", "cert.pem", "key.pem")]
    authority.cert_pem.write_to_path(files[0])
    made.cert_chain_pems[0].write_to_path(files[1])
    made.private_key_pem.write_to_path(files[2])
    return Tls(*files)


def servers(name):
    """The kit's setting $REDLOCK_SERVER, which the workers of -n inherit."""
    if name == "redis":
        return "redis-server"
    got = subprocess.run([str(HERE / "get-valkey")], stdout=subprocess.PIPE, text=True)
    if got.returncode != 0:
        raise NoServer("--server %s: valkey-server cannot be had" % name)
    return got.stdout.strip() if name == "valkey" else "redis-server," + got.stdout.strip()

"""What the nodes are: which server, on ports or unix sockets, and what they want of a client."""
import subprocess
from pathlib import Path

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
    add("--nodes", choices=["tcp", "unix"], default="tcp", help="ports or unix sockets (tcp)")
    add("--auth", choices=list(ACCESS), default="none", help="what the nodes want of a client (none)")
    add("--server", choices=["redis", "valkey", "mixed"], help="the nodes' servers ($REDLOCK_SERVER, else redis)")


def cluster_options(auth, nodes):
    return dict(ACCESS[auth], unix=nodes == "unix")


def servers(name):
    """What the kit is told in $REDLOCK_SERVER, which the workers of -n inherit."""
    if name == "redis":
        return "redis-server"
    got = subprocess.run([str(HERE / "get-valkey")], stdout=subprocess.PIPE, text=True)
    if got.returncode != 0:
        raise NoServer("--server %s: valkey-server cannot be had" % name)
    return got.stdout.strip() if name == "valkey" else "redis-server," + got.stdout.strip()

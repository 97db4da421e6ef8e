"""Throw-away nodes from the shell: prints a line to paste and keeps them until stopped, or runs a command."""
from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys

from .nodes import Cluster


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m libredlock.testing", description=__doc__)
    parser.add_argument("-n", type=int, default=5, metavar="N", help="number of nodes (default 5)")
    parser.add_argument("--unix", action="store_true", help="unix sockets instead of ports")
    parser.add_argument("--password", help="password of every node")
    parser.add_argument("--server", help="server program, or several with commas between, which the nodes take in turn "
                        "(default $REDLOCK_SERVER or redis-server)")
    parser.add_argument("--new", dest="bootstrapped", action="store_const", const=False,
                        help="nodes as new servers are, not bootstrapped (default where REDLOCK_GUARD is off)")
    parser.add_argument("--exec", nargs=argparse.REMAINDER, metavar="CMD",
                        help="run CMD with REDLOCK_NODES set, end the nodes, exit with its status")
    options = parser.parse_args()
    if options.n < 1:
        parser.error("argument -n: %d is not a number of nodes, at least 1 is needed" % options.n)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with Cluster(options.n, options.server, options.unix, options.password,
                 bootstrapped=options.bootstrapped) as cluster:
        if options.exec:
            return subprocess.call(options.exec, env=dict(os.environ, REDLOCK_NODES=cluster.nodes_env))
        print("export REDLOCK_NODES=" + cluster.nodes_env, flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

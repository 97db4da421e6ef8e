#!/usr/bin/env python3
"""The cluster kit for PHPUnit: five nodes until its input ends.

Each line of input is a JSON list, ["stop", 0] or ["command", 0, "PTTL", "r"]: a method of a node, its number, and
arguments. "keys", "reset", "new" and "bootstrap" are of all nodes. Each line of output is {"ok": RESULT} or
{"error": TEXT}; the first one has the URLs.
"""

import json
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))

from testing import Cluster  # noqa: E402

METHODS = {"command", "cont", "kill", "pid", "restart", "stop"}


def text(reply):
    """JSON has no bytes: those that are not UTF-8 are read as Latin-1."""
    if isinstance(reply, list):
        return [text(one) for one in reply]
    if not isinstance(reply, bytes):
        return reply
    try:
        return reply.decode()
    except UnicodeDecodeError:
        return reply.decode("latin-1")


def obey(cluster, method, *arguments):
    if method == "keys":
        return {text(key): len(nodes) for key, nodes in cluster.keys().items()}
    if method == "reset":
        return cluster.reset()
    if method == "new":
        return [node.flush() for node in cluster] and None
    if method == "bootstrap":  # for clients of the first nodes alone, with this max_ttl_ms and key_prefix
        count, max_ttl_ms, key_prefix = arguments
        return cluster.bootstrap(key_prefix, max_ttl_ms / 1000, cluster[:count])
    if method == "connections":
        return sum(row["name"] == arguments[0] for node in cluster if node.alive for row in node.clients())
    assert method in METHODS, method
    member = getattr(cluster[arguments[0]], method)
    return text(member(*arguments[1:])) if callable(member) else member


def answer(**reply):
    print(json.dumps(reply), flush=True)


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for PHPUnit, which then ends the input
    with Cluster(5) as cluster:
        answer(ok=cluster.urls)
        for line in sys.stdin:
            try:
                answer(ok=obey(cluster, *json.loads(line)))
            except Exception as error:
                answer(error=f"{line.strip()}: {error}")


if __name__ == "__main__":
    main()

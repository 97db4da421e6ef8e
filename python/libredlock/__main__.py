"""Operating nodes where the command redlock is not installed: python -m libredlock bootstrap."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Dict, List

from . import Client, RedlockError

DECLINED, USAGE, SOME_DID_NOT_ANSWER, SOME_WERE_LEFT_ALONE = 1, 64, 69, 78
PLANNED = ("registered", "replaced")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m libredlock", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="bootstrap")
    command = commands.add_parser(
        "bootstrap",
        help="let new nodes vote at once",
        description="Says that no lock is live, so that nodes that are new or were restarted vote at once. Asks first."
        " Exit status: 0 all nodes vote, 1 declined, 69 some did not answer, 78 some were left alone.",
    )
    command.add_argument("--new", action="store_true", help="for deployment scripts: only nodes that were never used")
    command.add_argument("--yes", action="store_true", help="do not ask: no lock is live")
    command.add_argument("--replace", action="store_true", help="also where another max_ttl or list is registered")
    command.add_argument("--nodes", metavar="URLS", help="with commas between them (default $REDLOCK_NODES)")
    command.add_argument("--max-ttl", type=float, metavar="SECONDS", help="the longest lease of all programs")
    command.add_argument("--cluster", metavar="NAME", help="name of this list of nodes")
    command.add_argument("--key-prefix", metavar="TEXT", help="what programs put before the names of locks")
    command.add_argument("--json", action="store_true", help="the answer as JSON")
    return top


def client_of(arguments: argparse.Namespace) -> Client:
    options: Dict[str, Any] = {name: getattr(arguments, name) for name in ("max_ttl", "cluster", "key_prefix")}
    given = {name: value for name, value in options.items() if value is not None}
    if "max_ttl" in given:
        given["ttl"] = min(10.0, given["max_ttl"])  # no lock is made
    return Client(arguments.nodes, **given)


def agrees(plan: List[Dict[str, Any]]) -> bool:
    found = ", ".join(f"{node['node']} {node['found']}" for node in plan)
    question = "is no lock live?"
    if any(node["did"] == "replaced" for node in plan):
        question = "do all programs have this max_ttl and this list of nodes, for as long as the longest lease?"
    print(f"{found}: {question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().lower().startswith("y")


def words(node: Dict[str, Any]) -> str:
    name, did, found = node["node"], node["did"], node["found"]
    if did in PLANNED:
        return f"{name}: {'registered' if did == 'registered' else 'its marker was replaced'}; it {found}"
    if did == "nothing":
        return f"{name}: votes already"
    return f"{name}: {'no answer' if did == 'no_answer' else 'left alone'}: {found}"


def bootstrap(arguments: argparse.Namespace) -> int:
    if arguments.new and (arguments.yes or arguments.replace):
        raise ValueError("--new asks nothing and replaces nothing: give it alone")
    mode = {"new": True} if arguments.new else {"replace": True} if arguments.replace else {"yes": True}
    with client_of(arguments) as client:
        if not arguments.new and not arguments.yes:
            plan = [node for node in client.bootstrap(**mode, dry=True) if node["did"] in PLANNED]
            if plan and not sys.stdin.isatty():
                raise ValueError("bootstrap asks whether no lock is live; there is no terminal: give --new or --yes")
            if plan and not agrees(plan):
                return DECLINED
        nodes = client.bootstrap(**mode)
    done = {node["did"] for node in nodes}
    status = SOME_WERE_LEFT_ALONE if "left_alone" in done else SOME_DID_NOT_ANSWER if "no_answer" in done else 0
    if arguments.json:
        name = {0: "OK", SOME_DID_NOT_ANSWER: "NO_QUORUM", SOME_WERE_LEFT_ALONE: "REFUSED_CONFIG"}[status]
        print(json.dumps({"status": name, "nodes": nodes}))
    else:
        print("\n".join(map(words, nodes)))
    return status


def main() -> int:
    arguments = parser().parse_args()
    try:
        return bootstrap(arguments)
    except (RedlockError, ValueError) as failure:
        print(f"libredlock: {failure}", file=sys.stderr)
        return USAGE


if __name__ == "__main__":
    sys.exit(main())

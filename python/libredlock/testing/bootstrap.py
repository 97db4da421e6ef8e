"""Says that no lock is live on nodes, through the package, or through the command where only the kit is at hand."""
from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any, Callable, List, Tuple

from .wait import eventually

_READY_S = 60.0
_ALL_VOTE, _SOME_ARE_AWAY, _SOME_ARE_LEFT_ALONE = 0, 69, 78  # as `redlock bootstrap` exits


def bootstrap_nodes(urls: List[str], **options: Any) -> None:
    """Lets these nodes vote at once for clients with these URLs and these options of libredlock.Client. Nodes that the
    library refuses, replicas for example, stay as they are."""
    try:
        import libredlock  # the rest of the kit needs the standard library only
    except ImportError:
        _until_nothing_is_left(lambda: _by_command(urls, options))
    else:
        _until_nothing_is_left(lambda: _by_client(libredlock, urls, options))


def _until_nothing_is_left(attempt: Callable[[], Tuple[int, str]]) -> None:
    """A program that waits for a lock meanwhile may write a marker, which starts a quarantine, after bootstrap has read
    none: bootstrap leaves that node alone, and another attempt does not. Refused nodes are left alone again."""
    said, left_alone = "", 0

    def done() -> bool:
        nonlocal said, left_alone
        status, said = attempt()
        left_alone += status == _SOME_ARE_LEFT_ALONE
        return status == _ALL_VOTE or left_alone > 1

    try:
        eventually(done, _READY_S)
    except AssertionError:
        raise AssertionError("the nodes cannot be bootstrapped: %s" % said) from None


def _by_client(libredlock: Any, urls: List[str], options: Any) -> Tuple[int, str]:
    if "max_ttl" in options:  # the default may be longer
        options = {**options, "ttl": options["max_ttl"]}
    with libredlock.Client(urls, guard="off", connect_timeout=20, **options) as client:
        client.bootstrap(replace=True)
        nodes = client.bootstrap(yes=True)
    if any(node["did"] == "no_answer" for node in nodes):
        return _SOME_ARE_AWAY, repr(nodes)
    return _ALL_VOTE if all(node["votes"] for node in nodes) else _SOME_ARE_LEFT_ALONE, repr(nodes)


def _by_command(urls: List[str], options: Any) -> Tuple[int, str]:
    """$REDLOCK_BIN, or `redlock` in the path."""
    program = os.environ.get("REDLOCK_BIN") or shutil.which("redlock")
    if program is None:
        raise RuntimeError("bootstrapping nodes takes the package libredlock or the command redlock")
    flags = ["--node=%s" % url for url in urls]
    for name, value in options.items():
        flags.append("--%s=%s" % (name.replace("_", "-"), "%gs" % value if isinstance(value, (int, float)) else value))
    for mode in ["--replace"], []:
        run = subprocess.run([program, "bootstrap", "--yes", *mode, "--connect-timeout=20s", *flags],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=dict(os.environ, REDLOCK_CONFIG=""))
    return run.returncode, run.stdout.decode(errors="replace")

"""Says that no lock is live on nodes, through the package, or through the command where only the kit is at hand."""
from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any, List

from .wait import eventually

_READY_S = 60.0
_ALL_VOTE, _SOME_ARE_REFUSED = 0, 78


def bootstrap_nodes(urls: List[str], **options: Any) -> None:
    """Lets these nodes vote at once for clients with these URLs and these options of libredlock.Client. Nodes that the
    library refuses, replicas for example, stay as they are."""
    try:
        import libredlock  # the rest of the kit needs the standard library only
    except ImportError:
        _by_command(urls, options)
    else:
        _by_client(libredlock, urls, options)


def _by_client(libredlock: Any, urls: List[str], options: Any) -> None:
    if "max_ttl" in options:  # the default may be longer
        options = {**options, "ttl": options["max_ttl"]}
    with libredlock.Client(urls, guard="off", connect_timeout=20, **options) as client:

        def done() -> bool:
            return all(node["did"] != "no_answer" for node in client.bootstrap(replace=True))

        eventually(done, _READY_S, "the nodes are bootstrapped")


def _by_command(urls: List[str], options: Any) -> None:
    """$REDLOCK_BIN, or `redlock` in the path."""
    program = os.environ.get("REDLOCK_BIN") or shutil.which("redlock")
    if program is None:
        raise RuntimeError("bootstrapping nodes takes the package libredlock or the command redlock")
    flags = ["--node=%s" % url for url in urls]
    for name, value in options.items():
        flags.append("--%s=%s" % (name.replace("_", "-"), "%gs" % value if isinstance(value, (int, float)) else value))
    command = [program, "bootstrap", "--yes", "--replace", "--connect-timeout=20s", *flags]
    said = ""

    def done() -> bool:
        nonlocal said
        run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=dict(os.environ, REDLOCK_CONFIG=""))
        said = run.stdout.decode(errors="replace")
        return run.returncode in (_ALL_VOTE, _SOME_ARE_REFUSED)

    try:
        eventually(done, _READY_S)
    except AssertionError:
        raise AssertionError("the nodes cannot be bootstrapped: %s" % said) from None

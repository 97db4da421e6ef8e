"""What the steps of the demo in other languages share."""
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("REDLOCK_BUILD_DIR") or ROOT / "build" / "dev")
BIN = os.environ.get("REDLOCK_BIN") or str(BUILD / "redlock")
PYTHON = os.environ.get("REDLOCK_PYTHON") or str(ROOT / "build" / "venv-python" / "bin" / "python")

LIMIT_S = 300
KEYS_END_S = 60  # a program that exits waits for slow nodes only so long; a key that it leaves there ends with its TTL


def run(cluster, command, shown, more=None):
    """more: variables of the environment"""
    print("    $ " + shown)
    environment = dict(os.environ, REDLOCK_NODES=cluster.nodes_env, **more or {})
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    print("".join(f"    {line}\n" for line in (done.stdout + done.stderr).splitlines()), end="")
    expect(done.returncode == 0, shown)
    return done.stdout


def expect(condition, what):
    if not condition:
        raise AssertionError(what)

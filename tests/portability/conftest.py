"""Other architectures, releases and libraries than the machine's own: whole builds, so one thing at a time."""
import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build/portability"
UNITS = sorted(path.stem for path in (ROOT / "tests/unit").glob("test_*.c"))

sys.path[:0] = [str(ROOT / "tests/kit"), str(ROOT / "tests/packages"), str(ROOT / "packages")]
pytest_plugins = ["testing.plugin"]

from bare import PATIENT, run  # noqa: E402
from roots import Root  # noqa: E402


@pytest.fixture(scope="session")
def make_root():
    """make_root(suite, architecture, packages): unpacked once for all processes of the run."""
    def make(suite, architecture, packages):
        folder = WORK / f"{suite}-{architecture}"
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return Root(folder, suite, architecture, packages)

    return make


def build(source, folder, *options, targets=("redlock", *UNITS), **environment):
    run("cmake", "-G", "Ninja", "-S", source, "-B", folder, "-DREDLOCK_WARNINGS_AS_ERRORS=ON",
        "-DCMAKE_BUILD_TYPE=None", *options, env={**os.environ, **environment})
    run("ninja", "-C", folder, "-j", "2", *targets)


def check_units(folder, *launcher, **environment):
    for unit in UNITS:
        said = run(*launcher, folder / "tests/unit" / unit, env={**os.environ, **environment})
        assert "[  PASSED  ]" in said and "[  FAILED  ]" not in said, said


def check_command(nodes, command, *launcher):
    """A lock is taken, seen, refused to another, and released."""
    environment = {**os.environ, **PATIENT, "REDLOCK_NODES": nodes.nodes_env}

    def redlock(*words):
        return run(*launcher, command, *words, env=environment)

    token = redlock("acquire", "--ttl", "30s", "--wait", "30s", "ported").strip()
    assert re.fullmatch(r"[0-9a-f]{40}", token)
    assert "held" in redlock("status", "ported")
    busy = subprocess.run([*map(str, launcher), str(command), "run", "-n", "ported", "--", "true"], env=environment,
                          capture_output=True)
    assert busy.returncode == 75, busy.stderr
    redlock("release", "ported", token)
    assert redlock("run", "ported", "--", "sh", "-c", "echo $REDLOCK_RESOURCE") == "ported\n"
    nodes.no_keys()

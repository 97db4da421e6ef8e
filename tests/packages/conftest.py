import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))
pytest_plugins = ["testing.plugin"]

for setting in "REDLOCK_GUARD", "REDLOCK_MAX_TTL_MS":
    os.environ.pop(setting, None)  # as in the containers: their programs and these nodes need the same

import bare  # noqa: E402
import pages  # noqa: E402
from testing import Cluster  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
MADE = Path(os.environ.get("REDLOCK_PACKAGES", ROOT / "build/packages"))
BARE = ROOT / "build/bare"
REPOSITORY = "/usr/src/libredlock"


def pytest_collection_modifyitems(items):
    """Cases in bare containers are a part of their own."""
    for item in items:
        if "base" in item.fixturenames:
            item.add_marker("bare")


@pytest.fixture(scope="session")
def redlock_cluster():
    """As many as the pages have."""
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def version():
    return re.search(r'REDLOCK_VERSION "(.*)"', (ROOT / "core/include/redlock.h").read_text()).group(1)


@pytest.fixture(scope="session")
def made():
    """The folder that ./dev package has filled."""
    assert MADE.is_dir(), f"{MADE} is not there: ./dev package makes it"
    return MADE


@pytest.fixture(scope="session")
def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.split("\0") if name and os.path.lexists(ROOT / name)]


@pytest.fixture(scope="session")
def base():
    """The minimal Debian under all containers, made once for all processes of the run."""
    reason = bare.impossible()
    if reason:
        pytest.skip(reason)
    BARE.mkdir(parents=True, exist_ok=True)
    with open(BARE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (BARE / "ready").exists():
            shutil.rmtree(BARE / "base", ignore_errors=True)
            typed = "\n".join((ROOT / page).read_text() for page in pages.PAGES)
            bare.make_base(BARE / "base", pages.packages(typed) | {"composer", "man-db", "systemd"})
            (BARE / "ready").touch()
    return BARE / "base"


@pytest.fixture
def container(base, request):
    above = BARE / re.sub(r"\W+", "-", request.node.name)
    shutil.rmtree(above, ignore_errors=True)
    yield bare.Container(base, above)
    shutil.rmtree(above)


@pytest.fixture
def clone(container, tracked):
    """A container with the repository in it, as a fresh clone has it."""
    for name in tracked:
        target = container.path(f"{REPOSITORY}/{name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    return container

"""For all tests: signals as a terminal gives them. Whoever starts the tests may ignore some, as nohup and a shell's
background do; programs inherit that and rightly keep to it, but the tests send these signals.

The command that the kit bootstraps nodes with; the restart guard is on, as it is for users.

And a mark on cases that are late, for tests/tools/late.py, and samples: of those that are much alike, of all."""

import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent / "tools"))
import late  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
TYPED = r"^( {4}|(apt-get|pip|cmake|make|php|python|redlock|export|cd|\./))"  # lines of a page
BUILD = Path(os.environ.get("REDLOCK_BUILD_DIR") or ROOT / "build/dev")
os.environ.setdefault("REDLOCK_BIN", str(BUILD / "redlock"))
for setting in "REDLOCK_GUARD", "REDLOCK_MAX_TTL_MS":
    os.environ.pop(setting, None)

signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)


def pytest_addoption(parser):
    parser.addoption("--sample", help="only a twentieth of the cases, chosen by this text")
    parser.addoption("--of", type=int, default=20, help="with --sample: another part than a twentieth")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    if call.excinfo is not None:
        late.mark(item, call.when, call.excinfo.value)


def pytest_collection_modifyitems(config, items):
    keep_one_of_each(items)
    sample, part = config.getoption("--sample"), config.getoption("--of")
    if sample is not None:
        items[:] = [item for item in items if zlib.crc32((sample + item.nodeid).encode()) % part == 0]


def keep_one_of_each(items):
    """Where the run has a sample, one of the cases with the same mark one_of, and those whose files were changed."""
    sample, groups = os.environ.get("REDLOCK_SAMPLE"), {}
    for item in items:
        mark = item.get_closest_marker("one_of")
        if sample and mark:
            groups.setdefault(mark.args[0], []).append((item, mark.args[1:]))
    for group in groups.values():
        chosen = int(sample[:7], 16) % len(group)
        left_out = [item for number, (item, files) in enumerate(group)
                    if number != chosen and not any(map(was_changed, files))]
        items[:] = [item for item in items if item not in left_out]


def was_changed(file):
    """In the last ten commits or since, a page not in prose alone; if that cannot be told, too."""
    lines = TYPED if file.endswith(".md") else "."
    return subprocess.run(["git", "diff", "--quiet", "-G", lines, "HEAD~10", "--", file], cwd=ROOT,
                          capture_output=True).returncode != 0

"""For all tests: signals as a terminal gives them. Whoever starts the tests may ignore some, as nohup and a shell's
background do; programs inherit that and rightly keep to it, but the tests send these signals.

The command that the kit bootstraps nodes with; the restart guard is on, as it is for users.

And a mark on cases that are late, for tests/tools/late.py."""

import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent / "tools"))
import late  # noqa: E402

BUILD = Path(os.environ.get("REDLOCK_BUILD_DIR") or Path(__file__).resolve().parents[1] / "build/dev")
os.environ.setdefault("REDLOCK_BIN", str(BUILD / "redlock"))
for setting in "REDLOCK_GUARD", "REDLOCK_MAX_TTL_MS":
    os.environ.pop(setting, None)

signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    if call.excinfo is not None:
        late.mark(item, call.when, call.excinfo.value)

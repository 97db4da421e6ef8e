"""BSD and macOS: the core compiles there, without a warning. Nothing of it can be run here; what it does with a kqueue
is tested on Linux (./dev build kqueue)."""
import os

import pytest

from bare import run
from conftest import ROOT, WORK

ZIG = os.environ.get("REDLOCK_ZIG", ROOT / "build/venv-zig/bin/python")
FLAGS = ["-std=c11", "-D_GNU_SOURCE=", "-Wall", "-Wextra", "-Wstrict-prototypes", "-Werror", "-O0", "-c"]

pytestmark = pytest.mark.timeout(900)


@pytest.mark.one_of("system")
@pytest.mark.parametrize("target", ["aarch64-macos", "x86_64-freebsd", "aarch64-netbsd", "x86_64-openbsd"])
def test_the_core_compiles(target, tmp_path):
    sources = [ROOT / name for name in (ROOT / "core/sources.txt").read_text().split()]
    hiredis = run("pkg-config", "--cflags-only-I", "hiredis").split()
    run(ZIG, "-m", "ziglang", "cc", "-target", target, *FLAGS, f"-I{ROOT}/core/include", *hiredis,
        *sources, cwd=tmp_path, env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(WORK / "zig")})

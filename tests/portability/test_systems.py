"""BSD and macOS: the core compiles there, without a warning. Nothing of it can be run here; what it does with a kqueue
is tested on Linux (./dev build kqueue)."""
import json
import os
import sys
import sysconfig

import pytest

from bare import run
from conftest import ROOT

ZIG = os.environ.get("REDLOCK_ZIG", ROOT / "build/venv-packages/bin/python")
FLAGS = ["-std=c11", "-D_GNU_SOURCE=", "-Wall", "-Wextra", "-Wstrict-prototypes", "-Werror", "-O0", "-c",
         "-fno-sanitize=undefined"]  # zig's default without optimizing, which takes half the time

pytestmark = pytest.mark.timeout(900)


@pytest.mark.one_of("system")
@pytest.mark.parametrize("target", ["aarch64-macos", "x86_64-freebsd", "aarch64-netbsd", "x86_64-openbsd"])
def test_the_core_compiles(target, tmp_path):
    sources = [ROOT / name for name in (ROOT / "core/sources.txt").read_text().split()]
    hiredis = run("pkg-config", "--cflags-only-I", "hiredis").split()
    run(ZIG, "-m", "ziglang", "cc", "-target", target, *FLAGS, f"-I{ROOT}/core/include", *hiredis,
        *sources, cwd=tmp_path)


# What setup.py chooses on a Mac, and cffi's wrapper.
CHOICE = """
import json, runpy, sys
import cffi, setuptools, setuptools.command.bdist_wheel, sysconfig
sysconfig.get_config_vars()
setuptools.setup = lambda **options: given.update(options)
sys.platform, given = "darwin", {}
runpy.run_path("setup.py")
builder = runpy.run_path("bindings/cffi_build.py")["ffibuilder"]
builder.emit_c_code(sys.argv[1])
_, _, _, chosen = builder._assigned_source
print(json.dumps([given["scripts"], chosen["sources"], chosen["extra_compile_args"], chosen["extra_link_args"]]))
"""


@pytest.mark.one_of("system")
def test_the_python_extension_is_linked_for_macos(tmp_path):
    said = run(sys.executable, "-c", CHOICE, tmp_path / "_core.c", cwd=ROOT)
    words, choice = said.splitlines()[0], said.splitlines()[-1]
    scripts, sources, compiled_with, linked_with = json.loads(choice)
    assert words == "libredlock on darwin, without the command redlock: for development; not tested there"
    assert scripts == [] and "core/src/node/poller_kqueue.c" in sources
    python = sysconfig.get_path("include")  # Linux's; only its types are needed
    linked_with = [word for word in linked_with if "hiredis" not in word]  # a Mac's own, found when it is loaded
    run(ZIG, "-m", "ziglang", "cc", "-target", "aarch64-macos", *compiled_with, "-O0", "-fno-sanitize=undefined",
        "-D_GNU_SOURCE=", "-DPy_LIMITED_API=0x03090000", "-Icore/include", f"-I{python}", "-idirafter", "/usr/include",
        "-dynamiclib", "-undefined", "dynamic_lookup", tmp_path / "_core.c", *sources, *linked_with, "-o",
        tmp_path / "_core.so", cwd=ROOT)
    with open(tmp_path / "_core.so", "rb") as made:
        assert made.read(4) == b"\xcf\xfa\xed\xfe"  # Mach-O, 64 bits

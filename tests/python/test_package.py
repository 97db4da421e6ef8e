"""Building and installing: wheel, sdist, the wheel with hiredis in it, and other interpreters."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import libredlock
from libredlock import _core
from libredlock.testing.wait import Late

ROOT = Path(__file__).resolve().parent.parent.parent


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def environment(folder, interpreter=sys.executable):
    """An empty virtual environment's python. It has no pip of its own: to make one takes longer than all else."""
    run(interpreter, "-m", "venv", "--without-pip", folder)
    return folder / "bin" / "python"


def pip(python, *arguments):
    return run(sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet", *arguments,
               cwd="/")


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """A copy of the tree without what was built, as a fresh clone has it."""
    copy = tmp_path_factory.mktemp("clone") / "libredlock"
    skipped = shutil.ignore_patterns(".git", "build", "*.egg-info", "__pycache__", "node_modules", "vendor")
    shutil.copytree(ROOT, copy, ignore=skipped)
    return copy


@pytest.fixture(scope="session")
def wheel():
    """What these tests' own package was installed from."""
    (wheel,) = (ROOT / "build/wheel").glob("*.whl")
    return wheel


def version_of_the_header():
    return re.search(r'REDLOCK_VERSION "(.*)"', (ROOT / "core/include/redlock.h").read_text()).group(1)


def test_the_version_is_the_header_s(wheel):
    assert libredlock.__version__ == version_of_the_header()
    assert wheel.name.startswith(f"libredlock-{version_of_the_header()}-cp39-abi3-")


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert all(name.startswith(("libredlock/", "libredlock-")) for name in names)
    assert {"libredlock/py.typed", "libredlock/_core.abi3.so", "libredlock/testing/plugin.py"} <= set(names)
    assert [name for name in names if name.endswith(".data/scripts/redlock")]


@pytest.mark.parametrize("disabled, limited", [(0, True), (None, True), (1, False)])
def test_the_stable_abi_is_left_out_where_there_is_no_gil(disabled, limited):
    """Free-threaded CPython has none: setuptools and cffi would refuse."""
    source = f"""
import json, runpy, sys, sysconfig, types
import cffi, setuptools
sys.modules["setuptools.command.bdist_wheel"] = types.SimpleNamespace(bdist_wheel=object)
asked = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: {disabled} if name == "Py_GIL_DISABLED" else asked(name)
setuptools.setup = lambda **options: given.update(options)
cffi.FFI.set_source = lambda self, *_, py_limited_api, **options: given.update(py_limited_api=py_limited_api)
given = {{}}
runpy.run_path("setup.py")
runpy.run_path("bindings/cffi_build.py")
print(json.dumps([given["options"].get("bdist_wheel", {{}}).get("py_limited_api"), given["py_limited_api"]]))
"""
    said = json.loads(run(sys.executable, "-c", source, cwd=ROOT))
    assert said == (["cp39", True] if limited else [None, False])


def test_modules_come_with_their_first_use():
    source = """
import sys
import libredlock
assert not any(name in sys.modules for name in ("asyncio", "libredlock.aio", "libredlock.prometheus"))
print(libredlock.aio.Client, libredlock.prometheus.Collector, libredlock.otel.instrument, libredlock.testing.Cluster)
try:
    libredlock.nobody
except AttributeError as failure:
    print(failure)
"""
    said = run(sys.executable, "-c", source)
    assert "libredlock.aio.Client" in said and said.endswith("module 'libredlock' has no attribute 'nobody'\n")


def test_nothing_but_the_init_function_is_exported():
    symbols = run("nm", "-D", "--defined-only", _core.__file__).split()[2::3]
    assert [name for name in symbols if not name.startswith(("_init", "_fini"))] == ["PyInit__core"]


def test_the_extension_needs_only_the_stable_abi():
    needed = run("nm", "-D", "--undefined-only", _core.__file__).split()
    private = [name for name in needed if name.startswith("_Py") and name not in ("_Py_Dealloc", "_Py_NoneStruct")]
    assert private == []


def test_without_hiredis_one_line_says_what_to_install(sources, tmp_path):
    (tmp_path / "pkg-config").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "pkg-config").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "bindings/cffi_build.py"], cwd=sources, env=env, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert len(done.stderr.strip().splitlines()) == 1 and "libhiredis-dev" in done.stderr


def test_without_a_compiler_one_line_says_what_to_install(sources):
    done = subprocess.run([sys.executable, "bindings/cffi_build.py"], cwd=sources, capture_output=True, text=True,
                          env={**os.environ, "CC": "no-such-cc", "REDLOCK_LIBRARIES": "system"})
    assert done.returncode != 0
    assert len(done.stderr.strip().splitlines()) == 1 and "there is no no-such-cc" in done.stderr, done.stderr


def test_what_freezes_programs_finds_the_module_of_cffi():
    source = f"""
import modulefinder
finder = modulefinder.ModuleFinder(excludes=["json", "typing"])  # which import most of Python
finder.load_file({str(Path(libredlock.__file__).parent / "_native.py")!r})
print("_cffi_backend" in {{*finder.modules, *finder.badmodules}})
"""
    assert run(sys.executable, "-c", source) == "True\n"


def interpreters():
    """Other CPythons by their usual names, on PATH and where pyenv and Debian put them."""
    places = [*os.environ.get("PATH", "").split(os.pathsep), "/usr/bin", "/usr/local/bin"]
    places += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin")))
    for minor in (9, 10, 11):  # those that the project promises and that are at hand
        if minor == sys.version_info[1]:
            continue
        found = (runs(os.path.join(place, f"python3.{minor}")) for place in places)
        yield f"3.{minor}", next((path for path in found if path), None)


def runs(path):
    """The path if it is an interpreter with venv: a shim that points nowhere is none."""
    probe = [path, "-c", "import ensurepip, venv"]
    if os.path.exists(path) and subprocess.run(probe, capture_output=True).returncode == 0:
        return path
    return None


def a_third():
    """Of cases that have passed on this interpreter, where the run has a sample."""
    sample = os.environ.get("REDLOCK_SAMPLE")
    return [f"--sample={sample}", "--of=3"] if sample else []


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.one_of("interpreter")
@pytest.mark.parametrize("version, interpreter", list(interpreters()))
def test_the_wheel_passes_the_tests_on_other_interpreters(version, interpreter, wheel, tmp_path):
    if interpreter is None:
        pytest.skip(f"python{version} is not installed")
    python = environment(tmp_path / "e", interpreter)
    pip(python, "install", wheel, "pytest", "pytest-timeout", "pytest-xdist", "hypothesis")
    tests = Path(__file__).parent
    same_everywhere = [f"--ignore={tests / name}" for name in ("test_package.py", "test_docs.py", "test_types.py")]
    junit = tmp_path / "junit.xml"
    wanted = [tests, "-m", "not slow", f"--junitxml={junit}", *same_everywhere, *a_third()]
    done = subprocess.run([python, "-m", "pytest", "-q", "-n", "3", *wanted], capture_output=True, text=True, cwd="/")
    if done.returncode and subprocess.run([sys.executable, ROOT / "tests/tools/late.py", junit]).returncode == 0:
        raise Late(done.stdout[-4000:])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert re.search(r"\d+ passed", done.stdout)

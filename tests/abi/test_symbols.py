"""What the shared library exports, against the reviewed list symbols.txt. The list only grows."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("REDLOCK_BUILD_DIR", ROOT / "build/dev"))
RELEASE = ROOT / "build/release"  # optimized as one unit
REVIEWED = (ROOT / "tests/abi/symbols.txt").read_text().split()
NODE = "REDLOCK_0"

sys.path.insert(0, str(ROOT / "bindings"))
import cdef  # noqa: E402


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def exported(library):
    """Names with their versions; the version's own entry is left out."""
    names = (line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines())
    return sorted(name for name in names if name != NODE)


def dynamic(library, tag):
    lines = output("readelf", "-dW", library).splitlines()
    return [line.split("[")[1].rstrip("]") for line in lines if f"({tag})" in line]


@pytest.fixture(scope="module")
def with_static_hiredis(tmp_path_factory):
    build = tmp_path_factory.mktemp("static-hiredis")
    output("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DREDLOCK_STATIC_HIREDIS=ON", "-DREDLOCK_TESTS=OFF",
           "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-g0")
    output("cmake", "--build", build, "--target", "libredlock")
    return build / "libredlock.so"


def test_the_list_is_the_header():
    assert REVIEWED == sorted(cdef.functions())


@pytest.mark.parametrize("build", [BUILD, RELEASE], ids=["dev", "release"])
def test_exports_are_the_list(build):
    assert exported(build / "libredlock.so") == [f"{name}@@{NODE}" for name in REVIEWED]


def test_exports_are_the_list_with_hiredis_linked_in(with_static_hiredis):
    assert exported(with_static_hiredis) == [f"{name}@@{NODE}" for name in REVIEWED]
    assert not any("hiredis" in name for name in dynamic(with_static_hiredis, "NEEDED"))
    assert "redisReaderFeed" in output("nm", with_static_hiredis), "hiredis was not linked in"


def test_the_static_library_of_a_release_links_with_any_compiler():
    assert ".gnu.lto" not in output("readelf", "-SW", RELEASE / "libredlock.a")


def test_the_library_has_a_soname_and_is_never_unloaded():
    library = BUILD / "libredlock.so"
    assert dynamic(library, "SONAME") == ["libredlock.so.0"]
    assert "NODELETE" in output("readelf", "-dW", library)


def test_global_names_of_the_static_library_have_our_prefixes():
    lines = output("nm", "-g", "--defined-only", BUILD / "libredlock.a").splitlines()
    names = [line.split()[-1] for line in lines if len(line.split()) == 3]
    assert set(REVIEWED) <= set(names)
    assert [name for name in names if not name.startswith(("redlock_", "rlk_"))] == []

"""The version stands once, in redlock.h; every other place reads it or is found here when it does not."""

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("REDLOCK_BUILD_DIR", ROOT / "build/dev"))

sys.path.insert(0, str(ROOT / "bindings"))
import cdef  # noqa: E402

VERSION = cdef.version()


def test_it_has_three_numbers():
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


def test_the_library_says_it():
    version = ctypes.CDLL(str(BUILD / "libredlock.so")).redlock_version
    version.restype = ctypes.c_char_p
    assert version().decode() == VERSION
    assert (BUILD / "libredlock.so").resolve().name == f"libredlock.so.{VERSION}"


def test_pkg_config_and_cmake_say_it():
    assert f"\nVersion: {VERSION}\n" in (BUILD / "libredlock.pc").read_text()
    assert f'set(PACKAGE_VERSION "{VERSION}")' in (BUILD / "libredlock-config-version.cmake").read_text()


def test_the_command_says_it():
    said = subprocess.run([BUILD / "redlock", "--version"], check=True, capture_output=True, text=True).stdout
    assert said.split()[-1] == VERSION


def test_changelog_begins_with_it():
    """Above it stands only what is not released yet, as Keep a Changelog has it."""
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert [heading for heading in headings if heading != "Unreleased"][0] == VERSION
    assert "Unreleased" not in headings[1:]


def test_it_is_written_nowhere_else_in_what_is_built():
    """Build files that name a version would be a second place."""
    for name in ("CMakeLists.txt", "cmake/libredlock.pc.in", "setup.py", "pyproject.toml"):
        path = ROOT / name
        if path.exists():
            assert VERSION not in path.read_text(), f"{name} repeats the version"

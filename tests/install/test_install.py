"""A stranger's program is built against what was installed, by pkg-config and by CMake."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs/examples/lock.c"
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "REDLOCK_"))}


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], env={**CLEAN, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Configured for one prefix and installed into another, as packagers do."""
    build, prefix = tmp_path_factory.mktemp("build"), tmp_path_factory.mktemp("prefix")
    run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DREDLOCK_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_INSTALL_LIBDIR=lib")
    run("cmake", "--build", build)
    run("cmake", "--install", build, "--prefix", prefix)
    return prefix


def pkg_config(prefix, *flags):
    return run("pkg-config", *flags, "libredlock", PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig")).split()


def refused_words(program, **environment):
    """The example without nodes: it starts, calls the library and says what is missing."""
    done = subprocess.run([str(program)], env={**CLEAN, **environment}, capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


def test_files(prefix):
    installed = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    wanted = {"include/redlock.h", "lib/libredlock.a", "lib/libredlock.so", "lib/libredlock.so.0",
              "bin/redlock", "lib/pkgconfig/libredlock.pc", "lib/cmake/libredlock/libredlock-config.cmake",
              "share/man/man1/redlock.1", "share/man/man3/libredlock.3", "share/man/man5/redlock.conf.5",
              "share/bash-completion/completions/redlock", "share/zsh/site-functions/_redlock",
              "share/fish/vendor_completions.d/redlock.fish"}
    assert wanted <= installed
    allowed = ("include/redlock.h", "lib/libredlock.", "lib/pkgconfig/", "lib/cmake/libredlock/", "bin/redlock",
               "share/")
    assert [name for name in sorted(installed) if not name.startswith(allowed)] == []


def test_the_command_finds_its_library(prefix):
    assert run(prefix / "bin/redlock", "--version").startswith("redlock ")


def test_shared_through_pkg_config(prefix, tmp_path):
    run("gcc", EXAMPLE, "-o", tmp_path / "lock", *pkg_config(prefix, "--cflags", "--libs"))
    assert "nodes" in refused_words(tmp_path / "lock", LD_LIBRARY_PATH=str(prefix / "lib"))
    assert "libredlock.so.0" in run("readelf", "-d", tmp_path / "lock")


def test_static_through_pkg_config(prefix, tmp_path):
    wanted = pkg_config(prefix, "--static", "--cflags", "--libs")
    flags = [flag.replace("-lredlock", "-l:libredlock.a") for flag in wanted]
    run("gcc", EXAMPLE, "-o", tmp_path / "lock", *flags)
    assert "nodes" in refused_words(tmp_path / "lock")


@pytest.mark.parametrize("target", ["libredlock", "libredlock_static"])
def test_through_cmake(prefix, tmp_path, target):
    (tmp_path / "CMakeLists.txt").write_text(f"""
        cmake_minimum_required(VERSION 3.22)
        project(stranger C)
        find_package(libredlock 0.1 REQUIRED)
        add_executable(lock {EXAMPLE})
        target_link_libraries(lock PRIVATE libredlock::{target})
    """)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    assert "nodes" in refused_words(tmp_path / "build/lock")


def test_a_test_build_is_not_installed(tmp_path):
    run("cmake", "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja", "-DREDLOCK_TESTS=OFF", "-DREDLOCK_TEST_BUILD=ON")
    done = subprocess.run(["cmake", "--install", tmp_path / "build", "--prefix", tmp_path / "prefix"], env=CLEAN,
                          capture_output=True, text=True)
    assert done.returncode != 0 and "not for use" in done.stderr
    assert not (tmp_path / "prefix").exists()

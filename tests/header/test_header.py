"""The header is the interface description: compilers of C and C++, cffi and SWIG read it as it is."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("REDLOCK_BUILD_DIR", ROOT / "build/dev"))
INCLUDE = ROOT / "core/include"
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]

sys.path.insert(0, str(ROOT / "bindings"))
import cdef  # noqa: E402


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], env={**os.environ, **environment},
                          capture_output=True, text=True)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def with_library(nodes):
    paths = {"CPATH": INCLUDE, "LIBRARY_PATH": BUILD, "LD_LIBRARY_PATH": BUILD, "REDLOCK_NODES": nodes.nodes_env}
    return {name: str(value) for name, value in paths.items()}


@pytest.mark.parametrize("compiler, language, standard", [
    ("gcc", "c", "c11"), ("clang", "c", "c11"), ("gcc", "c", "c99"),
    ("g++", "c++", "c++11"), ("g++", "c++", "c++20"), ("clang++", "c++", "c++11"),
])
def test_it_compiles_alone(compiler, language, standard):
    run(compiler, "-x", language, f"-std={standard}", *STRICT, INCLUDE / "redlock.h")


def test_it_holds_nothing_that_a_tool_can_not_read():
    text = cdef.declarations()
    unreadable = {"a variadic function": r"\.\.\.", "a callback": r"\(\s*\*", "an inline function": r"\binline\b",
                  "a struct with fields": r"struct\s+\w*\s*\{", "a macro left over": r"REDLOCK_(API|CHECK)\b",
                  "a directive": r"^#"}
    for what, pattern in unreadable.items():
        assert not re.search(pattern, text, re.M), f"{what} in\n{text}"


def test_the_declarations_are_all_that_the_compiler_sees():
    declared = re.findall(r"\b(redlock_\w+)\s*\(", run("gcc", "-E", "-P", "-DREDLOCK_PARSED", INCLUDE / "redlock.h"))
    assert cdef.functions() == declared
    assert len(set(declared)) == len(declared) >= 30


def test_enums_keep_their_values_in_the_declarations():
    from cffi import FFI
    ffi = FFI()
    ffi.cdef(cdef.declarations())
    statuses = ffi.typeof("enum redlock_status").relements
    assert statuses["REDLOCK_OK"] == 0
    assert sorted(statuses.values()) == list(range(len(statuses)))


def test_the_example_in_c_compiles_and_runs(nodes, tmp_path):
    program = tmp_path / "lock"
    environment = with_library(nodes)
    run("gcc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", ROOT / "docs/examples/lock.c", "-o", program,
        "-lredlock", **environment)
    out = run(program, "example:c", **environment)
    assert "extended: OK" in out and "\nOK: " in out


def test_the_example_runs_through_cffi(nodes):
    out = run(sys.executable, ROOT / "docs/examples/lock_cffi.py", "example:cffi", **with_library(nodes))
    assert [line.split()[0] for line in out.splitlines()] == ["OK"] * 3


def test_the_example_runs_through_swig_in_php(nodes, tmp_path):
    wrapper, extension = tmp_path / "wrapper.c", tmp_path / "redlock_header.so"
    environment = with_library(nodes)
    run("swig", "-php", "-Wall", "-Werror", f"-I{INCLUDE}", "-outdir", tmp_path, "-o", wrapper,
        ROOT / "tests/header/lock.i")
    run("gcc", "-shared", "-fPIC", *run("php-config", "--includes").split(), wrapper, "-o", extension, "-lredlock",
        **environment)
    out = run("php", "-n", "-d", f"extension={extension}", ROOT / "tests/header/lock.php", **environment)
    assert out.splitlines() == ["OK 40", "OK 40"]

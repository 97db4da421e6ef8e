"""The examples are built against what was installed, by pkg-config and by CMake, shared and static, and run."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from testing import eventually

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build/release"
EXAMPLES = sorted((ROOT / "docs/examples").glob("*.c"))
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "REDLOCK_"))}


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], env={**CLEAN, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """What ./dev build release has made, configured for one prefix and installed into another, as packagers do."""
    prefix = tmp_path_factory.mktemp("prefix")
    run("flock", ROOT / "build/release.lock", "cmake", "--install", RELEASE, "--prefix", prefix)
    return prefix


def pkg_config(prefix, *flags):
    return run("pkg-config", *flags, "libredlock", PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig")).split()


def test_every_installed_file_has_its_place(prefix):
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


def test_every_page_that_is_named_is_installed(prefix):
    """By a manual page, or by what redlock itself says."""
    texts = [re.sub(r"\\f\w", " ", path.read_text()) for path in (prefix / "share/man").rglob("*.[1-9]")]
    texts += [(prefix / name).read_bytes().decode("latin-1") for name in ("bin/redlock", "lib/libredlock.so")]
    named = {name for text in texts for name in re.findall(r"[\w/-]+\.md\b", text)}
    assert {"guard.md", "kinds.md"} <= named
    assert [name for name in sorted(named) if not (prefix / "share/doc/libredlock" / name).is_file()] == []


# ---- hardening

@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """compiled(flags): a release that is configured with them."""
    def configure(*flags):
        build = tmp_path_factory.mktemp("hardened")
        run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DREDLOCK_TESTS=OFF", "-DCMAKE_BUILD_TYPE=Release",
            *flags)
        return build

    return configure


def symbols(file):
    return set(re.findall(r"UND (\S+?)(?:@|$| )", run("readelf", "--dyn-syms", "--wide", file), re.M))


@pytest.mark.parametrize("file", ["lib/libredlock.so", "bin/redlock"])
def test_what_is_installed_is_hardened(prefix, file):
    used, dynamic = symbols(prefix / file), run("readelf", "-dW", prefix / file)
    assert "GNU_RELRO" in run("readelf", "-lW", prefix / file) and re.search(r"BIND_NOW|FLAGS_1.* NOW", dynamic)
    assert "__stack_chk_fail" in used, "-fstack-protector-strong"
    assert any(name.endswith("_chk") for name in used), "_FORTIFY_SOURCE"
    assert " DYN " in run("readelf", "-hW", prefix / file), "position-independent"
    assert not re.search(r"GNU_STACK.* RWE", run("readelf", "-lW", prefix / file))


def flags_of(build):
    """Of each file of the library and the command."""
    commands = json.loads((build / "compile_commands.json").read_text())
    return [row["command"].split() for row in commands if "/core/" in row["file"]]


def test_every_file_is_compiled_with_hardening(compiled):
    flags = flags_of(compiled())
    x86 = {"-fcf-protection"} if os.uname().machine == "x86_64" else set()
    for wanted in {"-fstack-protector-strong", "-fstack-clash-protection", "-U_FORTIFY_SOURCE"} | x86:
        assert all(wanted in words for words in flags), wanted


def test_flags_of_the_user_stay(compiled):
    mine = ("-fno-stack-protector", "-fno-stack-clash-protection", "-fcf-protection=none", "-D_FORTIFY_SOURCE=1")
    build = compiled("-DCMAKE_C_FLAGS=" + " ".join(mine), "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-z,norelro")
    for words in flags_of(build):
        assert set(mine) <= set(words)
        assert not {"-fstack-protector-strong", "-fstack-clash-protection", "-fcf-protection",
                    "-U_FORTIFY_SOURCE"} & set(words)
    assert "-z,relro" not in (build / "build.ninja").read_text()


def test_the_command_finds_its_library(prefix):
    assert run(prefix / "bin/redlock", "--version").startswith("redlock ")


def through_pkg_config(prefix, folder, kind):
    flags = pkg_config(prefix, *(["--static"] if kind == "static" else []), "--cflags", "--libs")
    if kind == "static":
        flags = [flag.replace("-lredlock", "-l:libredlock.a") for flag in flags]
    for source in EXAMPLES:
        run("gcc", "-Wall", "-Wextra", "-Werror", source, "-o", folder / source.stem, *flags)


def through_cmake(prefix, folder, kind):
    target = "libredlock_static" if kind == "static" else "libredlock"
    (folder / "CMakeLists.txt").write_text("""
        cmake_minimum_required(VERSION 3.22)
        project(stranger C)
        find_package(libredlock 0.1 REQUIRED)
    """ + "".join(f"""
        add_executable({source.stem} {source})
        target_link_libraries({source.stem} PRIVATE libredlock::{target})
    """ for source in EXAMPLES))
    run("cmake", "-S", folder, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder)


@pytest.fixture(scope="module", params=["shared", "static"])
def kind(request):
    return request.param


@pytest.fixture(scope="module", params=[through_pkg_config, through_cmake])
def programs(prefix, kind, request, tmp_path_factory):
    """The folder with the examples; they are built for any place, so they get the path of the shared library."""
    folder = tmp_path_factory.mktemp("programs")
    request.param(prefix, folder, kind)
    return folder


def environment(prefix, nodes, kind):
    library = {"LD_LIBRARY_PATH": str(prefix / "lib")} if kind == "shared" else {}
    return {**CLEAN, "REDLOCK_NODES": nodes.nodes_env, **library}


def test_every_example_is_linked_as_asked(programs, kind):
    assert [source.stem for source in EXAMPLES] == ["hold", "lock"], "a new example is to be run here too"
    for source in EXAMPLES:
        needed = re.findall(r"NEEDED.*\[(.+)\]", run("readelf", "-d", programs / source.stem))
        assert ("libredlock.so.0" in needed) == (kind == "shared")
        assert "libc.so.6" in needed


def test_the_example_lock_is_extended_and_released(prefix, programs, nodes, kind):
    said = run(programs / "lock", "orders:42", **environment(prefix, nodes, kind))
    held, extended, ended = said.splitlines()
    assert 0 < int(re.fullmatch(r"held for (\d+) ms more", held)[1]) < 10000
    assert 10000 < int(re.fullmatch(r"extended: OK, held for (\d+) ms more", extended)[1]) < 20000
    assert ended.startswith("OK: ")
    nodes.no_keys()


def test_the_example_lock_says_that_it_has_no_nodes(prefix, programs, nodes, kind):
    done = subprocess.run([programs / "lock"], env={**environment(prefix, nodes, kind), "REDLOCK_NODES": ""},
                          capture_output=True, text=True)
    assert done.returncode == 1 and "nodes" in done.stderr and done.stdout == ""


def test_the_example_hold_lasts_until_its_input_ends(prefix, programs, nodes, kind):
    """It holds the lock past its TTL, another program waits, and gets it when the input of the first ends."""
    settings = environment(prefix, nodes, kind)
    with subprocess.Popen([programs / "hold", "orders:42", "2000"], env=settings, text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline().startswith("held: ")
        eventually(lambda: nodes.keys() == {b"orders:42": [0, 1, 2, 3, 4]}, 30)
        with subprocess.Popen([programs / "lock", "orders:42"], env=settings, text=True,
                              stdout=subprocess.PIPE) as other:
            eventually(lambda: any(node.command("EXISTS", "libredlock:q:orders:42") for node in nodes), 30)
            assert other.poll() is None
            holder.stdin.close()
            assert holder.stdout.readline().startswith("released: ")
            assert other.stdout.readline().startswith("held for ")
    assert (holder.returncode, other.returncode) == (0, 0)
    nodes.no_keys(30)


def test_a_test_build_is_not_installed(tmp_path):
    run("cmake", "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja", "-DREDLOCK_TESTS=OFF", "-DREDLOCK_TEST_BUILD=ON")
    done = subprocess.run(["cmake", "--install", tmp_path / "build", "--prefix", tmp_path / "prefix"], env=CLEAN,
                          capture_output=True, text=True)
    assert done.returncode != 0 and "not for use" in done.stderr
    assert not (tmp_path / "prefix").exists()


def test_first_example_works_on_new_nodes(prefix, tmp_path, make_cluster):
    """Nodes without a bootstrap: its wait outlives their quarantine."""
    through_pkg_config(prefix, tmp_path, "static")
    servers = make_cluster(3, bootstrapped=False)
    said = run(tmp_path / "lock", "orders:42", REDLOCK_NODES=",".join(servers.urls))
    assert said.startswith("held for ") and said.splitlines()[-1].startswith("OK: "), said

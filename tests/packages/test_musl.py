"""The core, the command and the PHP extension with musl, the libc of Alpine. What they stand on is compiled for musl
from the distribution's source packages."""
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from bare import PATIENT, run
from conftest import ROOT

sys.path.insert(0, str(ROOT / "packages"))
import source_package  # noqa: E402

KERNEL = {"linux": "linux", "asm-generic": "asm-generic", f"{os.uname().machine}-linux-gnu/asm": "asm"}
OPTIONS = {
    "jansson": ["-DJANSSON_BUILD_DOCS=OFF", "-DJANSSON_WITHOUT_TESTS=ON", "-DJANSSON_EXAMPLES=OFF"],
    "cmocka": ["-DWITH_STATIC_LIB=ON", "-DWITH_EXAMPLES=OFF"],
}
POPT = ["UNISTD_H", "GLOB_H", "STDINT_H", "FNMATCH_H", "STPCPY", "SRANDOM", "STRERROR", "VASPRINTF"]
UNITS = sorted({path.stem for path in (ROOT / "tests/unit").glob("test_*.c")} - {"test_openssl"})  # glibc's

pytestmark = pytest.mark.timeout(600)


class Musl:
    """A folder with what was compiled for musl. The kernel's headers are a package of their own there, as on Alpine."""

    def __init__(self, folder, sources):
        self.folder, self.sources, self.prefix = folder, sources, folder / "prefix"
        self.include = folder / "include"
        self.include.mkdir()
        for source, name in KERNEL.items():
            (self.include / name).symlink_to(Path("/usr/include", source))
        (self.prefix / "lib/pkgconfig").mkdir(parents=True)
        (self.prefix / "include").mkdir()

    def cmake(self, source, build, *options, targets=("install",)):
        run("cmake", "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_C_COMPILER=musl-gcc",
            f"-DCMAKE_C_FLAGS=-isystem {self.include}", f"-DCMAKE_INSTALL_PREFIX={self.prefix}",
            "-DCMAKE_INSTALL_LIBDIR=lib", "-DCMAKE_POSITION_INDEPENDENT_CODE=ON", "-DCMAKE_POLICY_VERSION_MINIMUM=3.5",
            *options, env={**os.environ, "PKG_CONFIG_LIBDIR": str(self.prefix / "lib/pkgconfig")})
        run("ninja", "-C", build, *targets)

    def hiredis(self):
        tree = source_package.fetch("hiredis", self.sources)
        run("make", "install", "CC=musl-gcc", f"PREFIX={self.prefix}", cwd=tree)

    def popt(self):
        """Its configure has to be generated, by more tools than its five files are worth."""
        source = source_package.fetch("popt", self.sources) / "src"
        known = [f"-DHAVE_{name}" for name in POPT] + ['-DPACKAGE="popt"', '-DPOPT_SYSCONFDIR="/etc"', "-D_GNU_SOURCE"]
        run("musl-gcc", "-c", "-O2", "-fPIC", "-w", *known, *sorted(source.glob("popt*.c")), cwd=self.folder)
        run("ar", "rcs", self.prefix / "lib/libpopt.a", *self.folder.glob("popt*.o"))
        (self.prefix / "include/popt.h").write_bytes((source / "popt.h").read_bytes())
        (self.prefix / "lib/pkgconfig/popt.pc").write_text(
            f"Name: popt\nDescription: popt\nVersion: 1\nLibs: -L{self.prefix}/lib -lpopt\n"
            f"Cflags: -I{self.prefix}/include\n")


@pytest.fixture(scope="module")
def musl(made, tmp_path_factory):
    built = Musl(tmp_path_factory.mktemp("musl"), made / "work/sources")
    built.hiredis()
    built.popt()
    for name, options in OPTIONS.items():
        built.cmake(source_package.fetch(name, built.sources), built.folder / name, *options)
    built.cmake(ROOT, built.folder / "redlock", "-DREDLOCK_WARNINGS_AS_ERRORS=ON", "-DREDLOCK_TEST_OPENSSL=OFF",
                "-DCMAKE_BUILD_TYPE=None", targets=("redlock", *UNITS))
    return built


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_test_passes(musl, unit):
    said = run(musl.folder / "redlock/tests/unit" / unit)
    assert "[  PASSED  ]" in said and "[  FAILED  ]" not in said


def test_the_command_locks(musl, nodes):
    command = musl.folder / "redlock/redlock"
    assert "ld-musl" in run("readelf", "-l", command)
    environment = {**os.environ, **PATIENT, "REDLOCK_NODES": nodes.nodes_env}
    token = run(command, "acquire", "--ttl", "20s", "musl", env=environment).strip()
    assert re.fullmatch(r"[0-9a-f]{40}", token)
    assert "held" in run(command, "status", "musl", env=environment)
    busy = subprocess.run([command, "run", "-n", "musl", "--", "true"], env=environment, capture_output=True)
    assert busy.returncode == 75
    run(command, "release", "musl", token, env=environment)
    assert run(command, "run", "musl", "--", "sh", "-c", "echo $REDLOCK_RESOURCE", env=environment) == "musl\n"
    nodes.no_keys()


def test_the_php_extension_needs_only_musl_and_php(musl, made, tmp_path):
    """No PHP for musl is at hand to load it: it compiles, and asks for nothing but what musl and PHP have."""
    (archive,) = made.glob("php_redlock-*-src.tgz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    sources = [path for folder in ("core/src/*", "third_party/hiredis", "php") for path in tree.glob(folder + "/*.c")]
    flags = ["-shared", "-fPIC", "-O0", "-D_GNU_SOURCE", "-DZEND_COMPILE_DL_EXT=1", "-DHAVE_CONFIG_H", "-isystem",
             musl.include, f"-I{tree}/core/include", f"-I{tree}/third_party/hiredis", f"-I{tree}/php",
             *run("php-config", "--includes").split(), f"-Wl,--version-script={tree}/php/redlock.map"]
    (tree / "php/config.h").write_text("#define COMPILE_DL_REDLOCK 1\n")
    run("musl-gcc", *flags, *sources, "-o", tmp_path / "redlock.so", cwd=tmp_path)

    def names(*command):
        return {line.split()[-1].split("@")[0] for line in run("nm", "-D", *command).splitlines()}

    wanted = {line.split()[-1] for line in run("nm", "-D", "--undefined-only", tmp_path / "redlock.so").splitlines()
              if " U " in line}
    known = [names("--defined-only", binary) for binary in
             ("/lib/ld-musl-x86_64.so.1", run("php-config", "--php-binary").strip())]
    assert sorted(wanted.difference(*known)) == []

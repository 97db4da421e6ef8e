"""The versions of hiredis, 0.14 to 1.3: the distribution's own, that of the next one (test_releases.py), and those that
the Python package of that name has in its source archives."""
import re
import shutil
import sys
import tarfile

import pytest

from bare import run
from conftest import ROOT, build, check_command, check_units

PYTHON_PACKAGES = {"1.0": "2.0.0", "1.1": "2.2.3", "1.3": "3.3.0"}
FILES = ["alloc", "async", "hiredis", "net", "read", "sds", "sockcompat"]

pytestmark = pytest.mark.timeout(900)


def header_version(folder):
    text = (folder / "hiredis.h").read_text()
    return ".".join(re.search(rf"^#define HIREDIS_{part} (\d+)", text, re.M)[1] for part in ("MAJOR", "MINOR"))


def unpacked(package_version, folder):
    run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder,
        f"hiredis=={package_version}")
    with tarfile.open(folder / f"hiredis-{package_version}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / f"hiredis-{package_version}/vendor/hiredis"


def install(source, prefix):
    """A library and what pkg-config reads of it."""
    shutil.copytree(source, prefix / "include/hiredis")
    objects = [prefix / f"{name}.o" for name in FILES]
    for name, made in zip(FILES, objects):
        run("gcc", "-c", "-fPIC", "-O1", "-w", source / f"{name}.c", "-o", made)
    run("ar", "rcs", prefix / "libhiredis.a", *objects)
    (prefix / "hiredis.pc").write_text(f"Name: hiredis\nDescription: hiredis\nVersion: {header_version(source)}.0\n"
                                       f"Libs: -L{prefix} -lhiredis\nCflags: -I{prefix}/include/hiredis\n")


@pytest.mark.one_of("surroundings")
@pytest.mark.parametrize("version", PYTHON_PACKAGES)
def test_it_works_with_each_version_of_hiredis(nodes, tmp_path, version):
    source = unpacked(PYTHON_PACKAGES[version], tmp_path)
    assert header_version(source) == version
    install(source, tmp_path / "prefix")
    build(ROOT, tmp_path / "build", PKG_CONFIG_PATH=str(tmp_path / "prefix"))
    check_units(tmp_path / "build")
    check_command(nodes, tmp_path / "build/redlock")


def test_the_distributions_own_is_the_oldest():
    assert run("pkg-config", "--modversion", "hiredis").startswith("0.14.")

"""Other processors: the tests of the core and the command itself, in an emulator."""

import pytest

import source_package
from conftest import ROOT, build, check_command, check_units

PACKAGES = ["libc6-dev", "libhiredis-dev", "libcmocka-dev", "libjansson-dev", "libpopt-dev", "libssl-dev"]
# Debian's name, the compiler's, that of the libraries' folder, the emulator's
ARM = ("arm64", "aarch64-linux-gnu", "aarch64-linux-gnu", "aarch64")
BIG_ENDIAN = ("s390x", "s390x-linux-gnu", "s390x-linux-gnu", "s390x")
BITS_32 = ("i386", "i686-linux-gnu", "i386-linux-gnu", "i386")

pytestmark = pytest.mark.timeout(900)


@pytest.mark.one_of("architecture")
@pytest.mark.parametrize("architecture, compiler, libraries, emulator", [ARM, BIG_ENDIAN, BITS_32],
                         ids=["arm64", "big-endian", "32-bit"])
def test_it_works_on_each_architecture(make_root, nodes, tmp_path, architecture, compiler, libraries, emulator):
    root = make_root(source_package.os_release()["VERSION_CODENAME"], architecture, PACKAGES).path
    build(ROOT, tmp_path, "-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={emulator}",
          f"-DCMAKE_C_COMPILER={compiler}-gcc", f"-DCMAKE_SYSROOT={root}", f"-DCMAKE_LIBRARY_ARCHITECTURE={libraries}",
          PKG_CONFIG_SYSROOT_DIR=str(root),
          PKG_CONFIG_LIBDIR=f"{root}/usr/lib/{libraries}/pkgconfig:{root}/usr/share/pkgconfig")
    launcher = [f"qemu-{emulator}", "-L", root]
    check_units(tmp_path, *launcher)
    check_command(nodes, tmp_path / "redlock", *launcher)

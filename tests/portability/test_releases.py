"""Debian 12 and 13: with the compilers of each the project builds without a warning, and its core is right. The release
that this machine has is what all other tests run on."""
import pytest

import bare
import source_package
from conftest import ROOT, UNITS

RELEASES = {"bookworm": {"gcc": "12", "clang": "14", "hiredis": "0.14.1"},
            "trixie": {"gcc": "14", "clang": "19", "hiredis": "1.2.0"}}
OTHER = sorted(RELEASES.keys() - {source_package.os_release().get("VERSION_CODENAME")})
PACKAGES = ["base-files", "bash", "binutils", "clang", "cmake", "coreutils", "dash", "gcc", "libc-bin", "libc6-dev",
            "libcmocka-dev", "libhiredis-dev", "libjansson-dev", "libpopt-dev", "libssl-dev", "ninja-build",
            "pkg-config"]

pytestmark = pytest.mark.timeout(900)


@pytest.mark.one_of("surroundings")
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("suite", OTHER)
def test_it_builds_and_locks_on_each_release(make_root, nodes, tmp_path, suite, compiler):
    reason = bare.impossible()
    if reason:
        pytest.skip(reason)
    root = make_root(suite, bare.run("dpkg", "--print-architecture").strip(), PACKAGES)
    version = root.run(f"{compiler} -dumpversion; pkg-config --modversion hiredis").split()
    assert version[0].split(".")[0] == RELEASES[suite][compiler] and version[1] == RELEASES[suite]["hiredis"]
    said = root.run(f"""
        cmake -G Ninja -S {ROOT} -B {tmp_path}/build -DCMAKE_C_COMPILER={compiler} -DREDLOCK_WARNINGS_AS_ERRORS=ON
        ninja -C {tmp_path}/build -j 2 redlock {' '.join(UNITS)}
        for unit in {' '.join(UNITS)}; do {tmp_path}/build/tests/unit/$unit; done
        {tmp_path}/build/redlock run --wait 30s ported -- sh -c 'echo "held $REDLOCK_RESOURCE"'
    """, ROOT, tmp_path, REDLOCK_NODES=nodes.nodes_env)
    assert said.count("[  PASSED  ]") >= len(UNITS) and said.endswith("held ported\n")
    nodes.no_keys()

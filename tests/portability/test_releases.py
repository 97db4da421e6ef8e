"""Debian 12 and 13: with the compilers of each the project builds without a warning, and its core is right; in the
PHP of each the extension locks. The release that this machine has is what all other tests run on."""
import pytest

import bare
import source_package
from conftest import ROOT, UNITS

RELEASES = {"bookworm": {"gcc": "12", "clang": "14", "hiredis": "0.14.1", "php": "8.2"},
            "trixie": {"gcc": "14", "clang": "19", "hiredis": "1.2.0", "php": "8.4"}}
OTHER = sorted(RELEASES.keys() - {source_package.os_release().get("VERSION_CODENAME")})
PACKAGES = ["base-files", "bash", "binutils", "clang", "cmake", "coreutils", "dash", "gcc", "libc-bin", "libc6-dev",
            "libcmocka-dev", "libhiredis-dev", "libjansson-dev", "libpopt-dev", "libssl-dev", "ninja-build",
            "php-cli", "php-dev", "pkg-config", "sed"]
PHP_FLAGS = "-shared -fPIC -O1 -Wall -Werror -Wno-unused -D_GNU_SOURCE -DZEND_COMPILE_DL_EXT=1 -DHAVE_CONFIG_H"

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
        cmake -G Ninja -S {ROOT} -B {tmp_path}/build -DCMAKE_C_COMPILER={compiler} -DREDLOCK_WARNINGS_AS_ERRORS=ON \\
            -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O2 -DNDEBUG"
        ninja -C {tmp_path}/build -j 2 redlock {' '.join(UNITS)}
        for unit in {' '.join(UNITS)}; do {tmp_path}/build/tests/unit/$unit; done
        {tmp_path}/build/redlock run --wait 30s ported -- sh -c 'echo "held $REDLOCK_RESOURCE"'
    """, ROOT, tmp_path, REDLOCK_NODES=nodes.nodes_env)
    assert said.count("[  PASSED  ]") >= len(UNITS) and said.endswith("held ported\n")
    nodes.no_keys()


@pytest.mark.one_of("surroundings", "php/*.[ch]", "bindings/redlock.i")
@pytest.mark.parametrize("suite", OTHER)
def test_the_extension_locks_in_the_php_of_each_release(make_root, nodes, tmp_path, suite):
    reason = bare.impossible()
    if reason:
        pytest.skip(reason)
    bare.run("python3", ROOT / "bindings/php_generate.py", "--swig", "swig", "--tree", tmp_path / "tree")
    (tmp_path / "tree/php/config.h").write_text("#define COMPILE_DL_REDLOCK 1\n")
    root = make_root(suite, bare.run("dpkg", "--print-architecture").strip(), PACKAGES)
    version = RELEASES[suite]["php"]
    said = root.run(f"""
        cd {tmp_path}/tree
        gcc {PHP_FLAGS} -Icore/include -Iphp $(php-config{version} --includes) $(pkg-config --cflags hiredis) \\
            core/src/*/*.c php/*.c -o redlock.so $(pkg-config --libs hiredis)
        php{version} -n -d extension=$PWD/redlock.so -r '
            require "{ROOT}/php/lib/autoload.php";
            echo Redlock\\Client::connect()->lock("ported")->run(fn () => "held in " . PHP_VERSION);'
    """, ROOT, tmp_path, REDLOCK_NODES=nodes.nodes_env)
    assert said.startswith(f"held in {version}.")
    nodes.no_keys()

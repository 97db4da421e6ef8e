"""What ./dev package made: complete, free of what it must not need, and usable by those whom it is for."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from bare import PATIENT, run
from conftest import ROOT
from test_debian import ARCHITECTURE, DEBIAN

HOST = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "REDLOCK_", "PYTHON"))}
LOCK = """
import libredlock
with libredlock.Client() as client, client.lock("installed") as lock:
    lock.check()
print(libredlock.__version__, [line.split()[-1] for line in open("/proc/self/maps") if "hiredis" in line])
"""
WHEELS = {"manylinux_2_17_x86_64": "X86-64", "manylinux_2_17_aarch64": "AArch64",
          "musllinux_1_2_x86_64": "X86-64", "musllinux_1_2_aarch64": "AArch64"}
TAGS = os.environ.get("REDLOCK_WHEELS", "").split() or list(WHEELS)  # those of this run
for_musl = pytest.mark.skipif("musllinux_1_2_x86_64" not in TAGS, reason="the commit's hash has chosen other wheels")

pytestmark = pytest.mark.timeout(600)


def wheel_of(made, tag):
    (wheel,) = made.glob(f"libredlock-*-cp39-abi3-*{tag}.whl")
    return wheel


def python_of(folder):
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / "bin/python"


def pip(python, *words, **environment):
    """For an environment that has none of its own: to make one takes longer than all else."""
    run(sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet", *words, cwd="/",
        env={**HOST, **environment})


def test_all_products_are_there_and_have_the_version(made, version):
    names = {path.name for path in made.iterdir() if path.is_file()}
    tags = {re.sub(r"^manylinux_2_17_(.*)", r"manylinux2014_\1.\g<0>", tag) for tag in TAGS}
    wheels = {f"libredlock-{version}-cp39-abi3-{tag}.whl" for tag in tags}
    assert names == wheels | {f"libredlock-{version}.tar.gz", f"php_redlock-{version}-src.tgz",
                              f"libredlock-redlock-{version}.zip", f"libredlock-hyperf-{version}.zip"} | {
        f"{name}_{version}_{ARCHITECTURE}.deb" for name in DEBIAN}
    for name in "redlock", "hyperf":
        assert json.loads((made / "composer" / name / "composer.json").read_text())["version"] == version, name


@pytest.mark.timeout(1800)  # it makes them again
def test_the_same_sources_make_the_same_archives(made, tmp_path):
    """All but Debian's; of the wheels one by the hash of the commit, if the run says so."""
    hiredis, sample = made / "work/sources/hiredis/tree", os.environ.get("REDLOCK_SAMPLE")
    tags = [TAGS[int(sample[:7], 16) % len(TAGS)]] if sample else TAGS
    run(ROOT / "build/venv-packages/bin/python", ROOT / "packages/make.py", "--out", tmp_path, "--hiredis", hiredis,
        *(f"--tag={tag}" for tag in tags), "php", "composer", "sdist", "wheels",
        env={**os.environ, "TMPDIR": str(tmp_path)})
    remade = [path for path in tmp_path.glob("*.*") if path.is_file()]
    assert len(remade) == 4 + len(tags), remade
    for path in remade:
        assert path.read_bytes() == (made / path.name).read_bytes(), path.name


def test_unknown_products_and_a_wrong_hiredis_are_refused(tmp_path):
    for words, message in ((["nonsense"], "no product 'nonsense'; there are: php, composer, sdist, wheels, debian"),
                           (["--hiredis", tmp_path, "php"], f"{tmp_path} is no source tree of hiredis")):
        command = [sys.executable, ROOT / "packages/make.py", "--out", tmp_path, *words]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode != 0 and message in done.stderr


def quick_compiler(folder):
    """One that neither optimizes nor helps to debug, whatever it is told: where a build has to be right, not fast."""
    (folder / "quick-cc").write_text('#!/bin/sh\nexec gcc "$@" -O0 -g0 -w\n')
    (folder / "quick-cc").chmod(0o755)
    return {"CC": str(folder / "quick-cc")}


# ---- PHP ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(made, tmp_path_factory):
    """The source archive, unpacked and made ready by phpize."""
    folder = tmp_path_factory.mktemp("archive")
    (path,) = made.glob("php_redlock-*-src.tgz")
    with tarfile.open(path) as tar:
        tar.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    run("phpize", cwd=tree / "php")
    return tree


def test_pie_finds_its_way_in_the_archive(archive, version):
    """PIE takes the one folder of an archive for its root, and there the build-path of composer.json."""
    assert archive.name == f"redlock-{version}"
    package = json.loads((archive / "composer.json").read_text())
    assert package["type"] == "php-ext" and package["php-ext"]["extension-name"] == "redlock"
    assert package["php-ext"]["download-url-method"] == "pre-packaged-source"
    build = archive / package["php-ext"]["build-path"]
    assert (build / "config.m4").is_file() and (build / "redlock_wrap.c").is_file()
    assert all((archive / name).is_file() for name in ("LICENSE", "README.md", "third_party/hiredis/COPYING"))
    said = run(build / "configure", "--help")
    assert all(f"--{option['name']}=" in said for option in package["php-ext"]["configure-options"])


def test_the_archive_builds_with_the_system_s_hiredis_too(archive, tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(archive, tree, symlinks=True)
    run("./configure", "--with-redlock-hiredis=system", "CFLAGS=-O0", cwd=tree / "php")
    run("make", "-j2", cwd=tree / "php")
    assert "libhiredis" in run("readelf", "-d", tree / "php/modules/redlock.so")


@pytest.mark.parametrize("kind, words", [("own", "=own: allowed are bundled and system"),
                                         ("bundled", "=bundled: only source archives have a copy of hiredis")])
def test_a_hiredis_that_is_not_there_is_refused(archive, tmp_path, kind, words):
    tree = tmp_path / "tree"
    shutil.copytree(archive, tree, symlinks=True, ignore=shutil.ignore_patterns("third_party"))
    done = subprocess.run(["./configure", f"--with-redlock-hiredis={kind}"], cwd=tree / "php", capture_output=True,
                          text=True)
    assert done.returncode != 0 and f"--with-redlock-hiredis{words}" in done.stderr


@pytest.mark.parametrize("folder, name", [("php/lib", "redlock"), ("php/hyperf", "hyperf")])
def test_composer_packages_are_whole_and_valid(made, version, folder, name):
    tree = made / "composer" / name
    for path in "README.md", "LICENSE":
        assert (tree / path).read_bytes() == (ROOT / folder / path).read_bytes()
    assert json.loads((tree / "composer.json").read_text()) == \
        json.loads((ROOT / folder / "composer.json").read_text()) | {"version": version}
    assert (tree / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (tree / "tests").is_dir()
    with zipfile.ZipFile(made / f"libredlock-{name}-{version}.zip") as archive:
        names = archive.namelist()
    assert {"README.md", "LICENSE", "composer.json"} <= set(names)
    assert [path for path in names if path.startswith(("tests", "example", ".git", "phpunit"))] == []
    composer = {**HOST, "COMPOSER_ALLOW_SUPERUSER": "1", "COMPOSER_DISABLE_NETWORK": "1"}
    run("composer", "validate", "--strict", "--no-check-version", cwd=tree, env=composer)
    run("composer", "validate", "--strict", cwd=ROOT / folder, env=composer)


def test_composer_installs_the_archives(made, version, tmp_path):
    hyperf = [name for name in json.loads((ROOT / "php/hyperf/composer.json").read_text())["require"]
              if name.startswith("hyperf/")]
    archives = tmp_path / "archives"  # without the extension's, which has its version from Packagist
    archives.mkdir()
    for path in made.glob("*.zip"):
        shutil.copy(path, archives)
    (tmp_path / "composer.json").write_text(json.dumps({
        "repositories": [{"type": "artifact", "url": str(archives)}, {"packagist.org": False}],
        "require": {"libredlock/hyperf": "*"},
        "replace": dict.fromkeys(hyperf, "3.1.71"), "config": {"platform": {"ext-redlock": version}},
    }))
    run("composer", "install", "--no-interaction", "--no-progress", cwd=tmp_path, env={
        **HOST, "COMPOSER_ALLOW_SUPERUSER": "1", "COMPOSER_DISABLE_NETWORK": "1", "COMPOSER_HOME": str(tmp_path)})
    assert (tmp_path / "vendor/libredlock/redlock/src/Client.php").is_file()
    assert (tmp_path / "vendor/libredlock/hyperf/src/ConfigProvider.php").is_file()


# ---- Python ---------------------------------------------------------------------------------------------------


def test_the_sdist_installs_without_hiredis_and_repository(made, nodes, version, tmp_path):
    (sdist,) = made.glob("*.tar.gz")
    with tarfile.open(sdist) as tar:
        names = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    wanted = {"core/include/redlock.h", "core/sources.txt", "bindings/cdef.py", "LICENSE", "python/README.md",
              "third_party/hiredis/read.c", "third_party/hiredis/COPYING"}
    wanted |= {*(ROOT / "core/sources.txt").read_text().split()}
    wanted |= {str(path.relative_to(ROOT)) for path in (ROOT / "core/cli").glob("*.[ch]")}
    wanted |= {"third_party/jansson/COPYING", "third_party/popt/COPYING", "third_party/sbom.cdx.json"}
    assert wanted <= names
    assert [name for name in names if name.startswith(("tests", "php", "bench"))] == []
    (tmp_path / "pkg-config").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "pkg-config").chmod(0o755)
    python = python_of(tmp_path / "e")
    pip(python, "install", sdist, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}", **quick_compiler(tmp_path))
    said = run(python, "-c", LOCK, cwd="/", env={**HOST, "REDLOCK_NODES": nodes.nodes_env})
    assert said.splitlines()[-1] == f"{version} []"  # after a warning, if a node was late


def test_the_wheel_for_this_machine_takes_a_lock(made, nodes, version, tmp_path):
    python = python_of(tmp_path / "e")
    pip(python, "install", wheel_of(made, f"manylinux_2_17_{os.uname().machine}"))
    said = run(python, "-c", LOCK, cwd="/", env={**HOST, "REDLOCK_NODES": nodes.nodes_env})
    assert said.splitlines()[-1] == f"{version} []"  # after a warning, if a node was late


COMMAND = """
exec 2>/dev/null
redlock --version
redlock run fresh -- sh -c 'echo "$REDLOCK_RESOURCE"'
python -m libredlock run fresh -- sh -c 'echo "$REDLOCK_RESOURCE"'
redlock run fresh -- python -m libredlock run -n fresh -- true || echo $?
python -m libredlock run fresh -- sh -c 'exit 42' || echo $?
python -m libredlock run fresh -- sh -c 'kill -9 $$' || echo $?
python -m libredlock run fresh -- sh -c 'kill -PIPE $$' || echo $?
"""


def test_the_wheel_carries_the_command(made, nodes, version, tmp_path):
    """As somebody types it who has installed the wheel; and pip removes it again."""
    python = python_of(tmp_path / "e")
    pip(python, "install", wheel_of(made, f"manylinux_2_17_{os.uname().machine}"))
    environment = {**HOST, **PATIENT, "REDLOCK_NODES": nodes.nodes_env, "PATH": f"{python.parent}:{HOST['PATH']}"}
    said = run("bash", "-c", COMMAND, cwd="/", env=environment)
    assert said == f"redlock {version}\nfresh\nfresh\n75\n42\n137\n141\n"
    nodes.no_keys()
    with subprocess.Popen([python, "-m", "libredlock", "run", "fresh", "--", "cat"], cwd="/", env=environment,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"held\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"held\n"
        assert Path(f"/proc/{process.pid}/exe").resolve() == python.parent.resolve() / "redlock"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    nodes.no_keys()
    pip(python, "uninstall", "--yes", "libredlock")
    assert not (python.parent / "redlock").exists()


def test_without_the_command_the_module_says_so(made, tmp_path):
    python = python_of(tmp_path / "e")
    pip(python, "install", wheel_of(made, f"manylinux_2_17_{os.uname().machine}"))
    (python.parent / "redlock").unlink()
    done = subprocess.run([python, "-m", "libredlock", "--version"], cwd="/", env=HOST, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        127, "libredlock: the command redlock is not beside this package: install it with pip\n")


@pytest.mark.parametrize("tag", TAGS)
def test_the_command_in_a_wheel_needs_the_libc_and_nothing_else(made, tmp_path, tag):
    with zipfile.ZipFile(wheel_of(made, tag)) as archive:
        archive.extractall(tmp_path)
    (command,) = tmp_path.glob("libredlock-*.data/scripts/redlock")
    assert WHEELS[tag] in run("readelf", "-h", command) and " DYN " in run("readelf", "-h", command)
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", command)))
    glibc = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "libm.so.6", "ld-linux-aarch64.so.1"}
    assert needed and needed <= ({"libc.so"} if "musl" in tag else glibc)
    assert ("ld-musl" in run("readelf", "-l", command)) == ("musl" in tag)
    newest = max(map(int, re.findall(r"GLIBC_2\.(\d+)", run("readelf", "-V", command))), default=0)
    assert newest <= 17 and (newest == 0) == ("musl" in tag)
    assert ".symtab" not in run("readelf", "-S", command) and b"/tmp/" not in command.read_bytes()


@for_musl
def test_the_command_in_the_musl_wheel_locks(made, nodes, tmp_path):
    with zipfile.ZipFile(wheel_of(made, f"musllinux_1_2_{os.uname().machine}")) as archive:
        archive.extractall(tmp_path)
    (command,) = tmp_path.glob("libredlock-*.data/scripts/redlock")
    command.chmod(0o755)
    environment = {**HOST, **PATIENT, "REDLOCK_NODES": nodes.nodes_env}
    assert run(command, "run", "musl", "--", "sh", "-c", "echo $REDLOCK_RESOURCE", env=environment) == "musl\n"
    nodes.no_keys()


def test_what_is_linked_in_stands_in_the_wheel(made, version):
    for wheel in made.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/sboms/libredlock.cdx.json"))
            bill = json.loads(archive.read(name))
        assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
        assert bill["metadata"]["component"]["version"] == version
        assert [part["name"] for part in bill["components"]] == ["hiredis", "jansson", "popt"]
        assert all(re.match(r"\d+\.\d+", part["version"]) for part in bill["components"])


def test_the_size_of_the_wheel_is_as_the_page_says(made):
    said = re.search(r"A wheel is about (\d+)\s+kB", (ROOT / "docs/install.md").read_text())
    for wheel in made.glob("*.whl"):
        assert 0.7 * int(said[1]) < wheel.stat().st_size / 1000 < 1.3 * int(said[1]), wheel.name


@pytest.mark.parametrize("tag", TAGS)
def test_a_wheel_needs_the_libc_and_python_and_nothing_else(made, tmp_path, tag):
    with zipfile.ZipFile(wheel_of(made, tag)) as archive:
        archive.extractall(tmp_path)
    assert not list(tmp_path.glob("*.libs"))
    extension = tmp_path / "libredlock/_core.abi3.so"
    assert WHEELS[tag] in run("readelf", "-h", extension)
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", extension)))
    glibc = {"libc.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-aarch64.so.1"}
    assert needed <= ({"libc.so"} if "musl" in tag else glibc)
    symbols = run("readelf", "--dyn-syms", "--wide", extension)
    defined = [line.split()[-1] for line in symbols.splitlines() if re.search(r"GLOBAL +DEFAULT +\d+", line)]
    assert defined == ["PyInit__core"]
    newest = max(map(int, re.findall(r"@GLIBC_2\.(\d+)", symbols)), default=0)
    assert newest <= 17 and (newest == 0) == ("musl" in tag)


@for_musl
def test_the_musl_wheel_asks_for_what_musl_has(made, tmp_path):
    """No Python for musl is at hand to load it."""
    with zipfile.ZipFile(wheel_of(made, "musllinux_1_2_x86_64")) as archive:
        archive.extractall(tmp_path)
    listed = run("nm", "-D", "--undefined-only", tmp_path / "libredlock/_core.abi3.so").splitlines()
    wanted = {line.split()[-1] for line in listed if line.split()[0] == "U"}
    libc = {line.split()[-1] for line in run("nm", "-D", "--defined-only", "/lib/ld-musl-x86_64.so.1").splitlines()}
    assert [name for name in sorted(wanted - libc) if not name.startswith(("Py", "_Py"))] == []


def test_the_metadata_of_the_wheels_is_complete(made, version):
    for wheel in made.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            files = [path for path in archive.namelist() if not path.endswith("/")]
            metadata = Metadata.from_email(archive.read(name), validate=True)
        assert str(metadata.version) == version and metadata.license_expression == "Apache-2.0"
        licenses = {path.split("/licenses/")[1] for path in files if "/licenses/" in path}
        assert licenses == {"LICENSE", *(f"third_party/{name}/COPYING" for name in ("hiredis", "jansson", "popt"))}
        assert {"Homepage", "Documentation", "Changelog", "Issues"} <= set(metadata.project_urls)
        assert metadata.author and "redlock" in metadata.keywords and str(metadata.requires_python) == ">=3.9"
        assert metadata.description.strip() == (ROOT / "python/README.md").read_text().strip()
        kinds = {classifier.split(" :: ")[0] for classifier in metadata.classifiers}
        assert {"Development Status", "Operating System", "Topic", "Framework", "Typing"} <= kinds
        assert "Programming Language :: Python :: 3.9" in metadata.classifiers


def test_links_of_the_python_readme_are_whole():
    """PyPI shows the page without its repository."""
    targets = re.findall(r"\]\(([^)]+)\)", (ROOT / "python/README.md").read_text())
    assert targets and all(target.startswith("https://") for target in targets)


def test_other_systems_are_refused_in_words():
    code = "import runpy, setuptools, sys; sys.platform = 'win32'; runpy.run_path('setup.py', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "libredlock is for Linux, and for development on macOS and BSD; this is win32\n"


def test_an_unknown_origin_of_libraries_is_refused_in_words(tmp_path):
    for kind, words in (("own", '"own"; allowed: bundled, system'),
                        ("bundled", '"bundled", but there is no third_party/hiredis here; allowed: system')):
        done = subprocess.run([sys.executable, "bindings/cffi_build.py"], cwd=ROOT, capture_output=True, text=True,
                              env={**HOST, "REDLOCK_LIBRARIES": kind})
        assert done.returncode == 1 and done.stderr == f"REDLOCK_LIBRARIES is {words}\n"


# ---- the work tree --------------------------------------------------------------------------------------------


def test_installing_in_place_leaves_nothing_untracked(tracked, nodes, tmp_path):
    """pip install -e ., and what the extension's build leaves in php/."""
    clone = tmp_path / "clone"
    for name in tracked:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, clone / name, follow_symlinks=False)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in ["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]:
        run(*git, *words, cwd=clone)
    python = python_of(tmp_path / "e")
    pip(python, "install", "-e", clone, **quick_compiler(tmp_path))
    said = run(python, "-c", LOCK, cwd="/", env={**HOST, "REDLOCK_NODES": nodes.nodes_env})
    assert said.endswith(" []\n"), "hiredis is linked in"
    run(sys.executable, "bindings/php_generate.py", cwd=clone)
    run("sh", "-ec", "phpize && ./configure CFLAGS=-O0 && make -j2", cwd=clone / "php")
    assert Path(clone, "php/modules/redlock.so").is_file()
    assert run("git", "status", "--porcelain", "--untracked-files=all", cwd=clone) == ""

"""The Debian packages, as an administrator meets them: installed into a bare Debian, used, upgraded and removed."""
import json
import re
import shutil

import pytest

from bare import PATIENT, run
from conftest import ROOT
from pages import typed

DEBIAN = ["libredlock0", "libredlock-dev", "redlock-tools", "php-redlock"]
ARCHITECTURE = run("dpkg", "--print-architecture").strip()
# dpkg's and apt's own records change, and those of php-common
RECORDS = "/srv /var/cache /var/log /var/lib/apt /var/lib/dpkg /var/lib/php/modules"
FILES = "find / -xdev %s | sort" % " ".join(f"-not -path '{folder}/*'" for folder in RECORDS.split())
UNDER_LOCK = """redlock run --ttl 30s installed -- sh -c 'redlock status --json installed; echo "$REDLOCK_TOKEN"'"""
PHP = """<?php
require '/srv/lib/autoload.php';
$client = Redlock\\Client::connect(explode(',', getenv('REDLOCK_NODES')));
$client->lock('installed', ttlMs: 30000)->run(fn () => print $client->status('installed')->verdict->name . "\\n");
"""

pytestmark = pytest.mark.timeout(600)


def package(made, name):
    (path,) = made.glob(f"{name}_*.deb")
    return path


@pytest.fixture
def install(container, made):
    """install(package...): into a bare Debian, with what they depend on and nothing else."""
    folder = container.path("/srv/build/packages")
    folder.mkdir(parents=True)

    def apt(*names, more="", line=None):
        for name in names:
            shutil.copy(package(made, name), folder)
        files = " ".join(f"./build/packages/{name}_*.deb" for name in names)
        container.run(f"apt-get update && {line or f'apt-get install {files} {more}'}", "/srv")
        return container

    return apt


@pytest.fixture
def install_older(container, made, version, tmp_path):
    """install_older(package...): the same under an earlier version, to upgrade from."""
    container.path("/srv/older").mkdir(parents=True)

    def apt(*names):
        for name in names:
            run("dpkg-deb", "--raw-extract", package(made, name), tmp_path / name)
            control = tmp_path / name / "DEBIAN/control"
            control.write_text(control.read_text().replace(version, "0.0.1"))
            run("dpkg-deb", "--build", tmp_path / name, container.path(f"/srv/older/{name}.deb"))
        container.run("apt-get update && apt-get install " + " ".join(f"/srv/older/{name}.deb" for name in names))

    return apt


def test_lintian_has_no_complaint(made):
    said = run("lintian", "--allow-root", "--profile", "debian", "--fail-on", "error,warning",
               *[package(made, name) for name in DEBIAN])
    assert said == ""


@pytest.mark.one_of("debian", "packages/debian", "docs/deploy.md", "deploy/redlock.conf")
def test_the_tools_package_installs_upgrades_and_leaves_nothing(install, install_older, container, nodes, version):
    before = container.run(FILES)
    install_older("libredlock0", "redlock-tools")
    make, upgrade, copy_example = filter(None, typed("docs/deploy.md", "Debian packages").splitlines())
    assert make == "./dev package debian"
    bare = install("libredlock0", "redlock-tools", line=upgrade)
    assert set(bare.run("dpkg-query -Wf '${Version}\n' libredlock0 redlock-tools").split()) == {version}
    said = bare.run(f"redlock --version; redlock doctor | tail -n 1; {UNDER_LOCK}", REDLOCK_NODES=nodes.nodes_env,
                    **PATIENT)
    told, doctor, status, token = said.splitlines()
    assert told == f"redlock {version}" and doctor == "all 3 nodes may vote"
    assert (json.loads(status)["verdict"], json.loads(status)["holder"]) == ("held", token)
    nodes.no_keys()
    bare.run(copy_example)
    assert use_example(bare, nodes) == "all 3 nodes may vote\nran\n"
    assert "PATH" not in run("readelf", "--dynamic", bare.path("/usr/bin/redlock"))
    bare.run(". /usr/share/bash-completion/completions/redlock && complete -p redlock && "
             "test -s /usr/share/zsh/site-functions/_redlock && "
             "test -s /usr/share/fish/vendor_completions.d/redlock.fish")
    bare.run("rm /etc/redlock.conf* && apt-get purge redlock-tools libredlock0 && apt-get autoremove --purge")
    assert bare.run(FILES) == before


def use_example(bare, nodes):
    """What the copy in /etc does with these nodes, once as it is and once with every option that names no file."""
    example = bare.path("/etc/redlock.conf")
    text, made_up = example.read_text(), "redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3"
    assert made_up in text
    example.write_text(text.replace(made_up, nodes.nodes_env))
    said = bare.run("redlock doctor | tail -n 1")
    every = re.sub(r"^#(?=\w+ = )(?!\w+_file)(?!key_prefix)", "", example.read_text(), flags=re.M)
    assert every.count("\n#") < example.read_text().count("\n#")
    example.write_text(every)
    return said + bare.run("redlock run example -- echo ran")


def test_example_file_shows_the_defaults_of_the_command():
    shown = dict(re.findall(r"^#(\w+) = (.*)$", (ROOT / "deploy/redlock.conf").read_text(), re.M))
    rows = re.findall(r"</a>`(\w+)` \| [^|]* \| ([^|]*) \| ([^|]*) \|", (ROOT / "docs/options.md").read_text())
    elsewhere = {"wait_ms": ("`acquire`: 40 s", "40000")}
    for name, default, others in rows:
        words, value = elsewhere.get(name, ("", default.strip(" `")))
        assert words in others
        if name in shown and not name.endswith("_file") and name != "key_prefix":
            assert shown[name] == value, name
    assert set(shown) <= {name for name, *_ in rows}


@pytest.mark.one_of("debian", "packages/debian")
def test_man_finds_every_page(install):
    bare = install("libredlock0", "redlock-tools", "libredlock-dev", more="man-db")
    for page, section in ("redlock", 1), ("redlock.conf", 5), ("libredlock", 3):
        assert bare.run(f"man {page}", MANPAGER="cat").startswith(f"{page}({section}) ")


@pytest.mark.one_of("debian", "packages/debian", "cmake/libredlock.pc.in", "docs/examples/lock.c")
def test_the_dev_package_builds_the_example(install, nodes):
    bare = install("libredlock0", "libredlock-dev", more="gcc libc6-dev pkg-config")
    for flags in "--cflags --libs", "--cflags --libs --static":
        said = bare.run(f"cc /usr/share/doc/libredlock-dev/examples/lock.c $(pkg-config {flags} libredlock) && ./a.out",
                        "/srv", REDLOCK_NODES=nodes.nodes_env)
        assert "extended: OK, held for 1" in said and "\nOK: " in said
    nodes.no_keys()


def test_the_extension_wants_the_php_that_it_was_built_for(made):
    """Headers of a patch release may call functions that earlier ones do not have."""
    depends = run("dpkg-deb", "--field", package(made, "php-redlock"), "Depends").split(", ")
    php = run("php-config", "--version").strip()
    assert f"php{php.rsplit('.', 1)[0]}-common (>= {php})" in depends
    assert f"phpapi-{run('php-config', '--phpapi').strip()}" in depends


@pytest.mark.one_of("debian", "packages/debian", "php/config.m4")
def test_the_php_package_installs_upgrades_and_leaves_nothing(install, install_older, container, nodes):
    """Without -d extension: the package itself turns it on. What an administrator has changed stays."""
    container.run("apt-get update && apt-get install php-cli")
    before = container.run(FILES)
    shutil.copytree(ROOT / "php/lib", container.path("/srv/lib"), ignore=shutil.ignore_patterns("vendor"))
    install_older("php-redlock")
    container.run("echo '; mine' >>/etc/php/*/mods-available/redlock.ini")

    bare = install("php-redlock")
    assert bare.run("php -m | grep -x redlock; tail -n 1 /etc/php/*/mods-available/redlock.ini") == "redlock\n; mine\n"
    bare.path("/srv/job.php").write_text(PHP)
    assert bare.run("php /srv/job.php", REDLOCK_NODES=nodes.nodes_env) == "Held\n"
    nodes.no_keys()

    assert bare.run("apt-get remove php-redlock >/dev/null; php -r 'echo extension_loaded(\"redlock\");' 2>&1") == ""
    bare.run("apt-get purge php-redlock && apt-get autoremove --purge")
    assert bare.run(FILES) == before

"""What README and docs tell people to type works as it stands there, in a bare Debian: nothing is installed but what
the lines install, and of that only what is needed."""
import re

import pytest

from conftest import REPOSITORY, ROOT
from pages import PAGES, blocks, headings, packages, section, steps, typed

ELSEWHERE = {
    ("README.md", "libredlock"),  # a line to look at, and first_lines()
    ("php/README.md", "The PHP extension redlock"),  # part of the archive's lines in docs/php.md
    ("docs/redlock.md", "Files"),  # the contents of a file
    ("docs/redlock.md", "Permissions"),  # a line of a server's configuration
}

NOT_RUN = {  # what cannot be run here, and the words with which the page says so
    ("docs/php.md", "With PIE"): "Once the package is published",
    ("docs/php.md", "In the official Docker images"): "The tests have no Docker",
    ("docs/php.md", "On Alpine, with its own PHP"): "The tests have no Alpine",
    ("docs/deploy.md", "Kubernetes"): "The tests have no cluster",
}
SHOWN = {  # no commands, or run elsewhere
    ("docs/fencing.md", "Fencing"): "Python and SQL: docs/examples/fenced_store.py, tests/python/test_fenced_store.py",
    ("docs/fencing.md", "The store"): "the same",
    ("docs/kinds.md", "Leader"): "docs/redlock.md has the same line",
    ("docs/php.md", "Nodes"): "test_bootstrap of the command, BootstrapTest.php",
}

pytestmark = pytest.mark.timeout(1800)


def at_nodes(text, nodes):
    """The pages' nodes are made up; these take their place."""
    return re.sub(r"redis://10\.0\.0\.(\d)", lambda found: nodes.urls[int(found.group(1)) - 1], text)


PHP_BODIES = """
function chargeOrder(int $id): int { echo "charged $id\\n"; return 1; }
function buildReport(): void { echo "built\\n"; }
function sendReport(): void { echo "sent\\n"; }
"""


def type_on_new_nodes(clone, script, nodes):
    """What the lines say. The nodes are bootstrapped unless that is among the lines."""
    nodes.reset()
    if "redlock bootstrap" in script:
        for node in nodes:
            node.flush()
    clone.path("/srv/typed").write_text(at_nodes(script, nodes))
    terminal = "script -qec 'bash -e typed' /dev/null <<<y"  # a question is answered with yes
    start = terminal if "--force" in script or "redlock bootstrap" in script else "bash -e typed"
    return clone.run(start, "/srv", REDLOCK_NODES=nodes.nodes_env).replace("\r\n", "\n")


@pytest.mark.one_of("document", "README.md", "docs/redlock.md")
def test_the_c_and_shell_of_readme_run(clone, nodes):
    install, script = typed("README.md", "Shell").split("\n\n", 1)
    clone.run(install, REPOSITORY)
    code = typed("README.md", "C", "c")
    compile_it = re.search(r"/\* (cc job\.c [^,]*),", code).group(1)
    includes, statements = re.fullmatch(r"((?:#include [^\n]*\n)+)(.*)", code, re.S).groups()
    clone.path("/srv").mkdir(exist_ok=True)
    clone.path("/srv/job.c").write_text(
        f"{includes}static void work(void) {{ puts(\"worked\"); }}\n"
        f"static void complain(void) {{ puts(\"lost\"); }}\n"
        f"int main(void) {{\n{at_nodes(statements, nodes)}\nreturn 0; }}\n")
    assert clone.run(f"{compile_it} && ./a.out", "/srv") == "worked\n"

    for name in "report.sh", "import.sh", "scheduler", "step-one", "step-two", "steps.sh":
        clone.path(f"/srv/{name}").write_text("#!/bin/sh\necho ran $0 under $REDLOCK_RESOURCE\n")
        clone.path(f"/srv/{name}").chmod(0o755)
    said = type_on_new_nodes(clone, script, nodes)
    assert "ran ./report.sh under nightly-report\n" in said
    for heading in [heading for heading, text in headings("docs/redlock.md") if has_shell(text)]:
        if ("docs/redlock.md", heading) not in ELSEWHERE:
            script = re.sub(r"^0 3 \* \* \* ", "", typed("docs/redlock.md", heading), flags=re.M)
            said = type_on_new_nodes(clone, script, nodes)
            assert all(f"ran ./{name} " in said for name in re.findall(r"\./([\w.-]+)", script)), said


@pytest.mark.one_of("document", "README.md", "docs/python.md")
def test_the_python_of_readme_and_python_md_runs(clone, nodes):
    """The page and the first lines of README have the commands of its section, so what one lacks would show in the
    other; the first lines install one package more."""
    readme, page = typed("README.md", "Python"), typed("docs/python.md", "Python")
    install, program = first_lines()[0].split("\npython ", 1)
    assert steps(page) == steps(readme) and steps(install)[1:] == steps(readme)[1:]
    assert packages(install) - packages(readme) == {"redis-server"} and packages(readme) <= packages(install)
    said = clone.run(f"{readme}\npython - <<'END'\n{typed('README.md', 'Python', 'python')}END\n", REPOSITORY,
                     REDLOCK_NODES=nodes.nodes_env)
    assert re.search(r"held for \d+\.\d s more", said)
    code = at_nodes(typed("docs/python.md", "Python", "python"), nodes)
    said = clone.run(f". venv/bin/activate\npython - <<'END'\n{code}END\n", REPOSITORY)
    assert "renewed until the block ends" in said
    nodes.no_keys()
    said = clone.run(f"{steps(install)[0]}\n. venv/bin/activate\npython {program}", REPOSITORY)
    assert re.search(r"held for \d+\.\d s more", said)


def test_the_python_readme_works_with_a_wheel(container, made, nodes):
    """As people install it once it is published: without a compiler, and without hiredis. Until then the page says how
    to install a clone."""
    for wheel in made.glob("*.whl"):
        target = container.path(f"/srv/{wheel.name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(wheel.read_bytes())
    container.run("apt-get install python3-venv && python3 -m venv /venv")
    code = at_nodes(typed("python/README.md", "libredlock", "python"), nodes)
    assert typed("python/README.md", "libredlock").strip() == "pip install ."
    said = container.run(f". /venv/bin/activate\npip install libredlock\npython - <<'END'\n{code}END\n",
                         PIP_FIND_LINKS="/srv")
    assert re.search(r"held for \d+\.\d s more", said)
    assert container.run("command -v gcc cc pkg-config || find / -xdev -name 'libhiredis*.so*'") == ""
    nodes.no_keys()


def php_script(nodes, require):
    return f"<?php\n{require}\n{at_nodes(typed('docs/php.md', 'A script', 'php'), nodes)}{PHP_BODIES}"


@pytest.mark.one_of("document", "README.md", "docs/php.md")
def test_the_php_of_readme_and_php_md_runs_with_composer(clone, nodes):
    readme, page = typed("README.md", "PHP"), typed("docs/php.md", "From this repository")
    build, enable = page.rstrip().rsplit("\n", 1)
    assert steps(readme) == [*steps(build), "php -d extension=redlock job.php"]  # so one of them is enough
    code = at_nodes(typed("README.md", "PHP", "php"), nodes)
    clone.path(f"{REPOSITORY}/job.php").write_text(code + PHP_BODIES)
    assert "charged 42\n" in clone.run(readme, REPOSITORY)

    clone.run(enable, REPOSITORY)
    application(clone)
    clone.run("apt-get install composer")
    clone.run(typed("docs/php.md", "Then the library"), "/srv/app", COMPOSER_ALLOW_SUPERUSER="1")
    clone.path("/srv/app/job.php").write_text(php_script(nodes, "require 'vendor/autoload.php';"))
    assert clone.run("php job.php", "/srv/app") == "charged 42\nbuilt\nsent\n"
    nodes.no_keys()


def application(clone):
    """A project of a user of Composer who has Hyperf already, and no way to packagist.org."""
    clone.path("/root/.config/composer").mkdir(parents=True)
    clone.path("/root/.config/composer/config.json").write_text('{"repositories": {"packagist.org": false}}')
    clone.path("/srv/app").mkdir(parents=True)
    hyperf = re.findall(r'"(hyperf/\w+)"', (ROOT / "php/hyperf/composer.json").read_text())
    replaced = ", ".join(f'"{name}": "3.1.71"' for name in hyperf)
    clone.path("/srv/app/composer.json").write_text(f'{{"replace": {{{replaced}}}}}')


@pytest.mark.one_of("document", "docs/php.md", "php/config.m4")
def test_php_md_works_from_the_archive_without_composer(clone, made, nodes):
    (archive,) = made.glob("php_redlock-*-src.tgz")
    clone.path(f"/srv/{archive.name}").parent.mkdir(exist_ok=True)
    clone.path(f"/srv/{archive.name}").write_bytes(archive.read_bytes())
    clone.run(typed("docs/php.md", "From a source archive"), "/srv")
    assert clone.run("command -v swig python3 || find / -xdev -name 'libhiredis*.so*'") == ""
    assert "hiredis" not in clone.run("ldd $(php-config --extension-dir)/redlock.so")
    require = typed("docs/php.md", "Then the library", "php")
    clone.path("/srv/job.php").write_text(php_script(nodes, require))
    assert clone.run("php job.php", "/srv") == "charged 42\nbuilt\nsent\n"
    nodes.no_keys()


def first_lines():
    """Of README: how to install it with a first program, and the two commands of contributors."""
    install, commands = [block.text for block in blocks(section("README.md", "libredlock")) if "apt-get" in block.text
                         or "./dev" in block.text]
    return install, commands


@pytest.mark.one_of("document", "dev", "tests/tools/setup.sh")
def test_dev_demo_shows_php_and_python(clone):
    begin, *_ = first_lines()[1].splitlines()
    said = clone.run(begin, REPOSITORY)
    assert "PHP" in said and "Python" in said


@pytest.mark.one_of("document", "CONTRIBUTING.md", "CMakeLists.txt", "tests/tools/setup.sh")
def test_the_first_minute_of_contributing_passes_its_tests(clone):
    """Unit tests need a compiler, no servers and no other languages."""
    get, build_and_test = typed("CONTRIBUTING.md", "The first minute").splitlines()
    assert get.startswith("git clone ")
    assert re.search(r"^\d+ passed, 0 failed$", clone.run(build_and_test, REPOSITORY), re.M)
    assert clone.run("command -v redis-server php clang valgrind swig pip || true") == ""


def has_shell(text):
    return any(block.language == "sh" for block in blocks(text))


def test_every_block_is_run_or_listed():
    """A block of sh that is never run is an untested promise."""
    missing = [(page, heading) for page in PAGES if page != "docs/redlock.md" for heading, text in headings(page)
               if has_shell(text) and (page, heading) not in ELSEWHERE | set(NOT_RUN) and not is_named(page, heading)]
    assert missing == []


def test_every_command_of_the_other_pages_is_run_or_says_why_not():
    others = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} - set(PAGES) - {"docs/ARCHITECTURE.md"}
    commands = [(page, heading) for page in sorted(others | set(PAGES)) for heading, text in headings(page)
                if any(block.language in ("console", "dockerfile") or block.language == "sh" and page in others
                       for block in blocks(text))]
    assert len(commands) >= 10
    assert [place for place in commands if place not in SHOWN | NOT_RUN and not is_named(*place)] == []
    assert [place for place, words in NOT_RUN.items() if words not in section(*place)] == []


def is_named(page, heading):
    tests = [*(ROOT / "tests/packages").glob("test_*.py"), ROOT / "tests/live/cli/test_cli_documents.py"]
    return any(f'"{page}", "{heading}"' in path.read_text() for path in tests)

"""Which failures are lateness, and what becomes of late cases: runs of pytest in small repositories."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAD = """\
import pathlib
import subprocess
import pytest
from testing import Late, eventually
BEFORE = next(folder / "build/runs" for folder in pathlib.Path(__file__).parents if (folder / "build").exists())
def runs(name):
    with open(BEFORE / name, "a") as file:
        file.write(".")
    return (BEFORE / name).stat().st_size
"""
# Late in its first N runs.
LATE = """
def test_{name}():
    n = runs("{name}")
    print("seen by", "{name}")
    eventually(lambda: n > {times}, 0.01, "the machine has time")
"""


class Repository:
    """Tests that were committed eleven commits ago, and what runs them."""

    def __init__(self, folder):
        self.folder = folder
        self.file = "tests/test_x.py"
        for name in "tests/conftest.py", "tests/pytest.ini", "tests/allowed-skips.txt":
            self.write(name, (ROOT / name).read_text())
        shutil.copytree(ROOT / "tests/tools", folder / "tests/tools", ignore=shutil.ignore_patterns("__pycache__"))
        self.write(".gitignore", "build/\n__pycache__/\n")
        self.results = folder / "build/results"
        (folder / "build/runs").mkdir(parents=True)
        self.git("init", "-q")

    def write(self, name, text):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)

    def git(self, *words):
        author = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *author, "-C", self.folder, *words], check=True, capture_output=True)

    def commit(self, *cases, later=10):
        self.write(self.file, HEAD + "".join(cases))
        self.git("add", ".")
        self.git("commit", "-q", "-m", "tests: begin")
        for number in range(later):
            self.git("commit", "-q", "--allow-empty", "-m", f"tests: step {number}")

    def run(self, *options, report=None, status=None):
        """One part, and the end of tests/run: the lines, and whether all is well."""
        (self.results / "part").mkdir(parents=True)
        if report:
            (self.results / "part/report.1").write_text(report)
        script = (
            '. tests/tools/setup.sh; status=0; run_recorded "$@" || status=$?;'
            f" echo {'$status' if status is None else status} 1 1 >build/results/part/status;"
            " exec python3 tests/tools/summary.py build/results"
        )
        junit = "build/results/part/x.xml"
        pytest_of_it = [sys.executable, "-m", "pytest", "-q", f"--junitxml={junit}", *options, self.file]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests/kit")}
        done = subprocess.run(
            ["bash", "-c", script, "sh", junit, *pytest_of_it],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.stderr == ""
        return done.stdout.splitlines(), done.returncode

    def runs(self, name):
        return (self.folder / "build/runs" / name).stat().st_size


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadgroup")])
def test_late_once_and_then_in_time_has_passed(repository, options):
    repository.commit(LATE.format(name="a", times=1), "\ndef test_b(): pass\n")
    lines, status = repository.run(*options)
    assert lines[-1] == "2 passed, 0 failed" and status == 0
    assert "late: part tests/test_x.py::test_a" in lines and repository.runs("a") == 4
    assert lines[lines.index("late: part tests/test_x.py::test_a") + 2] == "  tests/test_x.py::test_a"
    (kept,) = (repository.folder / "build/late/part").iterdir()
    assert "not within 0.01 s: the machine has time" in kept.read_text() and "seen by a" in kept.read_text()


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadgroup")])
def test_a_case_with_parameters_and_a_group_is_run_again(repository, options):
    marks = '\n@pytest.mark.xdist_group("g")\n@pytest.mark.parametrize("url", ["redis://a@b::1 [c]/0", "x"])\n'
    repository.commit(marks + 'def test_a(url):\n    eventually(lambda: runs("a" + url[:1]) > 1 or url == "x", 0)\n')
    lines, status = repository.run(*options)
    assert lines[-1] == "2 passed, 0 failed" and status == 0
    assert (repository.runs("ar"), repository.runs("ax")) == (4, 1)


def test_phpunit_names_the_class_of_a_failure(repository):
    """It is run again by the same command, with the case's name and file."""
    failure = '<failure type="{}">words</failure>'
    case = f'<testcase name="testA with data set #1 (~)" file="{repository.folder}/php/ATest.php">'
    (repository.results / "part").mkdir(parents=True)
    junit = repository.results / "part/x.xml"
    for kind, name in (("Redlock\\Tests\\Late", "php/ATest.php::testA with data set #1 (~)"),
                       ("PHPUnit\\Framework\\ExpectationFailedException", None)):
        junit.write_text(f"<testsuite>{case}{failure.format(kind)}</testcase></testsuite>")
        program = f"import late, pathlib; p = pathlib.Path({str(junit)!r}); n = late.late_name(late.cases_of(p)[0]);" \
                  "print(n); print(*late.arguments(late.Case('part', n, '', p), ['phpunit'], 'J') if n else ())"
        done = subprocess.run([sys.executable, "-c", program], cwd=repository.folder / "tests/tools",
                              capture_output=True, text=True)
        again = r"--filter ~::testA\ with\ data\ set\ \#1\ \(\~\)$~ --log-junit J php/ATest.php" if name else ""
        assert done.stdout.splitlines() == [str(name), again], done.stderr


def test_late_again_has_failed(repository):
    repository.commit(LATE.format(name="a", times=2))
    lines, status = repository.run()
    assert lines[-1] == "0 passed, 1 failed" and status == 1 and repository.runs("a") == 2
    assert any("run again, number 1 of 3: ended with status 1" in line for line in lines)


BODIES = {  # of a case that fails in its first run, and how often it runs: four times if that was lateness
    "assert n > 1": 1,
    "raise OSError": 1,
    "import os; os._exit(139)": 1,
    "try: assert n > 1\n    finally: eventually(lambda: n > 1, 0)": 1,
    "subprocess.run(['sleep', '9' if n == 1 else '0'], timeout=0.05 if n == 1 else 9)": 4,
    "import time; time.sleep(9 if n == 1 else 0)": 4,
    "if n == 1: raise Late('more than 3 s')": 4,
    "if n == 1: pytest.fail('Late')": 1,
    "eventually(lambda: n > 1, 0) if n < 2 else pytest.skip('no kernel support')": 2,
}


def test_only_bounds_of_time_are_lateness(repository):
    case = "\n@pytest.mark.timeout(1)\ndef test_a{0}():\n    n = runs('a{0}')\n    {1}\n"
    repository.commit(*(case.format(number, body) for number, body in enumerate(BODIES)))
    lines, status = repository.run("-n", "1")
    assert {body: repository.runs(f"a{number}") for number, body in enumerate(BODIES)} == BODIES
    assert lines[-1] == "3 passed, 6 failed" and status == 1
    late = {f"late: part tests/test_x.py::test_a{number}" for number, runs in enumerate(BODIES.values()) if runs == 4}
    assert {line for line in lines if line.startswith("late: ")} == late


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_teardown_that_fails_after_lateness_has_failed(repository, options):
    fixture = "\n@pytest.fixture\ndef f():\n    yield\n    assert runs('f') > 1\n"
    repository.commit(fixture + LATE.format(name="a", times=1).replace("a()", "a(f)"))
    lines, status = repository.run(*options)
    assert not lines[-1].endswith(" 0 failed") and status == 1


@pytest.mark.parametrize("later, passed", [(9, False), (10, True)])
def test_lateness_in_a_file_that_was_changed_is_failure(repository, later, passed):
    repository.commit(LATE.format(name="a", times=1), later=later)
    lines, status = repository.run()
    assert (status == 0) == passed and repository.runs("a") == (4 if passed else 1)
    assert any("tests/test_x.py was changed lately" in line for line in lines) != passed


def test_a_case_that_runs_in_virtual_time_too_may_be_late(repository):
    repository.file = "tests/live/virtual/test_x.py"
    repository.write("tests/late.txt", f"{repository.file}::test_a\n")
    repository.commit(LATE.format(name="a", times=1), LATE.format(name="b", times=2), later=0)
    lines, status = repository.run()
    assert lines[-1] == "1 passed, 1 failed" and status == 1
    assert (repository.runs("a"), repository.runs("b")) == (4, 2)
    assert not any("to be added" in line for line in lines)


def test_lateness_in_a_file_that_is_not_committed_is_failure(repository):
    repository.commit(LATE.format(name="a", times=1))
    with open(repository.folder / "tests/test_x.py", "a") as file:
        file.write("\n")
    assert repository.run()[1] == 1 and repository.runs("a") == 1


def test_lateness_without_history_is_failure(repository):
    repository.commit(LATE.format(name="a", times=1))
    shutil.rmtree(repository.folder / ".git")
    lines, status = repository.run()
    assert status == 1 and any("no history here" in line for line in lines)


def test_a_name_that_was_late_before_is_failure(repository):
    repository.write("tests/late.txt", "# names\ntests/test_x.py::test_a\n")
    repository.commit(LATE.format(name="a", times=1), LATE.format(name="ab", times=1))
    lines, status = repository.run()
    assert lines[-1] == "1 passed, 1 failed" and status == 1
    assert (repository.runs("a"), repository.runs("ab")) == (1, 4)
    assert "late: part tests/test_x.py::test_ab" in lines


@pytest.mark.parametrize("count", [5, 6])
def test_more_than_five_late_cases_fail(repository, count):
    """As many as may be late are run again, each by itself."""
    repository.commit(*(LATE.format(name=f"a{n}", times=2) for n in range(count)))
    lines, status = repository.run()
    assert lines[-1] == f"0 passed, {count} failed" and status == 1
    assert [repository.runs(f"a{n}") for n in range(count)] == [2 if count == 5 else 1] * count
    assert lines.count("  6 cases are late, 5 may be") == (6 if count == 6 else 0)


def test_report_of_a_sanitizer_beside_a_late_case_is_failure(repository):
    repository.commit(LATE.format(name="a", times=1))
    lines, status = repository.run(report="ERROR: AddressSanitizer\n")
    assert lines[-1] == "1 passed, 1 failed" and status == 1
    assert any("ERROR: AddressSanitizer" in line for line in lines)


def test_report_of_a_sanitizer_in_another_run_is_failure(repository):
    report = "\n    (BEFORE.parent / 'results/part/report.2').write_text('leak') if n == 3 else 0\n"
    repository.commit(LATE.format(name="a", times=1) + report)
    lines, status = repository.run()
    assert status == 1 and any("number 2 of 3: a sanitizer has reported" in line for line in lines)


def test_status_of_a_part_beside_a_late_case_is_failure(repository):
    """As when something else than pytest has failed in it."""
    repository.commit(LATE.format(name="a", times=1))
    lines, status = repository.run(status=3)
    assert any("ended with status 3" in line for line in lines) and status == 1

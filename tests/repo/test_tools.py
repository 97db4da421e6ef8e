"""The tools that count tests and check forms: each must be able to fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tools"))
import floors  # noqa: E402
import lint  # noqa: E402
import summary  # noqa: E402

PASSED = '<testcase classname="a" name="one"/>'
FAILED = '<testcase classname="a" name="two"><failure message="1 != 2"/></testcase>'
SKIPPED = '<testcase classname="a" name="three"><skipped message="no kernel support"/></testcase>'


def read(tmp_path, cases, status=0, allowed=()):
    folder = tmp_path / "part"
    folder.mkdir()
    if cases is not None:
        (folder / "part.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    (folder / "status").write_text(f"{status} 7 5\n")
    return summary.read_part(folder, set(allowed))


def counts(part):
    return part.passed, len(part.failures), len(part.skips)


def test_cases_are_counted(tmp_path):
    part = read(tmp_path, PASSED + FAILED + SKIPPED, 1, ["no kernel support"])
    assert counts(part) == (1, 1, 1)
    assert part.failures == [("a::two", "1 != 2")]
    assert (part.seconds, part.processor) == (7, 5)


def test_a_skip_for_an_unlisted_reason_is_a_failure(tmp_path):
    part = read(tmp_path, PASSED + SKIPPED)
    assert counts(part) == (1, 1, 0)
    assert "no kernel support" in part.failures[0][1]


def test_a_part_that_dies_is_a_failure(tmp_path):
    assert counts(read(tmp_path, PASSED, 139)) == (1, 1, 0)


def test_a_part_without_a_test_is_a_failure(tmp_path):
    assert counts(read(tmp_path, None)) == (0, 1, 0)


def test_a_torn_file_is_a_failure(tmp_path):
    assert counts(read(tmp_path, "<testcase")) == (0, 1, 0)


def test_the_closing_line_counts_all_parts(tmp_path):
    for name, cases, status in ("one", PASSED, 0), ("two", PASSED + FAILED, 1):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.xml").write_text(f"<testsuite>{cases}</testsuite>")
        (tmp_path / name / "status").write_text(f"{status} 1 0\n")
    done = subprocess.run([sys.executable, ROOT / "tests/tools/summary.py", tmp_path], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "2 passed, 1 failed"
    assert done.returncode == 1


def test_a_part_that_left_nothing_is_a_failure(tmp_path, capsys):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "x.xml").write_text(f"<testsuite>{PASSED}</testsuite>")
    (tmp_path / "one" / "status").write_text("0 1 0\n")
    assert summary.main(tmp_path, "one") == 0
    assert summary.main(tmp_path, "one", "two") == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"


def test_case_reports_the_status_of_its_command(tmp_path):
    for status in 0, 3:
        path = tmp_path / f"{status}.xml"
        tool = [sys.executable, ROOT / "tests/tools/case.py", "x", path]
        done = subprocess.run([*tool, "--", "sh", "-c", f"exit {status}"])
        assert done.returncode == (1 if status else 0)
        assert ("ended with status 3" in path.read_text()) == (status == 3)


def test_lint_finds_what_it_looks_for():
    lines = (
        f"x = '/{'home'}/somebody/file'",
        "blank ",
        "x" * 121,
        "a\tb",
        f"{'TO'}DO later",
        f"def test_{'x' * 56}():",
        f"    public function test{'X' * 57}(): void",
        f"static void {'x' * 61}(void **state)",
        f"def test_{'x' * 55}():",
        "https://example.org/work/x",
    )
    assert [len(list(lint.problems_of_line(line, True))) for line in lines] == [1] * 8 + [0] * 2


def test_lint_finds_long_files_and_functions():
    function = ["void f(void)", "{", *["  g();"] * 44, "}"]
    assert list(lint.problems_of_length(function, True)) == []
    assert len(list(lint.problems_of_length([*function[:-1], "  g();", "}"], True))) == 1
    for name, most in ("tests/sim/oracle.c", 700), ("core/src/node/tls.c", 700), ("core/src/node/node.c", 520):
        found = [list(lint.problems_of_length(["x = 1"] * lines, False, lint.most_lines(name)))
                 for lines in (most, most + 1)]
        assert found == [[], [(most + 1, f"{most + 1} lines, {most} are allowed")]]


def alone(folder, *words):
    """What `dev` and tests/run do under a name, in the shell: they share what they build."""
    command = [f". '{ROOT}/tests/tools/setup.sh' && alone \"$@\"; echo and goes on", "sh", "name", *words]
    return subprocess.Popen(["bash", "-c", *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_floors_finds_faces_that_reach_below_the_header(tmp_path, monkeypatch):
    monkeypatch.setattr(floors, "ROOT", tmp_path)
    monkeypatch.setattr(floors, "SOURCES", tmp_path / "core/src")
    for name, text in {"core/src/base/fork.h": "", "core/cli/cli.h": '#include "redlock.h"\n',
                       "core/cli/ls.c": '#include "cli.h"\n#include "base/fork.h"\n'}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(floors.problems_of_faces()) == ["core/cli/ls.c: includes base/fork.h, which is below the public header"]


def test_one_process_builds_what_several_need(tmp_path):
    busy = "mkdir busy && sleep 0.2 && rmdir busy"  # fails if somebody is busy
    for one in [alone(tmp_path, "sh", "-c", busy) for _ in range(3)]:
        assert one.communicate() == (b"and goes on\n", b"") and one.returncode == 0


def test_a_build_that_fails_ends_who_needs_it(tmp_path):
    one = alone(tmp_path, "fail", "words")
    assert one.communicate() == (b"", b"dev: words\n") and one.returncode == 2


def in_repository(folder, *arguments, **options):
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", folder, *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


@pytest.fixture
def linked_tree(tmp_path):
    """A linked work tree of a repository that has the hooks and was set up as CONTRIBUTING.md says."""
    whole = tmp_path / "whole"
    for name in ".githooks", "tests/tools":
        shutil.copytree(ROOT / name, whole / name)
    in_repository(tmp_path, "init", "-q", whole)
    in_repository(whole, "add", ".")
    in_repository(whole, "commit", "-q", "-m", "tests: begin")
    in_repository(whole, "config", "core.hooksPath", ".githooks")
    in_repository(whole, "worktree", "add", "-q", tmp_path / "linked")
    (tmp_path / "linked/docs").mkdir()
    return tmp_path / "linked"


LONG = "docs: " + "x" * 67


@pytest.mark.parametrize(
    "message, refused",
    [
        (LONG, "73 columns"),
        ("\n\n" + LONG, "73 columns"),
        ("docs: the first line of a subject that is wrapped\nand so much too long for a list", "81 columns"),
        ("Say more in the documents", "an area and a colon"),
        ("docs: say more\n\n" + LONG, None),
        ("docs: " + "ü" * 66, None),
    ],
)
def test_hook_refuses_subjects_in_a_linked_work_tree(linked_tree, message, refused):
    done = in_repository(linked_tree / "docs", "commit", "--allow-empty", "-F", "-", input=message)
    assert (done.returncode == 0) == (refused is None), done.stderr
    assert refused is None or refused in done.stderr

#!/usr/bin/env python3
"""Forms of all files of the repository and of the subjects of its last commits; prints each violation on a line.

With --message FILE only the commit message in that file is checked, which is what the hook commit-msg passes."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COLUMNS = 120
LINES_OF_FILE = 700
LINES_OF_SOURCE = 520  # below core/src, but for those that are LONG
LONG = {"core/src/node/tls.c"}
LINES_OF_FUNCTION = 45  # in C, between its braces
COLUMNS_OF_SUBJECT = 72
LETTERS_OF_TEST = 60
COMMITS = 5  # the last ones
CODE = {".c", ".h", ".py", ".pyi", ".php", ".i", ".cmake", ".sh", ""}
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:home|root|work|Users)/\w")
TEST = re.compile(r"\bdef (test_\w+)|\bfunction (test[A-Z]\w*)|^static void (\w+)\(void \*\*state")
AREA = re.compile(r"[a-z][^:]*: \S|Merge ")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")


def git(*arguments, **options):
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, encoding="utf-8", **options
    ).stdout


def tracked_files():
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def problems_of_line(line, is_code):
    if MACHINE_PATH.search(line):
        yield "a path of one machine"
    if line != line.rstrip():
        yield "blanks at the end"
    if is_code and len(line) > COLUMNS:
        yield f"{len(line)} columns, {COLUMNS} are allowed"
    if is_code and "\t" in line:
        yield "a tab"
    if UNFINISHED.search(line):
        yield "unfinished"
    test = TEST.search(line) if is_code else None
    if test and len(test[test.lastindex]) > LETTERS_OF_TEST:
        yield f"a test's name of {len(test[test.lastindex])} letters, {LETTERS_OF_TEST} are allowed"


def problems_of_subject(subject):
    if len(subject) > COLUMNS_OF_SUBJECT:
        yield f"the subject has {len(subject)} columns, {COLUMNS_OF_SUBJECT} are allowed"
    if not AREA.match(subject):
        yield "the subject does not begin with an area and a colon"


def most_lines(name):
    return LINES_OF_SOURCE if name.startswith("core/src/") and name not in LONG else LINES_OF_FILE


def problems_of_length(lines, is_c, most=LINES_OF_FILE):
    if len(lines) > most:
        yield len(lines), f"{len(lines)} lines, {most} are allowed"
    begin = 0
    for number, line in enumerate(lines, 1) if is_c else ():
        if line == "{":
            begin = number
        elif line == "}" and begin:
            if number - begin > LINES_OF_FUNCTION:
                yield begin, f"a function of {number - begin} lines, {LINES_OF_FUNCTION} are allowed"
            begin = 0


def problems_of_file(path):
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    is_code = path.suffix in CODE and path.name not in ("LICENSE", "rules")  # rules is a makefile, which needs tabs
    if text and not text.endswith("\n"):
        yield len(text.splitlines()), "no newline at the end"
    for number, line in enumerate(text.splitlines(), 1):
        for problem in problems_of_line(line, is_code):
            yield number, problem
    if is_code:
        name = path.relative_to(ROOT).as_posix()
        is_c = name.startswith("core/") and path.suffix == ".c"
        yield from problems_of_length(text.splitlines(), is_c, most_lines(name))


def subject_of_message(text):
    """As git log shows it: all lines of the first paragraph."""
    return " ".join(git("stripspace", "--strip-comments", input=text).split("\n\n")[0].split())


def problems_of_commits():
    for commit in git("log", f"-{COMMITS}", "--no-merges", "--format=%h %s").splitlines():
        name, _, subject = commit.partition(" ")
        yield from (f"commit {name}: {problem}: {subject}" for problem in problems_of_subject(subject))


def main():
    if sys.argv[1:2] == ["--message"]:
        subject = subject_of_message(Path(sys.argv[2]).read_text(encoding="utf-8"))
        found = [f"{problem}: {subject}" for problem in problems_of_subject(subject)]
        print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
        return 1 if found else 0
    found = [
        f"{path.relative_to(ROOT)}:{number}: {problem}"
        for path in tracked_files()
        for number, problem in problems_of_file(path)
    ]
    found += problems_of_commits()
    print("\n".join(found) if found else "lint: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Forms that every file of the repository keeps; prints what does not, one a line."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COLUMNS = 120
LINES_OF_FILE = 700
LINES_OF_FUNCTION = 50  # in C, between its braces
CODE = {".c", ".h", ".py", ".pyi", ".php", ".i", ".cmake", ".sh", ""}
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:home|root|work|Users)/\w")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")


def tracked_files():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
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


def problems_of_length(lines, is_c):
    if len(lines) > LINES_OF_FILE:
        yield len(lines), f"{len(lines)} lines, {LINES_OF_FILE} are allowed"
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
        yield from problems_of_length(text.splitlines(), path.suffix == ".c" and "core" in path.parts)


def main():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {problem}"
        for path in tracked_files()
        for number, problem in problems_of_file(path)
    ]
    print("\n".join(found) if found else "lint: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

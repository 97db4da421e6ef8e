#!/usr/bin/env python3
"""Tells lateness from failure.

A case is late when nothing but time has failed in it: `eventually` or another stated bound raised Late, a command
outlasted its time-out, or the case its own. Such a case is run again at the end, alone, three times, and has passed if
it passes each time. It has failed without that if one of the last ten commits, or nobody's commit, has changed its
file, if tests/late.txt names it, and if more than five cases are late. Neither its file nor tests/late.txt speaks
against a case that also runs in virtual time, where nobody is late: there it has passed, or the run has failed.

    late.py FILE...     whether nothing but lateness stands in these JUnit files
"""

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST = 5
TIMES = 3
COMMITS = 10
LIMIT_S = 2000  # of a case that is run again; the longest time-out of a case is 1800 s


@dataclass(frozen=True)
class Case:
    part: str
    name: str  # FILE::NAME, as one says it to what runs it
    words: str
    junit: Path

    @property
    def file(self):
        return self.name.split("::")[0]

    @property
    def is_virtual(self):
        return self.file.startswith("tests/live/virtual/")

    @property
    def function(self):
        """All its parameters are one in tests/late.txt."""
        return re.split(r"\[| with data set ", self.name)[0]


# ---- in the run: which cases are late ----------------------------------------------------------------------------


def is_lateness(error):
    """Whether a bound of time has raised this, and not on the way out of another failure."""
    while error is not None:
        if not (
            isinstance(error, subprocess.TimeoutExpired)
            or any(kind.__name__ == "Late" for kind in type(error).__mro__)
            or (type(error).__name__ == "Failed" and str(error).startswith("Timeout (>"))  # pytest-timeout
        ):
            return False
        error = error.__context__
    return True


def name_of_item(item):
    """Of a case of pytest, whose root is tests/. item.nodeid may have a group of xdist at its end."""
    return f"tests/{item.nodeid.split('::')[0]}::{item.name}"


def mark(item, phase, error):
    """Has the JUnit file say that a case of pytest has failed by lateness in its set-up, its call or its teardown."""
    if is_lateness(error):
        item.user_properties.append((f"late-{phase}", name_of_item(item)))


# ---- in the JUnit files -------------------------------------------------------------------------------------------


def failures_of(case):
    return [element for element in case if element.tag in ("failure", "error")]


def phase_of(failure):
    """That of pytest."""
    if failure.tag == "failure":
        return "call"
    return "teardown" if failure.get("message", "").startswith("failed on teardown") else "setup"


def is_late_in_php(failure):
    return failure.get("type", "").split("\\")[-1] == "Late"


def late_name(case):
    """The name of a <testcase> if all its failures are lateness, else None. PHPUnit gives the exception's class."""
    failures = failures_of(case)
    marks = {found.get("name"): found.get("value") for found in case.iter("property")}
    names = [marks.get(f"late-{phase_of(element)}") for element in failures]
    if failures and all(names):
        return names[0]
    if failures and all(map(is_late_in_php, failures)):
        return f"{os.path.relpath(case.get('file'), ROOT)}::{case.get('name')}"
    return None


def cases_of(path):
    return list(ElementTree.parse(path).getroot().iter("testcase"))


def is_all_that_failed(path):
    try:
        bad = [case for case in cases_of(path) if failures_of(case)]
    except (OSError, ElementTree.ParseError):
        return False
    return bool(bad) and all(map(late_name, bad))


# ---- afterwards: what becomes of them -----------------------------------------------------------------------------


def recently_changed(root):
    """The files that the last commits changed, and those that are not committed; None where there is no history."""

    def git(*words):
        done = subprocess.run(["git", "-C", root, *words], check=True, capture_output=True, text=True)
        return done.stdout.strip("\0\n")

    try:
        if git("rev-parse", "--is-shallow-repository") != "false":
            return None
        listed = (
            git("log", f"-{COMMITS}", "-m", "--name-only", "--format=", "-z"),
            git("diff", "--name-only", "-z", "HEAD"),
            git("ls-files", "--others", "--exclude-standard", "-z"),
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return {name.strip("\n") for names in listed for name in names.split("\0")}


def late_before(root):
    """The functions that tests/late.txt names."""
    path = Path(root, "tests/late.txt")
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
    return {line for line in lines if line and not line.startswith("#")}


def ended_badly(case, root):
    """Runs a case again, as it was run; why it has not passed, or None."""
    recorded = case.junit.with_suffix(".again")
    if not recorded.exists():
        return "nothing says how to run it again"
    command = recorded.read_text(encoding="utf-8").rstrip("\0").split("\0")
    reports = set(case.junit.parent.glob("report.*"))
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder, "again.xml")
        try:
            done = subprocess.run(
                command + arguments(case, command, junit),
                cwd=root,
                timeout=LIMIT_S,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            return f"has not ended within {LIMIT_S} s"
        if set(case.junit.parent.glob("report.*")) != reports:
            return "a sanitizer has reported something"
        ran = cases_of(junit) if junit.exists() else ()
        if done.returncode == 0 and ran and not any(failures_of(one) or one.find("skipped") is not None for one in ran):
            return None
        return f"ended with status {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-2000:]}"


def arguments(case, command, junit):
    """Of pytest or PHPUnit, so that it runs this case alone. The command has lost its own paths: see run_recorded."""
    if case.file.endswith(".php"):
        name = re.escape(case.name.split("::")[1])
        return ["--filter", f"~::{name}$~", "--log-junit", str(junit), case.file]
    return [*(["-n", "0"] if "-n" in command else []), f"--junitxml={junit}", case.name]


def keep(case, root):
    """All that is known of a failure: build/results goes with the next run, this stays."""
    path = Path(root, "build/late", case.part, re.sub(r"[^\w.-]+", "-", case.name)[-150:] + ".txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [
        f"{element.tag}\n{element.get('message') or ''}\n{element.text or ''}\n"
        for found in cases_of(case.junit)
        if late_name(found) == case.name
        for element in found
        if element.tag != "properties"
    ]
    path.write_text("\n".join(texts), encoding="utf-8", errors="replace")


def verdict(case, changed, before, root):
    """Why a late case has failed, or None."""
    if changed is None:
        return "there is no history here that tells what was changed lately"
    if not case.is_virtual:
        if case.file in changed:
            return f"{case.file} was changed lately"
        if case.function in before:
            return "tests/late.txt names it: it was late before"
    for time in range(TIMES):
        words = ended_badly(case, root)
        if words:
            return f"run again, number {time + 1} of {TIMES}: {words}"
    return None


def judge(cases, root=ROOT):
    """(case, why it has failed or None) for each."""
    for case in cases:
        keep(case, root)
    if len(cases) > MOST:
        return [(case, f"{len(cases)} cases are late, {MOST} may be") for case in cases]
    changed, before = recently_changed(root), late_before(root)
    return [(case, verdict(case, changed, before, root)) for case in cases]


if __name__ == "__main__":
    sys.exit(0 if all(map(is_all_that_failed, sys.argv[1:])) else 1)

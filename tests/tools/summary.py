#!/usr/bin/env python3
"""Adds up what the parts of the tests left below a folder and prints one closing line.

    summary.py RESULTS [PART...]

RESULTS holds a folder per part: JUnit files (*.xml) and `status`: the part's exit status, its seconds, and those of
processor time, which tell what makes the whole of them long, as several run side by side. A part that
ended badly without a failed case, or well without any case, counts as one failure; so does one of the PARTs of which
nothing is there, a report of a sanitizer (report.*), and a skip whose reason is not in tests/allowed-skips.txt.
Late cases are run again (late.py), and count as passed if they pass then.
"""

import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

import late

ALLOWED_SKIPS = Path(__file__).resolve().parent.parent / "allowed-skips.txt"


@dataclass
class Part:
    name: str
    seconds: int = 0
    processor: int = 0
    passed: int = 0
    failures: list = field(default_factory=list)  # (case, words)
    late: list = field(default_factory=list)  # of late.Case
    skips: list = field(default_factory=list)  # (case, reason)


def allowed_reasons(path=ALLOWED_SKIPS):
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return {line for line in lines if line and not line.startswith("#")}


def words_of(element, default):
    return (element.get("message") or element.text or default).strip()


def count_case(part, case, path):
    name = (case.get("classname") or path.stem) + "::" + case.get("name")
    bad, late_name = late.failures_of(case), late.late_name(case)
    skipped = case.find("skipped")
    if late_name:
        part.late.append(late.Case(part.name, late_name, words_of(bad[0], "no words"), path))
    elif bad:
        part.failures.append((name, words_of(bad[0], "no words")))
    elif skipped is not None:
        part.skips.append((name, words_of(skipped, name.split("::")[0] + " gives no reason")))
    else:
        part.passed += 1


def count_file(part, path):
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        part.failures.append((path.name, f"is no JUnit file: {error}"))
        return
    for case in root.iter("testcase"):
        count_case(part, case, path)


def read_part(folder, allowed):
    part = Part(folder.name)
    for path in sorted(folder.glob("*.xml")):
        count_file(part, path)
    status, part.seconds, part.processor = map(int, (folder / "status").read_text(encoding="utf-8").split())
    for path in sorted(folder.glob("report.*")):
        part.failures.append((path.name, path.read_text(encoding="utf-8", errors="replace")))
    if status != 0 and not part.failures:
        part.failures.append((part.name, f"ended with status {status} although no case failed"))
    if status == 0 and not (part.passed or part.skips or part.failures or part.late):
        part.failures.append((part.name, "ran no test"))
    for name, reason in part.skips:
        if reason not in allowed:
            part.failures.append((name, f"skipped for a reason that tests/allowed-skips.txt does not list: {reason}"))
    part.skips = [skip for skip in part.skips if skip[1] in allowed]
    return part


def judge_late(parts):
    """Counts them as passed or failed; those that passed stay in part.late."""
    by_name = {part.name: part for part in parts}
    for case, why in late.judge([case for part in parts for case in part.late]):
        part = by_name[case.part]
        if why:
            part.late.remove(case)
            part.failures.append((case.name, f"{why}\n{case.words}"))
        else:
            part.passed += 1


def report_late(parts):
    for part in parts:
        for case in part.late:
            print(f"late: {part.name} {case.name}")
    functions = sorted({case.function for part in parts for case in part.late if not case.is_virtual})
    if functions:
        print("to be added to tests/late.txt until three runs have passed without:\n  " + "\n  ".join(functions))


def report(parts):
    print(f"{'part':<12} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8} {'processor':>10}")
    for part in parts:
        counts = f"{part.passed:>7} {len(part.failures):>7} {len(part.skips):>8} {part.seconds:>8} {part.processor:>10}"
        print(f"{part.name:<12} {counts}")
    for reason in sorted({reason for part in parts for _, reason in part.skips}):
        cases = [f"{part.name} {name}" for part in parts for name, why in part.skips if why == reason]
        print(f"\nskipped, {reason}:\n  " + "\n  ".join(cases))
    for part in parts:
        for name, words in part.failures:
            print(f"\nFAILED {part.name} {name}\n  " + "\n  ".join(words.splitlines()[:12]))
    if any(part.late for part in parts):
        print()
    report_late(parts)


def main(results, *wanted):
    ended = sorted(Path(results).glob("*/status"), key=lambda path: path.stat().st_mtime)
    allowed = allowed_reasons()
    parts = [read_part(path.parent, allowed) for path in ended]
    absent = set(wanted) - {part.name for part in parts}
    parts += [Part(name, failures=[(name, "left no results")]) for name in sorted(absent)]
    judge_late(parts)
    report(parts)
    passed, failed, skipped = (
        sum(counts)
        for counts in zip((0, 0, 0), *((part.passed, len(part.failures), len(part.skips)) for part in parts))
    )
    print(f"\n{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

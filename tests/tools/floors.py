#!/usr/bin/env python3
"""The floors of core/src: a file includes what is on its own floor or below it. Prints every include that climbs."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "core/src"
FLOORS = ("base", "rules", "node", "lock", "client")
INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)


def problems_of_file(path):
    floor = path.parent.name
    if floor not in FLOORS:
        yield "on no floor; there are: " + ", ".join(FLOORS)
        return
    for name in INCLUDE.findall(path.read_text()):
        included = (path.parent / name).resolve()
        if not included.is_relative_to(SOURCES):
            continue
        inner = included.relative_to(SOURCES).as_posix()
        if FLOORS.index(included.parent.name) > FLOORS.index(floor):
            yield f"includes {inner}, which is above it"


def main():
    files = sorted(SOURCES.rglob("*.[ch]"))
    found = [f"{path.relative_to(ROOT)}: {problem}" for path in files for problem in problems_of_file(path)]
    names = [path.name for path in files]
    found += [f"{path.relative_to(ROOT)}: the name is taken twice" for path in files if names.count(path.name) > 1]
    print("\n".join(found) if found else "floors: nothing climbs")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

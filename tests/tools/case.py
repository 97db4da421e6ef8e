#!/usr/bin/env python3
"""Runs a command and writes its outcome as a JUnit file with one case.

case.py NAME FILE -- COMMAND...
"""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def main(name, path, separator, *command):
    if separator != "--":
        sys.exit(__doc__)
    status = subprocess.call(command)
    suite = ElementTree.Element("testsuite", name=name)
    case = ElementTree.SubElement(suite, "testcase", name=name)
    if status != 0:
        ElementTree.SubElement(case, "failure", message=f"{' '.join(command)} ended with status {status}")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path)
    return 0 if status == 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

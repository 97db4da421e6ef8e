#!/usr/bin/env python3
"""The floors of core/src: a file includes what is on its own floor or below it, and the calls between the files of a
floor go one way. Prints every include that climbs and every arrow of a circle. The command and the bindings include
the public header only.

The calls are those that gcc sees (-fcallgraph-info), without those through pointers."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "core/src"
FLOORS = ("base", "rules", "node", "vote", "lock", "wait", "kinds", "client", "api")
FACES = ("core/cli", "bindings", "php")
INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)
NODE = re.compile(r'^node: \{ title: "([^"]+)" label: "[^"]*"(.*)\}', re.MULTILINE)
CALL = re.compile(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', re.MULTILINE)


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


def problems_of_faces():
    for path in (path for face in FACES for path in sorted((ROOT / face).glob("*.[chip]*"))):
        for name in re.findall(r'#include "([^"]+)"', path.read_text()):
            if (SOURCES / name).exists() or "core/src/" in name:
                yield f"{path.relative_to(ROOT)}: includes {name}, which is below the public header"


def calls_of(gcc, path, folder):
    """The functions that a file defines, and those that it calls."""
    output = Path(folder) / (path.stem + ".s")
    subprocess.run([*gcc, "-S", "-o", output, path], check=True)
    graph = output.with_suffix(".ci").read_text()
    defined = {title for title, shape in NODE.findall(graph) if "ellipse" not in shape}
    return defined, {called for caller, called in CALL.findall(graph) if caller in defined} - defined


def arrows():
    """File to the files that it calls, by name of floor and file."""
    flags = subprocess.run(["pkg-config", "--cflags", "hiredis"], capture_output=True, text=True, check=True).stdout
    gcc = ["gcc", "-std=c11", "-w", "-O0", "-D_GNU_SOURCE", "-fcallgraph-info", *shlex.split(flags)]
    sources = [path for path in sorted(SOURCES.rglob("*.c")) if path.stem != "poller_kqueue"]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda path: calls_of(gcc, path, folder), sources))
    names = [path.relative_to(SOURCES).with_suffix("").as_posix() for path in sources]
    home = {function: name for name, (defined, _) in zip(names, found, strict=True) for function in defined}
    return {name: {home[f] for f in called if f in home} for name, (_, called) in zip(names, found, strict=True)}


def circles(graph):
    """Sets of files that reach each other (Tarjan)."""
    index, low, stack, result = {}, {}, [], []

    def visit(name):
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            result.append(set(stack[at:]))
            del stack[at:]

    for name in graph:
        if name not in index:
            visit(name)
    return [circle for circle in result if len(circle) > 1]


def problems_of_calls():
    graph = arrows()
    for circle in circles(graph):
        yield from (f"{a} -> {b}: of a circle" for a in sorted(circle) for b in sorted(graph[a] & circle))


def main():
    files = sorted(SOURCES.rglob("*.[ch]"))
    found = [f"{path.relative_to(ROOT)}: {problem}" for path in files for problem in problems_of_file(path)]
    names = [path.name for path in files]
    found += [f"{path.relative_to(ROOT)}: the name is taken twice" for path in files if names.count(path.name) > 1]
    found += problems_of_faces()
    if shutil.which("gcc"):
        found += problems_of_calls()
    print("\n".join(found) if found else "floors: nothing climbs, nothing goes round")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

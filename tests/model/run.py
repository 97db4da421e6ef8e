#!/usr/bin/env python3
"""Checks the models of this folder with spin against verdicts.txt, which says what each run has to find.

run.py [--fast] [NAME...]    all runs, the fast ones, or those named; exits 1 if one ends otherwise than expected
run.py --sample TEXT         a tenth of them, chosen by the text
run.py --trace NAME          the shortest counterexample of a broken variant, step by step
"""

import argparse
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build/model"
DEPTH = 10000  # steps; a breadth-first search needs few
QUICK_S = 2  # of processor time: most searches take less than it takes to optimize their program
MEMORY_MB = {"fast": 2000, "full": 12000}


@dataclass
class Run:
    name: str
    model: str
    switches: list
    verdict: str  # holds, broken
    set: str  # fast, full
    rules: str  # core: as they are built; limit: what they do not cover; planned: not built yet
    shows: str


def text_of(file):
    """The text of a model and of what it includes."""
    text = (HERE / file).read_text()
    return text + "".join(text_of(included) for included in re.findall(r'^#include "(.*)"', text, re.M))


def switches_of(model):
    text = text_of(f"{model}.pml")
    return set(re.findall(r"(?:^#ifn?def |defined\()(\w+)", text, re.M))


def read_runs():
    rows = [line for line in (HERE / "verdicts.txt").read_text().splitlines() if line and not line.startswith("#")]
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    runs = [Run(name, model, switches.split(), *rest) for name, model, switches, *rest in cells]
    assert len({run.name for run in runs}) == len(runs), "two runs have one name"
    for run in runs:
        assert run.verdict in ("holds", "broken") and run.set in MEMORY_MB, f"{run.name}: unknown word"
        assert run.rules in ("core", "limit", "planned"), f"{run.name}: unknown word"
        unknown = {switch.partition("=")[0] for switch in run.switches} - switches_of(run.model)
        assert not unknown, f"{run.name}: the model has no switch {unknown}"
    return runs


def is_about_progress(run):
    """LIVE: the claim is an ltl formula, that something happens in the end, if each process goes on."""
    return "LIVE" in run.switches


def search(run):
    """What spin's program says, and its folder. It is optimized, and begins anew, once its search is a long one."""
    folder = generated(run)
    fair = ["-a", "-f", f"-m{100 * DEPTH}"] if is_about_progress(run) else [f"-m{DEPTH}"]
    if run.set == "fast":
        compile_program(run, folder, "tcc")
        done = command(folder, "./pan", "-E", *fair, "-w18", within=QUICK_S)  # few states: a small table for them
        if done.returncode != -signal.SIGXCPU:
            return done.stdout, folder
    compile_program(run, folder, "gcc", "-O2")
    return command(folder, "./pan", "-E", *fair).stdout, folder


def command(folder, *words, within=None):
    """`within`: so many seconds of processor time; then SIGXCPU ends it."""
    shell = ["sh", "-c", f'ulimit -c 0; ulimit -S -t {within}; exec "$0" "$@"'] if within else []
    done = subprocess.run([*shell, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    (folder / f"{Path(words[0]).name}.out").write_text(done.stdout)
    return done


def checked_command(run, folder, *words):
    done = command(folder, *words)
    if done.returncode != 0:
        sys.exit(f"{run.name}: {' '.join(words)}\n{done.stdout}")


def generated(run):
    folder = BUILD / run.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in HERE.glob("*.pml"):
        shutil.copy(path, folder)
    checked_command(run, folder, "spin", "-a", *("-D" + switch for switch in run.switches), run.model + ".pml")
    return folder


def compile_program(run, folder, *compiler):
    kind = ["-DNFAIR=4"] if is_about_progress(run) else ["-DBFS", "-DSAFETY"]
    options = [*kind, "-DNOREDUCE", f"-DMEMLIM={MEMORY_MB[run.set]}"]
    checked_command(run, folder, *compiler, "-w", *options, "-o", "pan", "pan.c")


def verdict_of(text):
    """A run holds only if the search was complete; it is broken only if a claim of the model was."""
    errors = re.search(r"errors: (\d+)", text)
    truncated = re.search(r"depth too small|limit|out of memory|hash factor: 0", text, re.I)
    if errors and errors[1] == "0" and not truncated and "not completed" not in text:
        return "holds"
    if errors and errors[1] != "0" and re.search("assertion violated|acceptance cycle", text):
        return "broken"
    return "no verdict"


def check(run):
    begun = time.monotonic()
    cpu_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    text, _ = search(run)
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = verdict_of(text)
    states = re.search(r"([\d.e+]+) states, stored", text)
    memory = re.search(r"([\d.]+)\s+total actual memory usage", text)
    print(
        f"{run.name:<28} {run.rules:<8} {run.verdict:<8} {found + ('' if found == run.verdict else ' !'):<12}"
        f" {int(float(states[1])) if states else 0:>10} {float(memory[1]) if memory else 0:>8.0f}"
        f" {cpu.ru_utime - cpu_before.ru_utime:>7.1f} {time.monotonic() - begun:>7.1f}",
        flush=True,
    )
    if found == "no verdict":
        print(text)
    return found == run.verdict


def trace(run):
    """Each step: whose, and the line of the model that says what it does."""
    _, folder = search(run)
    text = command(folder, "./pan", "-r").stdout
    source = (folder / f"{run.model}.pml").read_text().splitlines()
    of_client = re.findall(r"^proctype (\w+)\(byte c\b", "\n".join(source), re.M)
    steps, _, processes = text.partition("#processes")
    kinds = re.findall(r"^ *\d+:\tproc +\d+ \((\S+)\)", processes, re.M)
    for process, line in re.findall(r"^ *\d+:\tproc +(\d+) .*\[D_STEP(\d+)\]", steps, re.M):
        kind = kinds[int(process)]
        client = kinds[: int(process)].count(kind) * kinds.count("client") // kinds.count(kind)
        who = f"client {client}, {kind}" if kind in of_client else kind
        print(f"{who:<20} {int(line):>4}  {source[int(line) - 1].strip()}")
    violation = re.search(r"pan:1: (.*) \(at", text)
    again = "the last of these steps again and again" if "START OF CYCLE" in text else None
    end = violation[1] if violation else again
    print(f"then: {end}" if end else "no counterexample")


def chosen(runs, names, fast, sample):
    unknown = set(names) - {run.name for run in runs}
    if unknown:
        sys.exit(f"no run {', '.join(sorted(unknown))}; there are: {', '.join(run.name for run in runs)}")
    runs = [run for run in runs if (run.name in names or not names) and (run.set == "fast" or not fast)]
    return [run for run in runs if sample is None or zlib.crc32((sample + run.name).encode()) % 10 == 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--sample", metavar="TEXT")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    runs = chosen(read_runs(), arguments.names, arguments.fast, arguments.sample)
    if arguments.trace:
        return [trace(run) for run in runs] and 0
    print(f"{'run':<28} {'rules':<8} {'expected':<8} {'found':<12} {'states':>10} {'MB':>8} {'cpu s':>7} {'s':>7}")
    otherwise = [run for run in runs if not check(run)]
    print(f"\n{len(runs)} runs, {len(otherwise)} with another verdict than expected")
    for run in otherwise:
        print(f"  {run.name}: {run.shows}")
    return 1 if otherwise or not runs else 0


if __name__ == "__main__":
    sys.exit(main())

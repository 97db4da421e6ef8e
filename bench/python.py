#!/usr/bin/env python3
"""The Python rows of the bench: what the package costs over the thinnest program of the same runtime, what that costs
over a C cycle, and 64 tasks beside other Python libraries."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import before
import run as bench  # the folder of this file comes first on the path
from testing import Cluster

ROOT = Path(__file__).resolve().parent.parent
SUBJECT = ROOT / "bench" / "python_subject.py"
PEERS = {"redlock-py": "redlock-py", "pottery": "pottery", "redlock-ng": "redlock-ng", "aioredlock": "aioredlock",
         "redis-py": "redis"}  # shape: package
OVER = ROOT / "bench" / "python_over.py"
# shape of python_over.py, words, the thinnest program, goal in us (None: not judged)
COSTS = (
    ("blocking", "blocking", "cffi calls", 6),
    ("with", "with block, a new lock each", "cffi calls on a new handle each", 12),
    ("aio", "asyncio", "a future and add_reader", 10),
    ("uvloop", "uvloop", "a future and add_reader", 10),
    ("aio-with", "asyncio, async with and a new lock each", "the same with a new handle each", None),
    ("uvloop-with", "uvloop, async with and a new lock each", "the same with a new handle each", None),
)
# shape of python_subject.py, words, how much longer than the other version in us
THAN_BEFORE = (
    ("one-object", "blocking, one object", 1),
    ("with-one-object", "with block, one object", 2.5),
    ("with-block", "with block, a new lock each", 0),
    ("aio-one-object", "asyncio, one object", 1),
)
# shape, words, how many at once
CROWDS = (
    ("one-object", "threads", 64),
    ("one-object", "threads", 1000),
    ("aio-one-object", "tasks", 64),
    ("aio-one-object", "tasks", 1000),
)
FACES = (
    ("blocking", "blocking"),
    ("with-block", "with block, a new lock each"),
    ("aio", "asyncio"),
    ("uvloop", "uvloop"),
)


class PythonBench:
    def __init__(self, options, cluster):
        self.options, self.cluster = options, cluster
        self.rounds = options.rounds
        self.milliseconds = "300" if options.quick else "1000"

    def subject(self, shape, *args, python=None):
        return [str(python or self.options.python), str(SUBJECT), shape, "--nodes", self.cluster.nodes_env,
                "--milliseconds", self.milliseconds, *args]

    def rows(self):
        rows = [*self.over_the_runtime(), *self.over_c(), *self.in_flight(), *self.idle(), self.memory()]
        return [*rows, *self.than_before()] if self.options.before else rows

    def than_before(self):
        """Beside the package of another version; both take turns on the same nodes."""
        other = package_of(self.options.before, self.options.python)
        for shape, words, goal_us in THAN_BEFORE:
            yield before.row_over(self.options.before, f"Python {words}", self.both(shape, other), goal_us)
        for shape, words, count in CROWDS:
            runs = self.both(shape, other, "--in-flight", str(count), "--warm", str(count))
            rate = bench.median(runs["mine"], "cycles_per_s")
            row = bench.Row(f"Python {count} {words} on one object", "cycles/s", rate)
            row.ratio_to = self.options.before
            row.ratio = statistics.median(
                a["cycles_per_s"] / b["cycles_per_s"] for a, b in zip(runs["mine"], runs["theirs"]))
            yield row.judged(row.ratio, ">=", 1)

    def both(self, shape, other, *args):
        commands = {"mine": self.subject(shape, *args), "theirs": self.subject(shape, *args, python=other)}
        return bench.interleaved(self.rounds, commands)

    def over_the_runtime(self):
        """Both programs take turns in one process, on one client; the cost is the median of the pairs' differences."""
        commands = {
            shape: [str(self.options.python), str(OVER), shape, self.cluster.nodes_env, str(2 * int(self.milliseconds))]
            for shape, _, _, _ in COSTS
        }
        runs = bench.interleaved(self.rounds, commands)
        for shape, words, base, goal_us in COSTS:
            cost_us = bench.median(runs[shape], "cost_us")
            figures = (bench.median(runs[shape], figure) for figure in ("mine_us", "bare_us", "cpu_cost_us"))
            pairs = sum(run["pairs"] for run in runs[shape])
            note = "%.0f us, bare %.0f us; CPU %+.1f us; %d pairs" % (*figures, pairs)
            row = bench.Row(f"Python {words}: over {base}", "us", cost_us, note=note)
            yield row if goal_us is None else row.judged(cost_us, "<=", goal_us)

    def over_c(self):
        """With the interpreter and its loop, which the package cannot change: no goal."""
        commands = {"C": [str(self.options.build / "bench" / "cycle"), "--nodes", self.cluster.nodes_env,
                          "--milliseconds", self.milliseconds]}
        commands.update((shape, self.subject(shape)) for shape, _ in FACES)
        runs = bench.interleaved(self.rounds, commands)
        for shape, words in FACES:
            cost_us = statistics.median(mine["p50_us"] - c["p50_us"] for mine, c in zip(runs[shape], runs["C"]))
            medians = tuple(bench.median(runs[name], "p50_us") for name in ("C", shape))
            yield bench.Row(f"Python {words}: over the C cycle, p50", "us", cost_us,
                            note="C: %.0f us, Python: %.0f us" % medians)

    def in_flight(self):
        count = str(bench.IN_FLIGHT)
        commands = {shape: self.subject(shape, "--in-flight", count) for shape in ("aio", "uvloop")}
        peers = [peer for peer in PEERS if self.install(peer)]
        runs = bench.interleaved(self.rounds, commands)
        for peer in peers:
            runs[peer] = self.peer(peer, count)
        best = max((peer for peer in peers if runs[peer]), key=lambda peer: bench.median(runs[peer], "cycles_per_s"),
                   default=None)
        for shape in commands:
            rate = bench.median(runs[shape], "cycles_per_s")
            axis = f"Python {count} tasks in flight, {shape}"
            row = bench.Row(axis, "cycles/s", rate, note=bench.failure_note(runs[shape]))
            if best:
                row.ratio, row.ratio_to = rate / bench.median(runs[best], "cycles_per_s"), best
                row.judged(row.ratio, ">=", 4)
            yield row
        for peer in PEERS:
            rate = bench.median(runs[peer], "cycles_per_s") if runs.get(peer) else None
            yield bench.Row(f"  peer {peer}, {count} in flight", "cycles/s", rate or 0.0,
                            note=bench.failure_note(runs[peer]) if rate else "does not run here")

    def install(self, peer):
        """Each in a folder of its own, since two of them share an import name."""
        folder = self.options.peers / peer
        if folder.exists():
            return True
        pip = [str(self.options.python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target"]
        return subprocess.run([*pip, str(folder), PEERS[peer]], stdout=sys.stderr).returncode == 0

    def peer(self, peer, count):
        """The figures of its rounds; none if it does not work with this Python."""
        command = self.subject(peer, "--in-flight", count)
        environment = dict(os.environ, PYTHONPATH=str(self.options.peers / peer))
        runs = []
        for _ in range(self.rounds):
            try:
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
                runs.append(json.loads(done.stdout))
            except (subprocess.TimeoutExpired, ValueError):
                return []
        return runs if bench.median(runs, "cycles") > 0 else []

    def idle(self):
        command = self.subject("idle", "--in-flight", "1000")
        run = bench.output_of([*command, "--milliseconds", "10000" if self.options.quick else "25000"])
        share = run["share_of_core"] * 100
        yield bench.Row("Python 1000 idle locks renewed, CPU", "% of a core", share).judged(share, "<=", 1)
        yield bench.Row("Python 1000 idle locks renewed, lost", "locks", run["lost"]).judged(run["lost"], "<=", 0)

    def memory(self):
        used_mb = statistics.median(bench.output_of(self.subject("memory"))["import_mb"] for _ in range(5))
        return bench.Row("Python import libredlock, memory", "MB", used_mb).judged(used_mb, "<=", 3)


def package_of(version, python):
    """An interpreter with the package of a commit, which is made at its first use."""
    source = before.source_of(version)
    folder = source.parent / "venv"
    interpreter = folder / "bin/python"
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        quiet = {"check": True, "stdout": sys.stderr}
        subprocess.run([str(python), "-m", "venv", str(folder)], **quiet)
        subprocess.run([str(interpreter), "-m", "pip", "install", "-q", "--disable-pip-version-check", str(source)],
                       **quiet)
        (folder / "made").touch()
    return interpreter


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 short rounds: a rough look")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each comparison (default 7)")
    parser.add_argument("--core", type=int, metavar="N", help="the core for programs and nodes (default: the idlest)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--before", metavar="COMMIT", help="compare with the package of that commit, too")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", metavar="DIR")
    parser.add_argument("--python", type=Path, default=ROOT / "build/venv-python/bin/python", metavar="PATH",
                        help="an interpreter with libredlock installed (default %(default)s)")
    parser.add_argument("--peers", type=Path, default=ROOT / "build" / "peers", metavar="DIR",
                        help="where other libraries are installed (default %(default)s)")
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 7)
    if not options.python.exists():
        parser.error(f"--python is {options.python}: there is none; ./dev test python makes it")
    return options


def main():
    options = parse_options()
    os.sched_setaffinity(0, {bench.idlest_core() if options.core is None else options.core})
    with Cluster(bench.NODES) as cluster:
        rows = list(PythonBench(options, cluster).rows())
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else bench.table(rows))


if __name__ == "__main__":
    main()

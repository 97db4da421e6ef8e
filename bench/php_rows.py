#!/usr/bin/env python3
"""The PHP rows of the bench: what the library costs over the thinnest program of the same runtime, what that program
costs over a C cycle, and 64 in flight beside other PHP libraries."""
import argparse
import json
import os
import shlex
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
SUBJECT = ROOT / "bench" / "php.php"
OVER = ROOT / "bench" / "php_over.php"
FACES = (("blocking", "blocking", "native calls", 4), ("run", "run(), a new lock each", "native calls", 8),
         ("fiber", "Fiber", "the bare loop", 6), ("swoole", "Swoole coroutine", "the bare loop", 8))
# shape of php.php, words, how much longer than the other version in us
THAN_BEFORE = (("blocking", "blocking", 0.5), ("run", "run(), a new lock each", 0.5), ("fiber", "Fiber", 1))
PEERS = (("phpredis", "phpredis loop"), ("symfony", "symfony/lock, combined store"))


class PhpBench:
    def __init__(self, options, cluster):
        self.options, self.cluster = options, cluster
        self.milliseconds = "300" if options.quick else "1000"

    def php_program(self, program, *arguments, extension=None):
        php = [self.options.php, "-d", f"extension={extension or self.options.extension}"]
        return [*php, *shlex.split(self.options.php_extra), str(program), *arguments]

    def subject(self, shape, in_flight=1, program=SUBJECT, extension=None):
        arguments = (shape, self.cluster.nodes_env, self.milliseconds, str(in_flight))
        return self.php_program(program, *arguments, extension=extension)

    def has(self, extension):
        php = [self.options.php, *shlex.split(self.options.php_extra)]
        question = ["-r", f"exit(extension_loaded('{extension}') ? 0 : 1);"]
        return subprocess.run([*php, *question], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def rows(self):
        shapes = [face for face in FACES if face[0] != "swoole" or self.has("swoole")]
        rows = [*self.over_the_runtime(shapes), *self.over_c(shapes), *self.in_flight()]
        return [*rows, *self.than_before()] if self.options.before else rows

    def than_before(self):
        """Beside extension and PHP files of another version; both take turns on the same nodes."""
        source = before.source_of(self.options.before)
        other = {"program": source / "bench/php.php", "extension": extension_of(source)}
        for shape, words, goal_us in THAN_BEFORE:
            commands = {"mine": self.subject(shape), "theirs": self.subject(shape, **other)}
            runs = bench.interleaved(self.options.rounds, commands)
            yield before.row_over(self.options.before, f"PHP {words}", runs, goal_us)

    def over_the_runtime(self, shapes):
        """Both programs take turns in one process, on one client; the cost is the median of the pairs' differences."""
        commands = {shape: self.php_program(OVER, shape, self.cluster.nodes_env, str(2 * int(self.milliseconds)))
                    for shape, _, _, _ in shapes}
        runs = bench.interleaved(self.options.rounds, commands)
        for shape, words, base, goal_us in shapes:
            cost_us = bench.median(runs[shape], "cost_us")
            note = "%.0f us, bare %.0f us; CPU %+.1f us; %d pairs" % (
                *(bench.median(runs[shape], figure) for figure in ("mine_us", "bare_us", "cpu_cost_us")),
                sum(run["pairs"] for run in runs[shape]))
            yield bench.Row(f"PHP {words}: over {base}", "us", cost_us, note=note).judged(cost_us, "<=", goal_us)

    def over_c(self, shapes):
        """With the runtime and its loop, which the library cannot change: no goal."""
        commands = {"C": [str(self.options.build / "bench" / "cycle"), "--nodes", self.cluster.nodes_env,
                          "--milliseconds", self.milliseconds]}
        commands.update((shape, self.subject(shape)) for shape, _, _, _ in shapes)
        runs = bench.interleaved(self.options.rounds, commands)
        for shape, words, _, _ in shapes:
            cost_us = statistics.median(mine["p50_us"] - c["p50_us"] for mine, c in zip(runs[shape], runs["C"]))
            yield bench.Row(f"PHP {words}: over the C cycle, p50", "us", cost_us,
                            note="C: %.0f us, PHP: %.0f us" % (bench.median(runs["C"], "p50_us"),
                                                               bench.median(runs[shape], "p50_us")))

    def in_flight(self):
        """Peers make one request after the other, whatever is in flight: their rate is the same for 1 and for 64."""
        count = bench.IN_FLIGHT
        shapes = [shape for shape in ("fiber", "swoole") if shape != "swoole" or self.has("swoole")]
        peers = [shape for shape, _ in PEERS if self.has("redis")]
        commands = {shape: self.subject(shape, count) for shape in shapes}
        commands.update((shape, self.subject(shape)) for shape in peers)
        runs = bench.interleaved(self.options.rounds, commands)
        best = max(peers, key=lambda peer: bench.median(runs[peer], "cycles_per_s"), default=None)
        for shape in shapes:
            row = bench.Row(f"PHP {count} in flight, {shape}", "cycles/s", bench.median(runs[shape], "cycles_per_s"),
                            note=bench.failure_note(runs[shape]))
            if best:
                row.ratio, row.ratio_to = bench.median_ratio(runs[shape], runs[best], "cycles_per_s"), best
            yield row
        for shape, words in PEERS:
            known = shape in peers
            yield bench.Row(f"  peer {words}", "cycles/s", bench.median(runs[shape], "cycles_per_s") if known else 0.0,
                            note=bench.failure_note(runs[shape]) if known else "php-redis is not installed")


def extension_of(source):
    """The extension of another version, built as this one is; its PHP files run the program of this one."""
    build = source / "build/release"
    shutil.copy(SUBJECT, source / "bench")
    for command in (["--preset", "release", "-DREDLOCK_PHP=ON"], ["--build", str(build), "--target", "redlock_php"]):
        subprocess.run(["cmake", *command], cwd=source, check=True, stdout=sys.stderr)
    return build / "php/redlock.so"


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 short rounds: a rough look")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each comparison (default 7)")
    parser.add_argument("--core", type=int, metavar="N", help="the core for programs and nodes (default: the idlest)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--before", metavar="COMMIT",
                        help="compare with the extension and PHP files of that commit, too")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", metavar="DIR")
    parser.add_argument("--php", default="php", metavar="PATH", help="the PHP to measure (default %(default)s)")
    parser.add_argument("--php-extra", default="", metavar="ARGUMENTS",
                        help="more for PHP, as in '-d extension=swoole'")
    parser.add_argument("--extension", type=Path, metavar="PATH",
                        default=ROOT / "build/php/debian/php/modules/redlock.so",
                        help="redlock.so (default %(default)s)")
    options = parser.parse_args()
    options.rounds = options.rounds or (3 if options.quick else 7)
    if not options.extension.exists():
        parser.error(f"--extension is {options.extension}: there is none; ./dev test php makes it")
    return options


def main():
    options = parse_options()
    os.sched_setaffinity(0, {bench.idlest_core() if options.core is None else options.core})
    with Cluster(bench.NODES) as cluster:
        rows = list(PhpBench(options, cluster).rows())
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else bench.table(rows))


if __name__ == "__main__":
    main()

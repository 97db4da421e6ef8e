#!/usr/bin/env python3
"""Measures libredlock beside limit programs on five real nodes; README.md says how to read the table."""
import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python" / "libredlock"))  # the kit alone, without the package's compiled half
sys.path.append(str(ROOT / "tests"))
import order  # noqa: E402
from machine import busy_loops, idlest_core, machine, on_two_cores  # noqa: E402
from testing import Cluster, Tls  # noqa: E402

os.environ.pop("REDLOCK_GUARD", None)  # the restart guard is on, as it is for users; the axis "guard" turns it off
os.environ["REDLOCK_BIN"] = str(ROOT / "build" / "release" / "redlock")  # the kit bootstraps the nodes with it

NODES = 5
IN_FLIGHT = 64
FAULT_CYCLES = 25000
LEASES = 10000
LEASE_OPTIONS = [arg for pair in ("ttl_ms=10000", "renew=true", "max_hold_ms=-1", "max_extensions=-1")
                 for arg in ("--set", pair)]
CONTENDERS, MANY_CONTENDERS, HOLD_MS = 16, 64, 5
HOSTS = (2, 3, 5, 8)
READERS, WRITERS = 32, 2
WAITERS, WAITING_PROCESSES = 1000, 200
LONG_TTL_S = 600
FAILED_MAX = 0.01  # of the cycles; what more of them measure is not a lock
WARM_CYCLES = 500  # the programs' default
TOOL_CYCLES = (1000, 6000)  # for callgrind and strace: the slope between them leaves starting and ending out

Run = Dict[str, float]
Runs = Dict[str, List[Run]]


@dataclass
class Row:
    """One line of the table: medians of the rounds; the ratio is the median of each round's own ratio."""

    axis: str
    unit: str
    redlock: float
    raw: Optional[float] = None
    hiredis: Optional[float] = None
    ratio: Optional[float] = None
    ratio_to: str = ""
    goal: str = ""
    reached: Optional[bool] = None
    note: str = ""

    def judged(self, value: float, comparison: str, bound: float) -> "Row":
        self.goal = "%s %g" % (comparison, bound)
        self.reached = value <= bound if comparison == "<=" else value >= bound
        return self


# ---- programs and tools -----------------------------------------------------------------------------------------


class Programs:
    """Command lines of the built programs."""

    def __init__(self, build: Path, test_build: Path, cluster: Cluster) -> None:
        self.build, self.test_build, self.cluster = build, test_build, cluster

    def limit(self, name: str, *args: str) -> List[str]:
        ports = ",".join(str(node.port) for node in self.cluster)
        return [self._path(self.build, "limit_" + name), "--ports", ports, *args]

    def cycle(self, *args: str) -> List[str]:
        """Waiting for all is a switch of the test build alone."""
        build = self.test_build if "--wait-all" in args else self.build
        options = [arg for option in self.cluster.options.items() for arg in ("--set", "%s=%s" % option)]
        return [self._path(build, "cycle"), "--nodes", self.cluster.nodes_env, *options, *args]

    def library(self, name: str, *args: str) -> List[str]:
        """A program that has only the library as its subject."""
        return [self._path(self.build, name), "--nodes", self.cluster.nodes_env, *args]

    @staticmethod
    def _path(build: Path, name: str) -> str:
        path = build / "bench" / name
        if not path.exists():
            sys.exit("bench: %s is not built; ./dev bench builds what it needs" % path)
        return str(path)


def output_of(command: List[str]) -> Run:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("bench: %s ended with %d: %s" % (" ".join(command), done.returncode, done.stderr.strip()))
    return json.loads(done.stdout)


def cpu_us_of(pid: int) -> float:
    return int(Path("/proc/%d/schedstat" % pid).read_text().split()[0]) / 1e3


def call_us_of(node: Any, command: str) -> float:
    """What one call took of the server, on average since its figures were reset."""
    stats = node.info("commandstats")["cmdstat_" + command]
    return float(dict(field.split("=") for field in stats.split(","))["usec_per_call"])


def cpu_of_children_us() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1e6


def in_turns(names: Iterable[str], number: int) -> List[str]:
    """Forwards and backwards in turns, so that a slow minute hits all of them."""
    return list(names)[:: 1 if number % 2 == 0 else -1]


def interleaved(rounds: int, subjects: Dict[str, Any], measure: Callable[[Any], Run] = output_of) -> Runs:
    """Every subject once a round; a subject is a command unless measure takes something else."""
    runs: Runs = {name: [] for name in subjects}
    for number in range(rounds):
        for name in in_turns(subjects, number):
            run = measure(subjects[name])
            if run.get("failed", 0) > FAILED_MAX * run.get("cycles", float("inf")):
                sys.exit("bench: %d of %d cycles failed: %s" % (run["failed"], run["cycles"], name))
            runs[name].append(run)
    return runs


def median(runs: List[Run], figure: str) -> float:
    return statistics.median(run[figure] for run in runs)


def median_ratio(runs: List[Run], base: List[Run], figure: str, base_figure: str = "") -> float:
    return statistics.median(run[figure] / other[base_figure or figure] for run, other in zip(runs, base))


def failure_note(runs: List[Run]) -> str:
    failed = sum(int(run["failed"]) for run in runs)
    return "%d of %d cycles failed" % (failed, sum(int(run["cycles"]) for run in runs)) if failed else ""


def instructions(command: List[str]) -> float:
    """User instructions of a run."""
    return under_tool(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file={}"], command,
                      r"Collected : (\d+)")


def system_calls(command: List[str]) -> float:
    return under_tool(["strace", "-f", "-c", "-U", "calls,name", "-o", "{}"], command, r"(\d+)\s+total")


def under_tool(tool: List[str], command: List[str], figure: str) -> float:
    """The figure in the log of a tool that watches the command; {} in its arguments is the log."""
    with tempfile.NamedTemporaryFile("r") as log:
        output_of([arg.format(log.name) for arg in tool] + command)
        text = log.read()
    found = re.search(figure, text)
    if found is None:
        sys.exit("bench: %s gave no figure: %s" % (tool[0], text[-300:]))
    return float(found.group(1))


@contextmanager
def certificate() -> Iterator[Tls]:
    """For 127.0.0.1, by itself; it is its own authority."""
    with tempfile.TemporaryDirectory(prefix="redlock-bench-") as folder:
        cert, key = folder + "/cert.pem", folder + "/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, stderr=subprocess.DEVNULL)
        yield Tls(cert, cert, key)


# ---- axes -------------------------------------------------------------------------------------------------------


class Bench:
    """Each method in AXES measures one axis and returns its rows."""

    AXES = ["sequential", "in-flight", "guard", "fence", "kinds", "tls", "faults", "memory", "leases", "ends",
            "reentrance", "contention", "busy", "at-once", "readers", "waiting", "order", "disturbed"]
    TOOL_AXES = ["instructions", "syscalls"]

    def __init__(self, programs: Programs, options: argparse.Namespace) -> None:
        self.programs, self.options = programs, options
        self.time = ["--milliseconds", "300" if options.quick else "1000"]
        self.few_rounds = max(1, options.rounds // 2)

    def measure(self, axis: str) -> List[Row]:
        return getattr(self, axis.replace("-", "_"))()

    def sequential(self) -> List[Row]:
        rows = []
        for words, mode in (("by majority", []), ("waiting for all", ["--wait-all"])):
            runs = self._beside_limits(1, mode, ["blocking"], {"raw with guard": ["--marker"]})
            axis = "sequential, " + words
            rows.append(self._row(runs, axis + ", p50", "us", "blocking", "p50_us"))
            rows[-1].judged(rows[-1].ratio, "<=", 1.03)
            rows.append(self._guarded_row(runs))
            rows.append(self._row(runs, axis + ", p99", "us", "blocking", "p99_us"))
        return rows

    def in_flight(self) -> List[Row]:
        rows = []
        for words, mode in (("by majority", []), ("waiting for all", ["--wait-all"])):
            runs = self._beside_limits(IN_FLIGHT, mode, ["started", "threads"])
            for shape, goal in (("started", 0.75), ("threads", 0.6)):
                row = self._row(runs, "%d %s, %s" % (IN_FLIGHT, shape, words), "cycles/s", shape, "cycles_per_s")
                rows.append(row.judged(row.ratio, ">=", goal))
                axis = "  CPU of program and nodes for a cycle"
                rows.append(self._row(runs, axis, "us", shape, "cpu_us"))
        return rows

    @staticmethod
    def _guarded_row(runs: Runs) -> Row:
        """Beside sockets that send and read what the restart guard has to, and do nothing with it."""
        subject, limit = runs["blocking"], runs["raw with guard"]
        return Row("  beside raw that reads clock and marker, p50", "us", median(subject, "p50_us"),
                   median(limit, "p50_us"), ratio=median_ratio(subject, limit, "p50_us"), ratio_to="raw with guard",
                   note="raw with guard: %.3f x raw" % median_ratio(limit, runs["raw"], "p50_us"))

    def _beside_limits(self, in_flight: int, mode: List[str], shapes: List[str],
                       more: Optional[Dict[str, List[str]]] = None) -> Runs:
        args = ["--in-flight", str(in_flight), *mode, *self.time]
        commands = {name: self.programs.limit(name, *args) for name in ("hiredis", "raw")}
        commands.update((name, self.programs.limit("raw", *args, *flags)) for name, flags in (more or {}).items())
        commands.update((shape, self.programs.cycle("--shape", shape, *args)) for shape in shapes)
        return interleaved(self.options.rounds, commands, self._with_cpu)

    def _with_cpu(self, command: List[str], cluster: Optional[Cluster] = None) -> Run:
        """Adds what the program and the nodes together take of the core for a cycle."""
        nodes = [node.pid for node in cluster or self.programs.cluster]
        before, nodes_before = cpu_of_children_us(), sum(map(cpu_us_of, nodes))
        run = output_of(command)
        nodes_used, cycles = sum(map(cpu_us_of, nodes)) - nodes_before, run["cycles"] + WARM_CYCLES
        return {**run, "cpu_us": (cpu_of_children_us() - before + nodes_used) / cycles,
                "vote_us": nodes_used / cycles / len(nodes)}

    @staticmethod
    def _row(runs: Runs, axis: str, unit: str, shape: str, figure: str) -> Row:
        return Row(axis, unit, *(median(runs[name], figure) for name in (shape, "raw", "hiredis")),
                   ratio=median_ratio(runs[shape], runs["raw"], figure), ratio_to="raw", note=failure_note(runs[shape]))

    def guard(self) -> List[Row]:
        """Cycles with the restart guard beside cycles without, and what its commands take of a server."""
        nodes = self.programs.cluster.nodes
        for node in nodes:
            node.command("CONFIG", "RESETSTAT")
        rows = self._with_option("guard", {"without": "off", "with": "marker"}, 1.05, 1.2)
        marker_us, look_us = (statistics.median(call_us_of(node, name) for node in nodes) for name in ("get", "info"))
        marker = Row("  server time of the marker, for a vote, an extension or a batch", "us", marker_us)
        look = Row("  server time of a look at the server, at most once a second", "us", look_us)
        return [*rows, marker.judged(marker_us, "<=", 1), look]

    def fence(self) -> List[Row]:
        """Cycles with fencing numbers beside cycles without."""
        return self._with_option("fence", {"without": "false", "with": "true"})

    def _with_option(self, name: str, values: Dict[str, str], ratio_goal: Optional[float] = None,
                     cpu_goal_us: Optional[float] = None) -> List[Row]:
        shapes = {"sequential": ["--shape", "blocking"],
                  "64 started": ["--shape", "started", "--in-flight", str(IN_FLIGHT)]}
        options = {words: ["--set", "%s=%s" % (name, value)] for words, value in values.items()}
        commands = {"%s, %s" % (shape, option): self.programs.cycle(*args, *self.time, *settings)
                    for shape, args in shapes.items() for option, settings in options.items()}
        runs = interleaved(self.options.rounds, commands, self._with_cpu)
        rows = []
        for shape in shapes:
            plain, more = runs[shape + ", without"], runs[shape + ", with"]
            row = Row("%s, %s, p50" % (name, shape), "us", median(more, "p50_us"),
                      ratio=median_ratio(more, plain, "p50_us"), ratio_to="without", note=failure_note(more))
            rows.append(row.judged(row.ratio, "<=", ratio_goal) if ratio_goal and shape == "sequential" else row)
            more_us = statistics.median(run["vote_us"] - other["vote_us"] for run, other in zip(more, plain))
            cpu = Row("  CPU of a node for a vote, beyond the same without", "us", more_us)
            rows.append(cpu.judged(more_us, "<=", cpu_goal_us) if cpu_goal_us else cpu)
        return rows

    def kinds(self) -> List[Row]:
        """Cycles of locks that a script takes, beside those of plain locks; on two cores, as their goals were set."""
        kinds = {"plain": [], "3 resources at once": ["--resources", "3"], "shared": ["--set", "shared=true"],
                 "one of 4 permits": ["--set", "permits=4"]}
        goals = {"3 resources at once": (25, 0.4), "shared": (40, 0.33)}
        shapes = {"one at a time": ["--shape", "blocking"],
                  "64 started": ["--shape", "started", "--in-flight", str(IN_FLIGHT)]}
        with on_two_cores(), Cluster(NODES) as cluster:
            programs = Programs(self.programs.build, self.programs.test_build, cluster)
            runs = interleaved(self.options.rounds, {
                "%s, %s" % (kind, shape): programs.cycle(*args, *self.time, *settings)
                for shape, args in shapes.items() for kind, settings in kinds.items()})
        rows = []
        for kind, (more_us, share) in goals.items():
            some, plain = runs[kind + ", one at a time"], runs["plain, one at a time"]
            over_us = statistics.median(run["p50_us"] - other["p50_us"] for run, other in zip(some, plain))
            rows.append(Row(kind + ", p50", "us", median(some, "p50_us"), ratio=median_ratio(some, plain, "p50_us"),
                            ratio_to="plain", note=failure_note(some)))
            rows.append(Row("  beyond plain", "us", over_us).judged(over_us, "<=", more_us))
            some, plain = runs[kind + ", 64 started"], runs["plain, 64 started"]
            ratio = median_ratio(some, plain, "cycles_per_s")
            rows.append(Row("  64 started", "cycles/s", median(some, "cycles_per_s"), ratio=ratio, ratio_to="plain",
                            note=failure_note(some)).judged(ratio, ">=", share))
        some, plain = runs["one of 4 permits, one at a time"], runs["plain, one at a time"]
        ratio = median_ratio(some, plain, "p50_us")
        rows.append(Row("one of 4 permits, p50", "us", median(some, "p50_us"), ratio=ratio, ratio_to="plain",
                        note=failure_note(some)).judged(ratio, "<=", 2.2))
        some, plain = runs["one of 4 permits, 64 started"], runs["plain, 64 started"]
        rows.append(Row("  64 started", "cycles/s", median(some, "cycles_per_s"), ratio_to="plain",
                        ratio=median_ratio(some, plain, "cycles_per_s"), note=failure_note(some)))
        return rows

    def tls(self) -> List[Row]:
        """Cycles with TLS beside cycles without. The limit is OpenSSL alone, beside sockets alone."""
        rows = []
        with certificate() as tls, Cluster(NODES, tls=tls) as cluster:
            for words, shape, figure, comparison, goals in (
                    ("sequential, p50", ["--shape", "blocking"], "p50_us", "<=", (1.35, 1.15)),
                    ("%d started" % IN_FLIGHT, ["--shape", "started", "--in-flight", str(IN_FLIGHT)], "cycles_per_s",
                     ">=", (0.6, 0.75))):
                runs = self._secured(cluster, shape)
                rows.append(self._secured_row(runs, "tls, " + words, figure, "plain"))
                rows[-1].judged(rows[-1].ratio, comparison, goals[0])
                rows.append(self._secured_row(runs, "  beside OpenSSL alone", figure, "raw"))
                rows[-1].judged(rows[-1].ratio, comparison, goals[1])
                rows.append(self._secured_row(runs, "  CPU of program and nodes for a cycle", "cpu_us", "plain"))
        return rows

    def _secured(self, cluster: Cluster, shape: List[str]) -> Runs:
        plain, args = self.programs, shape[2:] + self.time
        secured = Programs(plain.build, plain.test_build, cluster)
        subjects = {"raw plain": (plain.limit("raw", *args), plain.cluster),
                    "plain": (plain.cycle(*shape, *self.time), plain.cluster),
                    "raw": (secured.limit("tls", *args), cluster),
                    "tls": (secured.cycle(*shape, *self.time), cluster)}
        return interleaved(self.options.rounds, subjects, lambda subject: self._with_cpu(*subject))

    @staticmethod
    def _secured_row(runs: Runs, axis: str, figure: str, ratio_to: str) -> Row:
        limit = "OpenSSL alone: %.2f" % median_ratio(runs["raw"], runs["raw plain"], figure)
        notes = [limit if ratio_to == "plain" else "", failure_note(runs["tls"])]
        return Row(axis, "cycles/s" if figure == "cycles_per_s" else "us", median(runs["tls"], figure),
                   median(runs["raw"], figure), ratio=median_ratio(runs["tls"], runs[ratio_to], figure),
                   ratio_to=ratio_to, note=", ".join(filter(None, notes)))

    def faults(self) -> List[Row]:
        """Nothing, hanging or death comes over one node between the warm-up and the measured cycles."""
        faults = {fault: fault for fault in ("healthy", "hung", "killed")}
        runs = interleaved(self.few_rounds, faults, self._with_fault)
        healthy = runs["healthy"]
        rows = [Row("all nodes healthy, p99", "us", median(healthy, "p99_us"), note=failure_note(healthy))]
        for fault in ("hung", "killed"):
            ratio = median_ratio(runs[fault], healthy, "p99_us")
            row = Row("one node %s, p99" % fault, "us", median(runs[fault], "p99_us"), ratio=ratio, ratio_to="healthy",
                      note=failure_note(runs[fault]))
            growth_mb = max(run["rss_end_kb"] - run["rss_begin_kb"] for run in runs[fault]) / 1024
            cycles = "%d cycles" % runs[fault][0]["cycles"]
            rows += [row.judged(ratio, "<=", 1.15),
                     Row("one node %s, growth" % fault, "MB", growth_mb, note=cycles).judged(growth_mb, "<=", 1)]
        return rows

    def _with_fault(self, fault: str) -> Run:
        cycles = FAULT_CYCLES // 10 if self.options.quick else FAULT_CYCLES
        command = self.programs.cycle("--gate", "--warm", "1000", "--cycles", str(cycles))
        node = self.programs.cluster[NODES - 1]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                if process.stdout.readline() != "ready\n":
                    sys.exit("bench: %s did not get ready" % " ".join(command))
                {"healthy": lambda: None, "hung": node.stop, "killed": node.kill}[fault]()
                output = process.communicate("\n")[0]
            finally:
                process.kill()
                {"healthy": lambda: None, "hung": node.cont, "killed": node.start}[fault]()
                self.programs.cluster.bootstrap()  # a node that was restarted is quarantined
        if process.returncode != 0:
            sys.exit("bench: %s ended with %d" % (" ".join(command), process.returncode))
        return json.loads(output)

    def memory(self) -> List[Row]:
        runs = [output_of(self.programs.cycle("--warm", "0", "--cycles", "1000")) for _ in range(3)]
        limit = [output_of(self.programs.limit("hiredis", "--warm", "0", "--cycles", "1000")) for _ in range(3)]
        used_mb = max(run["rss_end_kb"] for run in runs) / 1024
        row = Row("memory of a process with one client", "MB", used_mb,
                  hiredis=max(run["rss_end_kb"] for run in limit) / 1024, note="after 1000 cycles")
        return [row.judged(used_mb, "<=", 4)]

    def leases(self) -> List[Row]:
        hold_s = self.options.lease_seconds or (12 if self.options.quick else 30)
        args = [*LEASE_OPTIONS, "--leases", str(LEASES), "--hold", str(hold_s * 1000)]
        run = output_of(self.programs.library("leases", *args))
        share, lost = run["share_of_core"] * 100, run["lost"]
        what = "%d renewed leases of 10 s" % LEASES
        return [Row(what + ", CPU", "% of a core", share, note="for %d s" % hold_s).judged(share, "<=", 5),
                Row(what + ", lost", "leases", lost).judged(lost, "<=", 0)]

    def ends(self) -> List[Row]:
        """None of the keys is left after that, so the nodes' part is in it."""
        few, many = 1000, 10000 if self.options.quick else 100000
        rows = []
        for how, args in (("released", []), ("drained", ["--drain"])):
            with self._long_leases() as longest:
                runs = interleaved(self.few_rounds, {count: self.programs.library(
                    "ends", *longest, "--set", "ttl_ms=%d" % (LONG_TTL_S * 1000), "--locks", str(count), *args)
                    for count in (few, many)})
            ratio = median_ratio(runs[many], runs[few], "us_each")
            rows.append(Row("%d locks %s at once" % (many, how), "us each", median(runs[many], "us_each"), ratio=ratio,
                            ratio_to="%d locks" % few).judged(ratio, "<=", 1.5))
        return rows

    def reentrance(self) -> List[Row]:
        """Of a pair of inner calls, which send nothing, half."""
        runs = [output_of(self.programs.library("reenter")) for _ in range(self.few_rounds)]
        best_us = min(run["us_each"] for run in runs)
        return [Row("a held lock acquired or released again", "us", best_us).judged(best_us, "<=", 0.1)]

    @contextmanager
    def _long_leases(self) -> Iterator[List[str]]:
        """Gives what a program needs for leases that do not end while it works."""
        self.programs.cluster.bootstrap(max_ttl=LONG_TTL_S)
        try:
            yield ["--set", "max_ttl_ms=%d" % (LONG_TTL_S * 1000)]
        finally:
            self.programs.cluster.bootstrap()

    def contention(self) -> List[Row]:
        """The rate is compared with that of one undisturbed process, the possible maximum."""
        in_order = {"per_s": 0.96, "jain": 0.99, "p99": 1.4, "commands": 30}
        cases = {
            "alone": (1, [], {}),
            "%d contend" % CONTENDERS: (CONTENDERS, [], in_order),
            "%d contend" % MANY_CONTENDERS: (MANY_CONTENDERS, [], in_order),
            "%d contend, wake=poll" % CONTENDERS: (CONTENDERS, ["--set", "wake=poll"], {"per_s": 0.8, "jain": 0.97}),
            "%d contend, queue=false" % CONTENDERS: (CONTENDERS, ["--set", "queue=false"], {}),
        }
        args = ["--hold-us", str(HOLD_MS * 1000), "--milliseconds", "2000" if self.options.quick else "5000"]
        commands = {name: self.programs.library("contend", "--processes", str(processes), *args, *more)
                    for name, (processes, more, _) in cases.items()}
        runs = interleaved(self.few_rounds, commands)
        rows = [Row("alone, hold %d ms" % HOLD_MS, "acquired/s", median(runs["alone"], "per_s"))]
        for name, (processes, _, goals) in cases.items():
            if name != "alone":
                rows += self._contended(name, processes, runs[name], runs["alone"], goals)
        overlaps = sum(run["overlaps"] for case in runs.values() for run in case)
        return rows + [Row("two held the lock at once", "times", overlaps).judged(overlaps, "<=", 0)]

    @staticmethod
    def _contended(name: str, processes: int, runs: List[Run], alone: List[Run], goals: Dict[str, float]) -> List[Row]:
        ratio, p99_ms = median_ratio(runs, alone, "per_s"), median(runs, "p99_ms")
        jain, commands = median(runs, "jain"), median(runs, "commands")
        failed = sum(int(run["failed"]) for run in runs)
        longest = "longest %.0f ms" % max(run["longest_ms"] for run in runs)
        rows = {"per_s": (Row(name, "acquired/s", median(runs, "per_s"), ratio=ratio, ratio_to="alone",
                              note="%d failed" % failed if failed else ""), ratio, ">="),
                "jain": (Row("  Jain's index", "", jain), jain, ">="),
                "p99": (Row("  wait, p99", "ms", p99_ms, ratio=p99_ms / processes / HOLD_MS, ratio_to="clients x hold",
                            note=longest), p99_ms / processes / HOLD_MS, "<="),
                "commands": (Row("  commands for an acquisition", "", commands), commands, "<=")}
        return [row.judged(value, comparison, goals[figure]) if figure in goals else row
                for figure, (row, value, comparison) in rows.items()]

    def busy(self) -> List[Row]:
        """64 contenders on two cores, beside two busy loops."""
        milliseconds = "5000" if self.options.quick else "15000"
        with on_two_cores(), Cluster(NODES) as cluster, busy_loops(2):
            programs = Programs(self.programs.build, self.programs.test_build, cluster)
            run = output_of(programs.library("contend", "--processes", str(MANY_CONTENDERS), "--milliseconds",
                                             milliseconds, "--hold-us", str(HOLD_MS * 1000)))
        longest = run["longest_ms"] / MANY_CONTENDERS / HOLD_MS
        return [Row("%d contend, two busy loops" % MANY_CONTENDERS, "acquired/s", run["per_s"]),
                Row("  Jain's index", "", run["jain"]).judged(run["jain"], ">=", 0.95),
                Row("  the longest wait", "ms", run["longest_ms"], ratio=longest,
                    ratio_to="clients x hold").judged(longest, "<=", 4)]

    def at_once(self) -> List[Row]:
        """Hosts that try at the same moment, on two cores, so that they do not do so one after the other."""
        rounds, rows = 200 if self.options.quick else 1000, []
        for nodes in (3, NODES):
            with on_two_cores(), Cluster(nodes) as cluster:
                programs = Programs(self.programs.build, self.programs.test_build, cluster)
                runs = [output_of(programs.library("at_once", "--rounds", str(rounds), "--hosts", str(hosts)))
                        for hosts in HOSTS]
            nobody, several = (sum(run[figure] for run in runs) for figure in ("nobody", "several"))
            note = "%.2f attempts each, longest %.0f ms" % (statistics.mean(run["attempts"] for run in runs),
                                                            max(run["longest_ms"] for run in runs))
            rows += [Row("%d to %d hosts at once, %d nodes: nobody wins" % (HOSTS[0], HOSTS[-1], nodes),
                         "of %d" % (rounds * len(HOSTS)), nobody, note=note).judged(nobody, "<=", 0),
                     Row("  two win", "times", several).judged(several, "<=", 0)]
        return rows

    def readers(self) -> List[Row]:
        """Writers among many more readers wait as long as the queue makes them. Alone they show what waiting costs."""
        args = ["--hold-us", "5000", "--think-us", "5000", "--milliseconds", "2000" if self.options.quick else "5000"]
        runs = interleaved(self.few_rounds, {
            "alone": self.programs.library("contend", "--processes", str(WRITERS), *args),
            "among": self.programs.library("contend", "--processes", str(READERS + WRITERS),
                                           "--readers", str(READERS), *args)})
        among = runs["among"]
        p99_ms = statistics.median(run["p99_ms"] if run["acquired"] else run["longest_ms"] for run in among)
        note = "longest %.0f ms; writers alone: %.1f ms" % (max(run["longest_ms"] for run in among),
                                                            median(runs["alone"], "p99_ms"))
        overlaps = sum(run["overlaps"] for run in among)
        return [Row("%d writers among %d readers" % (WRITERS, READERS), "acquired/s", median(among, "per_s"),
                    note="%d reads in all" % sum(run["reads"] for run in among)),
                Row("  a writer's wait, p99", "ms", p99_ms, note=note).judged(p99_ms, "<=", 150),
                Row("  a writer beside anybody", "times", overlaps).judged(overlaps, "<=", 0)]

    def waiting(self) -> List[Row]:
        """What is started by several processes has no order, and each of them has to be told that its turn has come."""
        many = ["--processes", str(WAITING_PROCESSES), "--waiters", "1"]
        goals = {"commands_per_s": 0.5, "share_of_core": 2, "serve_s": 1.5}
        cases = {
            "%d waiters of one client" % WAITERS: (["--processes", "1", "--waiters", str(WAITERS)],
                                                   {**goals, "disorder": 0}),
            "%d processes with one" % WAITING_PROCESSES: (many, goals),
            "%d processes with one, wake=poll" % WAITING_PROCESSES: ([*many, "--set", "wake=poll"], {}),
        }
        args = ["--held", "3000" if self.options.quick else "6000"]
        with self._long_leases() as longest:
            runs = interleaved(self.few_rounds, {name: self.programs.library("waiters", *longest, *args, *more)
                                                 for name, (more, _) in cases.items()})
        return [row for name, (_, goals) in cases.items() for row in self._waited(name, runs[name], goals)]

    @staticmethod
    def _waited(name: str, runs: List[Run], goals: Dict[str, float]) -> List[Row]:
        commands, share = median(runs, "commands_per_s"), median(runs, "share_of_core") * 100
        ratio = median_ratio(runs, runs, "serve_s", "in_turns_s")
        of_one = median_ratio(runs, runs, "serve_s", "alone_s")
        unserved = sum(int(run["processes"] * run["waiters"] - run["served"]) for run in runs)
        served = Row("  all served", "s", median(runs, "serve_s"), ratio=ratio, ratio_to="in turns",
                     note="%d were not" % unserved if unserved else "%.2f of one process's cycles" % of_one)
        rows = {"commands_per_s": (Row(name + ", commands", "per waiter and s", commands), commands),
                "share_of_core": (Row("  CPU", "% of a core", share), share), "serve_s": (served, ratio)}
        if "disorder" in goals:
            disorder = max(run["disorder"] for run in runs)
            rows["disorder"] = (Row("  served out of turn", "waiters", disorder), disorder)
        return [row.judged(value, "<=", goals[figure]) if figure in goals else row
                for figure, (row, value) in rows.items()]

    def order(self) -> List[Row]:
        """What disturbs those who wait in order, and how much."""
        cluster, contend = self.programs.cluster, self.programs.library("contend", "--hold-us", "3000")
        time_ms = ["--milliseconds", "2000" if self.options.quick else "5000"]

        def with_nodes(urls: str) -> List[str]:
            return [urls if word == cluster.nodes_env else word for word in [*contend, *time_ms, "--processes", "4"]]

        home = order.home_number(cluster)
        runs = interleaved(self.few_rounds, {
            "alone": lambda: output_of([*contend, *time_ms, "--processes", "4"]),
            "beside": lambda: order.beside_one_that_cannot_win(cluster, [*contend, *time_ms], output_of),
            "healthy": lambda: order.behind(cluster, home, 0, with_nodes, output_of),
            "behind": lambda: order.behind(cluster, home, 50, with_nodes, output_of),
            "push": lambda: order.after_death(cluster, self.programs.build / "redlock", "auto"),
            "poll": lambda: order.after_death(cluster, self.programs.build / "redlock", "poll"),
            "lead": lambda: order.hand_overs(cluster, self.programs.build / "redlock"),
        }, lambda subject: subject())
        beside, behind = (median_ratio(runs[name], runs[base], "per_s")
                          for name, base in (("beside", "alone"), ("behind", "healthy")))
        push, poll, lead = (median(runs[name], "ms") for name in ("push", "poll", "lead"))
        died = "%d waiters and the holder died" % order.DEAD
        return [
            Row("4 contend, hold 3 ms", "acquired/s", median(runs["alone"], "per_s")),
            Row("  beside a waiter that cannot win", "acquired/s", median(runs["beside"], "per_s"), ratio=beside,
                ratio_to="without").judged(beside, ">=", 0.9),
            Row("  home 50 ms behind", "acquired/s", median(runs["behind"], "per_s"), ratio=behind,
                ratio_to="healthy").judged(behind, ">=", 0.5),
            Row(died + ", free for", "ms", push).judged(push, "<=", 500),
            Row("  wake=poll", "ms", poll).judged(poll, "<=", 1500),
            Row("a leader's seat empty, at a hand-over", "ms", lead,
                note="longest %.0f ms" % max(run["longest_ms"] for run in runs["lead"])).judged(lead, "<=", 10)]

    def disturbed(self) -> List[Row]:
        """In simulated time: once is enough."""
        script, world = ROOT / "bench" / "disturbed.py", self.programs.test_build / "tests" / "sim" / "libvirtual.so"
        return [Row(what, unit, figure).judged(figure, comparison, bound)
                for what, unit, figure, comparison, bound in output_of([sys.executable, str(script), str(world)])]

    def instructions(self) -> List[Row]:
        return self._per_cycle("instructions", instructions, {"blocking": 20000, "started": 10000, "threads": 10000})

    def syscalls(self) -> List[Row]:
        """A thread that waits for its answer sleeps by a system call, so that shape has no goal."""
        return self._per_cycle("system calls", system_calls, {"blocking": 26, "started": 0.6})

    def _per_cycle(self, unit: str, tool: Callable[[List[str]], float], goals: Dict[str, float]) -> List[Row]:
        rows = []
        for in_flight, shape in ((1, "blocking"), (IN_FLIGHT, "started"), (IN_FLIGHT, "threads")):
            args = ["--in-flight", str(in_flight)]
            redlock = self._slope(tool, self.programs.cycle("--shape", shape, *args))
            raw, hiredis = (self._slope(tool, self.programs.limit(name, *args)) for name in ("raw", "hiredis"))
            row = Row("%s per cycle, %d %s" % (unit, in_flight, shape), "", redlock, raw, hiredis, redlock / raw, "raw")
            rows.append(row.judged(redlock, "<=", goals[shape]) if shape in goals else row)
        return rows

    @staticmethod
    def _slope(tool: Any, command: List[str]) -> float:
        low, high = (tool(command + ["--cycles", str(cycles)]) for cycles in TOOL_CYCLES)
        return (high - low) / (TOOL_CYCLES[1] - TOOL_CYCLES[0])


# ---- output -----------------------------------------------------------------------------------------------------


def number(value: Optional[float]) -> str:
    if value is None:
        return ""
    return "%.0f" % value if abs(value) >= 1000 else "%.4g" % value


def table(rows: List[Row]) -> str:
    head = ["", "unit", "redlock", "raw", "hiredis", "ratio", "", "goal", "reached", ""]
    lines = [[row.axis, row.unit, number(row.redlock), number(row.raw), number(row.hiredis),
              "" if row.ratio is None else "%.3f" % row.ratio, "of " + row.ratio_to if row.ratio_to else "", row.goal,
              {True: "yes", False: "NO", None: ""}[row.reached], row.note] for row in rows]
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    right = {2, 3, 4, 5}
    cells = lambda line: (c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(line, widths)))
    return "\n".join("  ".join(cells(line)).rstrip() for line in [head, *lines])


def json_file(name: str) -> str:
    """Is looked at before the minutes of measuring."""
    path = Path(name).resolve()
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError("%s; allowed: a file in a folder that exists" % name)
    return name


def parse_options() -> argparse.Namespace:
    build = Path(os.environ.get("REDLOCK_BUILD_DIR", ROOT / "build" / "release"))
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 short rounds: a rough look")
    parser.add_argument("--only", action="append", metavar="AXIS", choices=Bench.AXES + Bench.TOOL_AXES,
                        help="only this axis (several times for more): " + ", ".join(Bench.AXES + Bench.TOOL_AXES))
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each comparison (default 7)")
    parser.add_argument("--lease-seconds", type=int, metavar="S", help="how long the leases are held (default 30)")
    parser.add_argument("--instructions", action="store_true", help="also count instructions with valgrind")
    parser.add_argument("--syscalls", action="store_true", help="also count system calls with strace")
    parser.add_argument("--core", type=int, metavar="N", help="the core for programs and nodes (default: the idlest)")
    parser.add_argument("--json", nargs="?", const="-", type=json_file, metavar="FILE",
                        help="print JSON instead of a table, or write it to FILE beside the table")
    parser.add_argument("--build", type=Path, default=build, metavar="DIR", help="release build (default %(default)s)")
    parser.add_argument("--test-build", type=Path, default=ROOT / "build" / "testbuild", metavar="DIR",
                        help="test build (default %(default)s)")
    options = parser.parse_args()
    options.rounds = (3 if options.quick else 7) if options.rounds is None else options.rounds
    if options.rounds < 1:
        parser.error("--rounds is %d; allowed: 1 and more" % options.rounds)
    if options.core is not None and options.core not in os.sched_getaffinity(0):
        parser.error("--core is %d; allowed: %s" % (options.core, sorted(os.sched_getaffinity(0))))
    options.axes = options.only or list(Bench.AXES)
    options.axes += [axis for axis in Bench.TOOL_AXES if getattr(options, axis) and axis not in options.axes]
    for axis, tool in (("instructions", "valgrind"), ("syscalls", "strace"), ("tls", "openssl")):
        if axis in options.axes and shutil.which(tool) is None:
            parser.error("%s needs %s, which is not installed" % (axis, tool))
    return options


def main() -> None:
    options = parse_options()
    core = idlest_core() if options.core is None else options.core
    os.sched_setaffinity(0, {core})  # what is started from here on inherits it
    surroundings = machine(core)  # with the load that others make
    rows: List[Row] = []
    os.environ["REDLOCK_BIN"] = str(options.build / "redlock")
    with Cluster(NODES) as cluster:
        bench = Bench(Programs(options.build, options.test_build, cluster), options)
        for axis in options.axes:
            print("bench: measuring %s" % axis, file=sys.stderr)
            rows += bench.measure(axis)
    report = {"machine": surroundings, "quick": options.quick, "rounds": options.rounds,
              "rows": [asdict(row) for row in rows]}
    text = json.dumps(report, indent=1)
    if options.json == "-":
        print(text)
    else:
        if options.json:
            Path(options.json).write_text(text + "\n")
        print("\n" + table(rows))
        print("\nredis %(server)s, programs and nodes on core %(pinned_to_core)d of %(cores)d,"
              " load before %(load).2f" % surroundings)


if __name__ == "__main__":
    main()

"""A version of the repository beside this one: its sources, and how much longer a cycle takes than with it."""
import statistics
import subprocess
from pathlib import Path

import run as bench

ROOT = Path(__file__).resolve().parent.parent


def source_of(version):
    """The files of a commit, those of its tests too, in a folder of its own."""
    source = ROOT / "build" / "before" / version / "source"
    if not (source / "CMakeLists.txt").exists():
        subprocess.run(["git", "clone", "-q", "--no-checkout", str(ROOT), str(source)], check=True)
        subprocess.run(["git", "checkout", "-q", version], cwd=source, check=True)
    return source


def row_over(version, words, runs, goal_us):
    """Of runs that took turns on the same nodes."""
    mine, theirs = (bench.median(runs[side], "p50_us") for side in ("mine", "theirs"))
    cost_us, cpu_us = (statistics.median(a[figure] - b[figure] for a, b in zip(runs["mine"], runs["theirs"]))
                       for figure in ("p50_us", "cpu_us"))
    row = bench.Row(f"{words}: over {version}, p50", "us", cost_us,
                    note="%.0f us, before %.0f us; CPU %+.1f us" % (mine, theirs, cpu_us))
    return row.judged(cost_us, "<=", goal_us)

#!/usr/bin/env python3
"""Builds the site in build/site: the documents, the manual pages, and what real runs of the demo, the bench and the
simulator print. ./dev site builds what they need first."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from datetime import datetime, timezone
from pathlib import Path
from string import Template

import reference
from charts import charts_of, number
from documents import OVERVIEW, Documents, write
from drawings import DRAWINGS, draw

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "site"
PAGES, SITE = ROOT / "build/site-pages", ROOT / "build/site"
SIM, RELEASE = ROOT / "build/testbuild/tests/sim/sim", ROOT / "build/release"
MUTANTS = ["blind-delete", "clock-at-reply", "no-guard"]
MOST_SEEDS = 20000  # several times what it takes to find the slowest of them
BUSY = """!!! warning "The machine was busy"
    Other programs were running, which may explain differences between lines."""
LANGUAGES = ["Shell", "Python", "PHP", "C"]  # sections of README, and tabs of the first page
QUICK_AXES = ["sequential", "in-flight", "contention"]


def say(text):
    print("site: " + text, flush=True)


def output_of(command, given=None):
    """What it prints; it is shown, and ends the build, if the command fails."""
    done = subprocess.run(list(map(str, command)), input=given, stdin=None if given else subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}site: {' '.join(map(str, command))} ended with {done.returncode}")
    return done.stdout


def fill(name, **words):
    """A page of site/pages with what was measured in it."""
    write(PAGES / name, Template((HERE / "pages" / name).read_text()).substitute(words))


# ---- the first page --------------------------------------------------------------------------------------------


def landing_page():
    """What README says first, and its sections on languages as tabs."""
    readme = (PAGES / OVERVIEW).read_text()
    head, *rest = re.split(r"^## (.+)\n", readme, flags=re.M)
    _, what, shell, python, promises, evidence, status, *_ = head.split("\n\n")
    sections = dict(zip(rest[::2], rest[1::2]))
    tabs = "\n".join(f'=== "{name}"\n\n{inner(sections[name])}\n' for name in LANGUAGES)
    shell, python = (re.sub(r"^(.*\S) {2,}(# .+)$", r"\2\n\1", code, flags=re.M) for code in (shell, python))
    fill("index.md", what=what, shell=shell, python=python, promises=promises, evidence=evidence,
         status=inner(status.replace("> ", "")), tabs=tabs.replace("](#", f"]({OVERVIEW}#"))


def inner(text):
    return textwrap.indent(text.strip("\n"), " " * 4)


# ---- the demo ---------------------------------------------------------------------------------------------------


def demo_page():
    say("running the demo")
    lines = output_of([ROOT / "dev", "demo"]).splitlines()
    lines = [line for line in lines if not line.startswith("== ")]  # of ./dev
    parts, end = re.split(r"^(\d+\. .+)$", "\n".join(lines[:-1]), flags=re.M), lines[-1]
    steps = [f"## {head}\n\n```console\n{textwrap.dedent(body).strip()}\n```\n"
             for head, body in zip(parts[1::2], parts[2::2])]
    fill("demo.md", date=today(), nodes=parts[0].strip(), steps="\n".join(steps), end=end)


def today():
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


# ---- the bench --------------------------------------------------------------------------------------------------


def measured():
    """A short look at this machine, now."""
    with tempfile.TemporaryDirectory() as folder:
        say("measuring " + ", ".join(QUICK_AXES))
        path = Path(folder) / "bench.json"
        axes = [word for axis in QUICK_AXES for word in ("--only", axis)]
        output_of([ROOT / "dev", "bench", "--quick", *axes, "--json", path])
        return json.loads(path.read_text())


def read_results(path):
    """What ./dev bench --json FILE has written; it has to say when and where it was measured."""
    try:
        results = json.loads(Path(path).read_text())
        said = {**results, **results["machine"]}
        for key in ("date", "processor", "cores", "server", "load", "quick", "rounds", "rows"):
            if said.get(key) in (None, []):
                raise ValueError(f"it has no {key}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path}: {error}; allowed: a file that ./dev bench --json FILE has written"
        raise argparse.ArgumentTypeError(message) from None
    return results


def figures_page(results):
    charts = []
    for name, title, words, svg in charts_of(results["rows"]):
        write(PAGES / "figures" / f"{name}.svg", svg)
        charts.append(f"## {title}\n\n![{words}](figures/{name}.svg){{ .chart }}\n")
    if not charts:
        sys.exit("site: the results of the bench have no row for any chart; axes: " + ", ".join(QUICK_AXES))
    rounds = f"{'short' if results['quick'] else 'full'} rounds: {results['rounds']}"
    fill("figures.md", charts="\n".join(charts), table=table(results["rows"]), rounds=rounds,
         caution=BUSY if results["machine"]["load"] > 1 else "", **results["machine"])


def table(rows):
    lines = ["| | unit | redlock | raw | hiredis | ratio | goal | reached |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        figures = ["" if row[key] is None else number(row[key]) for key in ("redlock", "raw", "hiredis")]
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.3f} of {row['ratio_to']}"
        reached = {True: "yes", False: "**no**", None: ""}[row["reached"]]
        lines.append("| " + " | ".join([row["axis"], row["unit"], *figures, ratio, row["goal"], reached]) + " |")
    return "\n".join(lines)


# ---- the pictures -----------------------------------------------------------------------------------------------


def pictures_page():
    fill("pictures.md", **{mutant.replace("-", "_"): picture(mutant) for mutant in MUTANTS})


def picture(mutant):
    """A drawing of what goes wrong, and the first world in which the broken rule shows."""
    sentence, drawing = DRAWINGS[mutant][0], f"pictures/{mutant}-drawn.svg"
    write(PAGES / drawing, draw(mutant))
    say(f"looking for a world that shows {mutant}")
    found = output_of([SIM, "--mutant", mutant, "--seeds", MOST_SEEDS])
    seed, violation = re.search(r"is found by seed (\d+): (.+)", found).groups()
    output_of([SIM, "--seed", seed])  # the intact core passes
    trace = output_of([SIM, "--mutant", mutant, "--seed", seed, "--trace"])
    name = f"pictures/{mutant}.svg"
    write(PAGES / name, output_of([sys.executable, ROOT / "tests/sim/diagram.py", "--width", "660"], trace))
    return (f'<div class="drawn" markdown>![{sentence}]({drawing})</div>\n\n{sentence}\n\n'
            f"World {seed} shows it, as the simulator tells it: *{violation}*.\n\n"
            f'<div class="wide" markdown>[![{violation}]({name})]({name})</div>\n\n'
            f"    ./dev sim --mutant {mutant} --seed {seed} --trace | python3 tests/sim/diagram.py >world.svg")


# ---- all of it --------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(prog="./dev site", description=__doc__)
    parser.add_argument("--bench", type=read_results, metavar="FILE", dest="results",
                        help="draw the figures that ./dev bench --json FILE has written (default: a short run, now)")
    options = parser.parse_args()
    shutil.rmtree(PAGES, ignore_errors=True)
    Documents(ROOT, PAGES).collect()
    landing_page()
    shutil.copytree(HERE / "assets", PAGES, dirs_exist_ok=True)
    for name, text in reference.pages(RELEASE).items():
        write(PAGES / name, text)
    pictures_page()
    figures_page(options.results or measured())
    demo_page()
    say("making the pages")
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # this would hide what is wrong
    os.environ["SITE_FOOTER"] = f"libredlock {reference.manuals.VERSION}, Apache-2.0"
    output_of([sys.executable, "-m", "mkdocs", "build", "--strict", "-f", HERE / "mkdocs.yml"])
    say(f"{len(list(SITE.rglob('*.html')))} pages in build/site; to read them: python3 -m http.server -d build/site")


if __name__ == "__main__":
    main()

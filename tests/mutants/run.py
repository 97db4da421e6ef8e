"""Random mutants of the core: one line of it is changed, and the tests have to notice.

A seed draws lines, and for each of them one of the changes that universalmutator makes of it. A mutant that the
compiler refuses or warns of, or makes the same code of, is replaced by another. What is left is judged by the unit
tests, then by simulated worlds of each kind, and with --live by the live tests. Those that survive are printed, and
kept as patches in build/mutants/survivors: each is a test that is missing, or a change that no user can notice.
"""

import argparse
import collections
import contextlib
import difflib
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import sys

from universalmutator import mutator

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build/mutants"
PYTEST = [ROOT / "build/venv/bin/python", "-m", "pytest", "-x", "-n", 3]
TREE = OUTPUT / "tree"  # a copy: the mutants are written into it
SURVIVORS = OUTPUT / "survivors"
PLAIN, SIM = TREE / "build/plain", TREE / "build/testbuild"
FLOORS = [f"core/src/{floor}" for floor in ("rules", "lock", "wait", "node", "vote", "kinds", "api")]
RULES = ["universal.rules", "c_like.rules", "c.rules"]
KINDS = [[], ["--only", "guarded"], ["--hard"], ["--mixed"]]
TIME_OUT_S, LIVE_TIME_OUT_S = 300, 1800

Mutant = collections.namedtuple("Mutant", "file line old new")


def parse():
    parser = argparse.ArgumentParser(prog="dev mutants", description=__doc__.split("\n\n")[0])
    parser.add_argument("paths", nargs="*", default=FLOORS, help="files and folders of the core (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="what draws the mutants (%(default)s)")
    parser.add_argument("--count", type=int, default=20, help="how many mutants are judged (%(default)s)")
    parser.add_argument("--worlds", type=int, default=300, help="worlds of each kind (%(default)s)")
    parser.add_argument("--live", metavar="ARGUMENTS", help='to pytest, for survivors: "tests/live -k release"')
    return parser.parse_args()


def run(*command, time_out_s=TIME_OUT_S, **options):
    """Whether it succeeded; one that does not end has failed."""
    words, quiet = [str(word) for word in command], subprocess.DEVNULL
    try:
        return subprocess.run(words, stdout=quiet, stderr=quiet, timeout=time_out_s, **options).returncode == 0
    except subprocess.TimeoutExpired:
        return False


# ---- the copy, built twice: as it is installed but for LTO, and with the simulator ----


def copy_tree():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\n")
    for name in filter(None, listed):
        source, target = ROOT / name, TREE / name
        if source.is_file() and not (target.exists() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def configure():
    options = ["-DREDLOCK_WARNINGS_AS_ERRORS=ON", "-DREDLOCK_BENCH=OFF", "-DREDLOCK_LTO=OFF"]
    for preset, folder, more in ("release", PLAIN, ["-DREDLOCK_TESTS=ON"]), ("testbuild", SIM, []):
        if not run("cmake", "--preset", preset, "-B", folder, *options, *more, cwd=TREE):
            sys.exit(f"mutants: cannot configure {folder}")


def unit_tests():
    return sorted(path.stem for path in (TREE / "tests/unit").glob("test_*.c"))


def build(folder, *targets):
    return run("cmake", "--build", folder, "--target", *targets)


def object_of(file):
    return (PLAIN / f"CMakeFiles/redlock_objects.dir/{file}.o").read_bytes()


# ---- drawing ----


def files_of(paths):
    for path in paths:
        if not (TREE / path).exists():
            sys.exit(f"mutants: there is no {path}")
        found = sorted((TREE / path).rglob("*.c")) if (TREE / path).is_dir() else [TREE / path]
        yield from (str(file.relative_to(TREE)) for file in found)


def lines_of(paths):
    """All lines that can be changed, as pairs of file and number, with the changes of each."""
    changes = collections.defaultdict(list)
    for file in files_of(paths):
        text = (TREE / file).read_text().splitlines(keepends=True)
        with open(os.devnull, "w") as devnull, contextlib.redirect_stdout(devnull):
            found = mutator.mutants_regexp(text, RULES, ignorePatterns=["^#"])
        for line, new, *_ in found:
            changes[file, line].append(Mutant(file, line, text[line - 1], new))
    return changes


def draw(paths, seed):
    """Random mutants, each of another line."""
    changes, randomness = lines_of(paths), random.Random(seed)
    for line in randomness.sample(sorted(changes), len(changes)):
        yield randomness.choice(changes[line])


@contextlib.contextmanager
def applied(mutant):
    path = TREE / mutant.file
    intact = path.read_text()
    lines = intact.splitlines(keepends=True)
    lines[mutant.line - 1] = mutant.new
    path.write_text("".join(lines))
    try:
        yield
    finally:
        path.write_text(intact)


# ---- judging ----


def judge(mutant, intact_object, arguments):
    """What it came to: invalid, same code, what killed it, or survived."""
    if not build(PLAIN, "redlock_objects"):
        return "invalid"
    return "same code" if object_of(mutant.file) == intact_object else notice(arguments)


def notice(arguments):
    """Which tests notice what is in the copy now."""
    tests = unit_tests()
    if not build(PLAIN, *tests) or not build(SIM, "sim"):
        return "invalid"
    if not all(run(PLAIN / "tests/unit" / test) for test in tests):
        return "unit"
    for kind in KINDS:
        if not run(SIM / "tests/sim/sim", "--seeds", arguments.worlds, *kind):
            return "worlds"
    return "survived" if arguments.live is None or passes_live(arguments.live) else "live"


def passes_live(arguments):
    environment = dict(os.environ, REDLOCK_BUILD_DIR=str(PLAIN), REDLOCK_LIBRARY=str(PLAIN / "libredlock.so"))
    pytest = [*PYTEST, *shlex.split(arguments)]
    return build(PLAIN, "all") and run(*pytest, cwd=TREE, env=environment, time_out_s=LIVE_TIME_OUT_S)


def keep(mutant):
    intact = (TREE / mutant.file).read_text().splitlines(keepends=True)
    changed = intact[:mutant.line - 1] + mutant.new.splitlines(keepends=True) + intact[mutant.line:]
    name = f"{mutant.file.replace('/', '-')}-{mutant.line}.patch"
    patch = difflib.unified_diff(intact, changed, f"a/{mutant.file}", f"b/{mutant.file}")
    (SURVIVORS / name).write_text("".join(patch))


def report(number, mutant, verdict):
    print(f"{number:4} {verdict:9} {mutant.file}:{mutant.line}")
    for mark, text in ("-", mutant.old), ("+", mutant.new):
        print("".join(f"       {mark} {line.strip()}\n" for line in text.splitlines()), end="", flush=True)


def judge_all(arguments, intact, verdicts):
    for mutant in draw(arguments.paths, arguments.seed):
        judged = sum(verdicts.values()) - verdicts["invalid"] - verdicts["same code"]
        if judged == arguments.count:
            return
        with applied(mutant):
            verdict = judge(mutant, intact[mutant.file], arguments)
        verdicts[verdict] += 1
        if verdict == "survived":
            keep(mutant)
        if verdict not in ("invalid", "same code"):
            report(judged + 1, mutant, verdict)


def main():
    arguments = parse()
    copy_tree()
    configure()
    verdict = notice(arguments)
    if verdict != "survived":
        sys.exit(f"mutants: the core as it is does not pass: {verdict}")
    shutil.rmtree(SURVIVORS, ignore_errors=True)
    SURVIVORS.mkdir(parents=True)
    intact = {file: object_of(file) for file in files_of(arguments.paths)}
    verdicts = collections.Counter()
    with contextlib.suppress(KeyboardInterrupt):
        judge_all(arguments, intact, verdicts)
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    return 1 if verdicts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())

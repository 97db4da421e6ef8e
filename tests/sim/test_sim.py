"""The simulator's gate: the intact core shows no violation, every broken rule is found, and a seed replays exactly."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIM = os.environ.get("REDLOCK_SIM", ROOT / "build/testbuild/tests/sim/sim")
SECONDS = 30
SEEDS_PER_MUTANT = {  # several times what it takes
    "quorum-of-one": 100,
    "blind-delete": 100,
    "clock-at-reply": 2000,
    "extend-shortens": 1000,
    "extension-at-reply": 2000,
    "no-drift": 500,
    "token-reused": 100,
    "loss-not-sticky": 100,
    "restart-ignored": 200,
    "gone-ignored": 200,
    "demotion-ignored": 200,
    "refused-votes": 3000,
    "release-hesitates": 100,
    "delete-of-held": 200,
    "sleeps-for-hint": 15000,
    "home-only": 8000,
    "queue-jumper": 5000,
    "nobody-is-woken": 3000,
    "place-forgotten": 500,
    "no-backoff": 300,
    "no-heir": 100,
    "no-last-look": 4000,
    "late-winner": 1500,
    "shortening-forgotten": 3000,
    "counted-twice": 200,
    "child-keeps-locks": 200,
    "child-keeps-claims": 200,
    "child-keeps-seed": 200,
}


def sim(*arguments):
    return subprocess.run([SIM, *map(str, arguments)], capture_output=True, text=True, timeout=280)


def trace_hash(run):
    return re.search(r"trace hash ([0-9a-f]{16})", run.stdout)[1]


def test_intact_core_keeps_every_rule():
    run = sim("--seconds", SECONDS)
    print(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    seeds, attempts, wins = map(int, re.match(r"(\d+) seeds, (\d+) attempts, (\d+) wins", run.stdout).groups())
    assert seeds > 0 and attempts > wins > 0


@pytest.mark.parametrize("mutant, seeds", SEEDS_PER_MUTANT.items())
def test_broken_rule_is_found(mutant, seeds):
    run = sim("--mutant", mutant, "--seeds", seeds)
    print(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_mutant_is_hunted():
    header = (ROOT / "core/src/base/mutant.h").read_text()
    assert re.findall(r'X\([A-Z_]+, "([a-z-]+)"', header) == list(SEEDS_PER_MUTANT)


def test_intact_core_is_no_mutant():
    """A hunt that finds nothing fails: the gate above can fail."""
    assert sim("--mutant", "none", "--seeds", 20).returncode == 1


def test_seed_replays_exactly():
    alone, again, traced = sim("--seed", 7), sim("--seed", 7), sim("--seed", 7, "--trace")
    assert trace_hash(alone) == trace_hash(again) == trace_hash(traced)
    assert sim("--seed", 7, "--trace").stdout.splitlines()[:-1] == traced.stdout.splitlines()[:-1]
    assert trace_hash(sim("--seed", 8)) != trace_hash(alone)


def test_seed_does_not_depend_on_those_before():
    """Worlds share nothing: seeds 3 to 7 in one process end with the same state as seed 7 alone."""
    parts = [trace_hash(sim("--seed", seed)) for seed in range(3, 8)]
    total = 0
    for part in parts:
        total = (total * 31 + int(part, 16)) % 2**64
    assert trace_hash(sim("--first", 3, "--seeds", 5)) == f"{total:016x}"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--seeds", "-1"], '--seeds is "-1"; allowed: 1 and above'),
        (["--seconds", "-1"], '--seconds is "-1"; allowed: 0.001 and above'),
        (["--seed", "x"], "x: invalid numeric value"),
        (["--mutant", "all"], '--mutant is "all"; allowed: none, quorum-of-one'),
        (["--trase"], "--trase: unknown option"),
        (["7"], '"7" is no option'),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    run = sim(*arguments)
    assert run.returncode == 64
    assert words in run.stderr

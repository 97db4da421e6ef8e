"""Hints: complete, and right for those who use them."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import libredlock

PACKAGE = Path(libredlock.__file__).parent
HERE = Path(__file__).parent


def needs(module):
    return pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed")


def check(*command):
    # Outside of the repository, or the source tree's package would be meant.
    done = subprocess.run([sys.executable, "-m", *command], cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@needs("mypy")
@pytest.mark.slow
def test_mypy(tmp_path):
    options = ["--strict", "--python-version", "3.10", "--cache-dir", str(tmp_path), "--no-warn-unused-ignores"]
    check("mypy", *options, "-p", "libredlock")
    check("mypy", *options, str(HERE / "examples.py"))


@needs("pyright")
@pytest.mark.slow
def test_pyright(tmp_path):
    check("pyright", "--pythonpath", sys.executable, str(HERE / "examples.py"), str(PACKAGE))


def test_the_marker_is_installed():
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_core.pyi").exists()


def test_the_examples_run(nodes, monkeypatch):
    environment = {**os.environ, "REDLOCK_NODES": nodes.nodes_env}
    done = subprocess.run([sys.executable, str(HERE / "examples.py")], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    nodes.no_keys()

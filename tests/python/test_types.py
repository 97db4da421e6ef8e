"""Hints: complete, and right for those who use them."""

import inspect
import os
import pickle
import pydoc
import re
import subprocess
import sys
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import get_type_hints

import pytest

import libredlock
import libredlock.testing
from libredlock import _options, aio, types

PACKAGE = Path(libredlock.__file__).parent
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def needs(module):
    return pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed")


def documented():
    """Dotted names in the documents, and everything that is public."""
    texts = [path.read_text() for path in (*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "python/README.md")]
    names = {name for text in texts for name in re.findall(r"\blibredlock(?:\.\w+)+", text)}
    for path in "libredlock", "libredlock.aio", "libredlock.testing", "libredlock.types":
        module = named(path)
        names |= {f"{path}.{name}" for name in getattr(module, "__all__", ())}
    names |= {"libredlock.testing.MemoryClient", "libredlock.testing.AsyncMemoryClient"}
    for name in {name for name in names if inspect.isclass(named(name))}:
        ours = [kind for kind in named(name).__mro__ if kind.__module__.startswith("libredlock")]
        names |= {f"{name}.{inner}" for kind in ours for inner in vars(kind) if not inner.startswith("_")}
    return sorted(name for name in names if named(name) is not None and "._" not in name)


def named(path):
    """What a program has that imports libredlock and nothing else; None without."""
    found = libredlock
    for name in path.split(".")[1:]:
        inner = getattr(found, name, None)
        is_hidden = inspect.ismodule(inner) and (found is not libredlock or name not in MODULES)
        found = None if is_hidden else inner
    return found


MODULES = ("aio", "otel", "prometheus", "testing", "types")


def marked_mistakes():
    text = (HERE / "mistakes.py").read_text().splitlines()
    return {("mistakes.py", number) for number, line in enumerate(text, 1) if "# mistake" in line}


def checked(*command):
    """What a type checker says outside of the repository, or the source tree's package would be meant. And the lines
    that it refuses."""
    done = subprocess.run([sys.executable, "-m", *map(str, command)], cwd="/", capture_output=True, text=True)
    lines = re.findall(r"^ *(\S+\.pyi?):(\d+)(?::\d+)?(?: -)?:? error: ", done.stdout, re.M)
    assert len(lines) == done.stdout.count(" error: ") and (done.returncode == 0) == (lines == []), done
    return done.stdout, {(Path(file).name, int(number)) for file, number in lines}


@needs("mypy")
@needs("pyright")
@pytest.mark.slow
@pytest.mark.parametrize("checker, pattern", [("mypy", r'names\.py:(\d+): note: Revealed type is "(.*)"$'),
                                              ("pyright", r'names\.py:(\d+):.* is "(.*)"$')], ids=["mypy", "pyright"])
def test_types_are_known_and_mistakes_are_found(checker, pattern, tmp_path):
    """All that is documented has a type; the package and its examples have no mistake."""
    names = documented()
    assert {"libredlock.aio.Client.lock", "libredlock.testing.MemoryClient", "libredlock.otel.instrument"} <= set(names)
    lines = ["import libredlock", *(f"reveal_type({name})" for name in names)]
    (tmp_path / "names.py").write_text("\n".join(lines) + "\n")
    files = [tmp_path / "names.py", HERE / "examples.py", HERE / "mistakes.py"]
    if checker == "mypy":
        checker = ["mypy", "--strict", "--python-version", "3.10", "--cache-dir", tmp_path / "cache",
                   "--no-warn-unused-ignores"]
        assert checked(*checker, "-p", "libredlock")[1] == set()
    else:
        checker, files = ["pyright", "--pythonpath", sys.executable], [*files, PACKAGE]
    said, refused = checked(*checker, *files)
    assert {place for place in refused if place[0] != "names.py"} == marked_mistakes(), said
    told = {lines[int(number) - 1][12:-1]: kind for number, kind in re.findall(pattern, said, re.MULTILINE)}
    assert set(told) == set(names), said[-2000:]
    assert [name for name, kind in told.items() if kind in ("Any", "Unknown")] == []


@pytest.mark.parametrize("module", [libredlock, aio])
def test_signatures_name_the_options_with_their_defaults(module):
    client = module.Client("redis://127.0.0.1:1")
    of_client = _options.CLIENT_KEYWORDS
    for function, known in (
        (client.lock, _options.LOCK_KEYWORDS), (module.Client, of_client), (module.Client.__init__, of_client),
    ):
        signature = inspect.signature(function)
        assert isinstance(signature, inspect.Signature) and known <= set(signature.parameters)
        assert "options" not in signature.parameters and signature.parameters["ttl"].default == 10
        assert signature.parameters["wait"].default is None and signature.parameters["renew"].default is False
    assert "wait" not in inspect.signature(client.election).parameters
    for method in client.rlock, client.semaphore, client.adopt, client.with_lock:
        assert "ttl: 'Seconds' = 10" in pydoc.render_doc(method)


def callables():
    """Every function of a public class, and everything else that is public."""
    for module in (libredlock, aio, types, libredlock.testing):
        for name in module.__all__:
            member = getattr(module, name)
            if inspect.isroutine(member) or inspect.isclass(member):
                yield pytest.param(member, id=f"{module.__name__}.{name}")
            for inner, method in vars(member).items() if inspect.isclass(member) else ():
                method = method.fget if isinstance(method, property) else getattr(method, "__func__", method)
                if inspect.isfunction(method) and method.__module__.startswith("libredlock"):
                    yield pytest.param(method, id=f"{module.__name__}.{name}.{inner}")


@pytest.mark.parametrize("member", list(callables()))
def test_hints_can_be_read_at_run_time(member):
    get_type_hints(member)


def test_options_can_be_annotated():
    assert get_type_hints(libredlock.Lock.acquire)["timeout"] == types.Seconds
    patient: types.LockOptions = {"ttl": 3.0, "wait": None}
    with libredlock.Client("redis://127.0.0.1:1") as client:
        client.lock("r", **patient)


@pytest.mark.parametrize("name", libredlock.__all__)
def test_names_are_those_that_programs_import(name):
    member = getattr(libredlock, name)
    assert f"{member.__module__}.{member.__qualname__}" == f"libredlock.{name}"
    assert pickle.loads(pickle.dumps(member)) is member


def test_tracebacks_and_representations_show_public_names():
    with libredlock.Client("redis://127.0.0.1:1", connect_timeout=30) as client:
        lock = client.lock("r")
        assert repr(lock) == "<libredlock.Lock 'r' not held here>"
        assert repr(client).startswith("<libredlock.Client 127.0.0.1:1")
        with pytest.raises(libredlock.NotHeld) as caught:
            lock.release()
    assert traceback.format_exception_only(caught.type, caught.value)[0].startswith("libredlock.NotHeld: ")


def test_the_marker_is_installed():
    assert (PACKAGE / "py.typed").exists() and (PACKAGE / "_core.pyi").exists()


def test_the_examples_run(nodes, monkeypatch):
    environment = {**os.environ, "REDLOCK_NODES": nodes.nodes_env}
    done = subprocess.run([sys.executable, str(HERE / "examples.py")], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    nodes.no_keys()

"""Runs every case for every face that can, and for every ordered pair of faces; what a face lacks is shown as n/a."""
import inspect
import itertools
import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "cases"), str(HERE.parents[1] / "python" / "libredlock")]

import faces  # noqa: E402
import matrix  # noqa: E402
from driver import Party  # noqa: E402
from testing.plugin import make_cluster, nodes, redlock_cluster  # noqa: E402, F401
from testing.proxy import BlackHole, Proxy  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--face", action="append", choices=faces.ALL, help="only this face; may be repeated")


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(capability, ...): what a case needs of its faces")
    config.not_applicable = {}
    config.pluginmanager.register(matrix.Plugin(config), "matrix")


# -- which faces a case runs for


def needs_of(metafunc):
    """The capabilities that a case names; one that there is not is an error of the case."""
    wanted = [name for mark in metafunc.definition.iter_markers("needs") for name in mark.args]
    for name in wanted:
        if name not in faces.CAPABILITIES:
            function = metafunc.function
            line = inspect.getsourcelines(function)[1]
            raise pytest.UsageError("%s:%d: %s needs %r, which is no capability; there are: %s" % (
                inspect.getsourcefile(function), line, function.__name__, name, ", ".join(faces.CAPABILITIES)))
    return wanted


def chosen(metafunc):
    return metafunc.config.getoption("--face") or faces.FACES


def lack(face, needs):
    return next(("%s: %s" % (name, faces.LACKS[face][name]) for name in needs if name in faces.LACKS[face]), None)


def remember_lack(metafunc, column, reason):
    metafunc.config.not_applicable["%s|%s" % (matrix.row_of(metafunc.definition.nodeid), column)] = reason


def pytest_generate_tests(metafunc):
    if "face" in metafunc.fixturenames:
        needs = needs_of(metafunc)
        able = []
        for face in chosen(metafunc):
            reason = lack(face, needs)
            if reason:
                remember_lack(metafunc, face, reason)
            else:
                able.append(face)
        metafunc.parametrize("face", able)
    elif "pair" in metafunc.fixturenames:
        needs = needs_of(metafunc)
        pairs = []
        for first, second in itertools.product(faces.FACES, repeat=2):
            if not {first, second} & set(chosen(metafunc)):
                continue
            reason = lack(first, needs)
            if reason:
                remember_lack(metafunc, "%s-%s" % (first, second), "%s (%s)" % (reason, first))
            else:
                pairs.append((first, second))
        metafunc.parametrize("pair", pairs, ids=["%s-%s" % pair for pair in pairs])


# -- fixtures


def present(face):
    reason = faces.missing(face)
    if reason:
        pytest.fail("the face %s is required: %s" % (face, reason), pytrace=False)


@pytest.fixture
def parties(nodes):  # noqa: F811
    """Makes parties, by the name of a face; all are closed at the end."""
    made = []

    def make(face, urls=None, check=True, **options):
        present(face)
        made.append(Party(face, nodes, urls, **options))
        assert not check or made[-1].opened == "OK", made[-1].opened
        return made[-1]

    try:
        yield make
    finally:
        for node in nodes:
            if node.stopped:
                node.cont()
        for party in made:
            party.close()


@pytest.fixture
def make(face, parties):
    """Makes parties of the case's face."""

    def build(urls=None, check=True, **options):
        return parties(face, urls, check, **options)

    return build


@pytest.fixture
def first(pair, parties):
    """The party whose face is named first."""
    return parties(pair[0])


@pytest.fixture
def second(pair, parties):
    """The party whose face is named second."""
    return parties(pair[1])


@pytest.fixture
def proxied(nodes):  # noqa: F811
    """Proxies in front of all nodes."""
    made = [Proxy(node) for node in nodes]
    yield made
    for proxy in made:
        proxy.close()


@pytest.fixture
def black_hole():
    with BlackHole() as hole:
        yield hole


def pytest_sessionfinish(session):
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["not_applicable"] = session.config.not_applicable


def pytest_report_header(config):
    return "conformance: faces %s; build %s%s" % (
        ", ".join(config.getoption("--face") or faces.FACES), faces.BUILD.name,
        "; server " + os.environ["REDLOCK_SERVER"] if "REDLOCK_SERVER" in os.environ else "")

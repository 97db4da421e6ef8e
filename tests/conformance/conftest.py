"""Runs every case for every face that can, and for every ordered pair of faces; what a face lacks is shown as n/a."""
import inspect
import itertools
import os
import sys
import zlib
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "cases"), str(HERE.parent), str(HERE.parents[1] / "python" / "libredlock")]

import faces  # noqa: E402
import matrix  # noqa: E402
import variants  # noqa: E402
from driver import Party  # noqa: E402
from testing.plugin import make_cluster, nodes, redlock_cluster  # noqa: E402, F401
from testing.proxy import BlackHole, Proxy  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--face", action="append", choices=faces.ALL, help="only this face; may be repeated")
    variants.add_options(parser.addoption)


def pytest_configure(config):
    if config.getoption("--server") and not hasattr(config, "workerinput"):
        try:
            os.environ["REDLOCK_SERVER"] = variants.servers(config.getoption("--server"))
        except variants.NoServer as reason:
            raise pytest.UsageError(str(reason)) from None
    config.addinivalue_line("markers", "needs(capability, ...): what a case needs of its faces")
    config.not_applicable = {}
    config.left_out = set()
    config.pluginmanager.register(matrix.Plugin(config), "matrix")


# -- which faces a case runs for


def needs_of(metafunc):
    """The capabilities that a case names; one that there is not is an error of the case."""
    wanted = [name for mark in metafunc.definition.iter_markers("needs") for name in mark.args]
    for name in wanted:
        if name not in faces.CAPABILITIES:
            raise bad_case(metafunc, "needs %r, which is no capability; there are: %s" % (
                name, ", ".join(faces.CAPABILITIES)))
    return wanted


def bad_case(metafunc, words):
    function = metafunc.function
    return pytest.UsageError("%s:%d: %s %s" % (
        inspect.getsourcefile(function), inspect.getsourcelines(function)[1], function.__name__, words))


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
        spread(metafunc, "face", able)
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
        spread(metafunc, "pair", pairs, ids=["%s-%s" % pair for pair in pairs])
    elif metafunc.definition.path.parent != HERE and "parties" not in metafunc.fixturenames:
        raise bad_case(metafunc, "is a case of no face: it takes none of make, first, second and parties")


def spread(metafunc, name, values, **more):
    """Over faces or pairs; a case that none of those chosen can is left out, the matrix says why."""
    if not values:
        metafunc.config.left_out.add(metafunc.definition.nodeid)
    metafunc.parametrize(name, values, **more)


def pytest_collection_modifyitems(config, items):
    """Of the pairs a third, if a text chooses it."""
    sample = os.environ.get("REDLOCK_SAMPLE")
    items[:] = [item for item in items if item.nodeid.partition("[")[0] not in config.left_out
                and not (sample and "pair" in item.fixturenames and zlib.crc32((sample + item.nodeid).encode()) % 3)]


# -- fixtures


@pytest.fixture(scope="session")
def redlock_variant(pytestconfig):
    return variants.cluster_options(pytestconfig.getoption("--auth"), pytestconfig.getoption("--nodes"))


def present(face):
    reason = faces.missing(face)
    if reason:
        pytest.fail("the face %s is required: %s" % (face, reason), pytrace=False)


@pytest.fixture
def parties(nodes):  # noqa: F811
    """Makes parties, by the name of a face; all are closed at the end. With guard_variable they have a REDLOCK_GUARD.
    Without, the nodes are bootstrapped for them, whatever their max_ttl_ms and key_prefix and how many nodes they have:
    all parties with the guard have the same in a case."""
    made, ready = [], [{}]

    def make(face, urls=None, check=True, guard_variable=None, **options):
        present(face)
        if guard_variable is None and "guard" not in options and check:
            bootstrap_for(nodes, urls, options, ready)
        environment = {name: value for name, value in faces.environment().items() if name != "REDLOCK_GUARD"}
        if guard_variable is not None:
            environment["REDLOCK_GUARD"] = guard_variable
        made.append(Party(face, nodes, urls, environment, **options))
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


def bootstrap_for(nodes, urls, options, ready):  # noqa: F811
    """Once in a case for the same; not at all where they are as the kit has bootstrapped them."""
    count = len(nodes) if urls is None else len(urls)
    chosen = {"nodes": nodes[:count]} if count != len(nodes) else {}
    if "key_prefix" in options:
        chosen["key_prefix"] = options["key_prefix"]
    if "max_ttl_ms" in options:
        chosen["max_ttl"] = options["max_ttl_ms"] / 1000
    if chosen not in ready:
        nodes.bootstrap(**chosen)
        ready.append(chosen)


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
    return "conformance: faces %s; build %s; %s" % (", ".join(config.getoption("--face") or faces.FACES),
                                                    faces.BUILD.name, matrix.variant(config))

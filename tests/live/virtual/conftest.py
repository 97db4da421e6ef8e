"""Fixtures of the tests that also run in a virtual world: there they have the names of the real ones."""
import os
import zlib
from pathlib import Path

import pytest

import world

HERE = Path(__file__).parent
collect_ignore = [] if world.LIBRARY else ["test_world.py", "test_program_times.py", "test_queue_times.py"]


def pytest_collection_modifyitems(config, items):
    """On real servers a tenth of them, if a text chooses it."""
    sample = os.environ.get("REDLOCK_SAMPLE")
    if sample and not world.LIBRARY:
        others = [item for item in items
                  if HERE in item.path.parents and zlib.crc32((sample + item.nodeid).encode()) % 10]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]


if world.LIBRARY:
    import common
    import helpers
    import queueing
    import servers as serving
    import testing.fake
    import testing.wait
    import world_paths

    world.enter(common, helpers, queueing, testing.fake, testing.wait)

    def _cluster(*args, **how):
        return world.Cluster(*args, bootstrap=serving._bootstrap, **how)

    @pytest.fixture(autouse=True)
    def _begin_world(request):
        world.enter(request.module)
        world.start(request.node.nodeid)

    @pytest.fixture
    def nodes(_begin_world, servers):
        cluster = servers.add_cluster(_cluster(5))
        cluster.reset()
        return cluster

    @pytest.fixture
    def make_cluster(_begin_world, servers, are_new):
        default = {"bootstrapped": False} if are_new else {}
        return lambda *args, **how: servers.add_cluster(_cluster(*args, **{**default, **how}))

    @pytest.fixture
    def make_clocked(make_cluster):
        return lambda count, **how: make_cluster(count, **how).nodes

    @pytest.fixture
    def proxy(_begin_world, servers):
        return lambda target, **how: servers.add_proxy(world_paths.Proxy(target, **how), target)

    @pytest.fixture
    def fake_server(_begin_world, servers):
        return lambda *args, **how: servers.add_fake(world_paths.FakeServer(*args, **how))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(item, call):
        report = (yield).get_result()
        if report.failed:
            report.sections.append(("the last events of the world", world.events()))

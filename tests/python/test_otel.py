"""Spans and metrics, as an SDK of OpenTelemetry exports them."""

import asyncio
import gc
import threading
import time

import pytest

import libredlock
from libredlock import aio
from libredlock.testing import eventually
from patience import GENEROUS_TIMEOUTS, connected, lapsing, until

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import trace  # noqa: E402
from opentelemetry.sdk.metrics import MeterProvider  # noqa: E402
from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: E402
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402
from opentelemetry.trace import StatusCode  # noqa: E402

from libredlock import otel  # noqa: E402


class Backend:
    """What a program's OpenTelemetry has been told."""

    def __init__(self):
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self.meter_provider = MeterProvider([self._reader])

    def instrument(self, client, **options):
        providers = {"tracer_provider": self.tracer_provider, "meter_provider": self.meter_provider}
        otel.instrument(client, **{**providers, **options})
        return client

    def tracer(self):
        return trace.get_tracer("program", tracer_provider=self.tracer_provider)

    def spans(self):
        """The ended ones in the order of their beginnings."""
        return sorted(self._spans.get_finished_spans(), key=lambda span: span.start_time)

    def names(self):
        return [span.name.replace("redlock.", "") for span in self.spans()]

    def one(self, name):
        (span,) = [span for span in self.spans() if span.name == f"redlock.{name}"]
        return span

    def attributes(self, name):
        return {key.replace("redlock.", ""): value for key, value in self.one(name).attributes.items()}

    def metrics(self):
        """Name -> attributes -> value."""
        data = self._reader.get_metrics_data()
        resources = data.resource_metrics if data is not None else []
        every = [metric for one in resources for scope in one.scope_metrics for metric in scope.metrics]
        assert len({metric.name for metric in every}) == len(every)
        return {
            metric.name: {tuple(sorted(point.attributes.items())): point.value for point in metric.data.data_points}
            for metric in every
        }


@pytest.fixture
def backend():
    backend = Backend()
    yield backend
    backend.tracer_provider.shutdown()
    backend.meter_provider.shutdown()


@pytest.fixture
def client(nodes, backend):
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
        yield backend.instrument(connected(client))


def parent(span):
    return span.parent and span.parent.span_id


def test_a_block_has_spans_for_each_call_and_its_hold(client, backend):
    with backend.tracer().start_as_current_span("request") as request:
        with client.lock("orders:42", ttl=8, wait=5, fence=True) as hold:
            with backend.tracer().start_as_current_span("work"):
                hold.extend(9)
        fence = hold.fence
    assert backend.names() == ["request", "acquire", "hold", "work", "extend", "release"]
    spans = dict(zip(backend.names(), backend.spans()))
    identity = {name: span.context.span_id for name, span in spans.items()}
    assert {name: parent(span) for name, span in spans.items()} == {
        "request": None,
        "acquire": identity["request"],
        "hold": identity["request"],
        "work": identity["hold"],
        "extend": identity["work"],
        "release": identity["request"],
    }
    assert request.get_span_context().trace_id == spans["release"].context.trace_id
    acquired = backend.attributes("acquire")
    assert acquired.pop("attempts") >= 1
    assert acquired == {"resource": "orders:42", "ttl_ms": 8000, "wait_ms": 5000, "status": "OK", "fence": fence}
    assert backend.attributes("hold") == {"resource": "orders:42", "ttl_ms": 8000, "fence": fence}
    extended = backend.attributes("extend")
    assert 0 < extended.pop("remaining_ms") <= 9000
    assert extended == {"resource": "orders:42", "ttl_ms": 9000, "status": "OK"}
    assert backend.attributes("release") == {"resource": "orders:42", "status": "OK"}
    assert all(spans[name].kind is trace.SpanKind.CLIENT for name in ("acquire", "extend", "release"))
    assert spans["hold"].end_time <= spans["release"].start_time
    assert {span.status.status_code for span in spans.values()} == {StatusCode.UNSET}
    assert spans["hold"].instrumentation_scope.name == "libredlock"
    assert spans["hold"].instrumentation_scope.version == libredlock.__version__


def test_an_acquire_lasts_as_long_as_it_waits(client, nodes, backend):
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as other:
        theirs = other.lock("r", ttl=30).acquire()
        waits_at_ns = []

        def release():
            eventually(lambda: client.describe()["waiting"], 30)
            waits_at_ns.append(time.time_ns())
            theirs.release()

        mine = client.lock(b"r\xff", ttl=8)
        assert mine.acquire()  # without limit
        mine.release()
        releasing = threading.Thread(target=release)
        releasing.start()
        mine = client.lock("r", ttl=8)
        assert mine.acquire(timeout=60)
        mine.release()
        releasing.join(60)  # it may not have heard of its release yet
    assert backend.names() == ["acquire", "release"] * 2  # without a block there is no span of the hold
    first, second = [span for span in backend.spans() if span.name == "redlock.acquire"]
    assert first.attributes["redlock.resource"] == "r\\xff" and "redlock.wait_ms" not in first.attributes
    assert second.attributes["redlock.wait_ms"] == 60000 and second.attributes["redlock.attempts"] >= 1
    assert second.start_time <= waits_at_ns[0] <= second.end_time


def test_busy_is_no_error_and_no_quorum_is_one(client, nodes, backend):
    lock = client.lock("r")
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as other, other.lock("r"):
        eventually(lambda: all(node.get("r") for node in nodes))
        assert not lock.acquire(blocking=False)
    busy = backend.one("acquire")
    assert (busy.attributes["redlock.status"], busy.status.status_code) == ("BUSY", StatusCode.UNSET)
    assert busy.attributes["redlock.wait_ms"] == 0 and busy.attributes["redlock.attempts"] == 1
    for node in nodes:
        node.kill()
    with pytest.raises(libredlock.NoQuorum):
        client.lock("s", outage_wait=0).acquire()
    outage = backend.spans()[-1]
    assert (outage.attributes["redlock.status"], outage.status.status_code) == ("NO_QUORUM", StatusCode.ERROR)
    assert "0 of 5 nodes" in outage.status.description


def assert_lost(backend, reason, is_told_in_the_body):
    hold, release = backend.one("hold"), backend.one("release")
    assert (hold.status.status_code, hold.attributes["redlock.loss"]) == (StatusCode.ERROR, reason)
    (event,) = [event for event in hold.events if event.name == "redlock.lost"]
    assert event.attributes["redlock.loss"] == reason and "lost" in event.attributes["message"]
    assert (event.timestamp < hold.end_time) is is_told_in_the_body
    assert release.attributes["redlock.status"] == "LOST" and release.attributes["redlock.loss"] == reason
    assert release.status.status_code is StatusCode.ERROR


def test_loss_is_recorded_when_it_happens(client, nodes, backend):
    with pytest.raises(libredlock.Lost):
        with client.lock("r", **lapsing(0.5), renew=False):
            hold = trace.get_current_span()
            eventually(lambda: hold.events, 60)
    assert_lost(backend, "expired", True)


def test_a_loss_that_the_release_finds_is_recorded(client, nodes, backend):
    with pytest.raises(libredlock.Lost):
        with client.lock("r", ttl=20):
            eventually(lambda: nodes.keys().get(b"r") == [0, 1, 2, 3, 4], 20)
            for node in nodes:
                node.flush()
    assert_lost(backend, "gone", False)


def test_an_error_of_the_body_is_recorded_in_its_hold(client, backend):
    with pytest.raises(KeyError):
        with client.lock("r"):
            raise KeyError("mine")
    hold = backend.one("hold")
    assert (hold.status.status_code, hold.status.description) == (StatusCode.ERROR, "KeyError: 'mine'")
    assert [event.attributes["exception.type"] for event in hold.events] == ["KeyError"]
    assert backend.one("release").status.status_code is StatusCode.UNSET
    assert not trace.get_current_span().get_span_context().is_valid


def test_decorated_functions_and_generators_have_spans(client, backend):
    @client.with_lock("g:{number}")
    def traced(number):
        return trace.get_current_span().name

    @client.with_lock("generator")
    def numbers():
        yield 1
        yield 2

    assert traced(1) == "redlock.hold" and list(numbers()) == [1, 2]
    left = numbers()
    assert next(left) == 1
    left.close()
    assert backend.names() == ["acquire", "hold", "release"] * 3
    assert not trace.get_current_span().get_span_context().is_valid


def test_only_the_outermost_section_of_an_rlock_has_spans(client, backend):
    tree = client.rlock("tree")
    with tree:
        outer = trace.get_current_span()
        with tree:
            assert tree.acquire() and trace.get_current_span() is outer
            tree.extend(20)
            tree.release()
        assert trace.get_current_span() is outer and outer.is_recording()
    assert tree.acquire()
    tree.release()
    assert backend.names() == ["acquire", "hold", "extend", "release", "acquire", "release"]


def test_each_term_of_a_leader_has_a_hold(client, nodes, backend):
    election, terms = client.election("scheduler", **lapsing(2)), []
    for term in election:
        with term:
            terms.append(term.fence)
            assert trace.get_current_span().name == "redlock.hold"
            if len(terms) == 1:
                eventually(lambda: nodes.keys().get(b"scheduler") == [0, 1, 2, 3, 4], 20)
                for node in nodes:
                    node.delete_keys()
                eventually(lambda term=term: term.lost, 20)
            else:
                election.stop()
    assert backend.names() == ["acquire", "hold", "release"] * 2
    lost, led = [span for span in backend.spans() if span.name == "redlock.hold"]
    assert (lost.attributes["redlock.loss"], lost.attributes["redlock.fence"]) == ("gone", terms[0])
    assert (led.status.status_code, led.attributes["redlock.fence"]) == (StatusCode.UNSET, terms[1])
    assert not trace.get_current_span().get_span_context().is_valid


def test_locks_in_memory_have_spans(backend):
    with backend.instrument(libredlock.testing.MemoryClient()) as client:
        with client.lock("r"), client.semaphore("gpu", 2):
            pass
    assert sorted(backend.names()) == 2 * ["acquire"] + 2 * ["hold"] + 2 * ["release"]


def test_uninstrument_ends_it_for_all_kinds(client, backend):
    otel.uninstrument(client)
    with client.lock("r"), client.rlock("tree"):
        for term in client.election("scheduler"):
            with term:
                break
    assert backend.names() == []


def test_threads_that_share_a_lock_have_holds_of_their_own(client, backend):
    lock, barrier = client.lock("r", ttl=20), threading.Barrier(3)

    def work():
        barrier.wait(60)
        for _ in range(5):
            with lock:
                assert trace.get_current_span().name == "redlock.hold"

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(backend.names()) == ["acquire"] * 15 + ["hold"] * 15 + ["release"] * 15
    holds = sorted((span.start_time, span.end_time) for span in backend.spans() if span.name == "redlock.hold")
    assert all(before[1] <= after[0] for before, after in zip(holds, holds[1:]))


def test_a_lapsed_hold_is_not_taken_for_the_next_one(client, backend):
    """The first hold has lapsed, and the second must not be taken for it."""
    lock, taken, lapsed = client.lock("r", **lapsing(2), renew=False), threading.Event(), threading.Event()
    losses = []

    def outlives():
        try:
            with lock:
                taken.set()
                lapsed.wait(60)
        except libredlock.Lost as loss:
            losses.append(loss.reason)

    thread = threading.Thread(target=outlives)
    thread.start()
    assert taken.wait(60)
    with lock:
        lock.extend(20)
        lapsed.set()
        thread.join(60)
        assert trace.get_current_span().is_recording()
    assert losses == ["expired"]
    first, second = [span for span in backend.spans() if span.name == "redlock.hold"]
    assert first.attributes["redlock.loss"] == "expired" and "redlock.loss" not in second.attributes
    assert second.status.status_code is StatusCode.UNSET


def test_an_adopted_lock_has_an_extend_in_place_of_acquire(client, nodes, backend):
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as other:
        theirs = connected(other).lock("r", ttl=20)
        theirs.acquire()
        other.status("r")
        with client.adopt("r", theirs.detach(), ttl=20):
            pass
    assert backend.names() == ["extend", "hold", "release"]


def test_the_span_of_a_kept_lock_ends_with_its_block(client, backend):
    client.with_lock("r", keep=20)(lambda: None)()
    assert backend.names() == ["acquire", "hold"]
    assert not trace.get_current_span().is_recording()


def test_spans_of_asyncio_belong_to_their_tasks(nodes, run, backend):
    async def hold(client, number):
        with backend.tracer().start_as_current_span(f"task {number}"):
            async with client.lock("r", ttl=20, wait=60) as lock:
                with backend.tracer().start_as_current_span(f"work {number}"):
                    await asyncio.sleep(0.01)
                    await lock.extend()

    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            backend.instrument(client)
            await asyncio.gather(*(hold(client, number) for number in range(4)))
            held = client.lock("s", ttl=30)
            assert await held.acquire()
            with pytest.raises(libredlock.Lost):
                async with client.lock("lost", **lapsing(0.5), renew=False, cancel_on_lost=True):
                    await asyncio.sleep(60)
            waiter = asyncio.ensure_future(client.lock("s").acquire())
            await until(lambda: client.describe()["waiting"])
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
            await held.release()

    run(main())
    spans = {span.context.span_id: span for span in backend.spans()}
    for number in range(4):
        (work,) = [span for span in spans.values() if span.name == f"work {number}"]
        hold_span = spans[parent(work)]
        assert hold_span.name == "redlock.hold" and spans[parent(hold_span)].name == f"task {number}"
        assert [span.name for span in spans.values() if parent(span) == work.context.span_id] == ["redlock.extend"]
    lost = [span for span in spans.values() if span.attributes.get("redlock.loss")]
    assert [span.name for span in lost] == ["redlock.hold", "redlock.release"]
    assert [event.name for event in lost[0].events] == ["redlock.lost"]
    cut_off = [span.name for span in spans.values() if span.attributes.get("redlock.status") == "CANCELLED"]
    assert cut_off == ["redlock.acquire"]


def test_a_generator_may_be_closed_by_the_loop(nodes, run, backend, caplog):
    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:

            @backend.instrument(client).with_lock("r")
            async def numbers():
                yield 1

            async for _ in numbers():
                break
            await until(lambda: "release" in backend.names())
            assert not trace.get_current_span().get_span_context().is_valid

    run(main())
    assert backend.names() == ["acquire", "hold", "release"]
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


def test_locks_of_all_kinds_have_spans_in_asyncio(nodes, run, backend):
    async def main():
        async with aio.Client(nodes.urls, **GENEROUS_TIMEOUTS) as client:
            backend.instrument(client)
            tree = client.rlock("tree")
            async with tree:
                async with tree:
                    pass
                assert trace.get_current_span().name == "redlock.hold"
            async with client.lock(["a", "b"]):
                pass
            async with client.lock("report", shared=True):
                pass
            election = client.election("scheduler")
            async for term in election:
                async with term:
                    assert trace.get_current_span().name == "redlock.hold"
                    election.stop()

    run(main())
    assert backend.names() == ["acquire", "hold", "release"] * 4
    resources = [span.attributes["redlock.resource"] for span in backend.spans() if span.name == "redlock.hold"]
    assert resources == ["tree", "a, b", "report", "scheduler"]


GREENLETS = f"""
import gevent.monkey
gevent.monkey.patch_all()
import gevent
from gevent.event import Event
import libredlock
from libredlock import otel
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
client = libredlock.Client(**{GENEROUS_TIMEOUTS})
otel.instrument(client, tracer_provider=provider)

tracer = trace.get_tracer("program", tracer_provider=provider)

held, both = set(), Event()

def work(number):
    resource = "r" if number < 2 else "s"
    with tracer.start_as_current_span(f"task {{number}}"):
        with client.lock(resource, ttl=20):
            with tracer.start_as_current_span(f"work {{number}}"):
                held.add(resource)
                if len(held) == 2:
                    both.set()
                assert both.wait(60)  # two holds at the same time

gevent.joinall([gevent.spawn(work, number) for number in range(3)], raise_error=True)
spans = {{span.context.span_id: span for span in exporter.get_finished_spans()}}
for number in range(3):
    (span,) = [span for span in spans.values() if span.name == f"work {{number}}"]
    hold = spans[span.parent.span_id]
    print(span.name, hold.name, spans[hold.parent.span_id].name, sep=" < ")
client.close()
"""


def test_spans_of_greenlets_belong_to_their_greenlets(script):
    pytest.importorskip("gevent", reason="gevent is not installed")
    status, out, err = script(GREENLETS).end()
    assert (status, out.splitlines()) == (0, [f"work {n} < redlock.hold < task {n}" for n in range(3)]), err


class Failing(SpanProcessor):
    def on_start(self, span, parent_context=None):
        raise RuntimeError("no spans today")

    def on_end(self, span):
        raise RuntimeError("no spans today")


def test_a_tracer_that_fails_costs_no_lock_and_no_release(nodes, client, backend, caplog):
    backend.tracer_provider.add_span_processor(Failing())
    with client.lock("r") as lock:
        assert lock.owned()
        lock.extend()
    nodes.no_keys()
    assert any("could not be started" in record.getMessage() for record in caplog.records)


# ---- metrics ------------------------------------------------------------------------------------------------------


def test_the_figures_are_those_of_the_client(client, nodes, backend):
    for _ in range(3):
        with client.lock("r"):
            eventually(lambda: nodes.keys().get(b"r") == [0, 1, 2, 3, 4], 20)
    nodes.no_keys()
    with client.lock("s"):
        held = backend.metrics()
    after, told = backend.metrics(), client.describe()
    assert held["redlock.locks_held"] == {(): 1} and after["redlock.locks_held"] == {(): 0}
    assert after["redlock.acquisitions"][("status", "OK"),] == 4 == told["acquisitions"]["OK"]
    assert after["redlock.losses"][("reason", "expired"),] == 0
    assert after["redlock.wait.count"] == after["redlock.hold.count"] == {(): 4}
    assert after["redlock.wait.bucket"][("le", "+Inf"),] == 4
    assert after["redlock.wait.sum"][()] == pytest.approx(told["wait_us"]["sum"] / 1e6)
    votes = after["redlock.node.votes"]
    for node in told["nodes"]:
        for vote, count in node["answers"].items():
            assert votes[("node", node["node"]), ("vote", vote)] == count
        assert 0 < after["redlock.node.rtt"][("node", node["node"]),] < 10
    assert sum(votes.values()) >= 12


def test_every_figure_is_observed(client, backend):
    names = [line.split()[2] for line in client.metrics().splitlines() if line.startswith("# TYPE")]
    observed = backend.metrics()
    for name in names:
        short_name = name.replace("redlock_node_", "redlock.node.").replace("redlock_", "redlock.")
        short_name = short_name.replace("_seconds", "")
        assert short_name == "redlock.library" or {short_name, f"{short_name}.count"} & set(observed), name


def test_several_clients_are_told_apart_by_name(client, nodes, backend):
    with libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS) as other:
        with pytest.raises(ValueError, match="name='': another client that is instrumented has none either"):
            backend.instrument(other)
        backend.instrument(other, name="other")
        with other.lock("r"):
            assert backend.metrics()["redlock.locks_held"] == {(): 0, (("redlock.client", "other"),): 1}
    assert backend.one("hold").attributes["redlock.client"] == "other"
    assert backend.metrics()["redlock.locks_held"] == {(): 0}  # it is closed
    third = libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS)
    backend.instrument(third, name="other")
    del third
    gc.collect()
    assert backend.metrics()["redlock.locks_held"] == {(): 0}  # nothing keeps it alive


def test_a_client_in_memory_takes_no_figures_from_others(nodes, backend):
    with backend.instrument(libredlock.testing.MemoryClient(), name="memory"):
        with backend.instrument(libredlock.Client(nodes.urls, **GENEROUS_TIMEOUTS), name="other"):
            assert backend.metrics()["redlock.locks_held"] == {(("redlock.client", "other"),): 0}


def test_it_can_be_ended(client, backend):
    with pytest.raises(ValueError, match="instrumented already"):
        backend.instrument(client, name="again")
    otel.uninstrument(client)
    otel.uninstrument(client)
    with client.lock("r") as hold:
        assert type(hold) is libredlock.Hold
    assert backend.names() == [] and backend.metrics() == {}
    backend.instrument(client)
    with client.lock("r"):
        assert backend.metrics()["redlock.locks_held"] == {(): 1}
    assert backend.names() == ["acquire", "hold", "release"]


def test_opentelemetry_is_imported_only_on_demand(script):
    source = "import sys, libredlock, libredlock.aio; print([name for name in sys.modules if 'opentelemetry' in name])"
    assert script(source).end()[:2] == (0, "[]")

"""Spans and metrics of a client for OpenTelemetry; opentelemetry-api has to be installed:

    libredlock.otel.instrument(client)

Locks that the client makes from then on have the spans redlock.acquire, redlock.extend and redlock.release, and a body
of `with`, `async with` and with_lock() and a term of an election have redlock.hold around them. What a re-entrant lock
does inside of its outermost section sends nothing and has no span. The metrics are the figures of client.metrics().
"""

from __future__ import annotations

import functools
import logging
import time
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Dict, Iterator, List, Optional, Type, TypeVar, Union

from opentelemetry import context, metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider

from . import __version__, _client, _thread_election, _thread_lock, _thread_rlock, aio
from ._core import lib
from ._errors import Lost, RedlockError, Status
from ._lock import LockBase
from ._native import text
from ._observed import Observed, observed_by
from ._options import BY_OPTION
from ._queue import Ticket, first
from .types import Seconds

__all__ = ["instrument", "uninstrument"]

AnyClient = Union[_client.Client, aio.Client]
AnyTracedLock = TypeVar("AnyTracedLock", bound="TracedLock")
AnyAsyncTracedLock = TypeVar("AnyAsyncTracedLock", bound="AsyncTracedLock")

log = logging.getLogger("libredlock")


def instrument(
    client: AnyClient,
    *,
    name: str = "",
    tracer_provider: Optional[TracerProvider] = None,
    meter_provider: Optional[MeterProvider] = None,
) -> None:
    """Traces the locks that the client makes from now on, and exports its figures until it is closed.

    name: tells several clients of a program apart, as the attribute redlock.client of spans and metrics.
    tracer_provider, meter_provider: used in place of those of the program.
    Raises ValueError if the client is instrumented already, or another one of this name is.
    """
    if "_observed" in vars(client):
        raise ValueError("the client is instrumented already; uninstrument() ends that")
    observed = observed_by(meter_provider or metrics.get_meter_provider())
    observed.add(name, client)
    tracer = trace.get_tracer("libredlock", __version__, tracer_provider)
    shared = {"redlock.client": name} if name else {}
    kinds = _KINDS if isinstance(client, _client.Client) else _AIO_KINDS
    made = {kind: functools.partial(traced, tracer, shared) for kind, traced in kinds.items()}
    vars(client).update(made, _observed=observed)


def uninstrument(client: AnyClient) -> None:
    """Ends what instrument() began; locks that were made meanwhile stay traced."""
    for kind in _KINDS:
        vars(client).pop(kind, None)
    observed: Optional[Observed] = vars(client).pop("_observed", None)
    if observed is not None:
        observed.remove(client)


def _started(tracer: trace.Tracer, name: str, attributes: Dict[str, Any], kind: SpanKind) -> Span:
    """A span, or one that records nothing if the tracer fails: that must cost neither the lock nor the release."""
    try:
        return tracer.start_span(name, kind=kind, attributes=attributes)
    except Exception:
        log.exception("the span %s could not be started", name)
        return trace.INVALID_SPAN


def _end(span: Span, at_ns: Optional[int] = None) -> None:
    try:
        span.end(at_ns)
    except Exception:
        log.exception("a span could not be ended")


class Hold:
    """The span of a body, which is the current one in it."""

    def __init__(self, tracer: trace.Tracer, owner: object, attributes: Dict[str, Any]) -> None:
        self.owner = owner
        self.span = _started(tracer, "redlock.hold", attributes, SpanKind.INTERNAL)
        self._token = context.attach(trace.set_span_in_context(self.span))
        self._ended_ns: Optional[int] = None
        self._is_lost = False

    def leave(self, failure: Optional[BaseException]) -> None:
        """The body has ended; how the release goes can still be told."""
        self._ended_ns = time.time_ns()
        if trace.get_current_span() is self.span:  # a generator may be closed in another context
            context.detach(self._token)
        if isinstance(failure, Exception):
            self.span.record_exception(failure)
            self.span.set_status(StatusCode.ERROR, f"{type(failure).__name__}: {failure}")

    def lose(self, loss: RedlockError) -> None:
        """At the moment of the loss, if somebody watches; else once it is found."""
        if self._is_lost:
            return
        self._is_lost = True
        attributes = {"redlock.loss": getattr(loss, "reason", "")}
        self.span.add_event("redlock.lost", {**attributes, "message": str(loss)})
        self.span.set_attributes(attributes)
        self.span.set_status(StatusCode.ERROR, str(loss))

    def end(self) -> None:
        _end(self.span, self._ended_ns)


class Traced(LockBase):
    """What the locks of instrumented clients have in common: all that does no I/O."""

    def _trace(self, tracer: trace.Tracer, shared: Dict[str, str]) -> None:
        self._tracer, self._shared = tracer, shared
        self._bodies: List[Hold] = []

    def _attributes(self) -> Dict[str, Any]:
        names = (one if isinstance(one, str) else one.decode("utf-8", "backslashreplace") for one in self._names())
        return {"redlock.resource": ", ".join(names), **self._shared}

    def _ttl_ms(self) -> Dict[str, int]:
        return {"redlock.ttl_ms": int(text(lib.redlock_lock_get, self._handle, b"ttl_ms"))}

    @contextmanager
    def _span(self, name: str, attributes: Dict[str, Any]) -> Iterator[Span]:
        """Of one operation; what it raises is an error of the span."""
        span = _started(self._tracer, name, {**self._attributes(), **attributes}, SpanKind.CLIENT)
        try:
            with trace.use_span(span):
                yield span
        except RedlockError as failure:
            span.set_attribute("redlock.status", failure.status.name)
            if isinstance(failure, Lost):
                span.set_attribute("redlock.loss", failure.reason)
                self._lose(failure)
            raise
        except Exception:
            raise
        except BaseException:  # the wait was cut off
            span.set_attribute("redlock.status", Status.CANCELLED.name)
            raise
        finally:
            _end(span)

    @contextmanager
    def _acquire_span(self, ticket: Ticket, limit_ms: int) -> Iterator[List[int]]:
        """The operation puts its status into the list."""
        wait_ms = self._wait_option_ms() if limit_ms == BY_OPTION else limit_ms
        waits = {"redlock.wait_ms": wait_ms} if wait_ms >= 0 else {}
        with self._span("redlock.acquire", {**self._ttl_ms(), **waits}) as span:
            came_to: List[int] = []
            yield came_to
            status = Status(came_to[0])
            span.set_attribute("redlock.status", status.name)
            if first(self._line) is ticket:  # else it stood behind others of this process all the time
                span.set_attribute("redlock.attempts", self.attempts)
            if status == Status.OK and self.fence is not None:
                span.set_attribute("redlock.fence", self.fence)
            if status not in (Status.OK, Status.BUSY):
                span.set_status(StatusCode.ERROR, text(lib.redlock_lock_message, self._handle))

    @contextmanager
    def _extend_span(self, ttl: Optional[Seconds]) -> Iterator[None]:
        with self._span("redlock.extend", {} if ttl is not None else self._ttl_ms()) as span:
            yield
            left_ms = int(self.remaining * 1000)
            span.set_attributes({"redlock.status": "OK", "redlock.remaining_ms": left_ms})

    @contextmanager
    def _release_span(self) -> Iterator[None]:
        with self._span("redlock.release", {}) as span:
            yield
            span.set_attribute("redlock.status", "OK")

    # ---- the hold ---------------------------------------------------------------------------------------------------

    def _begin_hold(self) -> None:
        try:
            self._begin_body()
        except BaseException:  # of a signal handler, for example: the block does not begin
            ticket = first(self._line)
            if ticket is not None:
                self._abandon(ticket)
            raise

    def _begin_body(self) -> None:
        attributes = {**self._attributes(), **self._ttl_ms()}
        if self.fence is not None:
            attributes["redlock.fence"] = self.fence
        body = Hold(self._tracer, self._client._current(), attributes)
        self._bodies.append(body)
        if body.span.is_recording():
            self._watch()

    def _leave_hold(self, failure: Optional[BaseException]) -> Optional[Hold]:
        me = self._client._current()
        for body in reversed(self._bodies):
            if body.owner == me:
                body.leave(failure)
                return body
        return None

    def _end_hold(self, body: Optional[Hold]) -> None:
        if body is None:
            return
        self._bodies.remove(body)
        if not self._bodies and self._on_lost is None:
            self._unwatch()
        body.end()

    def _lose(self, loss: Lost) -> None:
        """Whoever calls has lost the lock."""
        me = self._client._current()
        for body in list(self._bodies):
            if body.owner == me:
                body.lose(loss)

    def _tell_if_lost(self) -> None:
        if self.lost:
            loss = self._lost()
            for body in list(self._bodies):
                body.lose(loss)
        super()._tell_if_lost()


class TracedLock(Traced, _thread_lock.Lock):
    """A lock of an instrumented client."""

    def __init__(self, tracer: trace.Tracer, shared: Dict[str, str], *arguments: Any) -> None:
        self._trace(tracer, shared)
        super().__init__(*arguments)

    def _take(self, ticket: Ticket, limit_ms: int) -> int:
        with self._acquire_span(ticket, limit_ms) as came_to:
            came_to.append(super()._take(ticket, limit_ms))
        return came_to[0]

    def extend(self, ttl: Optional[Seconds] = None) -> float:
        with self._extend_span(ttl):
            return super().extend(ttl)

    def release(self) -> None:
        with self._release_span():
            super().release()

    def __enter__(self: AnyTracedLock) -> AnyTracedLock:
        super().__enter__()
        self._begin_hold()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        body = None
        try:
            body = self._leave_hold(failure)
        finally:
            try:
                super().__exit__(kind, failure, trace)
            finally:
                self._end_hold(body)


class TracedSeat(TracedLock, _thread_election.Seat):
    """The lock of a candidate."""


class TracedRLock(_thread_rlock.RLock, TracedLock):
    """A re-entrant lock: its outermost section is traced."""

    def _leave_hold(self, failure: Optional[BaseException]) -> Optional[Hold]:
        return None if self._inner else super()._leave_hold(failure)


class AsyncTracedLock(Traced, aio.Lock):
    """A lock of an instrumented client of libredlock.aio."""

    def __init__(self, tracer: trace.Tracer, shared: Dict[str, str], *arguments: Any) -> None:
        self._trace(tracer, shared)
        super().__init__(*arguments)

    async def _take(self, ticket: Ticket, limit_ms: int) -> int:
        with self._acquire_span(ticket, limit_ms) as came_to:
            came_to.append(await super()._take(ticket, limit_ms))
        return came_to[0]

    async def extend(self, ttl: Optional[Seconds] = None) -> float:
        with self._extend_span(ttl):
            return await super().extend(ttl)

    async def release(self) -> None:
        with self._release_span():
            await super().release()

    async def __aenter__(self: AnyAsyncTracedLock) -> AnyAsyncTracedLock:
        await super().__aenter__()
        self._begin_hold()
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], failure: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        body = None
        try:
            body = self._leave_hold(failure)
        finally:
            try:
                await super().__aexit__(kind, failure, trace)
            finally:
                self._end_hold(body)


class AsyncTracedRLock(aio.RLock, AsyncTracedLock):
    """A re-entrant lock of libredlock.aio."""


_KINDS = {"_lock_type": TracedLock, "_rlock_type": TracedRLock, "_seat_type": TracedSeat}
_AIO_KINDS = {"_lock_type": AsyncTracedLock, "_rlock_type": AsyncTracedRLock}

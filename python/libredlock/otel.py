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
from typing import Any, Iterator, Optional, Union

from opentelemetry import context, metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider

from . import __version__, _client, aio
from ._errors import Lost, RedlockError, Status
from ._hold import HoldBase
from ._native import text
from ._observed import Observed, observed_by
from ._options import BY_OPTION, ttl_ms
from .types import Seconds

__all__ = ["instrument", "uninstrument"]

AnyClient = Union[_client.Client, aio.Client]

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
    made = {kind: _traced(getattr(client, kind), tracer, shared) for kind in _KINDS}
    vars(client).update(made, _observed=observed)


def uninstrument(client: AnyClient) -> None:
    """Ends what instrument() began; locks that were made meanwhile stay traced."""
    for kind in _KINDS:
        vars(client).pop(kind, None)
    observed: Optional[Observed] = vars(client).pop("_observed", None)
    if observed is not None:
        observed.remove(client)


def _started(tracer: trace.Tracer, name: str, attributes: dict[str, Any], kind: SpanKind) -> Span:
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


class Current(trace.NonRecordingSpan):
    """The span of a body as the current one. A block may be left in another thread or task than it was entered in,
    which cannot take it off there: when it has ended, it stands for the span around it."""

    def __init__(self, span: Span, around: Span) -> None:
        super().__init__(span.get_span_context())
        self.span, self.around = span, around

    def get_span_context(self) -> trace.SpanContext:
        return self.span.get_span_context()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.span, name)


def _delegated(name: str) -> Any:
    return lambda self, *arguments, **keywords: getattr(self.span, name)(*arguments, **keywords)


for _name in "add_event end is_recording record_exception set_attribute set_attributes set_status update_name".split():
    setattr(Current, _name, _delegated(_name))


class Body:
    """A block's span, which is the current one in it. It belongs to the hold."""

    def __init__(self, tracer: trace.Tracer, attributes: dict[str, Any]) -> None:
        self.span = _started(tracer, "redlock.hold", attributes, SpanKind.INTERNAL)
        self._current = Current(self.span, trace.get_current_span())
        self._around = context.get_current()
        context.attach(trace.set_span_in_context(self._current))
        self._ended_ns: Optional[int] = None
        self._is_lost = False

    def leave(self, failure: Optional[BaseException]) -> None:
        """The body has ended; how the release goes can still be told."""
        self._ended_ns = time.time_ns()
        if trace.get_current_span() is self._current:
            context.attach(self._around)  # detach() complains in a copy of it, where a generator may be closed
        self._current.span = self._current.around
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


class Traced(HoldBase):
    """What the holds of instrumented clients have in common: all that does no I/O."""

    _tracer: trace.Tracer
    _shared: dict[str, str]
    _section: Optional[Body] = None

    def _attributes(self) -> dict[str, Any]:
        parts = self._resource if isinstance(self._resource, tuple) else (self._resource,)
        names = (one if isinstance(one, str) else one.decode("utf-8", "backslashreplace") for one in parts)
        return {"redlock.resource": ", ".join(names), **self._shared}

    def _ttl_ms(self, ttl: Optional[Seconds] = None) -> dict[str, int]:
        return {"redlock.ttl_ms": ttl_ms(ttl) or int(text(self._get_of, self._handle, b"ttl_ms"))}

    @contextmanager
    def _span(self, name: str, attributes: dict[str, Any]) -> Iterator[Span]:
        """Of one operation; what it raises is an error of the span."""
        span = _started(self._tracer, name, {**self._attributes(), **attributes}, SpanKind.CLIENT)
        try:
            with trace.use_span(span):
                yield span
        except RedlockError as failure:
            span.set_attribute("redlock.status", failure.status.name)
            if isinstance(failure, Lost):
                span.set_attribute("redlock.loss", failure.reason)
                if self._section is not None:
                    self._section.lose(failure)
            raise
        except Exception:
            raise
        except BaseException:  # the wait was cut off
            span.set_attribute("redlock.status", Status.CANCELLED.name)
            raise
        finally:
            _end(span)

    @contextmanager
    def _acquire_span(self, limit_ms: int) -> Iterator[Any]:
        """The operation tells its status."""
        wait_ms = int(text(self._get_of, self._handle, b"wait_ms")) if limit_ms == BY_OPTION else limit_ms
        waits = {"redlock.wait_ms": wait_ms} if wait_ms >= 0 else {}
        with self._span("redlock.acquire", {**self._ttl_ms(), **waits}) as span:

            def came_to(status: int) -> int:
                span.set_attribute("redlock.status", Status(status).name)
                span.set_attribute("redlock.attempts", self.attempts)
                if status == Status.OK and self.fence is not None:
                    span.set_attribute("redlock.fence", self.fence)
                if status not in (Status.OK, Status.BUSY):
                    span.set_status(StatusCode.ERROR, str(self._error(status)))
                return status

            yield came_to

    @contextmanager
    def _extend_span(self, ttl: Optional[Seconds] = None) -> Iterator[None]:
        with self._span("redlock.extend", self._ttl_ms(ttl)) as span:
            yield
            left_ms = int(self.remaining * 1000)
            span.set_attributes({"redlock.status": "OK", "redlock.remaining_ms": left_ms})

    @contextmanager
    def _release_span(self) -> Iterator[None]:
        if self._count > 1:  # it sends nothing
            yield
            return
        with self._span("redlock.release", {}) as span:
            yield
            span.set_attribute("redlock.status", "OK")

    def _enter_body(self) -> None:
        if self._section is None:
            attributes = {**self._attributes(), **self._ttl_ms()}
            if self.fence is not None:
                attributes["redlock.fence"] = self.fence
            self._section = Body(self._tracer, attributes)
            if self._section.span.is_recording():
                self._watch()
        super()._enter_body()

    @contextmanager
    def _leaving(self, failure: Optional[BaseException], count: int = 1) -> Iterator[None]:
        """Around the release at the end of a block."""
        section, is_last = self._section, max(self._count, count) <= 1
        if section is None or not is_last:
            yield
            return
        try:
            section.leave(failure)
            yield
        finally:
            self._unwatch()
            section.end()

    def _tell_if_lost(self) -> None:
        if self._section is not None and self.lost:
            self._section.lose(self._lost())
        super()._tell_if_lost()


def _within(span: Any, act: Any, is_async: bool) -> Any:
    """An act within a span, which may have to be told what it came to."""

    @functools.wraps(act)
    def blocking(*arguments: Any, **keywords: Any) -> Any:
        with span(*arguments, **keywords) as came_to:
            result = act(*arguments, **keywords)
            return result if came_to is None else came_to(result)

    @functools.wraps(act)
    async def awaited(*arguments: Any, **keywords: Any) -> Any:
        with span(*arguments, **keywords) as came_to:
            result = await act(*arguments, **keywords)
            return result if came_to is None else came_to(result)

    return awaited if is_async else blocking


def _of_acquire(lock: Any, hold: Any, limit_ms: int, *_: Any) -> Any:
    return hold._acquire_span(limit_ms)


def _traced(kind: Any, tracer: trace.Tracer, shared: dict[str, str]) -> Any:
    """A kind of locks, made of one that has no spans."""
    hold, is_async = kind._hold_type, issubclass(kind, aio.Lock)
    acts = {name: _within(span, getattr(hold, name), is_async) for name, span in _SPANS.items()}
    about = {"__module__": hold.__module__, "_tracer": tracer, "_shared": shared}
    made = type(hold.__name__, (Traced, hold), {**about, **acts})
    acquire = _within(_of_acquire, kind._acquire, is_async)
    about = {"__module__": kind.__module__, "_hold_type": made, "_acquire": acquire}
    return type(kind.__name__, (kind,), about)


_SPANS = {"extend": Traced._extend_span, "release": Traced._release_span, "_leave": Traced._leaving}
_KINDS = ("_lock_type", "_rlock_type", "_seat_type")

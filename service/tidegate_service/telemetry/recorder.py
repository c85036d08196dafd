"""Implements `core.telemetry.Telemetry`: metrics always, spans where a tracer is given."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tidegate_protocol.problems import Code
from tidegate_service.core.correlation import current
from tidegate_service.core.telemetry import Outcome, Phase
from tidegate_service.telemetry.metrics import Metrics

_W3C = TraceContextTextMapPropagator()


class Recorder:
    """One instance's notes. Without a tracer, a client's trace is only named, not continued."""

    def __init__(self, metrics: Metrics, *, tracer: trace.Tracer | None) -> None:
        self._metrics = metrics
        self._tracer = tracer

    @contextmanager
    def request(self, headers: Mapping[str, str]) -> Iterator[str | None]:
        clients = _W3C.extract(headers)
        if self._tracer is None:
            yield _trace_id(trace.get_current_span(clients))
            return
        with self._tracer.start_as_current_span(
            "request", context=clients, kind=trace.SpanKind.SERVER
        ) as span:
            yield _trace_id(span)

    def answered(self, *, method: str, route: str | None, status: int, seconds: float) -> None:
        self._metrics.answered(method=method, route=route, status=status, seconds=seconds)
        if self._tracer is None:
            return
        span = trace.get_current_span()
        if route is not None:
            span.update_name(f"{method} {route}")
            span.set_attribute("http.route", route)
        span.set_attribute("http.request.method", method)
        span.set_attribute("http.response.status_code", status)
        if status >= 500:
            span.set_status(trace.StatusCode.ERROR)
        ids = current()
        for name, value in ({} if ids is None else ids.fields()).items():
            if value is not None and name != "trace_id":
                span.set_attribute(f"tidegate.{name}", value)

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        started = time.perf_counter()
        try:
            if self._tracer is None:
                yield
            else:
                with self._tracer.start_as_current_span(f"commit.{phase}"):
                    yield
        finally:
            self._metrics.phase(phase, time.perf_counter() - started)

    def decided(self, outcome: Outcome, *, catalog_managed: bool, code: Code | None) -> None:
        self._metrics.decided(outcome, catalog_managed=catalog_managed, code=code)

    def foreign_commits(self, count: int) -> None:
        self._metrics.foreign_commits(count)

    def quarantined(self) -> None:
        self._metrics.quarantined()

    def published(self, count: int) -> None:
        self._metrics.published(count)


def _trace_id(span: trace.Span) -> str | None:
    context = span.get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else None

"""Implements `core.observe.telemetry.Telemetry`: metrics always, spans where a tracer is given."""

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tidegate_protocol.base.problems import Code
from tidegate_service.core.observe.correlation import current
from tidegate_service.core.observe.telemetry import Outcome, Phase, UpkeepKind, UpkeepOutcome
from tidegate_service.telemetry.metrics import Metrics

_W3C = TraceContextTextMapPropagator()
_NO_TRACE: AbstractContextManager[None] = nullcontext()


class Recorder:
    """One instance's notes. Without a tracer, a client's trace is only named, not continued."""

    def __init__(self, metrics: Metrics, *, tracer: trace.Tracer | None) -> None:
        self._metrics = metrics
        self._tracer = tracer

    def request(self, headers: Mapping[str, str]) -> AbstractContextManager[str | None]:
        if self._tracer is not None:
            return self._spanned(self._tracer, headers)
        if not headers:
            return _NO_TRACE
        return nullcontext(_trace_id(trace.get_current_span(_W3C.extract(headers))))

    @contextmanager
    def _spanned(self, tracer: trace.Tracer, headers: Mapping[str, str]) -> Iterator[str | None]:
        with tracer.start_as_current_span(
            "request", context=_W3C.extract(headers), kind=trace.SpanKind.SERVER
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

    def phase(self, phase: Phase) -> AbstractContextManager[None]:
        if self._tracer is None:
            return _Timed(self._metrics, phase)
        return self._traced(self._tracer, phase)

    @contextmanager
    def _traced(self, tracer: trace.Tracer, phase: Phase) -> Iterator[None]:
        with _Timed(self._metrics, phase), tracer.start_as_current_span(f"commit.{phase}"):
            yield

    def waited(self, seconds: float) -> None:
        self._metrics.phase(Phase.QUEUE, seconds)
        if self._tracer is not None:
            ended = time.time_ns()
            begun = ended - round(seconds * 1e9)
            self._tracer.start_span(f"commit.{Phase.QUEUE}", start_time=begun).end(ended)

    def decided(self, outcome: Outcome, *, catalog_managed: bool, code: Code | None) -> None:
        self._metrics.decided(outcome, catalog_managed=catalog_managed, code=code)

    def foreign_commits(self, count: int) -> None:
        self._metrics.foreign_commits(count)

    def quarantined(self) -> None:
        self._metrics.quarantined()

    def published(self, count: int) -> None:
        self._metrics.published(count)

    def kept_up(self, kind: UpkeepKind, outcome: UpkeepOutcome, *, seconds: float) -> None:
        self._metrics.kept_up(kind, outcome, seconds=seconds)

    def cleaned_up(self, files: int) -> None:
        self._metrics.cleaned_up(files)


class _Timed:
    """Notes how long a phase took. A class, since a generator costs five times as much."""

    __slots__ = ("_metrics", "_phase", "_started")

    def __init__(self, metrics: Metrics, phase: Phase) -> None:
        self._metrics = metrics
        self._phase = phase

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._metrics.phase(self._phase, time.perf_counter() - self._started)


def _trace_id(span: trace.Span) -> str | None:
    context = span.get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else None

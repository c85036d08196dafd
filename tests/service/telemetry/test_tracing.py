"""Spans: none unless wanted; then one a request and one a phase, within the client's trace."""

import gzip
import os
import threading
from collections.abc import Iterator
from contextvars import Context
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.builders.flights import TABLE, add, proposal, table_body
from tests.servers.server import StartService
from tests.service.process.cli.command_line import tidegate
from tidegate_service.core.observe.correlation import Correlation, enter
from tidegate_service.core.observe.telemetry import Phase
from tidegate_service.settings import InvalidSettings, load
from tidegate_service.telemetry.metrics import Metrics
from tidegate_service.telemetry.recorder import Recorder
from tidegate_service.telemetry.tracing import Tracing

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


class Collector:
    """An OTLP collector on loopback; `received` are the requests it was sent."""

    def __init__(self) -> None:
        self.received: Queue[ExportTraceServiceRequest] = Queue()
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                assert self.headers["Content-Type"] == "application/x-protobuf"
                received.put(ExportTraceServiceRequest.FromString(body))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    def spans(self) -> list[Span]:
        """Everything received by now."""
        requests = [self.received.get_nowait() for _ in range(self.received.qsize())]
        return [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, daemon=True)
    thread.start()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()
    thread.join()


def attributes(span: Span) -> dict[str, object]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes
    }


def test_a_commit_arrives_at_the_collector_as_one_trace(start_service: StartService, collector):
    service = start_service(otlp_endpoint=collector.url)
    with httpx.Client(base_url=f"{service.url}/api/v1") as client:
        assert client.post("/tables", json=table_body()).status_code == 201
        body = proposal(add(), transaction_id="t-1")
        sent = client.post(f"/tables/{TABLE}/commits", json=body, headers=TRACEPARENT)
        assert sent.status_code == 201
    # A service that ends sends what it still has.
    service.stop()
    service.join()

    ours = [span for span in collector.spans() if span.trace_id.hex() == TRACE]
    named = {span.name: span for span in ours}
    assert len(named) == len(ours)
    request = named.pop("POST /api/v1/tables/{table}/commits")
    assert request.parent_span_id.hex() == PARENT
    assert request.kind == Span.SPAN_KIND_SERVER
    assert attributes(request) == {
        "http.route": "/api/v1/tables/{table}/commits",
        "http.request.method": "POST",
        "http.response.status_code": 201,
        "tidegate.request_id": sent.headers["x-request-id"],
        "tidegate.transaction_id": "t-1",
        "tidegate.table": TABLE,
    }
    assert named.keys() == {f"commit.{phase}" for phase in Phase}
    total = named.pop("commit.total")
    assert total.parent_span_id == request.span_id
    for span in named.values():
        assert span.parent_span_id == total.span_id
        assert total.start_time_unix_nano <= span.start_time_unix_nano
        assert span.end_time_unix_nano <= total.end_time_unix_nano


def test_the_collector_learns_which_service_it_was(start_service, collector, monkeypatch):
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    service = start_service(otlp_endpoint=collector.url)
    assert httpx.get(f"{service.url}/healthz").status_code == 200
    service.stop()
    service.join()
    (resource,) = collector.received.get_nowait().resource_spans
    found = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert found["service.name"] == "tidegate"
    assert found["deployment.environment.name"] == "test"
    assert found["service.instance.id"]


@pytest.mark.parametrize(
    ("sampler", "is_traced"), [("traceidratio", False), ("parentbased_traceidratio", True)]
)
def test_whether_a_caller_has_a_say_in_it(monkeypatch, sampler, is_traced):
    """Of a request that says of itself that it is sampled, where none is."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.0")
    tracing = Tracing("http://127.0.0.1:9/v1/traces")
    recorder = Recorder(Metrics(), tracer=tracing.tracer)
    with recorder.request(TRACEPARENT) as trace_id:
        assert trace.get_current_span().is_recording() is is_traced
        # The log names the caller's trace all the same.
        assert trace_id == TRACE
    tracing.stop()


def test_a_collector_that_is_gone_holds_nothing_up(start_service: StartService):
    service = start_service(otlp_endpoint="http://127.0.0.1:9/v1/traces")
    with httpx.Client(base_url=f"{service.url}/api/v1") as client:
        assert client.post("/tables", json=table_body()).status_code == 201
    service.stop()
    service.join()


class TestRecorder:
    @pytest.fixture
    def exporter(self) -> InMemorySpanExporter:
        return InMemorySpanExporter()

    @pytest.fixture
    def recorder(self, exporter) -> Recorder:
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        return Recorder(Metrics(), tracer=provider.get_tracer("test"))

    def answered(self, recorder: Recorder, status: int, route: str | None = "/healthz") -> None:
        recorder.answered(method="GET", route=route, status=status, seconds=0.1)

    def test_without_a_clients_trace_a_new_one_begins(self, recorder, exporter):
        with recorder.request({}) as trace_id:
            self.answered(recorder, 200)
        (span,) = exporter.get_finished_spans()
        assert f"{span.context.trace_id:032x}" == trace_id
        assert span.parent is None
        assert span.kind is SpanKind.SERVER

    @pytest.mark.parametrize(
        ("status", "expected"), [(200, StatusCode.UNSET), (409, StatusCode.UNSET), (503, "error")]
    )
    def test_only_the_services_own_failures_are_errors(self, recorder, exporter, status, expected):
        with recorder.request({}):
            self.answered(recorder, status)
        (span,) = exporter.get_finished_spans()
        assert span.status.status_code is (StatusCode.ERROR if expected == "error" else expected)

    def test_a_request_that_no_route_took_keeps_its_path_to_itself(self, recorder, exporter):
        def within() -> None:
            enter(Correlation(id="r-1"))
            with recorder.request({}):
                self.answered(recorder, 404, route=None)

        Context().run(within)
        (span,) = exporter.get_finished_spans()
        assert span.name == "request"
        assert "http.route" not in span.attributes
        assert span.attributes["tidegate.request_id"] == "r-1"


class TestSetting:
    @pytest.mark.parametrize(
        ("variable", "value", "expected"),
        [
            ("TIDEGATE_OTLP_ENDPOINT", "http://c:4318/v1/traces", "http://c:4318/v1/traces"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/", "http://c:4318/v1/traces"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c/x", "https://c/x"),
        ],
    )
    def test_our_variable_and_the_standard_ones_set_it(
        self, monkeypatch, variable, value, expected
    ):
        monkeypatch.setenv(variable, value)
        assert load().otlp_endpoint == expected

    def test_ours_wins(self, monkeypatch):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318")
        assert load({"otlp_endpoint": "http://d/x"}).otlp_endpoint == "http://d/x"

    def test_by_default_nothing_is_traced(self):
        assert load().otlp_endpoint is None

    @pytest.mark.parametrize(
        "url", ["collector:4318", "grpc://c:4317", "http://", "http://ada:hunter2@c/v1/traces"]
    )
    def test_another_url_is_refused_without_repeating_it(self, url):
        with pytest.raises(InvalidSettings, match="--otlp-endpoint") as caught:
            load({"otlp_endpoint": url})
        assert "hunter2" not in str(caught.value)


def test_wanted_without_the_packages_the_start_ends_with_what_to_install(settings, tmp_path):
    """A process in which the SDK cannot be imported, as where the extra is not installed."""
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text("import sys\nsys.modules['opentelemetry.sdk.trace'] = None\n")
    assert settings.database_url is not None
    done = tidegate(
        "serve",
        PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
        TIDEGATE_PORT="0",
        TIDEGATE_OTLP_ENDPOINT="http://127.0.0.1:4318/v1/traces",
        TIDEGATE_DATABASE_URL=settings.database_url.get_secret_value(),
        TIDEGATE_DATA_DIR=str(tmp_path),
    )
    assert done.returncode == 1
    assert "install tidegate[otel]" in done.stderr
    assert "Traceback" not in done.stderr

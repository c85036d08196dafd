"""OpenTelemetry's SDK, where spans are wanted: exported as OTLP over HTTP, in the background.

Sampling, resource attributes, batch sizes and the exporter's headers are the standard `OTEL_*`
variables', which the SDK reads by itself.
"""

import asyncio
import threading
import uuid
from contextlib import AsyncExitStack
from importlib.metadata import version

from opentelemetry.trace import Tracer

__all__ = ["STOP_S", "Tracer", "Tracing", "TracingUnavailable", "tracer_to"]

STOP_S = 2.0
"""How long the last spans may take to be sent."""


class TracingUnavailable(Exception):
    """Spans are wanted and the packages are not there; the message says what to install."""


class Tracing:
    """Sends spans to `endpoint`, an OTLP collector's URL for traces. Raises
    `TracingUnavailable`."""

    def __init__(self, endpoint: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
                OTLPSpanExporter,
            )
            from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        except ImportError as error:
            raise TracingUnavailable(
                f"otlp_endpoint is set, and tracing needs what is not installed ({error.name}): "
                "install tidegate[otel], or leave the setting and OTEL_EXPORTER_OTLP_* unset"
            ) from error
        ours = Resource(
            {
                "service.name": "tidegate",
                "service.version": version("tidegate"),
                "service.instance.id": str(uuid.uuid4()),
            }
        )
        self._provider = TracerProvider(
            # What the environment says of the resource wins.
            resource=Resource.create().merge(ours).merge(OTELResourceDetector().detect()),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        self.tracer: Tracer = self._provider.get_tracer("tidegate", version("tidegate"))

    def stop(self) -> None:
        """Send what is left, for at most `STOP_S` seconds: a collector that is gone must not
        hold up the end."""
        sending = threading.Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        sending.start()
        sending.join(STOP_S)


def tracer_to(endpoint: str | None, stack: AsyncExitStack) -> Tracer | None:
    """Where spans go, if anywhere; the last ones are sent when all else of the stack has ended.
    Raises `TracingUnavailable`."""
    if endpoint is None:
        return None
    tracing = Tracing(endpoint)
    stack.push_async_callback(asyncio.to_thread, tracing.stop)
    return tracing.tracer

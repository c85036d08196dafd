"""The caller's trace, where its program traces with OpenTelemetry: passed on, never made.

The client needs no OpenTelemetry. A program that traces has loaded it; its current span then
becomes the parent of the service's, by the W3C header `traceparent`.
"""

import importlib
import sys


def trace_headers() -> dict[str, str]:
    """The headers of the current span's context; none outside a span, or without tracing."""
    headers: dict[str, str] = {}
    if "opentelemetry.trace" in sys.modules:
        importlib.import_module("opentelemetry.propagate").inject(headers)
    return headers

"""`/metrics`, for Prometheus."""

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from tidegate_service.api.describe import codes
from tidegate_service.api.describe import documents as doc
from tidegate_service.api.http.request.requests import exposition_of
from tidegate_service.api.routing.policies import Everywhere
from tidegate_service.api.routing.route import Route
from tidegate_service.core.access.roles import Role

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter(tags=["health"], route_class=Route)


@router.get(
    "/metrics",
    operation_id="metrics",
    dependencies=[Depends(Everywhere(Role.READER))],
    summary="Read this instance's metrics",
    response_class=doc.TextResponse,
    responses=doc.responses(
        (200, doc.METRICS_TEXT, "Prometheus's text format; docs/operations.md lists the metrics."),
        codes=codes.METRICS,
    ),
)
async def metrics(request: Request) -> Response:
    """Each instance has its own counters. Gauges over all tables are the same in each, and at
    most ten seconds old."""
    return Response(await exposition_of(request)(), media_type=TEXT_FORMAT)

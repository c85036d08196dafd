"""Is the process alive, and can it take a commit?"""

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from tidegate_service.api.answers.types import HealthAnswer, answer
from tidegate_service.api.describe import codes
from tidegate_service.api.describe import documents as doc
from tidegate_service.api.http.request.requests import gate_of, readiness_of
from tidegate_service.api.routing.policies import Public
from tidegate_service.api.routing.route import Route
from tidegate_service.core.errors import ShuttingDown

router = APIRouter(tags=["health"], route_class=Route)


@router.get(
    "/healthz",
    operation_id="healthz",
    dependencies=[Depends(Public())],
    summary="Is the process alive?",
    responses=doc.responses((200, HealthAnswer, "It is."), codes=codes.ALIVE),
)
async def healthz(request: Request) -> Response:
    """Asks nothing else: restart the process where this fails."""
    return answer(HealthAnswer(status="ok", version=request.app.version))


@router.get(
    "/readyz",
    operation_id="readyz",
    dependencies=[Depends(Public())],
    summary="Can this instance take a commit?",
    responses=doc.responses((200, HealthAnswer, "It can."), codes=codes.READY),
)
async def readyz(request: Request) -> Response:
    """Asks the index and writes to the store, once a second at most; what was found then is told to
    all who ask. 503 says what is missing; it recovers by itself."""
    if gate_of(request).closed:
        raise ShuttingDown("this instance is stopping")
    await readiness_of(request).ask()
    return answer(HealthAnswer(status="ready", version=request.app.version))

"""What is kept of forgotten tables: list it, delete it for good."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from tidegate_service.api.answers.types import ForgottenTableAnswer, ForgottenTablesAnswer, answer
from tidegate_service.api.describe import codes
from tidegate_service.api.describe import documents as doc
from tidegate_service.api.http.request.requests import context_of, state_of
from tidegate_service.api.routing.parameters import Page
from tidegate_service.api.routing.policies import Everywhere
from tidegate_service.api.routing.route import Route
from tidegate_service.core.access.roles import Role
from tidegate_service.core.tables import delete_forgotten as deleting

router = APIRouter(prefix="/forgotten-tables", tags=["maintenance"], route_class=Route)


@router.get(
    "",
    operation_id="list_forgotten_tables",
    dependencies=[Depends(Everywhere(Role.ADMIN))],
    summary="List forgotten tables",
    responses=doc.responses(
        (200, ForgottenTablesAnswer, "One page of them."), codes=codes.LIST_FORGOTTEN
    ),
)
async def list_forgotten_tables(
    request: Request,
    cursor: Annotated[
        str | None, Query(max_length=255, description="`next_cursor` of the page before.")
    ] = None,
    limit: Page = 100,
) -> Response:
    """Tables whose transaction ids are kept until they are registered at their place again."""
    page = await deleting.list_forgotten(context_of(request), cursor=cursor, limit=limit)
    tables = [
        ForgottenTableAnswer(
            id=table.id,
            name=table.name,
            location=table.location,
            catalog_managed=table.catalog_managed,
            latest_version=table.latest_version,
            forgotten_at=table.forgotten_ms,
        )
        for table in page.tables
    ]
    return answer(ForgottenTablesAnswer(tables=tables, next_cursor=page.next_cursor))


@router.delete(
    "/{table_id}",
    operation_id="delete_forgotten_table",
    dependencies=[Depends(Everywhere(Role.ADMIN))],
    summary="Delete for good what is kept of a forgotten table",
    status_code=204,
    response_class=Response,
    responses=doc.responses((204, None, "Nothing is kept any more."), codes=codes.DELETE_FORGOTTEN),
)
async def delete_forgotten_table(
    request: Request,
    table_id: Annotated[str, Path(description="The id that the table had.")],
) -> Response:
    """Its log and data files stay. Transaction ids that its log does not hold are unknown from then
    on: one that landed or was aborted may land. A catalog-managed table cannot be registered
    again. A table may be created at its place at once, and nobody looks out there for late writes
    of this one."""
    state_of(request).take_long()
    await deleting.delete_forgotten(context_of(request), table_id)
    return Response(status_code=204)

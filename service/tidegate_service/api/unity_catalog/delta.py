"""The part of Unity Catalog's API for Delta: tables are created, loaded and committed to."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from tidegate_service.api.http.request.requests import context_of, gate_of, state_of
from tidegate_service.api.routing.policies import OnBody, OnTable, Somewhere, authorize
from tidegate_service.api.routing.reads import context_of_read
from tidegate_service.api.routing.route import Route
from tidegate_service.api.unity_catalog.answers import (
    CONFIG,
    NO_CREDENTIALS,
    answer,
    answer_of,
    loaded_answer,
    staging_answer,
)
from tidegate_service.api.unity_catalog.bodies import read_create, read_staging, read_update
from tidegate_service.api.unity_catalog.describing import DELTA, body, responses
from tidegate_service.api.unity_catalog.parameters import CatalogPath, DeltaTable, SchemaPath
from tidegate_service.core.access.roles import Role
from tidegate_service.core.tables.lookup import find_head
from tidegate_service.core.unity_catalog import create, load, update

router = APIRouter(prefix="/delta/v1", tags=[DELTA], route_class=Route)

_ID = "128e724d-f3df-458b-9cc4-0ff25adbca1b"
_TABLES = "/catalogs/{catalog}/schemas/{schema}"
_COMMIT = {
    "version": 1,
    "timestamp": 1763700000000,
    "file-name": f"00000000000000000001.{_ID}.json",
    "file-size": 2068,
    "file-modification-timestamp": 1763700000000,
}
_PROTOCOL = {
    "min-reader-version": 3,
    "min-writer-version": 7,
    "reader-features": ["catalogManaged", "vacuumProtocolCheck"],
    "writer-features": ["catalogManaged", "vacuumProtocolCheck", "inCommitTimestamp"],
}
_COLUMN = {"name": "id", "type": "long", "nullable": True, "metadata": {}}


@router.get(
    "/config",
    operation_id="uc_delta_config",
    dependencies=[Depends(Somewhere(Role.READER))],
    summary="Ask what there is",
    responses=responses("The calls that are there."),
)
async def config(request: Request) -> Response:
    """The calls of this part of the API that the service answers."""
    return answer(CONFIG)


@router.post(
    f"{_TABLES}/staging-tables",
    operation_id="uc_stage_table",
    dependencies=[Depends(OnBody(Role.WRITER))],
    summary="Ask for a place for a new table",
    responses=responses("Where its version 0 is to be written.", also=(403, 409)),
    openapi_extra=body({"name": "flights"}),
)
async def stage_table(request: Request, catalog: CatalogPath, schema: SchemaPath) -> Response:
    """Nothing is kept of it: a place that is never used is an empty name."""
    name = f"{catalog}.{schema}.{await read_staging(request)}"
    authorize(request, Role.WRITER, name)
    return answer(staging_answer(await create.give_place(context_of(request), name)))


@router.post(
    f"{_TABLES}/tables",
    operation_id="uc_create_table",
    dependencies=[Depends(OnBody(Role.WRITER))],
    summary="Create a table whose version 0 is written",
    responses=responses("The table.", also=(403, 409)),
    openapi_extra=body(
        {
            "name": "flights",
            "location": f"s3://lake/main/air/flights-{_ID}",
            "table-type": "MANAGED",
            "columns": {"type": "struct", "fields": [_COLUMN]},
            "protocol": _PROTOCOL,
            "properties": {
                "delta.enableInCommitTimestamps": "true",
                "io.unitycatalog.tableId": _ID,
            },
        }
    ),
)
async def create_table(request: Request, catalog: CatalogPath, schema: SchemaPath) -> Response:
    """Reads the version 0 that lies at the place, checks it as any creation, and ratifies it."""
    wanted = await read_create(request, catalog=catalog, schema=schema)
    authorize(request, Role.WRITER, wanted.name)
    made = await create.create_stock_table(context_of(request), wanted)
    return await answer_of(partial(loaded_answer, made), made)


@router.get(
    f"{_TABLES}/tables/{{table}}",
    operation_id="uc_load_table",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="Load a table",
    responses=responses("The table. All that it says is in the log.", also=(404,)),
)
async def load_table(request: Request, table: DeltaTable) -> Response:
    """Before it is answered, every version up to the answered one is published. A catalog-managed
    table whose log does not say its id is given it by a commit first."""
    loaded = await load.load_table(await context_of_read(request, table), table)
    return await answer_of(partial(loaded_answer, loaded), loaded)


@router.post(
    f"{_TABLES}/tables/{{table}}",
    operation_id="uc_update_table",
    dependencies=[Depends(OnTable(Role.WRITER))],
    summary="Commit to a table",
    responses=responses("It has landed, now or before.", also=(404, 409)),
    openapi_extra=body(
        {
            "requirements": [{"type": "assert-table-uuid", "uuid": _ID}],
            "updates": [{"action": "add-commit", "commit": _COMMIT}],
        }
    ),
)
async def update_table(request: Request, table: DeltaTable) -> Response:
    """Makes a staged commit the next version, byte for byte, or answers 409 where another commit
    is. Every refusal for good is a 400. The same commit may be sent again, however long after."""
    context, state = context_of(request), state_of(request)
    wanted = await read_update(request)
    await gate_of(request).begin(state)
    state.may_land = True
    updated = await update.update_table(context, table, wanted)
    return await answer_of(partial(loaded_answer, updated), updated)


@router.post(
    f"{_TABLES}/tables/{{table}}/metrics",
    operation_id="uc_report_metrics",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="Report what a commit did",
    status_code=204,
    response_class=Response,
    responses=responses("It was taken note of.", status=204, also=(404,)),
)
async def report_metrics(request: Request, table: DeltaTable) -> Response:
    """Nothing is kept of the report: the service counts what a commit did by itself."""
    await find_head(context_of(request), table)
    return Response(status_code=204)


@router.get(
    f"{_TABLES}/tables/{{table}}/credentials",
    operation_id="uc_table_credentials",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="Ask for credentials of a table's place",
    responses=responses("None: clients use their own.", also=(404,)),
)
async def table_credentials(request: Request, table: DeltaTable) -> Response:
    """The service gives out no credentials."""
    await find_head(context_of(request), table)
    return answer(NO_CREDENTIALS)


@router.get(
    "/staging-tables/{table_id}/credentials",
    operation_id="uc_staging_credentials",
    dependencies=[Depends(Somewhere(Role.WRITER))],
    summary="Ask for credentials of a new table's place",
    responses=responses("None: clients use their own.", also=(403,)),
)
async def staging_credentials(
    request: Request, table_id: Annotated[str, Path(description="The id of the table to be.")]
) -> Response:
    """The service gives out no credentials."""
    return answer(NO_CREDENTIALS)

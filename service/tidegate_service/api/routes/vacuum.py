"""VACUUM: deleting data files that no version within the retention names, told while it is done."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from tidegate_service.api.answers.upkeep import VacuumHead, VacuumProgress
from tidegate_service.api.bodies.inventories import read_vacuum
from tidegate_service.api.bodies.streaming import Streamed, unhurried, while_connected
from tidegate_service.api.describe import codes
from tidegate_service.api.describe import documents as doc
from tidegate_service.api.http.request.requests import (
    NDJSON,
    RequestState,
    context_of,
    gate_of,
    state_of,
)
from tidegate_service.api.routing.parameters import TableRef
from tidegate_service.api.routing.policies import OnTable
from tidegate_service.api.routing.route import Route
from tidegate_service.core.access.roles import Role
from tidegate_service.core.vacuum.begin import begin_vacuum
from tidegate_service.core.vacuum.vacuum import Progress, Vacuum

router = APIRouter(prefix="/tables/{table}", tags=["maintenance"], route_class=Route)


@router.post(
    "/vacuum",
    operation_id="vacuum_table",
    dependencies=[Depends(OnTable(Role.ADMIN))],
    response_class=doc.NdjsonResponse,
    summary="Delete data files that nobody needs",
    responses=doc.responses((200, doc.VACUUM_STREAM, "How far it is."), codes=codes.VACUUM),
    openapi_extra=doc.vacuum_body(),
)
async def vacuum_table(request: Request, table: TableRef) -> Response:
    """Deletes the files in the table's folder that neither the latest version nor one within the
    retention names, and that are older than the retention and the longest request. The logs of all
    other plain tables are read first: others may have made any of them a shallow clone of this one.

    With `Content-Type: application/x-ndjson` the store is not listed: behind the first line, which
    is the body, a line for each file names what there is.

    The answer is NDJSON: a `VacuumHead`, then a `VacuumProgress` every second. The last line is at
    `ended` or `failed`; an answer without either has broken off, and so has the vacuum: it is
    safe to ask again."""
    state, context = state_of(request), context_of(request)
    gate_of(request).enter_scan(state)
    principal = context.caller.principal.name
    # Before the body, since an inventory takes room on the disk.
    state.take_long()
    await context.vacuuming.take(principal)
    state.at_end.append(lambda: context.vacuuming.end(principal))
    state.begin_anew()
    wanted = await read_vacuum(request)
    state.take_long()
    vacuum = await while_connected(request.receive, begin_vacuum(context, table, wanted))
    return Streamed(_lines(vacuum, state), media_type=NDJSON)


async def _lines(vacuum: Vacuum, state: RequestState) -> AsyncGenerator[bytes]:
    head = VacuumHead(
        table=vacuum.table.name,
        table_id=vacuum.table.id,
        location=vacuum.table.location,
        version=vacuum.table.latest_version,
        dry_run=vacuum.request.dry_run,
        retain_ms=vacuum.horizon.retain_ms,
        modified_before=vacuum.horizon.modified_ms,
    )
    yield msgspec.json.encode(head) + b"\n"
    async with aclosing(unhurried(vacuum.progress(), vacuum.context, state)) as progress:
        async for now in progress:
            yield msgspec.json.encode(_line(now)) + b"\n"


def _line(now: Progress) -> VacuumProgress:
    return VacuumProgress(
        stage=now.stage,
        logs=now.logs,
        listed=now.listed,
        found=now.found,
        found_bytes=now.found_bytes,
        deleted=now.deleted,
        folders=now.folders,
        version=now.version,
        paths=list(now.paths),
        warnings=list(now.warnings),
        code=None if now.error is None else now.error.code.value,
        detail=None if now.error is None else now.error.detail,
    )

"""Scans: which files a reader of a version needs."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from tidegate_service.api.answers import arrow
from tidegate_service.api.answers.rendering import action_body
from tidegate_service.api.answers.types import ScanAnswer, ScanHead
from tidegate_service.api.bodies.resources import read_scan
from tidegate_service.api.bodies.streaming import Streamed, begun, while_connected
from tidegate_service.api.describe import codes, examples
from tidegate_service.api.describe import documents as doc
from tidegate_service.api.http.request.requests import (
    JSON,
    NDJSON,
    RequestState,
    gate_of,
    state_of,
)
from tidegate_service.api.routing.parameters import TableRef
from tidegate_service.api.routing.policies import OnTable
from tidegate_service.api.routing.reads import context_of_read
from tidegate_service.api.routing.route import Route
from tidegate_service.core.access.roles import Role
from tidegate_service.core.tables import scan

Files = AsyncGenerator[Sequence[bytes], None]
Answer = Callable[[Files], AsyncGenerator[bytes, None]]

_TIMES_IN_MEMORY = 3
"""So often is a table's metadata in memory until its scan was read: as it is sent, as it waits in
the connection, and in an Arrow stream's schema."""

router = APIRouter(prefix="/tables/{table}", tags=["scan"], route_class=Route)


@router.post(
    "/scan",
    operation_id="scan",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="List the files of a version",
    responses=doc.responses(
        (200, ScanAnswer, "The version's files."), codes=codes.SCAN, also=doc.SCAN_STREAMS
    ),
    openapi_extra=doc.body("ScanBody", examples.SCANS),
)
async def scan_files(request: Request, table: TableRef) -> Response:
    """Every file that may hold a row of what is asked for, as the `add` actions of the log.

    With `Accept: application/x-ndjson` the first line is everything but the files, and a file
    a line follows; with `application/vnd.apache.arrow.stream` the answer is an Arrow IPC stream;
    with any other Accept it is one JSON object. An answer that breaks off (its chunked encoding
    is not ended) is not complete.
    """
    state = state_of(request)
    gate_of(request).enter_scan(state)
    wanted = await read_scan(request)
    kind = _kind(request)
    finding = _found(request, table, wanted, state, kind)
    answer, files = await while_connected(request.receive, finding)
    return Streamed(answer(files), media_type=kind)


def _kind(request: Request) -> str:
    """The first stream among the kinds that the Accept header names first, else JSON."""
    for accepted in request.headers.get("accept", "").split(",", ACCEPTED)[:ACCEPTED]:
        kind = accepted.partition(";")[0].strip().lower()
        if kind in _STREAMS:
            return kind
    return JSON


async def _found(
    request: Request,
    table: str,
    wanted: scan.ScanRequest,
    state: RequestState,
    kind: str,
) -> tuple[Answer, Files]:
    context = await context_of_read(request, table, through=wanted.version)
    principal = context.caller.principal.name
    await context.scans.take(principal)
    # What it has read is there until all of it was sent.
    state.at_end.append(context.scans.end)
    async with context.scans_begun.turn(principal):
        found = await scan.scan(context, table, wanted)
        head = ScanHead(
            table=found.table.name,
            table_id=found.table.id,
            location=found.table.location,
            version=found.version,
            timestamp=found.timestamp,
            protocol=action_body(found.protocol),
            metadata=action_body(found.metadata),
        )
        # Metadata may be of megabytes: from here on there is only what is sent of it.
        held = _TIMES_IN_MEMORY * len(found.metadata.raw)
        context.scanned_metadata.take(context.who, held)
        state.at_end.append(partial(context.scanned_metadata.give_back, context.who, held))
        if kind == arrow.MEDIA_TYPE:
            threads = context.scan_threads.of(principal)
            answer: Answer = partial(arrow.as_arrow, head, threads=threads)
        else:
            answer = partial(_WRITERS[kind], msgspec.json.encode(head))
    return answer, await begun(found.files)


async def _as_ndjson(head: bytes, files: Files) -> AsyncGenerator[bytes, None]:
    yield head + b"\n"
    del head
    async with aclosing(files):
        async for lines in files:
            yield b"\n".join(lines) + b"\n"


async def _as_json(head: bytes, files: Files) -> AsyncGenerator[bytes, None]:
    yield head[:-1] + b',"files":['
    del head
    separator = b""
    async with aclosing(files):
        async for lines in files:
            yield separator + b",".join(lines)
            separator = b","
    yield b"]}"


_WRITERS = {JSON: _as_json, NDJSON: _as_ndjson}
_STREAMS = (NDJSON, arrow.MEDIA_TYPE)
ACCEPTED = 32
"""Kinds of an Accept header that are looked at."""

"""Scans: which files a reader of a version needs."""

from collections.abc import AsyncIterator, Sequence

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response, StreamingResponse

from tidegate_service.api import arrow, codes, examples
from tidegate_service.api import documents as doc
from tidegate_service.api.answers import ScanAnswer, ScanHead
from tidegate_service.api.bodies import read_scan
from tidegate_service.api.parameters import TableRef
from tidegate_service.api.policies import OnTable
from tidegate_service.api.problems import AnswerBrokenOff
from tidegate_service.api.rendering import action_body
from tidegate_service.api.requests import JSON, NDJSON, context_of
from tidegate_service.core import scan
from tidegate_service.core.access import Role
from tidegate_service.core.errors import ServiceError

Lines = Sequence[bytes]

router = APIRouter(prefix="/tables/{table}", tags=["scan"])


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
    found = await scan.scan(context_of(request), table, await read_scan(request))
    files = await _begun(found.files)
    head = ScanHead(
        table=found.table.name,
        table_id=found.table.id,
        location=found.table.location,
        version=found.version,
        timestamp=found.timestamp,
        protocol=action_body(found.protocol),
        metadata=action_body(found.metadata),
    )
    kind = _kind(request)
    return StreamingResponse(_WRITERS[kind](head, files), media_type=kind)


def _kind(request: Request) -> str:
    """The first stream that the Accept header names, else JSON."""
    for accepted in request.headers.get("accept", "").split(","):
        kind = accepted.partition(";")[0].strip().lower()
        if kind in _WRITERS and kind != JSON:
            return kind
    return JSON


async def _begun(files: AsyncIterator[Lines]) -> AsyncIterator[Lines]:
    """The same batches, the first one fetched: what fails before it can still be a problem."""
    first = await anext(files, None)

    async def rest() -> AsyncIterator[Lines]:
        if first is not None:
            yield first
        try:
            async for batch in files:
                yield batch
        except ServiceError as error:
            raise AnswerBrokenOff(error) from error

    return rest()


async def _as_ndjson(head: ScanHead, files: AsyncIterator[Lines]) -> AsyncIterator[bytes]:
    yield msgspec.json.encode(head) + b"\n"
    async for lines in files:
        yield b"\n".join(lines) + b"\n"


async def _as_json(head: ScanHead, files: AsyncIterator[Lines]) -> AsyncIterator[bytes]:
    yield msgspec.json.encode(head)[:-1] + b',"files":['
    separator = b""
    async for lines in files:
        yield separator + b",".join(lines)
        separator = b","
    yield b"]}"


_WRITERS = {JSON: _as_json, NDJSON: _as_ndjson, arrow.MEDIA_TYPE: arrow.as_arrow}

"""Scans: which files a reader of a version needs."""

from collections.abc import AsyncIterator, Sequence

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response, StreamingResponse

from tidegate_protocol.actions import Add
from tidegate_protocol.codec import encode
from tidegate_service.api import codes, examples
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

Batch = Sequence[Add]

router = APIRouter(prefix="/tables/{table}", tags=["scan"])


@router.post(
    "/scan",
    operation_id="scan",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="List the files of a version",
    responses=doc.responses(
        (200, ScanAnswer, "The version's files."), codes=codes.SCAN, also=doc.SCAN_NDJSON
    ),
    openapi_extra=doc.body("ScanBody", examples.SCANS),
)
async def scan_files(request: Request, table: TableRef) -> Response:
    """Every file that may hold a row of what is asked for, as the `add` actions of the log.

    With `Accept: application/x-ndjson` the first line is everything but the files, and a file
    a line follows; with any other Accept the answer is one JSON object. An answer that breaks
    off (its chunked encoding is not ended) is not complete.
    """
    found = await scan.scan(context_of(request), table, await read_scan(request))
    files = await _begun(found.files)
    head = msgspec.json.encode(
        ScanHead(
            table=found.table.name,
            table_id=found.table.id,
            location=found.table.location,
            version=found.version,
            timestamp=found.timestamp,
            protocol=action_body(found.protocol),
            metadata=action_body(found.metadata),
        )
    )
    write, kind = (_as_ndjson, NDJSON) if _wants_ndjson(request) else (_as_json, JSON)
    return StreamingResponse(write(head, files), media_type=kind)


def _wants_ndjson(request: Request) -> bool:
    accepted = request.headers.get("accept", "").split(",")
    return any(kind.partition(";")[0].strip().lower() == NDJSON for kind in accepted)


async def _begun(files: AsyncIterator[Batch]) -> AsyncIterator[Batch]:
    """The same batches, the first one fetched: what fails before it can still be a problem."""
    first = await anext(files, None)

    async def rest() -> AsyncIterator[Batch]:
        if first is not None:
            yield first
        try:
            async for batch in files:
                yield batch
        except ServiceError as error:
            raise AnswerBrokenOff(error) from error

    return rest()


async def _as_ndjson(head: bytes, files: AsyncIterator[Batch]) -> AsyncIterator[bytes]:
    yield head + b"\n"
    async for batch in files:
        yield b"".join(encode(add) + b"\n" for add in batch)


async def _as_json(head: bytes, files: AsyncIterator[Batch]) -> AsyncIterator[bytes]:
    yield head[:-1] + b',"files":['
    separator = b""
    async for batch in files:
        yield separator + b",".join(encode(add) for add in batch)
        separator = b","
    yield b"]}"

"""A table's index against its log and its data files: verify, rebuild, release."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from tidegate_service.api.answers.rendering import rebuilt_answer, table_answer
from tidegate_service.api.answers.types import (
    RebuiltAnswer,
    TableAnswer,
    answer,
)
from tidegate_service.api.answers.verification import (
    BadFileAnswer,
    DifferenceAnswer,
    FilesSeenAnswer,
    VerificationAnswer,
)
from tidegate_service.api.bodies.proposals import MAX_VERSION
from tidegate_service.api.bodies.streaming import Streamed, unhurried
from tidegate_service.api.describe import codes
from tidegate_service.api.describe import documents as doc
from tidegate_service.api.http.request.requests import (
    NDJSON,
    RequestState,
    context_of,
    gate_of,
    state_of,
)
from tidegate_service.api.routing.parameters import Page, TableRef
from tidegate_service.api.routing.policies import OnTable
from tidegate_service.api.routing.reads import context_of_read
from tidegate_service.api.routing.route import Route
from tidegate_service.core.access.roles import Role
from tidegate_service.core.context import Context
from tidegate_service.core.maintenance import end_quarantine, rebuild, verify
from tidegate_service.core.maintenance.verify_files import FilesSeen, verify_files
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.tables.lookup import get_head

router = APIRouter(prefix="/tables/{table}", tags=["maintenance"], route_class=Route)


@router.get(
    "/verify",
    operation_id="verify_table",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="Compare index, content and storage",
    responses=doc.responses(
        (200, VerificationAnswer, "What differs, if anything."), codes=codes.VERIFY
    ),
)
async def verify_table(
    request: Request,
    table: TableRef,
    from_version: Annotated[
        int | None,
        Query(
            ge=0,
            le=MAX_VERSION,
            description="Where to begin; the index's first version by default.",
        ),
    ] = None,
    limit: Page = 1000,
) -> Response:
    """Version by version: the file in the log, the bytes that the index keeps, the digest of
    both, and the index's rows against the actions. Nothing is locked or written."""
    # It takes its time, and waits for the store.
    gate_of(request).end_read(state_of(request))
    found = await verify.verify_table(
        context_of(request), table, from_version=from_version, limit=limit
    )
    return answer(
        VerificationAnswer(
            table=found.table.name,
            consistent=not found.differences,
            from_version=found.from_version,
            through_version=found.through_version,
            next_version=found.next_version,
            cleaned_up=found.cleaned_up,
            not_ingested=found.not_ingested,
            differences=[
                DifferenceAnswer(version=one.version, kind=one.kind, detail=one.detail)
                for one in found.differences
            ],
        )
    )


@router.get(
    "/verify/files",
    operation_id="verify_files",
    dependencies=[Depends(OnTable(Role.READER))],
    response_class=doc.NdjsonResponse,
    summary="Look for the data files",
    responses=doc.responses((200, doc.FILES_STREAM, "How far it is."), codes=codes.VERIFY),
)
async def verify_data_files(request: Request, table: TableRef) -> Response:
    """Whether each file that is live in the latest version is in storage, with the size that the
    log says, and the files of deletion vectors, too. Nothing is opened: the bytes of a file are not
    looked at.

    The answer is NDJSON, a `FilesSeenAnswer` for each 256 files. The last line is at `ended` or
    `failed`; an answer without either has broken off."""
    state, context = state_of(request), context_of(request)
    gate_of(request).enter_scan(state)
    # It has turns of its own.
    gate_of(request).end_read(state)
    principal = context.caller.principal.name
    await context.file_looks.take(principal)
    state.at_end.append(lambda: context.file_looks.end(principal))
    context = await context_of_read(request, table)
    head = await get_head(context, table)
    return Streamed(_lines(context, head, state), media_type=NDJSON)


async def _lines(context: Context, head: TableHead, state: RequestState) -> AsyncGenerator[bytes]:
    async with aclosing(unhurried(verify_files(context, head), context, state)) as seen:
        async for now in seen:
            yield msgspec.json.encode(_line(now)) + b"\n"


def _line(now: FilesSeen) -> FilesSeenAnswer:
    return FilesSeenAnswer(
        stage=now.stage,
        version=now.version,
        files=now.files,
        deletion_vectors=now.vectors,
        skipped=now.skipped,
        bad=[BadFileAnswer(path=each.path, detail=each.detail) for each in now.bad],
        code=None if now.error is None else now.error.code.value,
        detail=None if now.error is None else now.error.detail,
    )


@router.post(
    "/rebuild",
    operation_id="rebuild_table",
    dependencies=[Depends(OnTable(Role.ADMIN))],
    summary="Make the index anew from the log",
    responses=doc.responses(
        (200, RebuiltAnswer, "The table's head, what is lost, and what is unknown."),
        codes=codes.REBUILD,
    ),
)
async def rebuild_table(request: Request, table: TableRef) -> Response:
    """Reads the log again, from its oldest version that can be read, and puts that in the place
    of what the index held; versions of a catalog-managed table that only the index holds stay, but
    where others of the same numbers are published. Either all of it happens or nothing. A
    quarantined table is released by it.

    Commits to the table wait meanwhile, or get a 503. It goes on where the caller leaves."""
    state_of(request).take_long()
    return answer(rebuilt_answer(await rebuild.rebuild(context_of(request), table)))


@router.post(
    "/release",
    operation_id="release_table",
    dependencies=[Depends(OnTable(Role.ADMIN))],
    summary="End a table's quarantine",
    responses=doc.responses((200, TableAnswer, "The table's head."), codes=codes.RELEASE),
)
async def release_table(request: Request, table: TableRef) -> Response:
    """Commits are taken again, once what the quarantine was for is gone: a plain table's next
    version is readable or absent, a catalog-managed table's log holds nothing that the index
    does not. The same for a table that is not quarantined, which it leaves as it is."""
    return answer(table_answer(await end_quarantine.release_table(context_of(request), table)))

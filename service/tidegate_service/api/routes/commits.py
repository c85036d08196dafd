"""Commits: propose, check for conflicts, history, a version's bytes."""

from dataclasses import replace
from typing import Annotated, assert_never

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_service.api.answers.rendering import (
    check_answer,
    committed_answer,
    history_entry,
    skipped_answer,
)
from tidegate_service.api.answers.types import (
    CommitAnswer,
    ConflictCheckAnswer,
    HistoryAnswer,
    answer,
)
from tidegate_service.api.bodies.proposals import MAX_VERSION, read_proposal
from tidegate_service.api.bodies.streaming import Streamed, begun, while_connected
from tidegate_service.api.describe import codes
from tidegate_service.api.describe import documents as doc
from tidegate_service.api.http.problems.problems import of_conflict, of_invalid
from tidegate_service.api.http.request.requests import (
    NDJSON,
    RequestState,
    context_of,
    gate_of,
    state_of,
)
from tidegate_service.api.routing.parameters import Page, TableRef, Version
from tidegate_service.api.routing.policies import OnTable
from tidegate_service.api.routing.reads import context_of_read
from tidegate_service.api.routing.route import Route
from tidegate_service.core.access.roles import Role
from tidegate_service.core.commit import propose
from tidegate_service.core.ports import outcomes
from tidegate_service.core.tables import history
from tidegate_service.core.tables.history import LargeContent

router = APIRouter(prefix="/tables/{table}", tags=["commits"], route_class=Route)


@router.post(
    "/commits",
    operation_id="propose",
    dependencies=[Depends(OnTable(Role.WRITER))],
    summary="Propose a transaction",
    status_code=201,
    responses=doc.responses(
        (201, CommitAnswer, "The transaction landed as this version.", doc.LOCATION),
        (200, CommitAnswer, "It had landed before; or, with `skip_if_empty`, nothing to do."),
        codes=codes.PROPOSE,
    ),
    openapi_extra=doc.proposal_body(),
)
async def propose_commit(request: Request, table: TableRef) -> Response:
    """Checks the transaction against every commit since its read version and, if it wins, lands
    it as the table's next version.

    A 2xx means landed. A 409, 410 or 422 means that this id and body will never land. Any other
    4xx means that this copy was not executed, and says nothing of one that was sent before.
    Anything else says nothing: send the same id and body again.
    """
    context, state = context_of(request), state_of(request)
    proposal = await read_proposal(request, context.new_id)
    state.transaction_id = proposal.transaction_id
    state.may_land = True
    outcome = await propose.propose(context, table, proposal)
    match outcome:
        case outcomes.Committed():
            return committed_answer(outcome)
        case outcomes.NothingToCommit():
            return skipped_answer(outcome)
        case Conflict():
            return of_conflict(state, outcome)
        case Invalid():
            return of_invalid(state, outcome)
        case _:
            assert_never(outcome)


@router.post(
    "/conflict-check",
    operation_id="check_conflicts",
    dependencies=[Depends(OnTable(Role.WRITER))],
    summary="Ask what proposing would do",
    responses=doc.responses(
        (200, ConflictCheckAnswer, "It would land, or has."), codes=codes.CONFLICT_CHECK
    ),
    openapi_extra=doc.proposal_body(),
)
async def check_conflicts(request: Request, table: TableRef) -> Response:
    """Takes the body of a proposal and answers with the problem that proposing it now would
    meet. Nothing of it is written, and the id stays free."""
    context, state = context_of(request), state_of(request)
    proposal = await read_proposal(request, context.new_id)
    state.transaction_id = proposal.transaction_id
    outcome = await propose.conflict_check(context, table, proposal)
    match outcome:
        case outcomes.Committed() | outcomes.WouldCommit() | outcomes.NothingToCommit():
            return check_answer(outcome)
        case Conflict():
            return of_conflict(state, outcome)
        case Invalid():
            return of_invalid(state, outcome)
        case _:
            assert_never(outcome)


@router.get(
    "/commits",
    operation_id="list_commits",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="List a table's versions",
    responses=doc.responses(
        (200, HistoryAnswer, "One page, newest first."), codes=codes.READ_LATEST
    ),
)
async def list_commits(
    request: Request,
    table: TableRef,
    from_version: Annotated[
        int | None, Query(ge=0, le=MAX_VERSION, description="The oldest version wanted.")
    ] = None,
    to_version: Annotated[
        int | None, Query(ge=0, le=MAX_VERSION, description="The newest version wanted.")
    ] = None,
    limit: Page = 100,
) -> Response:
    """Who wrote which version, when, over what. Both ends are included."""
    context = await context_of_read(request, table, through=to_version)
    record, commits = await history.history(
        context, table, from_version=from_version, to_version=to_version, limit=limit
    )
    # A page is short where its commits are large.
    oldest = max(from_version or 0, record.first_version)
    more = bool(commits) and commits[-1].version > oldest
    return answer(
        HistoryAnswer(
            table=record.name,
            commits=[history_entry(commit) for commit in commits],
            next_to_version=commits[-1].version - 1 if more else None,
        )
    )


@router.get(
    "/commits/{version}",
    operation_id="get_commit",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="Get a version's bytes",
    response_class=doc.NdjsonResponse,
    responses=doc.responses(
        (200, doc.LOG_FILE, "The content of `<version>.json`."), codes=codes.READ_VERSION
    ),
)
async def get_commit(request: Request, table: TableRef, version: Version) -> Response:
    """The commit exactly as it is, or will be, in the log: one action a line."""
    state, gate = state_of(request), gate_of(request)
    # It may wait for the store, and has turns of its own.
    gate.end_read(state)
    gate.enter_scan(state)
    # It is read, or held, until it was sent, as what a scan has read is.
    content = await while_connected(request.receive, _content(request, state, table, version))
    if isinstance(content, bytes):
        return Response(content, media_type=NDJSON)
    return Streamed(content.pieces, media_type=NDJSON, length=content.size)


async def _content(
    request: Request, state: RequestState, table: str, version: int
) -> bytes | LargeContent:
    """The bytes, or the first of them, read in a turn, and what is held of them until the request
    ends in another."""
    context = await context_of_read(request, table, through=version)
    principal = context.caller.principal.name
    await context.scans.take(principal)
    state.at_end.append(context.scans.end)
    async with context.scans_begun.turn(principal):
        content = await history.content(context, table, version)
        if isinstance(content, bytes):
            return content
        return replace(content, pieces=await begun(content.pieces))

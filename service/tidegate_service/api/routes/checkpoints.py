"""Checkpoints, and manifests for other readers, that are asked for."""

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from tidegate_service.api.answers.types import answer
from tidegate_service.api.answers.upkeep import CheckpointAnswer, ManifestsAnswer
from tidegate_service.api.bodies.resources import read_checkpoint
from tidegate_service.api.describe import codes
from tidegate_service.api.describe import documents as doc
from tidegate_service.api.describe.examples import CHECKPOINT
from tidegate_service.api.http.request.requests import state_of
from tidegate_service.api.routing.parameters import TableRef
from tidegate_service.api.routing.policies import OnTable
from tidegate_service.api.routing.reads import context_of_read
from tidegate_service.api.routing.route import Route
from tidegate_service.core.access.roles import Role
from tidegate_service.core.checkpoints import on_demand
from tidegate_service.core.manifests.generate import generate_manifests

router = APIRouter(prefix="/tables/{table}", tags=["maintenance"], route_class=Route)


@router.post(
    "/checkpoint",
    operation_id="checkpoint_table",
    dependencies=[Depends(OnTable(Role.WRITER))],
    summary="Write a checkpoint",
    responses=doc.responses((200, CheckpointAnswer, "What was written."), codes=codes.CHECKPOINT),
    openapi_extra=doc.body("CheckpointBody", CHECKPOINT),
)
async def checkpoint_table(request: Request, table: TableRef) -> Response:
    """Writes the checkpoint of the latest version, or of another one that is published, as the
    table's properties ask for it, and points `_last_checkpoint` to it. Commits go on meanwhile.

    Of a version that is not the latest one, nothing may have been set since that the index keeps
    the newest of alone: application transactions and domains. A large one takes its time, and goes
    on where the caller leaves. One checkpoint of a table is written at a time. A request waits
    up to 30 seconds for another writer, then gets a 429."""
    version = await read_checkpoint(request)
    state_of(request).take_long()
    context = await context_of_read(request, table, through=version)
    found, written = await on_demand.checkpoint_table(context, table, version)
    return answer(
        CheckpointAnswer(
            table=found.name,
            version=written.version,
            kind=written.kind,
            files=written.files,
            bytes=written.bytes,
            files_written=written.files_written,
            bytes_written=written.bytes_written,
            num_actions=written.num_actions,
            seconds=round(written.took, 3),
        )
    )


@router.post(
    "/manifest",
    operation_id="generate_manifest",
    dependencies=[Depends(OnTable(Role.WRITER))],
    summary="Write symlink manifests",
    responses=doc.responses((200, ManifestsAnswer, "What was written."), codes=codes.MANIFESTS),
)
async def generate_manifest(request: Request, table: TableRef) -> Response:
    """Writes `_symlink_format_manifest/<partition>/manifest` for each partition that has files in
    the latest version, the URL of a file a line, and removes those of the others. Readers that know
    nothing of Delta read the table by them.

    The version is published first. A table with mapped columns or deletion vectors has none. It
    goes on where the caller leaves, and where the table's manifests are also written after commits,
    those of a newer version come back."""
    state_of(request).take_long()
    found, written = await generate_manifests(await context_of_read(request, table), table)
    return answer(
        ManifestsAnswer(
            table=found.name,
            version=written.version,
            manifests=written.manifests,
            files=written.files,
            removed=written.removed,
        )
    )

"""Transaction ids and application transactions."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import Response

from tidegate_protocol.base.problems import Code
from tidegate_service.api.answers.rendering import transaction_answer
from tidegate_service.api.answers.types import AppTransactionAnswer, TransactionAnswer, answer
from tidegate_service.api.describe import codes
from tidegate_service.api.describe import documents as doc
from tidegate_service.api.http.request.requests import context_of, state_of
from tidegate_service.api.routing.parameters import (
    MAX_APP_ID_LENGTH,
    PRINTABLE,
    TableRef,
    TransactionIdPath,
    printable,
)
from tidegate_service.api.routing.policies import OnTable
from tidegate_service.api.routing.reads import context_of_read
from tidegate_service.api.routing.route import Route
from tidegate_service.core.access.roles import Role
from tidegate_service.core.commit import transaction_ids
from tidegate_service.core.commit.transaction_ids import TransactionState, TransactionStatus
from tidegate_service.core.errors import NotFound

router = APIRouter(prefix="/tables/{table}", tags=["transactions"], route_class=Route)


@router.get(
    "/transactions/{transaction_id}",
    operation_id="get_transaction",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="Ask what became of a transaction",
    responses=doc.responses(
        (200, TransactionAnswer, "What is known of the id."), codes=codes.READ_TRANSACTION
    ),
)
async def get_transaction(
    request: Request, table: TableRef, transaction_id: TransactionIdPath
) -> Response:
    """404 for an id that the index does not know: nobody has proposed it, or its proposal was
    refused, or is on its way, or its commit lies in the log of a quarantined table. So 404 never
    says that it did not land. Proposing it again tells, and `abort` ends the doubt.
    `commit` is the receipt of what landed, for whoever is to do the same work again.
    """
    state_of(request).transaction_id = transaction_id
    try:
        found = await transaction_ids.status(context_of(request), table, transaction_id)
    except NotFound as error:
        if error.code is not Code.TRANSACTION_NOT_FOUND:
            raise
        # Its commit may lie in the log of a plain table, unread.
        context = await context_of_read(request, table, at_any_age=False)
        found = await transaction_ids.status(context, table, transaction_id)
    return transaction_answer(found)


@router.post(
    "/transactions/{transaction_id}/abort",
    operation_id="abort_transaction",
    dependencies=[Depends(OnTable(Role.WRITER))],
    summary="Close a transaction id for good",
    responses=doc.responses((200, TransactionAnswer, "The id will never land."), codes=codes.ABORT),
)
async def abort_transaction(
    request: Request, table: TableRef, transaction_id: TransactionIdPath
) -> Response:
    """No proposal under this id lands after this answer. Aborting twice is the same as once;
    409 with the version where it has landed."""
    state_of(request).transaction_id = transaction_id
    await transaction_ids.abort(context_of(request), table, transaction_id)
    return transaction_answer(
        TransactionStatus(transaction_id=transaction_id, state=TransactionState.ABORTED)
    )


@router.get(
    "/app-transactions/{app_id:path}",
    operation_id="get_app_transaction",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="Get an application's latest transaction version",
    responses=doc.responses(
        (200, AppTransactionAnswer, "Version -1 where there is none."), codes=codes.READ_LATEST
    ),
)
async def get_app_transaction(
    request: Request,
    table: TableRef,
    app_id: Annotated[
        str,
        Path(
            min_length=1,
            max_length=MAX_APP_ID_LENGTH,
            description="The `appId` of `txn` actions; it may contain slashes.",
            json_schema_extra=PRINTABLE,
        ),
    ],
) -> Response:
    """What the application's last `txn` action says, for writers that must not write twice."""
    printable("path/app_id", app_id)
    context = await context_of_read(request, table)
    found = await transaction_ids.app_transaction(context, table, app_id)
    return answer(
        AppTransactionAnswer(
            app_id=app_id,
            version=-1 if found is None else found.version,
            last_updated=None if found is None else found.last_updated,
        )
    )

"""Tables: create, register, list, get, how they are kept up, forget."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from tidegate_service.api.answers.rendering import (
    created_answer,
    table_answer,
    table_url,
    upkeep_answer,
)
from tidegate_service.api.answers.types import (
    CreatedAnswer,
    DefaultLocationAnswer,
    DomainAnswer,
    TableAnswer,
    TablesAnswer,
    answer,
)
from tidegate_service.api.answers.upkeep import UpkeepAnswer
from tidegate_service.api.bodies.resources import read_create, read_register
from tidegate_service.api.describe import codes, examples
from tidegate_service.api.describe import documents as doc
from tidegate_service.api.http.request.requests import context_of, gate_of, state_of
from tidegate_service.api.routing.parameters import (
    MAX_DOMAIN_LENGTH,
    PRINTABLE,
    Page,
    TableRef,
    printable,
)
from tidegate_service.api.routing.policies import OnBody, OnTable, Somewhere, authorize
from tidegate_service.api.routing.reads import context_of_read
from tidegate_service.api.routing.route import Route
from tidegate_service.core.access.names import FULL_NAME, MAX_NAME_LENGTH
from tidegate_service.core.access.roles import Role
from tidegate_service.core.maintenance import forget
from tidegate_service.core.tables import create, lookup, register
from tidegate_service.core.upkeep.opening import opening_of

router = APIRouter(prefix="/tables", tags=["tables"], route_class=Route)


@router.post(
    "",
    operation_id="create_table",
    dependencies=[Depends(OnBody(Role.WRITER))],
    summary="Create a table",
    status_code=201,
    responses=doc.responses(
        (201, CreatedAnswer, "The table, at version 0.", doc.LOCATION), codes=codes.CREATE
    ),
    openapi_extra=doc.body("CreateTableBody", examples.CREATE_TABLE),
)
async def create_table(request: Request) -> Response:
    """Writes version 0 of a new table's log and puts the table into the index, or does neither.

    The table's protocol is the least that its schema and properties need. Sent again after an
    unknown outcome, the same body either finds the table (409 `table-exists`) or creates it.
    """
    wanted = await read_create(request)
    # Where the warehouse puts it, nobody else has anything; any other place is an admin's to say,
    # and the use case asks whose folder that is in.
    authorize(request, Role.WRITER if wanted.location is None else Role.ADMIN, wanted.name)
    table = await create.create_table(context_of(request), wanted)
    return answer(created_answer(table), 201, location=table_url(table))


@router.post(
    "/register",
    operation_id="register_table",
    dependencies=[Depends(OnBody(Role.ADMIN))],
    summary="Register an existing table",
    status_code=201,
    responses=doc.responses(
        (201, TableAnswer, "The table, at the head of its log.", doc.LOCATION),
        (200, TableAnswer, "The table, which was registered before.", doc.LOCATION),
        codes=codes.REGISTER,
    ),
    openapi_extra=doc.body("RegisterTableBody", examples.REGISTER_TABLE),
)
async def register_table(request: Request) -> Response:
    """Reads the whole log of a Delta table that exists into the index; writes nothing to it.

    Of a table that was forgotten at this place, the transaction ids come back that its log does not
    hold any more. A catalog-managed one is taken up by `catalog_managed`, and only here.

    A log that cannot be read to its head is refused, and nothing is kept of it. Reading a large
    one may outlast the request: it goes on, and the same body sent again finds the table.
    """
    wanted = await read_register(request)
    authorize(request, Role.ADMIN, wanted.name)
    state_of(request).take_long()
    table, created = await register.register_table(context_of(request), wanted)
    return answer(table_answer(table), 201 if created else 200, location=table_url(table))


@router.get(
    "",
    operation_id="list_tables",
    dependencies=[Depends(Somewhere(Role.READER))],
    summary="List tables",
    responses=doc.responses((200, TablesAnswer, "One page of tables."), codes=codes.READ),
)
async def list_tables(
    request: Request,
    prefix: Annotated[
        str,
        Query(
            max_length=255,
            description="Only tables whose full name starts with this.",
            json_schema_extra=PRINTABLE,
        ),
    ] = "",
    cursor: Annotated[
        str | None,
        Query(
            max_length=255,
            description="`next_cursor` of the page before.",
            json_schema_extra=PRINTABLE,
        ),
    ] = None,
    limit: Page = 100,
) -> Response:
    """In name order. A table that is created meanwhile is on its page if that is still to come.
    Plain tables are as the index has them: the head of one looks in its log, a list does not."""
    printable("query/prefix", prefix)
    printable("query/cursor", cursor or "")
    page = await lookup.list_tables(context_of(request), prefix=prefix, cursor=cursor, limit=limit)
    return answer(
        TablesAnswer(
            tables=[table_answer(table) for table in page.tables], next_cursor=page.next_cursor
        )
    )


@router.get(
    "/default-location",
    operation_id="get_default_location",
    dependencies=[Depends(OnBody(Role.WRITER))],
    summary="Get where a table to be is put",
    responses=doc.responses(
        (200, DefaultLocationAnswer, "The place of a table of this name."),
        codes=codes.DEFAULT_LOCATION,
    ),
)
async def get_default_location(
    request: Request,
    name: Annotated[
        str,
        Query(
            pattern=FULL_NAME,
            max_length=MAX_NAME_LENGTH,
            description="The table's full name, `catalog.schema.table`.",
            examples=["main.air.flights"],
        ),
    ],
) -> Response:
    """For who writes a table's first files before the table is there, as CREATE TABLE AS SELECT
    does. A creation that says no `location` puts the table there. Nothing is reserved."""
    state_of(request).table = name
    authorize(request, Role.WRITER, name)
    location = await lookup.default_location(context_of(request), name)
    return answer(DefaultLocationAnswer(location=location))


@router.get(
    "/{table}",
    operation_id="get_table",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="Get a table's head",
    responses=doc.responses((200, TableAnswer, "The table's head."), codes=codes.READ_LATEST),
)
async def get_table(request: Request, table: TableRef) -> Response:
    """Name, location, versions, protocol and metadata at the latest version."""
    context = await context_of_read(request, table)
    return answer(table_answer(await lookup.get_table(context, table)))


@router.get(
    "/{table}/upkeep",
    operation_id="get_upkeep",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="Get how a table's log is kept up",
    responses=doc.responses((200, UpkeepAnswer, "How it stands."), codes=codes.READ_TABLE),
)
async def get_upkeep(request: Request, table: TableRef) -> Response:
    """Checkpoints, version checksums and clean-up, which the service does by itself; the last
    vacuum; and what a reader has to read."""
    context = context_of(request)
    found = await lookup.get_head(context, table)
    standing = await context.upkeep.standing(found.id)
    # It waits for the store from here on.
    gate_of(request).end_read(state_of(request))
    return answer(upkeep_answer(found, standing, await opening_of(context, found)))


@router.get(
    "/{table}/domains/{domain:path}",
    operation_id="get_domain",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="Get a metadata domain",
    responses=doc.responses(
        (200, DomainAnswer, "Its configuration, None where there is none."), codes=codes.READ_LATEST
    ),
)
async def get_domain(
    request: Request,
    table: TableRef,
    domain: Annotated[
        str,
        Path(
            min_length=1,
            max_length=MAX_DOMAIN_LENGTH,
            description="The `domain` of `domainMetadata` actions; it may contain slashes.",
            json_schema_extra=PRINTABLE,
        ),
    ],
) -> Response:
    """What the domain's last `domainMetadata` action says, such as `delta.clustering`'s of the
    columns that the table is clustered by."""
    printable("path/domain", domain)
    context = await context_of_read(request, table)
    found = await lookup.domain(context, table, domain)
    return answer(
        DomainAnswer(domain=domain, configuration=None if found is None else found.configuration)
    )


@router.delete(
    "/{table}",
    operation_id="forget_table",
    dependencies=[Depends(OnTable(Role.ADMIN))],
    summary="Forget a table",
    status_code=204,
    response_class=Response,
    responses=doc.responses((204, None, "The table is forgotten."), codes=codes.FORGET),
)
async def forget_table(request: Request, table: TableRef) -> Response:
    """Deletes everything the index knows of the table. Its log and data files stay; what its
    transaction ids came to is kept for when it is registered at its place again.

    Versions that are ratified but not published yet are published first. A large table takes its
    time, and it goes on where the caller leaves: whoever asks again meets its end, or a 404.
    """
    state_of(request).take_long()
    await forget.forget_table(context_of(request), table)
    return Response(status_code=204)

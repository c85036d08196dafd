"""The classic part of Unity Catalog's API: schemas and tables, as far as stock engines ask."""

from functools import partial

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from tidegate_protocol.base.problems import Code
from tidegate_service.api.http.request.requests import context_of, state_of
from tidegate_service.api.routing.parameters import printable
from tidegate_service.api.routing.policies import OnBody, OnTable, Somewhere, authorize
from tidegate_service.api.routing.reads import context_of_read
from tidegate_service.api.routing.route import Route
from tidegate_service.api.unity_catalog.answers import (
    answer,
    answer_of,
    classic_schema,
    classic_table,
    classic_tables,
)
from tidegate_service.api.unity_catalog.bodies import read_schema
from tidegate_service.api.unity_catalog.describing import CLASSIC, body, responses
from tidegate_service.api.unity_catalog.parameters import (
    CatalogQuery,
    ClassicTable,
    FullSchemaPath,
    MostResults,
    PageToken,
    SchemaQuery,
    schema_name,
)
from tidegate_service.core.access.roles import Role
from tidegate_service.core.errors import Refused
from tidegate_service.core.maintenance import forget
from tidegate_service.core.tables import lookup
from tidegate_service.core.unity_catalog.load import load_table
from tidegate_service.core.unity_catalog.pages import page_of
from tidegate_service.core.unity_catalog.schemas import schemas_of

router = APIRouter(tags=[CLASSIC], route_class=Route)

PAGE = 100
_MOST = 1000


@router.get(
    "/schemas",
    operation_id="uc_list_schemas",
    dependencies=[Depends(Somewhere(Role.READER))],
    summary="List schemas",
    responses=responses("The schemas of a catalog that have tables which the caller may read."),
)
async def list_schemas(
    request: Request,
    catalog_name: CatalogQuery,
    max_results: MostResults = 0,
    page_token: PageToken = None,
) -> Response:
    """In name order. A schema without tables is not listed, and can be used all the same."""
    printable("query/catalog_name", catalog_name)
    printable("query/page_token", page_token or "")
    limit = min(max_results or PAGE, PAGE)
    found, token = await schemas_of(
        context_of(request), catalog_name, after=page_token, limit=limit
    )
    schemas = [classic_schema(catalog, schema) for catalog, schema in found]
    return answer({"schemas": schemas, "next_page_token": token})


@router.post(
    "/schemas",
    operation_id="uc_create_schema",
    dependencies=[Depends(OnBody(Role.WRITER))],
    summary="Create a schema",
    responses=responses("The schema.", also=(403,)),
    openapi_extra=body({"name": "air", "catalog_name": "main"}),
)
async def create_schema(request: Request) -> Response:
    """A schema is a part of its tables' names: nothing is made, and nothing is kept of a comment or
    of properties."""
    catalog, schema = schema_name(".".join(await read_schema(request)))
    authorize(request, Role.WRITER, f"{catalog}.{schema}")
    return answer(classic_schema(catalog, schema))


@router.get(
    "/schemas/{full_name}",
    operation_id="uc_get_schema",
    dependencies=[Depends(Somewhere(Role.READER))],
    summary="Get a schema",
    responses=responses("The schema."),
)
async def get_schema(request: Request, full_name: FullSchemaPath) -> Response:
    """Every name of two parts is a schema's, whether it has tables or not."""
    return answer(classic_schema(*schema_name(full_name)))


@router.delete(
    "/schemas/{full_name}",
    operation_id="uc_delete_schema",
    dependencies=[Depends(OnBody(Role.ADMIN))],
    summary="Delete a schema",
    responses=responses("It has no tables.", also=(403,)),
)
async def delete_schema(request: Request, full_name: FullSchemaPath) -> Response:
    """Refused for a schema with tables, which are deleted one by one."""
    catalog, schema = schema_name(full_name)
    authorize(request, Role.ADMIN, f"{catalog}.{schema}")
    page = await lookup.list_tables(
        context_of(request), prefix=f"{catalog}.{schema}.", cursor=None, limit=1
    )
    if page.tables:
        raise Refused(
            f"the schema {catalog}.{schema} has tables, such as {page.tables[0].name}",
            code=Code.INVALID_REQUEST,
        )
    return answer({})


@router.get(
    "/tables",
    operation_id="uc_list_tables",
    dependencies=[Depends(Somewhere(Role.READER))],
    summary="List tables",
    responses=responses("One page of the schema's tables, with their columns."),
)
async def list_tables(
    request: Request,
    catalog_name: CatalogQuery,
    schema_name: SchemaQuery,
    max_results: MostResults = 0,
    page_token: PageToken = None,
) -> Response:
    """In name order: those that the caller may read. A page has fewer where their columns are
    many. Plain tables are as the index has them: the page of one looks in its log, a list does
    not."""
    for name, value in (("catalog_name", catalog_name), ("schema_name", schema_name)):
        printable(f"query/{name}", value)
    printable("query/page_token", page_token or "")
    page = await page_of(
        context_of(request),
        f"{catalog_name}.{schema_name}.",
        cursor=page_token,
        limit=min(max_results or PAGE, _MOST),
    )
    return await answer_of(partial(classic_tables, page), *page.tables)


@router.get(
    "/tables/{table}",
    operation_id="uc_get_table",
    dependencies=[Depends(OnTable(Role.READER))],
    summary="Get a table",
    responses=responses("The table.", also=(404,)),
)
async def get_table(request: Request, table: ClassicTable) -> Response:
    """A table that is not catalog-managed is an external one."""
    loaded = await load_table(await context_of_read(request, table), table)
    return await answer_of(partial(classic_table, loaded), loaded)


@router.delete(
    "/tables/{table}",
    operation_id="uc_delete_table",
    dependencies=[Depends(OnTable(Role.ADMIN))],
    summary="Drop a table",
    responses=responses("The table is forgotten.", also=(403, 404)),
)
async def delete_table(request: Request, table: ClassicTable) -> Response:
    """As the service's own API forgets a table: its log and data files stay."""
    state_of(request).take_long()
    await forget.forget_table(context_of(request), table)
    return answer({})

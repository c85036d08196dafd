"""How paths of Unity Catalog's API name tables and schemas."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Path, Query, Request

from tidegate_service.api.http.problems.problems import BadRequest, BodyError
from tidegate_service.api.routing.parameters import PRINTABLE, TableReference, checked
from tidegate_service.core.access.names import MAX_NAME_LENGTH, is_part
from tidegate_service.core.tables.lookup import no_such_table

_PARTS = 3

CatalogPath = Annotated[str, Path(description="The catalog: a name's first part.")]
SchemaPath = Annotated[str, Path(description="The schema: a name's second part.")]
TablePath = Annotated[str, Path(description="The table: a name's third part.")]
FullTablePath = Annotated[
    str, Path(description="`catalog.schema.table`", examples=["main.air.flights"])
]
_PART = "[A-Za-z0-9_][A-Za-z0-9_-]{0,127}"
FullSchemaPath = Annotated[
    str,
    Path(description="`catalog.schema`", examples=["main.air"], pattern=rf"^{_PART}\.{_PART}$"),
]
CatalogQuery = Annotated[
    str, Query(max_length=255, description="The catalog.", json_schema_extra=PRINTABLE)
]
SchemaQuery = Annotated[
    str, Query(max_length=255, description="The schema.", json_schema_extra=PRINTABLE)
]
MostResults = Annotated[
    int, Query(ge=0, le=2**31 - 1, description="Most entries of a page; 0 leaves it open.")
]
PageToken = Annotated[
    str | None,
    Query(
        max_length=255,
        description="`next_page_token` of the page before.",
        json_schema_extra=PRINTABLE,
    ),
]


def full_name(*parts: str) -> str:
    """`catalog.schema.table` of its parts. Raises `NotFound` for what names no table."""
    name = ".".join(parts)
    if len(name) > MAX_NAME_LENGTH:
        raise no_such_table(name)
    split = name.split(".")
    if len(parts) != len(split) and len(parts) != 1:
        raise no_such_table(name)
    if len(split) != _PARTS or not all(map(is_part, split)):
        raise no_such_table(name)
    return name


def schema_name(name: str) -> tuple[str, str]:
    """Catalog and schema of a schema's full name. Raises `BadRequest` for what can be none."""
    parts = name.split(".") if len(name) <= MAX_NAME_LENGTH else []
    if len(parts) != _PARTS - 1 or not all(map(is_part, parts)):
        why = (
            "expected catalog.schema, each of ASCII letters, digits, '_' and '-', at most "
            f"{MAX_NAME_LENGTH} characters in all"
        )
        raise BadRequest([BodyError(where="path/full_name", why=why)])
    return parts[0], parts[1]


class _ByParts(TableReference):
    async def __call__(
        self, request: Request, catalog: CatalogPath, schema: SchemaPath, table: TablePath
    ) -> str:
        return self.of(request, {"catalog": catalog, "schema": schema, "table": table})

    def of(self, request: Request, path: Mapping[str, str]) -> str:
        return checked(request, full_name(path["catalog"], path["schema"], path["table"]))


class _ByFullName(TableReference):
    async def __call__(self, request: Request, table: FullTablePath) -> str:
        return self.of(request, {"table": table})

    def of(self, request: Request, path: Mapping[str, str]) -> str:
        return checked(request, full_name(path["table"]))


DeltaTable = Annotated[str, Depends(_ByParts())]
ClassicTable = Annotated[str, Depends(_ByFullName())]

"""Path and query parameters that several routes share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Path, Query, Request

from tidegate_protocol.base.text import excerpt
from tidegate_service.api.bodies.proposals import MAX_VERSION, TRANSACTION_ID
from tidegate_service.api.http.problems.problems import BadRequest, BodyError
from tidegate_service.api.http.request.requests import state_of
from tidegate_service.core.tables.lookup import no_such_table

Version = Annotated[int, Path(ge=0, le=MAX_VERSION, description="A version of the table.")]

TransactionIdPath = Annotated[
    str, Path(pattern=TRANSACTION_ID, description="The transaction id of a proposal.")
]

Page = Annotated[int, Query(ge=1, le=1000, description="Most entries of a page.")]

MAX_APP_ID_LENGTH = 1024
MAX_DOMAIN_LENGTH = 1024
MAX_LOGGED_LENGTH = 255
"""Longer than any name; what is longer names no table."""


PRINTABLE = {"pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"}
"""What `printable` lets through, for the document."""


def printable(where: str, text: str) -> None:
    """Raise `BadRequest` for control characters, which Postgres or a log would trip over."""
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in text):
        raise BadRequest(
            [BodyError(where=where, why=f"{excerpt(text)} contains a control character")]
        )


class TableReference(ABC):
    """Base of the dependencies that give a table's reference: a full name, or an id."""

    @abstractmethod
    def of(self, request: Request, path: Mapping[str, str]) -> str:
        """By the parameters of the path. Raises `NotFound` for what can be none."""


def checked(request: Request, table: str) -> str:
    """The reference, noted for the request's log line. Raises `NotFound` for what can be none."""
    # Names and ids are ASCII; what is not names no table, and NUL must not reach Postgres.
    if not (table.isascii() and table.isprintable()):
        raise no_such_table(table)
    state_of(request).table = table[:MAX_LOGGED_LENGTH]
    return table


class _ByOnePart(TableReference):
    async def __call__(
        self,
        request: Request,
        table: Annotated[
            str,
            Path(
                description="The table's full name, `catalog.schema.table` in any case, or its id.",
                examples=["main.air.flights"],
            ),
        ],
    ) -> str:
        return checked(request, table)

    def of(self, request: Request, path: Mapping[str, str]) -> str:
        return checked(request, path["table"])


TableRef = Annotated[str, Depends(_ByOnePart())]

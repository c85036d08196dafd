"""Pages of rows that are bounded by what they hold, too, and not by their number alone.

What writers said may be megabytes a row, and a page has up to a thousand of them.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    Text,
    case,
    cast,
    func,
    select,
)
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from tidegate_service.core.ports.records import PAGE_BYTES

_EXPANDED_BYTES = 8 * 1024
_TIMES = 90
"""What Postgres compresses becomes at most so many times as long."""

Columns = ReadOnlyColumnCollection[str, Any]


def bounded(
    query: Select[Any],
    *,
    size: ColumnElement[int],
    order: Callable[[Columns], ColumnElement[Any]],
    most: int = PAGE_BYTES,
) -> Select[Any]:
    """The rows of a limited query, in this order, until they hold `most` bytes: the first one in
    any case, and the one that is too many."""
    page = query.add_columns(size.label("row_bytes")).subquery()
    so_far = func.sum(page.c.row_bytes).over(order_by=order(page.c)).label("so_far")
    sized = select(page, so_far).subquery()
    wanted = [column for column in sized.c if column.name not in ("row_bytes", "so_far")]
    return select(*wanted).where(sized.c.so_far - sized.c.row_bytes < most).order_by(order(sized.c))


def bytes_of(column: ColumnElement[Any]) -> ColumnElement[int]:
    """How long a value of bytes is, which Postgres knows without reading it; 0 for none."""
    return func.coalesce(func.octet_length(column), 0)


def text_bytes_of(column: ColumnElement[Any]) -> ColumnElement[int]:
    """How long a value of JSON is, at most. One that is long although it is compressed is not
    expanded to be told."""
    stored = func.pg_column_size(column, type_=Integer)
    return case(
        (func.pg_column_compression(column).is_(None), stored),
        (stored < _EXPANDED_BYTES, func.octet_length(cast(column, Text))),
        else_=stored * _TIMES,
    )

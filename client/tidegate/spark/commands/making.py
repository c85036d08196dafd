"""When a table is made, and what is wrong where it is not."""

from enum import Enum

from tidegate.handle import TableHandle
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.storage.locations import place_url

_NAME_PARTS = 3


class Making(Enum):
    """When a table is made, by Delta's names of the operations."""

    CREATE = "CREATE TABLE"
    CREATE_IF_NOT_EXISTS = "CREATE TABLE IF NOT EXISTS"
    REPLACE = "REPLACE TABLE"
    CREATE_OR_REPLACE = "CREATE OR REPLACE TABLE"


def check_name(name: str, *, of: str, error_class: str) -> None:
    """Raise `InvalidCommand` for a path, and what else is no full name, in the place of a table's
    name."""
    if len(name.split(".")) != _NAME_PARTS or "/" in name:
        raise InvalidCommand(
            error_class,
            f"expected {of} as catalog.schema.table, found {name}",
            hint="a table of the service has a name; where its folder is, is said beside it",
        )


def check_place(found: TableHandle, location: str | None) -> None:
    """Raise `InvalidCommand` for a table that would have to move: what replaces it is in its
    place."""
    if location is not None and place_url(found.location) != location:
        raise InvalidCommand(
            "DELTA_TABLE_LOCATION_MISMATCH",
            f"Table {found.name} is at {found.location}; expected this location, found {location}",
        )


def exists(called: str | None, found: TableHandle | None) -> InvalidCommand:
    """The error for a name that a table has."""
    is_empty = found is None or not found.head().num_files
    return InvalidCommand(
        "DELTA_TABLE_ALREADY_EXISTS",
        f"Table {called} already exists" + ("" if is_empty else ", and is not empty"),
    )


def missing(called: str | None) -> InvalidCommand:
    """The error for a table to replace that is not there."""
    return InvalidCommand(
        "DELTA_CANNOT_REPLACE_MISSING_TABLE",
        f"Table {called} cannot be replaced as it does not exist. Use CREATE OR REPLACE TABLE "
        "to create the table",
    )

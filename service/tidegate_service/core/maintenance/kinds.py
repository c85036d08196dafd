"""The two kinds of table, each with what maintenance does to it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tidegate_service.core.context import Context
from tidegate_service.core.maintenance.rebuilding import (
    Rebuilt,
    rebuild_catalog_managed,
    rebuild_plain,
)
from tidegate_service.core.maintenance.release_checks import (
    Check,
    catalog_managed_check,
    plain_check,
)
from tidegate_service.core.maintenance.restored_log import check_bytes, restore_log
from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.records import Glance, TableHead


async def _nothing(context: Context, table: TableHead) -> None:
    """A plain table is what its log is: nothing of it can be restored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """`rebuild` makes the index anew. `release_check` gives the check that a quarantine ends with.
    `check_bytes` and `restore_log` are called before the table is forgotten."""

    rebuild: Callable[[Context, Glance], Awaitable[Rebuilt]]
    release_check: Callable[[Context, TableHead], Awaitable[Check]]
    check_bytes: Callable[[Context, TableHead], Awaitable[None]] = _nothing
    restore_log: Callable[[Context, TableHead], Awaitable[None]] = _nothing


_PLAIN = Maintenance(rebuild=rebuild_plain, release_check=plain_check)
_CATALOG_MANAGED = Maintenance(
    rebuild=rebuild_catalog_managed,
    release_check=catalog_managed_check,
    check_bytes=check_bytes,
    restore_log=restore_log,
)


def maintenance_of(table: TableIdentity) -> Maintenance:
    return _CATALOG_MANAGED if table.catalog_managed else _PLAIN

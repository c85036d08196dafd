"""What is asked of VACUUM, and whether it may be done at all."""

from dataclasses import dataclass

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.table_features import check_supported
from tidegate_protocol.features.upkeep import (
    DEFAULT_DELETED_FILE_RETENTION_MS,
    DELETED_FILE_RETENTION,
    interval_ms,
)
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import check_open, no_such_table
from tidegate_service.core.vacuum.inventory import Inventory


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumRequest:
    """`retain_ms` is how long removed files are kept, None for as long as the table says; shorter
    than that only with `allow_shorter`. A dry run deletes nothing and names every file. With an
    `inventory`, that is the listing."""

    retain_ms: int | None = None
    allow_shorter: bool = False
    dry_run: bool = False
    inventory: Inventory | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """What a vacuum keeps: files that a version from `since` on names, or that were removed at
    `removed_ms` or later as their removes say, and all that were modified at `modified_ms` or
    later, by the store's clock. The index was in `database` then."""

    database: str
    retain_ms: int
    since: int
    removed_ms: int
    modified_ms: int


def own_retention_ms(table: TableRecord) -> int:
    """How long the table keeps what was removed; a week where it does not say, or says it in a way
    that is not understood."""
    said = interval_ms(_retention_text(table))
    return DEFAULT_DELETED_FILE_RETENTION_MS if said is None else said


def _retention_text(table: TableRecord) -> str | None:
    configuration = {} if table.metadata is None else table.metadata.configuration
    return configuration.get(DELETED_FILE_RETENTION)


def retention_ms(table: TableRecord, request: VacuumRequest) -> int:
    """Raises `Refused` for a shorter one than the table's that nobody has said to be meant, and
    where neither the request nor the table says one that is understood."""
    own, text = own_retention_ms(table), _retention_text(table)
    if request.retain_ms is None:
        if text is not None and interval_ms(text) is None:
            raise Refused(
                f"table {table.name} says that it keeps removed files for {excerpt(text)} "
                f"({DELETED_FILE_RETENTION}), which is not understood",
                code=Code.INVALID_REQUEST,
                hint="say it by retain_ms (--retain), or set the property, as `interval 7 days`",
            )
        return own
    if request.retain_ms < own and not request.allow_shorter:
        raise Refused(
            f"a retention of {request.retain_ms} ms is shorter than the {own} ms of the table "
            f"({DELETED_FILE_RETENTION}): a writer that takes longer, and a reader of an older "
            "version, would lose files",
            code=Code.INVALID_REQUEST,
            hint="set allow_shorter (--allow-shorter) if no writer and no reader takes so long",
        )
    return request.retain_ms


def check_table(table: TableRecord) -> None:
    """Raise `TableQuarantined`, or `Refused` where the protocol asks for a feature that is not
    known here: it may keep files that no action names (Delta: `vacuumProtocolCheck`)."""
    check_open(table)
    unknown = None if table.protocol is None else check_supported(table.protocol)
    if unknown is not None:
        raise Refused(f"table {table.name} cannot be vacuumed: {unknown.detail}", code=unknown.code)


async def horizon(context: Context, table: TableRecord, retain_ms: int) -> Horizon:
    """By the database's clock, as versions are dated. Raises `Refused` where the index begins
    within the retention: what was removed before its first version is not known then."""
    glance = await context.index.glance(table.id)
    if glance is None:
        raise no_such_table(table.id)
    removed_ms = glance.now_ms - retain_ms
    before = await context.index.version_at(table.id, removed_ms - 1) if removed_ms > 0 else None
    if before is None and table.first_version > 0:
        raise Refused(
            f"the index of table {table.name} begins at version {table.first_version}, within the "
            f"retention of {retain_ms} ms, and does not know which files were removed before it",
            code=Code.VERSION_NOT_FOUND,
            hint="vacuum once the version that the index begins at is older than the retention",
        )
    since = table.first_version if before is None else before + 1
    # A writer that takes as long as the retention may yet send its proposal, and wait for it.
    in_flight_ms = round(1000 * max(context.commit_deadline_s, context.long_deadline_s))
    return Horizon(
        database=glance.database,
        retain_ms=retain_ms,
        since=since,
        removed_ms=removed_ms,
        modified_ms=removed_ms - in_flight_ms,
    )

"""What other tables name of a table's files, as shallow clones do: it stays, whichever of their
versions names it."""

import logging
from collections.abc import Sequence

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.paths import identity
from tidegate_service.core.access.roles import Role
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.files.named_files import NamedFilesIndex, NamingTable
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.vacuum.logs import named
from tidegate_service.core.vacuum.orphans import OtherNames
from tidegate_service.core.vacuum.spelled import DIGEST, spelled

logger = logging.getLogger("tidegate.service")


async def clones_of(context: Context, table: TableRecord) -> Sequence[NamingTable]:
    """Other tables that name files of the table. Raises `Refused` for more than the limits allow,
    but for an admin of everything."""
    clones = await context.index.tables_naming(f"{identity(table.location)}/", but=table.id)
    may_pass = context.caller.principal.may_everywhere(Role.ADMIN)
    if len(clones) > context.limits.clones and not may_pass:
        raise Refused(
            f"table {table.name} cannot be vacuumed: {len(clones)} other tables name files of it, "
            f"and those of at most {context.limits.clones} are looked through; forget clones that "
            "are not needed any more, or have an admin of everything ('*') vacuum it",
            code=Code.INVALID_REQUEST,
        )
    return clones


def warning_of(context: Context, clone: NamingTable) -> str:
    """For whoever vacuums the table that the clone names files of."""
    return (
        f"{named(context, clone.name)} names files of this table, as a shallow clone does: those "
        "that it names stay, but for a clone that no index here knows"
    )


async def take_clones(
    index: NamedFilesIndex, table: TableRecord, clones: Sequence[NamingTable], others: OtherNames
) -> None:
    """One after the other, for each reads pages of the index."""
    for clone in clones:
        await _take_clone(index, table, clone, others)


async def _take_clone(
    index: NamedFilesIndex, table: TableRecord, clone: NamingTable, others: OtherNames
) -> None:
    location = identity(table.location)
    has_digests = False
    for first, end in ((f"{location}/", f"{location}0"), (DIGEST, f"{DIGEST}g")):
        named = index.named_files(clone.id, since=0, removed_ms=0, after=first, until=end)
        async for page in named:
            await others.take(page)
            async for rows in spelled(index, others.share, clone.id, page, is_other=True):
                has_digests = True
                await others.take(rows)
    if has_digests:
        # Whoever reads this can ask its owner what that is for.
        logger.warning(
            "a table that names files of one that is vacuumed has names that are too long for the "
            "index, and each is read from its line",
            extra={"table": table.name, "naming_table": clone.name},
        )

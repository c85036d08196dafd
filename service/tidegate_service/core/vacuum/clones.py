"""What other tables name of a table's files, as shallow clones do: it stays, whichever of their
versions names it."""

import logging
from collections.abc import Sequence

from tidegate_protocol.log.paths import identity
from tidegate_service.core.ports.files.named_files import NamedFilesIndex, NamingTable
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.vacuum.orphans import OtherNames
from tidegate_service.core.vacuum.spelled import DIGEST, spelled

logger = logging.getLogger("tidegate.service")


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

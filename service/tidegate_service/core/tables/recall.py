"""What a log must have for a table to be registered from it, and the ids that are brought back from
when the table was forgotten, for each kind of table.

Other tables that were at the place keep their ids. A forgotten table is the log's table where some
version of both has metadata with the same id.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.known import CATALOG_MANAGED
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.log.segment import LogSegment
from tidegate_service.core.catalog_managed.origins import (
    NO_ORIGIN,
    StagedCommits,
    copy_of,
    next_step,
    ratified,
)
from tidegate_service.core.catalog_managed.ratified_log import (
    LostCommit,
    UnknownIds,
    check_marks,
    unknown_ids,
)
from tidegate_service.core.errors import Refused
from tidegate_service.core.log.loading.bases import BaseRefused
from tidegate_service.core.ports.forgotten import Recalled
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import ForgottenTable
from tidegate_service.core.ports.store.storage import Log

Brought = tuple[Sequence[LostCommit], UnknownIds | None]
"""The commits that the log has others in the places of, and of a catalog-managed table the versions
whose ids cannot be known."""


class PlainRegistration:
    """Where the log has no version any more from before a table was forgotten, nobody can tell
    which table it is. It is taken for the table that was here last, so that nothing that landed
    there lands a second time."""

    def check_place(self, location: str, *, was_ours: bool) -> None:
        """Raise `Refused` where nothing at the place may be registered. `was_ours` says that a
        catalog-managed table is known to have been forgotten there."""

    async def recall(self, section: CommitSection, log: Log, read: LogSegment) -> Brought:
        """Bring back what is kept of the table, which was made from what was `read`. Raises
        `Refused` where the log is not the table's, or not all of it."""
        kept = await section.forgotten(await section.metadata_ids())
        if not kept:
            last = await section.forgotten(most=1)
            first = section.table.first_version
            kept = [old for old in last if old.latest_version < first]
        return [one for old in kept for one in _lost(await section.recall(old))], None


@dataclass(frozen=True, slots=True)
class CatalogManagedRegistration:
    """A catalog-managed table has the same id at all of its versions. `by_marks` is for a table
    that no index knows any more."""

    by_marks: bool

    def check_place(self, location: str, *, was_ours: bool) -> None:
        if not (was_ours or self.by_marks):
            raise Refused(
                f"no catalog-managed table is known to have been forgotten at {location}; "
                "this service is not the catalog of what lies there",
                code=Code.UNSUPPORTED_FEATURE,
                hint="where this index has lost a table of its own, as by a restore, an admin of "
                "everything registers it with `by_marks`",
            )

    async def recall(self, section: CommitSection, log: Log, read: LogSegment) -> Brought:
        ids = await section.metadata_ids()
        kept = await section.forgotten(ids, catalog_managed=True)
        unknown = None
        if self.by_marks and not kept:
            await check_marks(section, log)
        else:
            old = await _check_whole(section, log, read, kept[0] if kept else None)
            unknown = unknown_ids(section.table, known=old.latest_version, older=read.older)
        lost: list[LostCommit] = []
        for old in kept:
            recalled = await section.recall(old)
            if recalled.rewritten is not None:
                raise Refused(
                    f"version {recalled.rewritten} lies in the log with other bytes than were "
                    "ratified",
                    code=Code.BROKEN_LOG,
                    hint="put the ratified file back",
                )
            lost += _lost(recalled)
        return lost, unknown


Registration = PlainRegistration | CatalogManagedRegistration
"""What registering does for one kind of table."""


def _lost(recalled: Recalled) -> list[LostCommit]:
    return [LostCommit(version=v, transaction_id=name) for v, name in recalled.lost]


async def _check_whole(
    section: CommitSection, log: Log, read: LogSegment, old: ForgottenTable | None
) -> ForgottenTable:
    """See that the log has what was ratified of a catalog-managed table, all of it and no more.
    Returns `old`.

    The database may have been set back to when the table was forgotten. So there may be later
    versions than the head that was kept: they count where this service ratified them (`origins`).
    For the same reason the service may have cleaned the log up past the kept head, to a checkpoint
    and the commit of its version.
    """
    table = section.table
    if old is None or table.protocol is None or not supports(table.protocol, CATALOG_MANAGED):
        raise Refused(
            f"what lies at {table.location} is not the catalog-managed table that was forgotten "
            "there",
            code=Code.UNSUPPORTED_FEATURE,
            hint="register it as a plain table, if it is one",
        )
    if table.latest_version < old.latest_version:
        raise Refused(
            f"the log ends at version {table.latest_version}, and version {old.latest_version} was "
            "the last one that was ratified",
            code=Code.BROKEN_LOG,
            hint="put the missing files back",
        )
    first, staged = max(old.latest_version + 1, table.first_version), StagedCommits(log)
    if first == table.first_version:
        await _check_beginning(section, staged, read, old)
    for version in range(first, table.latest_version + 1):
        if await ratified(section, version, staged) is None:
            raise Refused(
                f"version {version} lies in the log behind version {old.latest_version}, the last "
                f"one that was ratified; {NO_ORIGIN}",
                code=Code.BROKEN_LOG,
                hint=await next_step(section, version, staged),
            )
    sha256, _ = await section.kept(table.latest_version)
    if (
        table.latest_version == old.latest_version
        and None not in (sha256, old.content_sha256)
        and sha256 != old.content_sha256
    ):
        raise Refused(
            f"version {old.latest_version} lies in the log with other bytes than were ratified",
            code=Code.BROKEN_LOG,
            hint="put the ratified file back",
        )
    return old


async def _check_beginning(
    section: CommitSection, staged: StagedCommits, read: LogSegment, old: ForgottenTable
) -> None:
    """See that the service itself has cleaned up a log that begins behind the head that was kept.
    Its clean-up leaves the commit of the checkpoint's version, which it ratified for this table. A
    clean-up that was cut short may have left less at an earlier checkpoint."""
    table = section.table
    origin = await ratified(section, table.first_version, staged)
    if origin is not None and table.metadata is not None and origin.is_of(table.metadata.id):
        return
    why = (
        f"the log begins with a checkpoint of version {table.first_version}, and version "
        f"{old.latest_version} was the last one that was ratified; the commit of the checkpoint's "
        "version is not there, or neither says that this service wrote it for this table nor has "
        "the bytes of a staged commit"
    )
    hint = (
        "put the missing files back; where a stock client committed version "
        f"{table.first_version}, {copy_of(table.first_version)}"
    )
    if read.newest is not None:
        raise BaseRefused(why, version=table.first_version, hint=hint)
    raise Refused(why, code=Code.BROKEN_LOG, hint=hint)

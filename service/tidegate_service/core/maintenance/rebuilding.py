"""An index that is made anew, for each kind of table.

The log is what a plain table is. Of a catalog-managed table it is all but the versions that are not
published, whose bytes the index has. Both are read into the emptied index in one commit section, so
that nobody ever sees a table half made, and what cannot be read changes nothing.

The section of a plain table reads a copy of the log, which is made before the row is locked. The
section of a catalog-managed table compares the log with the index and puts versions back, so it
reads the store itself.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Metadata
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.catalog_managed.findings import Found, left_out, lost_behind_hole
from tidegate_service.core.catalog_managed.own_log import CleanedUp, cleaned_up, not_own
from tidegate_service.core.catalog_managed.questions import Ends
from tidegate_service.core.catalog_managed.ratified_log import (
    LostCommit,
    UnknownIds,
    go_on,
    record_lost,
    tell_lost,
    tell_unknown,
    unknown_ids,
)
from tidegate_service.core.catalog_managed.set_back import quarantine_for
from tidegate_service.core.catalog_managed.whole_log import make_whole, other_bytes
from tidegate_service.core.checkpoints.lost_checkpoint import restore_checkpoint
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, NotFound, Refused
from tidegate_service.core.log.catching_up.sight import Behind, SeenNow
from tidegate_service.core.log.copying.copied_log import CopiedLog
from tidegate_service.core.log.copying.copy_file import CopyFile
from tidegate_service.core.log.loading.bases import BaseRefused, from_first_base
from tidegate_service.core.log.loading.data_paths import DataPaths
from tidegate_service.core.log.loading.load import adopt
from tidegate_service.core.log.loading.reading_time import ReadingTime
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import Glance, QuarantineCause, TableHead, TableRecord
from tidegate_service.core.ports.store.storage import Log, LogReader

COPIED_ON = 5
"""A copy is continued so often for versions that were committed since it was made."""

_FORGET = ", or forget the table and register it again if they are lost for good"

_PUT_BACK = (
    "put the missing files back: GET /tables/{table}/verify names them, and "
    "GET /tables/{table}/commits/{version} has the bytes that the index keeps"
)
_GIVE_UP = "; or give the table up (docs/maintenance.md, a table that cannot be rebuilt)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """A table's head after its index was made anew, what of it the log has no place for, and the
    versions whose ids cannot be known any more."""

    table: TableRecord
    lost: tuple[LostCommit, ...]
    unknown: UnknownIds | None = None


async def rebuild_plain(context: Context, glance: Glance) -> Rebuilt:
    """Make the table's index anew. Raises as `rebuild` does."""
    place = glance.database, glance.table.epoch, _quarantine(glance.table)
    rebuilt = await rebuild_from_copy(
        # A quarantine that came while the log was copied may be for what the copy lacks.
        context,
        glance.table,
        lambda now, database: (database, now.epoch, _quarantine(now)) == place,
    )
    if rebuilt is None:
        raise IndexUnavailable(
            f"the index of table {glance.table.name} was made anew meanwhile, or the table was "
            "quarantined; it can be tried again"
        )
    return rebuilt


def _quarantine(table: TableHead) -> tuple[object, ...]:
    return table.state, table.quarantine_cause, table.state_reason


async def rebuild_from_copy(
    context: Context,
    table: TableHead,
    is_expected: Callable[[TableHead, str], bool],
    *,
    of_same_id: bool = False,
) -> Rebuilt | None:
    """Make a plain table's index anew from a copy of its log. None where the row, in its database,
    is not as expected any more before or after the log is copied; nothing is changed then. With
    `of_same_id`, a log whose metadata has another id is refused.

    Raises `Refused` as `rebuild` does, `NotFound` where the table is gone, and `Unavailable`, also
    where more is committed than can be copied.
    """
    log = context.storage.log(table.location, who=context.who)
    async with context.copies.turn(context.who):
        with CopyFile(context.copies, who=context.who) as file:
            copied = CopiedLog(
                log,
                file,
                location=table.location,
                time=ReadingTime(context.limits, context.monotonic_s),
                monotonic_s=context.monotonic_s,
            )
            for _ in range(COPIED_ON):
                glance = await context.index.glance(table.id)
                if glance is None:
                    raise NotFound("there is no such table any more", code=Code.TABLE_NOT_FOUND)
                if not is_expected(glance.table, glance.database):
                    return None
                await copied.copy(through=glance.table.latest_version)
                try:
                    async with context.index.commit_section(table.id, who=context.who) as section:
                        if not is_expected(section.table, section.database):
                            return None
                        copied.allow(section.table.latest_version)
                        before = section.table
                        # The log is the truth, whatever was put into it since.
                        older = await _read_log(
                            context, section, copied, least=copied.least, otherwise=_FORGET
                        )
                        if of_same_id:
                            _check_id(section, before.metadata)
                        unknown = _unknown(section.table, before, older)
                        return await _saved(context, section, unknown=unknown)
                except Behind:
                    continue
                except BaseRefused as refused:
                    copied.pass_over(refused)
    raise IndexUnavailable(
        f"table {table.name} is committed to faster than its log can be read; it can be tried again"
    )


def _unknown(now: TableRecord, before: TableRecord, older: Collection[int]) -> UnknownIds | None:
    """None also of a log that is another table's, which others have made in the folder."""
    ids = [each.metadata and each.metadata.id for each in (now, before)]
    if ids[0] != ids[1]:
        return None
    return unknown_ids(now, known=before.latest_version, older=older)


def _check_id(section: CommitSection, before: Metadata | None) -> None:
    now = section.table.metadata
    if before is not None and now is not None and before.id != now.id:
        raise Refused(
            f"its metadata has the id {excerpt(now.id)}, and this table's has "
            f"{excerpt(before.id)}; rebuild it where others have replaced the table",
            code=Code.BROKEN_LOG,
        )


async def rebuild_catalog_managed(context: Context, glance: Glance) -> Rebuilt:
    """Make the table's index anew. Raises as `rebuild` does, after saving that the table is
    quarantined where the log is what is wrong."""
    table_id = glance.table.id
    await restore_checkpoint(context, glance.table)

    async def rebuilt(least: int) -> Rebuilt:
        async with context.index.commit_section(table_id, who=context.who) as section:
            log = context.storage.log(section.table.location, who=context.who)
            parted, unknown = await _from_log_and_index(context, section, log, least=least)
            return await _saved(context, section, parted, unknown, log=log)

    try:
        return await from_first_base(rebuilt)
    except Refused as refused:
        found = refused.found if isinstance(refused, _Lost) else None
        hint = "" if refused.hint is None else f"; {refused.hint}"
        async with context.index.commit_section(table_id, who=context.who) as section:
            # Commits from now on might be put into a log that is another table's.
            await quarantine_for(
                section, found or Found(QuarantineCause.LOG, f"{refused.detail}{hint}")
            )
        raise


async def _from_log_and_index(
    context: Context, section: CommitSection, log: Log, *, least: int
) -> tuple[tuple[LostCommit, ...], UnknownIds | None]:
    """Empty the index, and read into it the log, and behind it the versions that only the index
    holds. Returns the commits that do not follow from what is published, and the versions whose
    ids cannot be known, since they were cleaned up after the index was as it is now."""
    before = section.table
    through, least = await _check_own(section, log, least=least)
    await section.keep_unpublished()
    # Versions that lie behind `through` need not be the table's.
    otherwise = _GIVE_UP if before.quarantine_cause is QuarantineCause.SET_BACK else ""
    older = await _read_log(
        context, section, log, least=least, through=through, otherwise=otherwise
    )
    if (other := await section.rewritten()) is not None:
        raise Refused(
            f"version {other} of table {before.name} lies in the log with other bytes than were "
            "ratified",
            code=Code.BROKEN_LOG,
            hint=f"put the ratified file back: GET /tables/{before.name}/verify gives its SHA-256",
        )
    unknown = unknown_ids(section.table, known=before.latest_version, older=older)
    return await go_on(section, log, before), unknown


class _Lost(Refused):
    """The log has versions that cannot be taken in, and that the index has lost."""

    def __init__(self, table: TableHead, found: Found) -> None:
        super().__init__(f"table {table.name}: {found.reason}", code=Code.BROKEN_LOG)
        self.found = found


async def _check_own(section: CommitSection, log: Log, *, least: int) -> tuple[int, int]:
    """See that the log is the table's, and put files back that are gone from it.

    Returns the version up to which the log is read whoever wrote it, and the least version that its
    base may be of. These are the last published version and `least`. Where the log begins behind
    the last published version, both are the first version that the log has.

    Raises `Refused` where the log is not the table's. Also raised where a log that begins behind
    the last published version has older files with other bytes than the index: nobody can tell then
    whether the files that are gone had the index's.
    """
    table = section.table
    found: str | CleanedUp | None = await make_whole(section, log)
    if found is None:
        sight = SeenNow(log)
        last, _ = await sight.see(section, Ends(table.published_version))
        found = await not_own(section, sight, last, least=least)
        if found is None and last is not None:
            found = await cleaned_up(section, sight, least=least)
        if found is None and (hole := await lost_behind_hole(section, sight, last)) is not None:
            raise _Lost(table, hole)
    match found:
        case None:
            return table.published_version, least
        case CleanedUp(version, older):
            waiting = range(table.published_version + 1, table.latest_version + 1)
            why = await other_bytes(section, log, [one for one in older if one in waiting])
            if why is None:
                return version, version
        case str(why):
            pass
    raise Refused(f"table {table.name}: {why}", code=Code.BROKEN_LOG)


async def _saved(
    context: Context,
    section: CommitSection,
    parted: tuple[LostCommit, ...] = (),
    unknown: UnknownIds | None = None,
    *,
    log: Log | None = None,
) -> Rebuilt:
    """Save the index that was made anew. `parted` are the versions that do not follow from what is
    published, `unknown` those that nothing is known of. `log` is a catalog-managed table's, which
    has to be in the index as far as this service ratified it."""
    # The writers were told that these commits landed. They must hear that they are lost, and the
    # commits must not land once more.
    replaced = await section.restore_ids()
    # A copy of a version before the first one is known by its id, which is back.
    if log is not None and (found := await left_out(section, SeenNow(log))) is not None:
        raise _Lost(section.table, found)
    lost = tuple(LostCommit(version=version, transaction_id=name) for version, name in replaced)
    if parted:
        # A commit that says no id landed under an id of its own all the same.
        names = dict(replaced)
        lost = tuple(
            one if one.transaction_id else replace(one, transaction_id=names.get(one.version))
            for one in parted
        )
    rebuilt = Change(deed=Deed.REBUILD, by=context.caller, version=section.table.latest_version)
    await section.record_change(rebuilt)
    await record_lost(context, section, lost)
    await section.save()
    # From now on, what the rebuild found is what was committed. The new epoch may be one that the
    # table had before the database was set back.
    context.heads.forget(section.table.id)
    tell_lost(section.table, lost)
    tell_unknown(section.table, unknown)
    return Rebuilt(table=section.table, lost=lost, unknown=unknown)


async def _read_log(
    context: Context,
    section: CommitSection,
    log: LogReader,
    *,
    least: int,
    through: int | None = None,
    otherwise: str,
) -> tuple[int, ...]:
    """Empty the index, and read the log into it as `adopt` does. Returns the versions that the log
    holds before the base.

    Raises `Refused` where the end of the log is lost. Its hint is to put the files back, and
    `otherwise`.
    """
    before = section.table
    time = ReadingTime(context.limits, context.monotonic_s)
    await section.reset()
    older: tuple[int, ...] = ()
    if through is None or through >= 0:
        # Nobody is shown a file by this: who may read a path is checked when the table is scanned.
        paths = DataPaths(location=before.location, policy=context.locations, reader=None)
        read = await adopt(section, log, paths, time, least=least, through=through)
        older = read.older
    if section.table.latest_version < before.published_version:
        raise Refused(
            f"the log of table {before.name} ends at version {section.table.latest_version}, and "
            f"the index knows versions up to {before.published_version} that were in it: the rest "
            "of the log is lost",
            code=Code.BROKEN_LOG,
            hint=_PUT_BACK + otherwise,
        )
    return older

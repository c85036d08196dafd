"""Row ids and row commit versions (PROTOCOL.md, "Row Tracking"; Delta: RowId.scala).

A file's rows get the ids from its `baseRowId` on, one each. Which ids are free is known only when
the commit's version is, so a prepared transaction holds the files that need new ones without
any, and `assigned` gives them out when the commit is complete.
"""

from collections.abc import Sequence

import msgspec

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.known import ROW_TRACKING
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.log.actions import Action, Add, DomainMetadata, Metadata, Protocol
from tidegate_protocol.log.codec import from_body, with_fields
from tidegate_protocol.log.statistics import statistics_of
from tidegate_protocol.proposal.transaction import Invalid, WinningCommit

DOMAIN = "delta.rowTracking"
ROW_TRACKING_SUSPENDED = "delta.rowTrackingSuspended"
"""While it is true, no file is given ids."""
ROW_TRACKING_PRESERVED_TAG = "delta.rowTracking.preserved"
"""The tag of commitInfo that says whether rows that were updated or copied kept their ids."""
NO_ROW_IDS = -1
"""The high water mark of a table that has given out no row id."""
MAX_ROW_ID = 2**63 - 1
_INVALID = NO_ROW_IDS - 1
_MAX_LENGTH = 64 * 1024
"""Of the domain's configuration, in characters: each commit to the table reads it."""
_FOUND_MARK = "high water mark before"


class InvalidHighWaterMark(ValueError):
    """The domain `delta.rowTracking` says nothing that row ids could be counted on from."""


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    row_id_high_water_mark: int = msgspec.field(name="rowIdHighWaterMark")


_MARK = msgspec.json.Decoder(_Mark)


def assigns(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether every file that is added to such a table gets row ids."""
    return supports(protocol, ROW_TRACKING) and not is_suspended(protocol, metadata)


def is_suspended(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether the table supports row ids, but takes none until further notice."""
    return supports(protocol, ROW_TRACKING) and asks_suspension(metadata)


def asks_suspension(metadata: Metadata) -> bool:
    """Whether the table takes no row ids until further notice, if it supports them."""
    return TableProperties.parse(metadata.configuration).row_tracking_suspended


def high_water_mark(domain: DomainMetadata | None) -> int:
    """The highest row id given out, by the table's domain of row tracking. Raises
    `InvalidHighWaterMark`."""
    if domain is None or domain.removed:
        return NO_ROW_IDS
    is_short = len(domain.configuration) <= _MAX_LENGTH
    try:
        mark = _MARK.decode(domain.configuration).row_id_high_water_mark if is_short else _INVALID
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        mark = _INVALID
    if not NO_ROW_IDS <= mark <= MAX_ROW_ID:
        raise InvalidHighWaterMark(
            f"the metadata domain {DOMAIN!r} is {excerpt(domain.configuration)}; expected a "
            "rowIdHighWaterMark of -1 or more"
        )
    return mark


def moved_mark(domains: Sequence[DomainMetadata], mark: int) -> int:
    """The high water mark after a commit that wrote these domains. Raises as above."""
    for domain in domains:
        if domain.domain == DOMAIN:
            mark = high_water_mark(domain)
    return mark


def mark_before(winners: Sequence[WinningCommit], latest: int) -> int:
    """The high water mark that the first of these commits found, where `latest` is that after the
    last of them. A commit tells what it found by the ids that it gave out, which lie one after the
    other below its mark, in files that have its version as their commit version."""
    first = first_with_mark(winners)
    if first is None:
        return latest
    if _FOUND_MARK not in first.found:
        first.found[_FOUND_MARK] = _found_mark(first)
    return first.found[_FOUND_MARK]


def first_with_mark(winners: Sequence[WinningCommit]) -> WinningCommit | None:
    """The first commit that moved the high water mark, by whose files `mark_before` goes."""
    return next((winner for winner in winners if _marks(winner)), None)


def _marks(winner: WinningCommit) -> list[DomainMetadata]:
    return [domain for domain in winner.domains if domain.domain == DOMAIN]


def _found_mark(winner: WinningCommit) -> int:
    first = high_water_mark(_marks(winner)[-1]) + 1
    given = [
        (add.base_row_id, add.base_row_id + (row_count(add) or 0))
        for add in winner.adds
        if add.base_row_id is not None and add.default_row_commit_version == winner.version
    ]
    for base, end in sorted(given, reverse=True):
        first = base if end == first else first
    return first - 1


def released(
    actions: Sequence[Action], *, mark: int, read_version: int
) -> tuple[Action, ...] | Invalid:
    """The actions with the added files that need new row ids or a new commit version freed of
    what their writer put there.

    Ids of at most `mark`, the high water mark that the writer read, were given out before, and the
    file is committed again with them. Whatever is above, if only the last row's, was chosen by a
    writer that could not know what others take, or is of before the table's ids began anew. New
    ids need the number of the file's rows.
    """
    kept: list[Action] = []
    wanted = 0
    for index, action in enumerate(actions):
        if not isinstance(action, Add):
            kept.append(action)
            continue
        changes: dict[str, None] = {}
        rows = row_count(action)
        if action.base_row_id is not None and action.base_row_id + max(1, rows or 1) - 1 > mark:
            changes["baseRowId"] = None
        commit_version = action.default_row_commit_version
        if commit_version is not None and commit_version > read_version:
            changes["defaultRowCommitVersion"] = None
        if action.base_row_id is None or "baseRowId" in changes:
            if rows is None:
                return _invalid(action, index, "has no numRecords in its stats; row ids need them")
            wanted += rows
        elif action.base_row_id < 0:
            return _invalid(action, index, f"has the baseRowId {action.base_row_id}")
        kept.append(with_fields(action, changes) if changes else action)
    if mark + wanted > MAX_ROW_ID:
        return Invalid(
            code=Code.INVALID_ACTION,
            detail=f"{wanted} rows are added to a table whose highest row id is {mark}; there are "
            f"only ids up to {MAX_ROW_ID}",
        )
    return tuple(kept)


def assigned(actions: Sequence[Action], *, mark: int, version: int) -> tuple[Action, ...]:
    """The actions of the commit of this version, with row ids above `mark`, the high water mark
    of the version before, for the files that have none, in their order, and the new mark first."""
    completed: list[Action] = []
    last = mark
    for action in actions:
        if not isinstance(action, Add):
            completed.append(action)
            continue
        changes: dict[str, int] = {}
        if action.base_row_id is None:
            changes["baseRowId"] = last + 1
            rows = row_count(action)
            assert rows is not None, "a transaction is prepared with the number of its rows"
            last += rows
        if action.default_row_commit_version is None:
            changes["defaultRowCommitVersion"] = version
        completed.append(with_fields(action, changes) if changes else action)
    if last != mark:
        completed.insert(0, _domain(last))
    return tuple(completed)


def without_row_ids(actions: Sequence[Action]) -> tuple[Action, ...]:
    """The actions with the added files free of row ids, as a suspended table wants them."""
    return tuple(_without(action) if isinstance(action, Add) else action for action in actions)


def row_count(add: Add) -> int | None:
    """The rows of the data file, deleted ones included; None where its statistics do not say."""
    statistics = statistics_of(add.stats)
    return None if statistics is None else statistics.num_records


def _without(add: Add) -> Add:
    if add.base_row_id is None and add.default_row_commit_version is None:
        return add
    return with_fields(add, {"baseRowId": None, "defaultRowCommitVersion": None})


def _domain(mark: int) -> DomainMetadata:
    configuration = msgspec.json.encode({"rowIdHighWaterMark": mark}).decode()
    return from_body(
        DomainMetadata, {"domain": DOMAIN, "configuration": configuration, "removed": False}
    )


def _invalid(add: Add, index: int, what: str) -> Invalid:
    return Invalid(
        code=Code.INVALID_ACTION,
        detail=f"{add.path!r} {what}",
        action_index=index,
        path=add.path,
    )

"""What the database in memory keeps of tables that were forgotten (`core.ports.forgotten`)."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.simulation.ports.old_ids import answer_as, holder, is_gone, is_replaced
from tests.simulation.ports.rows import Rows
from tidegate_service.core.ports.forgotten import Recalled
from tidegate_service.core.ports.records import CommitRecord, ForgottenTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A table's head, the ids of its metadata, and its ids: what they landed as, and tombstones."""

    table: ForgottenTable
    metadata_ids: frozenset[str]
    landed: Mapping[str, CommitRecord]
    tombstones: Mapping[str, int | None]


def kept_of(rows: Rows, *, at_ms: int) -> Kept:
    record = rows.record
    head = rows.commit(record.latest_version)
    assert head is not None, "a head is a version"
    landed = {
        name: commit.record
        for commit in rows.commits
        if (name := commit.record.transaction_id) is not None
    }
    return Kept(
        table=ForgottenTable(
            id=record.id,
            name=record.name,
            location=record.location,
            catalog_managed=record.catalog_managed,
            latest_version=record.latest_version,
            content_sha256=head.record.content_sha256,
            forgotten_ms=at_ms,
        ),
        metadata_ids=rows.past_metadata_ids | rows.metadata_ids,
        landed={**rows.past, **landed},
        tombstones=dict(rows.tombstones),
    )


def recall(rows: Rows, kept: Kept) -> Recalled:
    """As `core.ports.forgotten.ForgottenHere.recall`, into these rows."""
    rows.past_metadata_ids |= kept.metadata_ids
    head = rows.record.latest_version
    rewritten = [old.version for old in kept.landed.values() if is_replaced(rows, old)]
    lost = []
    for name, old in kept.landed.items():
        version = holder(rows, name, old)
        if version == old.version:
            answer_as(rows, old)
        elif version is None and old.version <= head and is_gone(rows, old):
            lost.append((old.version, name))
            rows.tombstones.setdefault(name, None)
        elif version is None and old.version <= head:
            # What landed behind the log's end was lost since, and its id with it.
            rows.past.setdefault(name, old)
    shorter = not kept.table.catalog_managed and head < kept.table.latest_version
    for name, unfenced_after in kept.tombstones.items():
        version = rows.ids.get(name)
        if version is not None:
            found = rows.commit(version)
            assert found is not None, "an id is one of a version"
            if not found.record.foreign:
                continue
            rows.take_id(name)
        # Fences that the log holds have brought theirs back already.
        rows.tombstones.setdefault(name, head if shorter else unfenced_after)
    return Recalled(rewritten=min(rewritten, default=None), lost=sorted(lost))

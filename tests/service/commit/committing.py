"""Commits made by hand, for tests of the index alone: no rules, no storage."""

import hashlib
import itertools
import uuid

from tests.builders.by_x import METADATA, PROTOCOL
from tidegate_protocol.log.actions import (
    Action,
    Add,
    CommitInfo,
)
from tidegate_protocol.log.codec import decode, encode_lines
from tidegate_protocol.proposal.transaction import IsolationLevel
from tidegate_service.core.log.put_version import metrics_of
from tidegate_service.core.ports.index import CommitSection, Index
from tidegate_service.core.ports.records import (
    CommitRecord,
    NewTable,
    QuarantineCause,
    RatifiedCommit,
    TableRecord,
)
from tidegate_service.core.tables.scan import Scan

_numbers = itertools.count(1)


def new_table(**fields: object) -> NewTable:
    """A plain table under a name, id and location of its own."""
    number = next(_numbers)
    return NewTable(
        **{
            "id": str(uuid.uuid4()),
            "name": f"main.test.t{number}",
            "location": f"file:///lake/t{number}",
            "catalog_managed": False,
            **fields,
        }
    )


def ratified(
    version: int, *actions: Action, published: bool = True, **fields: object
) -> RatifiedCommit:
    """A commit of these actions, with a commitInfo before them."""
    lines = (CommitInfo(timestamp=version, operation="WRITE", is_blind_append=True), *actions)
    content = encode_lines(lines)
    record = CommitRecord(
        **{
            "version": version,
            "timestamp": 1_000 + version,
            "transaction_id": str(uuid.uuid4()),
            "body_digest": "digest",
            "content_sha256": hashlib.sha256(content).hexdigest(),
            "operation": "WRITE",
            "isolation_level": IsolationLevel.SERIALIZABLE,
            "is_blind_append": True,
            "read_version": version - 1 if version else None,
            "rebased_over": 0,
            "engine_info": "test",
            "user_metadata": None,
            "foreign": False,
            "metrics": metrics_of(actions, attempts=1, duration_ms=2),
            **fields,
        }
    )
    return RatifiedCommit(record=record, actions=lines, content=content, published=published)


async def create(
    index: Index, *actions: Action, table: NewTable | None = None, published: bool | None = None
) -> TableRecord:
    """A table at version 0; a catalog-managed one's is left unpublished unless asked."""
    table = table or new_table()
    if published is None:
        published = not table.catalog_managed
    async with index.creation_section(table) as section:
        await section.append(ratified(0, PROTOCOL, METADATA, *actions, published=published))
        await section.save()
    return section.table


async def land(index: Index, table: TableRecord, *actions: Action, **fields: object) -> TableRecord:
    """The next version, by a section of its own; returns the new head."""
    async with index.commit_section(table.id) as section:
        await append(section, *actions, **fields)
        await section.save()
    return section.table


async def append(section: CommitSection, *actions: Action, **fields: object) -> RatifiedCommit:
    fields.setdefault("published", not section.table.catalog_managed)
    commit = ratified(section.table.latest_version + 1, *actions, **fields)
    await section.append(commit)
    await section.flush()
    return commit


async def paths(index: Index, table: TableRecord, version: int) -> list[str]:
    """The paths of the files live at a version, as their batches come."""
    return [add.path async for batch in index.files(table.id, version) for add in batch]


async def scanned(found: Scan) -> list[Add]:
    """The files of a scan, decoded from the lines that it is made of."""
    return [decode(line) async for batch in found.files for line in batch]


async def quarantine(
    index: Index,
    table: TableRecord,
    reason: str,
    cause: QuarantineCause = QuarantineCause.LOG,
) -> None:
    """As whoever finds that the table cannot go on."""
    async with index.commit_section(table.id) as section:
        await section.quarantine(reason, cause)
        await section.save()

"""Which files break what transactions assume of a version's live files
(`tidegate_protocol.prepare.live_files`)."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import islice
from uuid import UUID

from tidegate_protocol.log.actions import LogicalFile
from tidegate_protocol.prepare.live_files import FileAssumptions
from tidegate_service.core.sharing import offload
from tidegate_service.index.postgres.parameters import int8s, texts, uuids
from tidegate_service.index.postgres.pipeline import Query, Row, Statement, as_int, as_text
from tidegate_service.index.rows.file_rows import ROWS
from tidegate_service.index.rows.keys import key

Ask = Callable[[Sequence[Query]], Awaitable[list[list[Row]]]]

# Each file costs one scan of `files_key`: the orders are the index's, and the LIMITs keep the
# planner from turning the queries around. Lives of one file do not overlap: of those that had
# begun, the last one to end counts.
_GONE = Statement("""
    SELECT assumed.number, assumed.dv_id
    FROM unnest($1, $2, $3, $4, $5) AS assumed (number, table_id, version, path, dv_id)
    LEFT JOIN LATERAL (
        SELECT coalesce(files.removed_version > assumed.version, true) AS lives
        FROM files
        WHERE files.table_id = assumed.table_id
          AND files.path = assumed.path
          AND files.dv_id = assumed.dv_id
          AND files.added_version <= assumed.version
        ORDER BY files.removed_version DESC
        LIMIT 1
    ) AS life ON true
    WHERE life.lives IS NOT TRUE
""")

_OTHERS = Statement("""
    SELECT assumed.number, other.dv_id
    FROM unnest($1, $2, $3, $4, $5) AS assumed (number, table_id, version, path, dv_id)
    CROSS JOIN LATERAL (
        SELECT files.dv_id
        FROM files
        WHERE files.table_id = assumed.table_id
          AND files.path = assumed.path
          AND files.dv_id <> assumed.dv_id
          AND files.added_version <= assumed.version
          AND (files.removed_version IS NULL OR files.removed_version > assumed.version)
        ORDER BY files.dv_id
        LIMIT 1
    ) AS other
""")

Asked = tuple[UUID, int, FileAssumptions]
"""What is assumed of a version of a table. The version is written."""
_File = tuple[int, UUID, int, LogicalFile]
"""Of whose assumptions it is, by their place among those asked; the table and the version."""


async def broken(ask: Ask, asked: Sequence[Asked]) -> list[set[LogicalFile]]:
    """What `FileAssumptions.broken` says of each; of a path that is live with several other
    vectors, one of these. A vector's id may be an index key (`keys.key`)."""
    found: list[set[LogicalFile]] = [set() for _ in asked]
    removed = (
        (place, table_id, version, file)
        for place, (table_id, version, assumptions) in enumerate(asked)
        for file in assumptions.removed
    )
    added = (
        (place, table_id, version, file)
        for place, (table_id, version, assumptions) in enumerate(asked)
        for file in assumptions.added.items()
    )
    for statement, files in ((_GONE, removed), (_OTHERS, added)):
        while some := list(islice(files, ROWS)):
            query = await offload.run(len(some), partial(_query, statement, some))
            (rows,) = await ask([query])
            for number, dv_id in rows:
                place, *_, (path, vector) = some[as_int(number)]
                found[place].add((path, vector if statement is _GONE else as_text(dv_id) or None))
    return found


def _query(statement: Statement, files: Sequence[_File]) -> Query:
    return Query(
        statement,
        int8s(range(len(files))),
        uuids([table_id for _, table_id, _, _ in files]),
        int8s([version for _, _, version, _ in files]),
        texts([key(path) for *_, (path, _) in files]),
        texts(["" if vector is None else key(vector) for *_, (_, vector) in files]),
    )

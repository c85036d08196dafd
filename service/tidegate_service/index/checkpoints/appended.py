"""The files that the newest versions of a table added, out of these versions' bytes.

No index of `files` has the versions in order, and one would cost every commit. What is wanted is in
the commits' rows, which lie in the order of their versions.
"""

from collections.abc import Sequence
from uuid import UUID

import msgspec
import zstandard
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.log.actions import file_key
from tidegate_service.core.ports.checkpoints import FileRows, SnapshotHead
from tidegate_service.core.sharing import offload
from tidegate_service.index.postgres.binary import binary_rows
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.rows.keys import key
from tidegate_service.index.rows.records import add_of, expanded

MOST_FILES = 50_000
MOST_BYTES = 32 * 1024 * 1024
"""Of the commits, as they are stored; expanded, they have twice that at most."""

_SUMS = """
    SELECT
        (SELECT epoch FROM tables WHERE id = %(table_id)s),
        count(*), count(content), coalesce(sum(num_added_files), 0)::bigint,
        coalesce(sum(num_removed_files), 0)::bigint, coalesce(sum(octet_length(content)), 0)::bigint
    FROM commits
    WHERE table_id = %(table_id)s AND version > %(after)s AND version <= %(version)s
"""
_CONTENTS = """
    SELECT array_agg(content ORDER BY version) FROM commits
    WHERE table_id = %(table_id)s AND version > %(after)s AND version <= %(version)s
"""
# Each file costs one look into each index.
_REMOVED = """
    SELECT EXISTS (
        SELECT FROM unnest(%(paths)s::text[], %(dv_ids)s::text[]) AS added (path, dv_id)
        CROSS JOIN LATERAL (
            (SELECT FROM files
                WHERE files.table_id = %(table_id)s AND files.path = added.path
                    AND files.dv_id = added.dv_id AND files.removed_version <= %(version)s LIMIT 1)
            UNION ALL
            (SELECT FROM tombstones
                WHERE tombstones.table_id = %(table_id)s AND tombstones.path = added.path
                    AND tombstones.dv_id = added.dv_id LIMIT 1)
        ) AS before
    )
"""
_ADD = b'{"add":'
_NO_FILES = (b'{"commitInfo":', b'{"txn":', b'{"domainMetadata":', b'{"metaData":', b'{"protocol":')


async def appended(
    connections: Connections,
    table_id: UUID,
    head: SnapshotHead,
    *,
    after: int,
    beside_removed: bool,
) -> FileRows | None:
    """`core.ports.checkpoints.CheckpointIndex.appended`."""
    values = {"table_id": table_id, "after": after, "version": head.version}

    async def read(connection: AsyncConnection) -> Sequence[bytes] | None:
        (sums,) = await binary_rows(connection, _SUMS, values)
        epoch, number, held, added, removed, size = sums
        is_whole = (epoch, number, held) == (head.epoch, head.version - after, number)
        if not is_whole or removed or added > MOST_FILES or size > MOST_BYTES:
            return None
        ((contents,),) = await binary_rows(connection, _CONTENTS, values)
        return contents or ()

    contents = await connections.read(read)
    if contents is None:
        return None
    adds = await offload.run(max(1, len(contents)), _adds, contents)
    if adds is None or not adds or not beside_removed:
        return None if adds is None else _rows(adds)
    keys = await offload.run(len(adds), _keys, adds)
    asked = {**values, "paths": [path for path, _ in keys], "dv_ids": [dv for _, dv in keys]}
    ((was_removed,),) = await connections.read(lambda c: binary_rows(c, _REMOVED, asked))
    return None if was_removed else _rows(adds)


def _rows(adds: Sequence[bytes]) -> FileRows:
    return FileRows(adds=b"\n".join(adds), num_adds=len(adds))


def _adds(contents: Sequence[bytes]) -> list[bytes] | None:
    """The lines of adds; None where others are about files, or may be."""
    if sum(map(zstandard.frame_content_size, contents)) > 2 * MOST_BYTES:
        return None
    adds: list[bytes] = []
    for content in contents:
        for line in expanded(content).split(b"\n"):
            if line.startswith(_ADD):
                adds.append(line)
            elif not line.startswith(_NO_FILES) and line.strip():
                return None
    return adds if _are_objects(adds) else None


def _are_objects(adds: Sequence[bytes]) -> bool:
    """Whether each line is one action and nothing else."""
    try:
        _ONE.decode(b"[" + b",".join(adds) + b"]")
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


class _Add(msgspec.Struct, forbid_unknown_fields=True):
    add: msgspec.Raw


_ONE = msgspec.json.Decoder(list[_Add])


def _keys(adds: Sequence[bytes]) -> list[tuple[str, str]]:
    return [(key(path), key(dv or "")) for path, dv in (file_key(add_of(line)) for line in adds)]

"""Names of which the index has only digests, read from the log lines that it keeps of the files.

A path, or a deletion vector's id, may be longer than an index entry. Which file it means is found
in the line, so that a name like that, whoever wrote it, keeps the one file and ends no vacuum.
"""

from collections.abc import AsyncIterator, Sequence

import msgspec

from tidegate_protocol.log.actions import DeletionVector
from tidegate_protocol.log.paths import identity
from tidegate_service.core.ports.files.named_files import NamedFiles, NamedFilesIndex
from tidegate_service.core.sharing.pools import Share

DIGEST = "sha256:"
"""What the index has in the place of a text that is too long for it begins so."""


class _Add(msgspec.Struct, rename="camel"):
    path: str
    deletion_vector: DeletionVector | None = None


class _Line(msgspec.Struct):
    add: _Add


_LINES = msgspec.json.Decoder(_Line)


def _digests(named: NamedFiles) -> NamedFiles:
    """Those of the rows that have a digest."""
    rows = [
        (path, vector)
        for path, vector in zip(named.paths, named.vectors, strict=True)
        if path.startswith(DIGEST) or vector.startswith(DIGEST)
    ]
    return NamedFiles(paths=[path for path, _ in rows], vectors=[vector for _, vector in rows])


async def spelled(
    index: NamedFilesIndex,
    share: Share,
    table_id: str,
    named: NamedFiles,
    *,
    is_other: bool = False,
) -> AsyncIterator[NamedFiles]:
    """Those of a table's rows that have a digest, with the names that the log has, some megabytes
    at a time. A row that is gone meanwhile is left out. Of a table that is another one (`is_other`)
    than the names are looked for in, relative paths are left out: they are of its own folder."""
    rows = _digests(named)
    if rows.paths:
        async for lines in index.lines_of(table_id, rows):
            yield await share.run_rested(_named_in, lines, is_other)


def _named_in(lines: Sequence[bytes], is_other: bool) -> NamedFiles:
    adds = [_LINES.decode(line).add for line in lines]
    paths = [identity(add.path) for add in adds]
    if is_other:
        paths = [path if path.startswith("/") or ":" in path else "" for path in paths]
    vectors = (add.deletion_vector for add in adds)
    return NamedFiles(
        paths=paths,
        vectors=["" if vector is None else vector.unique_id for vector in vectors],
    )

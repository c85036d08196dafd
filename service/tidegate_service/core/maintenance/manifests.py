"""Symlink manifests: the files of each partition, for readers that know nothing of Delta.

Each is `_symlink_format_manifest/<partition>/manifest` with a URL a line, as Delta's
GenerateSymlinkManifest writes them.
"""

import re
from collections import defaultdict
from dataclasses import dataclass

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import Add
from tidegate_protocol.log.paths import decode
from tidegate_protocol.schema.partition_values import partition_path
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import check_open, get_table

REMOVED_AT_ONCE = 1000
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestsWritten:
    """Of which version, how many manifests, and of how many files; `removed` were of partitions
    that have no file any more."""

    version: int
    manifests: int
    files: int
    removed: int


async def generate_manifests(context: Context, ref: str) -> tuple[TableRecord, ManifestsWritten]:
    """Write all manifests of the table's latest version, and remove the others. Raises `Refused`
    for a table that such readers would read wrongly. It goes on where the caller leaves."""
    table = await get_table(context, ref)
    check_open(table)
    assert table.metadata is not None, "it has a version"
    if TableProperties.parse(table.metadata.configuration).column_mapping:
        raise _unreadable("its columns are mapped")
    async with context.manifests.turn(context.caller.principal.name):
        return table, await context.running.run((table.id, "manifests"), _generate(context, table))


async def _generate(context: Context, table: TableRecord) -> ManifestsWritten:
    assert table.metadata is not None, "it has a version"
    columns = table.metadata.partition_columns
    contents: dict[str, bytearray] = defaultdict(bytearray)
    if not columns:
        # Without a file, too: whoever reads the table finds it empty.
        contents[""] = bytearray()
    files = 0
    async for batch in context.index.files(table.id, table.latest_version):
        files += len(batch)
        for file in batch:
            partition = partition_path(file.partition_values, columns)
            contents[partition] += f"{_url(table, file)}\n".encode()
    store = context.storage.manifests(table.location)
    for partition, content in contents.items():
        await store.put(partition, [bytes(content)])
    # Listed as a whole before any is deleted: a store may not list what it deletes from.
    stale = [
        partition
        async for partitions in store.partitions()
        for partition in partitions
        if partition not in contents
    ]
    for at in range(0, len(stale), REMOVED_AT_ONCE):
        await store.remove(stale[at : at + REMOVED_AT_ONCE])
    return ManifestsWritten(
        version=table.latest_version, manifests=len(contents), files=files, removed=len(stale)
    )


def _url(table: TableRecord, file: Add) -> str:
    if file.deletion_vector is not None:
        raise _unreadable(
            f"the file {excerpt(file.path)} has a deletion vector, so rows that are deleted would "
            "be read"
        )
    path = decode(file.path)
    if "\n" in path or "\r" in path:
        raise _unreadable(f"the path {excerpt(path)} is more than one line")
    if _URL.match(file.path):
        return path
    if path.startswith("/"):
        scheme, _, rest = table.location.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}{path}"
    return f"{table.location}/{path}"


def _unreadable(why: str) -> Refused:
    return Refused(
        f"there are no manifests of this table: {why}",
        code=Code.UNSUPPORTED_FEATURE,
        hint="Have it read as a Delta table.",
    )

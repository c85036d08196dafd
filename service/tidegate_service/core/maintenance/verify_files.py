"""Looking for the data files of a table's latest version.

Each live file must be in storage with the size that its action says, and the file of its deletion
vector long enough to hold the vector. Files outside of the table's folder, as a shallow clone names
them, are looked for on behalf of whoever may read every table, and only where tables may be. What a
file holds is not looked at.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import Add
from tidegate_protocol.log.paths import identity
from tidegate_service.core.access.roles import Role
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused, ServiceError, StorageUnavailable
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.data_names import vector_files, within

FILES_AT_ONCE = 256
"""Live files that are looked for between two answers."""
AROUND_VECTOR_BYTES = 8
"""A deletion vector's length before the vector, and its checksum behind it (PROTOCOL.md, "Deletion
Vector File Storage Format")."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ROOTED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/(?!/)")
"""Hadoop's spelling of a path without a store's name."""


class FilesStage(StrEnum):
    """`ENDED` is said behind the last file, `FAILED` where the index or the store does not
    answer."""

    LOOKING = "looking"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BadFile:
    """`path` is the live file's, as its action has it."""

    path: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSeen:
    """So many live `files` of a version, and files of their deletion `vectors`, were looked for.
    Those `skipped` were not: they are at places that are not looked at for the caller, or have
    control characters in their paths. `bad` are those found since the last time."""

    stage: FilesStage
    version: int
    files: int = 0
    vectors: int = 0
    skipped: int = 0
    bad: tuple[BadFile, ...] = ()
    error: ServiceError | None = None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A data file of `size` bytes, or the file of a deletion vector, which has `size` bytes at
    least. The file is at one of the URLs: writers differ in how they spell a name."""

    add: Add
    urls: Sequence[str]
    size: int
    is_vector: bool


async def verify_files(context: Context, table: TableHead) -> AsyncGenerator[FilesSeen]:
    """Look for the files that are live in the head's version, some at a time. What keeps it from
    going on is in the last answer."""
    now, has_bad = FilesSeen(stage=FilesStage.LOOKING, version=table.latest_version), False
    try:
        async for batch in context.index.files(table.id, table.latest_version):
            for first in range(0, len(batch), FILES_AT_ONCE):
                now = await _looked(context, table, batch[first : first + FILES_AT_ONCE], now)
                has_bad |= bool(now.bad)
                yield now
        if has_bad:
            await _check_log(context, table)
        yield replace(now, stage=FilesStage.ENDED, bad=())
    except ServiceError as error:
        yield replace(now, stage=FilesStage.FAILED, bad=(), error=error)


async def _check_log(context: Context, table: TableHead) -> None:
    """Raise `StorageUnavailable` where the whole table is gone: a file system may not be mounted,
    or the bucket not be there, which the answers to requests for single files do not say."""
    has_log = await context.storage.log(table.location, who=context.who).holds_anything()
    if table.published_version >= 0 and not has_log:
        raise StorageUnavailable(
            "there is no log at the table's location, where files are missing: is the file system "
            "mounted, and the bucket there?"
        )


async def _looked(
    context: Context, table: TableHead, adds: Sequence[Add], now: FilesSeen
) -> FilesSeen:
    wanted = [each for add in adds for each in _wanted(add, table.location)]
    sizes = await _sizes(context, table, (url for each in wanted for url in each.urls))
    looked_for = [each for each in wanted if not each.urls or sizes.keys() & each.urls]
    vectors = sum(each.is_vector for each in looked_for)
    bad = [
        BadFile(path=each.add.path, detail=detail)
        for each in looked_for
        if (detail := _wrong(each, [sizes.get(url) for url in each.urls])) is not None
    ]
    return replace(
        now,
        files=now.files + len(looked_for) - vectors,
        vectors=now.vectors + vectors,
        skipped=now.skipped + len(wanted) - len(looked_for),
        bad=tuple(bad),
    )


def _wanted(add: Add, location: str) -> Iterator[_Wanted]:
    yield _Wanted(add, [_url(identity(add.path), location)], add.size, is_vector=False)
    vector = add.deletion_vector
    if vector is None or vector.storage_type == "i":
        return
    names = vector_files(f"{vector.storage_type}{vector.path_or_inline_dv}")
    end = (vector.offset or 0) + vector.size_in_bytes + AROUND_VECTOR_BYTES
    yield _Wanted(add, [_url(name, location) for name in names], end, is_vector=True)


def _url(name: str, location: str) -> str:
    """Of a file that is named so in the log of the table at the location."""
    rooted = _ROOTED.match(name)
    if rooted is not None:
        name = f"{rooted[1]}:///{name[rooted.end() :]}"
    inside = within(name, location)
    if inside is not None:
        return f"{location}/{inside}"
    if "://" not in name:
        store = location[: location.index("/", location.index("://") + 3)]
        name = f"{store}{name}" if name.startswith("/") else f"{location}/{name}"
    scheme, mark, path = name.partition("://")
    return f"{scheme}{mark}{posixpath.normpath(path)}"


async def _sizes(context: Context, table: TableHead, urls: Iterable[str]) -> dict[str, int | None]:
    """The sizes of the files in bytes, None of a file that is missing. A file that is not looked
    for is left out."""
    paths_in = defaultdict[str, list[str]](list)
    for url in sorted(set(urls)):
        folder = None if _CONTROL.search(url) else _folder(context, table.location, url)
        if folder is not None:
            paths_in[folder].append(url[len(folder) + 1 :])
    sizes: dict[str, int | None] = {}
    for folder, paths in paths_in.items():
        try:
            files = context.storage.data_files(folder, partition_columns=(), who=context.who)
        except Refused:
            # No location can have this folder's name.
            continue
        found = await files.described(paths)
        sizes |= {f"{folder}/{path}": None for path in paths}
        sizes |= {f"{folder}/{file.path}": file.size for file in found}
    return sizes


def _folder(context: Context, location: str, url: str) -> str | None:
    """Where the file is looked for: in the table's folder, or for whoever may read every table in
    the outermost folder of the innermost place for tables; None where it is not."""
    if url.startswith(f"{location}/"):
        return location
    if not context.caller.principal.may_everywhere(Role.READER):
        return None
    places = (context.locations.warehouse, *context.locations.prefixes)
    holding = [place for place in places if url.startswith(f"{place}/")]
    if not holding:
        return None
    place = max(holding, key=len)
    name, mark, _ = url[len(place) + 1 :].partition("/")
    return f"{place}/{name}" if mark else None


def _wrong(wanted: _Wanted, sizes: Sequence[int | None]) -> str | None:
    """What is wrong with a file that has these sizes under its URLs; None for what is not."""
    size = max((size for size in sizes if size is not None), default=None)
    vector = wanted.add.deletion_vector
    if not wanted.is_vector or vector is None:
        if size is None:
            return "the file is missing"
        if size != wanted.size:
            return f"the file has {size} bytes, and the log says {wanted.size}"
        return None
    if not wanted.urls:
        return f"the deletion vector {excerpt(vector.unique_id)} names no file"
    file = f"the file of its deletion vector, {wanted.urls[0]},"
    if size is None:
        return f"{file} is missing"
    if size < wanted.size:
        return f"{file} has {size} bytes, and the vector ends at {wanted.size}"
    return None

"""ZCubes: files of a clustered table that were written together, as their tags say.

A cube that has grown large stays as it is, and what is added from then on becomes other cubes. So
an OPTIMIZE writes what is new, and with it the cubes that are small yet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from tidegate.models import DataFile
from tidegate.spark.commands.target import size_of
from tidegate.spark.expressions.pruning import statistics
from tidegate.spark.optimize.bins import Bin, packed
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.schema.column_paths import InvalidColumnPath, parse

PROVIDER = "liquid"
"""What Delta's implementation of clustering calls itself in the log."""
_ID = "ZCUBE_ID"
_COLUMNS = "ZCUBE_ZORDER_BY"
_CURVE = "ZCUBE_ZORDER_CURVE"
_HILBERT = "hilbert"
_NAMES = msgspec.json.Decoder(list[str])


@dataclass(frozen=True, slots=True)
class Cube:
    """Which cube a file is of; `columns` are the names that it was clustered by, in lower case, or
    the tag where that cannot be read."""

    id: str
    columns: tuple[tuple[str, ...], ...] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class CubeFiles:
    """Of files those that are in cubes by the columns, how many cubes these are, and the others."""

    in_cubes: tuple[DataFile, ...]
    cubes: int
    others: tuple[DataFile, ...]


def cube_of(file: DataFile) -> Cube | None:
    """The cube that the file is of."""
    tags = file.tags or {}
    found, text = tags.get(_ID), tags.get(_COLUMNS)
    if found is None or text is None:
        return None
    try:
        return Cube(found, _paths(_NAMES.decode(text)))
    except (msgspec.DecodeError, InvalidColumnPath):
        return Cube(found, text)


def in_cube(file: DataFile, cube_id: str, names: Sequence[str]) -> DataFile:
    """The file as one of a new cube, clustered by the columns of these names."""
    tags = {
        **(file.tags or {}),
        _ID: cube_id,
        _COLUMNS: msgspec.json.encode(list(names)).decode(),
        _CURVE: _HILBERT,
    }
    return with_fields(file, {"tags": tags, "clusteringProvider": PROVIDER})


def to_cluster(
    files: Iterable[DataFile], names: Sequence[str], *, stable_size: int, is_full: bool
) -> list[DataFile]:
    """The files that an OPTIMIZE is to write, those that are in no cube first and then by cubes.

    Cubes of at least `stable_size` bytes stay, files by other columns and of another provider do
    unless it `is_full`, and where all that is left is one cube, it stays, too.
    """
    columns = _paths(names)
    mine: list[DataFile] = []
    others: list[DataFile] = []
    for file in sorted(files, key=_cube_id):
        cube = cube_of(file)
        is_own = file.clustering_provider in (None, PROVIDER)
        fits = cube is None or cube.columns == columns
        (mine if is_own and fits else others).append(file)
    sizes: dict[str, int] = {}
    for file in mine:
        cube_id = _cube_id(file)
        sizes[cube_id] = sizes.get(cube_id, 0) + _live_size(file)
    small = [file for file in mine if cube_of(file) is None or sizes[_cube_id(file)] < stable_size]
    if is_full and others:
        return [*small, *others]
    is_one_cube = all(cube_of(file) for file in small) and len({*map(_cube_id, small)}) == 1
    return [] if is_one_cube else small


def cubes_to_be(files: Sequence[DataFile], *, size: int) -> list[Bin]:
    """The files in the bins that become cubes, each of about that many bytes at most. A clustered
    table has no partitions."""
    return [
        Bin(partition=(), files=tuple(bin_))
        for bin_ in packed(files, size=lambda file: file.size, limit=size)
    ]


def counted(files: Iterable[DataFile], names: Sequence[str], *, is_full: bool) -> CubeFiles:
    """The files as Delta's metrics of clustering have them; for one that `is_full`, cubes by other
    columns count as well."""
    columns = _paths(names)
    inside: list[DataFile] = []
    others: list[DataFile] = []
    for file in files:
        cube = cube_of(file)
        fits = cube is not None and (is_full or cube.columns == columns)
        (inside if fits else others).append(file)
    return CubeFiles(
        in_cubes=tuple(inside), cubes=len({*map(_cube_id, inside)}), others=tuple(others)
    )


def shown_files(files: Sequence[DataFile]) -> dict[str, int]:
    """Their number and bytes, as Delta's metrics have them."""
    return {"numFiles": len(files), "size": size_of(files)}


def _cube_id(file: DataFile) -> str:
    cube = cube_of(file)
    return "" if cube is None else cube.id


def _live_size(file: DataFile) -> int:
    """In bytes, less what a deletion vector took of it."""
    stats, vector = statistics(file), file.deletion_vector
    if vector is None or stats is None or not stats.num_records:
        return file.size
    return file.size * (stats.num_records - vector.cardinality) // stats.num_records


def _paths(names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Names as SQL has them, part by part: others may put some in backticks that need none."""
    return tuple(tuple(part.lower() for part in parse(name)) for name in names)

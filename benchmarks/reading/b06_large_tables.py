"""B6: a commit's time does not depend on the table's size, nor on how long its past is."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count

import msgspec

from benchmarks.frame import Bench, Figure, Pair, Result, Scale, at_most
from benchmarks.load.asking import Asked, Connection, p50s, version_of
from benchmarks.rig import large_tables
from benchmarks.rig.large_tables import commits_url, file_path, partition
from benchmarks.rig.service import Service, Table
from benchmarks.rig.world import World

_FLOOR = at_most(1.2)
_COMMITS = 10
_FILES = 1_000
_OLD = "old"
_WARM_UP = 20
_TURNS = 150
_NOTE = (
    "Each table has a database and an instance of its own, on one Postgres. The files came in by "
    f"{_COMMITS} commits over HTTP; the many versions were decided by the service's rules and "
    "written by its index, hundreds in one Postgres transaction, beside a log of as many files "
    "(a test compares index and log of such a table, as `tidegate verify` does). Then the clock "
    "passed their dates, and Postgres was vacuumed, as it is by itself in the minutes after. The "
    "small table grows by the measured commits, too."
)


@dataclass(frozen=True, slots=True)
class _Size:
    """How large a table is; all have `_COMMITS` commits of adds first."""

    files: int
    versions: int


@dataclass(frozen=True, slots=True)
class _Place:
    """A table, and a connection to the service that has it to itself."""

    service: Service
    connection: Connection
    table: Table


def run(world: World, scale: Scale) -> Result:
    sizes = {
        "small": _Size(_FILES, _COMMITS),
        "files": _Size(scale.pick(quick=20_000, full=1_000_000), _COMMITS),
        "versions": _Size(_FILES, scale.pick(quick=2_000, full=100_000)),
    }
    figures: list[Figure] = []
    with ExitStack() as stack:
        # A database each: in one, all tables share the indexes of the largest.
        services = {name: stack.enter_context(world.serving()) for name in sizes}
        tables = {
            (managed, name): _table(services[name], size, catalog_managed=managed)
            for managed in (True, False)
            for name, size in sizes.items()
        }
        for (_, name), table in tables.items():
            large_tables.await_dates(services[name], table)
        for service in services.values():
            large_tables.settle(service.database_url)
        # Only now: the service closes connections that are not used.
        connections = {name: stack.enter_context(Connection(s)) for name, s in services.items()}
        for managed, kind in ((True, "catalog-managed"), (False, "plain")):
            for commit, what in ((_appends, "append"), (_overwrites, "overwrite")):
                places = {
                    name: _Place(services[name], connections[name], tables[managed, name])
                    for name in sizes
                }
                found = _in_turns(places, commit, scale)
                figures += _figures(found, sizes, name=f"{what}, {kind}")
    return Result(figures=tuple(figures), notes=(_NOTE,))


def _table(service: Service, size: _Size, *, catalog_managed: bool) -> Table:
    table = service.create_table(catalog_managed=catalog_managed, partition_columns=("p",))
    large_tables.grow_files(service, table, files=size.files, commits=_COMMITS, name=_OLD)
    large_tables.grow_versions(service, table, through=size.versions, name="past")
    return table


def _in_turns(
    places: Mapping[str, _Place], commit: Callable[[_Place], Iterator[float]], scale: Scale
) -> dict[str, list[float]]:
    """The p50 of a commit in ms, by table, of each run."""
    askers = {name: commit(place).__next__ for name, place in places.items()}
    found: dict[str, list[float]] = {name: [] for name in places}
    # All runs together take no more files away than the small table has.
    turns = min(scale.pick(quick=20, full=_TURNS), (_FILES - _WARM_UP) // scale.runs)
    # What the first requests of a table bring into memory stays there.
    p50s(list(askers.values()), turns=_WARM_UP, seed=scale.seed)
    for _ in range(scale.runs):
        seconds = p50s(list(askers.values()), turns=turns, seed=scale.seed)
        for name, p50 in zip(askers, seconds, strict=True):
            found[name].append(1000 * p50)
    return found


def _figures(
    found: Mapping[str, list[float]], sizes: Mapping[str, _Size], *, name: str
) -> Iterator[Figure]:
    sizes_told = {
        "files": f"{sizes['files'].files:,} files",
        "versions": f"{sizes['versions'].versions:,} versions",
    }
    for size, told in sizes_told.items():
        yield Figure(
            name=f"{name}, {told}",
            unit="ms (p50)",
            pairs=tuple(
                Pair(measured=large, against=small)
                for large, small in zip(found[size], found["small"], strict=True)
            ),
            floor=_FLOOR,
        )


def _appends(place: _Place) -> Iterator[float]:
    """Blind appends of one file."""
    for number in count():
        body = {
            "operation": "WRITE",
            "transaction_id": f"append-{number}",
            "actions": [msgspec.Raw(large_tables.add_line("append", number))],
        }
        yield _committed(place, body).seconds


def _overwrites(place: _Place) -> Iterator[float]:
    """Each has read a partition at the latest version, takes one of the table's oldest files
    away from it and adds another."""
    at, _ = place.service.head(place.table)
    for number in count():
        values = {"p": partition(number)}
        removed = {
            "remove": {
                "path": file_path(_OLD, number),
                "deletionTimestamp": 1_763_700_000_000,
                "dataChange": True,
                "extendedFileMetadata": True,
                "partitionValues": values,
                "size": large_tables.file_size(number),
            }
        }
        body = {
            "operation": "WRITE",
            "transaction_id": f"overwrite-{number}",
            "read_version": at,
            "reads": {"predicates": [f"p = '{values['p']}'"]},
            "actions": [removed, msgspec.Raw(large_tables.add_line("overwrite", number))],
        }
        asked = _committed(place, body)
        at = version_of(asked)
        yield asked.seconds


def _committed(place: _Place, body: object) -> Asked:
    content = msgspec.json.encode(body)
    return place.connection.post(commits_url(place.table), content, expected=201)


BENCH = Bench(
    id="b6",
    title="large tables",
    measured="p50 of a commit of one file on a table of many files, and on one of many versions",
    against=f"the same commit on a table of {_FILES:,} files and {_COMMITS} versions; one commit "
    "here, one there",
    run=run,
)

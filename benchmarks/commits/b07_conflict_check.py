"""B7: what judging a transaction costs that many commits were faster than."""

from collections.abc import Iterator, Sequence
from itertools import count
from statistics import median

import msgspec

from benchmarks.frame import Bench, Figure, Limit, Pair, Result, Scale, at_most
from benchmarks.load.asking import Asked, Connection, p50s, version_of
from benchmarks.rig import large_tables
from benchmarks.rig.large_tables import commits_url
from benchmarks.rig.service import Table
from benchmarks.rig.world import World

_FEW = 10
_MANY = (100, 1_000, 10_000)
_MOST_MS = 50.0


def run(world: World, scale: Scale) -> Result:
    sizes = _MANY[: scale.pick(quick=2, full=3)]
    service = world.service
    table = service.create_table(catalog_managed=True, partition_columns=("p",))
    large_tables.grow_versions(service, table, through=sizes[-1] + _FEW, name="winner")
    large_tables.settle(service.database_url)
    kinds = {
        "conflict check, append": _append_checks,
        "conflict check, read": _read_checks,
        "commit, read": _commits,
    }
    figures: list[Figure] = []
    limits: list[Limit] = []
    with Connection(service) as connection:
        place = _Place(connection, table, service.head(table)[0])
        first_ms = 1000 * next(_read_checks(place, sizes[-1]))
        for name, asker in kinds.items():
            askers = [asker(place, winners) for winners in (_FEW, *sizes)]
            found = _in_turns(askers, scale)
            figures += _curve(name, sizes, found)
            limits.append(
                Limit(
                    name=f"p50 of a {name}, {sizes[-1]:,} winners",
                    unit="ms",
                    values=tuple(found[-1]),
                    floor=at_most(_MOST_MS),
                )
            )
    return Result(figures=tuple(figures), limits=tuple(limits), notes=(_note(sizes[-1], first_ms),))


def _in_turns(askers: Sequence[Iterator[float]], scale: Scale) -> list[list[float]]:
    """The p50 in ms of each run, by asker."""
    nexts = [asker.__next__ for asker in askers]
    p50s(nexts, turns=3, seed=scale.seed)
    turns = scale.pick(quick=10, full=40)
    runs = [
        [1000 * p50 for p50 in p50s(nexts, turns=turns, seed=scale.seed)] for _ in range(scale.runs)
    ]
    return [list(of_one) for of_one in zip(*runs, strict=True)]


def _curve(name: str, sizes: Sequence[int], found: Sequence[Sequence[float]]) -> list[Figure]:
    few, *many = found
    return [
        Figure(
            name=f"{name}, {winners:,} winners",
            unit="ms (p50)",
            pairs=tuple(
                Pair(measured=at_many, against=at_few)
                for at_many, at_few in zip(of_size, few, strict=True)
            ),
            floor=at_most(winners / _FEW),
            at=float(winners),
            profile={"ms a thousand winners": _slope(of_size, few, winners)},
        )
        for winners, of_size in zip(sizes, many, strict=True)
    ]


def _slope(many: Sequence[float], few: Sequence[float], winners: int) -> float:
    return 1000 * (median(many) - median(few)) / (winners - _FEW)


class _Place:
    """The table, and its latest version."""

    def __init__(self, connection: Connection, table: Table, latest: int) -> None:
        self._connection = connection
        self._table = table
        self._latest = latest

    def checked(self, proposal: dict[str, object], *, winners: int) -> float:
        """Seconds of a conflict check that finds no conflict with so many winners."""
        url = f"/api/v1/tables/{self._table.name}/conflict-check"
        return self._asked(url, proposal, winners=winners, expected=200).seconds

    def committed(self, proposal: dict[str, object], *, winners: int) -> float:
        """Seconds of a commit that so many were faster than."""
        asked = self._asked(commits_url(self._table), proposal, winners=winners, expected=201)
        self._latest = version_of(asked)
        return asked.seconds

    def _asked(
        self, url: str, proposal: dict[str, object], *, winners: int, expected: int
    ) -> Asked:
        read_version = self._latest - winners
        body = msgspec.json.encode({**proposal, "read_version": read_version})
        asked = self._connection.post(url, body, expected=expected)
        found = msgspec.json.decode(asked.content)
        if found["rebased_over"] != winners:
            raise RuntimeError(f"expected {winners} winners, found {found}")
        return asked


def _append_checks(place: _Place, winners: int) -> Iterator[float]:
    for number in count():
        yield place.checked(_appending(f"append-{winners}-{number}"), winners=winners)


def _read_checks(place: _Place, winners: int) -> Iterator[float]:
    for number in count():
        yield place.checked(_reading(f"check-{winners}-{number}"), winners=winners)


def _commits(place: _Place, winners: int) -> Iterator[float]:
    """Each appends to a partition of its own, so that none conflicts with those before."""
    for number in count():
        name = f"commit-{winners}-{number}"
        yield place.committed(_reading(name), winners=winners)


def _appending(name: str) -> dict[str, object]:
    add = {
        "path": f"p={name}/part-0.snappy.parquet",
        "partitionValues": {"p": name},
        "size": 23_172,
        "modificationTime": 1_763_700_000_000,
        "dataChange": True,
    }
    return {"operation": "WRITE", "transaction_id": name, "actions": [{"add": add}]}


def _reading(name: str) -> dict[str, object]:
    return {**_appending(name), "reads": {"predicates": [f"p = '{name}'"]}}


def _note(winners: int, first_ms: float) -> str:
    return (
        "The winners are appends of one file each to a hundred partitions of a catalog-managed "
        "table, made as in B6. `append` read nothing; `read` read a partition that no winner "
        "touched, so that each of them has to be ruled out, and appends to it. Less than linear is "
        f"a ratio below the number of winners divided by {_FEW}, which stands as the floor of "
        f"each. The very first check against {winners:,} winners, before which the instance knew "
        f"none of them, took {first_ms:.0f} ms."
    )


BENCH = Bench(
    id="b7",
    title="conflict checks",
    measured="p50 of a conflict check, and of a commit, that so many commits were faster than",
    against=f"the same with {_FEW} that were faster; one here, one there",
    run=run,
)

"""Files are judged on the event loop where that takes a millisecond, and in threads else."""

import json
import threading

import pytest

from tests.protocol.judging import predicate
from tidegate_protocol.scan.predicates import terms_of
from tidegate_protocol.scan.pruning import pruning_of
from tidegate_service.core.access.locations import LocationPolicy
from tidegate_service.core.log.loading.data_paths import DataPaths
from tidegate_service.core.ports.files.scanned import StoredFiles
from tidegate_service.core.sharing.pools import Pool
from tidegate_service.core.tables.cutting import Cut

pytestmark = pytest.mark.anyio

PATHS = DataPaths(
    location="file:///data/t", policy=LocationPolicy(warehouse="file:///data"), reader=None
)
LIKES = " OR ".join(f"x LIKE '%_{n}%'" for n in range(9))


class Paused:
    """The threads that rests were made and taken in, as often as there were."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.taken: list[str] = []

    def make(self):
        self.made.append(threading.current_thread().name)
        return lambda: self.taken.append(threading.current_thread().name)


def of(values: list[str]) -> StoredFiles:
    return StoredFiles(
        paths=[f"f{n}" for n in range(len(values))],
        vectors=[""] * len(values),
        actions=[f'{{"add":{{"path":"f{n}"}}}}'.encode() for n in range(len(values))],
        partitions=[json.dumps({"x": value}) for value in values],
        stats=["{}"] * len(values),
    )


async def judged(values: list[str], text: str) -> tuple[Paused, list[int], list[bool]]:
    """The rests, the sizes of the pieces, and what is needed of the partitions."""
    paused = Paused()
    cut = Cut(
        # Statistics are asked for, too: what knows them is in each file's pieces.
        pruning=pruning_of([predicate(f"({text}) AND v > 1", "string")]),
        terms=terms_of(text),
        share=Pool("cut", 1).of("somebody"),
        columns=None,
        paths=PATHS,
        rests=paused.make,
    )
    pieces = [len(lines) async for lines in cut.in_pieces(of(values))]
    assert cut.wanted.partitions is not None
    return paused, pieces, list(await cut.wanted.partitions(of(values).partitions))


async def test_what_is_little_is_judged_at_once_and_without_rests():
    """One that slept there would have everybody wait."""
    paused, pieces, needed = await judged(["a1", "b", "-8"], LIKES)
    assert (pieces, needed) == ([2], [True, False, True])
    assert paused.made == []


async def test_long_values_are_judged_in_a_thread_that_rests():
    paused, pieces, needed = await judged(["a" * 9_999 + "1", "a" * 10_000], LIKES)
    assert (pieces, needed) == ([1], [True, False])
    # A piece each, of files and of partitions.
    assert [name.startswith("tidegate-cut") for name in paused.made] == [True] * 4
    assert paused.taken == paused.made


async def test_many_files_are_judged_in_a_thread_that_rests():
    values = ["a1"] * 300
    paused, pieces, _ = await judged(values, LIKES)
    assert sum(pieces) == len(values)
    assert len(pieces) == 300 * (10 + terms_of(LIKES)) // 20_000 + 1
    assert len(paused.taken) == 2 * len(values)


async def test_pieces_are_the_shorter_the_longer_the_values_are():
    values = ["a1"] * 50 + ["a" * 2_000 + "1"] * 50
    _, pieces, _ = await judged(values, LIKES)
    assert sum(pieces) == len(values)
    assert pieces[0] > 50
    assert len(pieces) > 8
    assert all(size * terms_of(LIKES) * (2_000 // 64) <= 20_000 for size in pieces[1:])

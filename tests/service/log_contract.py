"""What every implementation of the `Storage` and `Log` ports does: one suite for all of them.

A test module subclasses `LogContract` and gives it three fixtures:

- `storage`: an empty `Storage`;
- `location`: the URL of a table in it that does not exist yet;
- `plant`: `plant(location, name, content)` puts an object into the table's `_delta_log` as a
  writer does that knows nothing of the service.
"""

import asyncio
import random
from collections.abc import Callable

import pytest

from tidegate_protocol.log_files import commit_name
from tidegate_service.core.ports import PutResult, Storage

Plant = Callable[[str, str, bytes], None]

RACERS = 16
CONTENTS = {
    "one line": b'{"commitInfo":{"txnId":"a"}}\n',
    "no bytes": b"",
    "not text": bytes(range(256)),
    "8 MiB": random.Random(8).randbytes(8 << 20),
}
FOREIGN_LOG_FILES = [
    "00000000000000000000.json",
    "00000000000000000010.checkpoint.parquet",
    "00000000000000000010.checkpoint.0000000001.0000000002.parquet",
    "00000000000000000010.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
    "00000000000000000004.00000000000000000006.compacted.json",
]
OTHER_FILES = [
    "README.md",
    "0.json",
    "00000000000000000000.json.tmp",
    ".00000000000000000000.json.crc",
    "_staged_commits/00000000000000000000.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
]


class LogContract:
    """Subclassed by the tests of each implementation; see the module's text."""

    pytestmark = pytest.mark.anyio

    @pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
    async def test_a_version_is_read_as_it_was_put(self, storage: Storage, location, content):
        log = storage.log(location)

        assert await log.put_if_absent(0, content) is PutResult.CREATED

        assert await log.read(0) == content
        assert await storage.log(location).read(0) == content

    @pytest.mark.parametrize("second", [b"first\n", b"second\n"], ids=["same", "other"])
    async def test_a_second_put_is_refused_and_changes_nothing(
        self, storage: Storage, location, second
    ):
        log = storage.log(location)
        await log.put_if_absent(0, b"first\n")

        assert await log.put_if_absent(0, second) is PutResult.EXISTS

        assert await log.read(0) == b"first\n"

    async def test_a_version_that_is_not_there_is_none(self, storage: Storage, location):
        log = storage.log(location)

        assert await log.read(0) is None
        await log.put_if_absent(0, b"zero\n")
        assert await log.read(1) is None

    async def test_versions_stand_apart(self, storage: Storage, location):
        log = storage.log(location)
        for version in range(12):
            await log.put_if_absent(version, b"%d\n" % version)

        assert [await log.read(version) for version in range(12)] == [
            b"%d\n" % version for version in range(12)
        ]

    async def test_tables_stand_apart(self, storage: Storage, location):
        here, there = storage.log(location), storage.log(f"{location}_2")
        await here.put_if_absent(0, b"here\n")

        assert await there.read(0) is None
        assert not await there.holds_anything()
        assert await there.put_if_absent(0, b"there\n") is PutResult.CREATED
        assert await here.read(0) == b"here\n"

    async def test_one_of_many_racers_wins_and_its_content_stays(self, storage: Storage, location):
        logs = [storage.log(location) for _ in range(RACERS)]
        contents = [b"racer %d\n" % racer * 1000 for racer in range(RACERS)]

        results = await asyncio.gather(
            *(log.put_if_absent(0, content) for log, content in zip(logs, contents, strict=True))
        )

        winners = [racer for racer in range(RACERS) if results[racer] is PutResult.CREATED]
        assert len(winners) == 1
        assert results.count(PutResult.EXISTS) == RACERS - 1
        assert await logs[0].read(0) == contents[winners[0]]

    async def test_a_foreign_commit_is_read_and_not_replaced(
        self, storage: Storage, location, plant: Plant
    ):
        plant(location, commit_name(0), b"foreign\n")
        log = storage.log(location)

        assert await log.read(0) == b"foreign\n"
        assert await log.put_if_absent(0, b"ours\n") is PutResult.EXISTS
        assert await log.read(0) == b"foreign\n"

    async def test_an_empty_log_holds_nothing(self, storage: Storage, location):
        assert not await storage.log(location).holds_anything()

    async def test_a_log_with_a_commit_holds_something(self, storage: Storage, location):
        log = storage.log(location)
        await log.put_if_absent(0, b"zero\n")

        assert await log.holds_anything()

    @pytest.mark.parametrize("name", FOREIGN_LOG_FILES)
    async def test_a_foreign_log_file_is_something(
        self, storage: Storage, location, plant: Plant, name
    ):
        plant(location, name, b"foreign")

        assert await storage.log(location).holds_anything()

    async def test_other_files_are_nothing(self, storage: Storage, location, plant: Plant):
        for name in OTHER_FILES:
            plant(location, name, b"other")

        assert not await storage.log(location).holds_anything()

    async def test_a_log_file_among_many_others_is_found(
        self, storage: Storage, location, plant: Plant
    ):
        for number in range(1200):
            plant(location, f"other-{number}", b"")
        plant(location, commit_name(7), b"seven\n")

        assert await storage.log(location).holds_anything()

    async def test_a_probe_passes_again_and_again(self, storage: Storage, location):
        await storage.probe()
        await storage.probe()

        assert not await storage.log(location).holds_anything()

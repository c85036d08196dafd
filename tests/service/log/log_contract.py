"""What every implementation of the `Storage` and `Log` ports does: one suite for all of them.

A test module subclasses `LogContract` and gives it three fixtures:

- `storage`: an empty `Storage`;
- `location`: the URL of a table in it that does not exist yet;
- `plant`: `plant(location, name, content)` puts an object into the table's `_delta_log` as a
  writer does that knows nothing of the service.
"""

import asyncio
import random
import time

import pytest

from tests.service.log.staged_contract import Plant, StagedContract
from tidegate_protocol.log.content import whole
from tidegate_protocol.log.file_names import commit_name
from tidegate_service.core.errors import StorageUnknown
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import DatedFile, Log, Storage, UnreadableFile

RACERS = 16
PATIENCE_S = 60.0
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
    "00000000000000000004.crc",
    "_last_checkpoint",
    "_sidecars/016ae953-37a9-438e-8683-9a9a4a79a395.parquet",
    "_staged_commits/00000000000000000000.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
    "_commits/00000000000000000001.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json",
]
OTHER_FILES = [
    "README.md",
    "0.json",
    "00000000000000000000.json.tmp",
    ".00000000000000000000.json.crc",
    "_other/00000000000000000000.json",
]


UNUSUAL_NAMES = [
    "two words",
    "schön",
    "日本",
    "100%",
    "a%2Fb",
    "a+b=c,d",
    "[x]{y}",
    "~t",
    "t ",
    "x:y",
    "it's & <more>",
    "a*b",
]


async def listed(log: Log) -> list[LogEntry]:
    return [entry async for batch in log.entries() for entry in batch]


async def settled(log: Log, content: bytes) -> PutResult | None:
    """What a put of version 0 came to; None where it was written by one whose answer was lost.

    Stores make racers for one name wait for each other, and some longer than a put may take."""
    try:
        return await log.put_if_absent(0, content)
    except StorageUnknown:
        async with asyncio.timeout(PATIENCE_S):
            while (found := await log.read(0)) is None:
                continue
        return None if found == content else PutResult.EXISTS


class LogContract(StagedContract):
    """Subclassed by the tests of each implementation; see the module's text."""

    pytestmark = pytest.mark.anyio

    @pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
    async def test_a_version_is_read_as_it_was_put(self, storage: Storage, location, content):
        log = storage.log(location)

        assert await log.put_if_absent(0, content) is PutResult.CREATED

        for reader in (log, storage.log(location)):
            found = await reader.read(0)
            assert found is not None
            assert whole(found) == content
            assert await reader.holds(0)

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

        assert (await log.read(0), await log.holds(0)) == (None, False)
        await log.put_if_absent(0, b"zero\n")
        assert (await log.read(1), await log.holds(1)) == (None, False)

    async def test_it_has_the_date_that_a_listing_says(self, storage: Storage, location):
        log = storage.log(location)
        assert await log.read_dated(0) is None
        before = time.time()
        await log.put_if_absent(0, b"zero\n")

        found = await log.read_dated(0)

        (entry,) = await listed(log)
        assert found == DatedFile(b"zero\n", entry.modified_ms)
        # The store's clock may count in whole seconds.
        assert abs(found.modified_ms / 1000 - before) < 60

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
            *(settled(log, content) for log, content in zip(logs, contents, strict=True))
        )

        landed = await logs[0].read(0)
        assert landed in contents
        winner = contents.index(landed)
        expected = [PutResult.EXISTS] * RACERS
        expected[winner] = results[winner]
        assert results == expected
        assert results[winner] in (PutResult.CREATED, None)

    async def test_versions_are_put_in_order(self, storage: Storage, location):
        log = storage.log(location)
        commits = [(version, b"%d\n" % version * version) for version in range(40)]

        assert await log.put_in_order(commits, within_s=PATIENCE_S) == [PutResult.CREATED] * 40

        assert [await log.read(version) for version in range(41)] == [
            *(content for _, content in commits),
            None,
        ]

    async def test_the_first_that_is_taken_ends_it(self, storage: Storage, location):
        log = storage.log(location)
        await log.put_if_absent(0, b"zero\n")
        await log.put_if_absent(3, b"three\n")
        commits = [(version, b"ours\n") for version in range(1, 6)]

        results = await log.put_in_order(commits, within_s=PATIENCE_S)

        assert results == [PutResult.CREATED, PutResult.CREATED, PutResult.EXISTS]
        found = [await log.read(version) for version in range(6)]
        assert found == [b"zero\n", b"ours\n", b"ours\n", b"three\n", None, None]

    async def test_none_is_begun_when_the_time_is_over(self, storage: Storage, location):
        log = storage.log(location)
        commits = [(version, b"%d\n" % version) for version in range(200)]
        results = await log.put_in_order(commits, within_s=0.0)
        assert 1 <= len(results) < 200
        assert await log.read(len(results) - 1) is not None
        assert await log.read(len(results)) is None

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

    async def test_the_version_that_may_be_there_is_nothing(
        self, storage: Storage, location, plant: Plant
    ):
        log = storage.log(location)
        plant(location, commit_name(7), b"seven\n")
        assert not await log.holds_anything(but_version=7)
        assert await log.holds_anything(but_version=0)

        plant(location, commit_name(8), b"eight\n")
        assert await log.holds_anything(but_version=7)

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

    async def test_an_empty_log_has_no_entries(self, storage: Storage, location):
        assert await listed(storage.log(location)) == []

    async def test_entries_are_the_files_in_the_order_of_their_bytes(
        self, storage: Storage, location, plant: Plant
    ):
        names = [*FOREIGN_LOG_FILES, *OTHER_FILES, *UNUSUAL_NAMES]
        before = time.time()
        for number, name in enumerate(names):
            plant(location, name, b"x" * number)

        entries = await listed(storage.log(location))

        direct = {name: number for number, name in enumerate(names) if "/" not in name}
        assert [entry.name for entry in entries] == sorted(direct, key=str.encode)
        assert {entry.name: entry.size for entry in entries} == direct
        # The store's clock may count in whole seconds.
        assert all(abs(entry.modified_ms / 1000 - before) < 60 for entry in entries)

    async def test_more_entries_than_a_page_come_each_once(
        self, storage: Storage, location, plant: Plant
    ):
        names = [commit_name(version) for version in range(2300)]
        for name in names:
            plant(location, name, b"")

        batches = [[e.name for e in batch] async for batch in storage.log(location).entries()]

        assert [name for batch in batches for name in batch] == names
        assert max(map(len, batches)) <= 1000

    async def test_what_comes_behind_a_version_is_listed_alone(
        self, storage: Storage, location, plant: Plant
    ):
        checkpoint = "00000000000000000003.checkpoint.parquet"
        names = [*(commit_name(version) for version in (1, 2, 4)), checkpoint, "_last_checkpoint"]
        for name in (*names, "_sidecars/a.parquet"):
            plant(location, name, b"x")
        log = storage.log(location)

        behind = {
            version: [e.name async for batch in log.entries(behind=version) for e in batch]
            for version in (0, 2, 3, 9)
        }

        assert behind[0] == sorted(names)
        assert behind[2] == [checkpoint, commit_name(4), "_last_checkpoint"]
        assert behind[3] == [commit_name(4), "_last_checkpoint"]
        assert behind[9] == ["_last_checkpoint"]

    @pytest.mark.parametrize("name", UNUSUAL_NAMES)
    async def test_a_file_of_any_name_is_read(self, storage: Storage, location, plant: Plant, name):
        plant(location, name, b"content\n")

        assert await storage.log(location).read_file(name) == b"content\n"

    async def test_a_file_that_is_not_there_is_none(self, storage: Storage, location):
        log = storage.log(location)
        assert await log.read_file("_last_checkpoint") is None
        await log.put_if_absent(0, b"zero\n")
        assert await log.read_file("_last_checkpoint") is None

    @pytest.mark.parametrize(
        "name", ["", ".", "..", "a/b", "../_delta_log/a", "/a", "_sidecars/", "_sidecars/../a"]
    )
    async def test_no_file_outside_the_log_is_read(self, storage: Storage, location, name):
        await storage.log(location).put_if_absent(0, b"zero\n")

        with pytest.raises(UnreadableFile):
            await storage.log(location).read_file(name)

    @pytest.mark.parametrize("name", [name for name in UNUSUAL_NAMES if "%2F" not in name])
    async def test_a_table_may_have_any_name(self, storage: Storage, location, name):
        log = storage.log(f"{location}/{name}")

        assert await log.put_if_absent(0, b"zero\n") is PutResult.CREATED
        assert await log.read(0) == b"zero\n"
        assert [entry.name for entry in await listed(log)] == [commit_name(0)]
        assert await listed(storage.log(f"{location}/{name}_2")) == []

    async def test_a_probe_passes_again_and_again(self, storage: Storage, location):
        await storage.probe()
        await storage.probe()

        assert not await storage.log(location).holds_anything()

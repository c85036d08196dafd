"""kill -9 in the middle of each kind of upkeep: readers go on, and the next run ends what was
begun. Tests of each kind end it before and after each of its steps, in one process."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.builders.flights import add, remove
from tests.servers.postgres import cloned
from tests.service.process.killed.keeping import Keeper, Kept, keeper, wait_for
from tidegate_service.core.observe.faults import (
    ChecksumStep,
    CleanUpStep,
    CompactionStep,
    ExpiryStep,
    ManifestStep,
    Side,
    VacuumStep,
)
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.index.embedded.server import EmbeddedPostgres

CLEAN_UP, EXPIRY = UpkeepKind.CLEAN_UP.value, UpkeepKind.EXPIRED_VERSIONS.value
COMPACTION, CHECKSUM = UpkeepKind.COMPACTION.value, UpkeepKind.CHECKSUM.value
MANIFESTS = "hook:symlink-manifests"
WITH_MANIFESTS = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
OLD_S = 30 * 24 * 3600


@pytest.fixture(scope="module")
def keeping(
    postgres_server: EmbeddedPostgres,
    migrated_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Keeper]:
    with (
        cloned(postgres_server.url, migrated_template) as url,
        keeper(url, tmp_path_factory.mktemp("keeping")) as made,
    ):
        yield made


def aged(keeping: Keeper) -> Kept:
    """The versions 0 to 9, of which 0 to 6 are forty days old, and checkpoints of 3, 5 and 8."""
    table = keeping.create()
    for version in range(1, 10):
        table.commit(add(f"month=5/{version}.parquet"))
        if version in (3, 5, 8):
            table.checkpoint()
    table.settled(CLEAN_UP)
    table.settled(EXPIRY)
    table.age(range(7), days=40)
    return table


def read(table: Kept, *, first: int) -> None:
    """By deltalake, at every version from a checkpoint on: version n has n files."""
    for version in range(first, 10):
        assert len(DeltaTable(table.folder, version=version).file_uris()) == version


def test_clean_up(keeping):
    table = aged(keeping)
    table.killed_at(CleanUpStep.L3_REMOVE, Side.AFTER, lambda: table.make_due(CLEAN_UP))
    # Whatever is left of what has expired, readers begin at a checkpoint.
    read(table, first=5)
    assert table.versions == list(range(table.versions[0], 10))
    table.restarted()
    table.done_again(CLEAN_UP)
    assert table.versions == [5, 6, 7, 8, 9]
    read(table, first=5)


def test_what_leaves_the_index(keeping):
    table = aged(keeping)
    table.done_again(CLEAN_UP)
    table.killed_at(ExpiryStep.DROP_VERSIONS, Side.AFTER, lambda: table.make_due(EXPIRY))
    table.restarted()
    assert table.head["first_version"] in (0, 5)
    table.done_again(EXPIRY)
    assert (table.head["first_version"], table.head["latest_version"]) == (5, 9)
    rows = keeping.sql("SELECT min(version) FROM commits WHERE table_id = %s", table.id)
    assert rows == [(5,)]
    read(table, first=5)


def test_compaction(keeping):
    table = keeping.create()
    table.commit(*(add(f"month=5/first-{number}.parquet") for number in range(50)))
    table.checkpoint()
    table.settled(COMPACTION)

    def begin() -> None:
        for number in range(3):
            table.commit(add(f"month=5/{number}.parquet"))

    table.killed_at(CompactionStep.COMPACTED_PUT, Side.BEFORE, begin)
    assert len(DeltaTable(table.folder).file_uris()) == 53
    table.restarted(COMPACTION)
    wait_for("there is a compacted file", lambda: bool(compacted(table)))
    assert len(DeltaTable(table.folder).file_uris()) == 53
    # What is there is whole: one that was cut off has no name.
    assert all(file.read_bytes().endswith(b"}\n") for file in compacted(table))


def compacted(table: Kept) -> list[Path]:
    return list(table.log.glob("*.compacted.json"))


@pytest.mark.parametrize("side", list(Side))
def test_checksums(keeping, side):
    table = keeping.create()
    table.settled(CHECKSUM)

    def begin() -> None:
        table.commit(add("month=5/a.parquet"))

    table.killed_at(ChecksumStep.CHECKSUM_PUT, side, begin)
    table.restarted(CHECKSUM)
    checksum = table.log / f"{1:020d}.crc"
    wait_for("the newest version has a checksum", checksum.exists)
    assert b'"numFiles":1' in checksum.read_bytes()


def test_symlink_manifests(keeping):
    table = keeping.create(properties=WITH_MANIFESTS)
    gone = add("month=6/b.parquet", "6")
    table.commit(add("month=5/a.parquet"), gone)
    wait_for("there are manifests", lambda: set(manifests(table)) == {"month=5", "month=6"})
    table.settled(MANIFESTS)

    def begin() -> None:
        changed = add("month=5/c.parquet"), remove("month=6/b.parquet", "6")
        table.commit(*changed, read_version=1)

    table.killed_at(ManifestStep.REMOVE, Side.BEFORE, begin)
    table.restarted(MANIFESTS)
    expected = {"month=5": {"a.parquet", "c.parquet"}}
    wait_for("manifests are of the newest version", lambda: manifests(table) == expected)


def manifests(table: Kept) -> dict[str, set[str]]:
    """The names of the files that each partition's manifest lists."""
    found = (table.folder / "_symlink_format_manifest").rglob("manifest")
    return {
        file.parent.name: {url.rpartition("/")[2] for url in file.read_text().split()}
        for file in found
    }


def test_vacuum(keeping):
    table = keeping.create()
    live = {f"month=5/{number}.parquet" for number in range(3)}
    table.commit(*(add(path) for path in sorted(live)))
    for path in (*live, *(f"month={number}/orphan.parquet" for number in range(5))):
        plant(table, path)
    table.killed_at(VacuumStep.V3_DELETE, Side.AFTER, lambda: vacuum(table))
    assert live <= data_files(table)
    assert len(DeltaTable(table.folder).file_uris()) == 3
    table.restarted()
    answer = vacuum(table)
    assert answer is not None
    assert '"ended"' in answer.splitlines()[-1], answer
    assert data_files(table) == live


def vacuum(table: Kept) -> str | None:
    """The lines of the answer; None where it broke off."""
    answer = table.post("vacuum", {})
    return None if answer is None else answer.raise_for_status().text


def plant(table: Kept, path: str) -> None:
    file = table.folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"12345")
    at_s = time.time() - OLD_S
    os.utime(file, (at_s, at_s))


def data_files(table: Kept) -> set[str]:
    files = (each.relative_to(table.folder) for each in table.folder.rglob("*.parquet"))
    return {str(file) for file in files if file.parts[0] != "_delta_log"}

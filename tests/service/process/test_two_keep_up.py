"""Two instances at once that do all upkeep of the same tables, while both take commits to them:
readers of the log meet what was committed, and nothing is done twice to anybody's harm."""

import itertools
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.builders.flights import add, proposal, remove
from tests.servers.postgres import cloned
from tests.service.instances import instances
from tests.service.process.killed.keeping import Keeper, Kept, wait_for
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.settings import Settings

MANIFESTS = {"delta.compatibility.symlinkFormatManifest.enabled": "true"}
V2 = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "3"}
SELDOM = {"delta.checkpointInterval": "100"}
CLEAN_UP, EXPIRY = UpkeepKind.CLEAN_UP.value, UpkeepKind.EXPIRED_VERSIONS.value
EACH = 12
MANY = 5_000


@pytest.fixture(scope="module")
def keepers(
    postgres_server: EmbeddedPostgres,
    migrated_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[list[Keeper]]:
    with cloned(postgres_server.url, migrated_template) as url:
        settings = Settings(
            database_url=url,
            data_dir=tmp_path_factory.mktemp("keepers"),
            port=0,
            log_level="error",
            publish_interval_seconds=0.1,
            upkeep_share=1.0,
            commits_to_compact=3,
        )
        with instances(settings, settings) as both:
            yield [Keeper(instance, url) for instance in both]


class Commits:
    """What two instances commit to a table at once, and what the table is at each version."""

    def __init__(self, keepers: list[Keeper], table: Kept) -> None:
        self._tables = [Kept(each, table.name, table.id, table.folder) for each in keepers]
        self._changed: dict[int, tuple[set[str], set[str]]] = {}
        self._numbers = itertools.count()

    def make(self, number: int, *, removing: bool = True) -> None:
        """So many files by each instance, of which it removes each third again."""
        with ThreadPoolExecutor(len(self._tables)) as threads:
            for done in [
                threads.submit(self._commit, table, number, removing=removing)
                for table in self._tables
            ]:
                done.result()

    def add(self, *paths: str) -> None:
        self._send(self._tables[0], {*paths}, set())

    def snapshot(self, version: int) -> set[str]:
        live: set[str] = set()
        for _, (added, removed) in sorted(self._changed.items())[:version]:
            live = (live - removed) | added
        return live

    def _commit(self, table: Kept, number: int, *, removing: bool) -> None:
        for each in range(number):
            path = f"month=5/{next(self._numbers)}.parquet"
            self._send(table, {path}, set())
            if removing and each % 3 == 0:
                self._send(table, set(), {path}, operation="DELETE", read_version=self.latest)

    def _send(self, table: Kept, added: set[str], removed: set[str], **fields: object) -> None:
        actions = [*map(add, sorted(added)), *map(remove, sorted(removed))]
        body = proposal(*actions, transaction_id=str(uuid.uuid4()), **fields)
        answer = table.post("commits", body)
        assert answer is not None
        assert answer.status_code == 201, answer.text
        self._changed[answer.json()["version"]] = added, removed

    @property
    def latest(self) -> int:
        return max(self._changed)


def read(table: Kept, version: int) -> set[str]:
    """By deltalake, from the log alone."""
    found = DeltaTable(table.folder, version=version)
    return set(found.get_add_actions()["path"].to_pylist())


def check(keepers: list[Keeper], table: Kept, commits: Commits) -> None:
    """Every version that is left is what was committed, and both find index and log the same."""
    assert table.versions == list(range(table.versions[0], commits.latest + 1))
    for version in table.versions:
        assert read(table, version) == commits.snapshot(version), version
    for keeper in keepers:
        url = f"{keeper.instance.api}/tables/{table.name}/verify"
        found = keeper.client.get(url).raise_for_status().json()
        assert found["differences"] == []


def begun_again(table: Kept) -> bool:
    """Have clean-up be due, whoever is at it: the other begins it as well."""
    table.make_due(CLEAN_UP)
    return True


@pytest.mark.parametrize("properties", [MANIFESTS, V2], ids=["manifests", "v2"])
def test_all_kinds(keepers, properties):
    table = keepers[0].create(properties=properties)
    commits = Commits(keepers, table)
    commits.make(EACH)
    table.checkpoint()
    cut = commits.latest
    commits.make(2)
    table.age(range(cut + 2), days=40)
    with ThreadPoolExecutor(1) as threads:
        going_on = threads.submit(commits.make, EACH)
        wait_for("the log is cleaned up", lambda: begun_again(table) and table.versions[0] >= cut)
        # Whoever lost its claim could not note how far it came.
        table.done_again(CLEAN_UP)
        table.done_again(EXPIRY)
        going_on.result()
    assert table.head["first_version"] == table.versions[0]
    newest = table.log / f"{commits.latest:020d}.crc"
    wait_for("the newest version has a checksum", newest.exists)
    check(keepers, table, commits)
    if properties is MANIFESTS:
        live = {path.rpartition("/")[2] for path in commits.snapshot(commits.latest)}
        wait_for("the manifest is of the newest version", lambda: manifest(table) == live)


def manifest(table: Kept) -> set[str]:
    file = table.folder / "_symlink_format_manifest/month=5/manifest"
    return {url.rpartition("/")[2] for url in file.read_text().split()}


def test_parts_that_are_taken_over(keepers):
    """By whichever of the two comes first, time and again."""
    table = keepers[0].create(properties=SELDOM)
    commits = Commits(keepers, table)
    commits.add(*(f"month=5/first-{number}.parquet" for number in range(MANY)))

    def of_version(behind: int) -> list[Path]:
        """The first part of the checkpoints behind a version that have several."""
        found = sorted(table.log.glob(f"*.checkpoint.{1:010d}.*"))
        return [file for file in found if int(file.name[:20]) > behind]

    table.checkpoint()
    while len(of_version(0)) < 2:
        commits.make(20, removing=False)
    first, *others = of_version(0)
    assert all(other.samefile(first) for other in others)
    for version in table.versions[-3:]:
        assert read(table, version) == commits.snapshot(version)

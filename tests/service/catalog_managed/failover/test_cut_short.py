"""A database that was set back, behind a clean-up of the log that was cut short.

An object store deletes many files at a time: any part of what was to go may be left, older
checkpoints among it.
"""

import psycopg
import pytest

from tests.service.catalog_managed.asking import calls, check_landed, files_of
from tests.service.catalog_managed.restoring import (
    Backups,
    body,
    commit,
    given_up,
    publish,
)
from tests.service.log.foreign.foreign import FOREIGN_ADD, foreign_commit
from tests.service.upkeep.aged import LogOf, rows_of
from tests.service.world import World
from tidegate_service.core.catalog_managed.ratified_log import UnknownIds
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.maintenance.rebuilding import Rebuilt
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

NAMES = "abcdefgh"
CUT = 6
"""The version that the log is cleaned up to. It has a checkpoint of version 3, too."""


async def whole(now: World, table: TableRecord) -> LogOf:
    """The log of the table, which goes on to version 8, as it is before the clean-up."""
    head = await get_table(now.context, table.id)
    await commit(now, table, *NAMES[head.latest_version :])
    await publish(now, table)
    log = LogOf(now, table)
    for version in (3, CUT):
        log.checkpoint(version, await rows_of(now.context.index, table, version))
    return log


async def check_whole(
    theirs: list[object], then: World, table: TableRecord, unknown: UnknownIds | None
) -> None:
    """Nothing of what was published is lost but the ids of the versions that were told."""
    assert (await get_table(then.context, table.id)).latest_version == 8
    assert await files_of(then, table) == theirs
    gone = unknown and range(unknown.first_version, unknown.last_version + 1)
    landed = {name: version for version, name in enumerate(NAMES, start=1)}
    await check_landed(then, table, {n: v for n, v in landed.items() if v not in (gone or ())})
    assert (await verify_table(then.context, table.id)).differences == ()


class At:
    """A table with a backup of when version 1 was published. Of its log, versions up to `gone` are
    gone: the checkpoint of version 3 is left."""

    async def make(self, made: Backups, url: str, *, gone: int = 3) -> "At":
        self.now = made.instance(url)
        self.table = await self.now.create(catalog_managed=True)
        await commit(self.now, self.table, "a")
        await publish(self.now, self.table)
        self.old_url = await made.copy(url)
        self.log = await whole(self.now, self.table)
        self.files = await files_of(self.now, self.table)
        for version in range(gone + 1):
            self.now.log_file(self.table, version).unlink()
        self.then = made.instance(self.old_url)
        return self

    async def damage(self, version: int) -> None:
        """Take away a sidecar of the checkpoint. What it begins with can be read."""
        rows = await rows_of(self.now.context.index, self.table, version)
        self.log.path(version, "checkpoint.parquet").unlink()
        self.log.v2(version, rows, form="json", sidecars=1)
        for sidecar in (self.log.folder / "_sidecars").iterdir():
            sidecar.unlink()

    async def rebuilt(self) -> Rebuilt:
        with pytest.raises(TableQuarantined, match="was set back"):
            await propose(self.then.context, self.table.id, body("new"))
        return await rebuild(self.then.context, self.table.id)

    async def given_up(self) -> None:
        with pytest.raises(TableQuarantined):
            await propose(self.then.context, self.table.id, body("new"))
        with psycopg.connect(self.old_url) as connection:
            assert connection.execute(given_up(self.table)[1]).rowcount == 1
        await forget_table(self.then.context, self.table.id)

    async def register(self, *, by_marks: bool = False) -> TableRecord:
        table = self.table
        asked = RegisterTable(
            name=table.name, location=table.location, catalog_managed=True, by_marks=by_marks
        )
        return (await register_table(self.then.context, asked))[0]


@calls("a commit", "forgetting it")
async def test_nothing_is_acknowledged(made, database_url, call):
    at = await At().make(made, database_url)
    with pytest.raises(TableQuarantined, match="cleaned up to version 6"):
        await call(at.then, at.table)


async def test_a_checkpoint_without_its_commit_is_passed_over(made, database_url):
    """All later commits follow it, and a later checkpoint has its own."""
    at = await At().make(made, database_url)
    unknown = UnknownIds(first_version=2, last_version=3)
    done = await at.rebuilt()
    assert (done.lost, done.unknown, done.table.first_version) == ((), unknown, CUT)
    await check_whole(at.files, at.then, at.table, unknown)
    assert (await propose(at.then.context, at.table.id, body("new"))).record.version == 9
    await publish(at.then, at.table)
    # What was unknown once is no news; the older checkpoint is as good as any now.
    done = await rebuild(at.then.context, at.table.id)
    assert (done.lost, done.unknown, done.table.first_version) == ((), None, 3)
    landed = {name: version for version, name in enumerate(NAMES, start=1) if version > 3}
    await check_landed(at.then, at.table, {"a": 1, "new": 9, **landed})
    assert (await verify_table(at.then.context, at.table.id)).differences == ()


async def test_so_it_is_by_a_registration(made, database_url, caplog):
    at = await At().make(made, database_url)
    await at.given_up()
    back = await at.register(by_marks=True)
    assert (back.first_version, back.latest_version) == (CUT, 8)
    assert "transaction ids are unknown" in caplog.text
    await check_whole(at.files, at.then, back, UnknownIds(first_version=2, last_version=3))


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("rebuild", "commit of others"),
        ("rebuild", "sidecar that is gone"),
        ("rebuild", "no checkpoint"),
        ("register", "commit of others"),
    ],
)
async def test_one_that_cannot_be_taken_in_is_passed_over(made, database_url, call, what):
    at = await At().make(made, database_url, gone=2)
    if what == "commit of others":
        foreign_commit(at.now, at.table, 3, FOREIGN_ADD)
    elif what == "sidecar that is gone":
        await at.damage(3)
    else:
        at.log.path(3, "checkpoint.parquet").write_bytes(b"PAR1")
    if call == "rebuild":
        table = (await at.rebuilt()).table
    else:
        await at.given_up()
        table = await at.register()
    assert table.first_version == CUT
    assert await files_of(at.then, table) == at.files
    if what != "commit of others":
        unknown = UnknownIds(first_version=2, last_version=2)
        await check_whole(at.files, at.then, table, unknown)


async def test_without_one_that_can_be_it_is_refused(made, database_url):
    at = await At().make(made, database_url)
    await at.damage(3)
    await at.damage(CUT)
    with pytest.raises(TableQuarantined, match="was set back"):
        await propose(at.then.context, at.table.id, body("new"))
    with pytest.raises(Refused, match=r"gone|missing"):
        await rebuild(at.then.context, at.table.id)
    await at.given_up()
    with pytest.raises(Refused, match="is missing"):
        await at.register()

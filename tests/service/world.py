"""One instance's world for tests of the use cases: real Postgres, real local storage."""

import itertools
import json
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from tests.builders import by_x
from tidegate_service.core.access.locations import LocationPolicy
from tidegate_service.core.commit.group import run_group
from tidegate_service.core.commit.queue.commit_queue import CommitQueue
from tidegate_service.core.context import Context
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.storage import Storage
from tidegate_service.core.tables.create import CreateTable, create_table
from tidegate_service.core.tables.delete_forgotten import delete_forgotten

_names = itertools.count()


@dataclass(frozen=True, slots=True)
class World:
    context: Context

    def limited(self, **limits: int | float) -> Self:
        """The same world with other limits."""
        limited = replace(self.context.limits, **limits)
        return replace(self, context=replace(self.context, limits=limited))

    def over(self, index: Index) -> Self:
        """The same world over another index."""
        return replace(self, context=replace(self.context, index=index))

    async def create(self, *, catalog_managed: bool = False, **request: object) -> TableRecord:
        """A table partitioned by the integer `x`, under a name of its own."""
        asked = {
            "name": f"main.test.t{next(_names)}",
            "schema": by_x.SCHEMA,
            "partition_columns": ("x",),
            "catalog_managed": catalog_managed,
            **request,
        }
        return await create_table(self.context, CreateTable(**asked))

    async def lose(self, table: TableRecord) -> None:
        """Take everything from the index that it knows of the table, as if it had never heard of
        it; its files stay."""
        await forget_table(self.context, table.id)
        await delete_forgotten(self.context, table.id)

    def checked_long_ago(self) -> None:
        """The instance's checks of plain tables' logs are as old as they may be."""
        checks = self.context.log_checks
        for table_id, check in checks._made.items():
            checks._made[table_id] = replace(check, at_ms=check.at_ms - checks.quiet_ms)

    def log_folder(self, table: TableRecord) -> Path:
        return Path(table.location.removeprefix("file://")) / "_delta_log"

    def log_file(self, table: TableRecord, version: int) -> Path:
        return self.log_folder(table) / f"{version:020d}.json"

    def actions_of(self, table: TableRecord, version: int) -> list[dict[str, object]]:
        lines = self.log_file(table, version).read_text().splitlines()
        return [json.loads(line) for line in lines]


def make_world(index: Index, storage: Storage, warehouse: str, **fields: Any) -> World:
    return World(
        Context(
            index=index,
            storage=storage,
            locations=LocationPolicy(warehouse=warehouse),
            new_id=lambda: str(uuid.uuid4()),
            monotonic_s=time.monotonic,
            now_ms=lambda: time.time_ns() // 1_000_000,
            commit=CommitQueue(run_group).commit,
            **fields,
        )
    )

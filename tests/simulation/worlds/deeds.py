"""What happens to a world beside its clients' work: trouble, other writers, and administrators."""

import json
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from tests.simulation.ports.server import Backup
from tests.simulation.ports.store import Folder
from tests.simulation.worlds.instance import EPOCH_MS, LOCATIONS, Instance, Shared
from tests.simulation.worlds.plan import Deed
from tests.simulation.worlds.works import APPENDED, TABLE, nullable, parsed, schema
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.codec import encode
from tidegate_protocol.log.file_names import CheckpointFile, CommitFile, commit_name, parse
from tidegate_protocol.replay.snapshot import Snapshot
from tidegate_service.core.context import Context
from tidegate_service.core.errors import TableExists
from tidegate_service.core.log.used_places import SIGNED_FOR_MS
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.ports.records import QuarantineCause
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.tables.create import CreateTable, create_table
from tidegate_service.core.tables.register import RegisterTable, register_table

PLACE = LOCATIONS.default(TABLE)
STOPPED_S = (0.5, 6.0, 14.0, 40.0, 300.0, 300.0)
DOWN_S = (0.1, 3.0, 20.0)
NOTICED_S = (0.0, 0.5, 10.0)
SKEWS_MS = (-3_600_000, 7_000, 86_400_000)
RETENTION_S = 900.0
"""Clean-up leaves commits alone that are younger. The premise is that this is longer than a PUT may
be on its way, and than an instance may be stopped (docs/maintenance.md)."""
MANY = 24
LEFT = 0.25
"""How likely a clean-up leaves a commit that it could take."""
PUBLISHED_S = 5.0
"""After so long a restore is tried again that met somebody who was publishing."""


def creation(*, catalog_managed: bool) -> CreateTable:
    return CreateTable(
        name=TABLE,
        schema=schema(nullable=False),
        partition_columns=("p",),
        catalog_managed=catalog_managed,
    )


class Deeds:
    """Does what a plan says; `under_way` is how many administrators wait, for their answer or for a
    moment in which they may do it."""

    def __init__(self, shared: Shared, instances: list[Instance]) -> None:
        self._shared = shared
        self._instances = instances
        self._foreign = 0
        self.under_way = 0
        self._backup: Backup | None = None
        self.restored: list[tuple[float, set[str]]] = []
        """When the database went back, and the ids that only it had held."""
        self.begun: dict[str, str | None] = {}
        """The tables that it went back to, and the SHA-256 of their version 0."""

    def schedule(self) -> None:
        hooks, taken = self._shared.scheduler.hooks, 0
        for step, deed in self._shared.plan.deeds:
            taken = max(step, taken + 1)
            hooks[taken] = partial(self.do, deed)

    def do(self, deed: Deed) -> None:
        self._shared.note("now ", deed.value)
        match deed:
            case Deed.CRASH:
                self._crash()
            case Deed.STOP:
                self._stop()
            case Deed.END_SESSIONS:
                self._shared.server.end_all(restarts=self._among("restarts", 2) == 0)
            case Deed.CLOCK:
                instance = self._any_instance()
                instance.clock.skew_ms = SKEWS_MS[self._among("skew", len(SKEWS_MS))]
            case Deed.FOREIGN:
                self._write_past(1)
            case Deed.FOREIGN_NULLABLE:
                self._write_past(1, nullable_column=True)
            case Deed.FOREIGN_MANY:
                self._write_past(MANY)
            case Deed.CLEAN_UP:
                self._clean_up()
            case Deed.DELETE:
                # Nor is about to make one of it.
                if self._shared.server.find(TABLE) is None and not self.under_way:
                    self._shared.store.delete(PLACE)
            case Deed.BACKUP:
                self.back_up()
            case Deed.RESTORE | Deed.BRING_BACK:
                self._restore(deed)
            case _:
                self._administrate(deed)

    def _among(self, what: str, count: int) -> int:
        return self._shared.choices.among(f"deeds.{what}", count)

    def _any_instance(self) -> Instance:
        return self._instances[self._among("instance", len(self._instances))]

    def _crash(self) -> None:
        instance = self._any_instance()
        if not instance.is_up:
            return
        instance.kill(noticed_s=NOTICED_S[self._among("noticed", len(NOTICED_S))])
        down_s = DOWN_S[self._among("down", len(DOWN_S))]
        self._shared.scheduler.after(down_s, instance.restart)

    def _stop(self) -> None:
        instance = self._any_instance()
        instance.stop()
        stopped_s = STOPPED_S[self._among("stopped", len(STOPPED_S))]
        self._shared.scheduler.after(stopped_s, instance.go_on)

    @property
    def _is_publishing(self) -> bool:
        """Whether an instance, or what is left of a dead one, may yet put something into the log
        that it read in the database. The premise is that nobody goes back meanwhile
        (docs/invariants.md)."""
        store = self._shared.store
        return bool(store.late or store.under_way) or any(
            instance.is_publishing for instance in self._instances
        )

    def back_up(self, *, unpublished: bool = False) -> None:
        """Of the database as it is, or would be if nothing had been published yet."""
        server = self._shared.server
        if unpublished:
            for table_id, rows in server.tables.items():
                before = server.tables[table_id] = rows.copy()
                before.record = replace(before.record, published_version=-1)
                before.forgotten_through = -1
        self._backup = server.backup()

    def give_up(self) -> None:
        """By the runbook's statement for a table that cannot be rebuilt."""
        server = self._shared.server
        rows = server.find(TABLE)
        assert rows is not None, "it is quarantined"
        end = rows.record.latest_version
        given_up = server.tables[rows.record.id] = rows.copy()
        given_up.record = replace(
            rows.record, published_version=end, quarantine_cause=QuarantineCause.GIVEN_UP
        )

    def _restore(self, deed: Deed) -> None:
        def again() -> None:
            self.under_way -= 1
            self._restore(deed)

        is_deleted = bool(self._shared.store.former.get(PLACE))
        if self._backup is None or (is_deleted and deed is Deed.RESTORE):
            # Hardly anybody goes back to a table whose folder they have deleted since.
            return
        shared = self._shared
        if shared.plan.catalog_managed and self._is_publishing:
            self.under_way += 1
            shared.scheduler.after(PUBLISHED_S, again)
            return
        self.go_back(self._backup)

    def go_back(self, backup: Backup) -> None:
        """The database as it was, whoever is doing what."""
        shared = self._shared
        in_log = {commit_id(content) for content, _ in shared.store.folder(PLACE).written.values()}
        only_here: set[str] = set()
        for rows in shared.server.tables.values():
            if rows.record.catalog_managed:
                only_here |= rows.ids.keys() - in_log
        shared.server.restore(backup)
        for rows in shared.server.tables.values():
            if rows.record.first_version == 0:
                self.begun[rows.record.id] = rows.commits[0].record.content_sha256
        self.restored.append((shared.scheduler.now, only_here))

    def _write_past(self, count: int, *, nullable_column: bool = False) -> None:
        """As a Delta writer does: after the newest version of the log, unless there is none. One
        that changes the metadata reads it from version 0, which a late PUT may be without."""
        folder = self._shared.store.folders.get(PLACE)
        if folder is None or not folder.files or (nullable_column and 0 not in folder.written):
            return
        for _ in range(count):
            self._foreign += 1
            name = f"foreign-{self._foreign}"
            action = change(folder) if nullable_column else appended(name)
            content = foreign(name, action, EPOCH_MS + int(self._shared.scheduler.now * 1000))
            version = newest(folder) + 1
            while self._shared.store.put(PLACE, version, content) is PutResult.EXISTS:
                version += 1

    def _clean_up(self) -> None:
        folder = self._shared.store.folders.get(PLACE)
        if folder is None or not folder.files:
            return
        end = newest(folder)
        snapshot = snapshot_of(folder, end)
        if snapshot is None or commit_name(end) not in folder.files:
            return
        name = f"{end:020d}.checkpoint.parquet"
        folder.files[name] = b"checkpoint", self._shared.scheduler.now
        folder.checkpoints[name] = [
            action
            for action in (
                snapshot.protocol,
                snapshot.metadata,
                *snapshot.files.values(),
                *snapshot.txns.values(),
                *snapshot.domains.values(),
            )
            if action is not None
        ]
        young = self._shared.scheduler.now - RETENTION_S
        # Not a choice of the world's: that would move what all other seeds come to.
        dice = random.Random(self._shared.plan.seed)
        for version in range(end):
            file = folder.files.get(commit_name(version))
            if file is not None and file[1] > young:
                break
            # Writers delete in any order, and may be cut short.
            if dice.random() < LEFT:
                continue
            folder.files.pop(commit_name(version), None)

    def _administrate(self, deed: Deed, *, again: bool = False) -> None:
        def ended(result: Any, error: BaseException | None) -> None:
            self._shared.note(deed.name, " ended: ", result if error is None else error)
            if is_early(error) and not again:
                # Asked again when the answer says.
                wait_s = SIGNED_FOR_MS / 1000 + 1
                self._shared.scheduler.after(wait_s, repeat)
            else:
                self.under_way -= 1

        def repeat() -> None:
            self.under_way -= 1
            self._administrate(deed, again=True)

        self.under_way += 1
        asked = use_case(deed, catalog_managed=self._shared.plan.catalog_managed)
        self._any_instance().ask(asked, ended)


def use_case(
    deed: Deed, *, catalog_managed: bool, by_marks: bool = False
) -> Callable[[Context], Coroutine[Any, Any, Any]]:
    match deed:
        case Deed.FORGET:
            return lambda context: forget_table(context, TABLE)
        case Deed.REGISTER:
            asked = RegisterTable(
                name=TABLE, location=PLACE, catalog_managed=catalog_managed, by_marks=by_marks
            )
            return lambda context: register_table(context, asked)
        case Deed.REBUILD:
            return lambda context: rebuild_table(context, TABLE)
        case Deed.RELEASE:
            return lambda context: release_table(context, TABLE)
        case Deed.CREATE:
            created = creation(catalog_managed=catalog_managed)
            return lambda context: create_table(context, created)
        case _:
            raise ValueError(f"{deed} is no administrator's")


def is_early(error: BaseException | None) -> bool:
    """Whether the place of a table that was forgotten is waited for."""
    return isinstance(error, TableExists) and "here after" in (error.hint or "")


def newest(folder: Folder) -> int:
    found = [parse(name) for name in folder.files]
    return max(
        (one.version for one in found if isinstance(one, CommitFile | CheckpointFile)), default=-1
    )


def snapshot_of(folder: Folder, end: int) -> Snapshot | None:
    """The table at a version, by all that was ever in its log; None where there is a gap."""
    snapshot = Snapshot()
    for version in range(end + 1):
        written = folder.written.get(version)
        if written is None:
            return None
        snapshot = snapshot.apply(version, parsed(written[0]))
    return snapshot


def appended(name: str) -> bytes:
    body = {
        "path": name,
        "partitionValues": {"p": APPENDED},
        "size": 10,
        "modificationTime": 1,
        "dataChange": True,
    }
    return json.dumps({"add": body}).encode()


def change(folder: Folder) -> bytes:
    first = next(a for a in parsed(folder.written[0][0]) if isinstance(a, Metadata))
    return encode(nullable(first))


def foreign(name: str, action: bytes, at_ms: int) -> bytes:
    info = {"timestamp": at_ms, "operation": "WRITE", "operationParameters": {"by": name}}
    return json.dumps({"commitInfo": info}).encode() + b"\n" + action + b"\n"


def commit_id(content: bytes) -> str | None:
    info = json.loads(content.split(b"\n", 1)[0]).get("commitInfo", {})
    return info.get("txnId") if "tidegate" in info else None

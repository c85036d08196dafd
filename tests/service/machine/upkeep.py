"""Everything but commits: publishing, restarts, reading, rebuilding, registering."""

import itertools
import json
import shutil
from typing import Any

from hypothesis import note

from tests.service.machine import answers, promises
from tests.service.machine.commits import Commits
from tests.service.machine.model import Table, is_odd
from tests.service.machine.rig import Instance
from tests.service.machine.ways import Publishing
from tests.service.machine.wire import Died, die
from tidegate_protocol.base.problems import Code
from tidegate_protocol.ledger.outcomes import LandedCommit
from tidegate_protocol.ledger.state import IdState
from tidegate_protocol.log.codec import encode
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.errors import StorageUnavailable

_copies = itertools.count(1)


class Upkeep(Commits):
    """The rest of what happens to tables and instances."""

    def publish_all(self, instance: Instance) -> None:
        """A round of the publisher leaves nothing unpublished but what is quarantined."""
        self.rig.run(instance.publish())
        for table in self.tables:
            rows, files = self._look(table)
            self.model.published(table, rows, files)
            if not self.model.is_quarantined(table):
                assert rows.head.published_version == rows.head.latest_version
            self.check(table, rows, files)

    def publish_and_fail(self, table: Table, how: Publishing) -> None:
        """A publisher that loses a PUT, or ends on the way."""
        instance: Instance = getattr(self.rig, how.instance)
        instance.script.put = how.put
        if how.dies is not None:
            instance.script.at(*how.dies, die)
        context = instance.context

        async def publish() -> None:
            record = await context.index.table(table.id)
            assert record is not None
            await publish_table(context.index, context.storage, record, faults=context.faults)

        try:
            if not self.model.is_quarantined(table):
                self.rig.run(publish())
        except (Died, StorageUnavailable):
            pass
        finally:
            instance.script.clear()
        rows, files = self._look(table)
        self.model.published(table, rows, files)
        self.check(table, rows, files)

    def restart(self, instance: Instance) -> None:
        self.rig.run(instance.restart())

    def read(self, table: Table, instance: Instance, back: int, ids: list[str]) -> None:
        """What a reader is told, of the head and of a version before it."""
        known = self.model.of(table)
        version = max(known.latest_version - back, 0)
        head, history, *of_version = self.rig.run(self._readings(table, instance, version))
        latest = known.snapshot(known.latest_version)
        assert head["latest_version"] == known.latest_version
        assert head["published_version"] == known.published_version
        assert head["latest_timestamp"] == known.latest_timestamp
        assert latest.metadata is not None
        assert {"metaData": head["metadata"]} == json.loads(encode(latest.metadata))
        assert [entry["version"] for entry in reversed(history)] == [
            commit.version for commit in known.commits
        ]
        for entry, commit in zip(reversed(history), known.commits, strict=True):
            assert entry["timestamp"] == commit.timestamp
            assert entry["transaction_id"] == commit.transaction_id
            assert entry["foreign"] == (commit.body_digest is None)
        _check_version(known.commits[version], *of_version)
        for id_ in ids:
            self._ask(table, instance, id_)
        app = self.rig.run(instance.get(f"/tables/{table.name}/app-transactions/app")).json()
        expected = latest.txns.get("app")
        assert app["version"] == (-1 if expected is None else expected.version)

    async def _readings(self, table: Table, instance: Instance, version: int):
        path = f"/tables/{table.name}"
        head = (await instance.get(path)).json()
        history = (await instance.get(f"{path}/commits", limit=1000)).json()["commits"]
        return head, history, *await self._version(table, instance, version)

    async def _version(
        self, table: Table, instance: Instance, version: int
    ) -> tuple[bytes, dict[str, Any]]:
        path = f"/tables/{table.name}"
        content = (await instance.get(f"{path}/commits/{version}")).content
        scan = await instance.post(f"{path}/scan", {"version": version})
        assert scan.status_code == 200, scan.text
        return content, scan.json()

    def _ask(self, table: Table, instance: Instance, id_: str) -> None:
        path = f"/tables/{table.name}/transactions/{id_}"
        answer = self.rig.run(instance.send("GET", path))
        assert answer is not None
        match self.model.of(table).transaction(id_):
            case LandedCommit(version=version):
                told = answer.json()
                commit = told.pop("commit")
                assert told == {"transaction_id": id_, "state": "committed", "version": version}
                assert (commit["transaction_id"], commit["version"]) == (id_, version)
                assert commit["replayed"]
            case IdState.ABORTED:
                assert answer.json()["state"] == "aborted"
            case None:
                answers.check_problem(answer, Code.TRANSACTION_NOT_FOUND)

    def rebuild(self, table: Table, instance: Instance) -> None:
        """The index made anew from the log says what it said before (I13)."""
        answer = self.rig.run(instance.send("POST", f"/tables/{table.name}/rebuild"))
        assert answer is not None
        rows, files = self._look(table)
        settled = self.model.settled(table).tables[table.id]
        odd = any(is_odd(settled, version) for version in settled.strays)
        if answer.status_code == 200:
            assert settled.quarantine_reason is None or table.managed
            self.model.took_in(table, rows)
            self.model.ended_quarantine(table, rows)
            self.model.published(table, rows, files)
            self.model.redated(table, rows)
        else:
            assert answer.status_code in (409, 422), answer.text
            assert settled.quarantine_reason is not None or odd, answer.text
            # A catalog-managed table is closed by that.
            self.model.took_in(table, rows)
        self.check(table, rows, files)

    @property
    def lagging(self) -> list[Table]:
        """The tables whose log is behind their index."""
        return [
            table
            for table in self.tables
            if self.model.of(table).published_version < self.model.of(table).latest_version
        ]

    def register_copy(self, table: Table, instance: Instance) -> Table | None:
        """A copy of a plain table's log under another name is the same table."""
        if table.managed:
            return None
        settled = self.model.settled(table).tables[table.id]
        location = self.rig.warehouse / "copies" / f"copy{next(_copies)}"
        shutil.copytree(table.location / "_delta_log", location / "_delta_log")
        body = {"name": self.name(), "location": f"file://{location}"}
        answer = self.rig.run(instance.post("/tables/register", body))
        if settled.quarantine_reason is not None:
            assert answer.status_code == 422, answer.text
            return None
        assert answer.status_code == 201, answer.text
        made = answer.json()
        copy = Table(name=made["name"], id=made["id"], location=location, managed=False)
        rows, files = self._look(copy)
        self.model.registered(copy, files, rows)
        self.tables.append(copy)
        self.check(copy, rows, files)
        return copy

    def end(self) -> None:
        """The last look: every version of every table."""
        for table in self.tables:
            self.read(table, self.rig.a, 0, [])
            for commit in self.model.of(table).commits:
                found = self.rig.run(self._version(table, self.rig.b, commit.version))
                _check_version(commit, *found)
            self._verify(table)
            self.check(table)

    def _verify(self, table: Table) -> None:
        found = self.rig.run(self.rig.a.get(f"/tables/{table.name}/verify")).json()
        known = self.model.of(table)
        odd = known.quarantine_reason is not None or known.strays
        assert found["consistent"] or odd, found
        note(f"{table}: {known.latest_version + 1} versions, {len(known.transactions)} ids")


def _check_version(commit: LandedCommit, content: bytes, scan: dict[str, Any]) -> None:
    assert content == commit.content
    assert (scan["version"], scan["timestamp"]) == (commit.version, commit.timestamp)
    promises.scanned(scan["files"], commit.snapshot)
    assert commit.snapshot.protocol is not None
    assert {"protocol": scan["protocol"]} == json.loads(encode(commit.snapshot.protocol))

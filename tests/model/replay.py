"""Schedules of the model of a plain table on the real use cases, Postgres and files.

An instance that lost its session and puts its file later is played by a PUT that is held and
delivered later: to the log, and to everybody else, they are the same. What an instance does by
itself (its PUTs, its COMMIT) comes of what it is asked; so a step says what happens between.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from deltalake import DeltaTable

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.model.explore import Step
from tests.model.plain_state import NAMES, Kind
from tests.service.faults import Fault, FaultyStorage
from tests.service.world import World
from tidegate_protocol.proposal.transaction import Conflict, Invalid, Proposal
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import CommitStateUnknown, Refused
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.register import RegisterTable, register_table

_ELSEWHERE = "9"
"""The partition that the foreign commit writes to."""
_SCHEMA = [
    {"name": "x", "type": "integer", "nullable": False, "metadata": {}},
    {"name": "v", "type": "string", "nullable": True, "metadata": {}},
]
_OWN = ("put", "commit", "session ended", "crash")


def body_of(kind: Kind, name: str) -> Proposal:
    """A proposal of a kind, over the table of `Replay`."""
    match kind:
        case Kind.APPEND:
            return proposal(add(f"x=1/{name}"), transaction_id=name)
        case Kind.READER:
            read = {"read_version": 0, "whole_table": True}
        case Kind.READER_OF_FOREIGN:
            read = {"read_version": 0, "predicates": (f"x = {_ELSEWHERE}",)}
        case Kind.NEEDS_FOREIGN:
            return proposal(add(f"x=null/{name}", x=None), transaction_id=name)
        case _:
            raise ValueError(f"no body for {kind}")
    return proposal(add(f"x=1/{name}"), transaction_id=name, **read)


@dataclass(slots=True)
class Replay:
    """One table and what clients were told of it: for each id the versions, or None for never."""

    world: World
    faults: FaultyStorage
    kinds: tuple[Kind, Kind]
    told: dict[str, list[int | None]] = field(default_factory=dict)
    _table: TableRecord | None = None

    @property
    def table(self) -> TableRecord:
        assert self._table is not None
        return self._table

    async def run(self, schedule: Sequence[Step]) -> None:
        """Play the steps, in their order."""
        self._table = await self.world.create(
            schema={"type": "struct", "fields": _SCHEMA},
            properties={"delta.logRetentionDuration": "interval 0 seconds"},
        )
        await self.run_on(schedule)

    async def run_on(self, schedule: Sequence[Step]) -> None:
        """Play further steps."""
        steps = list(schedule)
        while steps:
            step = steps.pop(0)
            if step.what == "propose":
                await self._propose(step, steps)
            elif step.what not in ("session ended", "crash", "commit"):
                await self._step(step)

    async def _propose(self, step: Step, rest: list[Step]) -> None:
        (name,) = step.on
        own = next((each for each in rest if each.instance == step.instance), None)
        if own is not None and (own.what in ("session ended", "crash") or own.came == "no answer"):
            rest.remove(own)
            self.faults.faults.extend([Fault.HELD, Fault.REFUSED] * 5)
        elif own is not None and own.what == "put":
            # What others do before its file is put, they do then.
            between = rest[: rest.index(own)]
            del rest[: rest.index(own) + 1]
            self.faults.before = lambda version: self._between(between)
            while rest and rest[0].instance == step.instance and rest[0].what in _OWN:
                rest.pop(0)
        body = body_of(self.kinds[NAMES.index(name)], name)
        told = self.told.setdefault(name, [])
        try:
            outcome = await propose(self.world.context, self.table.id, body)
        except CommitStateUnknown:
            return
        except Refused:
            told.append(None)
            return
        finally:
            self.faults.faults.clear()
        if isinstance(outcome, Conflict | Invalid):
            told.append(None)
        else:
            assert isinstance(outcome, Committed)
            told.append(outcome.record.version)

    def _between(self, steps: list[Step]) -> None:
        while steps:
            step = steps.pop(0)
            assert step.what == "foreign commit"
            self._commit_past()

    async def _step(self, step: Step) -> None:
        context, table = self.world.context, self.table
        match step.what:
            case "put" | "late put arrives":
                await self.faults.deliver()
            case "abort":
                try:
                    await abort(context, table.id, step.on[0])
                except Refused as refused:
                    self.told.setdefault(step.on[0], []).append(refused.version)
                else:
                    self.told.setdefault(step.on[0], []).append(None)
            case "foreign commit":
                self._commit_past()
            case "clean up below":
                theirs = DeltaTable(table.location)
                theirs.create_checkpoint()
                theirs.cleanup_metadata()
                assert not self.world.log_file(table, 0).exists()
            case "rebuild":
                await rebuild_table(context, table.id)
            case "forget and register":
                await forget_table(context, table.id)
                again = RegisterTable(name=table.name, location=table.location)
                self._table, _ = await register_table(context, again)
            case _:
                raise ValueError(f"no such step: {step}")

    def _commit_past(self) -> None:
        """The foreign commit: it adds a file, and takes the NOT NULL from the partition column."""
        log = self.world.log_folder(self.table)
        version = 1 + max(int(file.stem) for file in log.glob("*.json"))
        first = self.world.actions_of(self.table, 0)
        metadata = next(line["metaData"] for line in first if "metaData" in line)
        schema = json.loads(metadata["schemaString"])
        schema["fields"][0]["nullable"] = True
        lines = [
            {"commitInfo": {"timestamp": time.time_ns() // 1_000_000, "operation": "WRITE"}},
            {"metaData": {**metadata, "schemaString": json.dumps(schema)}},
            {
                "add": {
                    "path": f"x={_ELSEWHERE}/theirs",
                    "partitionValues": {"x": _ELSEWHERE},
                    "size": 1,
                    "modificationTime": 1,
                    "dataChange": True,
                }
            },
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        self.world.log_file(self.table, version).write_text(text)

    def broken(self) -> list[str]:
        """The promises that do not hold of the log and of what was told. Of what was cleaned up,
        only what was told is known."""
        log = self.world.log_folder(self.table)
        landed: dict[str, list[int]] = {}
        for file in sorted(log.glob("*.json")):
            version = int(file.stem)
            for line in self.world.actions_of(self.table, version):
                info = line.get("commitInfo")
                if isinstance(info, dict) and info.get("txnId") in NAMES:
                    landed.setdefault(info["txnId"], []).append(version)
        found = []
        for name, answers in self.told.items():
            versions = {*landed.get(name, ()), *(each for each in answers if each is not None)}
            if len(versions) > 1:
                found.append(f"{name} landed as {sorted(versions)}")
            if None in answers and versions:
                found.append(f"{name} was told never, and landed as {sorted(versions)}")
        return found

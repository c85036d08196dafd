"""Tables with a past that was cleaned up, and what is promised of them all the same."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec.structs import replace as changed
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders import actions
from tests.builders.by_x import SCHEMA, add, remove
from tests.builders.proposals import proposal
from tests.service.upkeep.aged import LogOf, age
from tests.service.upkeep.checkpointed import checkpointed
from tests.service.world import World
from tidegate_protocol.log.actions import Action, Metadata, Txn
from tidegate_protocol.log.codec import encode
from tidegate_protocol.proposal.transaction import Conflict, Proposal
from tidegate_service.api.answers.rendering import commit_body
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.ports.outcomes import Committed, WouldCommit
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables import history
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.scan import ScanRequest, scan
from tidegate_service.index.upkeep.standing import PostgresUpkeep

VERSIONS = 24
CUT = 15
"""The log begins here; what is before is forty days old, as is its version."""


@dataclass(frozen=True, slots=True)
class Past:
    """A table whose log was cleaned up, and all that was proposed to it."""

    world: World
    table: TableRecord
    sent: Sequence[Proposal]

    @property
    def log(self) -> LogOf:
        return LogOf(self.world, self.table)

    async def head(self) -> TableRecord:
        return await get_table(self.world.context, self.table.id)

    async def receipt(self, body: Proposal) -> dict[str, Any]:
        """What sending it again is told."""
        told = await propose(self.world.context, self.table.id, body)
        assert isinstance(told, Committed)
        answer = commit_body(told)
        assert answer.replayed
        return {name: getattr(answer, name) for name in answer.__struct_fields__}

    async def at(self, version: int) -> tuple[object, ...]:
        """What readers of a version are told."""
        context, name = self.world.context, self.table.name
        found = await scan(context, name, ScanRequest(version=version))
        files = sorted([line async for lines in found.files for line in lines])
        content = bytes(await history.content(context, name, version))
        by_time = await context.index.version_at(self.table.id, found.timestamp)
        state = encode(found.protocol), encode(found.metadata), found.timestamp
        return version, files, content, state, by_time

    async def _judged(self, read_version: int) -> tuple[object, ...]:
        """What becomes of a transaction that read a partition at the version."""
        late = proposal(add("late"), read_version=read_version, predicates=("x = 1",))
        match await conflict_check(self.world.context, self.table.id, late):
            case Conflict(code=code, detail=detail):
                return code, detail
            case WouldCommit(rebased_over=rebased_over):
                return (rebased_over,)
            case other:
                raise AssertionError(f"not to be expected: {other}")

    async def promised(self, first: int = CUT) -> dict[str, Any]:
        """All that is still told once the index begins at `first`."""
        head, context = await self.head(), self.world.context
        known = replace(head, first_version=0)
        versions = [await self.at(version) for version in range(first, head.latest_version + 1)]
        _, commits = await history.history(
            context, self.table.name, from_version=first, to_version=None, limit=1000
        )
        txns = [
            await context.index.app_transaction(self.table.id, f"app{n}", known=_Told())
            for n in range(4)
        ]
        receipts = [await self.receipt(body) for body in self.sent]
        judged = [await self._judged(read) for read in range(first, head.latest_version + 1)]
        return {
            "head": known,
            "versions": versions,
            "commits": commits,
            "judged": judged,
            "txns": txns,
            "receipts": receipts,
        }


class _Told:
    """`core.ports.told.HeadsOnStandby` where there is no standby."""

    def has(self, table: TableRecord, *, database: str) -> bool:
        return True

    def remember(self, table: TableRecord, *, database: str) -> None:
        return None


async def cleaned_up(
    world: World,
    engine: AsyncEngine,
    upkeep: PostgresUpkeep,
    caretaker: Caretaker,
    *,
    seed: int = 0,
    catalog_managed: bool = False,
    properties: dict[str, str] | None = None,
) -> Past:
    """A table with a past by chance, whose log was cut at the version `CUT`."""
    world = World(replace(world.context, upkeep=upkeep))
    table = await world.create(catalog_managed=catalog_managed, properties=properties or {})
    draw = random.Random(seed)
    live: dict[str, str] = {}
    sent = []
    publisher = Publisher(world.context.index, world.context.storage)
    for version in range(1, VERSIONS + 1):
        body = proposal(*_changes(draw, live, table, version), read_version=version - 1)
        assert isinstance(await propose(world.context, table.id, body), Committed)
        sent.append(body)
        if version == CUT:
            await publisher.round()
            await checkpointed(world, table)
    await publisher.round()
    await age(world, engine, table, {range(CUT + 1): 40})
    past = Past(world, table, sent)
    assert await caretaker.round() >= 1
    assert past.log.versions == list(range(CUT, VERSIONS + 1))
    return past


def _changes(
    draw: random.Random, live: dict[str, str], table: TableRecord, version: int
) -> list[Action]:
    made: list[Action] = []
    for path in draw.sample(sorted(live), min(len(live), draw.randrange(3))):
        made.append(remove(path, live.pop(path)))
    removed = {action.path for action in made if hasattr(action, "path")}
    for _ in range(draw.randrange(1, 4)):
        # Some come again that were there before.
        x = str(draw.randrange(3))
        path = f"x={x}/{draw.randrange(20)}"
        if path not in live and path not in removed:
            live[path] = x
            made.append(add(path, x))
    if draw.random() < 0.4:
        made.append(Txn(app_id=f"app{draw.randrange(4)}", version=version, last_updated=version))
    if draw.random() < 0.2:
        made.append(metadata_of(table, version))
    return made or [Txn(app_id="app0", version=version)]


def metadata_of(table: TableRecord, version: int) -> Metadata:
    """Another comment of the table's own."""
    assert table.metadata is not None
    said = {**table.metadata.configuration, "note": str(version)}
    return changed(actions.metadata(SCHEMA["fields"], ["x"], said), id=table.metadata.id, raw=b"")

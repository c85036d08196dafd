"""A world that goes by a script: the steps of a counter-example of `tests/model`, one by one.

Where a seed's world chooses how long everything takes, here everybody waits before each PUT and
each COMMIT until a step of theirs says what comes of it. Instances 1 and 2 of the model are the
first two of the world, their publishers the other two.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tests.chaos.judging.history import AbortedBy, Answer, Proposed, Work
from tests.chaos.judging.violations import Kind, Violation
from tests.model import managed_state, plain_state
from tests.model.explore import Step
from tests.simulation.judging.judge import FINAL, status_of
from tests.simulation.ports.server import Backup
from tests.simulation.ports.store import StoreFaults
from tests.simulation.ports.unit import DatabaseFaults
from tests.simulation.worlds import answers
from tests.simulation.worlds.actors import COMMIT, LOCK, PUT, Actor, PublishingActor, UseCase
from tests.simulation.worlds.deeds import PLACE, RETENTION_S, commit_id, use_case
from tests.simulation.worlds.plan import Deed, Plan
from tests.simulation.worlds.plan import Kind as Doing
from tests.simulation.worlds.works import REQUEST, TABLE, make
from tests.simulation.worlds.world import World
from tidegate.errors import CommitStateUnknown, TidegateError
from tidegate.wire.flow import Effects, RetryPolicy, propose_flow
from tidegate_protocol.log.file_names import commit_name
from tidegate_protocol.proposal.transaction import Proposal
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.catalog_managed import publish
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.context import Context
from tidegate_service.core.errors import ServiceError
from tidegate_service.core.tables.lookup import get_table

ModelKind = plain_state.Kind | managed_state.Kind

LATE = 4
"""What a PUT meets that arrives later (`ports.store.StoreFaults`)."""
COMMITS = ("answered", "applied, no answer", "not applied, no answer")
"""What a COMMIT meets, in the order of `ports.unit.DatabaseFaults`."""
STEP_S = 0.06
"""Longer than everything that one step makes happen, and much shorter than a PUT is late."""
LATE_S = 0.3
_ADMINISTRATIVE = {
    "rebuild": (Deed.REBUILD,),
    "forget the table": (Deed.FORGET,),
    "forget and register": (Deed.FORGET, Deed.REGISTER),
}


class NotThere(Exception):
    """A step that nobody is about to do."""


class Played:
    """A world in which steps are done, but for those that are `left_out` because nobody is about to
    do them. `seen` is what was wrong on the way, and may be gone at the end. With `premises`,
    others leave young commits alone, and nobody publishes while the database is restored
    (docs/invariants.md)."""

    def __init__(self, kinds: Sequence[ModelKind], *, premises: bool = False) -> None:
        catalog_managed = isinstance(kinds[0], managed_state.Kind)
        plan = Plan(
            seed=0,
            catalog_managed=catalog_managed,
            tasks=(),
            database=DatabaseFaults(commits=(1.0, 0.0, 0.0)),
            store=StoreFaults(puts=(1.0, 0.0, 0.0, 0.0, 0.0)),
            instances=4,
        )
        self._kinds = kinds
        self._premises = premises
        self._idle = patch.object(Publisher, "run_on", _nothing)
        with self._idle:
            self.world = World(plan, {})
        first, second, *publishing = self.world.instances
        self._actors = [Actor(first), Actor(second)]
        self._publishers = [PublishingActor(one) for one in publishing]
        (self._begins,) = self.world.server.tables.values()
        self._sent: set[str] = set()
        self._backups: list[Backup] = []
        self.left_out: list[Step] = []
        self.seen: list[Violation] = []

    @property
    def _head(self) -> int:
        """The model's version 0."""
        return self._begins.record.latest_version

    # Steps.

    def play(self, schedule: Sequence[Step], *, strictly: bool) -> list[Violation]:
        """What is wrong with the world after these steps, and once it has come to rest. A step
        that is not there to be done is left out, or `strictly`, raises `NotThere`."""
        with self._idle:
            self._settle()
            for step in schedule:
                try:
                    self._do(step)
                except NotThere:
                    if strictly:
                        raise
                    self.left_out.append(step)
                self._settle()
            for actor in (*self._actors, *self._publishers):
                actor.free()
            return [*self.seen, *self.world.run().violations]

    def _settle(self) -> None:
        """Everything that the step makes happen has happened."""
        scheduler = self.world.scheduler
        scheduler.after(STEP_S, lambda: None)
        scheduler.run(until=lambda: False, limit_s=STEP_S)
        server, folder = self.world.server, self.world.store.folder(PLACE)
        self._backups.append(server.backup())
        if sorted(folder.written) != list(range(folder.end + 1)):
            self._saw(Kind.GAP, f"the log has the versions {sorted(folder.written)}")
        rows = server.find(TABLE)
        if rows is not None and rows.forgotten_through > rows.record.published_version:
            self._saw(Kind.LOST, "bytes are forgotten that are not marked as published")

    def _saw(self, kind: Kind, detail: str) -> None:
        self.seen.append(Violation(kind, TABLE, detail))

    def _do(self, step: Step) -> None:
        match step.what:
            case "propose" | "read the index for":
                held = (PUT, COMMIT)
                if step.what != "propose":
                    held = (LOCK, *held)
                    self._has_checked_the_log(step)
                self._ask(step, lambda context: self._propose(context, step.on), held)
            case "abort":
                # On a catalog-managed table it is one step.
                held = () if self.world.plan.catalog_managed else (PUT, COMMIT)
                self._ask(step, lambda context: self._abort(context, step.on[0]), held)
            case "lock and decide":
                self._actor(step, LOCK).go_on()
            case "put":
                self._put(step)
            case "commit":
                actor = self._actor(step, COMMIT)
                self.world.choices.tell("server.commit", COMMITS.index(step.came))
                actor.go_on()
            case "session ended":
                network = self._actor(step, ...).instance.life.network
                self.world.server.end_some(lambda s: s.network is network and bool(s.locks))
            case "crash":
                self._actor(step, ...).restart()
            case _ if step.what.startswith("publisher"):
                self._publish(step)
            case _:
                self._by_others(step)

    def _has_checked_the_log(self, step: Step) -> None:
        """The instance has done so a moment ago, else it would lock the table's row a second
        time, which the model has no step for."""
        server, record = self.world.server, self._begins.record
        self._actor(step, None).instance.life.context.log_checks.remember(
            replace(record, latest_version=record.latest_version - 1),
            server.clock_ms(),
            database=server.database,
        )

    def _ask(self, step: Step, use_case: UseCase, held: Sequence[str]) -> None:
        self._actor(step, None).ask(use_case, self._answered, held=held)

    def _answered(self, result: Any, error: BaseException | None) -> None:
        if not isinstance(error, ConnectionError):
            self.world.answered(result, error)

    def _actor(self, step: Step, at: Any) -> Actor:
        """Who does the step, and is about to: `...` is about to do anything."""
        assert step.instance is not None
        actors = self._publishers if step.what.startswith("publisher") else self._actors
        actor = actors[step.instance - 1]
        if at is not ... and actor.at != at:
            raise NotThere(f"{step}: it is about to {actor.at}")
        return actor

    def _put(self, step: Step) -> None:
        actor = self._actor(step, PUT)
        self.world.choices.tell("store.put", LATE if step.came == "no answer" else 0)
        self._ends_as_told(step, actor)

    def _ends_as_told(self, step: Step, actor: Actor) -> None:
        """The step makes a version, or it does not, as the model says; else it is another one."""
        files = self.world.store.folder(PLACE).files
        before = set(files)
        actor.go_on()
        self.world.scheduler.run(until=lambda: False, limit_s=STEP_S)
        found = {name: commit_id(files[name][0]) for name in files.keys() - before}
        who, version = step.on[0], int(step.on[1]) + self._head
        wanted = {commit_name(version): _id(who)} if step.came == "created" else {}
        if found != wanted:
            raise NotThere(f"{step}: it made {found}")

    def _publish(self, step: Step) -> None:
        match step.what:
            case "publisher reads":
                self._ask(step, _publishing, PublishingActor.HELD)
            case "publisher crashes":
                self._actor(step, ...).restart()
            case "publisher puts":
                self._ends_as_told(step, self._actor(step, step.what))
            case _:
                self._actor(step, step.what).go_on()

    def _by_others(self, step: Step) -> None:
        deeds = self.world.deeds
        match step.what:
            case "late put arrives":
                if not self.world.store.late:
                    raise NotThere(f"{step}: nothing is late")
                self.world.scheduler.run(until=lambda: not self.world.store.late, limit_s=LATE_S)
            case "foreign commit":
                is_needed = plain_state.Kind.NEEDS_FOREIGN in self._kinds
                deeds.do(Deed.FOREIGN_NULLABLE if is_needed else Deed.FOREIGN)
            case "clean up below":
                kept_s = RETENTION_S if self._premises else 0.0
                with patch("tests.simulation.worlds.deeds.RETENTION_S", kept_s):
                    deeds.do(Deed.CLEAN_UP)
            case "restore the database":
                if self._premises:
                    for publisher in self._publishers:
                        publisher.restart()
                head, published = (int(version) + self._head for version in step.on)
                deeds.go_back(next(b for b in reversed(self._backups) if _is(b, head, published)))
                for actor in self._actors:
                    # What they remember of heads is more than the model has.
                    actor.restart()
            case _:
                for deed in _ADMINISTRATIVE[step.what]:
                    managed = self.world.plan.catalog_managed
                    self.world.ask(use_case(deed, catalog_managed=managed), at=3)

    # What clients ask, and are told.

    async def _propose(self, context: Context, names: Sequence[str]) -> None:
        """All in one round of the loop, so that they are one group."""
        table = await context.index.table(TABLE)
        if table is not None:
            context.tables.learn(table)
        await asyncio.gather(*(self._propose_one(context, name) for name in names))

    async def _propose_one(self, context: Context, name: str) -> None:
        work, proposal = self._made(name)
        self.world.proposals[work] = proposal
        sent, in_doubt = self.world.scheduler.now, name in self._sent
        self._sent.add(name)
        try:
            outcome, error = await propose(context, TABLE, proposal), None
        except ServiceError as failed:
            outcome, error = None, failed
        told = _told(work, self.world.scheduler.now, outcome, error, in_doubt=in_doubt)
        self.world.calls.append(replace(told, sent=sent))

    async def _abort(self, context: Context, name: str) -> None:
        sent = self.world.scheduler.now
        try:
            await abort(context, TABLE, _id(name))
        except ServiceError:
            return
        now = self.world.scheduler.now
        self.world.calls.append(AbortedBy(table=TABLE, id=_id(name), sent=sent, answered=now))

    def _made(self, name: str) -> tuple[Work, Proposal]:
        doing = self._doing(self._kinds[plain_state.NAMES.index(name)])
        metadata = self._begins.record.metadata
        return make(doing, name, read_version=self._head, metadata=metadata)

    def _doing(self, kind: ModelKind) -> Doing:
        match kind:
            case plain_state.Kind.READER | managed_state.Kind.READER:
                return Doing.SUMMARY
            case plain_state.Kind.READER_OF_FOREIGN:
                # It reads what the other one does not write; no counter-example has a foreign
                # commit beside.
                return Doing.REGISTER
            case plain_state.Kind.NEEDS_OTHER | plain_state.Kind.NEEDS_FOREIGN:
                return Doing.NULL
            case _ if plain_state.Kind.NEEDS_OTHER in self._kinds:
                return Doing.NULLABLE
        return Doing.APPEND


def _told(
    work: Work, now: float, outcome: Any, error: ServiceError | None, *, in_doubt: bool
) -> Proposed:
    """What the client concludes of one answer, by its real rules."""
    flow = propose_flow(
        REQUEST,
        answers.decode,
        transaction_id=work.id,
        effects=Effects(clock=lambda: now, jitter=lambda: 0.5, new_request_id=lambda: "one"),
        policy=RetryPolicy(deadline_s=0.0),
        in_doubt=in_doubt,
    )
    next(flow)
    told = Proposed(work=work, sent=now, answered=now, answer=Answer.UNKNOWN)
    try:
        flow.send(answers.answer(outcome, error, request_id="one"))
    except StopIteration as ended:
        landed = ended.value
        return replace(
            told, answer=Answer.LANDED, version=landed.version, timestamp=landed.timestamp
        )
    except CommitStateUnknown:
        return told
    except TidegateError as refused:
        if not refused.definite:
            return told
        # Of all copies together, whatever the code says of one.
        code = refused.code if refused.code and status_of(refused.code) in FINAL else ""
        return replace(told, answer=Answer.NEVER, code=code)
    raise AssertionError("the flow goes on")


def _id(name: str) -> str:
    return f"id-{name}"


def _is(backup: Backup, head: int, published: int) -> bool:
    tables, _ = backup
    records = [rows.record for rows in tables.values()]
    return any((r.latest_version, r.published_version) == (head, published) for r in records)


async def _publishing(context: Context) -> None:
    table = await get_table(context, TABLE)
    await publish.publish_table(
        context.index,
        context.storage,
        table,
        faults=context.faults,
        monotonic_s=context.monotonic_s,
    )


async def _nothing(*_: Any) -> None:
    return None

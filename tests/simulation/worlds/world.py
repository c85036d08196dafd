"""A world from its beginning to its judge: one table, some instances, clients, and trouble."""

import logging
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.judging.history import Answer, Call, Proposed, Work
from tests.chaos.judging.violations import Violation
from tests.simulation.judging.judge import Ended, judge
from tests.simulation.ports.server import Server
from tests.simulation.ports.store import Folder, Store
from tests.simulation.schedule import NeverAtRest, Scheduler
from tests.simulation.worlds.base import base
from tests.simulation.worlds.choices import Choices, Deviations
from tests.simulation.worlds.clients import Client, Rig
from tests.simulation.worlds.deeds import PLACE, Deeds, newest, use_case
from tests.simulation.worlds.instance import EPOCH_MS, Instance, Shared, ids
from tests.simulation.worlds.jobs import DataFiles, missing
from tests.simulation.worlds.plan import Deed, Kind, Plan
from tests.simulation.worlds.works import TABLE, make
from tidegate_service.core.catalog_managed.own_log import NOT_OWN
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.context import Context
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import TableState

LONGEST_S = 1_000.0
"""Of virtual time, until all clients have ended."""
PROBES = 6
AGE_S = 10_000.0
"""How old the table is when its world begins."""


@dataclass(slots=True)
class Result:
    """What became of a world: nothing is wrong where `violations` is empty."""

    violations: list[Violation]
    deviations: Deviations
    steps: int
    acked: int
    answers: dict[str, int] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)


class World(Rig):
    """One that is repeated by its plan and the deviations of its choices."""

    def __init__(self, plan: Plan, deviations: Deviations | None = None) -> None:
        self.plan = plan
        self.scheduler = Scheduler()
        self.choices = Choices(plan.seed, deviations)
        self.proposals = {}
        self.data = DataFiles()
        self._answers: dict[str, int] = {}
        tables, folder, calls = base(plan.catalog_managed)
        self.calls = list(calls)
        self.scheduler.now = AGE_S
        self.store = Store(lambda: self.scheduler.now)
        self.store.folders[PLACE] = Folder(dict(folder.files), dict(folder.written))
        self.server = Server(lambda: EPOCH_MS + int(self.scheduler.now * 1000))
        self.server.tables = dict(tables)
        self.shared = Shared(
            self.scheduler, self.choices, self.server, self.store, plan, ids(plan.seed)
        )
        self.instances = [Instance(self.shared, f"i{number}") for number in range(plan.instances)]
        self.deeds = Deeds(self.shared, self.instances)
        self.clients = [Client(self, number, task) for number, task in enumerate(plan.tasks)]
        self._defects: list[str] = []

    def log_end(self) -> int:
        return newest(self.store.folder(PLACE))

    def answered(self, result: Any, error: BaseException | None) -> None:
        code = type(result).__name__ if error is None else getattr(error, "code", repr(error))
        self._answers[str(code)] = self._answers.get(str(code), 0) + 1
        if error is not None and not hasattr(error, "code") and not isinstance(error, TimeoutError):
            self._defects.append(repr(error))

    def run(self) -> Result:
        """Everything that happens, and what is wrong with it."""
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        # What the service logs of its troubles is not wrong.
        logging.disable(logging.CRITICAL)
        try:
            return self._run()
        finally:
            for instance in self.instances:
                instance.end()
            self.instances.clear()
            logging.disable(logging.NOTSET)
            sys.unraisablehook = hook

    def _run(self) -> Result:
        self.deeds.schedule()
        for client in self.clients:
            client.start()
        is_stuck: str | None = None
        try:
            for client in self.clients:
                self.scheduler.run(until=lambda c=client: c.done, limit_s=LONGEST_S)  # type: ignore[misc]
            is_stuck = self._come_to_rest()
        except NeverAtRest as error:
            is_stuck = str(error)
        ended = Ended(
            plan=self.plan,
            calls=self.calls,
            proposals=self.proposals,
            folder=self._folder(),
            former=self.store.former.get(PLACE, []),
            rows=self.server.find(TABLE),
            restored=self.deeds.restored,
            stuck=is_stuck,
            missing=missing(self.data, self._folder()) if self.data.are_written else [],
            longest_hold_s=self.server.longest_hold_s,
            begun=self.deeds.begun,
            defects=self._defects
            + [repr(d["exception"]) for i in self.instances for d in i.defects],
        )
        acked = sum(getattr(call, "answer", None) is Answer.LANDED for call in self.calls)
        return Result(
            violations=judge(ended),
            deviations=self.choices.made,
            steps=self.scheduler.steps,
            acked=acked,
            answers=self._answers,
            calls=self.calls,
        )

    def _folder(self) -> Folder:
        """Of the table; one that was deleted is none, whatever came late."""
        return Folder() if self.store.is_deleted(PLACE) else self.store.folder(PLACE)

    def _come_to_rest(self) -> str | None:
        """End all trouble, and see that the table can be worked with; why not, where it can't."""
        self.scheduler.hooks.clear()
        for instance in self.instances:
            instance.heal()
        self.scheduler.run(until=self._is_quiet, limit_s=LONGEST_S)
        why, is_given_up = "it is quarantined", False
        for number in range(PROBES):
            rows = self.server.find(TABLE)
            if rows is None:
                # It was forgotten, maybe by somebody who has not waited for it.
                if self.store.is_deleted(PLACE) or not self.store.folder(PLACE).files:
                    return None
                managed = self.plan.catalog_managed
                by_marks = managed and is_given_up
                _, error = self.ask(
                    use_case(Deed.REGISTER, catalog_managed=managed, by_marks=by_marks)
                )
                if error is not None:
                    return f"{type(error).__name__}: {error}"
            elif rows.record.state is TableState.QUARANTINED:
                # As the runbook says.
                _, error = self._administrate(Deed.REBUILD)
                if error is None or NOT_OWN not in str(error):
                    self._administrate(Deed.RELEASE)
                else:
                    is_given_up = True
                    self.deeds.give_up()
                    self._administrate(Deed.FORGET)
                    continue
            work, proposal = make(Kind.APPEND, f"probe-{number}")
            sent = self.scheduler.now
            result, error = self.ask(
                lambda context, proposal=proposal: propose(context, TABLE, proposal)
            )
            self._note_probe(work, sent, result)
            if error is None:
                break
            why = f"{type(error).__name__}: {error}"
            self.scheduler.run(until=lambda: False, limit_s=11.0)
        else:
            return why
        if self.plan.catalog_managed:
            publisher = self.instances[0].publisher
            self.ask(lambda context: publisher.round())
        return None

    def _administrate(self, deed: Deed) -> tuple[Any, BaseException | None]:
        return self.ask(use_case(deed, catalog_managed=self.plan.catalog_managed))

    def _is_quiet(self) -> bool:
        """Whether nothing is under way that anybody asked for, whether it is still waited for or
        not: the judge compares what is there with what was told, and neither may move on."""
        return not (
            self.on_their_way
            or self.store.late
            or self.server.late
            or self.server.sessions
            or self.deeds.under_way
            or any(instance.is_asked for instance in self.instances)
        )

    def _note_probe(self, work: Work, sent: float, result: Any) -> None:
        record = result.record if isinstance(result, Committed) else None
        self.calls.append(
            Proposed(
                work=work,
                sent=sent,
                answered=self.scheduler.now,
                answer=Answer.UNKNOWN if record is None else Answer.LANDED,
                version=None if record is None else record.version,
                timestamp=None if record is None else record.timestamp,
            )
        )

    def ask(
        self, asked: Callable[[Context], Coroutine[Any, Any, Any]], *, at: int = 0
    ) -> tuple[Any, BaseException | None]:
        told: list[tuple[Any, BaseException | None]] = []
        self.instances[at].ask(asked, lambda result, error: told.append((result, error)))
        self.scheduler.run(until=lambda: bool(told), limit_s=60.0)
        return told[0] if told else (None, TimeoutError("nobody answered"))

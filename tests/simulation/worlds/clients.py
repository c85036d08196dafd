"""Clients: the real flow of a proposal, driven over a network that loses what it likes.

A client is a generator of waits and calls; whoever runs it sends what came of each. It notes what
it was told and when, which is all that the judge believes.
"""

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.chaos.judging.history import AbortedBy, Answer, Call, Proposed, Work
from tests.simulation.ports.network import LATENCIES_S
from tests.simulation.schedule import Scheduler
from tests.simulation.worlds import answers, jobs
from tests.simulation.worlds.choices import Choices
from tests.simulation.worlds.instance import Instance, Shared
from tests.simulation.worlds.jobs import DataFiles
from tests.simulation.worlds.plan import Kind, Plan, Task
from tests.simulation.worlds.works import REGISTER, REQUEST, TABLE, make
from tidegate.errors import CommitStateUnknown, TidegateError
from tidegate.wire.exchange import Attempt, Response, TransportFailure
from tidegate.wire.flow import Effects, RetryPolicy, propose_flow
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.proposal.transaction import Proposal
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import TransactionStatus, abort, status
from tidegate_service.core.context import Context
from tidegate_service.core.errors import ServiceError

POLICY = RetryPolicy()
BLIND = (Kind.APPEND, Kind.NULL, Kind.OLD, Kind.ABORTED)
ROUNDS = 4
"""A work whose outcome is unknown is taken up again so often, a while later."""
REST_S = 20.0


@dataclass(frozen=True, slots=True)
class Rest:
    seconds: float


@dataclass(frozen=True, slots=True)
class Ask:
    """A use case at some instance; what comes back is a result and an error, or None for no
    answer within the time. `sent` says whether it got there."""

    use_case: Callable[[Context], Coroutine[Any, Any, Any]]
    timeout_s: float


Wish = Rest | Ask
Told = tuple[Any, BaseException | None] | None
Script = Generator[Wish, Told, None]


class Client:
    """One client of a world; `script` is what it does."""

    def __init__(self, world: "Rig", number: int, task: Task) -> None:
        self._world = world
        self._number = number if task.number is None else task.number
        self._name = f"client{self._number}"
        self._task = task
        self._effects = Effects(
            clock=lambda: world.scheduler.now,
            jitter=lambda: 0.5,
            new_request_id=lambda: f"{self._name}-{next(self._copies)}",
        )
        self._copies = count(1)
        self.done = False
        self._has_asked = False
        self._last: Answer | None = None

    def start(self) -> None:
        script = self.script()
        self._world.scheduler.after(self._task.starts_s, lambda: self._go(script, None))

    def script(self) -> Script:
        for place, kind in enumerate(self._task.kinds):
            shared = self._task.shares is not None and place == 0
            number = self._task.shares if shared else self._number
            name = f"{number}-{place}"
            if kind is Kind.JOB:
                yield from self._job(name)
                continue
            made = yield from self._made(self._kind(kind, shared), name)
            if made is not None:
                yield from self._settle(*made)
        self.done = True

    def _job(self, name: str) -> Generator[Wish, Told, None]:
        """Run it, die with whatever was heard of it, and run it again."""
        transaction_id, data = f"id-{name}", self._world.data
        for run in range(2):
            if run and (yield from self._has_landed(transaction_id)):
                # As the client asks before a job starts.
                return
            part = f"part-{name}-{run}"
            folder, files = jobs.write(data, transaction_id, part, run=run)
            work, proposal = jobs.proposed(transaction_id, files)
            self._world.proposals[work] = proposal
            known = yield from self._propose(work, proposal, in_doubt=run > 0)
            if run and known and self._last is Answer.NEVER:
                data.delete_folder(folder)
            yield Rest(REST_S)

    def _has_landed(self, transaction_id: str) -> Generator[Wish, Told, bool]:
        told = yield Ask(lambda context: status(context, TABLE, transaction_id), POLICY.attempt_s)
        if told is None or told[1] is not None:
            return False
        known: TransactionStatus = told[0]
        return known.landed is not None

    def _kind(self, kind: Kind, shared: bool) -> Kind:
        """Who works at another's, does the same."""
        first = self._world.plan.tasks[0].kinds[0]
        return first if shared and first is not Kind.JOB else kind

    def _made(self, kind: Kind, name: str) -> Generator[Wish, Told, tuple[Work, Proposal] | None]:
        if kind in BLIND:
            return make(kind, name)
        if self._task.shares is not None:
            # The same body comes under one id of works that read nothing; these read another state.
            name = f"{name}-{self._number}"
        if kind is Kind.AHEAD:
            return make(kind, name, read_version=self._world.log_end())
        told = yield Ask(read, POLICY.attempt_s)
        if told is None or told[1] is not None:
            return None
        version, metadata, live = told[0]
        return make(kind, name, read_version=version, metadata=metadata, live=live)

    def _settle(self, work: Work, proposal: Proposal) -> Generator[Wish, Told, None]:
        """Propose it until it is known what became of it."""
        self._world.proposals[work] = proposal
        in_doubt = False
        for _ in range(ROUNDS):
            known = yield from self._propose(work, proposal, in_doubt=in_doubt)
            if known:
                break
            in_doubt = True
            if self._task.aborts and (yield from self._abort(work)):
                break
            yield Rest(REST_S)
        if self._task.asks_again:
            yield Rest(REST_S)
            yield from self._propose(work, proposal, in_doubt=in_doubt)

    def _propose(
        self, work: Work, proposal: Proposal, *, in_doubt: bool
    ) -> Generator[Wish, Told, bool]:
        """One call of the client, with all its copies; whether it is known what became of it."""
        sent = self._world.scheduler.now
        flow = propose_flow(
            REQUEST,
            answers.decode,
            transaction_id=work.id,
            effects=self._effects,
            policy=POLICY,
            in_doubt=in_doubt,
        )
        try:
            attempt = next(flow)
            while True:
                if attempt.after_s > 0:
                    yield Rest(attempt.after_s)
                answer = yield from self._send(proposal, attempt)
                attempt = flow.send(answer)
        except StopIteration as ended:
            landed = ended.value
            self._note(work, sent, Answer.LANDED, "", landed)
            return True
        except CommitStateUnknown as error:
            self._note(work, sent, Answer.UNKNOWN, error.code or "")
            return False
        except TidegateError as error:
            never = Answer.NEVER if error.definite else Answer.UNKNOWN
            self._note(work, sent, never, error.code or "")
            return error.definite

    def _note(
        self,
        work: Work,
        sent: float,
        answer: Answer,
        code: str,
        landed: "answers.Landed | None" = None,
    ) -> None:
        self._last = answer
        self._world.calls.append(
            Proposed(
                work=work,
                sent=sent,
                answered=self._world.scheduler.now,
                answer=answer,
                code=code,
                version=None if landed is None else landed.version,
                timestamp=None if landed is None else landed.timestamp,
            )
        )

    def _send(
        self, proposal: Proposal, attempt: Attempt
    ) -> Generator[Wish, Told, Response | TransportFailure]:
        told = yield Ask(lambda context: propose(context, TABLE, proposal), attempt.timeout_s)
        if told is None:
            return TransportFailure(sent=True, detail="no answer")
        result, error = told
        if isinstance(error, ConnectionRefusedError):
            return TransportFailure(sent=False, detail="nobody listens")
        if isinstance(error, ConnectionError):
            return TransportFailure(sent=True, detail="the connection ended")
        rare = self._world.plan.gateway
        if rare and self._world.choices.pick(f"{self._name}.gateway", (1 - rare, rare)):
            statuses = (409, 410, 422)
            place = self._world.choices.among(f"{self._name}.status", len(statuses))
            return answers.of_a_gateway(statuses[place])
        self._world.answered(result, error)
        what = type(result).__name__ if error is None else error
        self._world.shared.note(self._name, " is told of ", proposal.transaction_id, ": ", what)
        request_id = attempt.request.request_id
        assert request_id is not None, "each copy has its own"
        return answers.answer(result, error, request_id=request_id)

    def _abort(self, work: Work) -> Generator[Wish, Told, bool]:
        sent = self._world.scheduler.now
        told = yield Ask(lambda context: abort(context, TABLE, work.id), POLICY.attempt_s)
        if told is None or told[1] is not None:
            return False
        now = self._world.scheduler.now
        self._world.calls.append(AbortedBy(table=TABLE, id=work.id, sent=sent, answered=now))
        return True

    def _go(self, script: Script, told: Told) -> None:
        """Send on what was told, and do what is wished next."""
        try:
            wish = script.send(told)
        except StopIteration:
            return
        world = self._world
        match wish:
            case Rest(seconds):
                world.scheduler.after(seconds, lambda: self._go(script, None))
            case Ask(use_case, timeout_s):
                self._ask(script, use_case, timeout_s)

    def _ask(
        self,
        script: Script,
        use_case: Callable[[Context], Coroutine[Any, Any, Any]],
        timeout_s: float,
    ) -> None:
        world, name = self._world, self._name
        is_first, self._has_asked = not self._has_asked, True
        at = 0
        if not (is_first and world.plan.one_at_first):
            at = world.choices.among(f"{name}.instance", len(world.instances))
        instance = world.instances[at]
        is_over = False

        def told(result: Any, error: BaseException | None) -> None:
            rare = world.plan.lost_answers
            if rare and world.choices.pick(f"{name}.lost", (1 - rare, rare)):
                return
            world.scheduler.after(self._way_s(), lambda: end((result, error)))

        def end(what: Told) -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self._go(script, what)

        def arrives() -> None:
            world.on_their_way -= 1
            instance.ask(use_case, told)

        world.on_their_way += 1
        world.scheduler.after(self._way_s(), arrives)
        world.scheduler.after(max(timeout_s, 0.01), lambda: end(None))

    def _way_s(self) -> float:
        world = self._world
        return LATENCIES_S[world.choices.pick(f"{self._name}.way", world.plan.temper)]


class Rig:
    """What a client needs of its world."""

    scheduler: Scheduler
    choices: Choices
    plan: Plan
    instances: list[Instance]
    shared: Shared
    data: DataFiles
    calls: list[Call]
    proposals: dict[Work, Proposal]
    on_their_way = 0
    """Requests that were sent and are at no instance yet."""

    def log_end(self) -> int:
        """The newest version in the table's log, as whoever lists it finds it."""
        raise AssertionError("a world has a log")

    def answered(self, result: Any, error: BaseException | None) -> None:
        """An answer of the service, before anything between loses it."""
        raise AssertionError("a world says what it does with it")


async def read(context: Context) -> tuple[int, Metadata | None, tuple[str, ...]]:
    """A table's head, and the register's files there."""
    table = await context.index.table(TABLE)
    if table is None:
        raise ServiceError("there is no table")
    live: list[str] = []
    async for batch in context.index.files(table.id, table.latest_version):
        live += [file.path for file in batch if file.partition_values.get("p") == REGISTER]
    return table.latest_version, table.metadata, tuple(live)

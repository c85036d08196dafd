"""The table that every world begins with: made once, by the use cases, and shared by all worlds."""

from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any

from tests.chaos.judging.history import AbortedBy, Answer, Call, Proposed
from tests.simulation.ports.rows import Rows
from tests.simulation.ports.server import Server
from tests.simulation.ports.store import Folder, Store
from tests.simulation.schedule import Scheduler
from tests.simulation.worlds.choices import Choices
from tests.simulation.worlds.deeds import PLACE, creation
from tests.simulation.worlds.instance import EPOCH_MS, Instance, Shared, ids
from tests.simulation.worlds.plan import Kind, Plan
from tests.simulation.worlds.works import ABORTED, OLD, TABLE, make
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.context import Context
from tidegate_service.core.tables.create import create_table


@cache
def base(catalog_managed: bool) -> tuple[dict[str, Rows], Folder, tuple[Call, ...]]:
    """What the database and the log hold of it, and what was told: a work landed as version 1, and
    another one was aborted."""
    plan = Plan(seed=0, catalog_managed=False, tasks=())
    scheduler = Scheduler()
    store = Store(lambda: scheduler.now)
    server = Server(lambda: EPOCH_MS + int(scheduler.now * 1000))
    shared = Shared(scheduler, Choices(0, {}), server, store, plan, ids(0))
    instance = Instance(shared, "base")

    def ask(use_case: Callable[[Context], Coroutine[Any, Any, Any]]) -> Any:
        told: list[tuple[Any, BaseException | None]] = []
        instance.ask(use_case, lambda result, error: told.append((result, error)))
        scheduler.run(until=lambda: bool(told), limit_s=60)
        ((result, error),) = told
        if error is not None:
            raise error
        return result

    work, proposal = make(Kind.APPEND, OLD)
    given_up, _ = make(Kind.APPEND, ABORTED)
    ask(lambda context: create_table(context, creation(catalog_managed=catalog_managed)))
    landed = ask(lambda context: propose(context, TABLE, proposal)).record
    ask(lambda context: abort(context, TABLE, given_up.id))
    if catalog_managed:
        ask(lambda context: instance.publisher.round())
    calls = (
        Proposed(
            work=work,
            sent=0.0,
            answered=0.0,
            answer=Answer.LANDED,
            version=landed.version,
            timestamp=landed.timestamp,
        ),
        Proposed(work=given_up, sent=0.0, answered=0.0, answer=Answer.UNKNOWN),
        AbortedBy(table=TABLE, id=given_up.id, sent=0.0, answered=0.0),
    )
    return server.tables, store.folder(PLACE), calls

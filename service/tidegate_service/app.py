"""Composition: settings to a running service, and its orderly end.

Everything that is opened here is closed here, in the reverse order, whatever happens between.
"""

import asyncio
import logging
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

from pydantic import SecretStr

from tidegate_service.api.application import Application, attach, build
from tidegate_service.api.http.request.hosts import allowed
from tidegate_service.api.http.request.limits import USUAL, Limits, ServerLimits
from tidegate_service.api.http.request.requests import Gate
from tidegate_service.api.server.connections import Connections, most_connections
from tidegate_service.api.server.server import Server
from tidegate_service.background.background import Background, background_of
from tidegate_service.background.forgetter import forgetting_on
from tidegate_service.core.access.locations import LocationPolicy
from tidegate_service.core.access.proxies import Proxies
from tidegate_service.core.access.tokens import Authenticator
from tidegate_service.core.commit.group import run_group
from tidegate_service.core.commit.queue.commit_queue import CommitQueue
from tidegate_service.core.commit.queue.limits import QueueLimits
from tidegate_service.core.context import SCANS, Context, nobody_waits
from tidegate_service.core.errors import ServiceError, with_cause
from tidegate_service.core.instance.log_looks import LogLooks
from tidegate_service.core.instance.own_logs import OwnLogs
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.observe.elapsed import elapsed_s
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints
from tidegate_service.core.sharing.pauses import Pauses
from tidegate_service.database import (
    CannotStart,
    check_is_there,
    database_beside,
    database_of,
    ensure_schema,
    make_folder,
)
from tidegate_service.index.access.tokens import PostgresTokens
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.embedded.account import EmbeddedPostgresError
from tidegate_service.index.postgres import migrate
from tidegate_service.index.postgres.engine import (
    ConnectionSettings,
    DurabilityError,
    check_durability,
    create_engine,
    most_held,
)
from tidegate_service.index.postgres.sweeper import sweeping
from tidegate_service.index.tables.forgettings import PostgresForgettings
from tidegate_service.index.upkeep.standing import PostgresUpkeep
from tidegate_service.settings import Settings
from tidegate_service.storage.limits import StorageLimits
from tidegate_service.storage.object_storage import ObjectStorage
from tidegate_service.telemetry.exposition import Exposition, Instruments
from tidegate_service.telemetry.metrics import Metrics
from tidegate_service.telemetry.peers import Peers, shown, text_of
from tidegate_service.telemetry.recorder import Recorder
from tidegate_service.telemetry.tracing import TracingUnavailable, tracer_to

logger = logging.getLogger("tidegate.service")

SECTIONS_S = 2.0
"""For commit sections without a waiting client, at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service that is ready to be served."""

    app: Application
    gate: Gate
    context: Context


def application() -> Application:
    """The application without a world, for its description."""
    limits = Limits(max_requests=0, max_body_bytes=0, deadline_s=0, long_deadline_s=0)
    return build(limits=limits, gate=Gate())


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    faults: FaultPoints = NO_FAULTS,
    among: Peers | None = None,
    limits: ServerLimits = USUAL,
) -> AsyncIterator[Service]:
    """Everything but the socket. One `among` others leaves publishing to one of them. Raises
    `CannotStart`."""
    async with AsyncExitStack() as stack:
        with _startable():
            service = await _composed(settings, stack, faults, among, limits)
        yield service


async def serve(
    settings: Settings,
    listener: socket.socket,
    *,
    on_started: Callable[[socket.socket], None],
    on_server: Callable[[Server], None],
    faults: FaultPoints = NO_FAULTS,
    among: Peers | None = None,
    limits: ServerLimits = USUAL,
) -> None:
    """Serve on a bound socket until the server is told to stop. `on_server` gets the server as soon
    as it can be stopped; `on_started` is called once it listens. Raises `CannotStart`."""
    async with open_service(settings, faults=faults, among=among, limits=limits) as service:
        bound = Connections(
            most_connections(settings.max_connections),
            send_s=limits.send_s,
            proxies=Proxies(settings.trusted_proxies),
        )
        server = Server(
            service.app,
            gate=service.gate,
            connections=bound,
            on_started=on_started,
            limits=limits,
        )
        on_server(server)
        await server.serve(sockets=[listener])


@asynccontextmanager
async def open_publisher(settings: Settings, *, among: Peers) -> AsyncIterator[None]:
    """What works behind processes that serve, and serves nothing. Raises `CannotStart`."""
    async with AsyncExitStack() as stack:
        with _startable():
            world = await _opened(settings, stack)
            text = text_of(among.labelled(world.metrics.registry))
            await stack.enter_async_context(among.shown(text))
            background = await _background(settings, world, NO_FAULTS, OwnLogs())
        await stack.enter_async_context(background.running())
        yield


@asynccontextmanager
async def prepared(settings: Settings) -> AsyncIterator[Settings]:
    """What several processes of one service share: its database, up to date. Yields the settings
    of each of them. Raises `CannotStart`."""
    async with AsyncExitStack() as stack:
        with _startable():
            make_folder(settings)
            url = await database_of(settings, stack)
            await asyncio.to_thread(ensure_schema, settings, url)
        yield settings.model_copy(update={"database_url": SecretStr(url), "migrate": False})


@contextmanager
def _startable() -> Iterator[None]:
    try:
        yield
    except (EmbeddedPostgresError, DurabilityError, TracingUnavailable, ValueError) as error:
        raise CannotStart(str(error)) from error
    except ServiceError as error:
        raise CannotStart(with_cause(error)) from error


async def bring_up_to_date(settings: Settings) -> str:
    """Migrate the configured database and return its revision. Raises `CannotStart`."""
    async with AsyncExitStack() as stack:
        with _startable():
            check_is_there(settings)
            url = await database_of(settings, stack)
            await asyncio.to_thread(migrate.upgrade, url)
    return migrate.head()


@asynccontextmanager
async def open_tokens(settings: Settings) -> AsyncIterator[PostgresTokens]:
    """The tokens of the configured database, beside a service or not. Raises `CannotStart`."""
    async with AsyncExitStack() as stack:
        with _startable():
            url = await database_beside(settings, stack)
            engine = create_engine(url, ConnectionSettings(pool_size=1, overflow=0))
            stack.push_async_callback(engine.dispose)
            yield PostgresTokens(engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    index: PostgresIndex
    storage: ObjectStorage
    locations: LocationPolicy
    upkeep: PostgresUpkeep
    forgettings: PostgresForgettings
    pauses: Pauses
    tokens: PostgresTokens
    metrics: Metrics
    telemetry: Recorder


async def _opened(settings: Settings, stack: AsyncExitStack) -> _World:
    locations = settings.locations()
    make_folder(settings)
    storage = ObjectStorage(
        locations.warehouse,
        locations.prefixes,
        settings.store_options(),
        modes=settings.modes(),
        limits=StorageLimits(
            commit_bytes=settings.max_log_file_bytes,
            actions=settings.max_stream_actions,
            files=settings.max_log_files,
            readers=settings.max_checkpoint_readers,
        ),
    )
    url = await database_of(settings, stack)
    await asyncio.to_thread(ensure_schema, settings, url)
    pool = settings.database_pool_size
    engine = create_engine(url, ConnectionSettings(pool_size=pool, overflow=pool))
    stack.push_async_callback(engine.dispose)
    await stack.enter_async_context(sweeping(engine))
    await check_durability(engine)
    stack.push_async_callback(storage.close)
    await storage.probe()
    metrics = Metrics()
    telemetry = Recorder(metrics, tracer=tracer_to(settings.otlp_endpoint, stack))
    return _World(
        index=PostgresIndex(engine, sections_at_once=most_held(pool), telemetry=telemetry),
        storage=storage,
        locations=locations,
        upkeep=PostgresUpkeep(engine),
        forgettings=PostgresForgettings(engine),
        pauses=Pauses(),
        tokens=PostgresTokens(engine),
        metrics=metrics,
        telemetry=telemetry,
    )


async def _background(
    settings: Settings, world: _World, faults: FaultPoints, own: OwnLogs
) -> Background:
    return await background_of(
        world.index,
        world.upkeep,
        world.storage,
        publish_interval_s=settings.publish_interval_seconds,
        upkeep_share=settings.upkeep_share,
        most_behind=settings.max_commits_after_checkpoint,
        commits_to_compact=settings.commits_to_compact,
        hooks=settings.hooks,
        table_hooks=settings.table_hooks,
        store_of=world.locations.store_of,
        pauses=world.pauses,
        faults=faults,
        telemetry=world.telemetry,
        own=own,
    )


async def _composed(
    settings: Settings,
    stack: AsyncExitStack,
    faults: FaultPoints,
    among: Peers | None,
    server: ServerLimits,
) -> Service:
    world = await _opened(settings, stack)
    own_logs = OwnLogs()
    background = await _background(settings, world, faults, own_logs) if among is None else None
    waiting, most = settings.max_waiting_per_table, most_held(settings.database_pool_size)
    groups = QueueLimits(waiting=waiting, own=most, keep_s=settings.keep_version_seconds)
    committer = CommitQueue(
        run_group, groups, store_of=world.locations.store_of, pauses=world.pauses
    )
    context = Context(
        index=world.index,
        storage=world.storage,
        locations=world.locations,
        new_id=lambda: str(uuid.uuid4()),
        monotonic_s=elapsed_s,
        now_ms=lambda: time.time_ns() // 1_000_000,
        commit=committer.commit,
        late=committer.kept.late,
        commit_deadline_s=settings.deadline_seconds,
        long_deadline_s=settings.long_deadline_seconds,
        max_unpublished_versions=settings.max_unpublished_versions,
        wake_publisher=nobody_waits if background is None else background.wake,
        faults=faults,
        telemetry=world.telemetry,
        upkeep=world.upkeep,
        forgettings=world.forgettings,
        own_logs=own_logs,
        log_looks=LogLooks(max_age_s=settings.max_read_age_seconds),
        limits=CommitLimits(table_hooks=frozenset(settings.table_hooks)),
    )
    gate = Gate(
        per_principal=settings.max_requests_per_principal, most=settings.max_requests, scans=SCANS
    )
    limits = Limits(
        max_requests=settings.max_requests,
        max_connections=most_connections(settings.max_connections),
        hosts=allowed(settings.allowed_hosts, authenticated=settings.auth == "tokens"),
        max_body_bytes=settings.max_body_bytes,
        max_stream_bytes=settings.max_stream_bytes,
        max_stream_actions=settings.max_stream_actions,
        deadline_s=settings.deadline_seconds,
        long_deadline_s=settings.long_deadline_seconds,
        tokens=settings.auth == "tokens",
        server=server,
    )
    app = build(limits=limits, gate=gate, telemetry=world.telemetry)
    instruments = Instruments(
        census=world.index.census,
        pool=world.index.pool_use,
        under_way=lambda: gate.under_way,
        sections=lambda: context.running.count,
        waiting=lambda: committer.waiting + world.index.waiting,
    )
    own = Exposition(world.metrics.registry, instruments)
    attach(
        app,
        context,
        exposition=await stack.enter_async_context(shown(own, among)),
        authenticator=await _authenticator(settings, world.tokens),
    )
    if background is not None:
        await stack.enter_async_context(background.running())
    await stack.enter_async_context(forgetting_on(context))
    stack.push_async_callback(_drained, gate, context)
    return Service(app=app, gate=gate, context=context)


async def _authenticator(settings: Settings, tokens: PostgresTokens) -> Authenticator | None:
    if settings.auth == "none":
        return None
    if not any(token.live for token in await tokens.all()):
        logger.warning("there is no valid token: make one with `tidegate token create`")
    return Authenticator(tokens, monotonic_s=elapsed_s)


async def _drained(gate: Gate, context: Context) -> None:
    gate.close()
    if not await context.running.drain(timeout_s=SECTIONS_S):
        logger.warning("commit sections were cut off; their outcome is in the log or nowhere")

"""Connections to the index database."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import psycopg
from sqlalchemy import event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from tidegate_service.index.postgres.failures import translated
from tidegate_service.index.postgres.identity import ask_each_connection
from tidegate_service.index.postgres.urls import driver_url

APPLICATION_NAME = "tidegate"
TRANSACTION_TIMEOUT = 170_000
"""The first version of Postgres that has `transaction_timeout`, as libpq numbers it."""

# What an acknowledged commit's survival rests on (promise I1), and the value that breaks it.
_DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")
_STANDBYS = "synchronous_standby_names"
# A role without rights sees that there are standbys, and nothing of their state.
_REPLICATION = text("""
    SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
        count(*) FILTER (WHERE sync_state IS NULL)
    FROM pg_stat_replication
""")

logger = logging.getLogger("tidegate.index")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """Pool sizes and deadlines (ms but for the two of connecting).

    `pool_size` connections are kept, `overflow` more are made under load; whoever gets none
    within `pool_timeout_s` is told that the index is unavailable.
    """

    pool_size: int = 16
    overflow: int = 16
    pool_timeout_s: float = 10.0
    connect_timeout_s: int = 5
    lock_timeout_ms: int = 10_000
    statement_timeout_ms: int = 15_000
    # An instance that is cut off keeps its row locks until this ends its transactions,
    idle_in_transaction_timeout_ms: int = 10_000
    # and one that is cut off between two messages of a pipeline until this does: longer than a
    # section takes that waits for its lock, a file and its rows, each for as long as it may.
    transaction_timeout_ms: int = 60_000


def most_held(pool_size: int) -> int:
    """How many connections may be held by groups that wait for a store, a lock or a large commit,
    and as many by other sections of tables: there are twice `pool_size`, so some are left."""
    return max(1, pool_size * 3 // 4)


class DurabilityError(RuntimeError):
    """The database may lose commits that it has acknowledged; the message names the setting."""


def create_engine(url: str, settings: ConnectionSettings | None = None) -> AsyncEngine:
    """An engine for `PostgresIndex`. Connects nowhere yet. Raises `ValueError` for a bad URL.

    Connections are not probed before use: a use that finds its connection gone takes another,
    and the pool drops every connection of that age.
    """
    settings = settings or ConnectionSettings()
    engine = create_async_engine(
        driver_url(url),
        isolation_level="READ COMMITTED",
        pool_size=settings.pool_size,
        max_overflow=settings.overflow,
        pool_timeout=settings.pool_timeout_s,
        pool_pre_ping=False,
        # Not used, and asking for it costs every new engine a transaction.
        use_native_hstore=False,
        # Errors end up in logs; what writers wrote does not.
        hide_parameters=True,
        # Histories hold much JSON, and the standard library takes up to twenty times as long.
        json_deserializer=msgspec.json.decode,
        connect_args={
            # At each rollback the driver forgets what it has prepared, by itself, and has the
            # server forget all that the connection has, ours of `index.postgres.pipeline` included.
            "prepare_threshold": None,
            "connect_timeout": settings.connect_timeout_s,
            "application_name": APPLICATION_NAME,
            "options": _options(settings),
            # A database that has vanished from the network is noticed in about ten seconds.
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
        },
    )
    ask_each_connection(engine)

    @event.listens_for(engine.sync_engine, "connect")
    def bound_transactions(connection: DBAPIConnection, _: object) -> None:
        # Not among the options: older servers would refuse the connection.
        if has_transaction_timeout(connection.driver_connection):
            cursor = connection.cursor()
            # Outside of a transaction: one that is rolled back would take the setting along.
            connection.autocommit = True
            cursor.execute(f"SET transaction_timeout = {settings.transaction_timeout_ms}")
            connection.autocommit = False
            cursor.close()

    return engine


def has_transaction_timeout(driver: object) -> bool:
    """Whether the server of the driver's connection can bound transactions."""
    assert isinstance(driver, psycopg.AsyncConnection)
    return driver.info.server_version >= TRANSACTION_TIMEOUT


def _options(settings: ConnectionSettings) -> str:
    values = {
        "lock_timeout": settings.lock_timeout_ms,
        "statement_timeout": settings.statement_timeout_ms,
        "idle_in_transaction_session_timeout": settings.idle_in_transaction_timeout_ms,
        # Every query walks an index in its order. For a table that grows faster than the
        # planner's statistics (or than the plan kept with a prepared statement), it would
        # rather collect rows and sort them, or read everything.
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
        # The same for an instance that vanished, seen from the database.
        "tcp_keepalives_idle": 5,
        "tcp_keepalives_interval": 2,
        "tcp_keepalives_count": 3,
    }
    return " ".join(f"-c {name}={value}" for name, value in values.items())


async def check_durability(engine: AsyncEngine) -> None:
    """Raise `DurabilityError` where the database would lose acknowledged commits in a crash, or in
    a failover to the synchronous standby that it is configured with; and `IndexUnavailable` where
    it does not answer. What may lose them in other failovers is warned of."""
    with translated():
        async with engine.connect() as connection:
            settings = {
                name: str((await connection.execute(text(f"SHOW {name}"))).scalar_one())
                for name in (*_DURABILITY, _STANDBYS)
            }
            standbys = tuple((await connection.execute(_REPLICATION)).one())
    for name in _DURABILITY:
        if settings[name] == "off":
            raise DurabilityError(
                f"the index database runs with {name} = off and may lose commits that "
                f"were acknowledged; set it to on"
            )
    level = settings["synchronous_commit"]
    if settings[_STANDBYS] and level == "local":
        raise DurabilityError(
            f"the index database runs with synchronous_commit = local, so that a failover to "
            f"its synchronous standby ({settings[_STANDBYS]}) may lose commits that were "
            "acknowledged; set it to on"
        )
    for warning in _warnings(settings, standbys):
        logger.warning(warning)


def _warnings(settings: Mapping[str, str], standbys: Sequence[int]) -> Iterator[str]:
    of_all, synchronous, hidden = standbys
    if not settings[_STANDBYS]:
        if of_all:
            yield (
                "the index database has standbys, and none that commits wait for: a failover to "
                "one may lose commits that were acknowledged; set synchronous_standby_names"
            )
        return
    if settings["synchronous_commit"] == "remote_write":
        yield (
            "the index database runs with synchronous_commit = remote_write: where its standby's "
            "machine fails with it, commits that were acknowledged may be lost; set it to on"
        )
    if not synchronous and hidden:
        yield (
            "the database role may not see which standbys are synchronous; grant it "
            "pg_read_all_stats"
        )
    elif not synchronous:
        yield (
            f"the index database waits for a synchronous standby ({settings[_STANDBYS]}) and has "
            "none: commits wait until there is one"
        )

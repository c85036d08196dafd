"""Connections to the index database."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from tidegate_service.index.failures import translated
from tidegate_service.index.urls import driver_url

# What an acknowledged commit's survival rests on (promise I1), and the value that breaks it.
_DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")


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
    # An instance that is cut off keeps its row locks until this ends its transactions.
    idle_in_transaction_timeout_ms: int = 10_000


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
    return create_async_engine(
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
        connect_args={
            # At each rollback the driver forgets what it has prepared, by itself, and has the
            # server forget all that the connection has, ours of `index.pipeline` included.
            "prepare_threshold": None,
            "connect_timeout": settings.connect_timeout_s,
            "application_name": "tidegate",
            "options": _options(settings),
            # A database that has vanished from the network is noticed in about ten seconds.
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": 10_000,
        },
    )


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
    """Raise `DurabilityError` where the database would lose acknowledged commits in a crash,
    and `IndexUnavailable` where it does not answer."""
    with translated():
        async with engine.connect() as connection:
            for name in _DURABILITY:
                value = (await connection.execute(text(f"SHOW {name}"))).scalar_one()
                if value == "off":
                    raise DurabilityError(
                        f"the index database runs with {name} = off and may lose commits that "
                        f"were acknowledged; set it to on"
                    )

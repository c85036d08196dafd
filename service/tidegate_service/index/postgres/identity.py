"""Which database a connection is to: what tells that commits may have been lost since another one.

A failover, and a restore of the server, end every connection to the one that was there before, so
it is enough to ask once on each new one. `pg_restore --clean` into a database that is in use ends
none, which is why every instance is stopped before a restore (docs/maintenance.md, the runbook).
What an instance remembers of tables holds for one of these alone.
"""

import logging

import psycopg
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.pool import ConnectionPoolEntry

logger = logging.getLogger("tidegate.index")

_KEY = "tidegate_database"

# The timeline is that of the WAL, since the control file has it from the next checkpoint on only;
# a standby writes none. The oids tell a database, or a table, that was restored in a living server;
# the start tells of a data directory that was put back as it was while the server was down.
_ASK = """
    SELECT concat_ws('/', {system},
        (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()),
        pg_catalog.to_regclass('tables')::oid,
        pg_catalog.pg_is_in_recovery(),
        extract(epoch FROM pg_catalog.pg_postmaster_start_time()),
        {timeline})
"""
_SYSTEM = "(SELECT system_identifier FROM pg_catalog.pg_control_system())"
_TIMELINE = (
    "CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN "
    "left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8) END"
)
# A server may forbid these functions, lack them, or have them and not carry them out.
_CANNOT_ASK = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.FeatureNotSupported,
)


def ask_each_connection(engine: AsyncEngine) -> None:
    """Have every connection that the engine makes asked which database it is to."""
    warned = False

    @event.listens_for(engine.sync_engine, "connect")
    def ask(connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        nonlocal warned
        try:
            record.info[_KEY] = _asked(connection, system=_SYSTEM, timeline=_TIMELINE)
        except _CANNOT_ASK as error:
            connection.rollback()
            record.info[_KEY] = _asked(connection, system="NULL", timeline="NULL")
            if not warned:
                warned = True
                logger.warning(
                    "the database does not say which server it is: a restore or a failover is "
                    "told by the server's start alone; grant the role EXECUTE on "
                    "pg_control_system(), pg_walfile_name(pg_lsn) and pg_current_wal_lsn(), if the "
                    "server has them",
                    extra={"reason": error.diag.message_primary},
                )


def database_of(connection: AsyncConnection) -> str:
    """A name of the database and of the run of its server; what was seen under one is nothing that
    another has to know of."""
    raw = connection.sync_connection
    assert raw is not None, "the connection is open"
    name: str = raw.info[_KEY]
    return name


def _asked(connection: DBAPIConnection, *, system: str, timeline: str) -> str:
    cursor = connection.cursor()
    try:
        cursor.execute(_ASK.format(system=system, timeline=timeline))
        row = cursor.fetchone()
    finally:
        cursor.close()
    assert row is not None, "it is one row of one value"
    connection.rollback()
    return str(row[0])

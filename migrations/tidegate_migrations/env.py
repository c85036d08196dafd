"""How Alembic connects and runs the revisions; loaded by Alembic, never imported.

The connection comes from the caller (`tidegate_service.index.postgres.migrate` puts it into the
configuration's attributes), or from `-x url=...` or `TIDEGATE_DATABASE_URL` on Alembic's own
command line.
"""

import os

from alembic import context
from sqlalchemy import Connection

from tidegate_service.index.postgres.migrate import locked_connection
from tidegate_service.index.schema.access import metadata

# A migration waits this long for a table's lock and then fails, to be run again. While it
# waits, everybody else queues up behind it, commits included.
LOCK_TIMEOUT = "4s"
STATEMENT_TIMEOUT = "30min"


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        # Each revision stands or falls alone, and its locks end with it.
        transaction_per_migration=True,
        compare_server_default=True,
    )
    connection.exec_driver_sql(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    connection.exec_driver_sql(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'")
    connection.commit()
    with context.begin_transaction():
        context.run_migrations()


def url_of_command_line() -> str:
    url = context.get_x_argument(as_dictionary=True).get("url") or os.environ.get(
        "TIDEGATE_DATABASE_URL"
    )
    if not url:
        raise SystemExit(
            "name the database: alembic -x url=postgresql://... or TIDEGATE_DATABASE_URL"
        )
    return url


given = context.config.attributes.get("connection")
if isinstance(given, Connection):
    run(given)
else:
    with locked_connection(url_of_command_line()) as connection:
        run(connection)

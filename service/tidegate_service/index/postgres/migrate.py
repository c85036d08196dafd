"""Applying the package `tidegate_migrations` to a database (Alembic).

Works from a checkout and from an installed wheel alike: the revisions are found by their
package, never by the working directory. Everything here blocks; call it from a thread.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.index.postgres.failures import translated
from tidegate_service.index.postgres.urls import driver_url
from tidegate_service.index.schema.tables import MINIMUM_SERVER_VERSION

_PACKAGE = "tidegate_migrations"
# Any number that nobody else takes; "tidegate" in ASCII.
_LOCK = int.from_bytes(b"tidegate", "big")
_LOCK_WAIT = "10min"


def upgrade(url: str) -> None:
    """Bring the database to this release's schema; does nothing where it is there or beyond.

    Several processes may do this at once: one migrates, the others wait and find it done.
    Raises `IndexUnavailable` where the database does not answer or cannot hold the index.
    """
    _run(url, None)


def downgrade(url: str, revision: str) -> None:
    """Take the database back to a revision, or to nothing by "base". Its data go with it."""
    _run(url, revision)


def current(url: str) -> str | None:
    """The revision the database is at; None for an empty one. Raises `IndexUnavailable`."""
    with _connection(url) as connection:
        return _revision_of(connection)


def head() -> str:
    """This release's revision."""
    revision = _scripts(_config()).get_current_head()
    if revision is None:
        raise RuntimeError(f"the package {_PACKAGE} holds no revision")
    return revision


def pending(url: str) -> bool:
    """True where `upgrade` has work to do. A database that a newer release has migrated is
    ahead and has nothing pending: each release's schema serves the release before it."""
    return _is_behind(_scripts(_config()), current(url))


@contextmanager
def locked_connection(url: str) -> Iterator[Connection]:
    """A connection that no second migration of the same database can have at the same time."""
    with _connection(url) as connection:
        _check_server(connection)
        # Taken before the revision is read, and for the session: each revision commits.
        connection.exec_driver_sql(f"SET lock_timeout = '{_LOCK_WAIT}'")
        connection.exec_driver_sql(f"SELECT pg_advisory_lock({_LOCK})")
        connection.commit()
        yield connection


def _run(url: str, down_to: str | None) -> None:
    config = _config()
    with locked_connection(url) as connection:
        config.attributes["connection"] = connection
        if down_to is not None:
            command.downgrade(config, down_to)
        elif _is_behind(_scripts(config), _revision_of(connection)):
            command.upgrade(config, "head")


@contextmanager
def _connection(url: str) -> Iterator[Connection]:
    engine = create_engine(
        driver_url(url), poolclass=NullPool, connect_args={"connect_timeout": 10}
    )
    with translated(), engine.connect() as connection:
        yield connection


def _check_server(connection: Connection) -> None:
    version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one())
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
    connection.commit()
    if version < MINIMUM_SERVER_VERSION:
        raise IndexUnavailable(
            f"the index needs Postgres {MINIMUM_SERVER_VERSION // 10000} or newer, "
            f"found {version // 10000}"
        )
    if encoding != "UTF8":
        raise IndexUnavailable(
            f"the index needs a database with the encoding UTF8, found {encoding}"
        )


def _revision_of(connection: Connection) -> str | None:
    revision = MigrationContext.configure(connection).get_current_revision()
    connection.commit()
    return revision


def _is_behind(scripts: ScriptDirectory, revision: str | None) -> bool:
    known = {script.revision for script in scripts.walk_revisions()}
    if revision is not None and revision not in known:
        return False
    return revision != scripts.get_current_head()


def _scripts(config: Config) -> ScriptDirectory:
    return ScriptDirectory.from_config(config)


def _config() -> Config:
    spec = find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError(f"the package {_PACKAGE} is not installed")
    config = Config()
    # ConfigParser interpolates "%".
    location = spec.submodule_search_locations[0].replace("%", "%%")
    config.set_main_option("script_location", location)
    config.set_main_option("path_separator", "os")
    return config

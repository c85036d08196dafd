"""The index's database as the settings have it: the instance's own server, or another one; and the
folder of what is the instance's own."""

import asyncio
from contextlib import AsyncExitStack

from tidegate_service.index.embedded.database import embedded
from tidegate_service.index.embedded.server import (
    DataDirectoryInUse,
    EmbeddedPostgres,
    is_made,
)
from tidegate_service.index.postgres import migrate
from tidegate_service.settings import Settings
from tidegate_service.storage.local.data_folder import make_data_folder


class CannotStart(Exception):
    """The service cannot run with these settings as things are; the message says why."""


async def database_of(settings: Settings, stack: AsyncExitStack) -> str:
    """The URL of the index; an embedded server is stopped with the stack."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    return await stack.enter_async_context(embedded(settings.data_dir))


def ensure_schema(settings: Settings, url: str) -> None:
    """The embedded database follows the release; a foreign one is only migrated if told to."""
    if settings.database_url is None or settings.migrate:
        migrate.upgrade(url)
    elif migrate.pending(url):
        found = migrate.current(url) or "none at all"
        raise CannotStart(
            f"the database at {settings.masked_database_url()} has the schema revision {found}, "
            f"and this release needs {migrate.head()}: run `tidegate migrate`, or serve with "
            "--migrate"
        )


def check_is_there(settings: Settings) -> None:
    """Raises `CannotStart` where the index is an embedded one that no service has made: who
    administers a service looks for its data folder, and has no use for a second one."""
    if settings.database_url is None and not is_made(settings.data_dir):
        raise CannotStart(
            f"no service has kept its index in {settings.data_dir.resolve()}; expected the data "
            "folder of a `tidegate serve` (--data-dir, TIDEGATE_DATA_DIR) or its database "
            "(--database-url, TIDEGATE_DATABASE_URL)"
        )


async def database_beside(settings: Settings, stack: AsyncExitStack) -> str:
    """The database, its embedded server started (and migrated) unless a service runs it. Raises
    `CannotStart` as `check_is_there` does."""
    check_is_there(settings)
    try:
        url = await database_of(settings, stack)
    except DataDirectoryInUse:
        return EmbeddedPostgres(settings.data_dir).url_beside()
    if settings.database_url is None:
        await asyncio.to_thread(migrate.upgrade, url)
    return url


def make_folder(settings: Settings) -> None:
    """Where the database and the warehouse are others', nothing is kept in it."""
    own = settings.warehouse is None
    if own or settings.database_url is None:
        make_data_folder(settings.data_dir, mode=settings.folder_mode, warehouse=own)

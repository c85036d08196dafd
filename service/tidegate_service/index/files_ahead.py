"""The files of a very large commit, written while the rest of it is still being made.

From the lock to such a commit's row it takes seconds: it is checked, its bytes are hashed,
compressed and, on a plain table, put into the log. The database would have nothing to do meanwhile,
and what it takes longest for needs only the version and the actions. So the files are begun behind
a savepoint. What turns out not to become that version is taken back, and written as if nothing had
been.
"""

from collections.abc import Sequence
from operator import is_
from uuid import UUID

import psycopg

from tidegate_protocol.actions import Action
from tidegate_protocol.spooled import Spooled
from tidegate_service.core import heavy
from tidegate_service.index import bulk_files
from tidegate_service.index.pipeline import Driver

_BEGIN = "SAVEPOINT tidegate_files_ahead"
_TAKE_BACK = "ROLLBACK TO SAVEPOINT tidegate_files_ahead"


class FilesAhead:
    """The file actions of one version of one table. `write` and `take_back` are for whoever has
    the connection to itself, one after the other."""

    def __init__(self, table_id: UUID, version: int, actions: Sequence[Action]) -> None:
        self.version = version
        self.size = len(actions)
        self._table_id = table_id
        self._actions = actions
        self._is_begun = False
        self._is_whole = False
        self._is_stopped = False

    async def write(self, driver: Driver) -> None:
        """Begin with it, and go on until `stop`. Raises `psycopg.Error` only where the connection
        is lost: what the database refuses, it refuses again when the commit is written."""
        files = await heavy.run(self.size, _spooled, self._actions)
        try:
            await driver.execute(_BEGIN)
            self._is_begun = True
            with heavy.sharing:
                await bulk_files.write(
                    driver, self._table_id, self.version, files, until=lambda: self._is_stopped
                )
        except psycopg.Error:
            if driver.closed or not self._is_begun:
                raise
            return
        self._is_whole = not self._is_stopped

    def stop(self) -> None:
        """Nothing of it is wanted any more; `write` ends soon."""
        self._is_stopped = True

    async def take_back(self, driver: Driver) -> None:
        """As if it had not been begun."""
        if self._is_begun:
            await driver.execute(_TAKE_BACK)
        self._is_begun = self._is_whole = False

    async def is_of(self, version: int, files: Sequence[Spooled]) -> bool:
        """Whether these are the files of that version, once `write` has ended or not."""
        if version != self.version:
            return False
        return await heavy.run(self.size, _is_same, self._actions, files)

    async def written(self, driver: Driver) -> bool:
        """Whether all of it is; otherwise it is taken back."""
        if not self._is_whole:
            await self.take_back(driver)
        return self._is_whole


def _spooled(actions: Sequence[Action]) -> list[Spooled]:
    return [action for action in actions if isinstance(action, Spooled)]


def _is_same(actions: Sequence[Action], files: Sequence[Spooled]) -> bool:
    known = _spooled(actions)
    return len(known) == len(files) and all(map(is_, known, files))

"""One Postgres transaction that holds the locks of one or more tables' rows.

The commits of its sections are collected and written together: before anything is read that they
may have changed, where they become many, and before COMMIT.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.errors import CommitStateUnknown, ServiceError
from tidegate_service.core.ports.index import FilesFirst
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.failures import is_certain_rollback, translated
from tidegate_service.index.postgres.pipeline import Driver, Query, Statement
from tidegate_service.index.writing import writes
from tidegate_service.index.writing.writes import Counts, Staged

ROWS_A_S = 5_000
"""What the slowest database is expected to write in a second."""
STAGED_COMMITS = 500
STAGED_ROWS = 5_000
"""From so many commits or files on, what is collected is written."""

MARKS = 32
"""Savepoints of one transaction: each takes an id of its own, and of more than 64 every session's
snapshot has to be looked up."""

_MARK = Query(Statement("SAVEPOINT before_files"))
_TAKE_BACK = Query(Statement("ROLLBACK TO SAVEPOINT before_files"))

_PLAN_ANEW = text("SET LOCAL plan_cache_mode = auto")

Written = Callable[[UUID, Counts], None]
"""Told what a table holds after its commits were written."""


class UnitOfWork:
    """`broken` says that the connection must not be used again: a statement on it failed, or its
    COMMIT got no answer. `answer_timeout_s` ends the wait for a database that went silent,
    which its own timeouts cannot."""

    def __init__(
        self, connection: AsyncConnection, driver: Driver, *, answer_timeout_s: float
    ) -> None:
        self.broken = False
        self.saved = False
        self.is_half_made = False
        """While a table's index is made anew: it must not be saved before it is whole."""
        self._connection = connection
        self._driver = driver
        self._answer_timeout_s = answer_timeout_s
        self._staged: list[Staged] = []
        self._staged_rows = 0
        self._written: dict[UUID, Written] = {}
        self._writing: asyncio.Task[None] | None = None
        self._plans_anew = False
        self._is_held = False
        # Written behind a savepoint; not to be saved before they are let go.
        self._revocable: list[Staged] = []
        self._marks = 0

    def stage(self, staged: Staged, written: Written) -> TableRecord:
        """Collect a commit to be written; the head of its table once it is. Raises what went wrong
        with those before it, where that is known already."""
        if self._writing is not None and self._writing.done():
            writing, self._writing = self._writing, None
            writing.result()
        self._check_usable()
        self._staged.append(staged)
        self._staged_rows += staged.effects.size
        self._written[staged.table_id] = written
        return writes.head_after(staged)

    def hold(self) -> None:
        """From now on what is collected must not be saved, nor anything be asked, until it is let
        go of: files have to be there first."""
        self._is_held = True

    def let_go(self) -> None:
        self._is_held = False
        self._revocable = []

    @asynccontextmanager
    async def writing_held(self) -> AsyncIterator[None]:
        """Write what is held, in a way that `unstage` can still take back, while the caller puts
        its files. Raises what went wrong with the writing once both have ended. Where that was done
        often enough already, it is written later."""
        await self._settle()
        if self._marks == MARKS:
            yield
            return
        self._marks += 1
        self._revocable = self._taken()
        self._writing = asyncio.create_task(self._revocably(self._revocable), name="write-held")
        try:
            yield
        finally:
            await asyncio.wait([self._writing])
        await self._settle()

    async def unstage(self, count: int) -> None:
        """Take the newest of the commits back that are held."""
        if self._revocable:
            async with self._answered():
                await pipeline.run(self._driver, [_TAKE_BACK])
            self._staged, self._revocable = self._revocable, []
        if count > len(self._staged):
            raise ValueError(f"{count} commits to take back, and {len(self._staged)} are held")
        del self._staged[len(self._staged) - count :]
        self._staged_rows = sum(staged.effects.size for staged in self._staged)

    @property
    def is_full(self) -> bool:
        """Whether what is collected should be written before more is. What is held cannot be."""
        if self._is_held:
            return False
        return len(self._staged) >= STAGED_COMMITS or self._staged_rows >= STAGED_ROWS

    def write_ahead(self) -> None:
        """Begin to write what is collected, while the caller waits for something else."""
        if self._writing is None and self._staged and not self.broken and not self._is_held:
            self._writing = asyncio.create_task(self._ahead(), name="write-ahead")

    async def flush(self) -> None:
        """Write what is collected."""
        await self._settle()
        await self._flush()

    @asynccontextmanager
    async def statements(self) -> AsyncIterator[AsyncConnection]:
        """For statements that see all commits so far."""
        await self.flush()
        async with self._answered():
            if not self._plans_anew:
                # The pipelines' kept plans are for statements that have one plan at best.
                await self._connection.execute(_PLAN_ANEW)
                self._plans_anew = True
            yield self._connection

    async def save(self, described: str) -> None:
        """COMMIT. Raises `CommitStateUnknown` where the answer was lost."""
        if self.is_half_made:
            raise ServiceError(f"the index of {described} is being made anew, and is not whole")
        await self.flush()
        self.saved = True
        try:
            async with asyncio.timeout(self._answer_timeout_s):
                await pipeline.commit(self._driver)
        except Exception as error:
            self.broken = True
            if is_certain_rollback(error):
                with translated():
                    raise
            raise CommitStateUnknown(
                f"the database did not say whether a commit to {described} succeeded"
            ) from error
        except BaseException:
            self.broken = True
            raise

    async def abandon(self) -> None:
        """Wait for what `write_ahead` began, so that nobody uses the connection any more."""
        writing, self._writing = self._writing, None
        if writing is not None:
            await asyncio.wait([writing])
            if not writing.cancelled():
                # It broke the unit, which is rolled back, and whoever went on was told.
                writing.exception()

    async def _settle(self) -> None:
        """Wait for what `write_ahead` began. Raises what that raised."""
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing
        self._check_usable()

    async def _flush(self) -> None:
        await self._ahead()
        if self._staged or self._revocable:
            raise FilesFirst

    async def _ahead(self) -> None:
        # Asked each time: what was begun before may come to its turn when others are held.
        while self._staged and not self._is_held:
            await self._write(self._taken())

    async def _revocably(self, staged: Sequence[Staged]) -> None:
        async with self._answered():
            await pipeline.run(self._driver, [_MARK])
        await self._write(staged)

    def _taken(self) -> list[Staged]:
        staged, self._staged, self._staged_rows = self._staged, [], 0
        return staged

    async def _write(self, staged: Sequence[Staged]) -> None:
        async with self._answered(rows=sum(one.effects.size for one in staged)):
            counts = await writes.write(self._driver, staged)
        for table_id, counted in counts.items():
            self._written[table_id](table_id, counted)

    @asynccontextmanager
    async def _answered(self, *, rows: int = 0) -> AsyncIterator[None]:
        """`rows` is how many are written, which takes its time however well the database is."""
        try:
            with translated():
                async with asyncio.timeout(self._answer_timeout_s + rows / ROWS_A_S):
                    yield
        except BaseException:
            # Postgres takes nothing more in this transaction, and who knows what else is amiss.
            self.broken = True
            raise

    def _check_usable(self) -> None:
        if self.broken or self.saved:
            raise RuntimeError("the commit section is over: it was saved, or a statement failed")

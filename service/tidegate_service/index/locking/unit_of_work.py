"""One Postgres transaction that holds the locks of one or more tables' rows.

The commits of its sections are staged, and written together: before a statement that must see them,
when there are many, and before COMMIT.
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
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.failures import is_certain_rollback, translated
from tidegate_service.index.postgres.pipeline import Driver, Query, Row
from tidegate_service.index.writing import writes
from tidegate_service.index.writing.writes import Counts, Staged

ROWS_A_S = 5_000
"""How many rows the slowest database is expected to write in a second."""
STAGED_ROWS = 5_000
"""From so many staged files on, or `IndexLimits.staged_commits`, they are written."""

_PLAN_ANEW = text("SET LOCAL plan_cache_mode = auto")

Written = Callable[[UUID, Counts], None]
"""Called with a table's counts after its commits were written."""


class UnitOfWork:
    """The transaction and its staged commits. `broken` says that the connection must not be used
    again: a statement on it failed, or its COMMIT got no answer. `answer_timeout_s` ends the wait
    for a database that went silent, which the database's own timeouts cannot."""

    def __init__(
        self,
        connection: AsyncConnection,
        driver: Driver,
        *,
        answer_timeout_s: float,
        limits: IndexLimits,
    ) -> None:
        self.limits = limits
        self.broken = False
        self.saved = False
        self.is_half_made = False
        """True while a table's index is made anew. It must not be committed before it is whole."""
        self._connection = connection
        self._driver = driver
        self._answer_timeout_s = answer_timeout_s
        self._staged: list[Staged] = []
        self._staged_rows = 0
        self._written: dict[UUID, Written] = {}
        self._writing: asyncio.Task[None] | None = None
        self._plans_anew = False
        self._is_deferred = False

    def stage(self, staged: Staged, written: Written) -> TableRecord:
        """Stage a commit. Returns the head of its table once it is written. Raises the error of
        commits before it, where their writing has failed already."""
        if self._writing is not None and self._writing.done():
            writing, self._writing = self._writing, None
            writing.result()
        self._check_usable()
        self._staged.append(staged)
        self._staged_rows += staged.effects.size
        self._written[staged.table_id] = written
        return writes.head_after(staged)

    def defer_saving(self) -> None:
        """Defer saving all staged commits, since files have to be there first. Until `allow_saving`
        nothing can be committed, and no statement can be made but by `ask`."""
        self._is_deferred = True

    def allow_saving(self) -> None:
        self._is_deferred = False

    def unstage(self, count: int) -> None:
        """Drop the newest deferred commits."""
        if count > len(self._staged):
            raise ValueError(f"{count} commits to drop, and {len(self._staged)} are deferred")
        del self._staged[len(self._staged) - count :]
        self._staged_rows = sum(staged.effects.size for staged in self._staged)

    @property
    def is_full(self) -> bool:
        """Whether the staged commits should be written before more are staged. Held commits cannot
        be."""
        if self._is_deferred:
            return False
        return len(self._staged) >= self.limits.staged_commits or self._staged_rows >= STAGED_ROWS

    def write_ahead(self) -> None:
        """Begin to write the staged commits, while the caller waits for something else."""
        if self._writing is None and self._staged and not self.broken and not self._is_deferred:
            self._writing = asyncio.create_task(self._ahead(), name="write-ahead")

    async def flush(self) -> None:
        """Write the staged commits. Raises `FilesFirst` where some are deferred."""
        await self._finish_writing()
        await self._flush()

    @asynccontextmanager
    async def statements(self) -> AsyncIterator[AsyncConnection]:
        """The connection, for statements that see all commits so far."""
        await self.flush()
        async with self._answered():
            if not self._plans_anew:
                # The pipelines' cached plans are for statements with one best plan.
                await self._connection.execute(_PLAN_ANEW)
                self._plans_anew = True
            yield self._connection

    async def ask(self, queries: Sequence[Query]) -> list[list[Row]]:
        """The rows of queries that need not see the staged commits."""
        await self._finish_writing()
        async with self._answered():
            return await pipeline.run(self._driver, queries)

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
        """Wait for the writing that `write_ahead` began, so that nothing uses the connection any
        more."""
        writing, self._writing = self._writing, None
        if writing is not None:
            await asyncio.wait([writing])
            if not writing.cancelled():
                # The error broke the unit, which is rolled back: later calls have raised.
                writing.exception()

    async def _finish_writing(self) -> None:
        """Wait for the writing that `write_ahead` began. Raises its error."""
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing
        self._check_usable()

    async def _flush(self) -> None:
        await self._ahead()
        if self._staged:
            raise FilesFirst

    async def _ahead(self) -> None:
        # Checked each time: commits may be deferred by the time that this task runs.
        while self._staged and not self._is_deferred:
            await self._write(self._taken())

    def _taken(self) -> list[Staged]:
        staged, self._staged, self._staged_rows = self._staged, [], 0
        return staged

    async def _write(self, staged: Sequence[Staged]) -> None:
        async with self._answered(rows=sum(one.weight for one in staged)):
            counts = await writes.write(self._driver, staged)
        for table_id, counted in counts.items():
            self._written[table_id](table_id, counted)

    @asynccontextmanager
    async def _answered(self, *, rows: int = 0) -> AsyncIterator[None]:
        """Bound the wait for an answer: the more rows are written, the longer it may take."""
        try:
            with translated():
                async with asyncio.timeout(self._answer_timeout_s + rows / ROWS_A_S):
                    yield
        except BaseException:
            # After an error, Postgres accepts no further statement in this transaction.
            self.broken = True
            raise

    def _check_usable(self) -> None:
        if self.broken or self.saved:
            raise RuntimeError("the commit section is over: it was saved, or a statement failed")

"""One transaction of the database in memory, and what commits have not written into it yet.

As `index/locking/unit_of_work.py`: commits are collected, written together, and deferred until
their files are there. What a write or a COMMIT may meet is a choice: the session is ended, an
answer is lost, a COMMIT arrives after its sender has given up.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from tests.simulation.ports.network import Answering
from tests.simulation.ports.rows import stored_metadata, stored_protocol
from tests.simulation.ports.server import Session
from tidegate_service.core.errors import CommitStateUnknown, IndexUnavailable, ServiceError
from tidegate_service.core.ports.index import FilesFirst
from tidegate_service.core.ports.records import RatifiedCommit, TableRecord
from tidegate_service.index.rows.effects import Effects

T = TypeVar("T")

Staged = tuple[TableRecord, RatifiedCommit, Effects]
"""A commit to write, with the head that it follows."""

STAGED_COMMITS = 500
"""After so long without an answer a session is given up by its client."""


class MemoryUnit:
    """`faults` are the likelihoods of what a statement and a COMMIT may meet beside success."""

    def __init__(self, session: Session, faults: "DatabaseFaults | None" = None) -> None:
        self.broken = False
        self.saved = False
        self.is_half_made = False
        self._session = session
        self._faults = faults or NO_DATABASE_FAULTS
        self._staged: list[Staged] = []
        self._is_deferred = False
        self._writing: asyncio.Task[None] | None = None
        self._counted: dict[str, Callable[[TableRecord], None]] = {}

    @property
    def session(self) -> Session:
        return self._session

    def stage(self, staged: Staged, counted: Callable[[TableRecord], None]) -> TableRecord:
        if self._writing is not None and self._writing.done():
            writing, self._writing = self._writing, None
            writing.result()
        self._check_usable()
        before, commit, effects = staged
        self._staged.append(staged)
        self._counted[before.id] = counted
        return replace(
            before,
            latest_version=commit.record.version,
            published_version=commit.record.version
            if commit.published
            else before.published_version,
            latest_timestamp=commit.record.timestamp,
            protocol=stored_protocol(effects.protocol) or before.protocol,
            metadata=stored_metadata(effects.metadata) or before.metadata,
        )

    @property
    def is_full(self) -> bool:
        return not self._is_deferred and len(self._staged) >= STAGED_COMMITS

    def defer_saving(self) -> None:
        self._is_deferred = True

    def allow_saving(self) -> None:
        self._is_deferred = False

    def unstage(self, count: int) -> None:
        if count > len(self._staged):
            raise ValueError(f"{count} commits to drop, and {len(self._staged)} are deferred")
        del self._staged[len(self._staged) - count :]

    def write_ahead(self) -> None:
        if self._writing is None and self._staged and not self.broken and not self._is_deferred:
            self._writing = asyncio.create_task(self._ahead(), name="write-ahead")

    async def flush(self) -> None:
        await self._settle()
        await self._ahead()
        if self._staged:
            raise FilesFirst

    async def statement(self, effect: Callable[[], T]) -> T:
        """A statement that sees all commits so far."""
        if self._staged or self._writing is not None:
            await self.flush()
        self._check_usable()
        return await self.run(effect)

    async def run(self, effect: Callable[[], T]) -> T:
        """Whatever goes wrong with it, the connection is not used again."""
        session = self._session

        def arrived() -> T:
            session.check()
            if self._faults.ends_session(session):
                session.end()
            session.check()
            result = effect()
            session.asked()
            return result

        try:
            return await session.network.call(arrived, what="sql")
        except BaseException:
            self.broken = True
            raise

    async def save(self, described: str) -> None:
        if self.is_half_made:
            raise ServiceError(f"the index of {described} is being made anew, and is not whole")
        await self.flush()
        self.saved = True
        session = self._session
        try:
            await session.network.rest("commit")
            await session.network.request(
                lambda answer: self._faults.commit(session, answer), what="commit"
            )
        except Unanswered as error:
            self.broken = True
            raise CommitStateUnknown(
                f"the database did not say whether a commit to {described} succeeded"
            ) from error
        except BaseException:
            self.broken = True
            raise

    async def abandon(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            await asyncio.wait([writing])
            if not writing.cancelled():
                writing.exception()

    def close(self) -> None:
        """Roll back what is not committed; the database learns of it a little later."""
        session = self._session
        if not session.is_over and not (self.saved and self.broken):
            session.network.after(0.001, session.end)

    async def _settle(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing
        self._check_usable()

    async def _ahead(self) -> None:
        while self._staged and not self._is_deferred:
            staged, self._staged = self._staged, []
            await self._write(staged)

    async def _write(self, staged: list[Staged]) -> None:
        def write() -> list[TableRecord]:
            for before, commit, effects in staged:
                self._session.changing(before.id).write(commit, effects)
            return [self._session.changing(before.id).record for before, _, _ in staged]

        for record in await self.run(write):
            self._counted[record.id](record)

    def _check_usable(self) -> None:
        if self.broken or self.saved:
            raise RuntimeError("the commit section is over: it was saved, or a statement failed")


class Unanswered(Exception):
    """A COMMIT without an answer."""


class DatabaseFaults:
    """What statements and COMMITs may meet. `statement` is how likely one's session is ended by the
    server; `commits` are the likelihoods of what a COMMIT meets: success, an answer lost after it
    was done, one lost before, one that arrives late, and a session that had ended."""

    def __init__(
        self,
        statement: tuple[float, float] = (1.0, 0.0),
        commits: tuple[float, ...] = (1.0,),
    ) -> None:
        self._statement = statement
        self._commits = commits

    def ends_session(self, session: Session) -> bool:
        if not self._statement[1]:
            return False
        return session.network.choices.pick("server.ends", self._statement) == 1

    def commit(self, session: Session, answer: Answering) -> None:
        """Called when a COMMIT arrives."""
        if session.is_over:
            # It ended before: the server says so, or nobody does any more.
            said = session.network.choices.pick("server.says", (0.5, 0.5)) == 0
            ended = IndexUnavailable("the index database ended a commit that was idle for too long")
            answer(None, ended if said else Unanswered())
            return
        what = (
            0
            if len(self._commits) == 1
            else session.network.choices.pick("server.commit", self._commits)
        )
        if what == 0:
            session.commit()
            answer(None, None)
        elif what == 1:
            session.commit()
            answer(None, Unanswered())
        elif what == 2:
            answer(None, Unanswered())
            session.network.after(5.0, session.end)
        elif what == 3:
            answer(None, Unanswered())
            late_s = (0.5, 6.0)[session.network.choices.among("server.late", 2)]
            session.commit_later(late_s)
        else:
            session.end()
            answer(None, IndexUnavailable("the index database does not answer"))


NO_DATABASE_FAULTS = DatabaseFaults()

"""A table under its lock, with its newest commits in memory."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tidegate_protocol.conflict.window import CommitWindow
from tidegate_protocol.features.known import ROW_TRACKING
from tidegate_protocol.features.row_tracking import first_with_mark, mark_before
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.proposal.transaction import (
    Conflict,
    PreparedTransaction,
    ReadState,
    WinningCommit,
)
from tidegate_protocol.replay.commits import summarize
from tidegate_service.core.instance.window_cache import ACTIONS_A_TABLE, WindowCache
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.ports.index import CommitSection, TakesLong
from tidegate_service.core.ports.records import LONG_METADATA, RatifiedCommit, TableRecord
from tidegate_service.core.sharing import offload


class ManyWinners(Exception):
    """The commits since a transaction's read version are more than may be read under the table's
    lock. They are looked through without it, before (`core.commit.early_check`)."""


class LockedTable:
    """A commit section and the window of its table.

    Commits that the window lacks are read from the index, if they are few: whoever waits for the
    lock waits for that. `keep` gives the window back for the next section, once all commits in it
    are saved. In a `shared` group, proposals to other tables wait, too.
    """

    def __init__(
        self,
        section: CommitSection,
        windows: WindowCache,
        limits: CommitLimits,
        *,
        shared: bool = False,
    ) -> None:
        self.section = section
        self.shared = shared
        self.limits = limits
        self._windows = windows
        self._epoch = section.table.epoch
        self._window = windows.take(section.table, section.database)

    @property
    def head(self) -> int:
        """The latest version, those of this section included."""
        return self.section.table.latest_version

    async def state_at(self, version: int) -> ReadState | None:
        """The table at a version; None where the index lacks some of the commits since then. Raises
        as `reaches`, and `TakesLong` in a shared group where it takes long to be read."""
        table = self.section.table
        if not await self.reaches(version):
            return None
        if version == self.head or not self._window.changes_table(version):
            state = ReadState(version=version, protocol=table.protocol, metadata=table.metadata)
        else:
            earlier = await self._earlier(version)
            if earlier is None:
                return None
            state = earlier
        if state.protocol is None or not supports(state.protocol, ROW_TRACKING):
            return state
        # The index has the high-water mark of the head, not of the version.
        latest = await self.section.row_id_high_water_mark()
        winners = () if version == self.head else self._window.winners(version)
        first = first_with_mark(winners)
        weight = 0 if first is None else first.weight
        mark = await offload.run(weight, mark_before, winners, latest)
        return replace(state, row_id_high_water_mark=mark)

    async def _earlier(self, version: int) -> ReadState | None:
        """The table before the head, of which it is not known how long its metadata was."""
        try:
            return await self.section.state_at(version, most_bytes=LONG_METADATA)
        except TakesLong:
            if self.shared:
                raise
            # It is decoded in a thread, behind its caller's other work there.
            await self.section.take_time()
            return await self.section.state_at(version)

    def weight_of(self, txn: PreparedTransaction) -> int:
        """How heavy the conflict check of a transaction by the window is, in actions."""
        return 0 if txn.checked_through == self.head else self._window.weight_of(txn)

    def check_conflicts(self, txn: PreparedTransaction) -> PreparedTransaction | Conflict:
        """The transaction rebased past every commit since its read version, or its first conflict.
        `state_at` of the read version was called before."""
        return txn if txn.checked_through == self.head else self._window.check_conflicts(txn)

    async def append(self, commit: RatifiedCommit) -> None:
        """Append the table's next version, which nobody sees before the section is saved."""
        if not self._is_current or self._window.through != self.head:
            await self.section.append(commit)
            return
        version, time = commit.record.version, commit.record.timestamp
        if len(commit.actions) > ACTIONS_A_TABLE:
            await self.section.append(commit)
            # No window keeps so large a commit, and summarizing it takes long.
            self._window = CommitWindow(after=version)
            return
        # Before the section takes the commit: after that, nothing may fail.
        summary = partial(summarize, timestamp=time)
        winner = await offload.run(commit.weight, summary, version, commit.actions)
        await self.section.append(commit)
        self._window.append(winner)

    def unstage(self, count: int, head: TableRecord) -> None:
        """Drop the newest commits, whose files are not there. The table is at `head` again."""
        self.section.unstage(count, head)
        if self._is_current and self._window.through > head.latest_version:
            self._window.drop_after(head.latest_version)

    def keep(self) -> None:
        """Give the window back, after the section was saved or where nothing was written in it."""
        if self._is_current:
            self._windows.give(self.section.table, self._window, self.section.database)

    def end(self) -> None:
        """The section is over: whoever still has this, as an error has, holds nothing by it."""
        self._window = CommitWindow(after=self.head)

    @property
    def _is_current(self) -> bool:
        return self.section.table.epoch == self._epoch

    async def reaches(self, after: int) -> bool:
        """Have the window hold every commit after this version; False where the index does not
        have them all. Raises `ManyWinners` where these are too many to be read under the lock."""
        if after == self.head:
            return True
        if after < self.section.table.first_version:
            return False
        if not self._is_current or after > self._window.through:
            # The index was made anew in this section, or no commit in the window is of use.
            self._epoch = self.section.table.epoch
            self._window = CommitWindow(after=after)
        longest = max(self.head - self._window.through, self._window.after - after)
        if longest > self.limits.winner_commits:
            raise ManyWinners
        newer = await self._winners(self._window.through, self.head)
        older = await self._winners(after, self._window.after)
        if newer is None or older is None:
            return False
        if older:
            held = self._window.winners(self._window.after)
            self._window = CommitWindow(after=after)
            for winner in (*older, *held):
                self._window.append(winner)
        for winner in newer:
            self._window.append(winner)
        return True

    async def _winners(self, after: int, through: int) -> Sequence[WinningCommit] | None:
        try:
            return await self.section.winners(
                after, through, most_bytes=self.limits.locked_winner_bytes
            )
        except TakesLong:
            raise ManyWinners from None

"""What the upkeep of tables needs from the index: which is due, a claim on it, and how it stands.

Upkeep is work on a table's log that no commit waits for: checkpoints, compacted files, checksums,
clean-up, dropping what has expired of the index, the runs of hooks. Each run begins from what the
index and the log hold, and may be done twice: a claim saves time, and nothing rests on it. Kinds
are those of `core.upkeep.job.Job`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate_service.core.access.audit import Change
from tidegate_service.core.ports.checkpoints import Counted
from tidegate_service.core.ports.upkeep.expired import ExpiredIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepRecord:
    """How one kind of upkeep of a table stands. What `version` means is said by the kind; it is -1
    before the first time. `done_ms` is when it was last done, by the database's clock. `trouble` is
    why it does not go on as it should."""

    version: int
    done_ms: int | None
    failures: int
    trouble: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A kind of upkeep that is due for a table; `scope` is the table's schema, with its catalog.
    `behind` is how many published versions the index holds that are newer than the record's.
    `takes_over`: of checkpoints, that the last one has parts which the next may take over."""

    table_id: str
    scope: str
    kind: str
    behind: int
    takes_over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is due of the tables that were looked at; `last` is the last of them in the order of
    their ids, None where none is behind it."""

    due: Sequence[Due]
    last: str | None


AT_NEW_METADATA = 2**63 - 1
"""A `due_version` of what the table does not ask for. It is due again when a version later than the
record's is published that changes protocol or metadata, and is not told as a table's upkeep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What to keep of a kind of upkeep. It is due again when the table is published up to
    `due_version`, or in `due_in_s` seconds, whichever comes first."""

    version: int
    due_version: int | None = None
    due_in_s: float | None = None
    trouble: str | None = None


class UpkeepStanding(Protocol):
    """How tables and their upkeep stand. Calls raise `IndexUnavailable`."""

    async def standing(self, table_id: str) -> Mapping[str, UpkeepRecord]:
        """How the table's upkeep stands; what was never begun is not there."""
        ...

    async def counted(self, table_id: str, version: int | None = None) -> Counted | None:
        """At the head by default. In bounded time, however large the table is; None where it is
        gone, and of a version before where that is not held, or the table is a large one."""
        ...

    async def set_back(self, table_id: str, kind: str, *, to: int) -> bool:
        """Have what was done of versions later than `to` done again, now. False, and nothing
        done, where somebody has claimed it."""
        ...

    async def record_done(self, table_id: str, kind: str, version: int) -> None:
        """Keep that this was done, up to a version, by somebody who had not to claim it."""
        ...

    async def claim_now(self, table_id: str, kind: str, *, by: str, for_s: float) -> bool:
        """Claim what somebody asks for, due or not; False where another has it. Raises `NotFound`
        for a table that is gone."""
        ...

    async def extend_claim(self, table_id: str, kind: str, *, by: str, for_s: float) -> None:
        """Make a claim last from now on. It is lost for good to whoever claimed it meanwhile."""
        ...

    async def release_claim(self, table_id: str, kind: str, *, by: str) -> None:
        """End a claim of `by`. What is due is due as before."""
        ...


class UpkeepIndex(UpkeepStanding, ExpiredIndex, Protocol):
    """What the background needs besides."""

    async def due(
        self,
        kinds: Sequence[str],
        *,
        after: str | None,
        also: Sequence[str],
        limit: int,
        some: bool = False,
    ) -> Page:
        """What is due, and not claimed, of up to `limit` tables behind the id `after`, and of the
        tables `also`. With `some`, of each schema's work of a kind only that which is the farthest
        behind, and any other: as much as one look can choose from, however many tables are due."""
        ...

    async def claim(
        self, table_id: str, kind: str, *, by: str, for_s: float
    ) -> UpkeepRecord | None:
        """Claim what is still due; None where it is not, or another has it."""
        ...

    async def done(self, table_id: str, kind: str, done: Done, *, by: str) -> None:
        """Keep what was done, and release the claim; nothing where that was lost."""
        ...

    async def failed(
        self, table_id: str, kind: str, trouble: str, *, by: str, again_in_s: float
    ) -> None:
        """The same where it was not done: it is due again after that time alone."""
        ...

    async def has_claim(self, table_id: str, kind: str, *, by: str) -> bool:
        """Whether a claim was not lost."""
        ...

    async def changed_metadata(self, table_id: str, *, after: int) -> int | None:
        """The first version behind this one that changes protocol or metadata, published or not;
        None where there is none."""
        ...

    async def touched_partitions(
        self, table_id: str, *, after: int, through: int
    ) -> Sequence[str] | None:
        """The values, as JSON objects, of the partitions that files were added to or removed from
        in the versions behind `after` and up to `through`; None where they are too many, or too
        long, to be held, and where the index does not hold all of these versions."""
        ...

    async def enable_hook(self, name: str) -> int:
        """Record that a hook runs from now on, unless that is known. Returns since when, in ms by
        the database's clock."""
        ...

    async def awaken(self, kind: str) -> None:
        """Have what tables did not ask for be due for them: all have it from now on."""
        ...

    async def record_change(self, table_id: str, change: Change) -> None:
        """Write the audit row of a change that is about to be made outside the database."""
        ...


class _NoUpkeep:
    async def standing(self, table_id: str) -> Mapping[str, UpkeepRecord]:
        return {}

    async def counted(self, table_id: str, version: int | None = None) -> Counted | None:
        return None

    async def set_back(self, table_id: str, kind: str, *, to: int) -> bool:
        return True

    async def record_done(self, table_id: str, kind: str, version: int) -> None:
        return None

    async def claim_now(self, table_id: str, kind: str, *, by: str, for_s: float) -> bool:
        return True

    async def extend_claim(self, table_id: str, kind: str, *, by: str, for_s: float) -> None:
        return None

    async def release_claim(self, table_id: str, kind: str, *, by: str) -> None:
        return None


NO_UPKEEP: UpkeepStanding = _NoUpkeep()
"""Nothing is known of any table."""

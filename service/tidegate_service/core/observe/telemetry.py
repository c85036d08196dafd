"""What the service tells of itself while it works: counts, durations, spans.

An effect like the clock: use cases, the index and the edge are given a `Telemetry`, and know
neither Prometheus nor OpenTelemetry. Labels are closed sets; no table's name or id is one.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import Protocol

from tidegate_protocol.base.problems import Code


class Phase(StrEnum):
    """The parts of a commit's way that take time; `TOTAL` is all of it, waits included.

    `QUEUE` and `LOCK` are measured by the index, behind its port. `PUT` and `SAVE` are measured by
    the use case, around the calls that make up one of them: a PUT without an answer is followed by
    a read and by further PUTs, and rows are written before COMMIT is sent.
    """

    QUEUE = "queue"
    LOCK = "lock"
    DECIDE = "decide"
    PUT = "put"
    SAVE = "save"
    TOTAL = "total"


class Outcome(StrEnum):
    """What became of a proposal."""

    LANDED = "landed"
    REPLAYED = "replayed"
    EMPTY = "empty"
    CONFLICT = "conflict"
    INVALID = "invalid"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"
    DEFECT = "defect"


class UpkeepKind(StrEnum):
    """Work on a table's log that no commit waits for (`core.ports.upkeep.upkeep`)."""

    CHECKPOINT = "checkpoint"
    CHECKSUM = "checksum"
    COMPACTION = "compaction"
    CLEAN_UP = "clean-up"
    EXPIRED_VERSIONS = "expired-versions"
    HOOK = "hook"

    @classmethod
    def of(cls, kind: str) -> "UpkeepKind":
        """Of a job's kind: all hooks are one."""
        return cls.HOOK if kind.startswith(HOOK) else cls(kind)


HOOK = "hook:"
"""Before a hook's name: the kind of upkeep that its runs are. Each hook is one of its own."""


class UpkeepOutcome(StrEnum):
    """How a run of it ended. `HINDERED`: something outside keeps it from being done."""

    DONE = "done"
    HINDERED = "hindered"
    FAILED = "failed"


class Telemetry(Protocol):
    """Takes note; never raises, never waits."""

    def request(self, headers: Mapping[str, str]) -> AbstractContextManager[str | None]:
        """Around a request; gives the id of its trace (32 hex digits), if it has one.

        `headers` has names in lower case: a `traceparent` makes the request part of the
        client's trace.
        """
        ...

    def answered(self, *, method: str, route: str | None, status: int, seconds: float) -> None:
        """Within `request`, at its end. `route` is the template, None where no route matched."""
        ...

    def phase(self, phase: Phase) -> AbstractContextManager[None]:
        """Around a phase of a commit, however it ends."""
        ...

    def waited(self, seconds: float) -> None:
        """A commit's wait for its turn (`Phase.QUEUE`), which ends now."""
        ...

    def decided(self, outcome: Outcome, *, catalog_managed: bool, code: Code | None) -> None:
        """A proposal has ended so; `code` where it ended in a problem."""
        ...

    def foreign_commits(self, count: int) -> None:
        """Versions written past the service were read into the index."""
        ...

    def quarantined(self) -> None:
        """A table was closed to commits."""
        ...

    def published(self, count: int) -> None:
        """Versions of a catalog-managed table reached its log."""
        ...

    def kept_up(self, kind: UpkeepKind, outcome: UpkeepOutcome, *, seconds: float) -> None:
        """A run of a table's upkeep has ended so."""
        ...

    def cleaned_up(self, files: int) -> None:
        """Expired files were deleted from a log."""
        ...


class Silent:
    """Takes note of nothing."""

    def request(self, headers: Mapping[str, str]) -> AbstractContextManager[str | None]:
        return nullcontext()

    def answered(self, *, method: str, route: str | None, status: int, seconds: float) -> None:
        pass

    def phase(self, phase: Phase) -> AbstractContextManager[None]:
        return nullcontext()

    def waited(self, seconds: float) -> None:
        pass

    def decided(self, outcome: Outcome, *, catalog_managed: bool, code: Code | None) -> None:
        pass

    def foreign_commits(self, count: int) -> None:
        pass

    def quarantined(self) -> None:
        pass

    def published(self, count: int) -> None:
        pass

    def kept_up(self, kind: UpkeepKind, outcome: UpkeepOutcome, *, seconds: float) -> None:
        pass

    def cleaned_up(self, files: int) -> None:
        pass


SILENT: Telemetry = Silent()

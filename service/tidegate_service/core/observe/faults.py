"""The steps of a commit's way and of upkeep, where a test may end, stop or hold an instance.

The use cases say before and after each step that they have got there. What happens then is an
effect like the clock: nothing, unless whoever composes the instance passes something else. No
setting and no variable does (docs/faults.md).
"""

from dataclasses import dataclass
from enum import Enum, StrEnum
from types import TracebackType
from typing import Protocol


class Step(StrEnum):
    """M: a catalog-managed table's commit, whose moment is M6. O: a plain table's, which is O6.

    M0 is passed before the kind of the table is known, so by both.
    """

    M0_FIND_TABLE = "M0"
    M1_LOCK = "M1"
    M2_LOOK_UP = "M2"
    M3_DECIDE = "M3"
    M4_COMPOSE = "M4"
    M5_INSERT = "M5"
    M6_COMMIT = "M6"
    M7_ANSWER = "M7"
    M8_PUBLISH = "M8"
    M9_MARK_PUBLISHED = "M9"
    M10_FORGET_CONTENT = "M10"
    O1_LOCK = "O1"
    O2_LOOK_UP = "O2"
    O3_PROBE = "O3"
    O4_DECIDE = "O4"
    O5_COMPOSE = "O5"
    O6_PUT = "O6"
    O7_CLASSIFY = "O7"
    O8_INDEX = "O8"
    O9_ANSWER = "O9"


class CheckpointStep(StrEnum):
    """Of writing a checkpoint; the first one is only of those that have several files."""

    PARTS_PUT = "checkpoint-parts-put"
    CHECKPOINT_PUT = "checkpoint-put"
    LAST_CHECKPOINT_PUT = "last-checkpoint-put"


class CompactionStep(StrEnum):
    """Of writing a log compaction file, which nothing points to."""

    COMPACTED_PUT = "compacted-put"


class ChecksumStep(StrEnum):
    """Of writing a version's checksum."""

    CHECKSUM_PUT = "checksum-put"


class HookStep(StrEnum):
    """Of a hook's runs; once for each version."""

    HOOK_RUN = "hook-run"


class CleanUpStep(StrEnum):
    """Of the clean-up of a log; L3 once for each batch of files."""

    L1_CHECK = "L1"
    L2_RECORD = "L2"
    L3_REMOVE = "L3"
    L4_REMOVE_SIDECARS = "L4"


class ExpiryStep(StrEnum):
    """Of what leaves the index behind that; each once for each batch."""

    DROP_VERSIONS = "drop-versions"
    DROP_FILES = "drop-files"


class VacuumStep(StrEnum):
    """Those of VACUUM; V3 once for each batch of files."""

    V1_LIST = "V1"
    V2_START = "V2"
    V3_DELETE = "V3"
    V4_FOLDERS = "V4"
    V5_END = "V5"


class ManifestStep(StrEnum):
    """Of making symlink manifests; once for each batch of them."""

    PUT = "manifests-put"
    REMOVE = "manifests-remove"


class ForgetStep(StrEnum):
    """Of forgetting a table: that it is asked for is kept, its log is made whole, and the index
    lets it go."""

    KEEP = "forget-keep"
    MAKE_WHOLE = "forget-make-whole"
    DROP = "forget-drop"


AnyStep = (
    Step
    | CheckpointStep
    | CompactionStep
    | ChecksumStep
    | HookStep
    | CleanUpStep
    | ExpiryStep
    | VacuumStep
    | ManifestStep
    | ForgetStep
)


class Side(Enum):
    """AFTER is reached only where the step raised nothing."""

    BEFORE = "before"
    AFTER = "after"


class FaultPoints(Protocol):
    """Told of every step, in the order of their happening."""

    async def reached(self, step: AnyStep, side: Side) -> None:
        """Returns for the commit to go on. It may take its time, or never return."""
        ...


class _NoFaults:
    async def reached(self, step: AnyStep, side: Side) -> None:
        return None


NO_FAULTS: FaultPoints = _NoFaults()


class around:
    """`async with around(faults, step):` tells of both sides of a step."""

    __slots__ = ("_faults", "_step")

    def __init__(self, faults: FaultPoints, step: AnyStep) -> None:
        self._faults = faults
        self._step = step

    async def __aenter__(self) -> None:
        await self._faults.reached(self._step, Side.BEFORE)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self._faults.reached(self._step, Side.AFTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSteps:
    """The steps that both kinds of table have, under each one's own numbers."""

    lock: Step
    look_up: Step
    decide: Step
    compose: Step
    save: Step
    answer: Step


CATALOG_MANAGED_STEPS = CommitSteps(
    lock=Step.M1_LOCK,
    look_up=Step.M2_LOOK_UP,
    decide=Step.M3_DECIDE,
    compose=Step.M4_COMPOSE,
    save=Step.M6_COMMIT,
    answer=Step.M7_ANSWER,
)
PLAIN_STEPS = CommitSteps(
    lock=Step.O1_LOCK,
    look_up=Step.O2_LOOK_UP,
    decide=Step.O4_DECIDE,
    compose=Step.O5_COMPOSE,
    save=Step.O8_INDEX,
    answer=Step.O9_ANSWER,
)

"""What a change of protocol or metadata asks of every live file; checked where the files are known
(`features.file_demands`)."""

from dataclasses import dataclass
from enum import StrEnum


class FileDemand(StrEnum):
    """What a change of the table asks of every live file; checked where the files are known."""

    ROW_IDS = "has a baseRowId and a defaultRowCommitVersion"
    NO_ROW_IDS = "has neither a baseRowId nor a defaultRowCommitVersion"
    NO_DELETION_VECTORS = "has no deletion vector"
    REWRITTEN = "is written again, under the names that columns have then"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoNulls:
    """What a column that is NOT NULL from now on asks of every live file: a proof that it has none.
    `physical_path` is what files call the column."""

    name: str
    physical_path: tuple[str, ...]

    def __str__(self) -> str:
        return f"has no null in the column {self.name!r}, as its statistics prove"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obeys:
    """What a new rule asks of every live file: that its rows were read, because the service never
    sees whether they obey. `rule` is what messages call it."""

    rule: str

    def __str__(self) -> str:
        return f"was read before {self.rule} is made (reads.whole_table)"


Demand = FileDemand | NoNulls | Obeys

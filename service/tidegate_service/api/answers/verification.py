"""The bodies of answers about a table's index, log and data files against each other."""

from typing import Annotated

from msgspec import Meta, Struct

from tidegate_service.core.maintenance.verify import DifferenceKind
from tidegate_service.core.maintenance.verify_files import FilesStage


class DifferenceAnswer(Struct, frozen=True, kw_only=True):
    """Something that is not the same in the index and in storage, or no legal table."""

    version: Annotated[int | None, Meta(description="Null where it is of the table as a whole.")]
    kind: Annotated[
        DifferenceKind,
        Meta(
            description="`storage`: the log's files; `content`: the bytes that the index keeps; "
            "`index`: its rows; `log`: a commit breaks Delta's protocol."
        ),
    ]
    detail: str


class VerificationAnswer(Struct, frozen=True, kw_only=True):
    """What comparing some versions of a table found."""

    table: str
    consistent: Annotated[bool, Meta(description="Nothing differs in these versions.")]
    from_version: int
    through_version: int
    next_version: Annotated[
        int | None, Meta(description="`from_version` of the next call; null at the end.")
    ]
    cleaned_up: Annotated[
        int, Meta(description="Versions whose files are gone from the log, under a checkpoint.")
    ]
    not_ingested: Annotated[
        int, Meta(description="Foreign versions beyond the head, which the next read takes in.")
    ]
    differences: list[DifferenceAnswer]


class BadFileAnswer(Struct, frozen=True, kw_only=True):
    """A live file that is missing, or is not as its action says."""

    path: Annotated[str, Meta(description="As the log has it.")]
    detail: str


class FilesSeenAnswer(Struct, frozen=True, kw_only=True):
    """How far the data files of a version were looked for: a line of the answer."""

    stage: Annotated[FilesStage, Meta(description="On the last line `ended` or `failed`.")]
    version: Annotated[int, Meta(description="The latest one when it began.")]
    files: Annotated[int, Meta(description="Live files that were looked for.")]
    deletion_vectors: Annotated[int, Meta(description="Whose files were looked for.")]
    skipped: Annotated[
        int,
        Meta(
            description="Files and deletion vectors that were not looked for: outside of the "
            "table's folder, where the caller may not read every table or no table can be; or "
            "with control characters in their paths."
        ),
    ]
    bad: Annotated[list[BadFileAnswer], Meta(description="Found since the line before.")]
    code: Annotated[str | None, Meta(description="Of the problem, where it failed.")]
    detail: str | None

"""The bodies of answers about the upkeep of a table's files."""

from typing import Annotated

from msgspec import Meta, Struct

from tidegate_service.api.answers.types import Milliseconds
from tidegate_service.core.ports.checkpoints import CheckpointKind
from tidegate_service.core.vacuum.vacuum import Stage


class CheckpointAnswer(Struct, frozen=True, kw_only=True):
    """A checkpoint that was written, and that `_last_checkpoint` points to."""

    table: str
    version: int
    kind: Annotated[
        CheckpointKind,
        Meta(description="What the table's properties and its size ask for."),
    ]
    files: Annotated[int, Meta(description="Of the checkpoint, sidecars included.")]
    bytes: int
    files_written: Annotated[
        int, Meta(description="Fewer than `files` where sidecars of an earlier one stand.")
    ]
    bytes_written: int
    num_actions: Annotated[int, Meta(description="Rows of all its files.")]
    seconds: float


class HookAnswer(Struct, frozen=True, kw_only=True):
    """How far a post-commit hook is with a table."""

    version: Annotated[
        int | None, Meta(description="The last one that it was run for, or that is older than it.")
    ]
    at: Milliseconds | None
    commits_behind: Annotated[int, Meta(description="Published versions that are newer.")]
    failures: Annotated[int, Meta(description="Of the next version, one after the other.")]


class OpeningAnswer(Struct, frozen=True, kw_only=True):
    """What there is to read of a log for its last published version, compacted files left out."""

    checkpoint_version: Annotated[
        int | None, Meta(description="That `_last_checkpoint` points to, whoever wrote it.")
    ]
    checkpoint_bytes: Annotated[
        int | None, Meta(description="Null also where its writer did not say.")
    ]
    commits: Annotated[int, Meta(description="Behind the checkpoint.")]
    commit_bytes: int


class UpkeepAnswer(Struct, frozen=True, kw_only=True):
    """How the upkeep of a table's log stands. What was never done is null."""

    table: Annotated[str, Meta(description="The table's full name.")]
    checkpoint_version: Annotated[
        int | None, Meta(description="Of the last checkpoint that the service wrote.")
    ]
    checkpoint_at: Milliseconds | None
    commits_after_checkpoint: Annotated[
        int, Meta(description="Published versions that are newer than that, or all of them.")
    ]
    checksum_version: Annotated[
        int | None, Meta(description="Of the last version checksum that the service wrote.")
    ]
    checksum_at: Milliseconds | None
    cleaned_up_before: Annotated[
        int | None, Meta(description="The log's versions before this one were deleted.")
    ]
    clean_up_at: Annotated[
        Milliseconds | None, Meta(description="When the log was last looked through for it.")
    ]
    compaction_version: Annotated[
        int | None,
        Meta(description="Up to it, commits are in compacted files, or in none worth its bytes."),
    ]
    compaction_at: Milliseconds | None
    dropped_before: Annotated[
        int | None, Meta(description="Versions before this one have left the index.")
    ]
    dropped_at: Annotated[
        Milliseconds | None, Meta(description="When the index was last looked through for it.")
    ]
    vacuum_version: Annotated[
        int | None, Meta(description="The VACUUM END of the last vacuum that came to its end.")
    ]
    vacuum_at: Milliseconds | None
    opening: Annotated[
        OpeningAnswer | None,
        Meta(description="What whoever opens the table reads; null where the store does not say."),
    ]
    hooks: Annotated[
        dict[str, HookAnswer], Meta(description="By their names, those that were begun.")
    ]
    troubles: Annotated[
        dict[str, str], Meta(description="By the kind of upkeep, what keeps it from being done.")
    ]


class ManifestsAnswer(Struct, frozen=True, kw_only=True):
    """The symlink manifests that were written of a table."""

    table: Annotated[str, Meta(description="The table's full name.")]
    version: int
    manifests: Annotated[int, Meta(description="One a partition that has files.")]
    files: Annotated[int, Meta(description="That they name.")]
    removed: Annotated[int, Meta(description="Manifests of partitions without files.")]


class VacuumHead(Struct, frozen=True, kw_only=True):
    """What a vacuum is of, and what it keeps: the first line of its answer."""

    table: Annotated[str, Meta(description="The table's full name.")]
    table_id: str
    location: Annotated[str, Meta(description="What the files' paths are relative to.")]
    version: Annotated[int, Meta(description="The latest one when it began.")]
    dry_run: bool
    retain_ms: Annotated[int, Meta(description="How long removed files are kept.")]
    modified_before: Annotated[
        int, Meta(description="In ms since 1970, UTC: files that are younger stay.")
    ]


class VacuumProgress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a vacuum is: a further line of its answer. What is zero, empty or null is left
    out."""

    stage: Stage
    logs: Annotated[int, Meta(description="Other tables' logs that were looked at.")] = 0
    listed: Annotated[int, Meta(description="Files that were looked at.")] = 0
    found: Annotated[int, Meta(description="Files that are to be deleted.")] = 0
    found_bytes: int = 0
    deleted: int = 0
    folders: Annotated[int, Meta(description="Empty folders that were removed.")] = 0
    version: Annotated[
        int | None, Meta(description="Of VACUUM START; at the end, of VACUUM END.")
    ] = None
    paths: Annotated[
        list[str], Meta(description="Of a dry run: what would be deleted, since the line before.")
    ] = []
    warnings: Annotated[
        list[str],
        Meta(
            description="Other tables that name files of this one; on the first line of `listing`."
        ),
    ] = []
    code: Annotated[str | None, Meta(description="Of the problem, where it failed.")] = None
    detail: str | None = None

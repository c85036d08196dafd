"""How much a commit, a group or a portion of foreign versions may take while others wait."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate_protocol.features.hooks import HOOKS, named_hooks

_KIB, _MIB = 1024, 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestLimits:
    """So many manifests are `put` together, and `removed`. Of their lines `held_bytes` are in
    memory, and one that has more is read from the disk while it is put; lines are sorted in
    `sorted_bytes`."""

    put: int = 32
    held_bytes: int = 1024 * 1024
    removed: int = 1000
    sorted_bytes: int = 8 * _MIB


MANIFEST_LIMITS = ManifestLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepLimits:
    """A run leaves the rest to the next one after `run_s`, since other upkeep waits for it.

    A compacted file has `compacted_commits` at most, for some of it is still to be had where a
    later checkpoint stands for the rest. Of their bytes, `compacted_bytes` are in memory.

    Versions between two heads get checksums where they are `checksums_between` at most: a table
    with more at a time is a hot one. Tables with more than `checksum_metadata_bytes` of metadata
    have none. Of checksums whose versions are not published yet, `waiting_checksums` are kept, of
    `waiting_checksum_bytes` in all.

    Of a log, `removed` files are deleted at a time, and `unread_versions` behind the index are
    looked at: more than the service is just writing. Of its sidecars, `sidecars` are looked at in a
    run, and what is named by `sidecar_checkpoints`; all are left where checkpoints name more, and
    where there are more checkpoints. Listing them, reading checkpoints and deleting them may take
    `sidecars_s` each.
    """

    run_s: float = 5.0
    compacted_commits: int = 1_000
    compacted_bytes: int = 8 * _MIB
    checksums_between: int = 20
    checksum_metadata_bytes: int = _MIB
    waiting_checksums: int = 1000
    waiting_checksum_bytes: int = 64 * _MIB
    removed: int = 100
    unread_versions: int = 100
    sidecars: int = 100_000
    sidecar_checkpoints: int = 2_000
    sidecars_s: float = 5.0


UPKEEP_LIMITS = UpkeepLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLimits:
    """Under a table's lock, at most `locked_winner_bytes` of commits are read again, which takes
    milliseconds. Ahead of it, for one proposal at most `winner_bytes` are read, and
    `winner_commits` commits. All count what the commits take in memory.

    A file of at most `buffered_file_bytes` is put together with others, at most `buffered_files` at
    a time: writing a larger one takes longer than waiting for the disk. After every
    `files_a_write` files, the rows staged so far are sent, since a few rows cost the database as
    much as one.

    Foreign versions are saved in portions. A portion ends at the first of `portion_versions`,
    `portion_bytes` and `portion_s`, and has at least one version. Published versions are marked
    after `marked_versions` or `portion_s`.

    A check of a catalog-managed table's log ahead of the lock takes `check_ahead_s` at most. One
    that nobody waits for is repeated after `check_again_s` where it failed.

    A whole log is read into the index in `log_s`, and `log_s_a_million` more for each million of
    actions: three times what it takes on two busy cores. A version counts as `actions_a_version`
    beside its own.

    The version of one small commit is put within `put_s`, by `put_attempts` PUTs at most. Postgres
    ends a transaction that is idle for longer, and with it the row lock. A store that does not
    answer must not keep other commits waiting for longer.

    No further PUT is begun under a lock after one that took longer than `race_s` to find its
    version taken by another writer.

    Of the versions of a log before the first that makes it a table, `begin_actions` and
    `begin_bytes` are read, and handed on `begin_portion` at a time. No writer begins a log with
    any, so they are for logs that were mended by hand. A section that reads a copy of a log waits
    for the store for `copy_read_on_s` in all, for versions that were committed since.

    One comparison of an index with its log tells of `told_differences` one by one, and how many
    more it found. A table is vacuumed where at most `clones` other tables name files of it: each
    is read through. Of names that are found meanwhile, `late_names` are kept in memory.

    A commit has its table name no post-commit hooks but those of `table_hooks`, and those that it
    named before.
    """

    locked_winner_bytes: int = 512 * _KIB
    winner_bytes: int = 512 * _MIB
    winner_commits: int = 100_000
    buffered_files: int = 32
    buffered_file_bytes: int = 64 * _KIB
    files_a_write: int = 16
    portion_versions: int = 250
    portion_bytes: int = 16 * _MIB
    portion_s: float = 2.0
    marked_versions: int = 500
    check_ahead_s: float = 1.0
    check_again_s: float = 1.0
    log_s: float = 600.0
    log_s_a_million: float = 600.0
    actions_a_version: int = 10
    begin_actions: int = 100_000
    begin_bytes: int = 64 * _MIB
    begin_portion: int = 4_096
    copy_read_on_s: float = 1.0
    put_s: float = 9.0
    put_attempts: int = 5
    race_s: float = 1.0
    told_differences: int = 1_000
    clones: int = 100
    late_names: int = 250_000
    table_hooks: frozenset[str] = frozenset()

    def why_not_hooks(self, after: Mapping[str, str], before: Mapping[str, str]) -> str | None:
        """What is wrong with the hooks that a table's properties name; None where nothing is."""
        refused = set(named_hooks(after)) - set(named_hooks(before)) - self.table_hooks
        if not refused:
            return None
        known = ", ".join(sorted(self.table_hooks)) or "none"
        return f"{HOOKS} names {sorted(refused)}; the hooks that tables may name are: {known}"
